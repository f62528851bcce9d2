#include "encoder/session.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/size.h"

enum { LINE = 16 }; /* floats in a cache line: every buffer starts on one */

bert_status bert_session_open(bert_session **session, const bert_model *model, const bert_session_options *given,
                              bert_error *err) {
    bert_session_options options = BERT_SESSION_OPTIONS_INIT;
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    const bert_memory memory = bert_memory_or_default(options.memory);
    bert_session *s = bert_memory_new(&memory, 1, sizeof *s);
    *session = s;
    if (!s) return bert_fail(err, BERT_NO_MEMORY, "no memory to open a session");
    s->model = model;
    s->config = bert_model_config(model);
    s->kernels = bert_model_kernels(model);
    s->memory = memory;
    s->workers = options.workers;
    s->max_memory = options.max_memory;
    s->pid = getpid();
    bert_model_retain(model);
    return BERT_OK;
}

void bert_session_close(bert_session **session) {
    if (!session || !*session) return;
    bert_session *s = *session;
    *session = NULL;
    bert_arena_close(&s->arena);
    bert_model_release(s->model);
    const bert_memory memory = s->memory;
    bert_memory_free(&memory, s, 1, sizeof *s);
}

const bert_model *bert_session_model(const bert_session *session) { return session->model; }

/* ---- The one place where buffers are sized. ---- */

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t slot_floats(const bert_pass *pass) {
    const bert_session *s = pass->session;
    const size_t h = s->config->hidden, f = s->config->intermediate, d = h / s->config->heads;
    const size_t t = larger(pass->tokens, pass->memory_tokens), keys = larger(pass->longest, pass->longest_memory);
    const bert_linear widest[] = {
        {.t = t, .n = 3 * h, .k = h}, {.t = t, .n = h, .k = h}, {.t = t, .n = f, .k = h}, {.t = t, .n = h, .k = f}};
    const bert_attend attend = {.tq = pass->longest, .tk = keys, .d = d, .steps = BERT_ATTEND_ALL};
    size_t floats = bert_attend_scratch(&attend);
    for (size_t i = 0; i < sizeof widest / sizeof *widest; i++)
        floats = larger(floats, bert_linear_scratch(s->kernels, &widest[i]));
    floats = bert_round_up(floats, LINE);
    /* From the file: rows as they are there, the panels made of them, and the kernels' own scratch behind. */
    return pass->packed ? floats : floats + 2 * BERT_FILE_ROWS * larger(h, f);
}

/* Adds an array of a × b × c floats to the plan; false if the size does not fit. */
static bool plan(size_t *total, size_t *offset, size_t a, size_t b, size_t c) {
    size_t n;
    *offset = *total;
    return bert_size_mul(&n, a, b) && bert_size_mul(&n, n, c) && bert_size_align(&n, n, LINE) &&
           bert_size_add(total, *total, n);
}

/* Rows that lie a multiple of 4 KiB apart share a few sets of the cache and drive each other out: 3 % of a product. */
static size_t stride_of(size_t n) { return n % 1024 ? n : n + LINE; }

static bert_status grow(bert_session *s, size_t floats, bert_error *err) {
    size_t bytes;
    if (floats <= s->arena.count) return BERT_OK;
    if (!bert_size_mul(&bytes, floats, sizeof(float))) bytes = SIZE_MAX;
    if (bytes == SIZE_MAX || (s->max_memory && bytes > s->max_memory))
        return bert_fail(err, BERT_NO_MEMORY, "the pass needs %zu bytes, the limit given is %zu", bytes, s->max_memory);
    bert_arena_close(&s->arena);
    if (!bert_arena_open(&s->arena, &s->memory, floats))
        return bert_fail(err, BERT_NO_MEMORY, "no memory for the pass: %zu MB are needed", bytes / 1000000);
    return BERT_OK;
}

bert_status bert_session_reserve(bert_pass *pass, bert_error *err) {
    bert_session *s = pass->session;
    const size_t t = pass->tokens, h = s->config->hidden, f = s->config->intermediate;
    const size_t maps = pass->look_at_maps ? s->config->heads : 0, results = pass->by_head * s->config->heads;
    const size_t slots = (size_t)bert_parallel_width(s->workers), slot = slot_floats(pass);
    const size_t keys = larger(pass->longest, pass->longest_memory);
    const size_t inner_stride = stride_of(f);
    const size_t starts = pass->keep_maps ? pass->batch->n + 1 : 0, size_floats = sizeof(size_t) / sizeof(float);
    size_t total = 0, hidden, sum, work, pooled, memory_kv, scores, weights, by_head, map_start, cross_start, scratch;
    const bool fits = plan(&total, &hidden, t, h, 1) && plan(&total, &sum, t, h, 1) &&
                      plan(&total, &work, t, larger(4 * h, inner_stride), 1) &&
                      plan(&total, &pooled, pass->batch->n, h, 1) &&
                      plan(&total, &memory_kv, pass->memory_tokens, 2 * h, 1) &&
                      plan(&total, &scores, maps, pass->longest, keys) &&
                      plan(&total, &weights, maps, pass->longest, keys) &&
                      plan(&total, &by_head, results, pass->longest, h) &&
                      plan(&total, &map_start, starts, size_floats, 1) &&
                      plan(&total, &cross_start, starts, size_floats, 1) &&
                      plan(&total, &scratch, slots, slot, 1);
    if (!fits) return bert_fail(err, BERT_NO_MEMORY, "a pass over %zu tokens does not fit the address space", t);
    TRY(grow(s, total, err));
    float *base = s->arena.data;
    pass->b = (bert_buffers){
        .hidden = base + hidden,
        .sum = base + sum,
        .qkv = base + work,
        .context = base + work + 3 * t * h,
        .inner = base + work,
        .inner_stride = inner_stride,
        .pooled = base + pooled,
        .memory_kv = pass->memory_tokens ? base + memory_kv : NULL,
        .scores = maps ? base + scores : NULL,
        .weights = maps ? base + weights : NULL,
        .by_head = results ? base + by_head : NULL,
        .map_start = (size_t *)(void *)(base + map_start), /* whole cache lines, as every buffer */
        .cross_start = (size_t *)(void *)(base + cross_start),
        .scratch = base + scratch,
        .slot_floats = slot,
    };
    return BERT_OK;
}

/* ---- What all parts of a pass use. ---- */

typedef struct watched {
    const bert_run_options *options;
    bert_parallel_body body;
    void *arg;
} watched;

static bert_status watch(const bert_run_options *options, bert_error *err) {
    if (options->stop && __atomic_load_n(options->stop, __ATOMIC_RELAXED))
        return bert_fail(err, BERT_STOPPED, "stopped by the caller");
    if (options->deadline_ns == 0) return BERT_OK;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec < options->deadline_ns) return BERT_OK;
    return bert_fail(err, BERT_DEADLINE, "the deadline passed");
}

static bert_status watched_item(void *arg, size_t item, int slot, bert_error *err) {
    const watched *w = arg;
    TRY(watch(w->options, err));
    return w->body(w->arg, item, slot, err);
}

bert_status bert_pass_parallel(bert_pass *pass, size_t items, bert_parallel_body body, void *arg, bert_error *err) {
    watched w = {&pass->options, body, arg};
    return bert_parallel(pass->session->workers, items, watched_item, &w, err);
}

float *bert_pass_scratch(const bert_pass *pass, int slot) {
    return pass->b.scratch + (size_t)slot * pass->b.slot_floats;
}
