/* base/size.h: arithmetic on sizes that come from outside. Every product, sum and alignment of such sizes goes
 * through here; false means that the true result does not fit. */
#ifndef BERT_BASE_SIZE_H
#define BERT_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>

static inline bool bert_size_add(size_t *sum, size_t a, size_t b) {
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool bert_size_mul(size_t *product, size_t a, size_t b) {
    return !__builtin_mul_overflow(a, b, product);
}

/* Next multiple of `step` (a power of two). */
static inline bool bert_size_align(size_t *aligned, size_t a, size_t step) {
    if (__builtin_add_overflow(a, step - 1, aligned)) return false;
    *aligned &= ~(step - 1);
    return true;
}

/* For sizes that are already known to be small: shapes that passed the config's range checks. */
static inline size_t bert_round_up(size_t a, size_t step) {
    return (a + step - 1) / step * step;
}

/* Which of n runs, laid one behind the other and beginning at first[0] = 0, first[1], …, holds place `at`. */
static inline size_t bert_run_at(const size_t *first, size_t n, size_t at) {
    size_t low = 0, high = n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (first[middle] <= at) low = middle;
        else high = middle;
    }
    return low;
}

#endif
