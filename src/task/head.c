/* task/head.c: the linear heads: which there are, opening them, logits and scores. */
#include "task/head.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "encoder/session.h"
#include "task/passes.h"

typedef struct head_row {
    const char *weight, *bias, *what;
    size_t rows; /* N; 0: as many as are stored */
    bool pooled;
} head_row;

static const head_row HEADS[] = {
    [BERT_HEAD_NEXT] = {"cls.seq_relationship.weight", "cls.seq_relationship.bias", "next sentences", 2, true},
    [BERT_HEAD_SEQUENCE] = {"classifier.weight", "classifier.bias", "classes of texts", 0, true},
    [BERT_HEAD_TOKENS] = {"classifier.weight", "classifier.bias", "classes of tokens", 0, false},
    [BERT_HEAD_SPAN] = {"qa_outputs.weight", "qa_outputs.bias", "answers", 2, false},
};
enum { N_HEADS = sizeof HEADS / sizeof *HEADS };

/* ---- Which there are. ---- */

static bool is_classifier(bert_head_kind kind) { return kind == BERT_HEAD_SEQUENCE || kind == BERT_HEAD_TOKENS; }

int bert_model_has_head(const bert_model *model, bert_head_kind kind) {
    if (bert_model_describe(model).is_decoder) return 0;
    if (kind == BERT_HEAD_WORDS) return bert_model_find(model, "cls.predictions.transform.dense.weight") != NULL;
    if ((size_t)kind >= N_HEADS || !bert_model_find(model, HEADS[kind].weight)) return 0;
    if (HEADS[kind].pooled && !bert_model_has_pooler(model)) return 0;
    bert_head_kind of = kind;
    return !is_classifier(kind) || (bert_head_classifier_kind(&of, model, NULL) == BERT_OK && of == kind);
}

int bert_model_head_uses(const bert_model *model, bert_head_kind kind, const char *tensor) {
    static const char WORDS[] = "cls.predictions.";
    if (!bert_model_has_head(model, kind)) return 0;
    if (kind == BERT_HEAD_WORDS) return strncmp(tensor, WORDS, sizeof WORDS - 1) == 0;
    return strcmp(tensor, HEADS[kind].weight) == 0 || strcmp(tensor, HEADS[kind].bias) == 0;
}

bert_status bert_head_refuse_decoder(const bert_model *model, bert_error *err) {
    if (!bert_model_describe(model).is_decoder) return BERT_OK;
    return bert_fail(err, BERT_UNSUPPORTED, "config.json: is_decoder is true: heads stand on encoders only");
}

static bert_status check_there(const bert_model *model, bert_head_kind kind, bert_error *err) {
    if ((size_t)kind >= N_HEADS) return bert_fail(err, BERT_INVALID_ARGUMENT, "%d is no linear head", (int)kind);
    const head_row *row = &HEADS[kind];
    bert_head_kind of = kind;
    TRY(bert_head_refuse_decoder(model, err));
    if (!bert_model_find(model, row->weight))
        return bert_fail(err, BERT_NOT_FOUND, "the model has no head for %s (%s is not in its files)", row->what,
                         row->weight);
    if (is_classifier(kind)) TRY(bert_head_classifier_kind(&of, model, err));
    if (of != kind)
        return bert_fail(err, BERT_NOT_FOUND, "the model has no head for %s: by its config.json %s is for %s",
                         row->what, row->weight, HEADS[of].what);
    if (row->pooled && !bert_model_has_pooler(model))
        return bert_fail(err, BERT_NOT_FOUND,
                         "the model has no head for %s (pooler.dense.weight, which %s needs, is not in its files)",
                         row->what, row->weight);
    return BERT_OK;
}

/* ---- Opening. ---- */

static bert_status open_parts(bert_head *h, bert_error *err) {
    const bert_head_kind kind = h->info.kind;
    const bert_tensor_info *stored = bert_model_find(h->model, HEADS[kind].weight)->info;
    size_t n = HEADS[kind].rows;
    if (n == 0) n = stored->rank == 2 ? stored->shape[0] : 1;
    if (n == 0) return bert_fail(err, BERT_BAD_FILE, "%s has no rows", HEADS[kind].weight);
    TRY(bert_dense_open(&h->linear, h->model, HEADS[kind].weight, HEADS[kind].bias, n,
                        bert_model_describe(h->model).hidden, err));
    h->info.labels = n;
    h->info.classify = kind == BERT_HEAD_SPAN ? BERT_SCORING_LOGITS : BERT_SCORING_SOFTMAX;
    h->info.rerank = BERT_SCORING_LOGITS;
    if (is_classifier(kind)) TRY(bert_labels_read(&h->labels, h->model, n, err));
    if (kind == BERT_HEAD_SEQUENCE) TRY(bert_head_config_read(&h->info, h->unknown, h->model, err));
    return bert_model_unchanged(h->model, err);
}

