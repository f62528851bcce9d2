/* bert/attention.h: the worked examples, every kind of mask against float64 and against what it means, the same bits
 * whatever computes, memory that grows with T, and the encoder's own bits from plain arrays. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

#include "sanitizers.h"

enum { ROOM = 4096 };

/* ---- Numbers. ---- */

static uint64_t state = 1;
static float random_float(void) { /* uniform in [−1, 1), the same everywhere */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(state >> 32) / 2147483648.0f;
}

static float *random_floats(size_t n) {
    float *x = malloc(n * sizeof *x);
    cr_assert_not_null(x);
    for (size_t i = 0; i < n; i++) x[i] = random_float();
    return x;
}

static float *filled(size_t n) {
    float *x = malloc(n * sizeof *x);
    cr_assert_not_null(x);
    for (size_t i = 0; i < n; i++) x[i] = NAN;
    return x;
}

static void run_as(const bert_attention *a, const bert_compute_options *options) {
    bert_error err;
    cr_assert_eq(bert_attention_run(a, options, &err), BERT_OK, "%s", err.text);
}

static int sees(const bert_attention *a, size_t text, size_t head, size_t i, size_t j, double *added) {
    const bert_attention_mask *m = &a->mask;
    const size_t at = i * a->tk + j;
    *added = m->added ? (double)m->added[text * m->added_step[0] + head * m->added_step[1] + at] : 0;
    return (!m->keys || j < m->keys[text]) && (!m->causal || j <= m->first + i) && *added > -INFINITY &&
           (!m->allowed || m->allowed[text * m->allowed_step[0] + head * m->allowed_step[1] + at]);
}

/* One row in double, of dense arrays: weights [Tk] and result [D]. */
static void true_row(const bert_attention *a, size_t text, size_t head, size_t i, double *weights, double *result) {
    const size_t number = text * a->heads + head, d = a->d;
    const float *q = a->q + (number * a->tq + i) * d, *k = a->k + number * a->tk * d, *v = a->v + number * a->tk * d;
    double max = -INFINITY, sum = 0, added;
    for (size_t j = 0; j < a->tk; j++) {
        double dot = 0;
        for (size_t c = 0; c < d; c++) dot += (double)q[c] * (double)k[j * d + c];
        weights[j] = sees(a, text, head, i, j, &added) ? dot / sqrt((double)d) + added : -INFINITY;
        if (weights[j] > max) max = weights[j];
    }
    for (size_t j = 0; j < a->tk; j++) sum += weights[j] = max > -INFINITY ? exp(weights[j] - max) : 1;
    for (size_t c = 0; c < d; c++) result[c] = 0;
    for (size_t j = 0; j < a->tk; j++) {
        weights[j] /= sum;
        for (size_t c = 0; c < d; c++) result[c] += weights[j] * (double)v[j * d + c];
    }
}

/* Weights (if kept) and results of every step-th row are those of float64 within `tolerance`; what is hidden is 0. */
static void check_rows(const bert_attention *a, size_t step, double tolerance) {
    double *weights = malloc(a->tk * sizeof *weights), *result = malloc(a->d * sizeof *result), added;
    for (size_t row = 0; row < a->batch * a->heads * a->tq; row += step) {
        const size_t number = row / a->tq, i = row % a->tq;
        true_row(a, number / a->heads, number % a->heads, i, weights, result);
        for (size_t j = 0; a->weights && j < a->tk; j++) {
            const float w = a->weights[row * a->tk + j];
            cr_assert(fabs((double)w - weights[j]) <= tolerance, "row %zu key %zu: %.9g, expected %.9g", row, j,
                      (double)w, weights[j]);
            cr_assert(weights[j] > 0 || (w == 0 && !signbit(w)), "row %zu key %zu is hidden", row, j);
            cr_assert(weights[j] == 0 || sees(a, number / a->heads, number % a->heads, i, j, &added) ||
                      fabs(weights[j] * (double)a->tk - 1) < 1e-12);
        }
        for (size_t c = 0; c < a->d; c++)
            cr_assert(fabs((double)a->result[row * a->d + c] - result[c]) <= tolerance,
                      "row %zu column %zu: %.9g, expected %.9g", row, c, (double)a->result[row * a->d + c], result[c]);
    }
    free(weights);
    free(result);
}

/* ---- The worked examples. ---- */

