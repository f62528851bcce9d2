/* kernels/lanes.h: everything but the products, written once for all vector instruction sets. The file that includes
 * it has defined `lanes`, 16 floats, and static functions on it:
 *     lanes_set(x)  lanes_load(p)  lanes_load_some(p, n, fill)  lanes_store(p, v)  lanes_store_some(p, v, n)
 *     lanes_add  lanes_sub  lanes_mul  lanes_div  lanes_fma(a, b, c): a·b + c  lanes_negate  lanes_abs  lanes_minus_abs
 *     lanes_greater(a, b): a > b ? a : b   lanes_if_less(a, b, x, y): a < b ? x : y
 *     lanes_zero_if_less(a, b, y): a < b ? +0 : y
 *     lanes_power_of_two(rounded)   lanes_fold_sum(v), lanes_fold_greater(v): the fixed tree   lanes_finite(v)
 * The operations and their order are those of scalar.h and ref.c. Tails go through the same code with a fill that
 * changes nothing.
 */
#include <math.h>

#include "kernels/blocks.h"
#include "kernels/norm.h"
#include "kernels/polynomials.h"
#include "kernels/table.h"

#define INLINE static inline __attribute__((always_inline))

/* Sixteen or fewer values at p; the branch keeps the slow partial accesses out of the common path. */
INLINE lanes load_up_to(const float *p, size_t n, float fill) {
    return n >= 16 ? lanes_load(p) : lanes_load_some(p, n, fill);
}
INLINE void store_up_to(float *p, lanes v, size_t n) {
    if (n >= 16) lanes_store(p, v);
    else lanes_store_some(p, v, n);
}

INLINE lanes horner(const float *c, int degree, lanes x) {
    lanes sum = lanes_set(c[degree]);
#pragma GCC unroll 16
    for (int i = degree - 1; i >= 0; i--) sum = lanes_fma(sum, x, lanes_set(c[i]));
    return sum;
}

INLINE lanes exp_lanes(lanes x) {
    const lanes round = lanes_set(EXP_ROUND), one = lanes_set(1.0f);
    const lanes rounded = lanes_fma(x, lanes_set(EXP_LOG2E), round), n = lanes_sub(rounded, round);
    const lanes r = lanes_fma(n, lanes_set(-EXP_LN2_LOW), lanes_fma(n, lanes_set(-EXP_LN2_HIGH), x));
    const lanes p = lanes_fma(horner(EXP_POLY, EXP_DEGREE, r), r, one);
    const lanes power = lanes_mul(lanes_fma(p, r, one), lanes_power_of_two(rounded));
    return lanes_zero_if_less(x, lanes_set(EXP_CUT), power);
}

INLINE lanes quotient_lanes(lanes a, lanes minus_b, lanes reciprocal) {
    const lanes q = lanes_mul(a, reciprocal);
    return lanes_fma(lanes_fma(q, minus_b, a), reciprocal, q);
}

INLINE lanes tanh_lanes(lanes x) {
    const lanes a = lanes_abs(x), square = lanes_mul(x, x), zero = lanes_set(0.0f), one = lanes_set(1.0f);
    const lanes small = lanes_fma(lanes_mul(x, square), horner(TANH_POLY, TANH_DEGREE, square), x);
    const lanes e = exp_lanes(lanes_mul(lanes_set(-2.0f), a));
    const lanes t = lanes_sub(one, lanes_div(lanes_mul(lanes_set(2.0f), e), lanes_add(one, e)));
    return lanes_if_less(a, lanes_set(TANH_SMALL), small, lanes_if_less(x, zero, lanes_negate(t), t));
}

INLINE lanes relu_lanes(lanes x) {
    return lanes_greater(lanes_set(0.0f), x);
}

INLINE lanes gate_lanes(lanes x, lanes z) {
    const lanes e = exp_lanes(lanes_negate(z));
    const lanes tail = lanes_div(e, lanes_add(lanes_set(1.0f), e));
    return lanes_fma(lanes_minus_abs(x), tail, relu_lanes(x));
}

INLINE lanes gelu_erf_lanes(lanes x) {
    const lanes a = lanes_abs(x);
    const lanes tail = exp_lanes(horner(GELU_POLY, GELU_DEGREE, a));
    return lanes_fma(lanes_minus_abs(x), tail, relu_lanes(x));
}

INLINE lanes gelu_tanh_lanes(lanes x) {
    const lanes a = lanes_abs(x);
    const lanes slope = lanes_fma(lanes_mul(a, a), lanes_set(GELU_CUBIC), lanes_set(GELU_LINEAR));
    return gate_lanes(x, lanes_mul(a, slope));
}

