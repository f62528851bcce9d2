#include "encode_pass.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

/* A pass of this many tokens keeps the kernels busy; of this many kept bytes it stays small. */
enum { PASS_TOKENS = 4096, PASS_BYTES = 64 << 20 };

int encode_pools_pooler(const bert_pipeline *pipeline, const bert_embed_options *embed) {
    bert_pooling pooling = embed->pooling;
    if (pooling == BERT_POOLING_AUTO) pooling = bert_pipeline_describe(pipeline).pooling;
    return pooling == BERT_POOLING_POOLER;
}

/* 1: the states behind layer l are kept. */
static int keeps(const encode_pass *p, size_t l) {
    unsigned what = p->wants->what;
    int last = l == p->engine->info.layers && (what & WANT_LAST || (what & WANT_EMBEDDING && !p->wants->pools_pooler));
    return last || p->wants->layers[l];
}

/* How many sequences from p->begin on go into this pass: at least one. Sets *tokens to their sum. */
static size_t choose(const encode_pass *p, const sequence *all, size_t n, size_t *tokens) {
    size_t kept = 1, end = p->begin;
    for (size_t l = 0; l <= p->engine->info.layers; l++) kept += (size_t)keeps(p, l);
    size_t budget = PASS_BYTES / (kept * p->engine->info.hidden * sizeof(float));
    if (budget > PASS_TOKENS) budget = PASS_TOKENS;
    *tokens = 0;
    while (end < n && (end == p->begin || *tokens + all[end].n <= budget)) *tokens += all[end++].n;
    return end;
}

/* Lays the sequences one behind the other. */
static void pack(encode_pass *p, const sequence *all, size_t tokens) {
    size_t n = p->end - p->begin, at = 0;
    p->start = need_more(p->start, n + 1, sizeof *p->start);
    p->ids = need_more(p->ids, tokens, sizeof *p->ids);
    p->types = need_more(p->types, tokens, sizeof *p->types);
    for (size_t i = 0; i < n; i++) {
        const sequence *q = &all[p->begin + i];
        p->start[i] = at;
        memcpy(p->ids + at, q->ids, q->n * sizeof *q->ids);
        if (q->types)
            memcpy(p->types + at, q->types, q->n * sizeof *q->types);
        else
            memset(p->types + at, 0, q->n * sizeof *p->types);
        at += q->n;
    }
    p->start[n] = at;
}

/* One tap for each state that is kept; returns how many. */
static size_t make_taps(encode_pass *p, bert_tap *taps, size_t tokens) {
    size_t width = p->engine->info.hidden, n = 0, texts = p->end - p->begin;
    for (size_t l = 0; l <= p->engine->info.layers; l++) {
        if (!keeps(p, l)) continue;
        p->hidden[l] = need_more(p->hidden[l], tokens * width, sizeof(float));
        taps[n] = (bert_tap)BERT_TAP_INIT;
        taps[n].layer = (int32_t)l;
        taps[n].dst = p->hidden[l];
        taps[n++].dst_len = tokens * width;
    }
    if (!(p->wants->what & WANT_POOLER) && !p->wants->pools_pooler) return n;
    p->pooler = need_more(p->pooler, texts * width, sizeof(float));
    taps[n] = (bert_tap)BERT_TAP_INIT;
    taps[n].site = BERT_SITE_POOLER;
    taps[n].dst = p->pooler;
    taps[n].dst_len = texts * width;
    return n + 1;
}

int encode_pass_run(encode_pass *p, const engine *e, const encode_wants *wants, const bert_embed_options *embed,
                    const sequence *all, size_t begin, size_t n) {
    size_t tokens, layers = e->info.layers + 1;
    bert_error err;
    p->engine = e;
    p->wants = wants;
    p->embed = embed;
    p->begin = begin;
    p->end = choose(p, all, n, &tokens);
    if (!p->hidden) p->hidden = memset(need(layers, sizeof *p->hidden), 0, layers * sizeof *p->hidden);
    p->vector = need_more(p->vector, wants->dim, sizeof *p->vector);
    pack(p, all, tokens);
    bert_tap *taps = need(layers + 1, sizeof *taps);
    size_t n_taps = make_taps(p, taps, tokens);
    bert_batch batch = {sizeof batch, p->end - p->begin, p->start, p->ids, p->types};
    int status = bert_run(e->session, &batch, taps, n_taps, &e->run, &err) ? say_failure(&err) : 0;
    free(taps);
    return status;
}

static int write_embedding(encode_pass *p, writer *w, const sequence *q, const float *last, const float *pooler) {
    bert_error err;
    bert_encoding tokens = {.n = q->n, .ids = q->ids, .type_ids = q->types};
    if (bert_pipeline_pool(p->engine->pipeline, p->vector, last, pooler, &tokens, p->embed, &err))
        return say_failure(&err);
    tensor t = {"embedding", TENSOR_F32, 2, {1, p->wants->dim}, p->vector, 0};
    return writer_tensor(w, &t);
}

/* The states behind layer l of the i-th sequence of the pass [T, H]. */
static int write_states(encode_pass *p, writer *w, const char *name, size_t l, size_t i, size_t n) {
    size_t width = p->engine->info.hidden;
    tensor t = {name, TENSOR_F32, 3, {1, n, width}, p->hidden[l] + p->start[i] * width, 0};
    return writer_tensor(w, &t);
}

static int write_results(encode_pass *p, writer *w, const sequence *q, size_t i) {
    size_t layers = p->engine->info.layers, width = p->engine->info.hidden;
    unsigned what = p->wants->what;
    const float *last = p->hidden[layers] ? p->hidden[layers] + p->start[i] * width : NULL;
    const float *pooler = p->pooler ? p->pooler + i * width : NULL;
    if (what & WANT_EMBEDDING) TRY(write_embedding(p, w, q, last, pooler));
    if (what & WANT_LAST) TRY(write_states(p, w, "last_hidden_state", layers, i, q->n));
    for (size_t l = 0; l <= layers; l++) {
        if (!p->wants->layers[l]) continue;
        p->name.len = 0;
        buffer_print(&p->name, "hidden_states.%zu", l);
        TRY(write_states(p, w, p->name.data, l, i, q->n));
    }
    if (!(what & WANT_POOLER)) return 0;
    tensor t = {"pooler_output", TENSOR_F32, 2, {1, width}, pooler, 0};
    return writer_tensor(w, &t);
}

int encode_pass_write(encode_pass *p, writer *w, const sequence *q, size_t at, const bert_tokens *tokens) {
    about text;
    TRY(results_begin(w, &text, &p->tokens, q, tokens, p->engine));
    TRY(write_results(p, w, q, at - p->begin));
    return writer_end(w);
}

void encode_pass_close(encode_pass *p) {
    if (p->hidden)
        for (size_t l = 0; l <= p->engine->info.layers; l++) free(p->hidden[l]);
    free(p->hidden);
    free(p->start);
    free(p->ids);
    free(p->types);
    free(p->pooler);
    free(p->vector);
    buffer_close(&p->tokens);
    buffer_close(&p->name);
}
