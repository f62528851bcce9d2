/* The encoder as callers use it: same bits in every arrangement, taps that look, keep and edit, errors that leave the
 * session usable. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bert/bert.h>

#include "sanitizers.h"

enum { H = 40, A = 4, D = 10, L = 3, TEXTS = 4, TOKENS = 30 };
static const size_t START[TEXTS + 1] = {0, 5, 6, 20, 30};
static int32_t ids[TOKENS], types[TOKENS];
static bert_model *model;
static bert_error err;

static bert_model *open_tiny(const char *name, const bert_model_options *options) {
    char path[4096];
    bert_model *m;
    snprintf(path, sizeof path, "%s/models/%s", getenv("BERT_TEST_DATA"), name);
    cr_assert_eq(bert_model_open(&m, path, options, &err), BERT_OK, "%s", err.text);
    return m;
}

static void setup(void) {
    for (int i = 0; i < TOKENS; i++) {
        ids[i] = (i * 37 + 11) % 3000;
        types[i] = i % 3 == 0;
    }
    model = open_tiny("tiny-bert", NULL);
}

static void teardown(void) { bert_model_close(&model); }
TestSuite(encoder, .init = setup, .fini = teardown);

static bert_batch whole_batch(void) { return (bert_batch){sizeof(bert_batch), TEXTS, START, ids, types}; }

static bert_session *open_session(const bert_model *m, const bert_workers *workers) {
    bert_session_options options = BERT_SESSION_OPTIONS_INIT;
    bert_session *s;
    options.workers = workers;
    cr_assert_eq(bert_session_open(&s, m, &options, &err), BERT_OK, "%s", err.text);
    return s;
}

static bert_tap tap_of(bert_site site, int32_t layer, float *dst, size_t dst_len) {
    bert_tap tap = BERT_TAP_INIT;
    tap.site = (int32_t)site;
    tap.layer = layer;
    tap.dst = dst;
    tap.dst_len = dst_len;
    return tap;
}

static void run_ok(bert_session *s, const bert_batch *batch, const bert_tap *taps, size_t n) {
    cr_assert_eq(bert_run(s, batch, taps, n, NULL, &err), BERT_OK, "%s", err.text);
}

/* The last hidden states of the whole batch. */
static void last_hidden(const bert_model *m, const bert_workers *workers, float hidden[TOKENS * H]) {
    bert_session *s = open_session(m, workers);
    const bert_batch batch = whole_batch();
    const bert_tap tap = tap_of(BERT_SITE_HIDDEN_STATES, L, hidden, TOKENS * H);
    run_ok(s, &batch, &tap, 1);
    bert_session_close(&s);
}

/* ---- Same bits. ---- */

Test(encoder, alone_or_in_a_batch) {
    float together[TOKENS * H], alone[TOKENS * H];
    bert_session *s = open_session(model, NULL);
    last_hidden(model, NULL, together);
    for (size_t i = 0; i < TEXTS; i++) {
        const size_t n = START[i + 1] - START[i], start[2] = {0, n};
        const bert_batch batch = {sizeof batch, 1, start, ids + START[i], types + START[i]};
        const bert_tap tap = tap_of(BERT_SITE_HIDDEN_STATES, L, alone, n * H);
        run_ok(s, &batch, &tap, 1);
        cr_expect(memcmp(alone, together + START[i] * H, n * H * sizeof *alone) == 0, "text %zu", i);
    }
    bert_session_close(&s);
}

Test(encoder, any_number_of_threads) {
    float one[TOKENS * H], many[TOKENS * H];
    last_hidden(model, NULL, one);
    for (int threads = 2; threads <= 8; threads++) {
        bert_pool *pool;
        cr_assert_eq(bert_pool_open(&pool, threads, &err), BERT_OK);
        last_hidden(model, bert_pool_workers(pool), many);
        cr_expect(memcmp(one, many, sizeof one) == 0, "%d threads", threads);
        bert_pool_close(&pool);
    }
}

Test(encoder, any_instruction_set) {
    float best[TOKENS * H], other[TOKENS * H];
    last_hidden(model, NULL, best);
    for (bert_isa isa = BERT_ISA_REF; isa <= BERT_ISA_NEON; isa++) {
        bert_model_options options = BERT_MODEL_OPTIONS_INIT;
        if (!bert_isa_name(isa)) continue;
        options.isa = isa;
        bert_model *m = open_tiny("tiny-bert", &options);
        last_hidden(m, NULL, other);
        cr_expect(memcmp(best, other, sizeof best) == 0, "%s", bert_isa_name(isa));
        bert_model_close(&m);
    }
}

