/* kernels/attend.c: one head of one text: softmax(q · kᵀ · scale) · v in blocks of query rows, so that memory grows
 * with T and not with T². k and v are brought into panels once, then both products are the linear layers' own
 * tiles. What the caller wants to keep is written where it belongs and read on from there.
 */
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/mask.h"
#include "kernels/table.h"

/* Full tiles of 6 and nearly full ones of 9; their scores stay in L2 up to long texts. Where a block ends decides which
 * keys are left out behind it, and so the sign of a zero (docs/numerics.md): part of the contract. */
enum { QUERY_ROWS = 24 };

static size_t padded(size_t n) {
    return bert_panels(n) * BERT_PANEL;
}

/* One line more than needed: rows a power of two apart would share a few sets of the cache. */
static size_t score_stride(const bert_attend *attend) {
    return padded(attend->tk) + BERT_PANEL;
}

/* Where one block's arrays live: in scratch, or in what the caller keeps. */
typedef struct attend_work {
    float *k, *v;                     /* panels: [Tk/16][D][16], [D/16][Tk][16] */
    float *scores;  size_t ld_scores; /* [rows, Tk] */
    float *weights; size_t ld_weights;
    float *context;                   /* [rows, D to the next 16] */
    size_t keys;                      /* no query of the block sees a key behind these */
} attend_work;

size_t bert_attend_packed(const bert_attend *attend) {
    return padded(attend->tk) * attend->d + padded(attend->d) * attend->tk;
}

size_t bert_attend_block_scratch(const bert_attend *attend) {
    return QUERY_ROWS * (score_stride(attend) + padded(attend->d));
}

size_t bert_attend_scratch(const bert_attend *attend) {
    return bert_attend_packed(attend) + bert_attend_block_scratch(attend);
}

size_t bert_attend_blocks(const bert_attend *attend) {
    return parts_of(attend->tq, QUERY_ROWS);
}

/* Packed: the keys, behind them the values. */
static float *packed_values(const bert_attend *attend, float *packed) {
    return packed + padded(attend->tk) * attend->d;
}

static attend_work lay_out(const bert_attend *attend, float *packed, float *scratch) {
    return (attend_work){
        .k = packed,
        .v = packed_values(attend, packed),
        .scores = scratch, .ld_scores = score_stride(attend),
        .weights = scratch, .ld_weights = score_stride(attend),
        .context = scratch + QUERY_ROWS * score_stride(attend),
    };
}

/* v [Tk, D] cut into columns of 16. A whole line is one copy of known size; only the last columns may be fewer. */
static void pack_values(float *panels, const bert_attend *attend) {
    for (size_t col = 0; col < attend->d; col += BERT_PANEL) {
        const size_t cols = smaller(BERT_PANEL, attend->d - col);
        const float *v = attend->v + col;
        for (size_t t = 0; t < attend->tk; t++, v += attend->ldv, panels += BERT_PANEL) {
            if (cols == BERT_PANEL) {
                memcpy(panels, v, BERT_PANEL * sizeof *v);
                continue;
            }
            memset(panels, 0, BERT_PANEL * sizeof *v);
            memcpy(panels, v, cols * sizeof *v);
        }
    }
}

static void pack_keys(const bert_kernels *kernels, float *panels, const bert_attend *attend) {
    for (size_t t = 0; t < attend->tk; t += BERT_PANEL)
        bert_pack_panel(kernels, panels + t * attend->d, attend->k + t * attend->ldk, attend->ldk,
                        smaller(BERT_PANEL, attend->tk - t), attend->d);
}

void bert_attend_pack(const bert_kernels *kernels, const bert_attend *attend, float *packed) {
    if (attend->steps & BERT_ATTEND_SCORES) pack_keys(kernels, packed, attend);
    if (attend->steps & BERT_ATTEND_CONTEXT) pack_values(packed_values(attend, packed), attend);
}

/* totals [rows, 16·panels] = x [rows, k] · wᵀ, in as many tiles as it takes. Uses `tile` up: to copy it just after it
 * was written would wait until all stores before it, a whole block of weights, have reached the cache. */
static void multiply(const bert_kernels *kernels, bert_tile *tile) {
    const bert_tile whole = {.totals = tile->totals, .w = tile->w, .rows = tile->rows, .panels = tile->panels};
    const size_t tiles = parts_of(whole.rows, kernels->rows);
    float *y = whole.totals;
    for (size_t i = 0; i < tiles; i++) {
        tile->rows = part_size(whole.rows, tiles, i);
        for (size_t panel = 0; panel < whole.panels; panel += tile->panels) {
            tile->panels = panels_of_tile(whole.panels - panel, kernels->panels);
            tile->totals = y + panel * BERT_PANEL;
            tile->w = whole.w + panel * tile->ldw;
            kernels->tile(tile);
        }
        tile->x += tile->rows * tile->ldx;
        y += tile->rows * tile->ldt;
    }
}

