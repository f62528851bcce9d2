/* encoder/linear.c: a pass's linear layers and row operations, divided among the workers. */
#include "base/error.h"
#include "base/fpenv.h"
#include "base/size.h"
#include "encoder/session.h"

/* Work of one item: small enough that stopping and balancing work, large enough that handing it out costs nothing. */
enum { ITEM_PANELS = 3 * BERT_TILE_PANELS, ITEM_ROWS = 12, ITEM_FLOPS = 100000000 };

typedef struct linear_job {
    const bert_pass *pass;
    const bert_param *weights;
    bert_linear linear;
    size_t step; /* panels of an item, or rows */
} linear_job;

static size_t items_of(size_t n, size_t step) { return (n + step - 1) / step; }

static size_t end_of(size_t item, size_t step, size_t n) {
    const size_t end = (item + 1) * step;
    return end < n ? end : n;
}

/* Panels divide the weights, so that each worker reads its own part of them. One thread gets long runs. */
static size_t panels_per_item(const bert_pass *pass, const bert_linear *l, size_t blocks) {
    const size_t panels = bert_panels(l->n), slots = (size_t)bert_parallel_width(pass->session->workers);
    const size_t flops = 2 * items_of(l->t, blocks) * l->k * BERT_PANEL; /* of a panel; in integers: no host can trap */
    size_t step = flops < ITEM_FLOPS / panels ? panels : ITEM_FLOPS / flops;
    if (slots > 1 && step > items_of(panels, 2 * slots)) step = items_of(panels, 2 * slots);
    if (step < ITEM_PANELS && panels > slots * ITEM_PANELS) step = ITEM_PANELS;
    if (!step) step = 1;
    const size_t whole = bert_round_up(step, BERT_TILE_PANELS);
    return blocks * items_of(panels, whole) < slots ? step : whole; /* no worker idles for the sake of whole tiles */
}

/* The columns of y that rows [first, first + n) of the weights give, with those rows straight from the file. */
static bert_status run_from_file(const linear_job *j, size_t first, size_t n, float *scratch, bert_error *err) {
    const bert_kernels *kernels = j->pass->session->kernels;
    const size_t k = j->linear.k;
    float *rows = scratch, *panels = rows + BERT_FILE_ROWS * k;
    bert_linear part = j->linear;
    TRY(bert_param_rows(j->weights, first, n, rows, err));
    for (size_t i = 0; i < n; i += BERT_PANEL)
        bert_pack_panel(kernels, panels + i * k, rows + i * k, k, n - i < BERT_PANEL ? n - i : BERT_PANEL, k);
    part.w = panels;
    part.n = n;
    part.y += first;
    part.bias += first;
    if (part.residual) part.residual += first;
    bert_linear_run(kernels, &part, 0, bert_panels(n), panels + BERT_FILE_ROWS * k);
    return BERT_OK;
}

static bert_status file_item(void *arg, size_t item, int slot, bert_error *err) {
    const linear_job *j = arg;
    const size_t last = end_of(item, j->step * BERT_PANEL, j->linear.n);
    for (size_t first = item * j->step * BERT_PANEL; first < last; first += BERT_FILE_ROWS) {
        const size_t n = last - first < BERT_FILE_ROWS ? last - first : BERT_FILE_ROWS;
        TRY(run_from_file(j, first, n, bert_pass_scratch(j->pass, slot), err));
    }
    return BERT_OK;
}

static bert_linear rows_of(const bert_linear *whole, size_t first, size_t last) {
    bert_linear part = *whole;
    part.t = last - first;
    part.x += first * part.ldx;
    part.y += first * part.ldy;
    if (part.residual) part.residual += first * part.ldr;
    return part;
}

/* Block by block through all panels: a block's x is read from far away once, and only the weights stream. */
static bert_status linear_item(void *arg, size_t item, int slot, bert_error *err) {
    const linear_job *j = arg;
    const size_t panels = bert_panels(j->linear.n), steps = items_of(panels, j->step);
    const size_t block = item / steps, step = item % steps, t = j->linear.t;
    const bert_linear part = rows_of(&j->linear, bert_row_block_start(t, block), bert_row_block_start(t, block + 1));
    (void)err;
    bert_linear_run(j->pass->session->kernels, &part, step * j->step, end_of(step, j->step, panels),
                    bert_pass_scratch(j->pass, slot));
    return BERT_OK;
}

