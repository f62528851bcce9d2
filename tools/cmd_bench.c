/* bert bench: how fast a model runs here, beside what the machine can do; or how fast a tokenizer is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "commands.h"
#include "engine.h"
#include "json_out.h"
#include "output/writer.h"
#include "say.h"

enum { MAX_SHAPES = 64, DEFAULT_REPEAT = 10 };
static const writer_kind *const formats[] = {&writer_text, &writer_json, NULL};
static const char default_shapes[] = "1x8,1x32,1x128,1x512,8x128,32x32";

typedef struct shape {
    size_t batch, length; /* B texts of T tokens */
    double seconds;       /* the best pass */
    double operations;    /* of a pass: each multiply-add is two */
    double megabytes;     /* the most memory that the process has had up to now; 0: not known */
} shape;

typedef struct job {
    const settings *s;
    int as_json;
    engine engine;
    const bert_workers *workers;
    int threads;
    shape shapes[MAX_SHAPES];
    size_t n_shapes;
    double peak;      /* operations a second */
    double read_rate; /* bytes a second */
    buffer out;
} job;

static int read_number(const char **at, size_t *n) {
    char *end;
    errno = 0;
    unsigned long long value = **at >= '0' && **at <= '9' ? strtoull(*at, &end, 10) : 0;
    if (!value || errno || value > 1u << 20) return 0;
    *n = (size_t)value;
    *at = end;
    return 1;
}

/* "1x8,8x128" */
static int read_shapes(job *j, const char *list) {
    for (const char *at = list;; at++) {
        shape *new = &j->shapes[j->n_shapes];
        if (j->n_shapes == MAX_SHAPES) return say_usage("--shapes: expected at most %d", MAX_SHAPES);
        if (!read_number(&at, &new->batch) || *at++ != 'x' || !read_number(&at, &new->length) || (*at && *at != ','))
            return say_usage("--shapes %s: expected texts x tokens, such as 1x8,8x128", list);
        j->n_shapes++;
        if (!*at) return 0;
    }
}

static int check_shapes(const job *j) {
    size_t positions = j->engine.info.positions;
    for (size_t i = 0; i < j->n_shapes; i++)
        if (j->shapes[i].length > positions)
            return say_error("--shapes %zux%zu: the model has %zu positions", j->shapes[i].batch, j->shapes[i].length,
                             positions);
    return 0;
}

/* Weights of the linear layers: query, key, value, output, and the two of the feed-forward part. */
static double linear_weights(const bert_model_info *info) {
    double h = (double)info->hidden, f = (double)info->intermediate;
    return (double)info->layers * (4 * h * h + 2 * h * f);
}

/* Linear layers, and in attention Q·Kᵀ and weights·V. Nothing else is counted: it is less than 1 %. */
static double count_operations(const bert_model_info *info, const shape *c) {
    double tokens = (double)c->batch * (double)c->length;
    double attention = 2 * (double)info->layers * tokens * (double)c->length * (double)info->hidden;
    return 2 * (tokens * linear_weights(info) + attention);
}

static double peak_megabytes(void) {
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    double kibibytes = 0;
    if (!status) return 0;
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0) kibibytes = strtod(line + 6, NULL);
    fclose(status);
    return kibibytes * 1024 / 1e6;
}

/* Token ids as text has them: all over the vocabulary, so that rows of the embedding table are not all in a cache. */
static void fill_batch(size_t *start, int32_t *ids, const shape *c, size_t vocabulary) {
    uint32_t random = 1;
    for (size_t i = 0; i <= c->batch; i++) start[i] = i * c->length;
    for (size_t i = 0; i < c->batch * c->length; i++) {
        random = random * 1664525u + 1013904223u; /* Numerical Recipes' generator */
        ids[i] = (int32_t)((random >> 8) % vocabulary);
    }
}

/* The best of `repeat` passes behind one that warms up. */
static int time_passes(job *j, shape *c, const bert_batch *batch, const bert_tap *tap) {
    bert_error err;
    size_t repeat = j->s->repeat ? j->s->repeat : DEFAULT_REPEAT;
    for (size_t i = 0; i <= repeat; i++) {
        double start = clock_seconds();
        if (bert_run(j->engine.session, batch, tap, 1, &j->engine.run, &err)) return say_failure(&err);
        double seconds = clock_seconds() - start;
        if (i == 1 || (i && seconds < c->seconds)) c->seconds = seconds;
    }
    return 0;
}

static int run_shape(job *j, shape *c) {
    const bert_model_info *info = &j->engine.info;
    size_t tokens = c->batch * c->length;
    size_t *start = need(c->batch + 1, sizeof *start);
    int32_t *ids = need(tokens, sizeof *ids);
    bert_batch batch = {.size = sizeof batch, .n = c->batch, .start = start, .ids = ids};
    bert_tap tap = BERT_TAP_INIT;
    tap.layer = (int32_t)info->layers;
    tap.dst_len = tokens * info->hidden;
    tap.dst = need(tap.dst_len, sizeof *tap.dst);
    fill_batch(start, ids, c, info->vocab);
    int status = time_passes(j, c, &batch, &tap);
    c->operations = count_operations(info, c);
    c->megabytes = peak_megabytes();
    free(tap.dst);
    free(ids);
    free(start);
    return status;
}

