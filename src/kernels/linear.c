/* kernels/linear.c: y = epilogue(x · Wᵀ + bias) + residual, blocked for the caches.
 *
 *     row blocks (x stays in L2, or where that is small in L3)
 *       panels of W (a step: as many as a tile takes)
 *         pieces of K (24 KiB a panel: one stays in L1, three in L2; the next piece is prefetched)
 *           row tiles (registers)
 *
 * Totals live in scratch [block, 16·panels] until the last piece, or where there is but one, all tiles' in the same
 * place: that keeps them near, makes every tile a full one whatever N is, and lets the residual be y itself.
 */
#include "kernels/blocks.h"
#include "kernels/table.h"

enum {
    ROW_BLOCK = 144,        /* rows at most */
    FULL_TILES = 18,        /* rows that are full tiles of 9 and of 6, AVX-512's and the others' */
    PIECE = 3 * BERT_CHUNK, /* terms of K: with fewer, totals go to L2 and back more often; with more, a panel is too
                             * much for L1 */
    STEP = 8,               /* terms of K between two prefetches of a tile, as table.h says */
    LINE = 64               /* bytes */
};
static_assert(ROW_BLOCK % FULL_TILES == 0, "else a block could have more rows than scratch has");
static_assert(PIECE % BERT_CHUNK == 0, "else the bits would change");

/* The next piece is a line a term in each panel. The row tiles ask for it together, in each of their `steps` for a
 * share, rounded up: the last tiles may have nothing left to ask for. A single row only streams through the weights,
 * which the hardware foresees better. */
static unsigned lines_per_step(size_t rows, size_t tiles, size_t steps, size_t next) {
    return rows == 1 || steps == 0 ? 0 : (unsigned)parts_of(next, tiles * steps);
}

/* Where the results of a block of rows and a few panels go. */
typedef struct edge {
    const bert_linear *linear;
    size_t row, col, cols;
} edge;

/* The lines that finishing these rows will read and write: asked for before the products, there behind them. */
static void prefetch_edge(const edge *e, size_t row, size_t rows) {
    const bert_linear *l = e->linear;
    for (size_t i = e->row + row; i < e->row + row + rows; i++)
        for (size_t j = e->col; j < e->col + e->cols; j += LINE / sizeof(float)) {
            __builtin_prefetch(l->y + i * l->ldy + j, 1, 2);
            if (l->residual) __builtin_prefetch(l->residual + i * l->ldr + j, 0, 2);
        }
}

/* One piece of K for all row tiles of a block, `next` the terms of the next one. `tile` comes with everything but its
 * rows and lines. The last piece has an edge, which is applied tile by tile, while the sums are at hand and the next
 * tile's products hide its stores. */
static void run_piece(const bert_kernels *kernels, bert_tile tile, size_t rows, size_t next, const edge *e, int last) {
    const size_t tiles = parts_of(rows, kernels->rows), steps = tile.k / STEP;
    const unsigned lines = lines_per_step(rows, tiles, steps, next);
    size_t row = 0;
    for (size_t i = 0; i < tiles; i++) {
        tile.rows = part_size(rows, tiles, i);
        tile.lines = i * steps * lines < next ? lines : 0;
        if (last) prefetch_edge(e, row, tile.rows);
        kernels->tile(&tile);
        if (last) kernels->finish(e->linear, tile.totals, tile.ldt, e->row + row, tile.rows, e->col, e->cols);
        row += tile.rows;
        tile.x += tile.rows * tile.ldx;
        if (tile.resume || !last) tile.totals += tile.rows * tile.ldt; /* else nobody needs them any more */
        tile.ahead += tile.lines * steps * LINE;
    }
}

/* `panels` panels from `panel` on, rows [row, row+rows): all of K, then the edge. */
static void run_panels(const bert_kernels *kernels, const bert_linear *linear, size_t row, size_t rows, size_t panel,
                       size_t panels, float *totals) {
    const size_t ldw = linear->k * BERT_PANEL, ldt = panels * BERT_PANEL, col = panel * BERT_PANEL;
    const edge e = {.linear = linear, .row = row, .col = col, .cols = smaller(ldt, linear->n - col)};
    const float *w = linear->w + panel * ldw;
    for (size_t k = 0; k < linear->k; k += PIECE) {
        const int last = linear->k - k <= PIECE;
        const size_t next = last ? 0 : k + PIECE;
        const float *ahead = last ? w + panels * ldw : w + next * BERT_PANEL;
        run_piece(kernels,
                  (bert_tile){.totals = totals, .ldt = ldt, .x = linear->x + row * linear->ldx + k, .ldx = linear->ldx,
                              .w = w + k * BERT_PANEL, .ldw = ldw, .panels = panels,
                              .k = smaller(PIECE, linear->k - k), .resume = k > 0, .ahead = (uintptr_t)ahead},
                  rows, smaller(PIECE, linear->k - next), &e, last);
    }
}

size_t bert_row_blocks(size_t t) {
    return parts_of(t, ROW_BLOCK);
}

size_t bert_row_block_start(size_t t, size_t block) {
    const size_t full_tiles = parts_of(t, FULL_TILES) * block / bert_row_blocks(t);
    return smaller(t, full_tiles * FULL_TILES);
}

size_t bert_linear_scratch(const bert_kernels *kernels, const bert_linear *linear) {
    return smaller(linear->t, ROW_BLOCK) * kernels->panels * BERT_PANEL;
}

void bert_linear_run(const bert_kernels *kernels, const bert_linear *linear, size_t first, size_t last,
                     float *scratch) {
    for (size_t block = 0; block < bert_row_blocks(linear->t); block++) {
        const size_t row = bert_row_block_start(linear->t, block);
        const size_t rows = bert_row_block_start(linear->t, block + 1) - row;
        for (size_t panel = first, panels; panel < last; panel += panels) {
            panels = panels_of_tile(last - panel, kernels->panels);
            run_panels(kernels, linear, row, rows, panel, panels, scratch);
        }
    }
}

void bert_linear_finish(const bert_kernels *kernels, const bert_linear *linear, size_t first, size_t last) {
    kernels->finish(linear, linear->y + first * linear->ldy, linear->ldy, first, last - first, 0, linear->n);
}
