/* kernels/lanes.h: everything but the products, written once for all vector instruction sets. The file that includes
 * it has defined `lanes`, 16 floats, and static functions on it:
 *     lanes_set(x)  lanes_load(p)  lanes_load_some(p, n, fill)  lanes_store(p, v)  lanes_store_some(p, v, n)
 *     lanes_add  lanes_sub  lanes_mul  lanes_div  lanes_fma(a, b, c): a·b + c  lanes_negate  lanes_abs  lanes_minus_abs
 *     lanes_greater(a, b): a > b ? a : b   lanes_if_less(a, b, x, y): a < b ? x : y
 *     lanes_zero_if_less(a, b, y): a < b ? +0 : y
 *     lanes_power_of_two(rounded)   lanes_fold_sum(v), lanes_fold_greater(v): the fixed tree   lanes_finite(v)
 * and on `wide`, 16 doubles:
 *     wide_set(x)  wide_load(p): from floats  wide_store(p, v): as floats  wide_add  wide_sub  wide_mul
 *     wide_fold(v): the tree's sum
 * The operations and their order are those of scalar.h, ref.c and norm.h. Tails go through the same code with a fill
 * that changes nothing; only LayerNorm's, which lanes of doubles do not load in part, are norm.h's.
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

/* Polynomials are chains of operations that wait for each other, and a processor looks ahead over too few of them to
 * fill its units with the next values' chains. So GROUP registers of 16 lanes go through the functions side by side;
 * they have names, because compilers leave arrays of vectors on the stack. */
#if GROUP == 3
#define EACH(M, op) M(op, 0), M(op, 1), M(op, 2)
#elif GROUP == 2
#define EACH(M, op) M(op, 0), M(op, 1)
#else
#define EACH(M, op) M(op, 0)
#endif
#define MEMBER(type, i) v##i
typedef struct group {
    lanes EACH(MEMBER, lanes);
} group;
#define OF_1(op, i) op(a.v##i)
#define OF_2(op, i) op(a.v##i, b.v##i)
#define OF_3(op, i) op(a.v##i, b.v##i, c.v##i)
#define OF_4(op, i) op(a.v##i, b.v##i, c.v##i, d.v##i)
#define GROUP_1(op) INLINE group group_##op(group a) { return (group){EACH(OF_1, lanes_##op)}; }
#define GROUP_2(op) INLINE group group_##op(group a, group b) { return (group){EACH(OF_2, lanes_##op)}; }
#define GROUP_3(op) INLINE group group_##op(group a, group b, group c) { return (group){EACH(OF_3, lanes_##op)}; }
GROUP_1(negate) GROUP_1(abs) GROUP_1(minus_abs) GROUP_1(power_of_two)
GROUP_2(add) GROUP_2(sub) GROUP_2(mul) GROUP_2(div) GROUP_2(greater)
GROUP_3(fma) GROUP_3(zero_if_less)
INLINE group group_if_less(group a, group b, group c, group d) { return (group){EACH(OF_4, lanes_if_less)}; }
#define SAME(value, i) value
INLINE group group_of(lanes v) { return (group){EACH(SAME, v)}; }
INLINE group group_set(float x) { return group_of(lanes_set(x)); }

INLINE group horner(const float *c, int degree, group x) {
    group sum = group_set(c[degree]);
#pragma GCC unroll 16
    for (int i = degree - 1; i >= 0; i--) sum = group_fma(sum, x, group_set(c[i]));
    return sum;
}

INLINE group exp_group(group x) {
    const group round = group_set(EXP_ROUND), one = group_set(1.0f);
    const group rounded = group_fma(x, group_set(EXP_LOG2E), round), n = group_sub(rounded, round);
    const group r = group_fma(n, group_set(-EXP_LN2_LOW), group_fma(n, group_set(-EXP_LN2_HIGH), x));
    const group p = group_fma(horner(EXP_POLY, EXP_DEGREE, r), r, one);
    const group power = group_mul(group_fma(p, r, one), group_power_of_two(rounded));
    return group_zero_if_less(x, group_set(EXP_CUT), power);
}

