/* kernels/x86/avx2.c: AVX2 and FMA. Tiles of 6 rows x 16 columns: 12 sums in 16 registers. */
#include <immintrin.h>
#include <stddef.h>

/* The register tile: the two halves of one panel. */
typedef __m256 vec;
#define VEC_FLOATS 8
#define vec_zero() _mm256_setzero_ps()
#define vec_set(x) _mm256_set1_ps(x)
#define vec_load(p) _mm256_loadu_ps(p)
#define vec_store(p, v) _mm256_storeu_ps(p, v)
#define vec_add(a, b) _mm256_add_ps(a, b)
#define vec_accumulate(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b))
#define vec_accumulate_at(sum, x, b) vec_accumulate(sum, vec_set(x), b) /* compilers load x once for all */
#define TILE_STRIDE(t) VEC_FLOATS
#define TILE_EACH_ROW(M) M(0, x0, 0) M(1, x0, 1) M(2, x1, 0) M(3, x1, 1) M(4, x2, 0) M(5, x2, 1)
#include "kernels/x86/tile.h"

#define TILE_FUNCTION(n) static void tile_##n##x16(const bert_tile *tile) { tile_body(tile, n, 2); }
TILE_FUNCTION(1)
TILE_FUNCTION(2)
TILE_FUNCTION(3)
TILE_FUNCTION(4)
TILE_FUNCTION(5)
TILE_FUNCTION(6)

static void tile(const bert_tile *tile) {
    static void (*const by_rows[6])(const bert_tile *) = {tile_1x16, tile_2x16, tile_3x16,
                                                          tile_4x16, tile_5x16, tile_6x16};
    by_rows[tile->rows - 1](tile);
}

/* Sixteen lanes are two registers. */
typedef struct lanes {
    __m256 low, high;
} lanes;
#define LANES static inline __attribute__((always_inline)) lanes
#define BOTH(operation) (lanes){operation(a.low, b.low), operation(a.high, b.high)}

/* All bits set in the first n of eight lanes, beginning with lane `from`. */
static inline __m256i first(size_t n, int from) {
    const __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(from));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}
static inline __m256 load_half(const float *p, __m256i mask, float fill) {
    return _mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}

