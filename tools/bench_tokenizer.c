/* bert bench --tokenizer: ids and byte offsets of many texts, each thread a slice of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "json_out.h"
#include "lines.h"
#include "say.h"
#include "signals.h"

/* Texts of one call: enough to make its cost not count, few enough that their tokens stay in a cache. */
enum { TEXTS_A_CALL = 256, MADE_UP_TEXTS = 20000, DEFAULT_REPEAT = 10 };

/* One thread's texts, and what came of them. */
typedef struct slice {
    const bert_text *texts;
    size_t n, tokens;
    bert_tokens *result;
    bert_status status;
    bert_error err;
} slice;

typedef struct job {
    const settings *s;
    int as_json;
    bert_pool *pool;
    const bert_workers *workers;
    bert_tokenizer *tokenizer;
    lines lines;
    buffer bytes; /* of all texts, one behind the other */
    bert_text *texts;
    size_t n_texts, room;
    slice *slices; /* [threads] */
    int threads;
    double open_seconds, seconds; /* the best of each */
    size_t tokens;
} job;

static void add_text(job *j, const char *bytes, size_t n) {
    if (j->n_texts == j->room) {
        j->room = 2 * j->room + 1024;
        j->texts = need_more(j->texts, j->room, sizeof *j->texts);
    }
    j->texts[j->n_texts++] = (bert_text){.a_len = n};
    buffer_add(&j->bytes, bytes, n);
}

/* Now that `bytes` no longer moves. */
static void point_texts(job *j) {
    const char *at = j->bytes.data;
    for (size_t i = 0; i < j->n_texts; at += j->texts[i++].a_len) j->texts[i].a = at;
}

static int read_texts(job *j, const char *path) {
    const char *line;
    size_t n;
    TRY(lines_open(&j->lines, path));
    for (;;) {
        TRY(lines_next(&j->lines, &line, &n));
        if (!line) break;
        add_text(j, line, n);
    }
    return j->bytes.len ? 0 : say_error("%s: expected lines of text, found none", j->lines.name);
}

/* An entry of the vocabulary at random, low ids more often: rank and frequency of words are like that (Zipf), and
 * vocabularies are roughly in order of frequency behind special tokens, unused ones and characters. */
static const char *draw_entry(const job *j, uint32_t *random, size_t *n) {
    *random = *random * 1664525u + 1013904223u; /* Numerical Recipes' generator */
    size_t entries = bert_tokenizer_vocab_size(j->tokenizer), first = entries / 15;
    double rank = exp((double)*random / 4294967296.0 * log((double)(entries - first)));
    return bert_tokenizer_token(j->tokenizer, (int32_t)first + (int32_t)rank, n);
}

/* Texts of 5 to 60 entries of the tokenizer's own vocabulary; what begins with ## goes on a word. */
static void make_texts(job *j) {
    buffer text = {0};
    uint32_t random = 1;
    for (size_t i = 0; i < MADE_UP_TEXTS; i++) {
        text.len = 0;
        for (size_t k = 0; k < 5 + i * 37 % 56; k++) {
            size_t n = 0;
            const char *entry = draw_entry(j, &random, &n);
            if (!entry || entry[0] == '[') continue; /* a gap, or [PAD] and its like */
            int goes_on = n > 2 && memcmp(entry, "##", 2) == 0;
            if (!goes_on) buffer_byte(&text, ' ');
            buffer_add(&text, goes_on ? entry + 2 : entry, goes_on ? n - 2 : n);
        }
        add_text(j, text.data, text.len);
    }
    buffer_close(&text);
}

/* The best of a few times, with the files in the page cache; the last one stays open. */
static int open_tokenizer(job *j, size_t repeat) {
    bert_error err;
    bert_tokenizer_options options = BERT_TOKENIZER_OPTIONS_INIT;
    options.tokenizer_json = j->s->tokenizer_json;
    options.strict = j->s->strict;
    for (size_t i = 0; i < repeat; i++) {
        bert_tokenizer_close(&j->tokenizer);
        options.notes = i ? NULL : &say_notes;
        double start = clock_seconds();
        if (bert_tokenizer_open(&j->tokenizer, j->s->tokenizer, &options, &err)) return say_failure(&err);
        double seconds = clock_seconds() - start;
        if (i == 0 || seconds < j->open_seconds) j->open_seconds = seconds;
    }
    return 0;
}