INLINE group tanh_group(group x) {
    const group a = group_abs(x), square = group_mul(x, x), zero = group_set(0.0f), one = group_set(1.0f);
    const group small = group_fma(group_mul(x, square), horner(TANH_POLY, TANH_DEGREE, square), x);
    const group e = exp_group(group_mul(group_set(-2.0f), a));
    const group t = group_sub(one, group_div(group_mul(group_set(2.0f), e), group_add(one, e)));
    return group_if_less(a, group_set(TANH_SMALL), small, group_if_less(x, zero, group_negate(t), t));
}

INLINE group relu_group(group x) {
    return group_greater(group_set(0.0f), x);
}

INLINE group gate_group(group x, group z) {
    const group e = exp_group(group_negate(z));
    const group tail = group_div(e, group_add(group_set(1.0f), e));
    return group_fma(group_minus_abs(x), tail, relu_group(x));
}

INLINE group gelu_erf_group(group x) {
    const group a = group_abs(x);
    const group tail = exp_group(horner(GELU_POLY, GELU_DEGREE, a));
    return group_fma(group_minus_abs(x), tail, relu_group(x));
}

INLINE group gelu_tanh_group(group x) {
    const group a = group_abs(x);
    const group slope = group_fma(group_mul(a, a), group_set(GELU_CUBIC), group_set(GELU_LINEAR));
    return gate_group(x, group_mul(a, slope));
}

INLINE group epilogue_group(bert_epilogue epilogue, group x) {
    switch (epilogue) {
    case BERT_EPILOGUE_GELU_ERF: return gelu_erf_group(x);
    case BERT_EPILOGUE_GELU_TANH: return gelu_tanh_group(x);
    case BERT_EPILOGUE_RELU: return relu_group(x);
    case BERT_EPILOGUE_SILU: return gate_group(x, group_abs(x));
    case BERT_EPILOGUE_TANH: return tanh_group(x);
    case BERT_EPILOGUE_NONE: break;
    }
    return x;
}

/* Up to 16 values at p of each of up to GROUP rows. A row that is not there is the last one again. */
typedef struct group_rows {
    size_t EACH(MEMBER, row);
} group_rows;
#define ROW(first, i) smaller(first + i, last)
INLINE group_rows rows_from(size_t from, size_t last) { return (group_rows){EACH(ROW, from)}; }
#define LOAD(p, i) load_up_to(p + rows.v##i * ld, n, fill)
INLINE group load_rows(const float *p, size_t ld, group_rows rows, size_t n, float fill) {
    return (group){EACH(LOAD, p)};
}
#define STORE(p, i) store_up_to(p + rows.v##i * ld, v.v##i, n)
INLINE void store_rows(float *p, size_t ld, group_rows rows, group v, size_t n) { EACH(STORE, p); }

