/* kernels/x86/tile.h: the register tile of AVX2 and AVX-512. The file that includes it has defined `vec`, the widest
 * register of VEC_FLOATS floats, vec_set, vec_load, vec_store, vec_add, vec_fma, vec_zero and
 *     TILE_EACH_ROW(M)  M(0, x0, 0) M(1, x0, 1) M(2, x0, 2) M(3, x1, 0) … up to the most rows
 *     tile_second(t)    where the weights for the second register of a row begin
 *
 * A row has two registers of sums, a and b, side by side in the totals. All of them have names, because compilers
 * leave arrays of vectors on the stack. `rows`, `wide` and `panels` are constants wherever tile_body is inlined, so
 * what belongs to other rows folds away. Three rows share a pointer: an x86 address reaches p, p + ld and p + 2·ld,
 * and there are only 16 registers. With that, x straight from the caller's rows is as fast as x packed first.
 */
#include "kernels/blocks.h"
#include "kernels/table.h"

#define TILE_INLINE static inline __attribute__((always_inline))

#define ROW_START(r, p, i) vec a##r = vec_zero(), b##r = a##r;
#define ROW_STEP(r, p, i)                                          \
    if (r < rows) {                                                \
        const vec x = vec_set(p[i * ldx + step]);                  \
        a##r = vec_fma(x, wa, a##r);                               \
        if (wide) b##r = vec_fma(x, wb, b##r);                     \
    }
#define ROW_TOTAL(r, p, i)                                         \
    if (r < rows) {                                                \
        float *total = tile->totals + r * tile->ldt;               \
        add_to_total(total, a##r, resume);                         \
        if (wide) add_to_total(total + VEC_FLOATS, b##r, resume);  \
    }

TILE_INLINE void add_to_total(float *total, vec sum, int resume) {
    vec_store(total, resume ? vec_add(vec_load(total), sum) : sum);
}

/* Into L2: there it waits out of the way of the piece in use. */
TILE_INLINE void prefetch_ahead(const bert_tile *tile, uintptr_t ahead, size_t panels) {
    for (unsigned line = 0; line < tile->lines; line++)
        for (size_t panel = 0; panel < panels; panel++)
            __builtin_prefetch((const void *)(ahead + line * 64 + panel * tile->ldw * sizeof(float)), 0, 2);
}

/* One chunk: each sum runs from +0 over ascending k, one fma after the other. */
TILE_INLINE void tile_chunk(const bert_tile *tile, size_t rows, int wide, size_t panels, size_t from, size_t count,
                            int resume) {
    size_t ldx = tile->ldx;
    const float *x0 = tile->x + from, *x1 = x0 + 3 * ldx, *x2 = x1 + 3 * ldx, *x3 = x2 + 3 * ldx;
    const float *w_a = tile->w + from * BERT_PANEL, *w_b = tile_second(tile) + from * BERT_PANEL;
    uintptr_t ahead = tile->ahead + from / 8 * tile->lines * 64;
    size_t k = 0;
    TILE_EACH_ROW(ROW_START)
    for (; k + 8 <= count; k += 8) {
        prefetch_ahead(tile, ahead, panels);
        ahead += tile->lines * 64;
#pragma GCC unroll 8
        for (size_t step = 0; step < 8; step++) {
            __asm__("" : "+r"(ldx)); /* else gcc computes an address for every row and step, and spills them */
            const vec wa = vec_load(w_a + step * BERT_PANEL), wb = wide ? vec_load(w_b + step * BERT_PANEL) : wa;
            TILE_EACH_ROW(ROW_STEP)
        }
        x0 += 8, x1 += 8, x2 += 8, x3 += 8;
        w_a += 8 * BERT_PANEL, w_b += 8 * BERT_PANEL;
    }
    for (size_t step = 0; step < count - k; step++) {
        const vec wa = vec_load(w_a + step * BERT_PANEL), wb = wide ? vec_load(w_b + step * BERT_PANEL) : wa;
        TILE_EACH_ROW(ROW_STEP)
    }
    TILE_EACH_ROW(ROW_TOTAL)
}

TILE_INLINE void tile_body(const bert_tile *tile, size_t rows, int wide, size_t panels) {
    for (size_t k = 0; k < tile->k; k += BERT_CHUNK)
        tile_chunk(tile, rows, wide, panels, k, smaller(BERT_CHUNK, tile->k - k), k > 0 || tile->resume);
}