static char *read_examples(bert_json *root) {
    char path[ROOM];
    bert_error err;
    snprintf(path, sizeof path, "%s/attention_examples.json", getenv("BERT_TEST_DATA"));
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    fseek(file, 0, SEEK_END);
    const size_t len = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(len);
    cr_assert_eq(fread(text, 1, len, file), len);
    fclose(file);
    cr_assert_eq(bert_json_check(root, text, len, &err), BERT_OK, "%s", err.text);
    return text;
}

/* Numbers of nested lists, in order; `cols` is the length of the innermost. */
static void flatten(bert_json list, double *x, size_t *n, size_t *cols) {
    bert_json item;
    size_t place = 0, count = 0;
    while (bert_json_next(list, &place, NULL, &item)) {
        count++;
        if (bert_json_kind_of(item) == BERT_JSON_ARRAY) flatten(item, x, n, cols);
        else cr_assert(*n < ROOM && bert_json_number(&x[(*n)++], item));
    }
    if (bert_json_kind_of(item) != BERT_JSON_ARRAY) *cols = count;
}

static size_t member(bert_json object, const char *name, double *x, size_t *cols) {
    bert_json list;
    size_t n = 0;
    cr_assert(bert_json_member(object, name, &list), "%s is missing", name);
    flatten(list, x, &n, cols);
    return n;
}

static void expect_near(const char *name, const float *ours, const double *truth, size_t n) {
    for (size_t i = 0; i < n; i++)
        cr_expect(fabs((double)ours[i] - truth[i]) <= 4e-7, "%s[%zu]: %.9g, expected %.9g", name, i, (double)ours[i],
                  truth[i]);
}

static void check_example(bert_json example) {
    static double read[ROOM];
    static float q[ROOM], k[ROOM], v[ROOM], scores[ROOM], weights[ROOM], result[ROOM], again[ROOM];
    static unsigned char allowed[ROOM];
    bert_attention a = BERT_ATTENTION_INIT;
    bert_json value;
    size_t n = member(example, "q", read, &a.d), cols;
    for (size_t i = 0; i < n; i++) q[i] = (float)read[i];
    a.tq = n / a.d;
    n = member(example, "k", read, &a.d);
    for (size_t i = 0; i < n; i++) k[i] = (float)read[i];
    a.tk = n / a.d;
    member(example, "v", read, &a.d);
    for (size_t i = 0; i < n; i++) v[i] = (float)read[i];
    a.q = q, a.k = k, a.v = v, a.scores = scores, a.weights = weights, a.result = result;
    if (bert_json_member(example, "mask", &value)) {
        n = member(example, "mask", read, &cols);
        for (size_t i = 0; i < n; i++) allowed[i] = read[i] != 0;
        a.mask.allowed = allowed;
    }
    run_as(&a, NULL);
    expect_near("scores", scores, read, member(example, "scores", read, &cols));
    expect_near("weights", weights, read, member(example, "weights", read, &cols));
    expect_near("output", result, read, n = member(example, "output", read, &cols));
    char name[64];
    cr_assert(bert_json_member(example, "name", &value));
    name[bert_json_string(name, value)] = '\0';
    const size_t three = 3;
    if (strcmp(name, "random-causal") == 0) a.mask = (bert_attention_mask){.causal = 1};
    if (strcmp(name, "random-padding") == 0) a.mask = (bert_attention_mask){.keys = &three};
    a.result = again;
    run_as(&a, NULL);
    cr_expect(memcmp(result, again, n * sizeof *again) == 0, "%s: a mask said in another way gives other bits", name);
}

Test(attention, worked_examples) {
    bert_json root, list, example;
    char *text = read_examples(&root);
    size_t place = 0, n = 0;
    cr_assert(bert_json_member(root, "attention", &list));
    for (; bert_json_next(list, &place, NULL, &example); n++) check_example(example);
    cr_expect_eq(n, 6);
    free(text);
}

