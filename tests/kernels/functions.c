/* tests/kernels/functions.c: exp, tanh, the activations, softmax, LayerNorm and the sums. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels/scalar.h"

/* What a function may be wrong by: `absolute` for negative results of the activations, which are small differences,
 * and `ulps` for all others. Stated in docs/numerics.md, found by --all-floats. */
typedef struct math_function {
    const char *name;
    bert_epilogue epilogue; /* NONE: exp, which is not an epilogue */
    double (*truth)(double x);
    double low, high; /* where the bound holds */
    double ulps, absolute; /* absolute 0: ulps everywhere */
} math_function;

static double phi(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
static double gelu_erf(double x) { return x * phi(x); }
static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static double gelu_tanh(double x) { return x * sigmoid(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)); }
static double silu(double x) { return x * sigmoid(x); }

static const math_function functions[] = {
    {"exp", BERT_EPILOGUE_NONE, exp, EXP_CUT, 88.0, 0.90, 0.0},
    {"tanh", BERT_EPILOGUE_TANH, tanh, -FLT_MAX, FLT_MAX, 1.45, 0.0},
    {"gelu_erf", BERT_EPILOGUE_GELU_ERF, gelu_erf, -FLT_MAX, FLT_MAX, 1.60, 4.5e-8},
    {"gelu_tanh", BERT_EPILOGUE_GELU_TANH, gelu_tanh, -FLT_MAX, FLT_MAX, 1.90, 5.0e-8},
    {"silu", BERT_EPILOGUE_SILU, silu, -FLT_MAX, FLT_MAX, 1.80, 5.5e-8},
};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

static void apply(const bert_kernels *kernels, const math_function *function, float *y, const float *x, size_t n) {
    if (function->epilogue == BERT_EPILOGUE_NONE) {
        for (size_t i = 0; i < n; i++) y[i] = exp_scalar(x[i]);
        return;
    }
    const bert_linear linear = {.y = y, .ldy = n, .epilogue = function->epilogue, .t = 1, .n = n};
    kernels->finish(&linear, x, n, 0, 1, 0, n);
}

/* Distance in units of the last place of the true value; subnormals count as the smallest normal does. */
static double ulps(double y, double truth) {
    int exponent;
    frexp(truth, &exponent);
    return fabs(y - truth) / ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

typedef struct worst_case {
    double ulps, absolute;
    float ulps_at, absolute_at;
} worst_case;

static void compare(const math_function *function, worst_case *worst, const float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] >= function->low && x[i] <= function->high)) continue;
        const double truth = function->truth(x[i]), units = ulps(y[i], truth), off = fabs(y[i] - truth);
        if (fabs(truth) > FLT_MAX) continue;
        if (function->absolute > 0.0 && x[i] < 0.0f) {
            if (!(off <= worst->absolute)) worst->absolute = off, worst->absolute_at = x[i];
        } else if (!(units <= worst->ulps)) {
            worst->ulps = units, worst->ulps_at = x[i];
        }
    }
}

static void check_bounds(const char *isa, const math_function *function, const worst_case *worst) {
    CHECK(worst->ulps <= function->ulps, "%s %s: %.3f ulp off at %a", isa, function->name, worst->ulps,
          (double)worst->ulps_at);
    CHECK(worst->absolute <= function->absolute, "%s %s: %.3g off at %a", isa, function->name, worst->absolute,
          (double)worst->absolute_at);
}

static void check_function(const bert_kernels *kernels, const math_function *function) {
    enum { COUNT = 200000 };
    float *x = floats(COUNT), *y = floats(COUNT), *expected = floats(COUNT);
    for (size_t i = 0; i < COUNT; i++) x[i] = i % 2 ? random_edge() : random_float() * 12.0f;
    apply(kernels, function, y, x, COUNT);
    apply(&bert_kernels_ref, function, expected, x, COUNT);
    CHECK(memcmp(y, expected, COUNT * sizeof *y) == 0, "%s %s: other bits than ref", kernels->name, function->name);
    worst_case worst = {0};
    compare(function, &worst, x, y, COUNT);
    check_bounds(kernels->name, function, &worst);
    free(x), free(y), free(expected);
}

