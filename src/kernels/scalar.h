/* kernels/scalar.h: exp, tanh and the activations for one value: the specification that docs/numerics.md describes.
 * The vector bodies in lanes.h do the same operations in the same order.
 */
#ifndef BERT_KERNELS_SCALAR_H
#define BERT_KERNELS_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/polynomials.h"

static inline float horner(const float *c, int degree, float x) {
    float sum = c[degree];
    for (int i = degree - 1; i >= 0; i--) sum = fmaf(sum, x, c[i]);
    return sum;
}

/* 2ⁿ for the n that adding EXP_ROUND left in the low bits of `rounded`. */
static inline float power_of_two(float rounded) {
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    bits = (bits << 23) + 0x3f800000u;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* eˣ for x <= 88; +0 below EXP_CUT. */
static inline float exp_scalar(float x) {
    if (x < EXP_CUT) return 0.0f;
    const float rounded = fmaf(x, EXP_LOG2E, EXP_ROUND), n = rounded - EXP_ROUND;
    const float r = fmaf(n, -EXP_LN2_LOW, fmaf(n, -EXP_LN2_HIGH, x));
    const float p = fmaf(horner(EXP_POLY, EXP_DEGREE, r), r, 1.0f);
    return fmaf(p, r, 1.0f) * power_of_two(rounded);
}

/* a / b for many a: the product with 1/b, corrected by its exact remainder; within 0.5001 ulp. Division itself would
 * take most of the softmax's time. */
static inline float quotient_scalar(float a, float b, float reciprocal) {
    const float q = a * reciprocal;
    return fmaf(fmaf(-q, b, a), reciprocal, q);
}

static inline float tanh_scalar(float x) {
    const float a = fabsf(x), square = x * x;
    if (a < TANH_SMALL) return fmaf(x * square, horner(TANH_POLY, TANH_DEGREE, square), x);
    const float e = exp_scalar(-2.0f * a);
    const float t = 1.0f - 2.0f * e / (1.0f + e);
    return x < 0.0f ? -t : t;
}

/* max(0, x), NaN for NaN. */
static inline float relu_scalar(float x) {
    return 0.0f > x ? 0.0f : x;
}

/* x·σ(z) for z of the sign of x, |z| given: max(0, x) − |x|·e^−|z| / (1 + e^−|z|). */
static inline float gate_scalar(float x, float z) {
    const float e = exp_scalar(-z);
    return fmaf(-fabsf(x), e / (1.0f + e), relu_scalar(x));
}

/* x·Φ(x) = max(0, x) − a·Φ(−a), a = |x|, where Φ(−a) = e^P(a). Nothing cancels, so the tails are good too. */
static inline float gelu_erf_scalar(float x) {
    const float a = fabsf(x);
    return fmaf(-a, exp_scalar(horner(GELU_POLY, GELU_DEGREE, a)), relu_scalar(x));
}

static inline float gelu_tanh_scalar(float x) {
    const float a = fabsf(x);
    return gate_scalar(x, a * fmaf(a * a, GELU_CUBIC, GELU_LINEAR));
}

static inline float epilogue_scalar(bert_epilogue epilogue, float x) {
    switch (epilogue) {
    case BERT_EPILOGUE_GELU_ERF: return gelu_erf_scalar(x);
    case BERT_EPILOGUE_GELU_TANH: return gelu_tanh_scalar(x);
    case BERT_EPILOGUE_RELU: return relu_scalar(x);
    case BERT_EPILOGUE_SILU: return gate_scalar(x, fabsf(x));
    case BERT_EPILOGUE_TANH: return tanh_scalar(x);
    case BERT_EPILOGUE_NONE: break;
    }
    return x;
}

#endif
