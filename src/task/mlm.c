/* task/mlm.c: the head of masked language modelling: what word the encoder expects at a place. */
#include <stdlib.h>
#include <string.h>

#include <bert/heads.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/logarithm.h"
#include "encoder/session.h"
#include "task/head.h"
#include "task/passes.h"

enum { ROWS = 32 }; /* positions whose logits are held at once: 4 MB with 30,522 words */

struct bert_mlm {
    const bert_model *model; /* retained */
    const bert_kernels *kernels;
    bert_dense transform, decoder;
    float *norm; /* gamma [H], beta [H] */
    double eps; /* LayerNorm's, rounded to float inside our floating-point environment */
    bert_epilogue activation;
};

#define TRANSFORM "cls.predictions.transform."

/* The first of the names that the checkpoint has; the first of all if it has none, so that messages name that. */
static const char *first_of(const bert_model *model, const char *const names[3]) {
    for (size_t i = 0; i < 3 && names[i]; i++)
        if (bert_model_find(model, names[i])) return names[i];
    return names[0];
}

static bert_status read_norm(bert_mlm *mlm, const bert_model *model, size_t h, bert_error *err) {
    const char *const gamma[] = {TRANSFORM "LayerNorm.weight", TRANSFORM "LayerNorm.gamma", NULL};
    const char *const beta[] = {TRANSFORM "LayerNorm.bias", TRANSFORM "LayerNorm.beta", NULL};
    const char *gamma_name = first_of(model, gamma), *beta_name = first_of(model, beta);
    if (!(mlm->norm = calloc(2 * h, sizeof *mlm->norm))) return bert_fail(err, BERT_NO_MEMORY, "no memory for a head");
    TRY(bert_dense_read(mlm->norm, bert_model_find(model, gamma_name), gamma_name, h, 1, err));
    return bert_dense_read(mlm->norm + h, bert_model_find(model, beta_name), beta_name, h, 1, err);
}

static bert_status open_parts(bert_mlm *mlm, const bert_model *model, bert_error *err) {
    const bert_config *c = bert_model_config(model);
    const char *const words[] = {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight",
                                 "embeddings.word_embeddings.weight"};
    /* Where both are there and differ, HF's decoder has its own. */
    const char *const bias[] = {"cls.predictions.decoder.bias", "cls.predictions.bias", NULL};
    TRY(bert_head_refuse_decoder(model, err));
    if (!bert_model_find(model, TRANSFORM "dense.weight"))
        return bert_fail(err, BERT_NOT_FOUND, "the model has no head for masked words (" TRANSFORM
                                              "dense.weight is not in its files)");
    mlm->kernels = bert_model_kernels(model);
    mlm->eps = c->layer_norm_eps;
    mlm->activation = bert_epilogue_of(c->activation);
    TRY(bert_dense_open(&mlm->transform, model, TRANSFORM "dense.weight", TRANSFORM "dense.bias", c->hidden, c->hidden,
                        err));
    TRY(read_norm(mlm, model, c->hidden, err));
    TRY(bert_dense_open(&mlm->decoder, model, first_of(model, words), first_of(model, bias), c->vocab, c->hidden, err));
    return bert_model_unchanged(model, err);
}

bert_status bert_mlm_open(bert_mlm **mlm, const bert_model *model, bert_error *err) {
    bert_mlm *m = calloc(1, sizeof *m);
    *mlm = m;
    if (!m) return bert_fail(err, BERT_NO_MEMORY, "no memory for a head");
    m->model = model;
    bert_model_retain(model);
    const bert_status status = open_parts(m, model, err);
    if (status != BERT_OK) bert_mlm_close(mlm);
    return status;
}

void bert_mlm_close(bert_mlm **mlm) {
    if (!mlm || !*mlm) return;
    bert_mlm *m = *mlm;
    *mlm = NULL;
    bert_dense_close(&m->transform);
    bert_dense_close(&m->decoder);
    free(m->norm);
    bert_model_release(m->model);
    free(m);
}

/* A signalling NaN must not trap in a host that has traps on. */
static bert_status check_finite(const bert_mlm *mlm, const float *logits, size_t n, bert_error *err) {
    const uint64_t host = bert_fpenv_enter();
    const int finite = bert_all_finite(mlm->kernels, logits, n);
    bert_fpenv_leave(host);
    return finite ? BERT_OK : bert_fail(err, BERT_NOT_FINITE, "masked words: a logit is NaN or infinite");
}

