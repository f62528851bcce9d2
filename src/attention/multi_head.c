/* attention/multi_head.c: projections around the heads, residual and LayerNorm around those. */
#include "attention/compute.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/size.h"

enum { LINE = 16 };
/* Matrices come as their owner keeps them, so each item packs as many rows as the widest kernels take together. */
enum { ITEM_COLUMNS = BERT_TILE_PANELS * BERT_PANEL, ITEM_ROWS = 12 };

typedef struct projection_job {
    const bert_compute *compute;
    const float *weight;
    bert_linear linear;
    float *scratch; /* [slots, slot_floats]: the item's panels, then the kernels' own */
    size_t slot_floats;
} projection_job;

static bert_status projection_item(void *arg, size_t item, int slot, bert_error *err) {
    const projection_job *j = arg;
    const size_t first = item * ITEM_COLUMNS, k = j->linear.k;
    float *panels = j->scratch + (size_t)slot * j->slot_floats;
    bert_linear part = j->linear;
    (void)err;
    part.n = part.n - first < ITEM_COLUMNS ? part.n - first : ITEM_COLUMNS;
    for (size_t row = 0; row < part.n; row += BERT_PANEL)
        bert_pack_panel(j->compute->kernels, panels + row * k, j->weight + (first + row) * k, k,
                        part.n - row < BERT_PANEL ? part.n - row : BERT_PANEL, k);
    part.w = panels;
    part.y += first;
    if (part.bias) part.bias += first;
    if (part.residual) part.residual += first;
    bert_linear_run(j->compute->kernels, &part, 0, bert_panels(part.n), panels + ITEM_COLUMNS * k);
    return BERT_OK;
}

/* y [t, H] = x [t, H] · Wᵀ + b, plus the residual [t, H] if there is one. */
static bert_status project(const bert_compute *compute, float *y, const float *x, const bert_projection *p,
                           const float *residual, size_t t, size_t h, bert_error *err) {
    projection_job j = {.compute = compute, .weight = p->weight,
                        .linear = {.y = y, .ldy = h, .x = x, .ldx = h, .bias = p->bias, .residual = residual, .ldr = h,
                                   .t = t, .n = h, .k = h}};
    bert_arena arena = {.data = NULL};
    j.slot_floats = ITEM_COLUMNS * h + bert_linear_scratch(compute->kernels, &j.linear);
    TRY(bert_compute_scratch(compute, &arena, 0, &j.slot_floats, err));
    j.scratch = arena.data;
    const bert_status status =
        bert_parallel(compute->workers, (h + ITEM_COLUMNS - 1) / ITEM_COLUMNS, projection_item, &j, err);
    bert_arena_close(&arena);
    return status;
}

/* ---- Residual and LayerNorm. ---- */

typedef struct norm_job {
    const bert_kernels *kernels;
    float *y;
    const float *x, *residual, *gamma, *beta;
    float eps;
    size_t rows, h;
} norm_job;

static bert_status norm_item(void *arg, size_t item, int slot, bert_error *err) {
    const norm_job *j = arg;
    const size_t first = item * ITEM_ROWS, rows = j->rows - first < ITEM_ROWS ? j->rows - first : ITEM_ROWS;
    float *y = j->y + first * j->h;
    const float *x = j->x + first * j->h;
    (void)slot, (void)err;
    if (j->residual) {
        const float *residual = j->residual + first * j->h;
        for (size_t i = 0; i < rows * j->h; i++) y[i] = x[i] + residual[i];
        x = y;
    }
    bert_layer_norm(j->kernels, y, j->h, x, j->h, j->gamma, j->beta, j->eps, rows, j->h);
    return BERT_OK;
}

bert_status bert_add_norm(float *y, const float *x, const float *residual, const float *gamma, const float *beta,
                          float eps, size_t rows, size_t hidden, const bert_compute_options *options,
                          bert_error *err) {
    bert_compute compute;
    size_t floats;
    if (!hidden || !bert_size_mul(&floats, rows, hidden))
        return bert_fail(err, BERT_INVALID_ARGUMENT, "add and norm: no rows of %zu values", hidden);
    TRY(bert_compute_make(&compute, options, err));
    norm_job j = {compute.kernels, y, x, residual, gamma, beta, eps, rows, hidden};
    return bert_parallel(compute.workers, rows / ITEM_ROWS + (rows % ITEM_ROWS > 0), norm_item, &j, err);
}

/* ---- The whole. ---- */

typedef struct projected {
    float *q, *context; /* [B·Tq, H] */
    float *k, *v;       /* [B·Tk, H] */
} projected;