static bert_status finish_item(void *arg, size_t item, int slot, bert_error *err) {
    const linear_job *j = arg;
    (void)slot, (void)err;
    bert_linear_finish(j->pass->session->kernels, &j->linear, item * j->step, end_of(item, j->step, j->linear.t));
    return BERT_OK;
}

/* Rows without a stride of their own are dense. */
static bert_linear with_strides(bert_linear linear) {
    if (!linear.ldy) linear.ldy = linear.n;
    if (!linear.ldx) linear.ldx = linear.k;
    if (!linear.ldr) linear.ldr = linear.n;
    return linear;
}

static bert_status finish(bert_pass *pass, linear_job *j, bert_error *err) {
    j->step = ITEM_ROWS;
    return bert_pass_parallel(pass, items_of(j->linear.t, j->step), finish_item, j, err);
}

bert_status bert_pass_linear(bert_pass *pass, const bert_param *w, const bert_param *bias, bert_linear linear,
                             bert_error *err) {
    const bert_gemm *gemm = bert_model_gemm(pass->session->model);
    if (!linear.t) return BERT_OK;
    linear.n = w->rows;
    linear.k = w->cols;
    linear.w = pass->packed ? w->data : NULL;
    linear.bias = bias->data;
    linear_job j = {.pass = pass, .weights = w, .linear = with_strides(linear)};
    const bert_linear *l = &j.linear;
    if (gemm) {
        gemm->multiply(gemm->user, l->y, l->ldy, l->x, l->ldx, w->data, l->k, l->t, l->n, l->k);
        return finish(pass, &j, err);
    }
    const size_t blocks = pass->packed ? bert_row_blocks(l->t) : 1;
    j.step = panels_per_item(pass, l, blocks);
    return bert_pass_parallel(pass, blocks * items_of(bert_panels(l->n), j.step),
                              pass->packed ? linear_item : file_item, &j, err);
}

bert_status bert_pass_finish(bert_pass *pass, bert_linear linear, bert_error *err) {
    linear_job j = {.pass = pass, .linear = with_strides(linear)};
    return finish(pass, &j, err);
}

typedef struct norm_job {
    const bert_pass *pass;
    float *y;
    const float *x;
    const bert_param *gamma, *beta;
    size_t layer;
} norm_job;

static bert_status norm_item(void *arg, size_t item, int slot, bert_error *err) {
    const norm_job *j = arg;
    const bert_config *c = j->pass->session->config;
    const size_t first = item * ITEM_ROWS, rows = end_of(item, ITEM_ROWS, j->pass->tokens) - first, h = c->hidden;
    float *y = j->y + first * h;
    (void)slot;
    bert_layer_norm(j->pass->session->kernels, y, h, j->x + first * h, h, j->gamma->data, j->beta->data,
                    (float)c->layer_norm_eps, rows, h);
    return bert_pass_check_finite(j->pass, y, rows * h, j->layer, err); /* while the rows are in the cache */
}

bert_status bert_pass_layer_norm(bert_pass *pass, float *y, const float *x, const bert_param *gamma,
                                 const bert_param *beta, size_t layer, bert_error *err) {
    norm_job j = {pass, y, x, gamma, beta, layer};
    return bert_pass_parallel(pass, items_of(pass->tokens, ITEM_ROWS), norm_item, &j, err);
}

bert_status bert_pass_check_finite(const bert_pass *pass, const float *x, size_t n, size_t layer, bert_error *err) {
    const uint64_t host = bert_fpenv_enter();
    const int finite = bert_all_finite(pass->session->kernels, x, n);
    bert_fpenv_leave(host);
    if (finite) return BERT_OK;
    if (layer == pass->session->config->layers)
        return bert_fail(err, BERT_NOT_FINITE, "pooler: a value is NaN or infinite");
    return bert_fail(err, BERT_NOT_FINITE, "layer %zu: a value is NaN or infinite", layer);
}