Test(encoder, any_spelling_of_the_weights) {
    float plain[TOKENS * H], other[TOKENS * H];
    last_hidden(model, NULL, plain);
    static const char *const SAME[] = {"tiny-bert-original-names", "tiny-bert-sharded"};
    for (size_t i = 0; i < 2; i++) {
        bert_model *m = open_tiny(SAME[i], NULL);
        last_hidden(m, NULL, other);
        cr_expect(memcmp(plain, other, sizeof plain) == 0, "%s", SAME[i]);
        bert_model_close(&m);
    }
}

Test(encoder, packed_or_from_the_file) {
    static const char *const MODELS[] = {"tiny-bert", "tiny-bert-f16", "tiny-bert-original-names"};
    for (size_t i = 0; i < 3; i++) {
        float plain[TOKENS * H], other[TOKENS * H];
        bert_model_options options = BERT_MODEL_OPTIONS_INIT;
        bert_pool *pool;
        options.weights = BERT_WEIGHTS_FILE;
        bert_model *usual = open_tiny(MODELS[i], NULL), *file = open_tiny(MODELS[i], &options);
        cr_assert_eq(bert_pool_open(&pool, 3, &err), BERT_OK);
        last_hidden(usual, NULL, plain); /* the first pass: from the file */
        last_hidden(usual, NULL, other); /* the second: packed */
        cr_expect(memcmp(plain, other, sizeof plain) == 0, "%s: second pass", MODELS[i]);
        last_hidden(file, bert_pool_workers(pool), other);
        cr_expect(memcmp(plain, other, sizeof plain) == 0, "%s: from the file, three threads", MODELS[i]);
        bert_pool_close(&pool);
        bert_model_close(&usual);
        bert_model_close(&file);
    }
}

Test(encoder, maps_or_no_maps) {
    float plain[TOKENS * H], tapped[TOKENS * H], maps[L * A * (25 + 1 + 196 + 100)];
    last_hidden(model, NULL, plain);
    bert_session *s = open_session(model, NULL);
    const bert_batch batch = whole_batch();
    const bert_tap taps[] = {tap_of(BERT_SITE_WEIGHTS, -1, maps, sizeof maps / sizeof *maps),
                             tap_of(BERT_SITE_HIDDEN_STATES, L, tapped, TOKENS * H)};
    run_ok(s, &batch, taps, 2);
    cr_expect(memcmp(plain, tapped, sizeof plain) == 0);
    bert_session_close(&s);
}

#if defined(__x86_64__)
#include <xmmintrin.h>
/* A host with flush-to-zero, denormals-are-zero, rounding to zero and traps: our bits stay, and so does its word. */
Test(encoder, hostile_floating_point_environment) {
    float plain[TOKENS * H], odd[TOKENS * H];
    bert_pool *pool;
    const unsigned host = 0x8000u | 0x6000u | 0x0040u; /* FTZ, round to zero, DAZ; every exception traps */
    if (under_valgrind()) cr_skip_test("valgrind does not keep this word");
    last_hidden(model, NULL, plain);
    for (int before = 0; before < 2; before++) {
        if (!before) cr_assert_eq(bert_pool_open(&pool, 3, &err), BERT_OK);
        const unsigned usual = _mm_getcsr();
        _mm_setcsr(host);
        if (before) (void)!bert_pool_open(&pool, 3, &err);
        last_hidden(model, bert_pool_workers(pool), odd);
        const unsigned after = _mm_getcsr();
        _mm_setcsr(usual);
        cr_expect_eq(after, host);
        cr_expect(memcmp(plain, odd, sizeof plain) == 0);
        bert_pool_close(&pool);
    }
}