Test(attention, sinusoidal_positions) {
    static double values[ROOM];
    static float ours[ROOM];
    bert_json root, positions;
    bert_error err;
    size_t cols;
    char *text = read_examples(&root);
    cr_assert(bert_json_member(root, "sinusoidal_positions", &positions));
    const size_t n = member(positions, "values", values, &cols);
    cr_assert_eq(bert_sinusoidal_positions(ours, n / cols, cols, 10000, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < n; i++) cr_expect(fabs((double)ours[i] - values[i]) <= 6e-8, "value %zu", i);
    free(text);
    enum { T = 1000001, H = 6 };
    float *all = malloc((size_t)T * H * sizeof *all);
    cr_assert_eq(bert_sinusoidal_positions(all, T, H, 10000, &err), BERT_OK, "%s", err.text);
    for (size_t t = 0; t < T; t += 997)
        for (size_t i = 0; i < H; i += 2) {
            const double angle = (double)t * pow(10000, -(double)i / H);
            cr_expect(fabs((double)all[t * H + i] - sin(angle)) <= 1e-7, "sine %zu of %zu", i, t);
            cr_expect(fabs((double)all[t * H + i + 1] - cos(angle)) <= 1e-7, "cosine %zu of %zu", i, t);
        }
    free(all);
    cr_expect_eq(bert_sinusoidal_positions(ours, 1, 3, 10000, &err), BERT_INVALID_ARGUMENT);
    cr_expect_eq(bert_sinusoidal_positions(ours, 1, 4, 1, &err), BERT_INVALID_ARGUMENT);
    cr_expect_eq(bert_sinusoidal_positions(ours, 1, 4, NAN, &err), BERT_INVALID_ARGUMENT);
}

/* ---- Masks, and who computes. ---- */

enum { B = 2, A = 3, TQ = 53, TK = 61, D = 20 };

/* The k-th of several masks over B texts and A heads. */
static bert_attention_mask mask_number(int k, const size_t *keys, const unsigned char *allowed, const float *added) {
    bert_attention_mask m = {.keys = NULL};
    if (k & 1) m.keys = keys;
    if (k & 2) m.causal = 1;
    if (k & 4) m.allowed = allowed;
    if (k & 8) m.added = added;
    if (k & 16) m.first = TK - TQ, m.allowed_step[1] = (size_t)TQ * TK, m.added_step[0] = (size_t)TQ * TK;
    return m;
}

static void same_bits(const bert_attention *a, const bert_compute_options *options, bool keep, const char *what) {
    const size_t results = a->batch * a->heads * a->tq * a->d, map = a->batch * a->heads * a->tq * a->tk;
    bert_attention other = *a;
    other.result = filled(results);
    other.scores = keep ? filled(map) : NULL;
    other.weights = keep ? filled(map) : NULL;
    run_as(&other, options);
    cr_expect(memcmp(a->result, other.result, results * sizeof(float)) == 0, "%s: other results", what);
    cr_expect(!keep || memcmp(a->scores, other.scores, map * sizeof(float)) == 0, "%s: other scores", what);
    cr_expect(!keep || memcmp(a->weights, other.weights, map * sizeof(float)) == 0, "%s: other weights", what);
    free(other.result);
    free(other.scores);
    free(other.weights);
}

static void check_everywhere(const bert_attention *a) {
    static const bert_isa ISAS[] = {BERT_ISA_REF, BERT_ISA_AVX2, BERT_ISA_AVX512, BERT_ISA_NEON};
    bert_error err;
    for (size_t i = 0; i < sizeof ISAS / sizeof *ISAS; i++) {
        if (!bert_isa_name(ISAS[i])) continue;
        for (int threads = 1; threads <= 7; threads += 3) {
            bert_pool *pool;
            cr_assert_eq(bert_pool_open(&pool, threads, &err), BERT_OK, "%s", err.text);
            const bert_compute_options o = {sizeof o, NULL, bert_pool_workers(pool), ISAS[i]};
            same_bits(a, &o, true, bert_isa_name(ISAS[i]));
            same_bits(a, &o, false, bert_isa_name(ISAS[i]));
            bert_pool_close(&pool);
        }
    }
}

static bert_attention random_attention(size_t batch, size_t heads, size_t tq, size_t tk, size_t d, bool keep) {
    bert_attention a = BERT_ATTENTION_INIT;
    a.batch = batch, a.heads = heads, a.tq = tq, a.tk = tk, a.d = d;
    a.q = random_floats(batch * heads * tq * d);
    a.k = random_floats(batch * heads * tk * d);
    a.v = random_floats(batch * heads * tk * d);
    a.result = filled(batch * heads * tq * d);
    a.scores = keep ? filled(batch * heads * tq * tk) : NULL;
    a.weights = keep ? filled(batch * heads * tq * tk) : NULL;
    return a;
}

static void free_attention(bert_attention *a) {
    free((float *)a->q);
    free((float *)a->k);
    free((float *)a->v);
    free(a->result);
    free(a->scores);
    free(a->weights);
}

Test(attention, every_mask_is_exact_and_the_same_everywhere) {
    static const size_t keys[B] = {TK - 20, 0};
    static unsigned char allowed[A * TQ * TK];
    static float added[B * TQ * TK];
    state = 2;
    for (size_t i = 0; i < sizeof allowed; i++) allowed[i] = random_float() > 0.3f;
    memset(allowed + 5 * TK, 0, TK); /* a query that sees nothing */
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) added[i] = random_float() > 0.5f ? -INFINITY : random_float();
    bert_attention a = random_attention(B, A, TQ, TK, D, true);
    for (int k = 0; k < 32; k++) {
        a.mask = mask_number(k, keys, allowed, added);
        run_as(&a, NULL);
        check_rows(&a, 1, 5e-7);
        check_everywhere(&a);
    }
    free_attention(&a);
}

