/* base/memory.c: the default allocator, arrays, and arenas in huge pages. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/size.h"

enum { CACHE_LINE = 64, HUGE_PAGE = 2 << 20 };

static void *default_get(void *user, size_t n, size_t align) {
    (void)user;
    void *p = NULL;
    return posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, n) == 0 ? p : NULL;
}

static void default_put(void *user, void *p, size_t n) {
    (void)user;
    (void)n;
    free(p);
}

bert_memory bert_memory_or_default(const bert_memory *given) {
    const bert_memory libc = {NULL, default_get, default_put};
    return given != NULL ? *given : libc;
}

/* The bytes asked for; never 0, because an allocator may answer 0 bytes with NULL. 0: the product does not fit. */
static size_t block_bytes(size_t count, size_t size) {
    size_t bytes;
    if (!bert_size_mul(&bytes, count, size)) return 0;
    return bytes > 0 ? bytes : 1;
}

void *bert_memory_new(const bert_memory *memory, size_t count, size_t size) {
    const size_t bytes = block_bytes(count, size);
    void *p = bytes > 0 ? memory->get(memory->user, bytes, CACHE_LINE) : NULL;
    if (p != NULL) memset(p, 0, bytes);
    return p;
}

void bert_memory_free(const bert_memory *memory, void *p, size_t count, size_t size) {
    if (p != NULL) memory->put(memory->user, p, block_bytes(count, size));
}

int bert_memory_grow(const bert_memory *memory, void **p, size_t *count, size_t need_count, size_t size) {
    if (need_count <= *count) return 1;
    size_t new_count;
    if (!bert_size_mul(&new_count, *count, 2) || new_count < need_count) new_count = need_count;
    const size_t bytes = block_bytes(new_count, size);
    void *bigger = bytes > 0 ? memory->get(memory->user, bytes, CACHE_LINE) : NULL;
    if (bigger == NULL) return 0;
    if (*p != NULL) memcpy(bigger, *p, *count * size);
    bert_memory_free(memory, *p, *count, size);
    *p = bigger;
    *count = new_count;
    return 1;
}

/* Only for our own allocator's memory: what a host hands out is the host's to advise on. */
static void prefer_huge_pages(const bert_memory *memory, void *p, size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (memory->get == default_get) (void)madvise(p, bytes, MADV_HUGEPAGE);
#else
    (void)memory, (void)p, (void)bytes;
#endif
}

int bert_arena_open(bert_arena *arena, const bert_memory *memory, size_t count) {
    *arena = (bert_arena){.memory = bert_memory_or_default(memory)};
    const bert_memory *from = &arena->memory;
    const size_t bytes = block_bytes(count, sizeof(float));
    if (bytes == 0) return 0;
    /* Below two huge pages little would be gained; an allocator that cannot align so far is asked again for less. */
    if (bytes >= 2 * (size_t)HUGE_PAGE) {
        arena->data = from->get(from->user, bytes, HUGE_PAGE);
        if (arena->data != NULL) prefer_huge_pages(from, arena->data, bytes);
    }
    if (arena->data == NULL) arena->data = from->get(from->user, bytes, CACHE_LINE);
    if (arena->data == NULL) return 0;
    arena->count = count;
    return 1;
}

void bert_arena_close(bert_arena *arena) {
    if (arena->data == NULL) return;
    bert_memory_free(&arena->memory, arena->data, arena->count, sizeof(float));
    arena->data = NULL;
    arena->count = 0;
}
