/* encoder/head_output.c: x · W_O taken apart by heads: what each head adds to the residual stream. Only for taps.
 *
 * A head's product runs over its own D columns of W_O alone. In a panel [H][16] those are D lines in a row, so a panel
 * serves all heads as it is.
 */
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "encoder/session.h"
#include "encoder/taps.h"

typedef struct results_job {
    const bert_pass *pass;
    const bert_param *w; /* [H, H] */
    const float *x;      /* [T, A·D] of one text */
    size_t ldx, t;
    float *y; /* [A, T, H] */
} results_job;

/* Columns [16·number, …) of W_Oᵀ: where they are in memory, or read from the file into `scratch`. */
static bert_status panel_of(const results_job *j, size_t number, size_t cols, float *scratch, const float **panel,
                            bert_error *err) {
    const size_t h = j->w->cols;
    float *packed = scratch + BERT_FILE_ROWS * h;
    *panel = j->pass->packed ? j->w->data + number * BERT_PANEL * h : packed;
    if (j->pass->packed) return BERT_OK;
    TRY(bert_param_rows(j->w, number * BERT_PANEL, cols, scratch, err));
    bert_pack_panel(j->pass->session->kernels, packed, scratch, h, cols, h);
    return BERT_OK;
}

static bert_status panel_item(void *arg, size_t number, int slot, bert_error *err) {
    const results_job *j = arg;
    const bert_kernels *kernels = j->pass->session->kernels;
    const size_t h = j->w->cols, heads = j->pass->session->config->heads, d = h / heads, col = number * BERT_PANEL;
    const size_t cols = h - col < BERT_PANEL ? h - col : BERT_PANEL;
    float *scratch = bert_pass_scratch(j->pass, slot);
    const float *panel;
    TRY(panel_of(j, number, cols, scratch, &panel, err));
    if (!j->pass->packed) scratch += 2 * BERT_FILE_ROWS * h;
    for (size_t head = 0; head < heads; head++) {
        const bert_linear l = {.y = j->y + head * j->t * h + col, .ldy = h, .x = j->x + head * d, .ldx = j->ldx,
                               .w = panel + head * d * BERT_PANEL, .t = j->t, .n = cols, .k = d};
        bert_linear_run(kernels, &l, 0, 1, scratch);
    }
    return BERT_OK;
}

static bert_status split_by_heads(bert_pass *pass, results_job *j, bert_error *err) {
    const bert_gemm *gemm = bert_model_gemm(pass->session->model);
    const size_t h = j->w->cols, heads = pass->session->config->heads, d = h / heads;
    if (!gemm) return bert_pass_parallel(pass, bert_panels(h), panel_item, j, err);
    for (size_t head = 0; head < heads; head++)
        gemm->multiply(gemm->user, j->y + head * j->t * h, h, j->x + head * d, j->ldx, j->w->data + head * d, h, j->t,
                       h, d);
    return BERT_OK;
}

/* sum [T, H] += what an edit changed in the results of the heads. */
static void add_changes(float *sum, const float *edited, const float *before, size_t heads, size_t floats) {
    const uint64_t host = bert_fpenv_enter();
    for (size_t head = 0; head < heads; head++, edited += floats, before += floats)
        for (size_t i = 0; i < floats; i++)
            if (edited[i] != before[i]) sum[i] += edited[i] - before[i];
    bert_fpenv_leave(host);
}

static results_job job_of(const bert_pass *pass, size_t layer, size_t text, const float *x, size_t ldx) {
    const size_t first = pass->batch->start[text];
    return (results_job){.pass = pass, .w = &pass->session->weights->layer[layer].out, .x = x + first * ldx, .ldx = ldx,
                         .t = pass->batch->start[text + 1] - first, .y = pass->b.by_head};
}

bert_status bert_pass_value_outputs(bert_pass *pass, size_t layer, bert_error *err) {
    const size_t h = pass->session->config->hidden;
    if (!bert_taps_wanted(pass, BERT_SITE_VALUE_OUTPUT, layer)) return BERT_OK;
    for (size_t text = 0; text < pass->batch->n; text++) {
        results_job j = job_of(pass, layer, text, pass->b.qkv + 2 * h, 3 * h);
        TRY(split_by_heads(pass, &j, err));
        TRY(bert_taps_emit_text(pass, BERT_SITE_VALUE_OUTPUT, layer, text, j.y, err));
    }
    return BERT_OK;
}

bert_status bert_pass_head_outputs(bert_pass *pass, size_t layer, bert_error *err) {
    const size_t h = pass->session->config->hidden, heads = pass->session->config->heads;
    if (!bert_taps_wanted(pass, BERT_SITE_HEAD_OUTPUT, layer)) return BERT_OK;
    for (size_t text = 0; text < pass->batch->n; text++) {
        results_job j = job_of(pass, layer, text, pass->b.context, h);
        const size_t floats = j.t * h;
        float *before = pass->by_head > 1 ? j.y + heads * floats : NULL;
        TRY(split_by_heads(pass, &j, err));
        if (before) memcpy(before, j.y, heads * floats * sizeof *before);
        TRY(bert_taps_emit_text(pass, BERT_SITE_HEAD_OUTPUT, layer, text, j.y, err));
        if (before) add_changes(pass->b.sum + pass->batch->start[text] * h, j.y, before, heads, floats);
    }
    return BERT_OK;
}
