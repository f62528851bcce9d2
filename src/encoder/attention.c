/* encoder/attention.c: hidden = LayerNorm(hidden + W_O · concat(softmax(Q·Kᵀ/√D) · V)), each text by itself. */
#include <math.h>

#include "base/error.h"
#include "encoder/session.h"
#include "encoder/taps.h"

/* In a decoder a token sees itself and those before it. */
static const bert_attend_mask CAUSAL = {.keys = SIZE_MAX, .causal = true};

typedef struct attention_job {
    const bert_pass *pass;
    const bert_layer_heads *heads;
    size_t layer, text;
    unsigned steps;
} attention_job;

/* The views of one head of one text into the packed arrays. */
static bert_attend head_of(const attention_job *j, size_t text, size_t head) {
    const bert_layer_heads *all = j->heads;
    const bert_config *c = j->pass->session->config;
    const size_t *start = j->pass->batch->start, h = c->hidden, d = h / c->heads;
    return (bert_attend){
        .q = all->q + start[text] * all->ldq + head * d, .ldq = all->ldq,
        .k = all->k + all->keys[text] * all->ldkv + head * d, .ldk = all->ldkv,
        .v = all->v + all->keys[text] * all->ldkv + head * d, .ldv = all->ldkv,
        .context = j->pass->b.context + start[text] * h + head * d, .ldc = h,
        .mask = all->mask,
        .scale = (float)(1.0 / sqrt((double)d)),
        .steps = BERT_ATTEND_ALL,
        .tq = start[text + 1] - start[text], .tk = all->keys[text + 1] - all->keys[text], .d = d,
    };
}

/* The usual way: whole heads side by side; maps that are kept go straight to where the tap wants them. */
static bert_status head_item(void *arg, size_t item, int slot, bert_error *err) {
    const attention_job *j = arg;
    const bert_pass *pass = j->pass;
    const size_t heads = pass->session->config->heads, text = item / heads, head = item % heads;
    bert_attend a = head_of(j, text, head);
    (void)err;
    a.scores = bert_taps_map(pass, j->heads->scores, j->layer, text, head);
    a.weights = bert_taps_map(pass, j->heads->weights, j->layer, text, head);
    bert_attend_run(pass->session->kernels, &a, bert_pass_scratch(pass, slot));
    bert_taps_share_map(pass, j->heads->scores, j->layer, text, head, a.scores);
    bert_taps_share_map(pass, j->heads->weights, j->layer, text, head, a.weights);
    return BERT_OK;
}

/* When somebody looks at maps, and may change them: step by step, text by text, through buffers [A, T, Tk]. */
static bert_status step_item(void *arg, size_t head, int slot, bert_error *err) {
    const attention_job *j = arg;
    const bert_pass *pass = j->pass;
    bert_attend a = head_of(j, j->text, head);
    (void)err;
    a.scores = pass->b.scores + head * a.tq * a.tk;
    a.weights = pass->b.weights + head * a.tq * a.tk;
    a.steps = j->steps;
    bert_attend_run(pass->session->kernels, &a, bert_pass_scratch(pass, slot));
    return BERT_OK;
}

static bert_status attend_in_steps(bert_pass *pass, attention_job *j, bert_error *err) {
    const size_t heads = pass->session->config->heads;
    for (j->text = 0; j->text < pass->batch->n; j->text++) {
        j->steps = BERT_ATTEND_SCORES;
        TRY(bert_pass_parallel(pass, heads, step_item, j, err));
        TRY(bert_taps_emit_text(pass, j->heads->scores, j->layer, j->text, pass->b.scores, err));
        j->steps = BERT_ATTEND_WEIGHTS;
        TRY(bert_pass_parallel(pass, heads, step_item, j, err));
        TRY(bert_taps_emit_text(pass, j->heads->weights, j->layer, j->text, pass->b.weights, err));
        j->steps = BERT_ATTEND_CONTEXT;
        TRY(bert_pass_parallel(pass, heads, step_item, j, err));
    }
    return BERT_OK;
}

bert_status bert_pass_attend(bert_pass *pass, size_t layer, const bert_layer_heads *heads, bert_error *err) {
    attention_job j = {.pass = pass, .heads = heads, .layer = layer};
    if (pass->look_at_maps) return attend_in_steps(pass, &j, err);
    return bert_pass_parallel(pass, pass->batch->n * pass->session->config->heads, head_item, &j, err);
}

static bert_status attend(bert_pass *pass, size_t layer, bert_error *err) {
    const size_t h = pass->session->config->hidden;
    const float *qkv = pass->b.qkv;
    const bert_layer_heads heads = {.q = qkv, .ldq = 3 * h, .k = qkv + h, .v = qkv + 2 * h, .ldkv = 3 * h,
                                    .keys = pass->batch->start,
                                    .mask = pass->session->config->is_decoder ? &CAUSAL : NULL,
                                    .scores = BERT_SITE_SCORES, .weights = BERT_SITE_WEIGHTS};
    return bert_pass_attend(pass, layer, &heads, err);
}

/* hidden = LayerNorm(hidden + W_O · context). The residual joins at the edge of the product's tiles, unless somebody
 * looks in between; the sum is the same. */
static bert_status project(bert_pass *pass, size_t layer, bert_error *err) {
    const bert_layer *w = &pass->session->weights->layer[layer];
    const bert_buffers *b = &pass->b;
    const size_t t = pass->tokens, h = pass->session->config->hidden;
    const bool apart = bert_taps_wanted(pass, BERT_SITE_ATTENTION_OUTPUT, layer) ||
                       bert_taps_wanted(pass, BERT_SITE_HEAD_OUTPUT, layer);
    TRY(bert_pass_linear(pass, &w->out, &w->out_bias,
                         (bert_linear){.t = t, .y = b->sum, .x = b->context, .residual = apart ? NULL : b->hidden},
                         err));
    TRY(bert_pass_head_outputs(pass, layer, err));
    TRY(bert_taps_emit(pass, BERT_SITE_ATTENTION_OUTPUT, layer, b->sum, h, err));
    if (apart) TRY(bert_pass_finish(pass, (bert_linear){.t = t, .n = h, .y = b->sum, .residual = b->hidden}, err));
    TRY(bert_taps_emit(pass, BERT_SITE_ATTENTION_SUM, layer, b->sum, h, err));
    return bert_pass_layer_norm(pass, b->hidden, b->sum, &w->out_gamma, &w->out_beta, layer, err);
}

bert_status bert_pass_attention(bert_pass *pass, size_t layer, bert_error *err) {
    const bert_layer *w = &pass->session->weights->layer[layer];
    const bert_buffers *b = &pass->b;
    const size_t t = pass->tokens, h = pass->session->config->hidden;
    TRY(bert_pass_linear(pass, &w->qkv, &w->qkv_bias, (bert_linear){.t = t, .y = b->qkv, .x = b->hidden}, err));
    TRY(bert_taps_emit(pass, BERT_SITE_QUERY, layer, b->qkv, 3 * h, err));
    TRY(bert_taps_emit(pass, BERT_SITE_KEY, layer, b->qkv + h, 3 * h, err));
    TRY(bert_taps_emit(pass, BERT_SITE_VALUE, layer, b->qkv + 2 * h, 3 * h, err));
    TRY(bert_pass_value_outputs(pass, layer, err));
    TRY(attend(pass, layer, err));
    TRY(bert_taps_emit(pass, BERT_SITE_CONTEXT, layer, b->context, h, err));
    if (layer + 1 == pass->layers && !pass->need_last_ffn)
        return bert_pass_check_finite(pass, b->context, t * h, layer, err);
    return project(pass, layer, err);
}
