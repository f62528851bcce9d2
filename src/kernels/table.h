/* kernels/table.h: what one instruction set has to supply. The drivers (linear.c, attend.c, registry.c) divide the work
 * into these operations; docs/numerics.md fixes every rounding of them, so all tables give the same bits.
 *
 * Rows of arrays may have any alignment unless a comment says more. No operation reads or writes outside the
 * elements named here.
 */
#ifndef BERT_KERNELS_TABLE_H
#define BERT_KERNELS_TABLE_H

#include <assert.h>
#include <float.h>
#include <stdint.h>

#include "kernels/kernels.h"

#ifdef __FAST_MATH__
#error "-ffast-math breaks the arithmetic contract (docs/numerics.md)"
#endif
static_assert(FLT_EVAL_METHOD == 0, "floats must be computed as floats");
static_assert(sizeof(float) == 4 && FLT_MANT_DIG == 24, "floats must be IEEE 754 binary32");

/* Products along K are summed in chunks of this many terms. Part of the contract: never another value. */
enum { BERT_CHUNK = 128 };

/* One register tile of a product, over a piece of K. */
typedef struct bert_tile {
    float *totals;     size_t ldt; /* [rows, 16·panels], written in full */
    const float *x;    size_t ldx; /* [rows, k] */
    const float *w;    size_t ldw; /* `panels` panels [k, 16], ldw floats apart; 64-byte aligned */
    size_t rows, panels, k;        /* 1 … table->rows, 1 … table->panels, at least 1 */
    int resume;                    /* 0: the first piece of K; 1: totals hold the sums of the pieces before it */
    /* For each panel p, `lines` cache lines per 8 steps of k are prefetched from ahead + p·ldw on. An integer, not a
     * pointer: behind the last panel it runs on into whatever follows, which is harmless to ask for. */
    uintptr_t ahead;
    unsigned lines;
} bert_tile;

struct bert_kernels {
    bert_isa isa;
    const char *name;
    size_t rows, panels; /* the largest tile */

    /* totals (+)= x · wᵀ. A piece starts at a multiple of BERT_CHUNK of the whole K. */
    void (*tile)(const bert_tile *tile);

    /* panel[k][i] = w[i][k] for i < rows, 0 for the other columns. panel is 64-byte aligned. */
    void (*pack_panel)(float *panel, const float *w, size_t ld, size_t rows, size_t k);

    /* y = epilogue(totals + bias) + residual for rows [row, row+rows) and columns [col, col+cols) of the linear;
     * totals[0] belongs to (row, col). totals may lie in y. */
    void (*finish)(const bert_linear *linear, const float *totals, size_t ldt, size_t row, size_t rows, size_t col,
                   size_t cols);

    /* y[i] = x[i] · factor; y may be x. */
    void (*scale)(float *y, const float *x, float factor, size_t n);
    /* y = softmax(x · factor) of each of `rows` rows of n values, both at least 1; factor > 0; y may be x. */
    void (*softmax)(float *y, size_t ldy, const float *x, size_t ldx, float factor, size_t rows, size_t n);
    /* bert_layer_norm. */
    void (*layer_norm)(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma, const float *beta,
                       float eps, size_t rows, size_t h);
    float (*sum_squares)(const float *x, size_t n);
    int (*all_finite)(const float *x, size_t n);
};

extern const bert_kernels bert_kernels_ref;
extern const bert_kernels bert_kernels_avx2;
extern const bert_kernels bert_kernels_avx512;
extern const bert_kernels bert_kernels_neon;

#endif