bert_status bert_head_open(bert_head **head, const bert_model *model, bert_head_kind kind, bert_error *err) {
    *head = NULL;
    TRY(check_there(model, kind, err));
    bert_head *h = calloc(1, sizeof *h);
    if (!h) return bert_fail(err, BERT_NO_MEMORY, "no memory for a head");
    h->model = model;
    h->info.kind = kind;
    bert_model_retain(model);
    *head = h;
    const bert_status status = open_parts(h, err);
    if (status != BERT_OK) bert_head_close(head);
    return status;
}

void bert_head_close(bert_head **head) {
    if (!head || !*head) return;
    bert_head *h = *head;
    *head = NULL;
    bert_dense_close(&h->linear);
    bert_labels_close(&h->labels);
    bert_model_release(h->model);
    free(h);
}

bert_head_info bert_head_describe(const bert_head *head) { return head->info; }

const char *bert_head_label(const bert_head *head, size_t i) {
    return i < head->labels.n ? head->labels.name[i] : NULL;
}

/* ---- Running. ---- */

bert_status bert_head_check_session(const bert_session *session, const bert_model *model, bert_error *err) {
    if (bert_session_model(session) == model) return BERT_OK;
    return bert_fail(err, BERT_INVALID_ARGUMENT, "the session is of another model than the head's");
}

static size_t rows_of(const bert_head *head, const bert_batch *batch) {
    return bert_pass_rows(batch, HEADS[head->info.kind].pooled);
}

static bert_status check_finite(const bert_head *head, const float *logits, size_t n, bert_error *err) {
    const uint64_t host = bert_fpenv_enter();
    const int finite = bert_all_finite(head->linear.kernels, logits, n);
    bert_fpenv_leave(host);
    if (finite) return BERT_OK;
    return bert_fail(err, BERT_NOT_FINITE, "%s: a logit is NaN or infinite", HEADS[head->info.kind].weight);
}

bert_status bert_head_run(bert_session *session, const bert_head *head, float *logits, const bert_batch *batch,
                          const bert_run_options *options, bert_error *err) {
    const size_t rows = rows_of(head, batch);
    float *states = NULL; /* [rows, H] */
    bert_status status;
    TRY(bert_head_check_session(session, head->model, err));
    TRY(bert_pass_states(&states, session, HEADS[head->info.kind].pooled, batch, options, err));
    TRY_OR_DONE(bert_dense_run(&head->linear, logits, states, rows, BERT_EPILOGUE_NONE, session->workers, err));
    status = check_finite(head, logits, rows * head->info.labels, err);
done:
    free(states);
    return status;
}

size_t bert_head_size(const bert_head *head, const bert_tokens *tokens) {
    size_t rows = 0;
    for (size_t i = 0; i < bert_tokens_count(tokens); i++)
        for (size_t part = 0; part < bert_tokens_parts(tokens, i); part++)
            rows += HEADS[head->info.kind].pooled ? 1 : bert_tokens_at(tokens, i, part).n;
    return rows * head->info.labels;
}

typedef struct head_work {
    bert_session *session;
    const bert_head *head;
    float *logits; /* of the next pass */
    const bert_run_options *options;
} head_work;

static bert_status run_pass(void *user, const bert_batch *batch, bert_error *err) {
    head_work *w = user;
    TRY(bert_head_run(w->session, w->head, w->logits, batch, w->options, err));
    w->logits += rows_of(w->head, batch) * w->head->info.labels;
    return BERT_OK;
}

bert_status bert_head_run_tokens(bert_session *session, const bert_head *head, float *logits, const bert_tokens *tokens,
                                 size_t pass_tokens, const bert_run_options *options, bert_error *err) {
    head_work work = {session, head, logits, options};
    return bert_passes_run(tokens, NULL, bert_tokens_count(tokens), pass_tokens, run_pass, &work, err);
}

/* ---- Scores. ---- */

/* σ(x) = e^x / (e^x + e^0): the softmax of x and 0, so that there is one exp in the contract. */
static float sigmoid(const bert_kernels *kernels, float x) {
    float pair[2] = {x, 0};
    bert_softmax(kernels, pair, pair, 2);
    return pair[0];
}

bert_status bert_head_score(const bert_head *head, float *scores, const float *logits, size_t n, bert_scoring scoring,
                            bert_error *err) {
    const bert_kernels *kernels = head->linear.kernels;
    const size_t labels = head->info.labels;
    if (scoring == BERT_SCORING_AUTO) scoring = head->info.classify;
    if ((unsigned)scoring > BERT_SCORING_SOFTMAX)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "no scoring %d", (int)scoring);
    const uint64_t host = bert_fpenv_enter();
    if (scoring == BERT_SCORING_LOGITS) memmove(scores, logits, n * labels * sizeof *scores);
    for (size_t i = 0; scoring == BERT_SCORING_SIGMOID && i < n * labels; i++) scores[i] = sigmoid(kernels, logits[i]);
    for (size_t i = 0; scoring == BERT_SCORING_SOFTMAX && i < n; i++)
        bert_softmax(kernels, scores + i * labels, logits + i * labels, labels);
    bert_fpenv_leave(host);
    return BERT_OK;
}
