/* kernels/polynomials.h: the constants of exp, GELU and tanh, the same for every instruction set. Polynomials have
 * their lowest power first and are evaluated by Horner's rule, one fma a step (docs/numerics.md).
 */
#ifndef BERT_KERNELS_POLYNOMIALS_H
#define BERT_KERNELS_POLYNOMIALS_H

/* exp(x) = 2ⁿ · (1 + r + r²·P(r)), n = round(x·log2 e), r = x − n·ln 2. */
#define EXP_LOG2E 0x1.715476p+0f
#define EXP_ROUND 0x1.8p+23f      /* adding it rounds to an integer, which then sits in the low bits */
#define EXP_LN2_HIGH 0x1.62e4p-1f /* 15 bits, so n · EXP_LN2_HIGH is exact */
#define EXP_LN2_LOW 0x1.7f7d1cp-20f
#define EXP_CUT (-69.0f) /* exp is +0 below: even the remainders of dividing what is kept by a sum are exact */

/* 2·√(2/π) and 0.044715 times it: tanh GELU is x·σ(a·(LINEAR + CUBIC·a²)). */
#define GELU_LINEAR 0x1.988454p+0f
#define GELU_CUBIC 0x1.2444f2p-4f

#define TANH_SMALL 0.625f /* below it tanh(x) = x + x³·P(x²) */

/* Printed by scripts/fit_polynomials.py. */
/* weighted error of the fit: 3.2e-09 */
static const float EXP_POLY[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558bcp-5f, 0x1.1239c6p-7f, 0x1.6a4154p-10f};
/* weighted error of the fit: 5.2e-09 */
static const float GELU_POLY[] = {-0x1.62e43p-1f, -0x1.98845ap-1f, -0x1.45f222p-2f, -0x1.29cc72p-5f,
                                  0x1.3bc70cp-8f, -0x1.03b86p-19f, -0x1.94cb8cp-13f, 0x1.ba257cp-15f,
                                  -0x1.f9681ep-18f, 0x1.3a71fap-21f, -0x1.4e6f1ap-26f};
/* weighted error of the fit: 5.1e-09 */
static const float TANH_POLY[] = {-0x1.55552ep-2f, 0x1.110614p-3f, -0x1.b8173ap-5f, 0x1.512d48p-6f, -0x1.716ccp-8f};

enum { EXP_DEGREE = 4, GELU_DEGREE = 10, TANH_DEGREE = 4 };

#endif
