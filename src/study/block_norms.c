/* study/block_norms.c: norms of the attention block (Kobayashi et al. 2021).
 *
 * A token's contribution is a sum over heads of weight times vector, so its squared norm needs only the products of the
 * A + 1 vectors that token j gives (one a head, and its own for the residual) with one another: [A+1, A+1] for each j,
 * instead of a vector of H values for each pair of tokens.
 */
#include <math.h>
#include <stdlib.h>

#include <bert/study.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/size.h"

/* y [n] = (x − mean(x)) ∘ γ: the linear part of LayerNorm. */
static void center(double *y, const float *x, const float *gamma, size_t n) {
    double mean = 0;
    for (size_t i = 0; i < n; i++) mean += (double)x[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) y[i] = ((double)x[i] - mean) * (double)gamma[i];
}

/* √(var(x) + eps): what LayerNorm divides by. */
static double deviation(const float *x, size_t n, double eps) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++) mean += (double)x[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    return sqrt(squares / (double)n + eps);
}

/* products [A+1, A+1] of the vectors that token j gives; the last is its own. */
static void multiply_vectors(double *products, double *vectors, const bert_block *b, size_t j) {
    const size_t n = b->heads + 1, h = b->hidden;
    for (size_t a = 0; a < b->heads; a++) center(vectors + a * h, b->f + (a * b->tokens + j) * h, b->gamma, h);
    center(vectors + b->heads * h, b->input + j * h, b->gamma, h);
    for (size_t p = 0; p < n; p++)
        for (size_t q = 0; q <= p; q++) {
            double sum = 0;
            for (size_t k = 0; k < h; k++) sum += vectors[p * h + k] * vectors[q * h + k];
            products[p * n + q] = products[q * n + p] = sum;
        }
}

/* ‖Σ_a α[a,i,j]·vector[a] (+ the token's own)‖ */
static double norm_of(const double *products, const bert_block *b, size_t i, size_t j) {
    const size_t n = b->heads + 1, t = b->tokens, used = i == j ? n : b->heads;
    double square = 0;
    for (size_t p = 0; p < used; p++) {
        double sum = 0;
        for (size_t q = 0; q < used; q++)
            sum += (q < b->heads ? (double)b->weights[(q * t + i) * t + j] : 1) * products[p * n + q];
        square += (p < b->heads ? (double)b->weights[(p * t + i) * t + j] : 1) * sum;
    }
    return square > 0 ? sqrt(square) : 0;
}

bert_status bert_block_norms(float *norms, const bert_block *block, bert_error *err) {
    const size_t n = block->heads + 1, t = block->tokens, h = block->hidden;
    double *work = NULL; /* vectors [A+1, H], products [A+1, A+1], deviations [T] */
    size_t count;
    if (bert_size_mul(&count, n, h + n) && bert_size_add(&count, count, t)) work = calloc(count, sizeof *work);
    if (!work) return bert_fail(err, BERT_NO_MEMORY, "no memory for the norms of %zu heads", block->heads);
    double *products = work + n * h, *deviations = products + n * n;
    const uint64_t host = bert_fpenv_enter();
    for (size_t i = 0; i < t; i++) deviations[i] = deviation(block->sum + i * h, h, block->eps);
    for (size_t j = 0; j < t; j++) {
        multiply_vectors(products, work, block, j);
        for (size_t i = 0; i < t; i++) norms[i * t + j] = (float)(norm_of(products, block, i, j) / deviations[i]);
    }
    bert_fpenv_leave(host);
    free(work);
    return BERT_OK;
}