/* Rows that do not divide evenly into blocks, and a model that is opened there. */
Test(encoder, hostile_floating_point_environment_over_many_rows) {
    enum { MANY = 20 * TEXTS, ROWS = 20 * TOKENS };
    static size_t start[MANY + 1];
    static int32_t many[ROWS];
    static float last[2][ROWS * H];
    for (size_t i = 0; i <= MANY; i++) start[i] = i / TEXTS * TOKENS + START[i % TEXTS];
    for (size_t i = 0; i < ROWS; i++) many[i] = ids[i % TOKENS];
    const bert_batch batch = {sizeof batch, MANY - 1, start, many, NULL}; /* 590 rows: 7 blocks */
    cr_assert_eq(start[MANY - 1], 590);
    for (int strange = 0; strange < 2; strange++) {
        const bert_tap tap = tap_of(BERT_SITE_HIDDEN_STATES, L, last[strange], ROWS * H);
        const unsigned usual = _mm_getcsr();
        if (strange) _mm_setcsr(0x8000u | 0x6000u | 0x0040u);
        bert_model *m = open_tiny("tiny-bert", NULL);
        bert_session *s = open_session(m, NULL);
        const bert_status status = bert_run(s, &batch, &tap, 1, NULL, &err);
        bert_session_close(&s);
        bert_model_close(&m);
        _mm_setcsr(usual);
        cr_assert_eq(status, BERT_OK, "%s", err.text);
    }
    cr_expect(memcmp(last[0], last[1], 590 * H * sizeof(float)) == 0);
}

static int zero_head(void *user, const bert_view *view) {
    (void)user;
    memset(view->data, 0, view->dim[1] * view->dim[2] * sizeof *view->data);
    return 0;
}

/* Likewise where somebody looks in between, and sums are made anew. */
Test(encoder, hostile_floating_point_environment_between_steps) {
    float words[TOKENS * H], last[2][TOKENS * H];
    bert_session *s = open_session(model, NULL);
    const bert_batch batch = whole_batch();
    for (int strange = 0; strange < 2; strange++) {
        bert_tap taps[] = {tap_of(BERT_SITE_WORD, 0, words, TOKENS * H), tap_of(BERT_SITE_HEAD_OUTPUT, 0, NULL, 0),
                           tap_of(BERT_SITE_HIDDEN_STATES, L, last[strange], TOKENS * H)};
        taps[1].head = 1, taps[1].edit = 1, taps[1].got = zero_head;
        const unsigned usual = _mm_getcsr();
        if (strange) _mm_setcsr(0x8000u | 0x6000u | 0x0040u);
        const bert_status status = bert_run(s, &batch, taps, 3, NULL, &err);
        _mm_setcsr(usual);
        cr_assert_eq(status, BERT_OK, "%s", err.text);
    }
    cr_expect(memcmp(last[0], last[1], sizeof last[0]) == 0);
    bert_session_close(&s);
}
#endif

/* ---- Taps. ---- */

typedef struct log {
    int32_t site[256], layer[256], text[256];
    size_t n;
    float value;   /* what an editing tap writes */
    int32_t head;  /* where; -1: nowhere */
    int stop_at;   /* call that answers nonzero; -1: none */
} log_t;

static int note_call(void *user, const bert_view *view) {
    log_t *l = user;
    l->site[l->n] = view->site;
    l->layer[l->n] = view->layer;
    l->text[l->n] = view->text;
    for (size_t r = 0; l->head >= 0 && r < view->dim[1]; r++)
        for (size_t c = 0; c < view->dim[2]; c++)
            view->data[(size_t)l->head * view->step[0] + r * view->step[1] + c * view->step[2]] = l->value;
    return (int)l->n++ == l->stop_at;
}

static bert_tap looking_tap(bert_site site, int32_t layer, log_t *log) {
    bert_tap tap = tap_of(site, layer, NULL, 0);
    tap.got = note_call;
    tap.user = log;
    tap.edit = log->head >= 0;
    return tap;
}

Test(encoder, taps_are_called_by_layer_then_text) {
    log_t log = {.head = -1, .stop_at = -1};
    const bert_batch batch = whole_batch();
    const bert_tap tap = looking_tap(BERT_SITE_WEIGHTS, -1, &log);
    bert_session *s = open_session(model, NULL);
    run_ok(s, &batch, &tap, 1);
    cr_assert_eq(log.n, L * TEXTS);
    for (size_t i = 0; i < log.n; i++) {
        cr_expect_eq(log.layer[i], (int32_t)(i / TEXTS));
        cr_expect_eq(log.text[i], (int32_t)(i % TEXTS));
    }
    bert_session_close(&s);
}

