/* task/pooling.c: token vectors [T, H] to one vector, as sentence-transformers' Pooling and Normalize do it.
 *
 * Part of the arithmetic contract (docs/numerics.md): sums run over tokens in ascending order, one per column, so no
 * instruction set can change a bit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "model/model.h"
#include "task/pipeline.h"

const char *bert_pooling_name(bert_pooling pooling) {
    static const char *const NAMES[] = {"auto",          "cls",          "mean",      "max",
                                        "mean_sqrt_len", "weightedmean", "lasttoken", "pooler"};
    return (size_t)pooling < sizeof NAMES / sizeof *NAMES ? NAMES[pooling] : NULL;
}

static bert_embed_options options_or_default(const bert_embed_options *given) {
    bert_embed_options options = BERT_EMBED_OPTIONS_INIT;
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    return options;
}

static void choose_poolings(bert_embed_plan *plan, const bert_modules *m) {
    static const bert_pooling MEAN = BERT_POOLING_MEAN;
    plan->n_poolings = 1;
    if (plan->options.pooling != BERT_POOLING_AUTO) {
        plan->pooling = &plan->options.pooling;
    } else if (m->n_poolings > 0) {
        plan->pooling = m->pooling;
        plan->n_poolings = m->n_poolings;
    } else {
        plan->pooling = &MEAN;
    }
}

bert_status bert_embed_plan_make(bert_embed_plan *plan, const bert_pipeline *pipeline,
                                 const bert_embed_options *given, bert_error *err) {
    const bert_model_info model = bert_model_describe(pipeline->model);
    if (model.is_decoder)
        return bert_fail(err, BERT_UNSUPPORTED, "config.json: is_decoder is true: a decoder gives no sentence vectors");
    plan->options = options_or_default(given);
    bert_embed_options *o = &plan->options;
    if (!bert_pooling_name(o->pooling)) return bert_fail(err, BERT_INVALID_ARGUMENT, "no pooling %d", (int)o->pooling);
    choose_poolings(plan, &pipeline->modules);
    plan->full_dim = plan->n_poolings * model.hidden;
    plan->dim = o->dim ? o->dim : plan->full_dim;
    plan->normalize = o->normalize < 0 ? pipeline->modules.normalize : o->normalize;
    plan->need_pooler = plan->pooling[0] == BERT_POOLING_POOLER;
    if (plan->dim > plan->full_dim)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "dim %zu: the model's vectors have %zu values", o->dim,
                         plan->full_dim);
    if (o->max_length > model.positions)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "max_length %zu: the model has %zu positions", o->max_length,
                         model.positions);
    if (o->max_length == 0) o->max_length = pipeline->max_length;
    if (o->pass_tokens == 0) o->pass_tokens = 1024;
    return BERT_OK;
}

size_t bert_pipeline_dim(const bert_pipeline *pipeline, const bert_embed_options *options) {
    bert_embed_plan plan;
    return bert_embed_plan_make(&plan, pipeline, options, NULL) == BERT_OK ? plan.dim : 0;
}

/* ---- The poolings, each over x [T, H]. ---- */

static void sum_tokens(float *y, const float *x, size_t t, size_t h) {
    memcpy(y, x, h * sizeof *y);
    for (size_t i = 1; i < t; i++)
        for (size_t k = 0; k < h; k++) y[k] += x[i * h + k];
}

static void divide(float *y, size_t h, float by) {
    for (size_t k = 0; k < h; k++) y[k] /= by;
}

static void max_tokens(float *y, const float *x, size_t t, size_t h) {
    memcpy(y, x, h * sizeof *y);
    for (size_t i = 1; i < t; i++)
        for (size_t k = 0; k < h; k++) y[k] = x[i * h + k] > y[k] ? x[i * h + k] : y[k];
}

/* Σ (i+1)·x[i] / Σ (i+1): later tokens weigh more (Muennighoff 2022, arXiv 2202.08904). */
static void weighted_mean(float *y, const float *x, size_t t, size_t h) {
    memcpy(y, x, h * sizeof *y);
    for (size_t i = 1; i < t; i++)
        for (size_t k = 0; k < h; k++) y[k] = fmaf((float)(i + 1), x[i * h + k], y[k]);
    divide(y, h, (float)t * (float)(t + 1) / 2);
}

static void pool_one(bert_pooling pooling, float *y, const float *x, size_t t, size_t h, const float *pooler) {
    switch (pooling) {
    case BERT_POOLING_CLS: memcpy(y, x, h * sizeof *y); break;
    case BERT_POOLING_LAST_TOKEN: memcpy(y, x + (t - 1) * h, h * sizeof *y); break;
    case BERT_POOLING_POOLER: memcpy(y, pooler, h * sizeof *y); break;
    case BERT_POOLING_MAX: max_tokens(y, x, t, h); break;
    case BERT_POOLING_WEIGHTED_MEAN: weighted_mean(y, x, t, h); break;
    case BERT_POOLING_MEAN_SQRT_LEN:
        sum_tokens(y, x, t, h);
        divide(y, h, sqrtf((float)t));
        break;
    default:
        sum_tokens(y, x, t, h);
        divide(y, h, (float)t);
    }
}

/* x / max(‖x‖, 1e-12), as torch.nn.functional.normalize; false where the length overflows, which would leave zeros. */
static bool normalize(const bert_kernels *kernels, float *x, size_t n) {
    const float length = sqrtf(bert_sum_squares(kernels, x, n));
    divide(x, n, length > 1e-12f ? length : 1e-12f);
    return isfinite(length);
}

bert_status bert_embed_plan_pool(const bert_embed_plan *plan, const bert_pipeline *pipeline, float *dst, float *full,
                                 const float *hidden, size_t tokens, const float *pooler, bert_error *err) {
    const bert_kernels *kernels = bert_model_kernels(pipeline->model);
    const size_t h = plan->full_dim / plan->n_poolings;
    const uint64_t host = bert_fpenv_enter();
    for (size_t i = 0; i < plan->n_poolings; i++)
        pool_one(plan->pooling[i], full + i * h, hidden, tokens, h, pooler);
    const bool has_length = !plan->normalize || normalize(kernels, full, plan->dim);
    memcpy(dst, full, plan->dim * sizeof *dst);
    const bool finite = has_length && bert_all_finite(kernels, dst, plan->dim);
    bert_fpenv_leave(host);
    if (finite) return BERT_OK;
    return bert_fail(err, BERT_NOT_FINITE, "the sentence vector has a value or a length that is NaN or infinite");
}

bert_status bert_pipeline_pool(const bert_pipeline *pipeline, float *dst, const float *hidden, const float *pooler,
                               const bert_encoding *tokens, const bert_embed_options *options, bert_error *err) {
    bert_embed_plan plan;
    TRY(bert_embed_plan_make(&plan, pipeline, options, err));
    if (plan.need_pooler && !pooler)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "pooling by the pooler needs the pooler's output");
    float *full = malloc(plan.full_dim * sizeof *full);
    if (!full) return bert_fail(err, BERT_NO_MEMORY, "no memory for a vector of %zu values", plan.full_dim);
    const bert_status status = bert_embed_plan_pool(&plan, pipeline, dst, full, hidden, tokens->n, pooler, err);
    free(full);
    return status;
}
