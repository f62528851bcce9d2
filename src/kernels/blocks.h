/* kernels/blocks.h: dividing rows and panels. Only for T and N: K is never divided but by the contract. */
#ifndef BERT_KERNELS_BLOCKS_H
#define BERT_KERNELS_BLOCKS_H

#include <stddef.h>

static inline size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* `total` things in as few parts of at most `most` as possible, all nearly equal: so no tile is a sliver. */
static inline size_t parts_of(size_t total, size_t most) {
    return (total + most - 1) / most;
}

static inline size_t part_size(size_t total, size_t parts, size_t i) {
    return total / parts + (i < total % parts);
}

/* How many of the panels that are left the next tile takes: all it can, unless the last one would be a sliver. */
static inline size_t panels_of_tile(size_t left, size_t most) {
    return left > most && left < 2 * most ? (left + 1) / 2 : smaller(left, most);
}

#endif