bert_status bert_mlm_logits(const bert_mlm *mlm, float *logits, const float *hidden, size_t n,
                            const bert_workers *workers, bert_error *err) {
    const size_t h = mlm->transform.n;
    float *x = calloc(n ? n : 1, h * sizeof *x); /* [n, H] */
    bert_status status;
    if (!x) return bert_fail(err, BERT_NO_MEMORY, "no memory for %zu positions", n);
    TRY_OR_DONE(bert_dense_run(&mlm->transform, x, hidden, n, mlm->activation, workers, err));
    const uint64_t host = bert_fpenv_enter();
    bert_layer_norm(mlm->kernels, x, h, x, h, mlm->norm, mlm->norm + h, (float)mlm->eps, n, h);
    bert_fpenv_leave(host);
    TRY_OR_DONE(bert_dense_run(&mlm->decoder, logits, x, n, BERT_EPILOGUE_NONE, workers, err));
    status = check_finite(mlm, logits, n * mlm->decoder.n, err);
done:
    free(x);
    return status;
}

static size_t largest(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* chosen [k], some of the logits x [V], become ln softmax(x): x[i] − max + ln softmax(x)[where max is]; that
 * probability is at least 1/V. x is not needed any more. */
static void to_log_probs(const bert_mlm *mlm, float *chosen, size_t k, float *x) {
    const size_t best = largest(x, mlm->decoder.n);
    const double max = (double)x[best];
    bert_softmax(mlm->kernels, x, x, mlm->decoder.n);
    const double log_best = natural_log((double)x[best]);
    for (size_t i = 0; i < k; i++) chosen[i] = (float)((double)chosen[i] - max + log_best);
}

/* The places of the k largest of x [n], best first, and what stands there. */
static void take_top(int32_t *ids, float *values, size_t k, const float *x, size_t n) {
    for (size_t i = 0, have = 0; i < n; i++) {
        if (have == k && !(x[i] > values[k - 1])) continue;
        size_t at = have < k ? have++ : k - 1;
        for (; at > 0 && x[i] > values[at - 1]; at--) {
            values[at] = values[at - 1];
            ids[at] = ids[at - 1];
        }
        values[at] = x[i];
        ids[at] = (int32_t)i;
    }
}

/* Calls each(user, i, logits [V]) for the n places in turn. */
static bert_status for_each_place(const bert_mlm *mlm, const float *hidden, size_t n, const bert_workers *workers,
                                  void (*each)(void *user, size_t i, float *logits), void *user, bert_error *err) {
    const size_t words = mlm->decoder.n, h = mlm->transform.n;
    bert_status status = BERT_OK;
    float *logits = calloc(n < ROWS ? n + 1 : ROWS, words * sizeof *logits); /* [rows, V] */
    if (!logits) return bert_fail(err, BERT_NO_MEMORY, "no memory for the logits of %zu words", words);
    for (size_t first = 0; first < n; first += ROWS) {
        const size_t rows = n - first < ROWS ? n - first : ROWS;
        TRY_OR_DONE(bert_mlm_logits(mlm, logits, hidden + first * h, rows, workers, err));
        const uint64_t host = bert_fpenv_enter();
        for (size_t i = 0; i < rows; i++) each(user, first + i, logits + i * words);
        bert_fpenv_leave(host);
    }
done:
    free(logits);
    return status;
}

typedef struct wanted {
    const bert_mlm *mlm;
    const int32_t *ids; /* [n]: whose log-probabilities */
    int32_t *top;       /* [n, k] */
    float *log_probs;   /* [n] or [n, k] */
    size_t k;
} wanted;

static void one_log_prob(void *user, size_t i, float *logits) {
    const wanted *want = user;
    want->log_probs[i] = logits[want->ids[i]];
    to_log_probs(want->mlm, want->log_probs + i, 1, logits);
}

static bert_status check_ids(const bert_mlm *mlm, const int32_t *ids, size_t n, bert_error *err) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= mlm->decoder.n)
            return bert_fail(err, BERT_INVALID_ARGUMENT, "id %d, expected 0 to %zu", (int)ids[i], mlm->decoder.n - 1);
    return BERT_OK;
}