Test(encoder, one_head_is_a_slice_of_all) {
    const bert_batch batch = whole_batch();
    bert_session *s = open_session(model, NULL);
    static const bert_site SITES[] = {BERT_SITE_QUERY, BERT_SITE_KEY, BERT_SITE_VALUE, BERT_SITE_SCORES,
                                      BERT_SITE_WEIGHTS, BERT_SITE_CONTEXT};
    for (size_t k = 0; k < sizeof SITES / sizeof *SITES; k++) {
        float all[A * 1000], one[1000];
        bert_tap taps[2] = {tap_of(SITES[k], 1, all, 4000), tap_of(SITES[k], 1, one, 1000)};
        taps[1].head = 2;
        run_ok(s, &batch, taps, 2);
        const float *from = all, *slice = one;
        for (size_t i = 0; i < TEXTS; i++) {
            const size_t t = START[i + 1] - START[i];
            const size_t unit = SITES[k] == BERT_SITE_SCORES || SITES[k] == BERT_SITE_WEIGHTS ? t * t : t * D;
            cr_expect(memcmp(from + 2 * unit, slice, unit * sizeof *one) == 0, "site %d, text %zu", SITES[k], i);
            from += A * unit;
            slice += unit;
        }
    }
    bert_session_close(&s);
}

Test(encoder, weights_are_the_softmax_of_the_scores_and_are_what_was_used) {
    const size_t start[2] = {0, 5};
    const bert_batch batch = {sizeof batch, 1, start, ids, types};
    float scores[A * 25], weights[A * 25], value[A * 5 * D], context[A * 5 * D];
    const bert_tap taps[] = {tap_of(BERT_SITE_SCORES, 0, scores, A * 25), tap_of(BERT_SITE_WEIGHTS, 0, weights, A * 25),
                             tap_of(BERT_SITE_VALUE, 0, value, A * 5 * D), tap_of(BERT_SITE_CONTEXT, 0, context, A * 5 * D)};
    bert_session *s = open_session(model, NULL);
    run_ok(s, &batch, taps, 4);
    for (size_t row = 0; row < A * 5; row++) {
        double sum = 0, exps = 0;
        for (size_t c = 0; c < 5; c++) exps += exp((double)scores[row * 5 + c]);
        for (size_t c = 0; c < 5; c++) {
            cr_expect(fabs((double)weights[row * 5 + c] - exp((double)scores[row * 5 + c]) / exps) < 1e-6);
            sum += (double)weights[row * 5 + c];
        }
        cr_expect(fabs(sum - 1) < 1e-6);
        for (size_t d = 0; d < D; d++) {
            double expected = 0;
            for (size_t c = 0; c < 5; c++)
                expected += (double)weights[row * 5 + c] * (double)value[(row / 5 * 5 + c) * D + d];
            cr_expect(fabs((double)context[row * D + d] - expected) < 1e-5);
        }
    }
    bert_session_close(&s);
}

Test(encoder, an_edit_is_used_from_there_on) {
    float plain[TOKENS * H], same[TOKENS * H], changed[TOKENS * H], context[A * TOKENS * D];
    const bert_batch batch = whole_batch();
    bert_session *s = open_session(model, NULL);
    last_hidden(model, NULL, plain);
    log_t look = {.head = -1, .stop_at = -1}, silence = {.head = 1, .stop_at = -1};
    bert_tap taps[] = {looking_tap(BERT_SITE_WEIGHTS, 1, &look), tap_of(BERT_SITE_HIDDEN_STATES, L, same, TOKENS * H)};
    run_ok(s, &batch, taps, 2);
    cr_expect(memcmp(plain, same, sizeof plain) == 0, "looking at maps changed the result");
    bert_tap edits[] = {looking_tap(BERT_SITE_WEIGHTS, 1, &silence), tap_of(BERT_SITE_CONTEXT, 1, context, A * TOKENS * D),
                        tap_of(BERT_SITE_HIDDEN_STATES, L, changed, TOKENS * H)};
    run_ok(s, &batch, edits, 3);
    cr_expect(memcmp(plain, changed, sizeof plain) != 0, "silencing a head changed nothing");
    for (size_t i = 0; i < 5 * D; i++) cr_expect_eq(context[5 * D + i], 0.0f, "weights of 0 must give context 0");
    bert_session_close(&s);
}