/* A key behind a text's length is as good as absent: what is there does not matter, and the bits are those without. */
Test(attention, lengths_cut) {
    static const size_t keys[1] = {40};
    bert_attention a = random_attention(1, 2, 30, 100, 16, false), b = a;
    float *cut = filled(2 * 30 * 16);
    b.k_step[0] = b.v_step[0] = 2 * 100 * 16, b.k_step[1] = b.v_step[1] = 100 * 16, b.k_step[2] = b.v_step[2] = 16;
    b.tk = 40;
    b.result = cut;
    b.q_step[1] = 30 * 16, b.q_step[2] = 16;
    run_as(&b, NULL);
    for (size_t i = 0; i < 2 * 100 * 16; i++)
        if (i / 16 % 100 >= 40) ((float *)a.k)[i] = ((float *)a.v)[i] = NAN;
    a.mask.keys = keys;
    run_as(&a, NULL);
    cr_expect(memcmp(a.result, cut, 2 * 30 * 16 * sizeof *cut) == 0);
    free(cut);
    free_attention(&a);
}

/* HF adds the most negative float instead of −∞: the same weights, uniform ones where all is hidden. */
Test(attention, most_negative_float_as_in_hf) {
    enum { T = 20 };
    static float added[T * T];
    static unsigned char allowed[T * T];
    for (size_t i = 0; i < T * T; i++) {
        allowed[i] = i / T != 7 && i % 3 != 0;
        added[i] = allowed[i] ? 0 : -0x1.fffffep+127f;
    }
    bert_attention a = random_attention(1, 1, T, T, 8, true), b = a;
    a.mask.allowed = allowed;
    run_as(&a, NULL);
    for (size_t j = 0; j < T; j++) cr_expect(fabsf(a.weights[7 * T + j] - 1.0f / T) < 1e-8f);
    b.mask.added = added;
    same_bits(&a, NULL, true, "allowed");
    b.weights = filled(T * T), b.result = filled(T * 8), b.scores = NULL;
    run_as(&b, NULL);
    cr_expect(memcmp(a.weights, b.weights, T * T * sizeof(float)) == 0);
    cr_expect(memcmp(a.result, b.result, T * 8 * sizeof(float)) == 0);
    free(b.weights);
    free(b.result);
    free_attention(&a);
}

/* ---- Memory. ---- */

typedef struct counter {
    atomic_size_t now, most;
    size_t calls, fails_at; /* the call that gets nothing; 0: none */
} counter;

static void *count_get(void *user, size_t n, size_t align) {
    counter *c = user;
    if (++c->calls == c->fails_at) return NULL;
    const size_t now = atomic_fetch_add(&c->now, n) + n;
    if (now > atomic_load(&c->most)) atomic_store(&c->most, now);
    return aligned_alloc(align, (n + align - 1) / align * align);
}

static void count_put(void *user, void *p, size_t n) {
    atomic_fetch_sub(&((counter *)user)->now, n);
    free(p);
}

