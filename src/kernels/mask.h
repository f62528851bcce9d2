/* kernels/mask.h: what a mask makes of a row of scores, the same lines for every instruction set. */
#ifndef BERT_KERNELS_MASK_H
#define BERT_KERNELS_MASK_H

#include <math.h>

#include "kernels/blocks.h"
#include "kernels/kernels.h"

/* Keys that queries before `end` may see, so that nothing is computed for those behind. A query that sees none looks at
 * all: only the lengths and the diagonal tell beforehand that there is no such query. */
static inline size_t mask_keys(const bert_attend_mask *m, size_t end, size_t tk) {
    if (!m || m->keys == 0 || m->allowed || m->added) return tk;
    const size_t keys = smaller(m->keys, tk);
    return m->causal ? smaller(keys, m->first + end) : keys;
}

/* y [keys] = the scores that the softmax of query i is of; y may be x. */
static inline void mask_row(float *y, const float *x, const bert_attend_mask *m, size_t i, size_t keys) {
    const unsigned char *allowed = m->allowed ? m->allowed + i * m->ld_allowed : NULL;
    const float *added = m->added ? m->added + i * m->ld_added : NULL;
    size_t seen = smaller(m->keys, keys);
    if (m->causal) seen = smaller(seen, m->first + i + 1);
    bool none = true;
    for (size_t j = 0; j < keys; j++) {
        const float score = added ? x[j] + added[j] : x[j];
        y[j] = j < seen && (!allowed || allowed[j]) ? score : -INFINITY;
        none = none && y[j] == -INFINITY;
    }
    for (size_t j = 0; none && j < keys; j++) y[j] = 0.0f;
}

#endif