Test(encoder, starting_in_the_middle_gives_the_same_bits) {
    float all[(L + 1) * TOKENS * H], rest[TOKENS * H];
    const bert_batch batch = whole_batch();
    bert_session *s = open_session(model, NULL);
    const bert_tap every = tap_of(BERT_SITE_HIDDEN_STATES, -1, all, (L + 1) * TOKENS * H);
    run_ok(s, &batch, &every, 1);
    for (int32_t layer = 0; layer <= L; layer++) {
        bert_run_options options = BERT_RUN_OPTIONS_INIT;
        options.first_layer = layer;
        options.hidden = all + (size_t)layer * TOKENS * H;
        bert_batch without_ids = batch;
        without_ids.ids = NULL;
        const bert_tap last = tap_of(BERT_SITE_HIDDEN_STATES, L, rest, TOKENS * H);
        cr_assert_eq(bert_run(s, layer % 2 ? &batch : &without_ids, &last, 1, &options, &err), BERT_OK, "%s", err.text);
        cr_expect(memcmp(rest, all + L * TOKENS * H, sizeof rest) == 0, "from layer %d", (int)layer);
    }
    bert_session_close(&s);
}

/* ---- Errors, after each of which the session works. ---- */

static void expect_error(bert_session *s, const bert_batch *batch, const bert_tap *tap, const bert_run_options *options,
                         bert_status status, const char *says) {
    float hidden[TOKENS * H], plain[TOKENS * H];
    const bert_batch good = whole_batch();
    err.text[0] = '\0';
    cr_expect_eq(bert_run(s, batch, tap, 1, options, &err), status, "%s: %s", says, err.text);
    cr_expect(strstr(err.text, says), "expected \"%s\" in: %s", says, err.text);
    const bert_tap last = tap_of(BERT_SITE_HIDDEN_STATES, L, hidden, TOKENS * H);
    run_ok(s, &good, &last, 1);
    last_hidden(model, NULL, plain);
    cr_expect(memcmp(hidden, plain, sizeof plain) == 0);
}

Test(encoder, arguments_out_of_range) {
    float dst[TOKENS * H];
    bert_session *s = open_session(model, NULL);
    const bert_tap last = tap_of(BERT_SITE_HIDDEN_STATES, L, dst, TOKENS * H);
    const bert_batch good = whole_batch();
    int32_t bad_ids[TOKENS], bad_types[TOKENS];
    memcpy(bad_ids, ids, sizeof ids);
    memcpy(bad_types, types, sizeof types);
    bad_ids[7] = 3005;
    bad_types[0] = 2;
    bert_batch batch = good;
    batch.ids = bad_ids;
    expect_error(s, &batch, &last, NULL, BERT_INVALID_ARGUMENT, "id 3005");
    bad_ids[7] = -1;
    expect_error(s, &batch, &last, NULL, BERT_INVALID_ARGUMENT, "id -1");
    batch = good;
    batch.types = bad_types;
    expect_error(s, &batch, &last, NULL, BERT_INVALID_ARGUMENT, "token type 2");
    const size_t empty_text[] = {0, 5, 5};
    batch = (bert_batch){sizeof batch, 2, empty_text, ids, types};
    expect_error(s, &batch, &last, NULL, BERT_INVALID_ARGUMENT, "text 1");
    static int32_t many[65];
    const size_t too_long[] = {0, 65};
    batch = (bert_batch){sizeof batch, 1, too_long, many, NULL};
    expect_error(s, &batch, &last, NULL, BERT_TOO_LONG, "64 positions");
    bert_tap tap = last;
    tap.dst_len--;
    expect_error(s, &good, &tap, NULL, BERT_INVALID_ARGUMENT, "room");
    tap = tap_of(BERT_SITE_WEIGHTS, L, dst, TOKENS * H);
    expect_error(s, &good, &tap, NULL, BERT_INVALID_ARGUMENT, "layer 3");
    tap = tap_of(BERT_SITE_HIDDEN_STATES, -2, dst, TOKENS * H);
    expect_error(s, &good, &tap, NULL, BERT_INVALID_ARGUMENT, "layer -2");
    tap = tap_of(BERT_SITE_CONTEXT, 0, dst, TOKENS * H);
    tap.head = -2;
    expect_error(s, &good, &tap, NULL, BERT_INVALID_ARGUMENT, "head -2");
    batch = (bert_batch){sizeof batch, 1, NULL, ids, NULL};
    expect_error(s, &batch, &last, NULL, BERT_INVALID_ARGUMENT, "no start");
    batch = (bert_batch){sizeof batch, 1, START, NULL, NULL};
    expect_error(s, &batch, &last, NULL, BERT_INVALID_ARGUMENT, "no ids");
    bert_run_options middle = BERT_RUN_OPTIONS_INIT;
    middle.first_layer = 2;
    expect_error(s, &good, &last, &middle, BERT_INVALID_ARGUMENT, "first_layer 2");
    static const float states[TOKENS * H];
    middle.hidden = states;
    tap = tap_of(BERT_SITE_HIDDEN_STATES, 1, dst, TOKENS * H);
    expect_error(s, &good, &tap, &middle, BERT_INVALID_ARGUMENT, "starts behind it");
    tap = tap_of(BERT_SITE_WORD, 0, dst, TOKENS * H);
    expect_error(s, &good, &tap, &middle, BERT_INVALID_ARGUMENT, "starts behind it");
    batch = good;
    batch.ids = NULL;
    expect_error(s, &batch, &last, NULL, BERT_INVALID_ARGUMENT, "no ids");
    batch = good;
    batch.size = 0;
    expect_error(s, &batch, &last, NULL, BERT_INVALID_ARGUMENT, "size is not set");
    bert_session_close(&s);
}

