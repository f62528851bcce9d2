/* Taps between the steps of a layer: what they show is what the formulas say, looking changes no bit, edits count. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

enum { H = 40, A = 4, D = 10, F = 100, L = 3, T = 14, TEXTS = 2, SITES = BERT_SITE_FFN_SUM + 1 };
static const size_t START[TEXTS + 1] = {0, 5, T};
static int32_t ids[T], types[T];
static bert_model *model;
static bert_session *session;
static bert_error err;

static const char *path_of(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/models/%s", getenv("BERT_TEST_DATA"), name);
    return path;
}

static bert_model *open_model(const char *name, const bert_model_options *options) {
    bert_model *m;
    cr_assert_eq(bert_model_open(&m, path_of(name), options, &err), BERT_OK, "%s", err.text);
    return m;
}

static bert_session *open_session(const bert_model *m, const bert_workers *workers) {
    bert_session_options options = BERT_SESSION_OPTIONS_INIT;
    bert_session *s;
    options.workers = workers;
    cr_assert_eq(bert_session_open(&s, m, &options, &err), BERT_OK, "%s", err.text);
    return s;
}

static void setup(void) {
    for (int i = 0; i < T; i++) {
        ids[i] = (i * 37 + 11) % 3000;
        types[i] = i % 3 == 0;
    }
    model = open_model("tiny-bert", NULL);
    session = open_session(model, NULL);
}

static void teardown(void) {
    bert_session_close(&session);
    bert_model_close(&model);
}
TestSuite(taps, .init = setup, .fini = teardown);

static bert_batch whole(void) { return (bert_batch){sizeof(bert_batch), TEXTS, START, ids, types}; }

static bert_tap tap_of(bert_site site, int32_t layer, float *dst, size_t len) {
    bert_tap tap = BERT_TAP_INIT;
    tap.site = (int32_t)site;
    tap.layer = layer;
    tap.dst = dst;
    tap.dst_len = len;
    return tap;
}

static void run_ok(bert_session *s, const bert_tap *taps, size_t n) {
    const bert_batch batch = whole();
    cr_assert_eq(bert_run(s, &batch, taps, n, NULL, &err), BERT_OK, "%s", err.text);
}

/* A site's values in one layer, of all texts; the caller frees. */
static float *values(bert_session *s, bert_site site, int32_t layer) {
    const bert_batch batch = whole();
    bert_tap tap = tap_of(site, layer, NULL, 0);
    tap.dst_len = bert_tap_size(bert_session_model(s), &batch, &tap);
    cr_assert_neq(tap.dst_len, 0);
    tap.dst = malloc(tap.dst_len * sizeof *tap.dst);
    run_ok(s, &tap, 1);
    return tap.dst;
}

static float *weight(const char *name, size_t n) {
    char path[4200];
    bert_safetensors *file;
    float *w = malloc(n * sizeof *w);
    snprintf(path, sizeof path, "%s/model.safetensors", path_of("tiny-bert"));
    cr_assert_eq(bert_safetensors_open(&file, path, &err), BERT_OK, "%s", err.text);
    const bert_tensor_info *t = bert_safetensors_find(file, name);
    cr_assert(t && t->count == n, "%s", name);
    cr_assert_eq(bert_safetensors_read_f32(file, t, 0, w, n, &err), BERT_OK, "%s", err.text);
    bert_safetensors_close(&file);
    return w;
}

static void near(const float *x, const double *truth, size_t n, const char *what) {
    for (size_t i = 0; i < n; i++)
        cr_assert(fabs((double)x[i] - truth[i]) <= 2e-6 * (1 + fabs(truth[i])), "%s[%zu]: %.9g, expected %.9g", what, i,
                  (double)x[i], truth[i]);
}

/* y[T, n] = x[T, k] · w[n, k]ᵀ + b in double. */
static void linear(double *y, const float *x, const float *w, const float *b, size_t n, size_t k) {
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < n; i++) {
            double sum = (double)b[i];
            for (size_t j = 0; j < k; j++) sum += (double)x[t * k + j] * (double)w[i * k + j];
            y[t * n + i] = sum;
        }
}

