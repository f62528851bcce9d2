/* base/parallel.h: dividing work among the caller's workers. */
#ifndef BERT_BASE_PARALLEL_H
#define BERT_BASE_PARALLEL_H

#include <bert/base.h>

/* Slots that bert_parallel will use at most: how many scratch areas to have ready. */
int bert_parallel_width(const bert_workers *workers);

/* One part of the work. Calls with the same slot never overlap, so a slot may own scratch memory. The
 * floating-point environment is the default one inside. */
typedef bert_status (*bert_parallel_body)(void *arg, size_t item, int slot, bert_error *err);

/* Calls body once for each item in 0..items-1, taken in ascending order by whichever slot is free. The first failure
 * ends the work: no further item is begun, and its status and error are returned. `workers` NULL: all on the calling
 * thread, slot 0. */
BERT_MUST_USE bert_status bert_parallel(const bert_workers *workers, size_t items, bert_parallel_body body, void *arg,
                                        bert_error *err);

#endif
