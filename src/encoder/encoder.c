/* encoder/encoder.c: the encoder, as in the paper: embeddings, then L × (attention, feed-forward), then the pooler.
 *
 * Vaswani et al. 2017 (arXiv 1706.03762), Devlin et al. 2018 (arXiv 1810.04805).
 */
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "encoder/session.h"
#include "encoder/taps.h"

static bert_status check_text(const bert_pass *pass, size_t i, bert_error *err) {
    const bert_config *c = pass->session->config;
    const bert_batch *b = pass->batch;
    if (b->start[i + 1] <= b->start[i])
        return bert_fail(err, BERT_INVALID_ARGUMENT, "text %zu of the batch: no tokens, or start is not ascending", i);
    if (b->start[i + 1] - b->start[i] > c->positions)
        return bert_fail(err, BERT_TOO_LONG, "text %zu of the batch has %zu tokens, the model has %zu positions", i,
                         b->start[i + 1] - b->start[i], c->positions);
    for (size_t k = b->start[i]; k < b->start[i + 1]; k++) {
        if (b->ids && (b->ids[k] < 0 || (size_t)b->ids[k] >= c->vocab))
            return bert_fail(err, BERT_INVALID_ARGUMENT, "text %zu of the batch: id %d, expected 0 to %zu", i,
                             (int)b->ids[k], c->vocab - 1);
        if (b->types && (b->types[k] < 0 || (size_t)b->types[k] >= c->types))
            return bert_fail(err, BERT_INVALID_ARGUMENT, "text %zu of the batch: token type %d, expected 0 to %zu", i,
                             (int)b->types[k], c->types - 1);
    }
    return BERT_OK;
}

static bert_status check_batch(bert_pass *pass, bert_error *err) {
    const bert_batch *b = pass->batch;
    if (b->size < sizeof *b) return bert_fail(err, BERT_INVALID_ARGUMENT, "the batch: size is not set");
    if (!b->ids && !pass->options.hidden)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "the batch has no ids, and no hidden states are given instead");
    if (!b->start) return bert_fail(err, BERT_INVALID_ARGUMENT, "the batch has no start");
    if (b->n == 0 || b->start[0] != 0 || b->n > INT32_MAX)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "the batch has no texts, or start[0] is not 0");
    for (size_t i = 0; i < b->n; i++) {
        TRY(check_text(pass, i, err));
        const size_t t = b->start[i + 1] - b->start[i];
        if (t > pass->longest) pass->longest = t;
    }
    pass->tokens = b->start[b->n];
    return BERT_OK;
}

static bert_status check_start(const bert_pass *pass, bert_error *err) {
    const bert_run_options *o = &pass->options;
    if (o->first_layer < 0 || (size_t)o->first_layer > pass->session->config->layers ||
        (o->first_layer > 0 && !o->hidden))
        return bert_fail(err, BERT_INVALID_ARGUMENT, "first_layer %d: expected 0 to %zu, and hidden states from 1 on",
                         (int)o->first_layer, pass->session->config->layers);
    return BERT_OK;
}

static bert_status check_memory(bert_pass *pass, bert_error *err) {
    const size_t *start = pass->options.memory_start;
    if (!pass->options.memory) return BERT_OK;
    if (!pass->session->config->cross_attention)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "memory: the model has no cross-attention (add_cross_attention)");
    if (!start || start[0] != 0)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "memory: memory_start is missing, or does not begin with 0");
    for (size_t i = 0; i < pass->batch->n; i++) {
        if (start[i + 1] <= start[i])
            return bert_fail(err, BERT_INVALID_ARGUMENT, "memory: text %zu of the batch has none", i);
        if (start[i + 1] - start[i] > pass->longest_memory) pass->longest_memory = start[i + 1] - start[i];
    }
    pass->memory_tokens = start[pass->batch->n];
    return BERT_OK;
}

static bert_status begin(bert_pass *pass, bert_error *err) {
    if (pass->options.hidden) {
        memcpy(pass->b.hidden, pass->options.hidden, pass->tokens * pass->session->config->hidden * sizeof(float));
        return BERT_OK;
    }
    return bert_pass_embed(pass, err);
}

static bert_status run_layers(bert_pass *pass, bert_error *err) {
    const size_t h = pass->session->config->hidden;
    size_t layer = (size_t)pass->options.first_layer;
    TRY(begin(pass, err));
    TRY(bert_taps_emit(pass, BERT_SITE_HIDDEN_STATES, layer, pass->b.hidden, h, err));
    for (; layer < pass->layers; layer++) {
        TRY(bert_pass_attention(pass, layer, err));
        if (layer + 1 == pass->layers && !pass->need_last_ffn) return BERT_OK;
        TRY(bert_pass_cross_attention(pass, layer, err));
        TRY(bert_pass_ffn(pass, layer, err));
        TRY(bert_taps_emit(pass, BERT_SITE_HIDDEN_STATES, layer + 1, pass->b.hidden, h, err));
    }
    if (!pass->need_pooler) return BERT_OK;
    TRY(bert_pass_pooler(pass, err));
    TRY(bert_pass_check_finite(pass, pass->b.pooled, pass->batch->n * h, pass->session->config->layers, err));
    return bert_taps_emit(pass, BERT_SITE_POOLER, 0, pass->b.pooled, h, err);
}

static bert_status run(bert_pass *pass, bert_error *err) {
    if (getpid() != pass->session->pid)
        return bert_fail(err, BERT_INVALID_ARGUMENT,
                         "the session was opened in another process: open one after fork()");
    TRY(check_batch(pass, err));
    TRY(check_start(pass, err));
    TRY(check_memory(pass, err));
    TRY(bert_taps_plan(pass, err));
    TRY(bert_model_weights(pass->session->model, &pass->session->weights, &pass->packed, err));
    TRY(bert_session_reserve(pass, err));
    bert_taps_place(pass);
    TRY(run_layers(pass, err));
    return pass->packed ? BERT_OK : bert_model_unchanged(pass->session->model, err);
}

bert_run_options bert_run_options_or_default(const bert_run_options *given) {
    bert_run_options options = BERT_RUN_OPTIONS_INIT;
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    return options;
}

bert_status bert_run(bert_session *session, const bert_batch *batch, const bert_tap *taps, size_t n_taps,
                     const bert_run_options *options, bert_error *err) {
    bert_pass pass = {.session = session, .batch = batch, .taps = taps, .n_taps = n_taps,
                      .options = bert_run_options_or_default(options)};
    return run(&pass, err);
}
