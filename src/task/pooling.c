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

/* ---- The poolings, each over x [T, H]; the first `skip` tokens are left out. ---- */

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

/* Σ (i+1)·x[i] / Σ (i+1): later tokens weigh more (Muennighoff 2022, arXiv 2202.08904). Tokens left out keep their
 * numbers. */
static void weighted_mean(float *y, const float *x, size_t skip, size_t t, size_t h) {
    const float *first = x + skip * h;
    if (skip == 0) memcpy(y, first, h * sizeof *y);
    else for (size_t k = 0; k < h; k++) y[k] = (float)(skip + 1) * first[k];
    for (size_t i = skip + 1; i < t; i++)
        for (size_t k = 0; k < h; k++) y[k] = fmaf((float)(i + 1), x[i * h + k], y[k]);
    divide(y, h, (float)t * (float)(t + 1) / 2 - (float)skip * (float)(skip + 1) / 2);
}

static void pool_one(bert_pooling pooling, float *y, const bert_pool_input *in, size_t skip, size_t h) {
    const float *kept = in->hidden + skip * h;
    const size_t t = in->tokens - skip;
    switch (pooling) {
    case BERT_POOLING_CLS: memcpy(y, skip > 0 ? kept : in->first, h * sizeof *y); break;
    case BERT_POOLING_LAST_TOKEN: memcpy(y, in->last, h * sizeof *y); break;
    case BERT_POOLING_POOLER: memcpy(y, in->pooler, h * sizeof *y); break;
    case BERT_POOLING_MAX: max_tokens(y, kept, t, h); break;
    case BERT_POOLING_WEIGHTED_MEAN: weighted_mean(y, in->hidden, skip, in->tokens, h); break;
    case BERT_POOLING_MEAN_SQRT_LEN:
        sum_tokens(y, kept, t, h);
        divide(y, h, sqrtf((float)t));
        break;
    default:
        sum_tokens(y, kept, t, h);
        divide(y, h, (float)t);
    }
}

/* x / max(‖x‖, 1e-12), as torch.nn.functional.normalize; false where the length overflows, which would leave zeros. */
static bool normalize(const bert_kernels *kernels, float *x, size_t n) {
    const float length = sqrtf(bert_sum_squares(kernels, x, n));
    divide(x, n, length > 1e-12f ? length : 1e-12f);
    return isfinite(length);
}

/* ---- The modules behind the pooling. ---- */

/* y [linear.n] from x [linear.k] */
static bert_status run_dense(const bert_module *m, float *y, const float *x, bert_error *err) {
    float *added = NULL;
    bert_status status;
    TRY(bert_dense_run(&m->linear, y, x, 1, m->activation, NULL, err));
    if (!m->residual) return BERT_OK;
    if (m->projection.n > 0) {
        added = malloc(m->projection.n * sizeof *added);
        if (!added) return bert_fail(err, BERT_NO_MEMORY, "no memory for %zu values", m->projection.n);
        TRY_OR_DONE(bert_dense_run(&m->projection, added, x, 1, BERT_EPILOGUE_NONE, NULL, err));
        x = added;
    }
    for (size_t k = 0; k < m->linear.n; k++) y[k] += x[k];
    status = BERT_OK;
done:
    free(added);
    return status;
}

/* *x goes from one half of the scratch [2, width] to the other. */
static bert_status run_modules(const bert_modules *m, const bert_kernels *kernels, float **x, float *scratch,
                               size_t width, size_t n, bool *has_length, bert_error *err) {
    for (size_t i = 0; i < m->n_behind; i++) {
        const bert_module *module = &m->behind[i];
        if (module->normalize) {
            *has_length &= normalize(kernels, *x, n);
            continue;
        }
        float *y = *x == scratch ? scratch + width : scratch;
        TRY(run_dense(module, y, *x, err));
        *x = y;
        n = module->linear.n;
        if (!bert_all_finite(kernels, y, n))
            return bert_fail(err, BERT_NOT_FINITE, "%s: a value is NaN or infinite", module->file_name);
    }
    return BERT_OK;
}

bert_status bert_embed_plan_pool(const bert_embed_plan *plan, const bert_pipeline *pipeline, float *dst, float *scratch,
                                 const bert_pool_input *input, bert_error *err) {
    const bert_kernels *kernels = bert_model_kernels(pipeline->model);
    const size_t h = bert_model_describe(pipeline->model).hidden;
    float *x = scratch;
    bool has_length = true;
    if (plan->left_out >= input->tokens)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "the prompt's %zu tokens leave nothing of the text's %zu",
                         plan->left_out, input->tokens);
    const uint64_t host = bert_fpenv_enter();
    for (size_t i = 0; i < plan->n_poolings; i++) pool_one(plan->pooling[i], x + i * h, input, plan->left_out, h);
    const bert_status status = run_modules(&pipeline->modules, kernels, &x, scratch, plan->width,
                                           plan->n_poolings * h, &has_length, err);
    if (status == BERT_OK && plan->normalize) has_length &= normalize(kernels, x, plan->dim);
    if (status == BERT_OK) memcpy(dst, x, plan->dim * sizeof *dst);
    const bool finite = status != BERT_OK || (has_length && bert_all_finite(kernels, dst, plan->dim));
    bert_fpenv_leave(host);
    if (finite) return status;
    return bert_fail(err, BERT_NOT_FINITE, "the sentence vector has a value or a length that is NaN or infinite");
}

bert_status bert_pipeline_pool(const bert_pipeline *pipeline, float *dst, const float *hidden, const float *pooler,
                               const bert_encoding *tokens, const bert_embed_options *options, bert_error *err) {
    bert_embed_plan plan;
    TRY(bert_embed_plan_make(&plan, pipeline, options, err));
    if (plan.need_pooler && !pooler)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "pooling by the pooler needs the pooler's output");
    if (tokens->n == 0) return bert_fail(err, BERT_INVALID_ARGUMENT, "a text without tokens has no vector");
    const size_t h = bert_model_describe(pipeline->model).hidden;
    const bert_pool_input input = {hidden, tokens->n, hidden, hidden + (tokens->n - 1) * h, pooler};
    float *scratch = calloc(2 * plan.width, sizeof *scratch);
    if (!scratch) return bert_fail(err, BERT_NO_MEMORY, "no memory for a vector of %zu values", plan.width);
    const bert_status status = bert_embed_plan_pool(&plan, pipeline, dst, scratch, &input, err);
    free(scratch);
    return status;
}