static void check_long(size_t t, size_t limit, int threads) {
    counter c = {0};
    bert_pool *pool;
    bert_error err;
    const bert_memory memory = {&c, count_get, count_put};
    state = t;
    bert_attention a = random_attention(1, 1, t, t, 64, false);
    cr_assert_eq(bert_pool_open(&pool, threads, &err), BERT_OK, "%s", err.text);
    const bert_compute_options o = {sizeof o, &memory, bert_pool_workers(pool), BERT_ISA_AUTO};
    run_as(&a, &o);
    check_rows(&a, t / 37, 3e-7);
    fprintf(stderr, "attention: T %zu, D 64, %d threads: %.1f MB above the arrays\n", t, threads,
            (double)c.most / 1e6);
    cr_expect(c.most < limit, "T %zu takes %zu bytes", t, c.most);
    cr_expect_eq(c.now, 0);
    bert_pool_close(&pool);
    free_attention(&a);
}

Test(attention, memory_grows_with_t) {
    check_long(1024, 1 << 20, 2);
    if (!under_valgrind()) check_long(2048, 2 << 20, 2);
}

/* 69 GFLOP: one to two seconds of a core, where there are kernels for it; valgrind, and kernels that were not
 * optimised ($BERT_TEST_MODE says so), would take minutes. */
Test(attention, tokens_16384, .timeout = 100) {
    const char *mode = getenv("BERT_TEST_MODE");
    if (strcmp(bert_isa_name(BERT_ISA_AUTO), "ref") == 0 || under_valgrind() || (mode && strcmp(mode, "coverage") == 0))
        cr_skip_test("too slow here");
    check_long(16384, 64000000, 2);
}

Test(attention, what_is_refused) {
    counter c = {0};
    bert_attention a = random_attention(1, 1, 9, 9, 4, false);
    bert_error err;
    const bert_memory memory = {&c, count_get, count_put};
    const bert_compute_options o = {sizeof o, &memory, NULL, BERT_ISA_AUTO};
    a.heads = (size_t)1 << 62;
    cr_expect_eq(bert_attention_run(&a, &o, &err), BERT_INVALID_ARGUMENT);
    a.heads = 1;
    a.tk = 0;
    cr_expect_eq(bert_attention_run(&a, &o, &err), BERT_INVALID_ARGUMENT);
    a.tk = 9;
    const size_t ten = 10;
    a.mask.keys = &ten;
    cr_expect_eq(bert_attention_run(&a, &o, &err), BERT_INVALID_ARGUMENT);
    cr_expect_not_null(strstr(err.text, "10 keys"), "%s", err.text);
    a.mask.keys = NULL;
    const float *q = a.q;
    a.q = NULL;
    cr_expect_eq(bert_attention_run(&a, &o, &err), BERT_INVALID_ARGUMENT);
    a.q = q;
    a.size = 0;
    cr_expect_eq(bert_attention_run(&a, &o, &err), BERT_INVALID_ARGUMENT);
    cr_expect_eq(c.most, 0);
    free_attention(&a);
}

Test(attention, no_memory_is_an_error) {
    enum { N = 5, H = 8 };
    counter c = {.fails_at = 1};
    const bert_memory memory = {&c, count_get, count_put};
    const bert_compute_options o = {sizeof o, &memory, NULL, BERT_ISA_AUTO};
    bert_attention a = random_attention(1, 1, N, N, H, false);
    bert_error err;
    cr_expect_eq(bert_attention_run(&a, &o, &err), BERT_NO_MEMORY);
    float *w = random_floats(H * H);
    bert_multi_head m = BERT_MULTI_HEAD_INIT;
    m.tq = m.tk = N, m.hidden = H, m.heads = 2, m.x = a.q, m.result = a.result;
    m.query.weight = m.key.weight = m.value.weight = m.output.weight = w;
    bert_status status = BERT_NO_MEMORY;
    for (size_t fails_at = 1; status != BERT_OK && fails_at < 20; fails_at++) {
        c = (counter){.fails_at = fails_at};
        status = bert_multi_head_run(&m, &o, &err);
        cr_expect_eq(status, c.calls < fails_at ? BERT_OK : BERT_NO_MEMORY);
        cr_expect_eq(c.now, 0, "call %zu failed and %zu bytes are still held", fails_at, c.now);
    }
    cr_expect_eq(status, BERT_OK);
    cr_expect_gt(c.calls, 3);
    free(w);
    free_attention(&a);
}

/* ---- Multi-head: the encoder's own numbers, from its weights as plain arrays. ---- */