static int open_threads(job *j) {
    bert_error err;
    size_t threads = j->s->threads > 4096 ? 4096 : j->s->threads;
    if (threads != 1 && bert_pool_open(&j->pool, (int)threads, &err)) return say_failure(&err);
    if (j->pool) j->workers = bert_pool_workers(j->pool);
    j->threads = j->workers ? j->workers->width : 1;
    return 0;
}

/* Slices of about as many bytes each. */
static void cut_slices(job *j) {
    size_t text = 0, done = 0;
    j->slices = need((size_t)j->threads, sizeof *j->slices);
    for (int i = 0; i < j->threads; i++) {
        size_t end = j->bytes.len / (size_t)j->threads * (size_t)(i + 1), first = text;
        while (text < j->n_texts && (done < end || i == j->threads - 1)) done += j->texts[text++].a_len;
        j->slices[i] = (slice){.texts = j->texts + first, .n = text - first};
    }
}

static void tokenize_slice(void *arg, int which) {
    job *j = arg;
    slice *part = &j->slices[which];
    part->tokens = 0;
    for (size_t i = 0; i < part->n && !signals_caught(); i += TEXTS_A_CALL) {
        size_t n = part->n - i < TEXTS_A_CALL ? part->n - i : TEXTS_A_CALL;
        part->status = bert_tokenize(&part->result, j->tokenizer, part->texts + i, n, NULL, &part->err);
        if (part->status) return;
        for (size_t k = 0; k < n; k++) part->tokens += bert_tokens_at(part->result, k, 0).n;
    }
}

/* All texts once. */
static int tokenize(job *j) {
    if (j->workers)
        j->workers->run(j->workers->user, j->threads, tokenize_slice, j);
    else
        tokenize_slice(j, 0);
    j->tokens = 0;
    for (int i = 0; i < j->threads; i++) {
        if (j->slices[i].status) return say_failure(&j->slices[i].err);
        j->tokens += j->slices[i].tokens;
    }
    return signals_caught() ? signals_status() : 0;
}

/* The best of `repeat` times behind one that warms up. */
static int time_texts(job *j, size_t repeat) {
    for (size_t i = 0; i <= repeat; i++) {
        double start = clock_seconds();
        TRY(tokenize(j));
        double seconds = clock_seconds() - start;
        if (i == 1 || (i && seconds < j->seconds)) j->seconds = seconds;
    }
    return 0;
}

static void print(const job *j, buffer *out) {
    double megabytes = (double)j->bytes.len / 1e6;
    if (j->as_json) {
        buffer_text(out, "[{");
        json_key(out, "mb_per_s");
        json_double(out, megabytes / j->seconds);
        json_key(out, "tokens_per_s");
        json_double(out, (double)j->tokens / j->seconds);
        buffer_print(out, ",\"threads\":%d", j->threads);
        json_key(out, "open_ms");
        json_double(out, 1e3 * j->open_seconds);
        buffer_text(out, "}]\n");
        return;
    }
    buffer_print(out, "tokenizer  %s, opened in %.1f ms\n", j->s->tokenizer, 1e3 * j->open_seconds);
    buffer_print(out, "texts      %zu, %.2f MB, %zu tokens; %d thread%s\n", j->n_texts, megabytes, j->tokens,
                 j->threads, j->threads > 1 ? "s" : "");
    buffer_print(out, "speed      %.1f MB/s, %.0f tokens/s\n", megabytes / j->seconds, (double)j->tokens / j->seconds);
}

static int work(job *j, buffer *out) {
    const settings *s = j->s;
    size_t repeat = s->repeat ? s->repeat : DEFAULT_REPEAT;
    if (s->n_texts > 1) return say_usage("bench --tokenizer takes one file of texts, found %zu", s->n_texts);
    if (s->model || s->shapes) return say_usage("bench measures either a model or, with --tokenizer, a tokenizer");
    TRY(open_tokenizer(j, repeat));
    if (s->n_texts)
        TRY(read_texts(j, s->texts[0]));
    else
        make_texts(j);
    point_texts(j);
    TRY(open_threads(j));
    cut_slices(j);
    TRY(time_texts(j, repeat));
    print(j, out);
    return 0;
}

int bench_tokenizer(buffer *out, const settings *s, int as_json) {
    job j = {.s = s, .as_json = as_json};
    int status = work(&j, out);
    for (int i = 0; j.slices && i < j.threads; i++) bert_tokens_close(&j.slices[i].result);
    free(j.slices);
    free(j.texts);
    buffer_close(&j.bytes);
    if (j.lines.name) lines_close(&j.lines);
    bert_tokenizer_close(&j.tokenizer);
    bert_pool_close(&j.pool);
    return status;
}
