/* bench_tokenizer TOKENIZER TEXTFILE [THREADS]: megabytes and tokens a second, one text a line, ids and byte offsets.
 * By CPU seconds and by the clock, the best of several passes each; not a test. `bert bench --tokenizer` is the same for users. */
#include <bert/tokenizer.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 64, PASSES = 7, MOST_THREADS = 64 };

typedef struct work {
    const bert_tokenizer *tokenizer;
    const bert_text *texts;
    size_t n, tokens;
} work;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *tokenize(void *arg) {
    work *w = arg;
    bert_tokens *tokens = NULL;
    bert_error err;
    w->tokens = 0;
    for (size_t i = 0; i < w->n; i += BATCH) {
        const size_t n = w->n - i < BATCH ? w->n - i : BATCH;
        if (bert_tokenize(&tokens, w->tokenizer, w->texts + i, n, NULL, &err) != BERT_OK) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        for (size_t k = 0; k < n; k++) w->tokens += bert_tokens_at(tokens, k, 0).n;
    }
    bert_tokens_close(&tokens);
    return NULL;
}

static char *read_all(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) exit(fprintf(stderr, "%s: cannot be read\n", path));
    *len = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*len + 1);
    if (text == NULL || fread(text, 1, *len, file) != *len) exit(fprintf(stderr, "%s: cannot be read\n", path));
    fclose(file);
    return text;
}

static size_t split_lines(bert_text **texts, char *text, size_t len) {
    size_t n = 0, room = 1024;
    *texts = malloc(room * sizeof **texts);
    for (char *line = text, *end; line < text + len; line = end + 1) {
        end = memchr(line, '\n', len - (size_t)(line - text));
        if (end == NULL) end = text + len;
        if (n == room) *texts = realloc(*texts, (room *= 2) * sizeof **texts);
        if (*texts == NULL) exit(fprintf(stderr, "no memory\n"));
        (*texts)[n++] = (bert_text){line, (size_t)(end - line), NULL, 0};
    }
    return n;
}

int main(int argc, char **argv) {
    bert_tokenizer *tokenizer = NULL;
    bert_error err;
    size_t len, tokens = 0, n;
    bert_text *texts;
    if (argc < 3) return fprintf(stderr, "usage: bench_tokenizer TOKENIZER TEXTFILE [THREADS]\n"), 2;
    const int threads = argc > 3 ? atoi(argv[3]) : 1;
    double open_ms = 1e9, wall = 1e9, cpu = 1e9;
    if (threads < 1 || threads > MOST_THREADS) return fprintf(stderr, "1 to %d threads\n", MOST_THREADS), 2;
    for (int i = 0; i < PASSES; i++) {
        bert_tokenizer_close(&tokenizer);
        const double start = now(CLOCK_PROCESS_CPUTIME_ID);
        if (bert_tokenizer_open(&tokenizer, argv[1], NULL, &err) != BERT_OK) return fprintf(stderr, "%s\n", err.text), 1;
        const double ms = 1e3 * (now(CLOCK_PROCESS_CPUTIME_ID) - start);
        if (ms < open_ms) open_ms = ms;
    }
    char *text = read_all(argv[2], &len);
    n = split_lines(&texts, text, len);
    for (int pass = 0; pass < PASSES; pass++) {
        pthread_t id[MOST_THREADS];
        work w[MOST_THREADS];
        const double start = now(CLOCK_MONOTONIC), cpu_start = now(CLOCK_PROCESS_CPUTIME_ID);
        for (int i = 0; i < threads; i++) {
            const size_t from = n * (size_t)i / (size_t)threads, to = n * (size_t)(i + 1) / (size_t)threads;
            w[i] = (work){tokenizer, texts + from, to - from, 0};
            if (i > 0) pthread_create(&id[i], NULL, tokenize, &w[i]);
        }
        tokenize(&w[0]);
        for (int i = 1; i < threads; i++) pthread_join(id[i], NULL);
        const double seconds = now(CLOCK_MONOTONIC) - start, cpu_seconds = now(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
        if (seconds < wall) wall = seconds;
        if (cpu_seconds < cpu) cpu = cpu_seconds;
        tokens = 0;
        for (int i = 0; i < threads; i++) tokens += w[i].tokens;
    }
    printf("%.1f MB/s CPU, %.1f MB/s wall, %.2f M tokens/s, %zu tokens, %d threads, open %.2f ms\n",
           1e-6 * (double)len / cpu, 1e-6 * (double)len / wall, 1e-6 * (double)tokens / cpu, tokens, threads, open_ms);
    bert_tokenizer_close(&tokenizer);
    free(texts);
    free(text);
    return 0;
}