static float *read_weight(const bert_safetensors *file, const char *name) {
    char full[160];
    bert_error err;
    snprintf(full, sizeof full, "bert.encoder.layer.0.%s", name);
    const bert_tensor_info *t = bert_safetensors_find(file, full);
    cr_assert_not_null(t, "%s", full);
    float *x = malloc(t->count * sizeof *x);
    cr_assert_eq(bert_safetensors_read_f32(file, t, 0, x, t->count, &err), BERT_OK, "%s", err.text);
    return x;
}

enum { IDS = 11, HIDDEN = 40, HEADS = 4 };

/* hidden_states.0, the maps and contexts of layer 0. */
static void run_encoder(const char *dir, float *hidden, float *scores, float *weights, float *context) {
    static const int32_t ids[IDS] = {2, 100, 200, 300, 400, 500, 600, 700, 800, 900, 3};
    static const size_t start[2] = {0, IDS};
    const bert_batch batch = {sizeof batch, 1, start, ids, NULL};
    bert_model *model;
    bert_session *session;
    bert_error err;
    cr_assert_eq(bert_model_open(&model, dir, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_session_open(&session, model, NULL, &err), BERT_OK, "%s", err.text);
    const bert_tap taps[] = {
        {sizeof *taps, BERT_SITE_HIDDEN_STATES, 0, -1, 0, hidden, IDS * HIDDEN, NULL, NULL},
        {sizeof *taps, BERT_SITE_SCORES, 0, -1, 0, scores, HEADS * IDS * IDS, NULL, NULL},
        {sizeof *taps, BERT_SITE_WEIGHTS, 0, -1, 0, weights, HEADS * IDS * IDS, NULL, NULL},
        {sizeof *taps, BERT_SITE_CONTEXT, 0, -1, 0, context, IDS * HIDDEN, NULL, NULL},
    };
    cr_assert_eq(bert_run(session, &batch, taps, 4, NULL, &err), BERT_OK, "%s", err.text);
    bert_session_close(&session);
    bert_model_close(&model);
}

static void read_projections(bert_projection p[4], const char *dir) {
    static const char *const NAMES[] = {"attention.self.query", "attention.self.key", "attention.self.value",
                                        "attention.output.dense"};
    char path[ROOM + 32], name[96];
    bert_safetensors *file;
    bert_error err;
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    cr_assert_eq(bert_safetensors_open(&file, path, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s.weight", NAMES[i]);
        p[i].weight = read_weight(file, name);
        snprintf(name, sizeof name, "%s.bias", NAMES[i]);
        p[i].bias = read_weight(file, name);
    }
    bert_safetensors_close(&file);
}

Test(attention, multi_head_is_the_encoders) {
    static float hidden[IDS * HIDDEN], scores[HEADS * IDS * IDS], weights[HEADS * IDS * IDS], context[IDS * HIDDEN];
    static float our_scores[HEADS * IDS * IDS], our_weights[HEADS * IDS * IDS], ours[IDS * HIDDEN], out[IDS * HIDDEN];
    char dir[ROOM];
    bert_projection p[4];
    bert_error err;
    snprintf(dir, sizeof dir, "%s/models/tiny-bert", getenv("BERT_TEST_DATA"));
    run_encoder(dir, hidden, scores, weights, context);
    read_projections(p, dir);
    bert_multi_head m = BERT_MULTI_HEAD_INIT;
    m.tq = m.tk = IDS, m.hidden = HIDDEN, m.heads = HEADS, m.x = hidden, m.result = out;
    m.query = p[0], m.key = p[1], m.value = p[2], m.output = p[3];
    m.scores = our_scores, m.weights = our_weights, m.context = ours;
    cr_assert_eq(bert_multi_head_run(&m, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect(memcmp(scores, our_scores, sizeof scores) == 0, "other scores than the encoder's");
    cr_expect(memcmp(weights, our_weights, sizeof weights) == 0, "other weights than the encoder's");
    for (size_t i = 0; i < IDS * HIDDEN; i++) { /* the tap gives [A, T, D], the function [T, H] */
        const size_t t = i / HIDDEN, a = i % HIDDEN / 10, d = i % 10;
        cr_expect(memcmp(&ours[i], &context[(a * IDS + t) * 10 + d], sizeof *ours) == 0, "context %zu", i);
    }
    for (size_t i = 0; i < IDS * HIDDEN; i++) {
        double sum = (double)p[3].bias[i % HIDDEN];
        for (size_t c = 0; c < HIDDEN; c++)
            sum += (double)ours[i / HIDDEN * HIDDEN + c] * (double)p[3].weight[i % HIDDEN * HIDDEN + c];
        cr_expect(fabs((double)out[i] - sum) <= 4e-6, "output %zu: %g, expected %g", i, (double)out[i], sum);
    }
    for (size_t i = 0; i < 4; i++) free((float *)p[i].weight), free((float *)p[i].bias);
}

/* Residual and LayerNorm inside and outside give the same; memory of another length; a result in place. */
Test(attention, multi_head_over_memory) {
    enum { N = 2, Q = 7, K = 9, H = 24 };
    bert_projection p[4];
    bert_error err;
    state = 4;
    for (size_t i = 0; i < 4; i++) p[i] = (bert_projection){random_floats(H * H), i == 1 ? NULL : random_floats(H)};
    float *x = random_floats(N * Q * H), *memory = random_floats(N * K * H), *gamma = random_floats(H);
    float *beta = random_floats(H), *plain = filled(N * Q * H), *normed = filled(N * Q * H);
    static const size_t keys[N] = {9, 4};
    bert_multi_head m = BERT_MULTI_HEAD_INIT;
    m.batch = N, m.tq = Q, m.tk = K, m.hidden = H, m.heads = 3, m.x = x, m.memory = memory, m.result = plain;
    m.query = p[0], m.key = p[1], m.value = p[2], m.output = p[3];
    m.mask.keys = keys;
    cr_assert_eq(bert_multi_head_run(&m, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_add_norm(normed, plain, x, gamma, beta, 1e-5f, N * Q, H, NULL, &err), BERT_OK, "%s", err.text);
    for (size_t row = 0; row < N * Q; row++) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < H; i++) mean += (double)(plain[row * H + i] + x[row * H + i]) / H;
        for (size_t i = 0; i < H; i++) variance += pow((double)(plain[row * H + i] + x[row * H + i]) - mean, 2) / H;
        for (size_t i = 0; i < H; i++) {
            const double d = (double)(plain[row * H + i] + x[row * H + i]) - mean;
            const double y = d / sqrt(variance + 1e-5) * (double)gamma[i] + (double)beta[i];
            cr_expect(fabs((double)normed[row * H + i] - y) <= 1e-6, "row %zu column %zu", row, i);
        }
    }
    m.gamma = gamma, m.beta = beta, m.eps = 1e-5f, m.result = x;
    cr_assert_eq(bert_multi_head_run(&m, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect(memcmp(x, normed, N * Q * H * sizeof *x) == 0, "inside and outside differ");
    m.memory = NULL;
    cr_expect_eq(bert_multi_head_run(&m, NULL, &err), BERT_INVALID_ARGUMENT);
    m.memory = memory, m.heads = 5;
    cr_expect_eq(bert_multi_head_run(&m, NULL, &err), BERT_INVALID_ARGUMENT);
    m.heads = 3, m.beta = NULL;
    cr_expect_eq(bert_multi_head_run(&m, NULL, &err), BERT_INVALID_ARGUMENT);
    for (size_t i = 0; i < 4; i++) free((float *)p[i].weight), free((float *)p[i].bias);
    free(x), free(memory), free(gamma), free(beta), free(plain), free(normed);
}

/* A long head is set up on the calling thread: its scale must not be rounded as the host has it. */
Test(attention, long_heads_under_a_host_that_rounds_to_zero) {
    enum { LONG = 200 };
    for (size_t d = 1; d <= 12; d++) {
        float *x = random_floats(LONG * d), *result[2] = {filled(LONG * d), filled(LONG * d)};
        for (int strange = 0; strange < 2; strange++) {
            bert_attention a = BERT_ATTENTION_INIT;
            bert_error err;
            a.tq = a.tk = LONG, a.d = d, a.q = a.k = a.v = x, a.result = result[strange];
            if (strange) fesetround(FE_TOWARDZERO);
            const bert_status status = bert_attention_run(&a, NULL, &err);
            fesetround(FE_TONEAREST);
            cr_assert_eq(status, BERT_OK, "%s", err.text);
        }
        cr_expect(memcmp(result[0], result[1], LONG * d * sizeof *x) == 0, "D %zu", d);
        free(x);
        free(result[0]);
        free(result[1]);
    }
}
