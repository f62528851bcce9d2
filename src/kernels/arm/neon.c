/* kernels/arm/neon.c: AArch64. Tiles of 6 rows x 16 columns: 24 sums, 4 weights and 1 value of x in 32 registers. */
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/table.h"

/* All sums have names, because compilers leave arrays of vectors on the stack; `rows` is a constant where tile_body
 * is inlined, so what belongs to other rows folds away. */
#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)
#define ROW_START(r) float32x4_t a##r = vdupq_n_f32(0.0f), b##r = a##r, c##r = a##r, d##r = a##r;
#define ROW_STEP(r)                                      \
    if (r < rows) {                                      \
        const float32x4_t v = vld1q_dup_f32(x + r * ldx); \
        a##r = vfmaq_f32(a##r, v, wa);                   \
        b##r = vfmaq_f32(b##r, v, wb);                   \
        c##r = vfmaq_f32(c##r, v, wc);                   \
        d##r = vfmaq_f32(d##r, v, wd);                   \
    }
#define ROW_TOTAL(r)                                     \
    if (r < rows) {                                      \
        float *total = tile->totals + r * tile->ldt;     \
        add_to_total(total, a##r, resume);               \
        add_to_total(total + 4, b##r, resume);           \
        add_to_total(total + 8, c##r, resume);           \
        add_to_total(total + 12, d##r, resume);          \
    }

#define INLINE static inline __attribute__((always_inline))

INLINE void add_to_total(float *total, float32x4_t sum, int resume) {
    vst1q_f32(total, resume ? vaddq_f32(vld1q_f32(total), sum) : sum);
}

/* One chunk: each sum runs from +0 over ascending k, one fma after the other. */
INLINE void tile_chunk(const bert_tile *tile, size_t rows, size_t from, size_t count, int resume) {
    const size_t ldx = tile->ldx;
    const float *x = tile->x + from, *w = tile->w + from * BERT_PANEL;
    uintptr_t ahead = tile->ahead + from / 8 * tile->lines * 64;
    EACH_ROW(ROW_START)
    for (size_t k = 0; k < count; k++, x++, w += BERT_PANEL) {
        if (k % 8 == 0)
            for (unsigned line = 0; line < tile->lines; line++, ahead += 64)
                __builtin_prefetch((const void *)ahead, 0, 2);
        const float32x4_t wa = vld1q_f32(w), wb = vld1q_f32(w + 4), wc = vld1q_f32(w + 8), wd = vld1q_f32(w + 12);
        EACH_ROW(ROW_STEP)
    }
    EACH_ROW(ROW_TOTAL)
}

INLINE void tile_body(const bert_tile *tile, size_t rows) {
    for (size_t k = 0; k < tile->k; k += BERT_CHUNK)
        tile_chunk(tile, rows, k, smaller(BERT_CHUNK, tile->k - k), k > 0 || tile->resume);
}

#define TILE_FUNCTION(n) static void tile_##n##x16(const bert_tile *tile) { tile_body(tile, n); }
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

/* panel[k][0..3] = w[0..3][k] for four k. */
static void pack_4x4(float *panel, const float *w, size_t ld) {
    const float32x4_t r0 = vld1q_f32(w), r1 = vld1q_f32(w + ld), r2 = vld1q_f32(w + 2 * ld), r3 = vld1q_f32(w + 3 * ld);
    const float32x4_t a = vzip1q_f32(r0, r2), b = vzip2q_f32(r0, r2), c = vzip1q_f32(r1, r3), d = vzip2q_f32(r1, r3);
    vst1q_f32(panel, vzip1q_f32(a, c));
    vst1q_f32(panel + BERT_PANEL, vzip2q_f32(a, c));
    vst1q_f32(panel + 2 * BERT_PANEL, vzip1q_f32(b, d));
    vst1q_f32(panel + 3 * BERT_PANEL, vzip2q_f32(b, d));
}

static void pack_panel(float *panel, const float *w, size_t ld, size_t rows, size_t k) {
    size_t i = 0;
    if (rows == BERT_PANEL)
        for (; i + 4 <= k; i += 4, panel += 4 * BERT_PANEL)
            for (size_t row = 0; row < BERT_PANEL; row += 4) pack_4x4(panel + row, w + row * ld + i, ld);
    for (; i < k; i++, panel += BERT_PANEL)
        for (size_t row = 0; row < BERT_PANEL; row++) panel[row] = row < rows ? w[row * ld + i] : 0.0f;
}

/* Sixteen lanes are four registers. */
typedef struct lanes {
    float32x4_t a, b, c, d;
} lanes;
#define LANES static inline __attribute__((always_inline)) lanes
#define EACH_TWO(operation) (lanes){operation(x.a, y.a), operation(x.b, y.b), operation(x.c, y.c), operation(x.d, y.d)}
#define EACH_ONE(operation) (lanes){operation(x.a), operation(x.b), operation(x.c), operation(x.d)}

LANES lanes_set(float x) {
    const float32x4_t v = vdupq_n_f32(x);
    return (lanes){v, v, v, v};
}
LANES lanes_load(const float *p) {
    return (lanes){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
LANES lanes_load_some(const float *p, size_t n, float fill) {
    float all[16];
    for (size_t i = 0; i < 16; i++) all[i] = i < n ? p[i] : fill;
    return lanes_load(all);
}
static inline void lanes_store(float *p, lanes v) {
    vst1q_f32(p, v.a);
    vst1q_f32(p + 4, v.b);
    vst1q_f32(p + 8, v.c);
    vst1q_f32(p + 12, v.d);
}
static inline void lanes_store_some(float *p, lanes v, size_t n) {
    float all[16];
    lanes_store(all, v);
    memcpy(p, all, n * sizeof *p);
}
LANES lanes_add(lanes x, lanes y) { return EACH_TWO(vaddq_f32); }
LANES lanes_sub(lanes x, lanes y) { return EACH_TWO(vsubq_f32); }
LANES lanes_mul(lanes x, lanes y) { return EACH_TWO(vmulq_f32); }
LANES lanes_div(lanes x, lanes y) { return EACH_TWO(vdivq_f32); }
LANES lanes_fma(lanes x, lanes y, lanes z) {
    return (lanes){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                   vfmaq_f32(z.d, x.d, y.d)};
}
LANES lanes_negate(lanes x) { return EACH_ONE(vnegq_f32); }
LANES lanes_abs(lanes x) { return EACH_ONE(vabsq_f32); }
LANES lanes_minus_abs(lanes x) { return lanes_negate(lanes_abs(x)); }

/* Not vmaxq: it takes +0 over −0 and NaN over numbers, which x86 does not. */
static inline float32x4_t greater(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
LANES lanes_greater(lanes x, lanes y) { return EACH_TWO(greater); }
LANES lanes_if_less(lanes x, lanes y, lanes then, lanes otherwise) {
    return (lanes){
        vbslq_f32(vcltq_f32(x.a, y.a), then.a, otherwise.a), vbslq_f32(vcltq_f32(x.b, y.b), then.b, otherwise.b),
        vbslq_f32(vcltq_f32(x.c, y.c), then.c, otherwise.c), vbslq_f32(vcltq_f32(x.d, y.d), then.d, otherwise.d)};
}
LANES lanes_zero_if_less(lanes x, lanes y, lanes otherwise) { return lanes_if_less(x, y, lanes_set(0.0f), otherwise); }
static inline float32x4_t power_of_two(float32x4_t rounded) {
    const uint32x4_t n = vshlq_n_u32(vreinterpretq_u32_f32(rounded), 23);
    return vreinterpretq_f32_u32(vaddq_u32(n, vdupq_n_u32(0x3f800000)));
}
LANES lanes_power_of_two(lanes x) { return EACH_ONE(power_of_two); }
static inline uint32x4_t is_finite(float32x4_t v) { return vcleq_f32(vabsq_f32(v), vdupq_n_f32(__FLT_MAX__)); }
static inline int lanes_finite(lanes v) {
    const uint32x4_t low = vandq_u32(is_finite(v.a), is_finite(v.b)), high = vandq_u32(is_finite(v.c), is_finite(v.d));
    return vminvq_u32(vandq_u32(low, high)) != 0;
}

/* Lane i and lane i + 8, then + 4, + 2, + 1. */
static inline float lanes_fold_sum(lanes v) {
    const float32x4_t four = vaddq_f32(vaddq_f32(v.a, v.c), vaddq_f32(v.b, v.d));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
static inline float lanes_fold_greater(lanes v) {
    const float32x4_t four = greater(greater(v.d, v.b), greater(v.c, v.a));
    const float32x4_t two = greater(vextq_f32(four, four, 2), four);
    return vgetq_lane_f32(greater(vextq_f32(two, two, 1), two), 0);
}

/* Sixteen doubles are eight registers; unrolled, an array of them is no array any more. */
typedef struct wide {
    float64x2_t v[8];
} wide;
#define WIDE static inline __attribute__((always_inline)) wide
WIDE wide_set(double value) {
    const float64x2_t x = vdupq_n_f64(value);
    return (wide){{x, x, x, x, x, x, x, x}};
}
WIDE wide_load(const float *p) {
    wide all;
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) all.v[i] = vcvt_f64_f32(vld1_f32(p + 2 * i));
    return all;
}
static inline void wide_store(float *p, wide all) {
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) vst1_f32(p + 2 * i, vcvt_f32_f64(all.v[i]));
}
#define WIDE_OPERATION(name, operation)                                            \
    WIDE name(wide x, wide y) {                                                    \
        _Pragma("GCC unroll 8")                                                    \
        for (size_t i = 0; i < 8; i++) x.v[i] = operation(x.v[i], y.v[i]);         \
        return x;                                                                  \
    }
WIDE_OPERATION(wide_add, vaddq_f64)
WIDE_OPERATION(wide_sub, vsubq_f64)
WIDE_OPERATION(wide_mul, vmulq_f64)
static inline double wide_fold(wide x) {
    const float64x2_t even = vaddq_f64(vaddq_f64(x.v[0], x.v[4]), vaddq_f64(x.v[2], x.v[6]));
    const float64x2_t odd = vaddq_f64(vaddq_f64(x.v[1], x.v[5]), vaddq_f64(x.v[3], x.v[7]));
    const float64x2_t two = vaddq_f64(even, odd);
    return vgetq_lane_f64(two, 0) + vgetq_lane_f64(two, 1);
}

#undef INLINE
#define GROUP 1
#include "kernels/lanes.h"

const bert_kernels bert_kernels_neon = LANES_TABLE(BERT_ISA_NEON, "neon", 6, 1);
