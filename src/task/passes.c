/* task/passes.c: filling passes with tokenized texts, and running one for a head. */
#include "task/passes.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { BUDGET = 1024 };

/* The texts of one pass, one behind the other. */
typedef struct packer {
    size_t *start;        /* [texts_room + 1] */
    int32_t *ids, *types; /* [tokens_room] */
    size_t n, tokens, texts_room, tokens_room;
} packer;

static void *grown(void *p, size_t count, size_t size) {
    return count > SIZE_MAX / size ? NULL : realloc(p, count * size);
}

static bert_status reserve_texts(packer *p, size_t n, bert_error *err) {
    if (n <= p->texts_room) return BERT_OK;
    size_t *start = grown(p->start, 2 * n + 1, sizeof *start);
    if (!start) return bert_fail(err, BERT_NO_MEMORY, "no memory for a pass of %zu texts", n);
    p->start = start;
    p->texts_room = 2 * n;
    return BERT_OK;
}

static bert_status reserve_tokens(packer *p, size_t n, bert_error *err) {
    if (p->ids && p->types && n <= p->tokens_room) return BERT_OK;
    int32_t *ids = grown(p->ids, 2 * n, sizeof *ids);
    if (ids) p->ids = ids;
    int32_t *types = ids ? grown(p->types, 2 * n, sizeof *types) : NULL;
    if (types) p->types = types;
    if (!types) return bert_fail(err, BERT_NO_MEMORY, "no memory for a pass of %zu tokens", n);
    p->tokens_room = 2 * n;
    return BERT_OK;
}

static bert_status add(packer *p, const bert_encoding *text, bert_error *err) {
    TRY(reserve_texts(p, p->n + 1, err));
    TRY(reserve_tokens(p, p->tokens + text->n + 1, err)); /* + 1: memcpy wants an address, also for no tokens */
    memcpy(p->ids + p->tokens, text->ids, text->n * sizeof *p->ids);
    memcpy(p->types + p->tokens, text->type_ids, text->n * sizeof *p->types);
    p->start[p->n++] = p->tokens;
    p->tokens += text->n;
    p->start[p->n] = p->tokens;
    return BERT_OK;
}

typedef struct runner {
    packer pack;
    bert_pass_run *run;
    void *user;
} runner;

static bert_status flush(runner *r, bert_error *err) {
    const bert_batch batch = {sizeof batch, r->pack.n, r->pack.start, r->pack.ids, r->pack.types};
    if (batch.n == 0) return BERT_OK;
    r->pack.n = r->pack.tokens = 0;
    return r->run(r->user, &batch, err);
}

static bert_status add_text(runner *r, const bert_tokens *tokens, size_t i, size_t budget, bert_error *err) {
    for (size_t part = 0; part < bert_tokens_parts(tokens, i); part++) {
        const bert_encoding text = bert_tokens_at(tokens, i, part);
        if (r->pack.n > 0 && r->pack.tokens + text.n > budget) TRY(flush(r, err));
        TRY(add(&r->pack, &text, err));
    }
    return BERT_OK;
}

bert_status bert_passes_run(const bert_tokens *tokens, const size_t *texts, size_t n, size_t budget, bert_pass_run *run,
                            void *user, bert_error *err) {
    runner r = {.run = run, .user = user};
    bert_status status = BERT_OK;
    for (size_t i = 0; i < n && status == BERT_OK; i++)
        status = add_text(&r, tokens, texts ? texts[i] : i, budget ? budget : BUDGET, err);
    if (status == BERT_OK) status = flush(&r, err);
    free(r.pack.start);
    free(r.pack.ids);
    free(r.pack.types);
    return status;
}

/* A batch without arrays has none: bert_run refuses it in words. */
size_t bert_pass_rows(const bert_batch *batch, int pooled) {
    if (pooled) return batch->n;
    return batch->start ? batch->start[batch->n] : 0;
}

bert_status bert_pass_states(float **states, bert_session *session, int pooled, const bert_batch *batch,
                             const bert_run_options *options, bert_error *err) {
    const bert_model_info model = bert_model_describe(bert_session_model(session));
    const size_t rows = bert_pass_rows(batch, pooled);
    bert_tap tap = BERT_TAP_INIT;
    *states = calloc(rows ? rows : 1, model.hidden * sizeof **states);
    if (!*states) return bert_fail(err, BERT_NO_MEMORY, "no memory for the states of %zu tokens", rows);
    tap.site = pooled ? BERT_SITE_POOLER : BERT_SITE_HIDDEN_STATES;
    tap.layer = (int32_t)model.layers;
    tap.dst = *states;
    tap.dst_len = rows * model.hidden;
    const bert_status status = bert_run(session, batch, &tap, 1, options, err);
    if (status == BERT_OK) return BERT_OK;
    free(*states);
    *states = NULL;
    return status;
}
