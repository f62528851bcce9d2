/* base/memory.h: memory through the caller's allocator, and aligned arenas for weights and activations. */
#ifndef BERT_BASE_MEMORY_H
#define BERT_BASE_MEMORY_H

#include <bert/base.h>

/* The C library's allocator behind the same interface; `given` NULL gives it. */
bert_memory bert_memory_or_default(const bert_memory *given);

/* count × size bytes, zeroed; NULL if the product does not fit or there is no memory. count 0 gives a valid pointer. */
void *bert_memory_new(const bert_memory *memory, size_t count, size_t size);
void bert_memory_free(const bert_memory *memory, void *p, size_t count, size_t size);

/* Grows *p (*count elements of `size`) to at least need_count, at least doubling; *count is updated. 0 on failure,
 * with *p as it was. New elements are not initialised. */
int bert_memory_grow(const bert_memory *memory, void **p, size_t *count, size_t need_count, size_t size);

/* A block of floats, 64-byte aligned, in huge pages where the system gives them (never required). */
typedef struct bert_arena {
    bert_memory memory;
    float *data;  /* [count] */
    size_t count; /* floats */
} bert_arena;
int bert_arena_open(bert_arena *arena, const bert_memory *memory, size_t count); /* 0: no memory */
void bert_arena_close(bert_arena *arena);

#endif