/* Blocks of floats are compared with double precision where anything happens: 2⁻³² < |x| < 128; elsewhere, where the
 * functions are straight lines, every 16th block. */
static int worth_comparing(uint64_t first) {
    const uint64_t exponent = first >> 23 & 0xff;
    return (exponent > 127 - 32 && exponent < 127 + 7) || (first >> 16) % 16 == 0;
}

/* Every float, in blocks: the best instruction set against ref, and against double precision. */
int all_floats(const char *name) {
    const math_function *function = NULL;
    for (size_t i = 0; i < N_FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0) function = &functions[i];
    if (!function) return fprintf(stderr, "unknown function \"%s\"\n", name), 2;
    enum { BLOCK = 1 << 16 };
    float *x = floats(BLOCK), *y = floats(BLOCK), *expected = floats(BLOCK);
    const bert_kernels *kernels = bert_kernels_get(BERT_ISA_AUTO);
    worst_case worst = {0};
    for (uint64_t first = 0; first < UINT64_C(1) << 32; first += BLOCK) {
        size_t n = 0;
        for (uint32_t i = 0; i < BLOCK; i++) {
            const uint32_t bits = (uint32_t)first + i;
            memcpy(&x[n], &bits, sizeof bits);
            n += isfinite(x[n]) ? 1 : 0;
        }
        apply(kernels, function, y, x, n);
        apply(&bert_kernels_ref, function, expected, x, n);
        CHECK(memcmp(y, expected, n * sizeof *y) == 0, "%s: other bits than ref from %08x on", name, (unsigned)first);
        if (worth_comparing(first)) compare(function, &worst, x, y, n);
    }
    printf("%s on %s: %.3f ulp (at %a)", name, kernels->name, worst.ulps, (double)worst.ulps_at);
    if (function->absolute > 0.0) printf("; below 0: %.3g (at %a)", worst.absolute, (double)worst.absolute_at);
    printf("\n");
    check_bounds(kernels->name, function, &worst);
    free(x), free(y), free(expected);
    return failures > 0;
}

static void check_row(const bert_kernels *kernels, const char *what, const float *y, const float *expected, size_t n) {
    CHECK(memcmp(y, expected, n * sizeof *y) == 0, "%s %s, n %zu: other bits than ref", kernels->name, what, n);
}

static void check_softmax(const bert_kernels *kernels, const float *x, size_t n, float *y, float *expected) {
    kernels->softmax(y, n, x, n, 1.0f, 1, n);
    bert_kernels_ref.softmax(expected, n, x, n, 1.0f, 1, n);
    check_row(kernels, "softmax", y, expected, n);
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += y[i];
    CHECK(fabs(sum - 1.0) <= 1e-6, "%s softmax, n %zu: sums to %.9f", kernels->name, n, sum);
}

