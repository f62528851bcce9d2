/* /rerank: how well each text answers a query, best first. */
#include <stdlib.h>

#include "json_out.h"
#include "request.h"
#include "say.h"

typedef struct ranked {
    size_t index;
    float score;
} ranked;

static int best_first(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static int begin(request *r, exchange *x) {
    job *j;
    TRY(request_open(r, x));
    if (!r->model->head)
        return exchange_fail(x, 422, "%s is no cross-encoder: it has no head that scores pairs", r->model->name);
    TRY(request_texts(r, "texts", 0));
    TRY(request_query(r, "query"));
    TRY(request_truncation(r));
    TRY(request_bool(r, "raw_scores", &x->raw_scores));
    TRY(request_bool(r, "return_text", &x->return_text));
    TRY(request_job(r, &j));
    j->ranks = 1;
    j->dim = 1;
    j->vectors = need(j->n, sizeof *j->vectors);
    exchange_queue(x, j);
    return 0;
}

void rerank_begin(exchange *x) {
    request r = {0};
    begin(&r, x);
    request_close(&r);
}

/* The texts as the request spelt them: [n], of the body, which was read before. */
static bert_json *texts_of(const exchange *x) {
    bert_json root, list, *texts = need(x->job->n, sizeof *texts);
    size_t place = 0, n = 0;
    if (bert_json_check(&root, x->body.data, x->body.len, NULL) || !bert_json_member(root, "texts", &list)) {
        free(texts);
        return NULL;
    }
    if (bert_json_kind_of(list) == BERT_JSON_STRING)
        texts[0] = list;
    else
        while (n < x->job->n && bert_json_next(list, &place, NULL, &texts[n])) n++;
    return texts;
}

static void write_all(buffer *b, const ranked *all, size_t n, const bert_json *texts) {
    for (size_t i = 0; i < n; i++) {
        buffer_print(b, "%s{\"index\":%zu,\"score\":", i ? "," : "[", all[i].index);
        json_float(b, all[i].score);
        if (texts) {
            buffer_text(b, ",\"text\":");
            buffer_add(b, texts[all[i].index].at, texts[all[i].index].len);
        }
        buffer_byte(b, '}');
    }
    buffer_text(b, "]\n");
}

/* The function that makes scores of logits, as the model's files say, or none. */
static int choose_scoring(exchange *x, bert_scoring *as) {
    const job *j = x->job;
    *as = x->raw_scores ? BERT_SCORING_LOGITS : bert_head_describe(j->model->head).rerank;
    if (j->failure.code) return exchange_fail_by(x, &j->failure);
    if (*as != BERT_SCORING_AUTO) return 0;
    return exchange_fail(x, 422, "the model's files name a function for its scores that is not known here: ask for "
                                 "raw_scores");
}

/* Sorted while they are logits: scores may be equal where these are not. */
static int rank(exchange *x, ranked *all) {
    const job *j = x->job;
    bert_scoring as;
    bert_error err;
    TRY(choose_scoring(x, &as));
    for (size_t i = 0; i < j->n; i++) all[i] = (ranked){i, j->vectors[i]};
    qsort(all, j->n, sizeof *all, best_first);
    for (size_t i = 0; i < j->n; i++)
        if (bert_head_score(j->model->head, &all[i].score, &all[i].score, 1, as, &err))
            return exchange_fail_by(x, &err);
    return 0;
}

void rerank_done(exchange *x) {
    const job *j = x->job;
    ranked *all = need(j->n, sizeof *all);
    if (!rank(x, all)) {
        bert_json *texts = x->return_text ? texts_of(x) : NULL;
        write_all(&x->answer, all, j->n, texts);
        free(texts);
        exchange_answer(x, "application/json");
    }
    free(all);
}
