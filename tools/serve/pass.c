#include "pass.h"

#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "encode_pass.h"

static size_t tokens_of(const item *i) {
    return i->of->start[i->text + 1] - i->of->start[i->text];
}

void pass_add(pass *p, job *j, size_t text) {
    if (p->n == p->room) {
        p->room = p->room ? 2 * p->room : 64;
        p->items = need_more(p->items, p->room, sizeof *p->items);
        p->start = need_more(p->start, p->room + 1, sizeof *p->start);
    }
    p->items[p->n] = (item){j, text};
    p->tokens += tokens_of(&p->items[p->n++]);
}

static void pack(pass *p, const item *items, size_t n) {
    p->ids = need_more(p->ids, p->tokens, sizeof *p->ids);
    p->types = need_more(p->types, p->tokens, sizeof *p->types);
    p->start[0] = 0;
    for (size_t i = 0; i < n; i++) {
        size_t tokens = tokens_of(&items[i]), from = items[i].of->start[items[i].text];
        memcpy(p->ids + p->start[i], items[i].of->ids + from, tokens * sizeof *p->ids);
        memcpy(p->types + p->start[i], items[i].of->types + from, tokens * sizeof *p->types);
        p->start[i + 1] = p->start[i] + tokens;
    }
}

/* What the callback needs. */
typedef struct pooling {
    const item *items;
    bert_error *err;
    int failed;
} pooling;

static int take_vector(void *user, const bert_view *view) {
    pooling *to = user;
    const item *i = &to->items[view->text];
    job *j = i->of;
    size_t from = j->start[i->text];
    const float *pooler = view->site == BERT_SITE_POOLER ? view->data : NULL;
    bert_encoding tokens = {.n = tokens_of(i), .ids = j->ids + from, .type_ids = j->types + from};
    to->failed = bert_pipeline_pool(j->model->engine.pipeline, j->vectors + i->text * j->dim, view->data, pooler,
                                    &tokens, &j->embed, to->err) != BERT_OK;
    return to->failed;
}

static bert_status run_vectors(pass *p, const item *items, size_t n, bert_error *err) {
    const engine *e = &items[0].of->model->engine;
    bert_error said = {0};
    pooling to = {items, &said, 0};
    bert_tap tap = BERT_TAP_INIT;
    tap.site = encode_pools_pooler(e->pipeline, &items[0].of->embed) ? BERT_SITE_POOLER : BERT_SITE_HIDDEN_STATES;
    tap.layer = (int32_t)e->info.layers;
    tap.got = take_vector;
    tap.user = &to;
    bert_batch batch = {sizeof batch, n, p->start, p->ids, p->types};
    bert_status status = bert_run(e->session, &batch, &tap, 1, &e->run, err);
    if (to.failed) *err = said;
    return to.failed ? said.code : status;
}

static bert_status run_logits(pass *p, const item *items, size_t n, bert_error *err) {
    const served *v = items[0].of->model;
    bert_batch batch = {sizeof batch, n, p->start, p->ids, p->types};
    p->logits = need_more(p->logits, n, sizeof *p->logits);
    bert_status status = bert_head_run(v->engine.session, v->head, p->logits, &batch, &v->engine.run, err);
    for (size_t i = 0; i < n && !status; i++) items[i].of->vectors[items[i].text] = p->logits[i];
    return status;
}

static bert_status run(pass *p, const item *items, size_t n, bert_error *err) {
    pack(p, items, n);
    return items[0].of->ranks ? run_logits(p, items, n, err) : run_vectors(p, items, n, err);
}

/* A pass that fails names no text: each is tried alone then, so that only those fail that cannot be done. */
void pass_run(pass *p) {
    bert_error err;
    if (run(p, p->items, p->n, &err)) {
        for (size_t i = 0; i < p->n; i++)
            if (p->n == 1 || run(p, &p->items[i], 1, &err)) p->items[i].of->failure = err;
    }
    for (size_t i = 0; i < p->n; i++) p->items[i].of->done++;
}

void pass_close(pass *p) {
    free(p->items);
    free(p->start);
    free(p->ids);
    free(p->types);
    free(p->logits);
}
