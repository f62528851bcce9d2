/* model/load.c: weights from the files into memory. */
#include <stdlib.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/size.h"
#include "model/weights.h"

enum { LINE = 16 }; /* floats in a cache line: every array starts on one */

/* Rows that one work item reads: a panel of a matrix, or about this many floats of a table. */
enum { BLOCK = 1 << 16 };

bert_status bert_param_rows(const bert_param *param, size_t first, size_t n, float *rows, bert_error *err) {
    const size_t part_rows = param->rows / (size_t)param->parts;
    while (n > 0) {
        const bert_stored *s = param->part[first / part_rows];
        const size_t row = first % part_rows;
        const size_t take = n < part_rows - row ? n : part_rows - row;
        TRY(bert_safetensors_read_f32(s->file, s->info, row * param->cols, rows, take * param->cols, err));
        rows += take * param->cols;
        first += take;
        n -= take;
    }
    return BERT_OK;
}

static size_t param_floats(const bert_param *p) {
    return p->panels ? bert_panels(p->rows) * BERT_PANEL * p->cols : bert_round_up(p->rows * p->cols, LINE);
}

bert_status bert_weights_bytes(bert_weights *weights, size_t *bytes, bert_error *err) {
    const size_t n = bert_weights_params(weights, NULL);
    bert_param **params = calloc(n, sizeof *params);
    *bytes = 0;
    if (!params) return bert_fail(err, BERT_NO_MEMORY, "no memory for the list of weights");
    (void)bert_weights_params(weights, params);
    for (size_t i = 0; i < n; i++) *bytes += param_floats(params[i]) * sizeof(float);
    free(params);
    return BERT_OK;
}

static size_t rows_per_item(const bert_param *p) {
    if (p->panels) return BERT_PANEL;
    return p->cols >= BLOCK ? 1 : BLOCK / p->cols;
}

/* Which array and which of its rows a work item is. */
typedef struct loader {
    const bert_kernels *kernels;
    bert_param **params; /* [n_params], in order of use */
    size_t *first_item;  /* [n_params + 1] */
    size_t n_params;
    bert_arena scratch;  /* [slots, slot_floats]: rows of a matrix before they are packed */
    size_t slot_floats;
} loader;

static bert_status load_item(void *arg, size_t item, int slot, bert_error *err) {
    const loader *l = arg;
    const size_t number = bert_run_at(l->first_item, l->n_params, item);
    const bert_param *p = l->params[number];
    const size_t step = rows_per_item(p), row = (item - l->first_item[number]) * step;
    const size_t rows = p->rows - row < step ? p->rows - row : step;
    float *to = p->data + row * p->cols;
    if (!p->panels) return bert_param_rows(p, row, rows, to, err);
    float *scratch = l->scratch.data + (size_t)slot * l->slot_floats;
    TRY(bert_param_rows(p, row, rows, scratch, err));
    bert_pack_panel(l->kernels, to, scratch, p->cols, rows, p->cols);
    return BERT_OK;
}

/* Gives each array its place in the arena and its work items. */
static void lay_out(loader *l, float *arena) {
    size_t items = 0;
    for (size_t i = 0; i < l->n_params; i++) {
        bert_param *p = l->params[i];
        const size_t step = rows_per_item(p);
        p->data = arena;
        arena += param_floats(p);
        l->first_item[i] = items;
        items += (p->rows + step - 1) / step;
    }
    l->first_item[l->n_params] = items;
}

static void forget(loader *l) {
    for (size_t i = 0; i < l->n_params; i++) l->params[i]->data = NULL;
}

/* Keeps the vectors, or what is not a vector. */
static void select_params(loader *l, bool vectors) {
    size_t kept = 0;
    for (size_t i = 0; i < l->n_params; i++)
        if (l->params[i]->vector == vectors) l->params[kept++] = l->params[i];
    l->n_params = kept;
}

static bert_status open_loader(loader *l, bert_weights *weights, bool vectors, bert_arena *arena,
                               const bert_memory *memory, int slots, bert_error *err) {
    size_t floats = 0;
    const size_t most = bert_weights_params(weights, NULL);
    l->params = calloc(most, sizeof *l->params);
    l->first_item = calloc(most + 1, sizeof *l->first_item);
    if (!l->params || !l->first_item) return bert_fail(err, BERT_NO_MEMORY, "no memory for the list of weights");
    l->n_params = bert_weights_params(weights, l->params);
    select_params(l, vectors);
    for (size_t i = 0; i < l->n_params; i++) {
        const bert_param *p = l->params[i];
        floats += param_floats(p);
        if (p->panels && p->cols * BERT_PANEL > l->slot_floats) l->slot_floats = p->cols * BERT_PANEL;
    }
    if (!bert_arena_open(&l->scratch, memory, (size_t)slots * l->slot_floats) ||
        !bert_arena_open(arena, memory, floats))
        return bert_fail(err, BERT_NO_MEMORY, "no memory for the weights: %zu MB are needed", floats * 4 / 1000000);
    return BERT_OK;
}

static bert_status load(bert_weights *weights, bool vectors, bert_arena *arena, const bert_kernels *kernels,
                        const bert_memory *memory, const bert_workers *workers, bert_error *err) {
    loader l = {.kernels = kernels};
    bert_status status;
    TRY_OR_DONE(open_loader(&l, weights, vectors, arena, memory, bert_parallel_width(workers), err));
    lay_out(&l, arena->data);
    TRY_OR_DONE(bert_parallel(workers, l.first_item[l.n_params], load_item, &l, err));
done:
    if (status != BERT_OK) {
        forget(&l);
        bert_arena_close(arena);
    }
    bert_arena_close(&l.scratch);
    free(l.params);
    free(l.first_item);
    return status;
}

bert_status bert_weights_load_vectors(bert_weights *weights, const bert_memory *memory, bert_error *err) {
    return load(weights, true, &weights->vectors, NULL, memory, NULL, err);
}

bert_status bert_weights_load_matrices(bert_weights *weights, const bert_kernels *kernels, const bert_memory *memory,
                                       const bert_workers *workers, bert_error *err) {
    return load(weights, false, &weights->matrices, kernels, memory, workers, err);
}
