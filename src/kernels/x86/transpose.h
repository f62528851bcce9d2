/* kernels/x86/transpose.h: packing rows of W into a panel, eight rows by eight columns at a time in registers. */
#include <immintrin.h>

#include "kernels/table.h"

static inline void transpose_8x8(__m256 r[8]) {
    const __m256 a0 = _mm256_unpacklo_ps(r[0], r[1]), a1 = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 a2 = _mm256_unpacklo_ps(r[2], r[3]), a3 = _mm256_unpackhi_ps(r[2], r[3]);
    const __m256 a4 = _mm256_unpacklo_ps(r[4], r[5]), a5 = _mm256_unpackhi_ps(r[4], r[5]);
    const __m256 a6 = _mm256_unpacklo_ps(r[6], r[7]), a7 = _mm256_unpackhi_ps(r[6], r[7]);
    const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee);
    const __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee);
    const __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee);
    const __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
    r[0] = _mm256_permute2f128_ps(b0, b4, 0x20);
    r[1] = _mm256_permute2f128_ps(b1, b5, 0x20);
    r[2] = _mm256_permute2f128_ps(b2, b6, 0x20);
    r[3] = _mm256_permute2f128_ps(b3, b7, 0x20);
    r[4] = _mm256_permute2f128_ps(b0, b4, 0x31);
    r[5] = _mm256_permute2f128_ps(b1, b5, 0x31);
    r[6] = _mm256_permute2f128_ps(b2, b6, 0x31);
    r[7] = _mm256_permute2f128_ps(b3, b7, 0x31);
}

/* panel[k][0..7] = w[0..7][k] for eight k; rows that do not exist are zero. */
static inline void pack_8x8(float *panel, const float *w, size_t ld, size_t rows) {
    __m256 r[8];
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) r[i] = i < rows ? _mm256_loadu_ps(w + i * ld) : _mm256_setzero_ps();
    transpose_8x8(r);
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) _mm256_store_ps(panel + i * BERT_PANEL, r[i]);
}

static void pack_panel(float *panel, const float *w, size_t ld, size_t rows, size_t k) {
    const size_t low = rows < 8 ? rows : 8, high = rows - low;
    size_t i = 0;
    for (; i + 8 <= k; i += 8, panel += 8 * BERT_PANEL) {
        pack_8x8(panel, w + i, ld, low);
        pack_8x8(panel + 8, high > 0 ? w + 8 * ld + i : NULL, ld, high);
    }
    for (; i < k; i++, panel += BERT_PANEL)
        for (size_t row = 0; row < BERT_PANEL; row++) panel[row] = row < rows ? w[row * ld + i] : 0.0f;
}
