/* kernels/attend.c: one head of one text: softmax(q · kᵀ · scale) · v in blocks of query rows, so that memory grows
 * with T and not with T². k and v are brought into panels once, then both products are the linear layers' own
 * tiles. What the caller wants to keep is written where it belongs and read on from there.
 */
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/table.h"

enum { QUERY_ROWS = 24 }; /* a multiple of every table's tile; their scores stay in L2 up to long texts */

static size_t padded(size_t n) {
    return bert_panels(n) * BERT_PANEL;
}

/* Where one block's arrays live: in scratch, or in what the caller keeps. */
typedef struct attend_work {
    float *k, *v;                     /* panels: [Tk/16][D][16], [D/16][Tk][16] */
    float *scores;  size_t ld_scores; /* [rows, Tk] */
    float *weights; size_t ld_weights;
    float *context;                   /* [rows, D to the next 16] */
} attend_work;

size_t bert_attend_scratch(const bert_kernels *kernels, const bert_attend *attend) {
    (void)kernels;
    return padded(attend->tk) * attend->d + padded(attend->d) * attend->tk +
           QUERY_ROWS * (padded(attend->tk) + padded(attend->d));
}

static attend_work lay_out(const bert_attend *attend, float *scratch) {
    attend_work work = {.k = scratch, .ld_scores = padded(attend->tk), .ld_weights = padded(attend->tk)};
    work.v = work.k + padded(attend->tk) * attend->d;
    work.scores = work.v + padded(attend->d) * attend->tk;
    work.weights = work.scores;
    work.context = work.scores + QUERY_ROWS * padded(attend->tk);
    return work;
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

/* y [rows, 16·panels] = x [rows, k] · wᵀ */
static void multiply(const bert_kernels *kernels, float *y, size_t ldy, const float *x, size_t ldx, const float *w,
                     size_t rows, size_t panels, size_t k) {
    const size_t tiles = parts_of(rows, kernels->rows);
    for (size_t i = 0; i < tiles; i++) {
        bert_tile tile = {.x = x, .ldx = ldx, .ldt = ldy, .ldw = k * BERT_PANEL, .k = k,
                          .rows = part_size(rows, tiles, i)};
        for (size_t panel = 0; panel < panels; panel += kernels->panels) {
            tile.panels = smaller(kernels->panels, panels - panel);
            tile.totals = y + panel * BERT_PANEL;
            tile.w = w + panel * tile.ldw;
            kernels->tile(&tile);
        }
        x += tile.rows * ldx;
        y += tile.rows * ldy;
    }
}

static void score_block(const bert_kernels *kernels, const bert_attend *attend, attend_work *work, size_t row,
                        size_t rows) {
    float *dots = work->scores;
    const size_t ld = work->ld_scores;
    multiply(kernels, dots, ld, attend->q + row * attend->ldq, attend->ldq, work->k, rows, bert_panels(attend->tk),
             attend->d);
    if (attend->scores) {
        work->scores = attend->scores + row * attend->tk;
        work->ld_scores = attend->tk;
    }
    for (size_t i = 0; i < rows; i++)
        kernels->scale(work->scores + i * work->ld_scores, dots + i * ld, attend->scale, attend->tk);
}

static void weigh_block(const bert_kernels *kernels, const bert_attend *attend, attend_work *work, size_t row,
                        size_t rows) {
    if (!(attend->steps & BERT_ATTEND_SCORES)) {
        work->scores = attend->scores + row * attend->tk;
        work->ld_scores = attend->tk;
    }
    if (attend->weights) {
        work->weights = attend->weights + row * attend->tk;
        work->ld_weights = attend->tk;
    }
    for (size_t i = 0; i < rows; i++)
        kernels->softmax(work->weights + i * work->ld_weights, work->scores + i * work->ld_scores, attend->tk);
}

static void sum_block(const bert_kernels *kernels, const bert_attend *attend, attend_work *work, size_t row,
                      size_t rows) {
    if (!(attend->steps & BERT_ATTEND_WEIGHTS)) {
        work->weights = attend->weights + row * attend->tk;
        work->ld_weights = attend->tk;
    }
    const size_t ld = padded(attend->d);
    multiply(kernels, work->context, ld, work->weights, work->ld_weights, work->v, rows, bert_panels(attend->d),
             attend->tk);
    for (size_t i = 0; i < rows; i++)
        memcpy(attend->context + (row + i) * attend->ldc, work->context + i * ld, attend->d * sizeof(float));
}

void bert_attend_run(const bert_kernels *kernels, const bert_attend *attend, float *scratch) {
    const attend_work whole = lay_out(attend, scratch);
    if (attend->steps & BERT_ATTEND_SCORES) pack_keys(kernels, whole.k, attend);
    if (attend->steps & BERT_ATTEND_CONTEXT) pack_values(whole.v, attend);
    const size_t blocks = parts_of(attend->tq, QUERY_ROWS);
    size_t row = 0;
    for (size_t block = 0; block < blocks; block++) {
        const size_t rows = part_size(attend->tq, blocks, block);
        attend_work work = whole;
        if (attend->steps & BERT_ATTEND_SCORES) score_block(kernels, attend, &work, row, rows);
        if (attend->steps & BERT_ATTEND_WEIGHTS) weigh_block(kernels, attend, &work, row, rows);
        if (attend->steps & BERT_ATTEND_CONTEXT) sum_block(kernels, attend, &work, row, rows);
        row += rows;
    }
}