static void check_norm(const bert_kernels *kernels, const float *x, size_t n, float *y, float *expected) {
    const float *gamma = x + 1, *beta = x + 2;
    kernels->layer_norm(y, n, x, n, gamma, beta, 1e-12f, 1, n);
    bert_kernels_ref.layer_norm(expected, n, x, n, gamma, beta, 1e-12f, 1, n);
    check_row(kernels, "layer_norm", y, expected, n);
    double mean = 0.0, var = 0.0;
    for (size_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (size_t i = 0; i < n && n > 16; i++) {
        const double truth = (x[i] - mean) / sqrt(var + 1e-12) * gamma[i] + beta[i];
        CHECK(fabs(y[i] - truth) <= 2e-6, "%s layer_norm, n %zu: %.9g, truth %.9g", kernels->name, n, (double)y[i],
              truth);
    }
}

/* Rows that go through side by side, fewer in the last group: each is as it is alone, and nothing between them is
 * touched. */
static void check_side_by_side(const bert_kernels *kernels, size_t rows, size_t n) {
    enum { GAP = 3 };
    const size_t ld = n + GAP, all = rows * ld;
    float *x = floats(all), *y = floats(all), *expected = floats(all), *gamma = floats(n), *beta = floats(n);
    for (size_t i = 0; i < all; i++) expected[i] = y[i] = x[i] = random_float() * 9.0f;
    for (size_t i = 0; i < n; i++) gamma[i] = random_float(), beta[i] = random_float();
    kernels->softmax(y, ld, x, ld, 0.3f, rows, n);
    bert_kernels_ref.softmax(expected, ld, x, ld, 0.3f, rows, n); /* takes one after the other */
    check_row(kernels, "softmax of rows", y, expected, all);
    memcpy(y, x, all * sizeof *y);
    kernels->softmax(y, ld, y, ld, 0.3f, rows, n);
    check_row(kernels, "softmax of rows in place", y, expected, all);
    kernels->layer_norm(y, ld, x, ld, gamma, beta, 1e-12f, rows, n);
    bert_kernels_ref.layer_norm(expected, ld, x, ld, gamma, beta, 1e-12f, rows, n);
    check_row(kernels, "layer_norm of rows", y, expected, all);
    memcpy(y, x, all * sizeof *y);
    kernels->layer_norm(y, ld, y, ld, gamma, beta, 1e-12f, rows, n);
    check_row(kernels, "layer_norm of rows in place", y, expected, all);
    free(x), free(y), free(expected), free(gamma), free(beta);
}

static void check_rows(const bert_kernels *kernels, size_t n) {
    float *x = floats(n + 3), *y = floats(n), *expected = floats(n);
    for (size_t i = 0; i < n + 3; i++) x[i] = random_float();
    const float *odd = x + 1; /* no alignment but that of a float */
    kernels->scale(y, odd, 0.125f, n);
    bert_kernels_ref.scale(expected, odd, 0.125f, n);
    check_row(kernels, "scale", y, expected, n);
    const float sum = kernels->sum_squares(odd, n), expected_sum = bert_kernels_ref.sum_squares(odd, n);
    check_row(kernels, "sum_squares", &sum, &expected_sum, 1);
    if (n > 0) {
        check_norm(kernels, x, n, y, expected);
        check_softmax(kernels, odd, n, y, expected);
        for (size_t i = 0; i < n; i++) x[1 + i] = random_float() * 1e30f;
        check_softmax(kernels, odd, n, y, expected);
        for (size_t i = 0; i < n; i++) x[1 + i] = random_edge();
        check_softmax(kernels, odd, n, y, expected);
        memcpy(y, odd, n * sizeof *y);
        kernels->softmax(y, n, y, n, 1.0f, 1, n);
        check_row(kernels, "softmax in place", y, expected, n);
        for (size_t rows = 1; rows <= 5; rows++) check_side_by_side(kernels, rows, n);
    }
    free(x), free(y), free(expected);
}

static void check_finite(const bert_kernels *kernels) {
    float x[40];
    for (size_t n = 0; n <= 40; n++) {
        for (size_t i = 0; i < 40; i++) x[i] = i < n ? random_edge() : NAN;
        CHECK(kernels->all_finite(x, n), "%s all_finite, n %zu: refuses finite values", kernels->name, n);
        for (size_t bad = 0; bad < n; bad++) {
            const float good = x[bad];
            x[bad] = bad % 3 == 0 ? NAN : bad % 3 == 1 ? INFINITY : -INFINITY;
            CHECK(!kernels->all_finite(x, n), "%s all_finite, n %zu: misses place %zu", kernels->name, n, bad);
            x[bad] = good;
        }
    }
}

void check_functions(const bert_kernels *kernels) {
    random_seed(1);
    for (size_t i = 0; i < N_FUNCTIONS; i++) check_function(kernels, &functions[i]);
    for (size_t n = 0; n <= 70; n++) check_rows(kernels, n);
    check_rows(kernels, 384);
    check_rows(kernels, 1001);
    check_finite(kernels);
}
