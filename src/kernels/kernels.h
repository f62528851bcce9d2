/* kernels/kernels.h: the arithmetic of the encoder. Everything that computes a float of a result goes through here
 * (or is a plain elementwise sum). The contract of every operation is docs/numerics.md; ref.c is its executable form,
 * and every other instruction set gives the same bits.
 *
 * Nothing here allocates, starts threads or checks its arguments: callers divide T and N among workers and hand in
 * scratch. Callers are inside bert_fpenv_enter/leave.
 */
#ifndef BERT_KERNELS_KERNELS_H
#define BERT_KERNELS_KERNELS_H

#include <stdbool.h>

#include <bert/model.h>

typedef struct bert_kernels bert_kernels; /* one table of function pointers for each instruction set */

/* NULL if this build or this CPU does not have it. BERT_ISA_AUTO gives the best. */
const bert_kernels *bert_kernels_get(bert_isa isa);
bert_isa bert_kernels_isa(const bert_kernels *kernels);
/* BERT_UNSUPPORTED, by name, where the machine's floating point is not what the contract needs. */
BERT_MUST_USE bert_status bert_kernels_selftest(bert_error *err);

/* Weights W [N, K] live in panels of 16 rows, transposed: [ceil(N/16)][K][16], columns behind N zero, 64-byte
 * aligned. Every instruction set reads the same panels. */
enum { BERT_PANEL = 16 };
static inline size_t bert_panels(size_t n) { return (n + BERT_PANEL - 1) / BERT_PANEL; }

/* Packs `rows` (1..16) rows of W, row stride ld, into one panel [K][16]; missing rows become zeros. */
void bert_pack_panel(const bert_kernels *kernels, float *panel, const float *w, size_t ld, size_t rows, size_t k);

typedef enum bert_epilogue { BERT_EPILOGUE_NONE, BERT_EPILOGUE_GELU_ERF, BERT_EPILOGUE_GELU_TANH, BERT_EPILOGUE_RELU,
                             BERT_EPILOGUE_SILU, BERT_EPILOGUE_TANH } bert_epilogue;
bert_epilogue bert_epilogue_of(bert_activation activation);

/* y[T,N] = epilogue(x[T,K] · W[N,K]ᵀ + bias) + residual. Strides in floats. Exactly N columns of y are written. */
typedef struct bert_linear {
    float *y;              size_t ldy;
    const float *x;        size_t ldx;
    const float *w;        /* panels of W */
    const float *bias;     /* [N] or NULL */
    const float *residual; size_t ldr; /* [T, N] or NULL; may be y itself */
    bert_epilogue epilogue;
    size_t t, n, k;
} bert_linear;
/* The rows are computed in blocks whose x stays in the cache while all panels pass by; all but the last are whole
 * tiles. Their number, 0 for T = 0, and the first row of one, T for block = number. Who divides T divides it so. */
size_t bert_row_blocks(size_t t);
size_t bert_row_block_start(size_t t, size_t block);
/* Panels that the widest kernels (AVX-512) take together: who divides N should divide it by them. */
enum { BERT_TILE_PANELS = 3 };
/* Floats of scratch (64-byte aligned) that one call needs. */
size_t bert_linear_scratch(const bert_kernels *kernels, const bert_linear *linear);
/* Computes the columns of panels [first, last) for all T rows. Calls on disjoint panels may run side by side. */
void bert_linear_run(const bert_kernels *kernels, const bert_linear *linear, size_t first, size_t last,
                     float *scratch);
/* The edge alone, for products that came from elsewhere (the GEMM hook): y = epilogue(y + bias) + residual on rows
 * [first, last), all N columns. */
void bert_linear_finish(const bert_kernels *kernels, const bert_linear *linear, size_t first, size_t last);

/* Which keys a query may see. Query i sees key j if j < keys, if (causal) j <= first + i, and if allowed[i, j] is not
 * 0; its score gets added[i, j]. A key that is not seen has the weight +0, as if its score were −∞; a query that sees
 * none weighs all Tk keys alike, which is what HF's large negative numbers come to. */
typedef struct bert_attend_mask {
    size_t keys;
    bool causal; size_t first;          /* first: the place of query 0 among the keys */
    const unsigned char *allowed; size_t ld_allowed; /* [Tq, Tk] or NULL: all */
    const float *added; size_t ld_added;             /* [Tq, Tk] or NULL: nothing; −∞: not seen */
} bert_attend_mask;

/* One head of one text: scores = (q · kᵀ) · scale, weights = softmax(masked scores), context = weights · v, in tiles of
 * rows. Without SCORES in `steps` the scores are read from `scores`; without WEIGHTS the weights from `weights`. */
enum { BERT_ATTEND_SCORES = 1, BERT_ATTEND_WEIGHTS = 2, BERT_ATTEND_CONTEXT = 4, BERT_ATTEND_ALL = 7 };
typedef struct bert_attend {
    const float *q; size_t ldq; /* [Tq, D] */
    const float *k; size_t ldk; /* [Tk, D] */
    const float *v; size_t ldv; /* [Tk, D] */
    float *context; size_t ldc; /* [Tq, D]; exactly D columns are written */
    float *scores;              /* [Tq, Tk] or NULL: kept if given, as they are before the mask */
    float *weights;             /* [Tq, Tk] or NULL: kept if given */
    const bert_attend_mask *mask; /* NULL: every query sees every key */
    float scale;                /* 1/√D, rounded to float */
    unsigned steps;
    size_t tq, tk, d;
} bert_attend;
size_t bert_attend_scratch(const bert_attend *attend);
void bert_attend_run(const bert_kernels *kernels, const bert_attend *attend, float *scratch);

/* The same in two parts, so that several workers can share one long head: k and v are packed once into `packed`
 * (64-byte aligned), then calls on disjoint blocks of query rows may run side by side, each with scratch of its own. */
size_t bert_attend_packed(const bert_attend *attend);       /* floats */
size_t bert_attend_block_scratch(const bert_attend *attend); /* floats */
size_t bert_attend_blocks(const bert_attend *attend);
void bert_attend_pack(const bert_kernels *kernels, const bert_attend *attend, float *packed);
void bert_attend_run_blocks(const bert_kernels *kernels, const bert_attend *attend, float *packed, size_t first,
                            size_t last, float *scratch);

/* y = (x − mean) / √(var + eps) · gamma + beta over each of `rows` rows of h values; y may be x. (Ba et al. 2016,
 * arXiv 1607.06450) */
void bert_layer_norm(const bert_kernels *kernels, float *y, size_t ldy, const float *x, size_t ldx,
                     const float *gamma, const float *beta, float eps, size_t rows, size_t h);

/* y = softmax(x) over n values, at least one; y may be x. */
void bert_softmax(const bert_kernels *kernels, float *y, const float *x, size_t n);

/* Σ x² over n values, in the contract's 16 lanes and tree: for L2 norms. */
float bert_sum_squares(const bert_kernels *kernels, const float *x, size_t n);

/* 1 if every value is finite. */
int bert_all_finite(const bert_kernels *kernels, const float *x, size_t n);

#endif
