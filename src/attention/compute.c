#include "attention/compute.h"

#include <string.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/size.h"

enum { LINE = 16 }; /* floats in a cache line */

bert_status bert_compute_make(bert_compute *compute, const bert_compute_options *given, bert_error *err) {
    bert_compute_options options = BERT_COMPUTE_OPTIONS_INIT;
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    *compute = (bert_compute){
        .kernels = bert_kernels_get(options.isa),
        .memory = bert_memory_or_default(options.memory),
        .workers = options.workers,
        .slots = (size_t)bert_parallel_width(options.workers),
    };
    if (compute->kernels) return BERT_OK;
    return bert_fail(err, BERT_UNSUPPORTED, "the instruction set asked for is not available on this processor");
}

bert_status bert_compute_scratch(const bert_compute *compute, bert_arena *arena, size_t shared, size_t *slot_floats,
                                 bert_error *err) {
    size_t floats;
    const bool fits = bert_size_align(slot_floats, *slot_floats, LINE) &&
                      bert_size_mul(&floats, compute->slots, *slot_floats) && bert_size_add(&floats, floats, shared);
    if (fits && bert_arena_open(arena, &compute->memory, floats)) return BERT_OK;
    return bert_fail(err, BERT_NO_MEMORY, "no memory for attention: %zu MB of scratch are needed",
                     fits ? floats / 250000 : SIZE_MAX / 1000000);
}