LANES lanes_set(float x) { return (lanes){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
LANES lanes_load(const float *p) { return (lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
LANES lanes_load_some(const float *p, size_t n, float fill) {
    return (lanes){load_half(p, first(n, 0), fill), n > 8 ? load_half(p + 8, first(n, 8), fill) : _mm256_set1_ps(fill)};
}
static inline void lanes_store(float *p, lanes v) {
    _mm256_storeu_ps(p, v.low);
    _mm256_storeu_ps(p + 8, v.high);
}
static inline void lanes_store_some(float *p, lanes v, size_t n) {
    _mm256_maskstore_ps(p, first(n, 0), v.low);
    if (n > 8) _mm256_maskstore_ps(p + 8, first(n, 8), v.high);
}
LANES lanes_add(lanes a, lanes b) { return BOTH(_mm256_add_ps); }
LANES lanes_sub(lanes a, lanes b) { return BOTH(_mm256_sub_ps); }
LANES lanes_mul(lanes a, lanes b) { return BOTH(_mm256_mul_ps); }
LANES lanes_div(lanes a, lanes b) { return BOTH(_mm256_div_ps); }
LANES lanes_fma(lanes a, lanes b, lanes c) {
    return (lanes){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
LANES lanes_negate(lanes a) {
    const lanes b = lanes_set(-0.0f);
    return BOTH(_mm256_xor_ps);
}
LANES lanes_abs(lanes b) {
    const lanes a = lanes_set(-0.0f);
    return BOTH(_mm256_andnot_ps);
}
LANES lanes_minus_abs(lanes a) {
    const lanes b = lanes_set(-0.0f);
    return BOTH(_mm256_or_ps);
}
LANES lanes_greater(lanes a, lanes b) { return BOTH(_mm256_max_ps); } /* b for equal values and for NaN */
static inline __m256 half_if_less(__m256 a, __m256 b, __m256 x, __m256 y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
LANES lanes_if_less(lanes a, lanes b, lanes x, lanes y) {
    return (lanes){half_if_less(a.low, b.low, x.low, y.low), half_if_less(a.high, b.high, x.high, y.high)};
}
static inline __m256 half_zero_if_less(__m256 a, __m256 b, __m256 y) {
    return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_NLT_UQ), y);
}
LANES lanes_zero_if_less(lanes a, lanes b, lanes y) {
    return (lanes){half_zero_if_less(a.low, b.low, y.low), half_zero_if_less(a.high, b.high, y.high)};
}
static inline __m256 half_power_of_two(__m256 rounded) {
    const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(rounded), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(n, _mm256_set1_epi32(0x3f800000)));
}
LANES lanes_power_of_two(lanes rounded) {
    return (lanes){half_power_of_two(rounded.low), half_power_of_two(rounded.high)};
}
static inline int lanes_finite(lanes v) {
    const lanes a = lanes_abs(v), most = lanes_set(__FLT_MAX__);
    return _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(a.low, most.low, _CMP_LE_OQ),
                                            _mm256_cmp_ps(a.high, most.high, _CMP_LE_OQ))) == 0xff;
}

/* Lane i and lane i + 8, then + 4, + 2, + 1. */
#define FOLD(name, op8, op4)                                                              \
    static inline float name(lanes v) {                                                   \
        __m256 a = op8(v.high, v.low);                                                    \
        __m128 b = op4(_mm256_extractf128_ps(a, 1), _mm256_castps256_ps128(a));           \
        b = op4(_mm_movehl_ps(b, b), b);                                                  \
        return _mm_cvtss_f32(op4(_mm_movehdup_ps(b), b));                                 \
    }
FOLD(lanes_fold_sum, _mm256_add_ps, _mm_add_ps)
FOLD(lanes_fold_greater, _mm256_max_ps, _mm_max_ps)

/* Sixteen doubles are four registers. */
typedef struct wide {
    __m256d a, b, c, d;
} wide;
#define WIDE static inline __attribute__((always_inline)) wide
#define ALL_FOUR(operation) (wide){operation(x.a, y.a), operation(x.b, y.b), operation(x.c, y.c), operation(x.d, y.d)}
WIDE wide_set(double value) {
    const __m256d x = _mm256_set1_pd(value);
    return (wide){x, x, x, x};
}
WIDE wide_load(const float *p) {
    return (wide){_mm256_cvtps_pd(_mm_loadu_ps(p)), _mm256_cvtps_pd(_mm_loadu_ps(p + 4)),
                  _mm256_cvtps_pd(_mm_loadu_ps(p + 8)), _mm256_cvtps_pd(_mm_loadu_ps(p + 12))};
}
static inline void wide_store(float *p, wide v) {
    _mm_storeu_ps(p, _mm256_cvtpd_ps(v.a));
    _mm_storeu_ps(p + 4, _mm256_cvtpd_ps(v.b));
    _mm_storeu_ps(p + 8, _mm256_cvtpd_ps(v.c));
    _mm_storeu_ps(p + 12, _mm256_cvtpd_ps(v.d));
}
WIDE wide_add(wide x, wide y) { return ALL_FOUR(_mm256_add_pd); }
WIDE wide_sub(wide x, wide y) { return ALL_FOUR(_mm256_sub_pd); }
WIDE wide_mul(wide x, wide y) { return ALL_FOUR(_mm256_mul_pd); }
static inline double wide_fold(wide v) {
    const __m256d four = _mm256_add_pd(_mm256_add_pd(v.a, v.c), _mm256_add_pd(v.b, v.d));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

#include "kernels/x86/transpose.h"

#define GROUP 2
#include "kernels/lanes.h"

const bert_kernels bert_kernels_avx2 = LANES_TABLE(BERT_ISA_AVX2, "avx2", 6, 1);
