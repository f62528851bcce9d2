/* study/ablate.c: an ablation: the text as it is, what attention says of it, every token and every head. */
#include "study/ablate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/size.h"
#include "encoder/session.h"

enum { PASS_TOKENS = 1024 };

/* ---- The result: one block of floats behind the struct's pointers. ---- */

static float *take(float **at, size_t n) {
    float *taken = *at;
    *at += n;
    return taken;
}

static void place_effects(bert_effects *e, float **at, size_t n, size_t t, bool log_prob) {
    e->embedding = take(at, n);
    e->tokens = take(at, n * t);
    e->log_prob = log_prob ? take(at, n) : NULL;
}

static bert_status open_result(bert_ablater *b, bert_error *err) {
    const bool log_prob = b->options.mlm != NULL;
    const size_t trials = 2 * b->t + b->l * b->a, each = b->t + 1 + log_prob, count = trials * each + BERT_SAID * b->t;
    bert_ablation *out = calloc(1, sizeof *out + count * sizeof(float)); /* small: T and L·A are within the model's */
    if (!out) return bert_fail(err, BERT_NO_MEMORY, "no memory for the effects of %zu changes", trials);
    float *at = (float *)(void *)(out + 1);
    for (size_t i = 0; i < count; i++) at[i] = NAN;
    out->tokens = b->t;
    out->layers = b->l;
    out->heads = b->a;
    place_effects(&out->masked, &at, b->t, b->t, log_prob);
    place_effects(&out->removed, &at, b->t, b->t, log_prob);
    place_effects(&out->silenced, &at, b->l * b->a, b->t, log_prob);
    for (size_t i = 0; i < BERT_SAID; i++) out->said[i] = take(&at, b->t);
    b->out = out;
    return BERT_OK;
}

void bert_ablation_close(bert_ablation **ablation) {
    if (!ablation) return;
    free(*ablation);
    *ablation = NULL;
}

/* ---- Opening. ---- */

static bert_status check(const bert_ablater *b, bert_error *err) {
    const bert_model_info model = bert_model_describe(b->pipeline->model);
    if (bert_session_model(b->session) != b->pipeline->model)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "the session is of another model than the pipeline's");
    if (model.is_decoder) return bert_fail(err, BERT_UNSUPPORTED, "ablation is for encoders, the model is a decoder");
    if (b->t == 0 || b->t > model.positions)
        return bert_fail(err, BERT_TOO_LONG, "ablation needs 1 to %zu tokens, found %zu", model.positions, b->t);
    if (b->options.silence != BERT_SILENCE_ZERO && b->options.silence != BERT_SILENCE_UNIFORM)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "no way %d to silence a head", (int)b->options.silence);
    return BERT_OK;
}

static bert_status reserve(bert_ablater *b, bert_error *err) {
    const size_t budget = b->options.pass_tokens ? b->options.pass_tokens : PASS_TOKENS, state = b->t * b->h;
    b->room = budget / b->t ? budget / b->t : 1;
    if (b->room > b->t + b->a) b->room = b->t + b->a; /* no pass has more trials */
    b->states = calloc(b->l + 1, state * sizeof *b->states);
    b->pooled = calloc(b->h, sizeof *b->pooled);
    b->vector = calloc(2 * b->plan.dim, sizeof *b->vector);
    b->log_prob = calloc(2 * b->t, sizeof *b->log_prob);
    b->start = calloc(b->room + 1, sizeof *b->start);
    b->ids = calloc(b->room * b->t, 2 * sizeof *b->ids);
    b->input = calloc(b->room, 2 * state * sizeof *b->input);
    b->summary = calloc(b->room, b->h * sizeof *b->summary);
    if (!b->states || !b->pooled || !b->vector || !b->log_prob || !b->start || !b->ids || !b->input || !b->summary)
        return bert_fail(err, BERT_NO_MEMORY, "no memory for passes of %zu tokens", b->room * b->t);
    b->changed = b->vector + b->plan.dim;
    b->probable = b->log_prob + b->t;
    b->types = b->ids + b->room * b->t;
    b->hidden = b->input + b->room * state;
    return open_result(b, err);
}

static void release(bert_ablater *b) {
    free(b->states);
    free(b->pooled);
    free(b->vector);
    free(b->log_prob);
    free(b->start);
    free(b->ids);
    free(b->input);
    free(b->summary);
}

/* ---- The text as it is. ---- */

static bert_status run_unchanged(bert_ablater *b, bert_error *err) {
    const size_t start[2] = {0, b->t}, states = (b->l + 1) * b->t * b->h;
    const bert_batch batch = {sizeof batch, 1, start, b->tokens->ids, b->tokens->type_ids};
    const float *pooled = b->plan.need_pooler ? b->pooled : NULL, *last = b->states + b->l * b->t * b->h;
    bert_tap taps[2] = {BERT_TAP_INIT, BERT_TAP_INIT};
    taps[0].dst = b->states;
    taps[0].dst_len = states;
    taps[1].site = BERT_SITE_POOLER;
    taps[1].dst = b->pooled;
    taps[1].dst_len = b->h;
    TRY(bert_run(b->session, &batch, taps, pooled ? 2 : 1, &b->run, err));
    b->out->layers_run += b->l;
    TRY(bert_pipeline_pool(b->pipeline, b->vector, last, pooled, b->tokens, b->options.embed, err));
    if (!b->options.mlm) return BERT_OK;
    return bert_ablater_log_probs(b, b->log_prob, last, b->tokens->ids, b->t, err);
}

