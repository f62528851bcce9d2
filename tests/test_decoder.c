/* Decoders: causal self-attention and cross-attention over given states. The numbers themselves are compared with HF's in
 * test_parity.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

enum { H = 40, A = 4, L = 3, T = 14, TM = 16, TEXTS = 2, ROOM = 4096 };
static const size_t START[TEXTS + 1] = {0, 5, T}, MEMORY_START[TEXTS + 1] = {0, 9, TM};
enum { MAPS = A * (5 * 9 + 9 * 7) }; /* of one layer */
static int32_t ids[T];
static float memory[TM * H];
static bert_model *model;
static bert_session *session;
static bert_error err;

static bert_model *open_model(const char *name, const bert_model_options *options) {
    char path[ROOM];
    bert_model *m;
    snprintf(path, sizeof path, "%s/models/%s", getenv("BERT_TEST_DATA"), name);
    cr_assert_eq(bert_model_open(&m, path, options, &err), BERT_OK, "%s", err.text);
    return m;
}

static void setup(void) {
    for (int i = 0; i < T; i++) ids[i] = (i * 37 + 11) % 3000;
    for (int i = 0; i < TM * H; i++) memory[i] = (float)(i * 7919 % 2001) / 1000.0f - 1.0f;
    model = open_model("tiny-bert-decoder", NULL);
    cr_assert_eq(bert_session_open(&session, model, NULL, &err), BERT_OK, "%s", err.text);
}

static void teardown(void) {
    bert_session_close(&session);
    bert_model_close(&model);
}
TestSuite(decoder, .init = setup, .fini = teardown);

static bert_batch whole(void) { return (bert_batch){sizeof(bert_batch), TEXTS, START, ids, NULL}; }

static bert_run_options with_memory(void) {
    bert_run_options o = BERT_RUN_OPTIONS_INIT;
    o.memory = memory;
    o.memory_start = MEMORY_START;
    return o;
}

static bert_tap tap_of(bert_site site, int32_t layer, float *dst, size_t len) {
    bert_tap tap = BERT_TAP_INIT;
    tap.site = (int32_t)site;
    tap.layer = layer;
    tap.dst = dst;
    tap.dst_len = len;
    return tap;
}

static void run_with(bert_session *s, const bert_batch *batch, const bert_tap *taps, size_t n,
                     const bert_run_options *options) {
    cr_assert_eq(bert_run(s, batch, taps, n, options, &err), BERT_OK, "%s", err.text);
}

static void last_states(bert_session *s, float *hidden, const bert_run_options *options) {
    const bert_batch batch = whole();
    const bert_tap tap = tap_of(BERT_SITE_HIDDEN_STATES, L, hidden, T * H);
    run_with(s, &batch, &tap, 1, options);
}

/* What a token becomes does not depend on those behind it; in an encoder it does. */
Test(decoder, tokens_see_only_those_before) {
    static float together[T * H], alone[T * H], maps[A * 9 * 9];
    static const size_t one[2] = {0, 9};
    const bert_run_options o = with_memory();
    last_states(session, together, &o);
    for (size_t t = 1; t <= 5; t++) {
        const size_t start[2] = {0, t};
        const bert_batch batch = {sizeof batch, 1, start, ids, NULL};
        const bert_tap tap = tap_of(BERT_SITE_HIDDEN_STATES, L, alone, t * H);
        bert_run_options first = o;
        first.memory_start = one;
        run_with(session, &batch, &tap, 1, &first);
        cr_expect(memcmp(alone, together, t * H * sizeof *alone) == 0, "the first %zu tokens", t);
    }
    const bert_batch batch = {sizeof batch, 1, one, ids, NULL};
    const bert_tap tap = tap_of(BERT_SITE_WEIGHTS, 1, maps, A * 9 * 9);
    run_with(session, &batch, &tap, 1, NULL);
    for (size_t i = 0; i < A * 9; i++) {
        float sum = 0;
        for (size_t j = 0; j < 9; j++) {
            sum += maps[i * 9 + j];
            cr_expect((maps[i * 9 + j] != 0) == (j <= i % 9), "row %zu sees key %zu", i, j);
        }
        cr_expect(fabsf(sum - 1) < 1e-6f);
    }
}

