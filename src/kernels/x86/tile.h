/* kernels/x86/tile.h: the register tile of AVX2 and AVX-512. The file that includes it has defined `vec`, the widest
 * register of VEC_FLOATS floats, vec_set, vec_load, vec_store, vec_add, vec_zero and
 *     vec_accumulate(sum, a, b)   sum = fma(a, b, sum), as inline asm: with the intrinsic compilers choose the form
 *                       that overwrites a factor, and copy registers, one move for every ten products
 *     vec_accumulate_at(sum, x, b)   sum = fma(x in every lane, b, sum), with a float x in memory
 *     TILE_EACH_ROW(M)  M(0, x0, 0) M(1, x0, 1) M(2, x1, 0) M(3, x1, 1) … up to the most rows: M(r, p, i), row r is
 *                       the i-th of those that begin at p
 *     TILE_STRIDE(t)    from the weights for one register of a row to those for the next, in floats
 *
 * A row has up to three registers of sums, a, b and c, side by side in the totals. All of them have names, because
 * compilers leave arrays of vectors on the stack. `rows` and `registers` (of a row) are constants wherever tile_body is
 * inlined, so what belongs to others folds away. Two or three rows of x share a pointer, and so do the registers'
 * weights: an x86 address reaches p, p + ld and p + 2·ld, and there are only 16 registers for them. With that, x
 * straight from the caller's rows is as fast as x packed first. AVX-512 multiplies the row at p itself from
 * memory: an instruction less. An address with an index would cost that again, and all rows so would take more loads
 * than a cycle has.
 */
#include "kernels/blocks.h"
#include "kernels/table.h"

#define TILE_INLINE static inline __attribute__((always_inline))

#define ROW_START(r, p, i) vec a##r = vec_zero(), b##r = a##r, c##r = a##r;
#define ROW_PRODUCTS(accumulate, r, x)                                                \
    accumulate(a##r, x, wa);                                                          \
    if (registers > 1) accumulate(b##r, x, wb);                                       \
    if (registers > 2) accumulate(c##r, x, wc);
#define ROW_STEP(r, p, i)                                                             \
    if (r < rows && i == 0) {                                                         \
        ROW_PRODUCTS(vec_accumulate_at, r, p[step])                                   \
    } else if (r < rows) {                                                            \
        const vec x = vec_set(p[i * ldx + step]);                                     \
        ROW_PRODUCTS(vec_accumulate, r, x)                                            \
    }
#define ROW_TOTAL(r, p, i)                                                            \
    if (r < rows) {                                                                   \
        float *total = tile->totals + r * tile->ldt;                                  \
        add_to_total(total, a##r, resume);                                            \
        if (registers > 1) add_to_total(total + VEC_FLOATS, b##r, resume);            \
        if (registers > 2) add_to_total(total + 2 * VEC_FLOATS, c##r, resume);        \
    }
#define TILE_STEP()                                                                   \
    const vec wa = vec_load(w + step * BERT_PANEL);                                   \
    const vec wb = registers > 1 ? vec_load(w + ldw + step * BERT_PANEL) : wa;        \
    const vec wc = registers > 2 ? vec_load(w + 2 * ldw + step * BERT_PANEL) : wa;    \
    TILE_EACH_ROW(ROW_STEP)

TILE_INLINE void add_to_total(float *total, vec sum, int resume) {
    vec_store(total, resume ? vec_add(vec_load(total), sum) : sum);
}

/* Into L2: L1 is for the piece in use, or for x and totals. What is left to ask for begins behind it. */
TILE_INLINE uintptr_t prefetch_ahead(uintptr_t ahead, unsigned lines, size_t ldw, size_t panels) {
    for (; lines > 0; lines--, ahead += 64)
        for (size_t panel = 0; panel < panels; panel++)
            __builtin_prefetch((const void *)(ahead + panel * ldw * sizeof(float)), 0, 2);
    return ahead;
}

/* One chunk: each sum runs from +0 over ascending k, one fma after the other. */
TILE_INLINE void tile_chunk(const bert_tile *tile, size_t rows, size_t registers, size_t from, size_t count,
                            int resume) {
    size_t ldx = tile->ldx, ldw = TILE_STRIDE(tile);
    const float *x0 = tile->x + from, *x1 = x0 + 2 * ldx, *x2 = x1 + 2 * ldx, *x3 = x2 + 2 * ldx;
    const float *w = tile->w + from * BERT_PANEL, *const end = x0 + count / 8 * 8;
    const size_t panels = registers * VEC_FLOATS / BERT_PANEL; /* of several, ldw is the stride; of one nothing is */
    uintptr_t ahead = tile->ahead + from / 8 * tile->lines * 64;
    TILE_EACH_ROW(ROW_START)
    while (x0 < end) {
        ahead = prefetch_ahead(ahead, tile->lines, ldw, panels);
#pragma GCC unroll 8
        for (size_t step = 0; step < 8; step++) {
            __asm__("" : "+r"(ldx), "+r"(ldw)); /* else gcc computes an address for every row and step, and spills */
            TILE_STEP()
        }
        x0 += 8, x1 += 8, x2 += 8, x3 += 8, w += 8 * BERT_PANEL;
    }
    for (size_t step = 0; step < count % 8; step++) {
        TILE_STEP()
    }
    TILE_EACH_ROW(ROW_TOTAL)
}

TILE_INLINE void tile_body(const bert_tile *tile, size_t rows, size_t registers) {
    for (size_t k = 0; k < tile->k; k += BERT_CHUNK)
        tile_chunk(tile, rows, registers, k, smaller(BERT_CHUNK, tile->k - k), k > 0 || tile->resume);
}