static void layer_norm(double *y, const float *x, const float *gamma, const float *beta) {
    for (size_t t = 0; t < T; t++) {
        double mean = 0, var = 0;
        for (size_t i = 0; i < H; i++) mean += (double)x[t * H + i] / H;
        for (size_t i = 0; i < H; i++) var += pow((double)x[t * H + i] - mean, 2) / H;
        for (size_t i = 0; i < H; i++)
            y[t * H + i] = ((double)x[t * H + i] - mean) / sqrt(var + 1e-12) * (double)gamma[i] + (double)beta[i];
    }
}

/* [A, T, D] of each text to [T, A·D] of all. */
static void by_token(float *y, const float *x) {
    for (size_t text = 0; text < TEXTS; text++)
        for (size_t a = 0; a < A; a++)
            for (size_t t = START[text]; t < START[text + 1]; t++, x += D) memcpy(y + t * H + a * D, x, D * sizeof *x);
}

Test(taps, a_layer_adds_up) {
    float *hidden = values(session, BERT_SITE_HIDDEN_STATES, 1), *next = values(session, BERT_SITE_HIDDEN_STATES, 2);
    float *context = values(session, BERT_SITE_CONTEXT, 1), rows[T * H];
    float *output = values(session, BERT_SITE_ATTENTION_OUTPUT, 1), *sum = values(session, BERT_SITE_ATTENTION_SUM, 1);
    float *pre = values(session, BERT_SITE_FFN_PRE, 1), *post = values(session, BERT_SITE_FFN_POST, 1);
    float *ffn = values(session, BERT_SITE_FFN_OUTPUT, 1), *ffn_sum = values(session, BERT_SITE_FFN_SUM, 1);
#define W(name, n) weight("bert.encoder.layer.1." name, n)
    float *wo = W("attention.output.dense.weight", H * H), *bo = W("attention.output.dense.bias", H);
    float *up = W("intermediate.dense.weight", F * H), *up_bias = W("intermediate.dense.bias", F);
    float *down = W("output.dense.weight", F * H), *down_bias = W("output.dense.bias", H);
    float *g1 = W("attention.output.LayerNorm.weight", H), *b1 = W("attention.output.LayerNorm.bias", H);
    float *g2 = W("output.LayerNorm.weight", H), *b2 = W("output.LayerNorm.bias", H), middle[T * H];
    double truth[T * F];
    by_token(rows, context);
    linear(truth, rows, wo, bo, H, H);
    near(output, truth, T * H, "attention output");
    for (size_t i = 0; i < T * H; i++) cr_assert_eq(sum[i], output[i] + hidden[i]);
    layer_norm(truth, sum, g1, b1);
    for (size_t i = 0; i < T * H; i++) middle[i] = (float)truth[i];
    linear(truth, middle, up, up_bias, F, H);
    near(pre, truth, T * F, "pre-activation");
    for (size_t i = 0; i < T * F; i++) truth[i] = (double)pre[i] * 0.5 * (1 + erf((double)pre[i] / sqrt(2)));
    near(post, truth, T * F, "post-activation");
    linear(truth, post, down, down_bias, H, F);
    near(ffn, truth, T * H, "FFN output");
    for (size_t i = 0; i < T * H; i++) cr_assert(fabsf(ffn_sum[i] - ffn[i] - middle[i]) < 2e-6f);
    layer_norm(truth, ffn_sum, g2, b2);
    near(next, truth, T * H, "next hidden states");
    float *all[] = {hidden, next, context, output, sum, pre, post, ffn, ffn_sum, wo, bo, up, up_bias, down, down_bias, g1, b1, g2, b2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

Test(taps, heads_add_up_to_the_attention_output) {
    float *by_head = values(session, BERT_SITE_HEAD_OUTPUT, 2), *by_value = values(session, BERT_SITE_VALUE_OUTPUT, 2);
    float *maps = values(session, BERT_SITE_WEIGHTS, 2), *output = values(session, BERT_SITE_ATTENTION_OUTPUT, 2);
    float *bias = weight("bert.encoder.layer.2.attention.output.dense.bias", H);
    const float *heads = by_head, *f = by_value, *alpha = maps;
    for (size_t text = 0; text < TEXTS; text++) {
        const size_t t = START[text + 1] - START[text];
        for (size_t i = 0; i < t; i++)
            for (size_t k = 0; k < H; k++) {
                double whole_sum = (double)bias[k];
                for (size_t a = 0; a < A; a++) {
                    double weighted = 0;
                    for (size_t j = 0; j < t; j++)
                        weighted += (double)alpha[(a * t + i) * t + j] * (double)f[(a * t + j) * H + k];
                    cr_assert(fabs(weighted - (double)heads[(a * t + i) * H + k]) < 2e-6);
                    whole_sum += (double)heads[(a * t + i) * H + k];
                }
                cr_assert(fabs(whole_sum - (double)output[(START[text] + i) * H + k]) < 2e-6);
            }
        heads += A * t * H;
        f += A * t * H;
        alpha += A * t * t;
    }
    free(by_head), free(by_value), free(maps), free(output), free(bias);
}

Test(taps, embeddings_are_rows_of_their_tables) {
    float *word = values(session, BERT_SITE_WORD, -1), *position = values(session, BERT_SITE_POSITION, 0);
    float *type = values(session, BERT_SITE_TYPE, 7), *hidden = values(session, BERT_SITE_HIDDEN_STATES, 0);
    float *words = weight("bert.embeddings.word_embeddings.weight", 3005 * H);
    float *positions = weight("bert.embeddings.position_embeddings.weight", 64 * H);
    float *kinds = weight("bert.embeddings.token_type_embeddings.weight", 2 * H);
    float *gamma = weight("bert.embeddings.LayerNorm.weight", H), *beta = weight("bert.embeddings.LayerNorm.bias", H);
    float sum[T * H];
    double truth[T * H];
    for (size_t text = 0; text < TEXTS; text++)
        for (size_t i = START[text]; i < START[text + 1]; i++) {
            cr_expect(memcmp(word + i * H, words + (size_t)ids[i] * H, H * sizeof *word) == 0);
            cr_expect(memcmp(position + i * H, positions + (i - START[text]) * H, H * sizeof *word) == 0);
            cr_expect(memcmp(type + i * H, kinds + (size_t)types[i] * H, H * sizeof *word) == 0);
        }
    for (size_t i = 0; i < T * H; i++) sum[i] = word[i] + type[i] + position[i];
    layer_norm(truth, sum, gamma, beta);
    near(hidden, truth, T * H, "embeddings");
    free(word), free(position), free(type), free(hidden), free(words), free(positions), free(kinds), free(gamma), free(beta);
}

/* ---- Looking changes nothing. ---- */

static int look(void *user, const bert_view *view) {
    (void)view;
    return *(int *)user;
}

/* Last hidden states with every site of every layer looked at, kept, and given back as it was. */
static void look_everywhere(bert_session *s, float last[T * H], float *kept, size_t room) {
    bert_tap taps[2 * SITES + 1];
    size_t n = 0, used = 0;
    int go_on = 0;
    const bert_batch batch = whole();
    for (int site = 0; site < SITES; site++) {
        bert_tap tap = tap_of((bert_site)site, -1, kept + used, 0);
        tap.dst_len = bert_tap_size(bert_session_model(s), &batch, &tap);
        used += tap.dst_len;
        taps[n++] = tap;
        tap.dst = NULL;
        tap.got = look;
        tap.user = &go_on;
        tap.edit = site != BERT_SITE_VALUE_OUTPUT;
        taps[n++] = tap;
    }
    cr_assert(used <= room);
    taps[n++] = tap_of(BERT_SITE_HIDDEN_STATES, L, last, T * H);
    run_ok(s, taps, n);
}

enum { ROOM = 200000 };
static float kept[2][ROOM];

Test(taps, asking_changes_no_bit) {
    static const char *const MODELS[] = {"tiny-bert", "tiny-bert-relu", "tiny-bert-silu", "tiny-bert-gelu-new"};
    memset(types, 0, sizeof types); /* one of them has only one type */
    for (size_t i = 0; i < 4; i++) {
        float plain[T * H], looked[T * H];
        bert_model *m = open_model(MODELS[i], NULL);
        bert_session *s = open_session(m, NULL);
        const bert_tap last = tap_of(BERT_SITE_HIDDEN_STATES, L, plain, T * H);
        run_ok(s, &last, 1);
        look_everywhere(s, looked, kept[0], ROOM);
        cr_expect(memcmp(plain, looked, sizeof plain) == 0, "%s", MODELS[i]);
        bert_session_close(&s);
        bert_model_close(&m);
    }
}

/* Each site alone: whatever else is asked for, what it shows has the same bits. */
Test(taps, alone_or_together) {
    float last[T * H];
    const float *at = kept[0];
    look_everywhere(session, last, kept[0], ROOM);
    for (int site = 0; site < SITES; site++) {
        const bert_batch batch = whole();
        const bert_tap tap = tap_of((bert_site)site, -1, NULL, 0);
        const size_t n = bert_tap_size(model, &batch, &tap);
        float *alone = values(session, (bert_site)site, -1);
        cr_expect(memcmp(alone, at, n * sizeof *at) == 0, "site %d", site);
        free(alone);
        at += n;
    }
}

/* Each text alone has what stands for it in the batch's dst: by layer, then text, whatever their lengths are. */
Test(taps, texts_of_many_lengths) {
    static const size_t starts[] = {0, 1, 4, 6, 6 + 5, T};
    enum { N = sizeof starts / sizeof *starts - 1 };
    const bert_batch batch = {sizeof batch, N, starts, ids, types};
    for (int site = 0; site < SITES; site++) {
        bert_tap tap = tap_of((bert_site)site, -1, NULL, 0);
        tap.dst_len = bert_tap_size(model, &batch, &tap);
        float *all = tap.dst = malloc(tap.dst_len * sizeof *tap.dst), *alone = malloc(tap.dst_len * sizeof *alone);
        cr_assert_eq(bert_run(session, &batch, &tap, 1, NULL, &err), BERT_OK, "%s", err.text);
        const bool once = site == BERT_SITE_POOLER || (site >= BERT_SITE_WORD && site <= BERT_SITE_TYPE);
        const size_t layers = once ? 1 : site == BERT_SITE_HIDDEN_STATES ? L + 1 : L, a_layer = tap.dst_len / layers;
        for (size_t i = 0, at = 0; i < N; i++) {
            const size_t start[2] = {0, starts[i + 1] - starts[i]};
            const bert_batch one = {sizeof one, 1, start, ids + starts[i], types + starts[i]};
            bert_tap by_itself = tap_of((bert_site)site, -1, alone, tap.dst_len);
            const size_t n = bert_tap_size(model, &one, &by_itself) / layers;
            cr_assert_eq(bert_run(session, &one, &by_itself, 1, NULL, &err), BERT_OK, "%s", err.text);
            for (size_t l = 0; l < layers; l++)
                cr_expect(memcmp(all + l * a_layer + at, alone + l * n, n * sizeof *all) == 0, "site %d, text %zu, layer %zu",
                          site, i, l);
            at += n;
        }
        free(all);
        free(alone);
    }
}

Test(taps, a_size_that_does_not_fit) {
    const size_t start[2] = {0, (size_t)1 << 33}; /* whose maps would have 2^66 weights */
    const bert_batch batch = {sizeof batch, 1, start, ids, types};
    const bert_tap maps = tap_of(BERT_SITE_WEIGHTS, 0, NULL, 0), words = tap_of(BERT_SITE_WORD, 0, NULL, 0);
    cr_expect_eq(bert_tap_size(model, &batch, &maps), 0);
    cr_expect_eq(bert_tap_size(model, &batch, &words), start[1] * H);
}

Test(taps, any_arrangement) {
    float first[T * H], other[T * H];
    look_everywhere(session, first, kept[0], ROOM);
    for (int way = 0; way < 4; way++) {
        bert_model_options options = BERT_MODEL_OPTIONS_INIT;
        bert_pool *pool = NULL;
        if (way == 0) options.weights = BERT_WEIGHTS_FILE;
        if (way == 1) options.isa = BERT_ISA_REF;
        if (way == 2) options.weights = BERT_WEIGHTS_PACKED;
        if (way == 3) cr_assert_eq(bert_pool_open(&pool, 3, &err), BERT_OK);
        bert_model *m = open_model("tiny-bert", &options);
        bert_session *s = open_session(m, pool ? bert_pool_workers(pool) : NULL);
        look_everywhere(s, other, kept[1], ROOM);
        cr_expect(memcmp(first, other, sizeof first) == 0, "way %d", way);
        cr_expect(memcmp(kept[0], kept[1], sizeof kept[0]) == 0, "way %d", way);
        bert_session_close(&s);
        bert_model_close(&m);
        bert_pool_close(&pool);
    }
}

static void multiply(void *user, float *y, size_t ldy, const float *x, size_t ldx, const float *w, size_t ldw, size_t t,
                     size_t n, size_t k) {
    (void)user;
    for (size_t i = 0; i < t; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t c = 0; c < k; c++) sum += (double)x[i * ldx + c] * (double)w[j * ldw + c];
            y[i * ldy + j] = (float)sum;
        }
}

Test(taps, through_a_gemm_hook) {
    const bert_gemm gemm = {NULL, "test", multiply};
    bert_model_options options = BERT_MODEL_OPTIONS_INIT;
    options.gemm = &gemm;
    bert_model *m = open_model("tiny-bert", &options);
    bert_session *s = open_session(m, NULL);
    for (int site = 0; site < SITES; site++) {
        const bert_batch batch = whole();
        const bert_tap tap = tap_of((bert_site)site, -1, NULL, 0);
        const size_t n = bert_tap_size(m, &batch, &tap);
        float *ours = values(session, (bert_site)site, -1), *theirs = values(s, (bert_site)site, -1);
        for (size_t i = 0; i < n; i++) cr_assert(fabsf(ours[i] - theirs[i]) < 2e-5f, "site %d", site);
        free(ours), free(theirs);
    }
    bert_session_close(&s);
    bert_model_close(&m);
}

Test(taps, one_head_is_a_slice) {
    for (int site = BERT_SITE_VALUE_OUTPUT; site <= BERT_SITE_HEAD_OUTPUT; site++) {
        float *all = values(session, (bert_site)site, 1), one[T * H];
        bert_tap tap = tap_of((bert_site)site, 1, one, T * H);
        tap.head = 2;
        run_ok(session, &tap, 1);
        cr_expect(memcmp(one, all + 2 * 5 * H, 5 * H * sizeof *one) == 0);
        cr_expect(memcmp(one + 5 * H, all + A * 5 * H + 2 * 9 * H, 9 * H * sizeof *one) == 0);
        free(all);
    }
}

/* ---- Edits. ---- */

static int make_zero(void *user, const bert_view *v) {
    (void)user;
    const size_t planes = v->rank > 2 ? v->dim[0] : 1, step = v->rank > 2 ? v->step[0] : 0;
    for (size_t p = 0; p < planes; p++)
        for (size_t i = 0; i < v->dim[v->rank - 2]; i++)
            for (size_t k = 0; k < v->dim[v->rank - 1]; k++) v->data[p * step + i * v->step[v->rank - 2] + k] = 0;
    return 0;
}

/* What `shown` has in layer 1 when `site` is zero there (in one head, if it has any). */
static float *with_zero(bert_site site, bert_site shown, float *values_of) {
    bert_tap taps[2] = {tap_of(site, 1, NULL, 0), tap_of(shown, shown == BERT_SITE_HIDDEN_STATES ? L : 1, values_of, T * F)};
    taps[0].got = make_zero;
    taps[0].edit = 1;
    taps[0].head = 2;
    run_ok(session, taps, 2);
    return values_of;
}

Test(taps, edits_are_used) {
    static float a[T * F], b[T * F];
    float *bias = weight("bert.encoder.layer.1.output.dense.bias", H), *hidden = values(session, BERT_SITE_HIDDEN_STATES, 1);
    with_zero(BERT_SITE_HEAD_OUTPUT, BERT_SITE_HIDDEN_STATES, a);
    with_zero(BERT_SITE_CONTEXT, BERT_SITE_HIDDEN_STATES, b);
    float *plain = values(session, BERT_SITE_HIDDEN_STATES, L), change = 0;
    for (size_t i = 0; i < T * H; i++) {
        cr_assert(fabsf(a[i] - b[i]) < 1e-5f, "a silent head by its result or by its context: %.9g, %.9g", (double)a[i], (double)b[i]);
        change = fmaxf(change, fabsf(a[i] - plain[i]));
    }
    cr_expect(change > 1e-3f);
    with_zero(BERT_SITE_ATTENTION_OUTPUT, BERT_SITE_ATTENTION_SUM, a);
    for (size_t i = 0; i < T * H; i++) cr_assert_eq(a[i], hidden[i]);
    with_zero(BERT_SITE_FFN_POST, BERT_SITE_FFN_OUTPUT, a);
    for (size_t i = 0; i < T * H; i++) cr_assert_eq(a[i], bias[i % H]);
    with_zero(BERT_SITE_FFN_PRE, BERT_SITE_FFN_POST, a);
    for (size_t i = 0; i < T * F; i++) cr_assert_eq(a[i], 0);
    with_zero(BERT_SITE_ATTENTION_SUM, BERT_SITE_HIDDEN_STATES, a);
    with_zero(BERT_SITE_FFN_SUM, BERT_SITE_HIDDEN_STATES, b);
    cr_expect(memcmp(a, plain, T * H * sizeof *a) != 0 && memcmp(b, plain, T * H * sizeof *b) != 0);
    cr_expect(memcmp(a, b, T * H * sizeof *a) != 0);
    free(bias), free(hidden), free(plain);
}

Test(taps, an_edit_of_the_word_is_used) {
    float shown[T * H], *position = values(session, BERT_SITE_POSITION, 0), *type = values(session, BERT_SITE_TYPE, 0);
    float *gamma = weight("bert.embeddings.LayerNorm.weight", H), *beta = weight("bert.embeddings.LayerNorm.bias", H);
    bert_tap taps[2] = {tap_of(BERT_SITE_WORD, 0, NULL, 0), tap_of(BERT_SITE_HIDDEN_STATES, 0, shown, T * H)};
    double truth[T * H];
    taps[0].got = make_zero;
    taps[0].edit = 1;
    run_ok(session, taps, 2);
    for (size_t i = 0; i < T * H; i++) position[i] += type[i];
    layer_norm(truth, position, gamma, beta);
    near(shown, truth, T * H, "embeddings without words");
    free(position), free(type), free(gamma), free(beta);
}

Test(taps, what_cannot_be_edited_says_so) {
    int go_on = 0;
    const bert_batch batch = whole();
    bert_tap tap = tap_of(BERT_SITE_VALUE_OUTPUT, 0, NULL, 0);
    tap.got = look;
    tap.user = &go_on;
    tap.edit = 1;
    cr_expect_eq(bert_run(session, &batch, &tap, 1, NULL, &err), BERT_INVALID_ARGUMENT);
    cr_expect(strstr(err.text, "value_output"), "%s", err.text);
    tap = tap_of((bert_site)(BERT_SITE_CROSS_WEIGHTS + 1), 0, kept[0], ROOM);
    cr_expect_eq(bert_run(session, &batch, &tap, 1, NULL, &err), BERT_INVALID_ARGUMENT);
}