static bert_status attend(const bert_multi_head *m, const projected *p, const bert_compute *compute, bert_error *err) {
    const size_t h = m->hidden, d = h / m->heads;
    bert_attention a = BERT_ATTENTION_INIT;
    a.batch = m->batch, a.heads = m->heads, a.tq = m->tq, a.tk = m->tk, a.d = d;
    a.q = p->q, a.k = p->k, a.v = p->v, a.result = p->context;
    a.q_step[0] = a.result_step[0] = m->tq * h;
    a.k_step[0] = a.v_step[0] = m->tk * h;
    a.q_step[1] = a.k_step[1] = a.v_step[1] = a.result_step[1] = d;
    a.q_step[2] = a.k_step[2] = a.v_step[2] = a.result_step[2] = h;
    a.mask = m->mask;
    a.scores = m->scores;
    a.weights = m->weights;
    return bert_attention_compute(&a, compute, err);
}

static bert_status run(const bert_multi_head *m, const projected *p, const bert_compute *compute, bert_error *err) {
    const size_t tq = m->batch * m->tq, tk = m->batch * m->tk, h = m->hidden;
    const float *memory = m->memory ? m->memory : m->x;
    TRY(project(compute, p->q, m->x, &m->query, NULL, tq, h, err));
    TRY(project(compute, p->k, memory, &m->key, NULL, tk, h, err));
    TRY(project(compute, p->v, memory, &m->value, NULL, tk, h, err));
    TRY(attend(m, p, compute, err));
    TRY(project(compute, m->result, p->context, &m->output, m->gamma ? m->x : NULL, tq, h, err));
    if (!m->gamma) return BERT_OK;
    norm_job j = {compute->kernels, m->result, m->result, NULL, m->gamma, m->beta, m->eps, tq, h};
    return bert_parallel(compute->workers, tq / ITEM_ROWS + (tq % ITEM_ROWS > 0), norm_item, &j, err);
}

static bert_status check(const bert_multi_head *m, bert_error *err) {
    if (m->size < sizeof *m)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "multi-head: size is not set: begin with BERT_MULTI_HEAD_INIT");
    if (!m->batch || !m->heads || !m->tq || !m->tk || !m->hidden || m->hidden % m->heads != 0)
        return bert_fail(
            err, BERT_INVALID_ARGUMENT,
            "multi-head: expected B, A, Tq and Tk of at least 1 and H a multiple of A, found B %zu, A %zu, "
            "Tq %zu, Tk %zu, H %zu",
            m->batch, m->heads, m->tq, m->tk, m->hidden);
    if (!m->memory && m->tk != m->tq)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "multi-head: without memory Tk is Tq, found %zu and %zu", m->tk,
                         m->tq);
    if (!m->x || !m->result || !m->query.weight || !m->key.weight || !m->value.weight || !m->output.weight ||
        !m->gamma != !m->beta)
        return bert_fail(err, BERT_INVALID_ARGUMENT,
                         "multi-head: x, result and four matrices are needed, and gamma and beta both or neither");
    return bert_attention_mask_check(&m->mask, m->batch, m->tq, m->tk, err);
}

/* Floats of all four arrays and of the maps. */
static bool sizes_fit(const bert_multi_head *m, size_t *queries, size_t *keys) {
    size_t all, map;
    return bert_size_mul(queries, m->batch, m->tq) && bert_size_mul(queries, *queries, m->hidden) &&
           bert_size_align(queries, *queries, LINE) && bert_size_mul(keys, m->batch, m->tk) &&
           bert_size_mul(keys, *keys, m->hidden) && bert_size_align(keys, *keys, LINE) &&
           bert_size_add(&all, *queries, *keys) && bert_size_mul(&all, all, 64 * sizeof(float)) &&
           bert_size_mul(&map, *queries, m->tk) && bert_size_mul(&map, map, sizeof(float)) &&
           bert_size_mul(&map, m->hidden, m->hidden) && bert_size_mul(&map, map, 64 * sizeof(float));
}

bert_status bert_multi_head_run(const bert_multi_head *m, const bert_compute_options *options, bert_error *err) {
    bert_compute compute;
    bert_arena arena = {.data = NULL};
    size_t queries, keys;
    TRY(check(m, err));
    if (!sizes_fit(m, &queries, &keys))
        return bert_fail(err, BERT_INVALID_ARGUMENT, "multi-head: arrays of these sizes do not fit the address space");
    TRY(bert_compute_make(&compute, options, err));
    if (!bert_arena_open(&arena, &compute.memory, 2 * (queries + keys)))
        return bert_fail(err, BERT_NO_MEMORY, "no memory for multi-head attention: %zu MB of scratch are needed",
                         (queries + keys) / 125000);
    projected p = {.q = arena.data, .context = m->context ? m->context : arena.data + queries,
                   .k = arena.data + 2 * queries, .v = arena.data + 2 * queries + keys};
    const bert_status status = run(m, &p, &compute, err);
    bert_arena_close(&arena);
    return status;
}