bert_status bert_mlm_log_probs(const bert_mlm *mlm, float *log_probs, const float *hidden, const int32_t *ids, size_t n,
                               const bert_workers *workers, bert_error *err) {
    wanted want = {.mlm = mlm, .ids = ids, .log_probs = log_probs};
    TRY(check_ids(mlm, ids, n, err));
    return for_each_place(mlm, hidden, n, workers, one_log_prob, &want, err);
}

static bert_status check_top(const bert_mlm *mlm, size_t k, bert_error *err) {
    if (k > 0 && k <= mlm->decoder.n) return BERT_OK;
    return bert_fail(err, BERT_INVALID_ARGUMENT, "the %zu most probable words, expected 1 to %zu", k, mlm->decoder.n);
}

static void one_top(void *user, size_t i, float *logits) {
    const wanted *want = user;
    float *log_probs = want->log_probs + i * want->k;
    take_top(want->top + i * want->k, log_probs, want->k, logits, want->mlm->decoder.n);
    to_log_probs(want->mlm, log_probs, want->k, logits);
}

bert_status bert_mlm_top(const bert_mlm *mlm, int32_t *ids, float *log_probs, const float *hidden, size_t n, size_t k,
                         const bert_workers *workers, bert_error *err) {
    wanted want = {.mlm = mlm, .top = ids, .log_probs = log_probs, .k = k};
    TRY(check_top(mlm, k, err));
    return for_each_place(mlm, hidden, n, workers, one_top, &want, err);
}

/* ---- Filling the masks of texts. ---- */

size_t bert_mlm_count(const bert_tokens *tokens, int32_t mask) {
    size_t n = 0;
    for (size_t i = 0; i < bert_tokens_count(tokens); i++)
        for (size_t part = 0; part < bert_tokens_parts(tokens, i); part++) {
            const bert_encoding text = bert_tokens_at(tokens, i, part);
            for (size_t k = 0; k < text.n; k++) n += text.ids[k] == mask;
        }
    return n;
}

typedef struct filling {
    bert_session *session;
    wanted want; /* its arrays: of the next pass */
    int32_t mask;
    int raw;
    const bert_run_options *options;
} filling;

static void one_guess(void *user, size_t i, float *logits) {
    const filling *f = user;
    const wanted *w = &f->want;
    int32_t *ids = w->top + i * w->k;
    float *scores = w->log_probs + i * w->k;
    take_top(ids, scores, w->k, logits, w->mlm->decoder.n);
    if (f->raw) return;
    bert_softmax(w->mlm->kernels, logits, logits, w->mlm->decoder.n);
    for (size_t k = 0; k < w->k; k++) scores[k] = logits[ids[k]];
}

static bert_status fill_pass(void *user, const bert_batch *batch, bert_error *err) {
    filling *f = user;
    const size_t h = f->want.mlm->transform.n;
    float *states = NULL;
    size_t n = 0;
    TRY(bert_pass_states(&states, f->session, 0, batch, f->options, err));
    for (size_t t = 0; t < batch->start[batch->n]; t++) /* the states of the masks move to the front */
        if (batch->ids[t] == f->mask) memmove(states + n++ * h, states + t * h, h * sizeof *states);
    const bert_status status = for_each_place(f->want.mlm, states, n, f->session->workers, one_guess, f, err);
    f->want.top += n * f->want.k;
    f->want.log_probs += n * f->want.k;
    free(states);
    return status;
}

bert_status bert_mlm_fill(bert_session *session, const bert_mlm *mlm, int32_t *ids, float *scores,
                          const bert_tokens *tokens, int32_t mask, size_t k, int raw, size_t pass_tokens,
                          const bert_run_options *options, bert_error *err) {
    filling f = {session, {.mlm = mlm, .top = ids, .log_probs = scores, .k = k}, mask, raw, options};
    TRY(bert_head_check_session(session, mlm->model, err));
    TRY(check_top(mlm, k, err));
    return bert_passes_run(tokens, NULL, bert_tokens_count(tokens), pass_tokens, fill_pass, &f, err);
}
