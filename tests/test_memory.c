/* The allocator interface, arrays that grow, arenas, and arithmetic on sizes. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/size.h"

enum { MIB = 1 << 20 };

/* Counts what is out, checks that the same n comes back, and can refuse large alignments or everything. */
typedef struct counter {
    size_t blocks, bytes, calls, refuse_align, last_align;
    int refuse_all;
} counter;

static void *counted_get(void *user, size_t n, size_t align) {
    counter *c = user;
    c->calls++;
    c->last_align = align;
    if (c->refuse_all || (c->refuse_align && align >= c->refuse_align)) return NULL;
    void *p = NULL;
    if (posix_memalign(&p, align, n) != 0) return NULL;
    memset(p, 0xa5, n);
    c->blocks++;
    c->bytes += n;
    return p;
}

static void counted_put(void *user, void *p, size_t n) {
    counter *c = user;
    c->blocks--;
    c->bytes -= n;
    free(p);
}

Test(size, sums_and_products_at_the_edge) {
    size_t r;
    cr_expect(bert_size_add(&r, SIZE_MAX, 0) && r == SIZE_MAX);
    cr_expect_not(bert_size_add(&r, SIZE_MAX, 1));
    cr_expect(bert_size_mul(&r, SIZE_MAX / 3, 3) && r == SIZE_MAX);
    cr_expect_not(bert_size_mul(&r, (size_t)1 << 32, (size_t)1 << 32));
    cr_expect(bert_size_mul(&r, 0, SIZE_MAX) && r == 0);
    cr_expect(bert_size_align(&r, 65, 64) && r == 128);
    cr_expect(bert_size_align(&r, 64, 64) && r == 64);
    cr_expect(bert_size_align(&r, SIZE_MAX - 63, 64) && r == SIZE_MAX - 63);
    cr_expect_not(bert_size_align(&r, SIZE_MAX - 62, 64));
    cr_expect_eq(bert_round_up(17, 16), 32u);
}

Test(memory, new_is_zeroed_and_given_back_in_full) {
    counter c = {0};
    const bert_memory memory = {&c, counted_get, counted_put};
    unsigned char *p = bert_memory_new(&memory, 1000, 3);
    cr_assert_not_null(p);
    for (size_t i = 0; i < 3000; i++) cr_assert_eq(p[i], 0);
    bert_memory_free(&memory, p, 1000, 3);
    void *nothing = bert_memory_new(&memory, 0, 8);
    cr_expect_not_null(nothing);
    bert_memory_free(&memory, nothing, 0, 8);
    bert_memory_free(&memory, NULL, 5, 8);
    cr_expect(c.blocks == 0 && c.bytes == 0);
}

Test(memory, what_does_not_fit_is_not_asked_for) {
    counter c = {0};
    const bert_memory memory = {&c, counted_get, counted_put};
    cr_expect_null(bert_memory_new(&memory, SIZE_MAX / 2, 3));
    void *p = NULL;
    size_t count = 0;
    cr_expect_eq(bert_memory_grow(&memory, &p, &count, SIZE_MAX, 2), 0);
    bert_arena arena;
    cr_expect_eq(bert_arena_open(&arena, &memory, SIZE_MAX / 2), 0);
    bert_arena_close(&arena);
    cr_expect_eq(c.calls, 0u);
}

Test(memory, grow_doubles_and_keeps_what_was_there) {
    counter c = {0};
    const bert_memory memory = {&c, counted_get, counted_put};
    void *p = NULL;
    size_t count = 0;
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(bert_memory_grow(&memory, &p, &count, (size_t)i + 1, sizeof(int)), 1);
        ((int *)p)[i] = i;
    }
    for (int i = 0; i < 1000; i++) cr_assert_eq(((int *)p)[i], i);
    cr_expect_leq(c.calls, 11u, "1000 elements one by one: %zu allocations", c.calls);
    c.refuse_all = 1;
    void *before = p;
    cr_expect_eq(bert_memory_grow(&memory, &p, &count, 5000, sizeof(int)), 0);
    cr_expect(p == before && count < 5000);
    bert_memory_free(&memory, p, count, sizeof(int));
    cr_expect(c.blocks == 0 && c.bytes == 0);
}

Test(memory, default_allocator) {
    const bert_memory libc = bert_memory_or_default(NULL);
    for (size_t align = 1; align <= 4096; align *= 2) {
        void *p = libc.get(libc.user, 100, align);
        cr_assert_not_null(p);
        cr_expect_eq((uintptr_t)p % align, 0u);
        libc.put(libc.user, p, 100);
    }
    counter c = {0};
    const bert_memory given = {&c, counted_get, counted_put};
    cr_expect_eq(bert_memory_or_default(&given).user, &c);
}

static void use_arena(const bert_memory *memory, size_t count, size_t align) {
    bert_arena arena;
    cr_assert_eq(bert_arena_open(&arena, memory, count), 1);
    cr_expect_eq((uintptr_t)arena.data % align, 0u, "%zu floats", count);
    cr_expect_eq(arena.count, count);
    if (count > 0) arena.data[0] = arena.data[count - 1] = 1.0f;
    bert_arena_close(&arena);
    cr_expect_null(arena.data);
    bert_arena_close(&arena);
}

Test(arena, alignment) {
    use_arena(NULL, 0, 64);
    use_arena(NULL, 17, 64);
    use_arena(NULL, 4 * MIB + 5, 2 * MIB);
    counter c = {0};
    const bert_memory memory = {&c, counted_get, counted_put};
    use_arena(&memory, 100, 64);
    cr_expect_eq(c.last_align, 64u);
    use_arena(&memory, 2 * MIB, 2 * MIB);
    cr_expect_eq(c.last_align, 2u * MIB);
    cr_expect(c.blocks == 0 && c.bytes == 0);
}

Test(arena, huge_pages_are_never_required) {
    counter c = {.refuse_align = 4096};
    const bert_memory memory = {&c, counted_get, counted_put};
    use_arena(&memory, 2 * MIB, 64);
    c.refuse_all = 1;
    bert_arena arena;
    cr_expect_eq(bert_arena_open(&arena, &memory, 2 * MIB), 0);
    bert_arena_close(&arena);
    cr_expect(c.blocks == 0 && c.bytes == 0);
}
