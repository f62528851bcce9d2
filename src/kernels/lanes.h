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

/* Polynomials are chains of operations that wait for each other, and a processor looks ahead over too few of them to
 * fill its units with the next values' chains. So GROUP registers of 16 lanes go through the functions side by side;
 * they have names, because compilers leave arrays of vectors on the stack. */
#if GROUP == 4
#define EACH(M, op) M(op, 0), M(op, 1), M(op, 2), M(op, 3)
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

#if GROUP == 4
#define IN_ORDER(sum, a) lanes_add(lanes_add(lanes_add(lanes_add(sum, a.v0), a.v1), a.v2), a.v3)
#elif GROUP == 2
#define IN_ORDER(sum, a) lanes_add(lanes_add(sum, a.v0), a.v1)
#else
#define IN_ORDER(sum, a) lanes_add(sum, a.v0)
#endif
INLINE lanes add_in_order(lanes sum, group a) { return IN_ORDER(sum, a); }

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
#define LOAD(p, i) load_up_to(p + rows.v##i * ld, n, 0.0f)
INLINE group load_rows(const float *p, size_t ld, group_rows rows, size_t n) { return (group){EACH(LOAD, p)}; }
#define STORE(p, i) store_up_to(p + rows.v##i * ld, v.v##i, n)
INLINE void store_rows(float *p, size_t ld, group_rows rows, group v, size_t n) { EACH(STORE, p); }

/* The whole edge for one epilogue, a constant where this is inlined. */
INLINE void finish_as(bert_epilogue epilogue, const bert_linear *linear, const float *totals, size_t ldt, size_t row,
                      size_t rows, size_t col, size_t cols) {
    for (size_t j = 0; j < cols; j += 16) {
        const size_t n = cols - j;
        const group bias = group_of(linear->bias ? load_up_to(linear->bias + col + j, n, 0.0f) : lanes_set(0.0f));
        for (size_t i = 0; i < rows; i += GROUP) {
            const group_rows from = rows_from(i, rows - 1), to = rows_from(row + i, row + rows - 1);
            group v = load_rows(totals + j, ldt, from, n);
            if (linear->bias) v = group_add(v, bias);
            v = epilogue_group(epilogue, v);
            if (linear->residual) v = group_add(v, load_rows(linear->residual + col + j, linear->ldr, to, n));
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

/* Values [i, i + 16·GROUP) of n; those that are not there are `fill`. */
#define LOAD_PART(p, k) i + 16 * k < n ? load_up_to(p + i + 16 * k, n - i - 16 * k, fill) : lanes_set(fill)
INLINE group load_run(const float *p, size_t i, size_t n, float fill) { return (group){EACH(LOAD_PART, p)}; }
#define STORE_PART(p, k) (i + 16 * k < n ? store_up_to(p + i + 16 * k, v.v##k, n - i - 16 * k) : (void)0)
INLINE void store_run(float *p, size_t i, size_t n, group v) { EACH(STORE_PART, p); }

INLINE lanes quotient(lanes a, lanes minus_b, lanes reciprocal) {
    const lanes q = lanes_mul(a, reciprocal);
    return lanes_fma(lanes_fma(q, minus_b, a), reciprocal, q);
}

static void softmax(float *y, const float *x, size_t n) {
    lanes max = lanes_set(-INFINITY), sum = lanes_set(0.0f);
    for (size_t i = 0; i < n; i += 16) max = lanes_greater(load_up_to(x + i, n - i, -INFINITY), max);
    const group shift = group_set(lanes_fold_greater(max));
    for (size_t i = 0; i < n; i += 16 * GROUP) {
        const group e = exp_group(group_sub(load_run(x, i, n, -INFINITY), shift));
        store_run(y, i, n, e);
        sum = add_in_order(sum, e);
    }
    const float total = lanes_fold_sum(sum);
    const lanes minus_total = lanes_set(-total), reciprocal = lanes_set(1.0f / total);
    for (size_t i = 0; i < n; i += 16)
        store_up_to(y + i, quotient(load_up_to(y + i, n - i, 0.0f), minus_total, reciprocal), n - i);
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
