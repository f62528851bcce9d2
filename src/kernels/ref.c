/* kernels/ref.c: every operation in plain C, one value after another: the contract of docs/numerics.md as a program.
 * Slow where fma is not one instruction; it is the measure for the others, not their rival.
 */
#include "kernels/norm.h"
#include "kernels/scalar.h"
#include "kernels/table.h"

enum { LANES = 16 };

/* The fixed tree over the 16 running lanes: distances 8, 4, 2, 1. */
static float fold_sum(float lane[LANES]) {
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

static float greater(float a, float b) {
    return a > b ? a : b;
}

static float row_max(const float *x, size_t n) {
    float lane[LANES];
    for (size_t i = 0; i < LANES; i++) lane[i] = -INFINITY;
    for (size_t i = 0; i < n; i++) lane[i % LANES] = greater(x[i], lane[i % LANES]);
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++) lane[i] = greater(lane[i + half], lane[i]);
    return lane[0];
}

static float dot_chunk(const float *x, const float *w, size_t k) {
    float sum = 0.0f;
    for (size_t i = 0; i < k; i++) sum = fmaf(x[i], w[i * BERT_PANEL], sum);
    return sum;
}

static void tile_ref(const bert_tile *tile) {
    for (size_t row = 0; row < tile->rows; row++) {
        const float *x = tile->x + row * tile->ldx;
        for (size_t col = 0; col < BERT_PANEL; col++) {
            float *total = &tile->totals[row * tile->ldt + col];
            for (size_t k = 0; k < tile->k; k += BERT_CHUNK) {
                const size_t left = tile->k - k, count = left < BERT_CHUNK ? left : BERT_CHUNK;
                const float sum = dot_chunk(x + k, tile->w + k * BERT_PANEL + col, count);
                *total = k > 0 || tile->resume ? *total + sum : sum;
            }
        }
    }
}

static void pack_panel_ref(float *panel, const float *w, size_t ld, size_t rows, size_t k) {
    for (size_t i = 0; i < k; i++)
        for (size_t row = 0; row < BERT_PANEL; row++) panel[i * BERT_PANEL + row] = row < rows ? w[row * ld + i] : 0.0f;
}

static void finish_ref(const bert_linear *linear, const float *totals, size_t ldt, size_t row, size_t rows, size_t col,
                       size_t cols) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            float v = totals[i * ldt + j];
            if (linear->bias) v += linear->bias[col + j];
            v = epilogue_scalar(linear->epilogue, v);
            if (linear->residual) v += linear->residual[(row + i) * linear->ldr + col + j];
            linear->y[(row + i) * linear->ldy + col + j] = v;
        }
}

static void scale_ref(float *y, const float *x, float factor, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = x[i] * factor;
}

static void softmax_row(float *y, const float *x, float factor, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = x[i] * factor;
    const float max = row_max(y, n);
    float lane[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        y[i] = exp_scalar(y[i] - max);
        lane[i % LANES] += y[i];
    }
    const float sum = fold_sum(lane), reciprocal = 1.0f / sum;
    for (size_t i = 0; i < n; i++) y[i] = quotient_scalar(y[i], sum, reciprocal);
}

static void softmax_ref(float *y, size_t ldy, const float *x, size_t ldx, float factor, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++) softmax_row(y + i * ldy, x + i * ldx, factor, n);
}

static float sum_squares_ref(const float *x, size_t n) {
    float lane[LANES] = {0};
    for (size_t i = 0; i < n; i++) lane[i % LANES] = fmaf(x[i], x[i], lane[i % LANES]);
    return fold_sum(lane);
}

static int all_finite_ref(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

const bert_kernels bert_kernels_ref = {
    .isa = BERT_ISA_REF,
    .name = "ref",
    .rows = 6,
    .panels = 1,
    .tile = tile_ref,
    .pack_panel = pack_panel_ref,
    .finish = finish_ref,
    .scale = scale_ref,
    .softmax = softmax_ref,
    .layer_norm = layer_norm_rows,
    .sum_squares = sum_squares_ref,
    .all_finite = all_finite_ref,
};