Test(encoder, stopping) {
    float dst[TOKENS * H];
    bert_session *s = open_session(model, NULL);
    const bert_batch good = whole_batch();
    const bert_tap last = tap_of(BERT_SITE_HIDDEN_STATES, L, dst, TOKENS * H);
    const int raised = 1;
    bert_run_options options = BERT_RUN_OPTIONS_INIT;
    options.stop = &raised;
    expect_error(s, &good, &last, &options, BERT_STOPPED, "stopped");
    options.stop = NULL;
    options.deadline_ns = 1;
    expect_error(s, &good, &last, &options, BERT_DEADLINE, "deadline");
    log_t log = {.head = -1, .stop_at = 5};
    const bert_tap tap = looking_tap(BERT_SITE_QUERY, -1, &log);
    expect_error(s, &good, &tap, NULL, BERT_STOPPED, "layer 1");
    cr_expect_eq(log.n, 6);
    bert_session_close(&s);
}

Test(encoder, a_value_that_is_not_finite_names_its_layer) {
    bert_session *s = open_session(model, NULL);
    const bert_batch good = whole_batch();
    log_t log = {.head = 0, .value = NAN, .stop_at = -1};
    const bert_tap tap = looking_tap(BERT_SITE_VALUE, 1, &log);
    expect_error(s, &good, &tap, NULL, BERT_NOT_FINITE, "layer 1");
    bert_session_close(&s);
}

Test(encoder, no_pooler) {
    float dst[TEXTS * H];
    bert_model *m = open_tiny("tiny-bert-sharded", NULL);
    bert_session *s = open_session(m, NULL);
    const bert_batch good = whole_batch();
    const bert_tap tap = tap_of(BERT_SITE_POOLER, 0, dst, TEXTS * H);
    cr_expect_eq(bert_tap_size(m, &good, &tap), 0);
    cr_expect_eq(bert_run(s, &good, &tap, 1, NULL, &err), BERT_NOT_FOUND);
    cr_expect(strstr(err.text, "pooler.dense.weight"), "%s", err.text);
    bert_session_close(&s);
    bert_model_close(&m);
}

Test(encoder, a_session_keeps_its_model_alive_and_refuses_another_process) {
    float dst[TOKENS * H];
    bert_model *m = open_tiny("tiny-bert", NULL);
    bert_session *s = open_session(m, NULL);
    bert_model_close(&m);
    const bert_batch good = whole_batch();
    const bert_tap last = tap_of(BERT_SITE_HIDDEN_STATES, L, dst, TOKENS * H);
    run_ok(s, &good, &last, 1);
    const pid_t child = fork();
    if (child == 0) _exit(bert_run(s, &good, &last, 1, NULL, NULL) == BERT_INVALID_ARGUMENT ? 0 : 1);
    int status;
    waitpid(child, &status, 0);
    cr_expect_eq(status, 0);
    bert_session_close(&s);
}

/* ---- Memory. ---- */

typedef struct meter {
    atomic_size_t now, peak, calls;
    size_t fail_at; /* number of the call that gets nothing; 0: none */
} meter;

static void *metered_get(void *user, size_t n, size_t align) {
    meter *m = user;
    if (atomic_fetch_add(&m->calls, 1) + 1 == m->fail_at) return NULL;
    const size_t now = atomic_fetch_add(&m->now, n) + n;
    if (now > m->peak) m->peak = now;
    return aligned_alloc(align, (n + align - 1) / align * align);
}