INLINE lanes epilogue_lanes(bert_epilogue epilogue, lanes x) {
    switch (epilogue) {
    case BERT_EPILOGUE_GELU_ERF: return gelu_erf_lanes(x);
    case BERT_EPILOGUE_GELU_TANH: return gelu_tanh_lanes(x);
    case BERT_EPILOGUE_RELU: return relu_lanes(x);
    case BERT_EPILOGUE_SILU: return gate_lanes(x, lanes_abs(x));
    case BERT_EPILOGUE_TANH: return tanh_lanes(x);
    case BERT_EPILOGUE_NONE: break;
    }
    return x;
}

/* Up to 16 values of one row. */
INLINE void finish_some(bert_epilogue epilogue, float *y, const float *total, const float *bias, const float *residual,
                        size_t n) {
    lanes v = load_up_to(total, n, 0.0f);
    if (bias) v = lanes_add(v, load_up_to(bias, n, 0.0f));
    v = epilogue_lanes(epilogue, v);
    if (residual) v = lanes_add(v, load_up_to(residual, n, 0.0f));
    store_up_to(y, v, n);
}

/* The whole edge for one epilogue, a constant where this is inlined. */
INLINE void finish_as(bert_epilogue epilogue, const bert_linear *linear, const float *totals, size_t ldt, size_t row,
                      size_t rows, size_t col, size_t cols) {
    const float *bias = linear->bias ? linear->bias + col : NULL;
    for (size_t i = 0; i < rows; i++) {
        float *y = linear->y + (row + i) * linear->ldy + col;
        const float *residual = linear->residual ? linear->residual + (row + i) * linear->ldr + col : NULL;
        for (size_t j = 0; j < cols; j += 16)
            finish_some(epilogue, y + j, totals + i * ldt + j, bias ? bias + j : NULL, residual ? residual + j : NULL,
                        cols - j);
    }
}

#define FINISH_CASE(epilogue) \
    case epilogue: finish_as(epilogue, linear, totals, ldt, row, rows, col, cols); break
static void finish(const bert_linear *linear, const float *totals, size_t ldt, size_t row, size_t rows, size_t col,
                   size_t cols) {
    switch (linear->epilogue) {
        FINISH_CASE(BERT_EPILOGUE_NONE);
        FINISH_CASE(BERT_EPILOGUE_GELU_ERF);
        FINISH_CASE(BERT_EPILOGUE_GELU_TANH);
        FINISH_CASE(BERT_EPILOGUE_RELU);
        FINISH_CASE(BERT_EPILOGUE_SILU);
        FINISH_CASE(BERT_EPILOGUE_TANH);
    }
}

static void scale(float *y, const float *x, float factor, size_t n) {
    const lanes f = lanes_set(factor);
    for (size_t i = 0; i < n; i += 16) store_up_to(y + i, lanes_mul(load_up_to(x + i, n - i, 0.0f), f), n - i);
}

static void softmax(float *y, const float *x, size_t n) {
    lanes max = lanes_set(-INFINITY);
    for (size_t i = 0; i < n; i += 16) max = lanes_greater(load_up_to(x + i, n - i, -INFINITY), max);
    max = lanes_set(lanes_fold_greater(max));
    lanes sum = lanes_set(0.0f);
    for (size_t i = 0; i < n; i += 16) {
        const lanes e = exp_lanes(lanes_sub(load_up_to(x + i, n - i, -INFINITY), max));
        store_up_to(y + i, e, n - i);
        sum = lanes_add(sum, e);
    }
    const float total = lanes_fold_sum(sum);
    const lanes minus_total = lanes_set(-total), reciprocal = lanes_set(1.0f / total);
    for (size_t i = 0; i < n; i += 16)
        store_up_to(y + i, quotient_lanes(load_up_to(y + i, n - i, 0.0f), minus_total, reciprocal), n - i);
}

static float sum_squares(const float *x, size_t n) {
    lanes sum = lanes_set(0.0f);
    for (size_t i = 0; i < n; i += 16) {
        const lanes v = load_up_to(x + i, n - i, 0.0f);
        sum = lanes_fma(v, v, sum);
    }
    return lanes_fold_sum(sum);
}

static int all_finite(const float *x, size_t n) {
    for (size_t i = 0; i < n; i += 16)
        if (!lanes_finite(load_up_to(x + i, n - i, 0.0f))) return 0;
    return 1;
}

/* The table: everything here, and the two operations that each instruction set has of its own. */
#define LANES_TABLE(isa_value, isa_name, tile_rows, tile_panels)                                              \
    {                                                                                                         \
        .isa = isa_value, .name = isa_name, .rows = tile_rows, .panels = tile_panels, .tile = tile,           \
        .pack_panel = pack_panel, .finish = finish, .scale = scale, .softmax = softmax,                       \
        .layer_norm = layer_norm, .sum_squares = sum_squares, .all_finite = all_finite,                       \
    }
