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

/* The logits become scores as the model's files say, or stay what they are. */
static int score(exchange *x) {
    job *j = x->job;
    bert_error err = j->failure;
    bert_scoring as = x->raw_scores ? BERT_SCORING_LOGITS : bert_head_describe(j->model->head).rerank;
    if (err.code) return exchange_fail_by(x, &err);
    if (as == BERT_SCORING_AUTO)
        return exchange_fail(x, 422, "the model's files name a function for its scores that is not known here: ask for "
                                     "raw_scores");
    if (bert_head_score(j->model->head, j->vectors, j->vectors, j->n, as, &err)) return exchange_fail_by(x, &err);
    return 0;
}

void rerank_done(exchange *x) {
    const job *j = x->job;
    if (score(x)) return;
    ranked *all = need(j->n, sizeof *all);
    for (size_t i = 0; i < j->n; i++) all[i] = (ranked){i, j->vectors[i]};
    qsort(all, j->n, sizeof *all, best_first);
    bert_json *texts = x->return_text ? texts_of(x) : NULL;
    write_all(&x->answer, all, j->n, texts);
    free(texts);
    free(all);
    exchange_answer(x, "application/json");
}