/* The machine is measured last: its buffer must not count as the model's memory. */
static int measure(job *j) {
    bert_error err;
    if (bert_model_prepare(j->engine.model, &err)) return say_failure(&err);
    for (size_t i = 0; i < j->n_shapes; i++) TRY(run_shape(j, &j->shapes[i]));
    j->peak = bench_fma_peak(j->engine.info.isa, j->workers);
    j->read_rate = bench_read_rate((size_t)linear_weights(&j->engine.info) * sizeof(float), j->workers);
    return 0;
}

static void add_json(job *j, const shape *c) {
    const bert_model_info *info = &j->engine.info;
    buffer *b = &j->out;
    const struct {
        const char *name;
        double value;
    } figures[] = {{"seconds", c->seconds},
                   {"tokens_per_s", (double)(c->batch * c->length) / c->seconds},
                   {"gflops", c->operations / c->seconds / 1e9},
                   {"peak_fraction", c->operations / c->seconds / j->peak},
                   {"rss_mb", c->megabytes}};
    buffer_print(b, "{\"batch\":%zu,\"length\":%zu,\"threads\":%d", c->batch, c->length, j->threads);
    json_key(b, "isa");
    json_text(b, bert_isa_name(info->isa));
    json_key(b, "gemm");
    json_text(b, info->gemm);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        json_key(b, figures[i].name);
        json_double(b, figures[i].value);
    }
    buffer_byte(b, '}');
}

static void print_json(job *j) {
    for (size_t i = 0; i < j->n_shapes; i++) {
        buffer_text(&j->out, i ? ",\n " : "[");
        add_json(j, &j->shapes[i]);
    }
    buffer_text(&j->out, "]\n");
}

static void print_text(job *j) {
    const bert_model_info *info = &j->engine.info;
    buffer *b = &j->out;
    double weights = linear_weights(info) * sizeof(float);
    buffer_print(b, "model     %s, %zu layers, hidden size %zu; isa %s, gemm %s, %d thread%s\n", info->model_type,
                 info->layers, info->hidden, bert_isa_name(info->isa), info->gemm, j->threads,
                 j->threads > 1 ? "s" : "");
    buffer_print(b, "machine   %.1f GFLOP/s of multiply-adds; reads %.0f MB, the weights of a pass, at %.1f GB/s\n\n",
                 j->peak / 1e9, weights / 1e6, j->read_rate / 1e9);
    buffer_print(b, "%9s %10s %10s %9s %8s %7s %8s %8s\n", "shape", "ms", "tokens/s", "GFLOP/s", "of peak", "GB/s",
                 "of reads", "peak MB");
    for (size_t i = 0; i < j->n_shapes; i++) {
        const shape *c = &j->shapes[i];
        char name[48];
        snprintf(name, sizeof name, "%zux%zu", c->batch, c->length);
        buffer_print(b, "%9s %10.2f %10.0f %9.1f %7.0f%% %7.1f %7.0f%% %8.0f\n", name, 1e3 * c->seconds,
                     (double)(c->batch * c->length) / c->seconds, c->operations / c->seconds / 1e9,
                     100 * c->operations / c->seconds / j->peak, weights / c->seconds / 1e9,
                     100 * weights / c->seconds / j->read_rate, c->megabytes);
    }
}

static int bench_model(job *j) {
    const settings *s = j->s;
    if (s->n_texts) return say_usage("bench takes a file of texts only with --tokenizer, found %s", s->texts[0]);
    TRY(read_shapes(j, s->shapes ? s->shapes : default_shapes));
    TRY(engine_open(&j->engine, s, ENGINE_MODEL));
    j->workers = j->engine.pool ? bert_pool_workers(j->engine.pool) : NULL;
    j->threads = j->workers ? j->workers->width : 1;
    TRY(check_shapes(j));
    TRY(measure(j));
    (j->as_json ? print_json : print_text)(j);
    return 0;
}

static int work(job *j) {
    const settings *s = j->s;
    const writer_kind *kind;
    sink *out;
    TRY(writer_choose(&kind, formats, s->json ? "json" : s->format, s->output));
    j->as_json = kind == &writer_json;
    TRY(sink_open(&out, s->output));
    int status = s->tokenizer ? bench_tokenizer(&j->out, s, j->as_json) : bench_model(j);
    if (!status) status = sink_write(out, j->out.data, j->out.len);
    if (!status) return sink_finish(&out);
    sink_abandon(&out);
    return status;
}

static int run(const settings *s) {
    job j = {.s = s};
    int status = work(&j);
    engine_close(&j.engine);
    buffer_close(&j.out);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"shapes", 0, OPTION_TEXT, AT(shapes), 0, "LIST", "texts x tokens of a pass: 1x8,8x128"},
    {"repeat", 0, OPTION_COUNT, AT(repeat), 1, "N", "the best of N passes counts; default 10"},
    {"tokenizer", 0, OPTION_TEXT, AT(tokenizer), 0, "PATH",
     "measure a tokenizer instead (a folder, a tokenizer.json or a vocab.txt) on the lines of TEXTFILE (-: stdin); "
     "without TEXTFILE on made-up text"},
    {"json", 0, OPTION_FLAG, AT(json), 1, NULL, "figures as JSON, --format json"},
    {0}};
static const option *const options[] = {own_options, options_model, options_tokenizer_file, options_output, NULL};
const command command_bench = {"bench",      "How fast a model, or a tokenizer, is on this machine. "
                                        "Formats: text, json.",
                               "[TEXTFILE]", "bert bench -m models/all-MiniLM-L6-v2 --shapes 1x8,8x128 --repeat 20",
                               options,      run};
