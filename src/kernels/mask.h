/* kernels/mask.h: what a mask makes of a row of scores, the same lines for every instruction set. */
#ifndef BERT_KERNELS_MASK_H
#define BERT_KERNELS_MASK_H

#include <math.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/kernels.h"

/* Keys that queries before `end` may see, so that nothing is computed for those behind. A query that sees none looks at
 * all: only the lengths and the diagonal tell beforehand that there is no such query. */
static inline size_t mask_keys(const bert_attend_mask *m, size_t end, size_t tk) {
    if (!m || m->keys == 0 || m->allowed || m->added) return tk;
    const size_t keys = smaller(m->keys, tk);
    return m->causal ? smaller(keys, m->first + end) : keys;
}

/* y [seen] = scores with what the arrays of the mask say. */
static inline void mask_seen(float *y, const float *x, const bert_attend_mask *m, size_t i, size_t seen) {
    if (m->added) {
        const float *added = m->added + i * m->ld_added;
        for (size_t j = 0; j < seen; j++) y[j] = x[j] + added[j];
    } else if (y != x) {
        memcpy(y, x, seen * sizeof *y);
    }
    const unsigned char *allowed = m->allowed ? m->allowed + i * m->ld_allowed : NULL;
    for (size_t j = 0; allowed && j < seen; j++)
        if (!allowed[j]) y[j] = -INFINITY;
}

/* y [keys] = the scores that the softmax of query i is of; y may be x. */
static inline void mask_row(float *y, const float *x, const bert_attend_mask *m, size_t i, size_t keys) {
    size_t seen = smaller(m->keys, keys);
    if (m->causal) seen = smaller(seen, m->first + i + 1);
    mask_seen(y, x, m, i, seen);
    for (size_t j = seen; j < keys; j++) y[j] = -INFINITY;
    size_t hidden = 0; /* the first key that is seen ends the search, mostly at once */
    while (hidden < keys && y[hidden] == -INFINITY) hidden++;
    if (hidden == keys) memset(y, 0, keys * sizeof *y);
}

#endif
