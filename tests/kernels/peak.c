/* tests/kernels/peak.c: how many fused multiply-adds this processor does when nothing else is in the way. */
#include "check.h"

#ifdef __x86_64__
#include <immintrin.h>
#define PEAK(name, target_flags, vec, set, fma)                                                             \
    __attribute__((target(target_flags))) static double name(int rounds) {                                  \
        vec a = set(0.5f), b = a, c = a, d = a, e = a, f = a, g = a, h = a, i = a, j = a, x = set(0.75f);   \
        const double start = seconds();                                                                     \
        for (int round = 0; round < rounds; round++) {                                                      \
            a = fma(x, x, a), b = fma(x, x, b), c = fma(x, x, c), d = fma(x, x, d), e = fma(x, x, e);       \
            f = fma(x, x, f), g = fma(x, x, g), h = fma(x, x, h), i = fma(x, x, i), j = fma(x, x, j);       \
            __asm__ volatile("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e)); /* nothing folds away */    \
            __asm__ volatile("" : "+v"(f), "+v"(g), "+v"(h), "+v"(i), "+v"(j));                             \
        }                                                                                                   \
        return rounds * 10.0 * 2.0 * (sizeof(vec) / sizeof(float)) / (seconds() - start) * 1e-9;            \
    }
PEAK(peak_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps)
PEAK(peak_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps)

static double peak_once(bert_isa isa) {
    return isa == BERT_ISA_AVX512 ? peak_avx512(20000) : peak_avx2(20000);
}
#elif defined(__aarch64__)
#include <arm_neon.h>

static double peak_once(bert_isa isa) {
    enum { ROUNDS = 20000 };
    (void)isa;
    const float32x4_t x = vdupq_n_f32(0.75f);
    float32x4_t a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x, i = x, j = x;
    float32x4_t k = x, l = x, m = x, n = x, o = x, p = x;
    const double start = seconds();
    for (int round = 0; round < ROUNDS; round++) {
        a = vfmaq_f32(a, x, x), b = vfmaq_f32(b, x, x), c = vfmaq_f32(c, x, x), d = vfmaq_f32(d, x, x);
        e = vfmaq_f32(e, x, x), f = vfmaq_f32(f, x, x), g = vfmaq_f32(g, x, x), h = vfmaq_f32(h, x, x);
        i = vfmaq_f32(i, x, x), j = vfmaq_f32(j, x, x), k = vfmaq_f32(k, x, x), l = vfmaq_f32(l, x, x);
        m = vfmaq_f32(m, x, x), n = vfmaq_f32(n, x, x), o = vfmaq_f32(o, x, x), p = vfmaq_f32(p, x, x);
        __asm__ volatile("" : "+w"(a), "+w"(b), "+w"(c), "+w"(d), "+w"(e), "+w"(f), "+w"(g), "+w"(h));
        __asm__ volatile("" : "+w"(i), "+w"(j), "+w"(k), "+w"(l), "+w"(m), "+w"(n), "+w"(o), "+w"(p));
    }
    return ROUNDS * 16.0 * 2.0 * 4.0 / (seconds() - start) * 1e-9;
}
#else
static double peak_once(bert_isa isa) {
    return isa == BERT_ISA_AUTO ? 0.0 : 1.0;
}
#endif

double fma_peak(const bert_kernels *kernels) {
    double best = 0.0;
    for (int i = 0; i < 200; i++) {
        const double peak = peak_once(bert_kernels_isa(kernels));
        if (peak > best) best = peak;
    }
    return best;
}
