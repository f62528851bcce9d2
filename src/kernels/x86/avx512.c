/* kernels/x86/avx512.c: AVX-512 F, DQ, BW, VL. Tiles of 9 rows x 48 columns: 27 sums in 32 registers. Alone on its core
 * 12 x 32 is as fast. But a hyperthread beside it takes half of the decoder, and then what counts is how few
 * instructions a product takes: here 35 for 27, there 34 for 24.
 */
#include <immintrin.h>
#include <stddef.h>

/* The register tile: three panels side by side. */
typedef __m512 vec;
#define VEC_FLOATS 16
#define vec_zero() _mm512_setzero_ps()
#define vec_set(x) _mm512_set1_ps(x)
#define vec_load(p) _mm512_loadu_ps(p)
#define vec_store(p, v) _mm512_storeu_ps(p, v)
#define vec_add(a, b) _mm512_add_ps(a, b)
#define vec_accumulate(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#define vec_accumulate_at(sum, x, b) __asm__("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(sum) : "m"(x), "v"(b))
#define TILE_STRIDE(t) ((t)->ldw)
#define TILE_EACH_ROW(M) \
    M(0, x0, 0) M(1, x0, 1) M(2, x1, 0) M(3, x1, 1) M(4, x2, 0) M(5, x2, 1) M(6, x3, 0) M(7, x3, 1) M(8, x3, 2)
#include "kernels/x86/tile.h"

#define TILE_FUNCTIONS(n)                                                       \
    static void tile_##n##x16(const bert_tile *tile) { tile_body(tile, n, 1); } \
    static void tile_##n##x32(const bert_tile *tile) { tile_body(tile, n, 2); } \
    static void tile_##n##x48(const bert_tile *tile) { tile_body(tile, n, 3); }
TILE_FUNCTIONS(1)
TILE_FUNCTIONS(2)
TILE_FUNCTIONS(3)
TILE_FUNCTIONS(4)
TILE_FUNCTIONS(5)
TILE_FUNCTIONS(6)
TILE_FUNCTIONS(7)
TILE_FUNCTIONS(8)
TILE_FUNCTIONS(9)

static void tile(const bert_tile *tile) {
#define TILES(n) {tile_##n##x16, tile_##n##x32, tile_##n##x48}
    static void (*const by_shape[9][BERT_TILE_PANELS])(const bert_tile *) = {
        TILES(1), TILES(2), TILES(3), TILES(4), TILES(5), TILES(6), TILES(7), TILES(8), TILES(9)};
    by_shape[tile->rows - 1][tile->panels - 1](tile);
}

/* Sixteen lanes are one register. */
typedef __m512 lanes;
#define LANES static inline __attribute__((always_inline)) lanes
static inline __mmask16 first(size_t n) { return (__mmask16)((1u << n) - 1); }
LANES lanes_set(float x) { return _mm512_set1_ps(x); }
LANES lanes_load(const float *p) { return _mm512_loadu_ps(p); }
LANES lanes_load_some(const float *p, size_t n, float fill) {
    return _mm512_mask_loadu_ps(_mm512_set1_ps(fill), first(n), p);
}
static inline void lanes_store(float *p, lanes v) { _mm512_storeu_ps(p, v); }
static inline void lanes_store_some(float *p, lanes v, size_t n) { _mm512_mask_storeu_ps(p, first(n), v); }
LANES lanes_add(lanes a, lanes b) { return _mm512_add_ps(a, b); }
LANES lanes_sub(lanes a, lanes b) { return _mm512_sub_ps(a, b); }
LANES lanes_mul(lanes a, lanes b) { return _mm512_mul_ps(a, b); }
LANES lanes_div(lanes a, lanes b) { return _mm512_div_ps(a, b); }
LANES lanes_fma(lanes a, lanes b, lanes c) { return _mm512_fmadd_ps(a, b, c); }
LANES lanes_negate(lanes a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
LANES lanes_abs(lanes a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }
LANES lanes_minus_abs(lanes a) { return _mm512_or_ps(_mm512_set1_ps(-0.0f), a); }
LANES lanes_greater(lanes a, lanes b) { return _mm512_max_ps(a, b); } /* b for equal values and for NaN */
LANES lanes_if_less(lanes a, lanes b, lanes x, lanes y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
LANES lanes_zero_if_less(lanes a, lanes b, lanes y) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ), y);
}
LANES lanes_power_of_two(lanes rounded) {
    const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(rounded), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(n, _mm512_set1_epi32(0x3f800000)));
}
static inline int lanes_finite(lanes v) {
    return _mm512_cmp_ps_mask(lanes_abs(v), _mm512_set1_ps(__FLT_MAX__), _CMP_LE_OQ) == 0xffff;
}

/* Lane i and lane i + 8, then + 4, + 2, + 1. */
#define FOLD(name, op8, op4)                                                              \
    static inline float name(lanes v) {                                                   \
        __m256 a = op8(_mm512_extractf32x8_ps(v, 1), _mm512_castps512_ps256(v));          \
        __m128 b = op4(_mm256_extractf128_ps(a, 1), _mm256_castps256_ps128(a));           \
        b = op4(_mm_movehl_ps(b, b), b);                                                  \
        return _mm_cvtss_f32(op4(_mm_movehdup_ps(b), b));                                 \
    }
FOLD(lanes_fold_sum, _mm256_add_ps, _mm_add_ps)
FOLD(lanes_fold_greater, _mm256_max_ps, _mm_max_ps)

/* Sixteen doubles are two registers. */
typedef struct wide {
    __m512d low, high;
} wide;
#define WIDE static inline __attribute__((always_inline)) wide
#define BOTH(operation) (wide){operation(a.low, b.low), operation(a.high, b.high)}
WIDE wide_set(double x) { return (wide){_mm512_set1_pd(x), _mm512_set1_pd(x)}; }
WIDE wide_load(const float *p) {
    return (wide){_mm512_cvtps_pd(_mm256_loadu_ps(p)), _mm512_cvtps_pd(_mm256_loadu_ps(p + 8))};
}
static inline void wide_store(float *p, wide v) {
    _mm256_storeu_ps(p, _mm512_cvtpd_ps(v.low));
    _mm256_storeu_ps(p + 8, _mm512_cvtpd_ps(v.high));
}
WIDE wide_add(wide a, wide b) { return BOTH(_mm512_add_pd); }
WIDE wide_sub(wide a, wide b) { return BOTH(_mm512_sub_pd); }
WIDE wide_mul(wide a, wide b) { return BOTH(_mm512_mul_pd); }
static inline double wide_fold(wide v) {
    const __m512d eight = _mm512_add_pd(v.low, v.high);
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

#include "kernels/x86/transpose.h"

#define GROUP 3
#include "kernels/lanes.h"

const bert_kernels bert_kernels_avx512 = LANES_TABLE(BERT_ISA_AVX512, "avx512", 9, BERT_TILE_PANELS);