static void metered_put(void *user, void *p, size_t n) {
    if (!p) return;
    atomic_fetch_sub(&((meter *)user)->now, n);
    free(p);
}

static bert_status open_and_run(const bert_memory *memory) {
    char path[4096];
    float dst[TOKENS * H];
    bert_model *m = NULL;
    bert_session *s = NULL;
    bert_model_options options = BERT_MODEL_OPTIONS_INIT;
    bert_session_options session_options = BERT_SESSION_OPTIONS_INIT;
    options.memory = session_options.memory = memory;
    options.weights = BERT_WEIGHTS_PACKED;
    snprintf(path, sizeof path, "%s/models/tiny-bert", getenv("BERT_TEST_DATA"));
    const bert_batch good = whole_batch();
    const bert_tap last = tap_of(BERT_SITE_HIDDEN_STATES, L, dst, TOKENS * H);
    bert_status status = bert_model_open(&m, path, &options, &err);
    if (status == BERT_OK) status = bert_session_open(&s, m, &session_options, &err);
    if (status == BERT_OK) status = bert_run(s, &good, &last, 1, NULL, &err);
    bert_session_close(&s);
    bert_model_close(&m);
    return status;
}

Test(encoder, the_callers_allocator_gets_everything_back_whenever_it_fails) {
    meter m = {0};
    const bert_memory memory = {&m, metered_get, metered_put};
    cr_assert_eq(open_and_run(&memory), BERT_OK, "%s", err.text);
    cr_expect_eq(m.now, 0);
    const size_t calls = m.calls;
    cr_expect(calls > 0);
    for (size_t n = 1; n <= calls; n++) {
        m.calls = 0;
        m.fail_at = n;
        cr_expect_eq(open_and_run(&memory), BERT_NO_MEMORY, "call %zu", n);
        cr_expect_eq(m.now, 0, "call %zu: %zu bytes kept", n, (size_t)m.now);
    }
}

Test(encoder, limits_on_memory) {
    float dst[TOKENS * H];
    bert_model *m = NULL;
    char path[4096];
    bert_model_options options = BERT_MODEL_OPTIONS_INIT;
    options.max_memory = 100000;
    snprintf(path, sizeof path, "%s/models/tiny-bert", getenv("BERT_TEST_DATA"));
    cr_expect_eq(bert_model_open(&m, path, &options, &err), BERT_NO_MEMORY);
    cr_expect_null(m);
    meter met = {0}; /* 40 rows take the room of 48: packed weights are more than their elements */
    const bert_memory memory = {&met, metered_get, metered_put};
    unsigned long needed = 0;
    cr_assert_eq(sscanf(err.text, "the weights take %lu bytes", &needed), 1, "%s", err.text);
    options.memory = &memory;
    options.max_memory = needed - 1;
    cr_expect_eq(bert_model_open(&m, path, &options, &err), BERT_NO_MEMORY);
    options.max_memory = needed;
    cr_assert_eq(bert_model_open(&m, path, &options, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_model_prepare(m, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(met.now, needed, "%zu bytes", (size_t)met.now);
    bert_model_close(&m);
    options.memory = NULL;
    bert_session_options session_options = BERT_SESSION_OPTIONS_INIT;
    session_options.max_memory = 1000;
    bert_session *s;
    cr_assert_eq(bert_session_open(&s, model, &session_options, &err), BERT_OK);
    const bert_batch good = whole_batch();
    const bert_tap last = tap_of(BERT_SITE_HIDDEN_STATES, L, dst, TOKENS * H);
    cr_expect_eq(bert_run(s, &good, &last, 1, NULL, &err), BERT_NO_MEMORY, "%s", err.text);
    bert_session_close(&s);
}

/* ---- One model, many threads (also run under ThreadSanitizer by name). ---- */

static void *encode_many(void *arg) {
    float *hidden = arg;
    for (int i = 0; i < 20; i++) last_hidden(model, NULL, hidden);
    return NULL;
}

Test(encoder, eight_threads_share_a_model) {
    static float hidden[8][TOKENS * H];
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++) pthread_create(&threads[i], NULL, encode_many, hidden[i]);
    for (size_t i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    for (size_t i = 1; i < 8; i++) cr_expect(memcmp(hidden[0], hidden[i], sizeof hidden[0]) == 0);
}