static void read_scores(const bert_attend *attend, attend_work *work, size_t row) {
    work->scores = attend->scores + row * attend->tk;
    work->ld_scores = attend->tk;
}

static void read_weights(const bert_attend *attend, attend_work *work, size_t row) {
    work->weights = attend->weights + row * attend->tk;
    work->ld_weights = attend->tk;
}

/* Whether scores become numbers of their own: somebody keeps them, a mask comes between, or the factor would turn the
 * −∞ that fills a row up into something else. Else softmax scales as it reads; the rounding is the same. */
static bool scaled_apart(const bert_attend *attend) {
    return attend->scores || attend->mask || !(attend->scale > 0.0f);
}

static void score_block(const bert_kernels *kernels, const bert_attend *attend, attend_work *work, size_t row,
                        size_t rows) {
    const size_t keys = attend->scores ? attend->tk : work->keys; /* scores are kept whole */
    float *dots = work->scores;
    const size_t ld = work->ld_scores;
    multiply(kernels, &(bert_tile){.totals = dots, .ldt = ld, .x = attend->q + row * attend->ldq, .ldx = attend->ldq,
                                   .w = work->k, .ldw = attend->d * BERT_PANEL, .rows = rows,
                                   .panels = bert_panels(keys), .k = attend->d});
    if (attend->scores) read_scores(attend, work, row);
    if (!scaled_apart(attend)) return;
    for (size_t i = 0; i < rows; i++)
        kernels->scale(work->scores + i * work->ld_scores, dots + i * ld, attend->scale, keys);
}

static void weigh_block(const bert_kernels *kernels, const bert_attend *attend, attend_work *work, size_t row,
                        size_t rows) {
    if (!(attend->steps & BERT_ATTEND_SCORES)) read_scores(attend, work, row);
    if (attend->weights) read_weights(attend, work, row);
    const float *scores = work->scores;
    size_t ld_scores = work->ld_scores;
    if (attend->mask) {
        for (size_t i = 0; i < rows; i++)
            mask_row(work->weights + i * work->ld_weights, scores + i * ld_scores, attend->mask, row + i, work->keys);
        scores = work->weights;
        ld_scores = work->ld_weights;
    }
    kernels->softmax(work->weights, work->ld_weights, scores, ld_scores, scaled_apart(attend) ? 1.0f : attend->scale,
                     rows, work->keys);
    for (size_t i = 0; i < rows; i++)
        memset(work->weights + i * work->ld_weights + work->keys, 0, (attend->tk - work->keys) * sizeof(float));
}

static void sum_block(const bert_kernels *kernels, const bert_attend *attend, attend_work *work, size_t row,
                      size_t rows) {
    if (!(attend->steps & BERT_ATTEND_WEIGHTS)) {
        read_weights(attend, work, row);
        work->keys = attend->tk; /* they need not be what the mask would give */
    }
    const size_t ld = padded(attend->d);
    multiply(kernels, &(bert_tile){.totals = work->context, .ldt = ld, .x = work->weights, .ldx = work->ld_weights,
                                   .w = work->v, .ldw = attend->tk * BERT_PANEL, .rows = rows,
                                   .panels = bert_panels(attend->d), .k = work->keys});
    for (size_t i = 0; i < rows; i++)
        memcpy(attend->context + (row + i) * attend->ldc, work->context + i * ld, attend->d * sizeof(float));
}

/* The row at which a block begins: all blocks are nearly equal. */
static size_t block_row(size_t rows, size_t blocks, size_t block) {
    return rows / blocks * block + smaller(block, rows % blocks);
}

void bert_attend_run_blocks(const bert_kernels *kernels, const bert_attend *attend, float *packed, size_t first,
                            size_t last, float *scratch) {
    const attend_work whole = lay_out(attend, packed, scratch);
    const size_t blocks = bert_attend_blocks(attend);
    for (size_t block = first; block < last; block++) {
        const size_t row = block_row(attend->tq, blocks, block), rows = part_size(attend->tq, blocks, block);
        attend_work work = whole;
        work.keys = mask_keys(attend->mask, row + rows, attend->tk);
        if (attend->steps & BERT_ATTEND_SCORES) score_block(kernels, attend, &work, row, rows);
        if (attend->steps & BERT_ATTEND_WEIGHTS) weigh_block(kernels, attend, &work, row, rows);
        if (attend->steps & BERT_ATTEND_CONTEXT) sum_block(kernels, attend, &work, row, rows);
    }
}

void bert_attend_run(const bert_kernels *kernels, const bert_attend *attend, float *scratch) {
    bert_attend_pack(kernels, attend, scratch);
    bert_attend_run_blocks(kernels, attend, scratch, 0, bert_attend_blocks(attend),
                           scratch + bert_attend_packed(attend));
}