/* A config that says is_decoder over an encoder's weights is run as what it says. */
Test(decoder, is_decoder_is_not_ignored) {
    static const int32_t few[3] = {2, 5, 6};
    static const size_t three[2] = {0, 3}, two[2] = {0, 2};
    static float of_three[3 * 8], of_two[2 * 8];
    char path[2][ROOM];
    bert_file files[2] = {{"config.json", NULL, 0}, {"model.safetensors", NULL, 0}};
    snprintf(path[0], ROOM, "%s/hostile/config/is_decoder.json", getenv("BERT_TEST_DATA"));
    snprintf(path[1], ROOM, "%s/hostile/base/model.safetensors", getenv("BERT_TEST_DATA"));
    for (size_t i = 0; i < 2; i++) {
        FILE *file = fopen(path[i], "rb");
        cr_assert_not_null(file, "%s", path[i]);
        char *bytes = malloc(1 << 20);
        files[i].len = fread(bytes, 1, 1 << 20, file);
        files[i].data = bytes;
        fclose(file);
    }
    bert_model *m;
    bert_session *s;
    cr_assert_eq(bert_model_open_files(&m, files, 2, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_session_open(&s, m, NULL, &err), BERT_OK, "%s", err.text);
    const int32_t layers = (int32_t)bert_model_describe(m).layers;
    bert_batch batch = {sizeof batch, 1, three, few, NULL};
    const bert_tap taps[] = {tap_of(BERT_SITE_HIDDEN_STATES, layers, of_three, 3 * 8),
                             tap_of(BERT_SITE_HIDDEN_STATES, layers, of_two, 2 * 8)};
    run_with(s, &batch, &taps[0], 1, NULL);
    batch.start = two;
    run_with(s, &batch, &taps[1], 1, NULL);
    cr_expect(memcmp(of_three, of_two, sizeof of_two) == 0, "the third token changed the first two");
    bert_session_close(&s);
    bert_model_close(&m);
    free((void *)files[0].data);
    free((void *)files[1].data);
}

/* Each text attends to its own memory: in a batch, alone, on any instruction set, from the file, with any threads. */
Test(decoder, same_bits_in_every_arrangement) {
    static const bert_isa ISAS[] = {BERT_ISA_REF, BERT_ISA_AVX2, BERT_ISA_AVX512, BERT_ISA_NEON};
    static float expected[T * H], found[T * H];
    const bert_run_options o = with_memory();
    last_states(session, expected, &o);
    for (size_t i = 0; i < TEXTS; i++) {
        const size_t start[2] = {0, START[i + 1] - START[i]}, rows[2] = {0, MEMORY_START[i + 1] - MEMORY_START[i]};
        const bert_batch batch = {sizeof batch, 1, start, ids + START[i], NULL};
        const bert_tap tap = tap_of(BERT_SITE_HIDDEN_STATES, L, found, start[1] * H);
        bert_run_options alone = o;
        alone.memory = memory + MEMORY_START[i] * H;
        alone.memory_start = rows;
        run_with(session, &batch, &tap, 1, &alone);
        cr_expect(memcmp(found, expected + START[i] * H, start[1] * H * sizeof *found) == 0, "text %zu alone", i);
    }
    for (size_t i = 0; i < 8; i++) {
        bert_model_options options = BERT_MODEL_OPTIONS_INIT;
        bert_session_options threads = BERT_SESSION_OPTIONS_INIT;
        bert_pool *pool;
        bert_session *s;
        options.isa = ISAS[i / 2];
        options.weights = i % 2 ? BERT_WEIGHTS_FILE : BERT_WEIGHTS_PACKED;
        if (!bert_isa_name(options.isa)) continue;
        bert_model *m = open_model("tiny-bert-decoder", &options);
        cr_assert_eq(bert_pool_open(&pool, 3, &err), BERT_OK, "%s", err.text);
        threads.workers = bert_pool_workers(pool);
        cr_assert_eq(bert_session_open(&s, m, &threads, &err), BERT_OK, "%s", err.text);
        last_states(s, found, &o);
        cr_expect(memcmp(found, expected, sizeof found) == 0, "%s", bert_isa_name(options.isa));
        bert_session_close(&s);
        bert_model_close(&m);
        bert_pool_close(&pool);
    }
}

typedef struct looker {
    float maps[2 * L * MAPS];
    size_t n;
    int silence; /* 1: every token looks at the first row of the memory alone */
} looker;

static int look(void *user, const bert_view *view) {
    looker *l = user;
    cr_assert_eq(view->rank, 3);
    for (size_t a = 0; a < view->dim[0]; a++)
        for (size_t i = 0; i < view->dim[1]; i++)
            for (size_t j = 0; j < view->dim[2]; j++) {
                float *x = &view->data[a * view->step[0] + i * view->step[1] + j * view->step[2]];
                l->maps[l->n++] = *x;
                if (l->silence) *x = j == 0;
            }
    return 0;
}

Test(decoder, maps_of_cross_attention) {
    static float scores[L * MAPS], weights[L * MAPS], one[MAPS / A], plain[T * H], hidden[T * H];
    static looker seen;
    const bert_run_options o = with_memory();
    const bert_batch batch = whole();
    last_states(session, plain, &o);
    bert_tap taps[] = {tap_of(BERT_SITE_CROSS_SCORES, -1, scores, L * MAPS),
                       tap_of(BERT_SITE_CROSS_WEIGHTS, -1, weights, L * MAPS),
                       tap_of(BERT_SITE_CROSS_WEIGHTS, 1, one, MAPS / A),
                       tap_of(BERT_SITE_HIDDEN_STATES, L, hidden, T * H)};
    taps[2].head = 2;
    cr_expect_eq(bert_run_tap_size(model, &batch, &taps[1], &o), (size_t)L * MAPS);
    cr_expect_eq(bert_run_tap_size(model, &batch, &taps[2], &o), (size_t)MAPS / A);
    cr_expect_eq(bert_tap_size(model, &batch, &taps[1]), 0);
    run_with(session, &batch, taps, 4, &o);
    cr_expect(memcmp(plain, hidden, sizeof plain) == 0, "looking changed the result");
    cr_expect(memcmp(one, weights + MAPS + 2 * 45, 45 * sizeof *one) == 0);
    cr_expect(memcmp(one + 45, weights + MAPS + A * 45 + 2 * 63, 63 * sizeof *one) == 0);
    for (size_t row = 0; row < A * 5; row++) { /* the first text's map of layer 0 is softmax of its scores */
        double sum = 0;
        for (size_t j = 0; j < 9; j++) sum += exp((double)scores[row * 9 + j]);
        for (size_t j = 0; j < 9; j++)
            cr_expect(fabs(exp((double)scores[row * 9 + j]) / sum - (double)weights[row * 9 + j]) < 1e-6);
    }
    taps[1].dst = NULL, taps[1].got = look, taps[1].user = &seen;
    run_with(session, &batch, &taps[1], 1, &o);
    cr_expect_eq(seen.n, (size_t)L * MAPS);
    cr_expect(memcmp(seen.maps, weights, sizeof weights) == 0, "a callback sees other maps");
}

/* With all weight on one row of memory the others do not count. */
Test(decoder, edits_of_cross_attention_count) {
    static float plain[T * H], edited[T * H], other[T * H];
    static looker first = {.silence = 1}, second = {.silence = 1};
    const bert_run_options o = with_memory();
    const bert_batch batch = whole();
    last_states(session, plain, &o);
    bert_tap taps[] = {tap_of(BERT_SITE_CROSS_WEIGHTS, -1, NULL, 0), tap_of(BERT_SITE_HIDDEN_STATES, L, edited, T * H)};
    taps[0].got = look, taps[0].user = &first, taps[0].edit = 1;
    run_with(session, &batch, taps, 2, &o);
    cr_expect(memcmp(plain, edited, sizeof plain) != 0, "an edit did nothing");
    for (size_t i = 0; i < TM * H; i++)
        if (i >= H && (i < 9 * H || i >= 10 * H)) memory[i] = 0.5f;
    taps[0].user = &second, taps[1].dst = other;
    run_with(session, &batch, taps, 2, &o);
    cr_expect(memcmp(other, edited, sizeof other) == 0, "rows of the memory that nobody looks at count");
}

Test(decoder, without_memory_as_hf_does) {
    static float with[T * H], without[T * H], maps[L * MAPS];
    bert_run_options o = with_memory();
    const bert_batch batch = whole();
    last_states(session, with, &o);
    last_states(session, without, NULL);
    cr_expect(memcmp(with, without, sizeof with) != 0);
    const bert_tap tap = tap_of(BERT_SITE_CROSS_WEIGHTS, -1, maps, L * MAPS);
    cr_expect_eq(bert_run(session, &batch, &tap, 1, NULL, &err), BERT_NOT_FOUND);
    cr_expect_not_null(strstr(err.text, "memory"), "%s", err.text);
    o.size = offsetof(bert_run_options, memory); /* a caller whose header is older */
    static float older[T * H];
    last_states(session, older, &o);
    cr_expect(memcmp(older, without, sizeof older) == 0);
}

Test(decoder, what_is_refused) {
    static float hidden[T * H];
    static const size_t none[TEXTS + 1] = {0, 9, 9};
    bert_run_options o = with_memory();
    const bert_batch batch = whole();
    const bert_tap tap = tap_of(BERT_SITE_HIDDEN_STATES, L, hidden, T * H);
    o.memory_start = none;
    cr_expect_eq(bert_run(session, &batch, &tap, 1, &o, &err), BERT_INVALID_ARGUMENT);
    cr_expect_not_null(strstr(err.text, "text 1"), "%s", err.text);
    o.memory_start = NULL;
    cr_expect_eq(bert_run(session, &batch, &tap, 1, &o, &err), BERT_INVALID_ARGUMENT);
    o = with_memory();
    memory[11 * H] = NAN;
    cr_expect_eq(bert_run(session, &batch, &tap, 1, &o, &err), BERT_NOT_FINITE);
    bert_model *encoder = open_model("tiny-bert", NULL);
    bert_session *s;
    cr_assert_eq(bert_session_open(&s, encoder, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(bert_run(s, &batch, &tap, 1, &o, &err), BERT_INVALID_ARGUMENT);
    cr_expect_not_null(strstr(err.text, "cross-attention"), "%s", err.text);
    bert_session_close(&s);
    bert_model_close(&encoder);
}

Test(decoder, no_sentence_vectors) {
    char path[ROOM];
    float vector[H];
    bert_pipeline *p;
    snprintf(path, sizeof path, "%s/models/tiny-bert-decoder", getenv("BERT_TEST_DATA"));
    cr_assert_eq(bert_pipeline_open(&p, path, NULL, &err), BERT_OK, "%s", err.text);
    const bert_text text = {"a", 1, NULL, 0};
    bert_session *s;
    cr_assert_eq(bert_session_open(&s, bert_pipeline_model(p), NULL, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(bert_embed(s, p, vector, &text, 1, NULL, NULL, &err), BERT_UNSUPPORTED);
    cr_expect_not_null(strstr(err.text, "is_decoder"), "%s", err.text);
    bert_session_close(&s);
    bert_pipeline_close(&p);
}