/* y [T] = mean over layers and heads of x [L, A, T]. */
static void mean_over_heads(float *y, const float *x, size_t heads, size_t t) {
    for (size_t j = 0; j < t; j++) {
        double sum = 0;
        for (size_t i = 0; i < heads; i++) sum += (double)x[i * t + j];
        y[j] = (float)(sum / (double)heads);
    }
}

/* y [T]: from the rows of the rollout [T, T] that the pooling looks at. */
static void pool_rollout(float *y, const float *rollout, bert_pooling pooling, size_t t) {
    const bool first = pooling == BERT_POOLING_CLS || pooling == BERT_POOLING_POOLER;
    const size_t from = pooling == BERT_POOLING_LAST_TOKEN ? t - 1 : 0, to = first ? 1 : t;
    for (size_t j = 0; j < t; j++) {
        double sum = 0;
        for (size_t i = from; i < to; i++) sum += (double)rollout[i * t + j];
        y[j] = (float)(sum / (double)(to - from));
    }
}

static bert_status ask_attention(bert_ablater *b, bert_error *err) {
    const size_t heads = b->l * b->a;
    float *work = calloc(b->t, (b->t + 2 * heads) * sizeof *work); /* rollout [T, T], received, given [L, A, T] */
    if (!work) return bert_fail(err, BERT_NO_MEMORY, "no memory for the rollout of %zu tokens", b->t);
    bert_study study = BERT_STUDY_INIT;
    study.rollout = work;
    study.received = work + b->t * b->t;
    study.given = study.received + heads * b->t;
    const bert_status status =
        bert_study_run(b->session, &study, b->tokens->ids, b->tokens->type_ids, b->t, &b->run, err);
    if (status == BERT_OK) {
        const uint64_t host = bert_fpenv_enter();
        mean_over_heads(b->out->said[BERT_SAID_RECEIVED], study.received, heads, b->t);
        mean_over_heads(b->out->said[BERT_SAID_NORM], study.given, heads, b->t);
        pool_rollout(b->out->said[BERT_SAID_ROLLOUT], study.rollout, b->plan.pooling[0], b->t);
        bert_fpenv_leave(host);
        b->out->layers_run += b->l;
    }
    free(work);
    return status;
}

/* ---- The trials. ---- */

/* Runs of tokens that are the text's own: the others stay, the model never saw a text without them. */
static bert_status try_tokens(bert_ablater *b, bert_trial_kind kind, bert_error *err) {
    const uint8_t *special = b->tokens->special_tokens_mask;
    for (size_t first = 0, end; first < b->t; first = end + 1) {
        for (end = first; end < b->t && !special[end];) end++;
        if (end > first) TRY(bert_ablater_try(b, kind, 0, first, end - first, err));
    }
    return BERT_OK;
}

static bert_status try_all(bert_ablater *b, bert_error *err) {
    if (b->mask >= 0) TRY(try_tokens(b, BERT_TRIAL_MASK, err));
    if (b->t > 1) TRY(try_tokens(b, BERT_TRIAL_REMOVE, err)); /* without its only token there is no text */
    for (size_t layer = 0; layer < b->l; layer++) TRY(bert_ablater_try(b, BERT_TRIAL_SILENCE, layer, 0, b->a, err));
    return BERT_OK;
}

/* Over the tokens that were tried. */
static bert_status correlate(const bert_ablater *b, double rho[BERT_SAID], const float *effect, bert_error *err) {
    float *pairs = calloc(b->t, 2 * sizeof *pairs);
    bert_status status = BERT_OK;
    if (!pairs) return bert_fail(err, BERT_NO_MEMORY, "no memory to rank %zu tokens", b->t);
    for (size_t k = 0; k < BERT_SAID; k++) {
        size_t n = 0;
        for (size_t i = 0; i < b->t; i++) {
            if (isnan(effect[i])) continue;
            pairs[n] = effect[i];
            pairs[b->t + n++] = b->out->said[k][i];
        }
        TRY_OR_DONE(bert_rank_correlation(&rho[k], pairs, pairs + b->t, n, err));
    }
done:
    free(pairs);
    return status;
}

static bert_status ablate(bert_ablater *b, bert_error *err) {
    TRY(check(b, err));
    const uint64_t host = bert_fpenv_enter();
    b->uniform = 1.0f / (float)b->t;
    bert_fpenv_leave(host);
    TRY(bert_embed_plan_make(&b->plan, b->pipeline, b->options.embed, err));
    TRY(reserve(b, err));
    TRY(run_unchanged(b, err));
    TRY(ask_attention(b, err));
    TRY(try_all(b, err));
    TRY(correlate(b, b->out->masked_rank, b->out->masked.embedding, err));
    return correlate(b, b->out->removed_rank, b->out->removed.embedding, err);
}

bert_status bert_ablate(bert_ablation **ablation, bert_session *session, const bert_pipeline *pipeline,
                        const bert_encoding *tokens, const bert_ablate_options *given, bert_error *err) {
    const bert_model_info model = bert_model_describe(pipeline->model);
    bert_ablater b = {.session = session, .pipeline = pipeline, .tokens = tokens, .run = BERT_RUN_OPTIONS_INIT,
                      .options = BERT_ABLATE_OPTIONS_INIT, .t = tokens->n, .h = model.hidden, .l = model.layers,
                      .a = model.heads, .mask = bert_tokenizer_special(pipeline->tokenizer, BERT_SPECIAL_MASK)};
    if (given) memcpy(&b.options, given, given->size < sizeof b.options ? given->size : sizeof b.options);
    if (b.options.run) {
        b.run.stop = b.options.run->stop;
        b.run.deadline_ns = b.options.run->deadline_ns;
    }
    const bert_status status = ablate(&b, err);
    release(&b);
    if (status != BERT_OK) bert_ablation_close(&b.out);
    *ablation = b.out;
    return status;
}
