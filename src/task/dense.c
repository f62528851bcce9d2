#include "task/dense.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/size.h"

enum { LINE = 16, ITEM_PANELS = 11 * BERT_TILE_PANELS };

static bert_status check_shape(const bert_stored *stored, const char *name, size_t rows, size_t cols,
                               bert_error *err) {
    const bert_tensor_info *t = stored ? stored->info : NULL;
    if (!t)
        return bert_fail(err, BERT_NOT_FOUND, "%s%sexpected tensor %s, found no such tensor",
                         stored ? stored->file_name : "", stored ? ": " : "", name);
    if (t->shape[0] == rows && (t->rank == 2 ? t->shape[1] == cols : t->rank == 1 && cols == 1)) return BERT_OK;
    return bert_fail(err, BERT_BAD_FILE, "%s: tensor %s: expected %zu × %zu values, found another shape",
                     stored->file_name, t->name, rows, cols);
}

bert_status bert_dense_read(float *x, const bert_stored *stored, const char *name, size_t rows, size_t cols,
                            bert_error *err) {
    TRY(check_shape(stored, name, rows, cols, err));
    return bert_safetensors_read_f32(stored->file, stored->info, 0, x, rows * cols, err);
}

/* Sixteen rows at a time into their panels. */
static bert_status pack(const bert_dense *dense, const bert_stored *stored, float *scratch, bert_error *err) {
    for (size_t row = 0; row < dense->n; row += BERT_PANEL) {
        const size_t rows = dense->n - row < BERT_PANEL ? dense->n - row : BERT_PANEL;
        TRY(bert_safetensors_read_f32(stored->file, stored->info, row * dense->k, scratch, rows * dense->k, err));
        bert_pack_panel(dense->kernels, dense->arena.data + row * dense->k, scratch, dense->k, rows, dense->k);
    }
    return BERT_OK;
}

bert_status bert_dense_open(bert_dense *dense, const bert_model *model, const char *weight, const char *bias, size_t n,
                            size_t k, bert_error *err) {
    return bert_dense_open_stored(dense, bert_model_kernels(model), bert_model_find(model, weight), weight,
                                  bert_model_find(model, bias), bias, n, k, err);
}

bert_status bert_dense_open_stored(bert_dense *dense, const bert_kernels *kernels, const bert_stored *weight,
                                   const char *weight_name, const bert_stored *bias, const char *bias_name, size_t n,
                                   size_t k, bert_error *err) {
    const bert_memory memory = bert_memory_or_default(NULL);
    const size_t floats = bert_panels(n) * BERT_PANEL * k;
    float *scratch = NULL;
    bert_status status;
    *dense = (bert_dense){.kernels = kernels, .n = n, .k = k};
    TRY(check_shape(weight, weight_name, n, k, err));
    if (!bert_arena_open(&dense->arena, &memory, floats + n) || !(scratch = calloc(BERT_PANEL, k * sizeof *scratch))) {
        status =
            bert_fail(err, BERT_NO_MEMORY, "no memory for %s: %zu MB are needed", weight_name, floats * 4 / 1000000);
        goto done;
    }
    TRY_OR_DONE(pack(dense, weight, scratch, err));
    if (bias_name) {
        dense->bias = dense->arena.data + floats;
        TRY_OR_DONE(bert_dense_read(dense->arena.data + floats, bias, bias_name, n, 1, err));
    }
done:
    free(scratch);
    if (status != BERT_OK) bert_dense_close(dense);
    return status;
}

void bert_dense_close(bert_dense *dense) {
    bert_arena_close(&dense->arena);
    *dense = (bert_dense){0};
}

typedef struct dense_job {
    const bert_kernels *kernels;
    bert_linear linear;
    float *scratch; /* [slots, slot_floats] */
    size_t slot_floats;
} dense_job;

static bert_status dense_item(void *arg, size_t item, int slot, bert_error *err) {
    const dense_job *j = arg;
    const size_t first = item * ITEM_PANELS, panels = bert_panels(j->linear.n);
    (void)err;
    bert_linear_run(j->kernels, &j->linear, first, first + ITEM_PANELS < panels ? first + ITEM_PANELS : panels,
                    j->scratch + (size_t)slot * j->slot_floats);
    return BERT_OK;
}

bert_status bert_dense_run(const bert_dense *dense, float *y, const float *x, size_t rows, bert_epilogue epilogue,
                           const bert_workers *workers, bert_error *err) {
    const bert_memory memory = bert_memory_or_default(NULL);
    bert_arena scratch = {0};
    dense_job j = {.kernels = dense->kernels,
                   .linear = {.y = y, .ldy = dense->n, .x = x, .ldx = dense->k, .w = dense->arena.data,
                              .bias = dense->bias, .epilogue = epilogue, .t = rows, .n = dense->n, .k = dense->k}};
    j.slot_floats = bert_round_up(bert_linear_scratch(dense->kernels, &j.linear), LINE);
    if (!bert_arena_open(&scratch, &memory, (size_t)bert_parallel_width(workers) * j.slot_floats))
        return bert_fail(err, BERT_NO_MEMORY, "no memory for a linear layer over %zu rows", rows);
    j.scratch = scratch.data;
    const bert_status status =
        bert_parallel(workers, (bert_panels(dense->n) + ITEM_PANELS - 1) / ITEM_PANELS, dense_item, &j, err);
    bert_arena_close(&scratch);
    return status;
}