/* The whole edge for one epilogue, a constant where this is inlined. */
INLINE void finish_as(bert_epilogue epilogue, const bert_linear *linear, const float *totals, size_t ldt, size_t row,
                      size_t rows, size_t col, size_t cols) {
    for (size_t i = 0; i < rows; i += GROUP) {
        const group_rows from = rows_from(i, rows - 1), to = rows_from(row + i, row + rows - 1);
        for (size_t j = 0; j < cols; j += 16) {
            const size_t n = cols - j;
            group v = load_rows(totals + j, ldt, from, n, 0.0f);
            if (linear->bias) v = group_add(v, group_of(load_up_to(linear->bias + col + j, n, 0.0f)));
            v = epilogue_group(epilogue, v);
            if (linear->residual)
                v = group_add(v, load_rows(linear->residual + col + j, linear->ldr, to, n, 0.0f));
            store_rows(linear->y + col + j, linear->ldy, to, v, n);
        }
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

#define FOLD_GREATER(a, i) lanes_set(lanes_fold_greater(a.v##i))
#define FOLD_SUM(a, i) lanes_set(lanes_fold_sum(a.v##i))
INLINE group group_fold_greater(group a) { return (group){EACH(FOLD_GREATER, a)}; }
INLINE group group_fold_sum(group a) { return (group){EACH(FOLD_SUM, a)}; }

INLINE group quotient(group a, group minus_b, group reciprocal) {
    const group q = group_mul(a, reciprocal);
    return group_fma(group_fma(q, minus_b, a), reciprocal, q);
}

/* Rows side by side: the maximum, the sum and its reciprocal of one are long waits. A row alone is computed GROUP
 * times; only heads have such, and their products cost far more. */
INLINE void softmax_rows(float *y, size_t ldy, const float *x, size_t ldx, group_rows rows, float factor, size_t n) {
    const group scale = group_set(factor);
    group max = group_set(-INFINITY), sum = group_set(0.0f);
    for (size_t j = 0; j < n; j += 16)
        max = group_greater(group_mul(load_rows(x + j, ldx, rows, n - j, -INFINITY), scale), max);
    max = group_fold_greater(max);
    for (size_t j = 0; j < n; j += 16) {
        const group scores = group_mul(load_rows(x + j, ldx, rows, n - j, -INFINITY), scale);
        const group e = exp_group(group_sub(scores, max));
        store_rows(y + j, ldy, rows, e, n - j);
        sum = group_add(sum, e);
    }
    sum = group_fold_sum(sum);
    const group minus_sum = group_negate(sum), reciprocal = group_div(group_set(1.0f), sum);
    for (size_t j = 0; j < n; j += 16)
        store_rows(y + j, ldy, rows, quotient(load_rows(y + j, ldy, rows, n - j, 0.0f), minus_sum, reciprocal), n - j);
}

static void softmax(float *y, size_t ldy, const float *x, size_t ldx, float factor, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i += GROUP) softmax_rows(y, ldy, x, ldx, rows_from(i, rows - 1), factor, n);
}

/* A row's mean and 1/√(variance + eps), in every lane. */
typedef struct row_norm {
    wide mean, scale;
} row_norm;

INLINE row_norm norm_of(const float *x, float eps, size_t h) {
    wide sum = wide_set(0.0), squares = sum;
    for (size_t i = 0; i < h; i += 16) sum = wide_add(sum, wide_load(x + i));
    const wide mean = wide_set(wide_fold(sum) / (double)h);
    for (size_t i = 0; i < h; i += 16) {
        const wide d = wide_sub(wide_load(x + i), mean);
        squares = wide_add(squares, wide_mul(d, d));
    }
    return (row_norm){mean, wide_set(1.0 / sqrt(wide_fold(squares) / (double)h + (double)eps))};
}

/* Rows side by side share gamma and beta: turning floats into doubles is most of the work. All are read before one is
 * written, because the last row may stand for those that are not there, and y may be x. */
typedef struct group_norm {
    row_norm EACH(MEMBER, norm);
} group_norm;
typedef struct group_wide {
    wide EACH(MEMBER, wide);
} group_wide;
INLINE wide normalized(const float *x, row_norm norm, wide gamma, wide beta) {
    return wide_add(wide_mul(wide_mul(wide_sub(wide_load(x), norm.mean), norm.scale), gamma), beta);
}
#define NORM_OF(p, i) norm_of(p + rows.v##i * ldx, eps, h)
#define NORMALIZED(p, i) normalized(p + rows.v##i * ldx, norms.v##i, g, b)
#define STORE_WIDE(p, i) wide_store(p + rows.v##i * ldy, values.v##i)
INLINE void norm_rows(float *y, size_t ldy, const float *x, size_t ldx, group_rows rows, const float *gamma,
                      const float *beta, float eps, size_t h) {
    const group_norm norms = {EACH(NORM_OF, x)};
    for (size_t j = 0; j < h; j += 16) {
        const wide g = wide_load(gamma + j), b = wide_load(beta + j);
        const group_wide values = {EACH(NORMALIZED, x + j)};
        EACH(STORE_WIDE, y + j);
    }
}

static void layer_norm(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma, const float *beta,
                       float eps, size_t rows, size_t h) {
    if (h % 16 > 0) { /* no well-known model */
        layer_norm_rows(y, ldy, x, ldx, gamma, beta, eps, rows, h);
        return;
    }
    for (size_t i = 0; i < rows; i += GROUP) norm_rows(y, ldy, x, ldx, rows_from(i, rows - 1), gamma, beta, eps, h);
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
