/* attention/compute.h: the options of a computation on plain arrays, made ready. */
#ifndef BERT_ATTENTION_COMPUTE_H
#define BERT_ATTENTION_COMPUTE_H

#include <bert/attention.h>

#include "base/memory.h"
#include "kernels/kernels.h"

typedef struct bert_compute {
    const bert_kernels *kernels;
    bert_memory memory;
    const bert_workers *workers;
    size_t slots;
} bert_compute;

BERT_MUST_USE bert_status bert_compute_make(bert_compute *compute, const bert_compute_options *options,
                                            bert_error *err);

/* An arena of shared + slots × slot floats; *slot_floats is rounded up to whole cache lines. */
BERT_MUST_USE bert_status bert_compute_scratch(const bert_compute *compute, bert_arena *arena, size_t shared,
                                               size_t *slot_floats, bert_error *err);

/* bert_attention_run, checked before. */
BERT_MUST_USE bert_status bert_attention_compute(const bert_attention *attention, const bert_compute *compute,
                                                 bert_error *err);

/* The mask's own rules. */
BERT_MUST_USE bert_status bert_attention_mask_check(const bert_attention_mask *mask, size_t batch, size_t tq, size_t tk,
                                                    bert_error *err);

#endif
