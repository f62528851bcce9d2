/* bench.h: the parts of `bert bench`: what this machine can do, and how fast a tokenizer is. */
#ifndef BENCH_H
#define BENCH_H

#include <bert/bert.h>

#include "args.h"
#include "buffer.h"

/* bench_probe.c. Both use the threads that `workers` has (NULL: the calling one), all at the same time. */

/* Multiply-adds of the instruction set's widest vectors on registers alone, two operations each: operations a second,
 * the best of some short runs. `ref` has no vectors of its own: there it is what this CPU's best set reaches. */
double bench_fma_peak(bert_isa isa, const bert_workers *workers);

/* Bytes a second at which n bytes, each thread its own part of them, are read through once in ascending order, from
 * huge pages where there are any. With n the size of a model's matrices this is the bound for a pass that reads each
 * weight once; caches that hold n bytes count. */
double bench_read_rate(size_t n, const bert_workers *workers);

/* bench_tokenizer.c: adds the figures of `bert bench --tokenizer` to `out`, as text or as JSON. */
int bench_tokenizer(buffer *out, const settings *s, int as_json);

#endif
