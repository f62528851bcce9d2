/* task/mlm.c: the head of masked language modelling: what word the encoder expects at a place. */
#include <stdlib.h>

#include <bert/heads.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/logarithm.h"
#include "task/dense.h"

enum { ROWS = 32 }; /* positions whose logits are held at once: 4 MB with 30,522 words */

struct bert_mlm {
    const bert_model *model; /* retained */
    const bert_kernels *kernels;
    bert_dense transform, decoder;
    float *norm; /* gamma [H], beta [H] */
    float eps;
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
    const char *const bias[] = {"cls.predictions.bias", "cls.predictions.decoder.bias", NULL};
    if (!bert_model_find(model, TRANSFORM "dense.weight"))
        return bert_fail(err, BERT_NOT_FOUND, "the model has no head for masked words (" TRANSFORM
                                              "dense.weight is not in its files)");
    mlm->kernels = bert_model_kernels(model);
    mlm->eps = (float)c->layer_norm_eps;
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

bert_status bert_mlm_logits(const bert_mlm *mlm, float *logits, const float *hidden, size_t n,
                            const bert_workers *workers, bert_error *err) {
    const size_t h = mlm->transform.n;
    float *x = calloc(n ? n : 1, h * sizeof *x); /* [n, H] */
    bert_status status;
    if (!x) return bert_fail(err, BERT_NO_MEMORY, "no memory for %zu positions", n);
    TRY_OR_DONE(bert_dense_run(&mlm->transform, x, hidden, n, mlm->activation, workers, err));
    const uint64_t host = bert_fpenv_enter();
    bert_layer_norm(mlm->kernels, x, h, x, h, mlm->norm, mlm->norm + h, mlm->eps, n, h);
    bert_fpenv_leave(host);
    TRY_OR_DONE(bert_dense_run(&mlm->decoder, logits, x, n, BERT_EPILOGUE_NONE, workers, err));
    if (!bert_all_finite(mlm->kernels, logits, n * mlm->decoder.n))
        status = bert_fail(err, BERT_NOT_FINITE, "masked words: a logit is NaN or infinite");
done:
    free(x);
    return status;
}

/* ln softmax(x)[id] = x[id] − max + ln softmax(x)[where max is]; that probability is at least 1/V. */
static float log_prob(const bert_kernels *kernels, float *x, size_t n, size_t id) {
    const float chosen = x[id];
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    const float max = x[best];
    bert_softmax(kernels, x, x, n);
    return (float)((double)chosen - (double)max + natural_log((double)x[best]));
}

static bert_status check_ids(const bert_mlm *mlm, const int32_t *ids, size_t n, bert_error *err) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= mlm->decoder.n)
            return bert_fail(err, BERT_INVALID_ARGUMENT, "id %d, expected 0 to %zu", (int)ids[i], mlm->decoder.n - 1);
    return BERT_OK;
}

bert_status bert_mlm_log_probs(const bert_mlm *mlm, float *log_probs, const float *hidden, const int32_t *ids, size_t n,
                               const bert_workers *workers, bert_error *err) {
    const size_t words = mlm->decoder.n, h = mlm->transform.n;
    bert_status status = BERT_OK;
    TRY(check_ids(mlm, ids, n, err));
    float *logits = calloc(n < ROWS ? n + 1 : ROWS, words * sizeof *logits); /* [rows, V] */
    if (!logits) return bert_fail(err, BERT_NO_MEMORY, "no memory for the logits of %zu words", words);
    for (size_t first = 0; first < n; first += ROWS) {
        const size_t rows = n - first < ROWS ? n - first : ROWS;
        TRY_OR_DONE(bert_mlm_logits(mlm, logits, hidden + first * h, rows, workers, err));
        const uint64_t host = bert_fpenv_enter();
        for (size_t i = 0; i < rows; i++)
            log_probs[first + i] = log_prob(mlm->kernels, logits + i * words, words, (size_t)ids[first + i]);
        bert_fpenv_leave(host);
    }
done:
    free(logits);
    return status;
}
