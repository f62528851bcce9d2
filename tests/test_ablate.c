/* Ablation: every effect is what one gets by hand with one pass for each change; how many passes it takes. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

enum { H = 40, A = 4, L = 3, MOST = 32 };
static bert_pipeline *pipeline;
static bert_session *session;
static bert_tokens *tokens;
static bert_encoding text;
static bert_mlm *mlm;
static bert_error err;

static bert_pipeline *open_pipeline(const char *name, const bert_model_options *model) {
    char path[4096];
    bert_pipeline *p;
    bert_pipeline_options options = BERT_PIPELINE_OPTIONS_INIT;
    options.model = model;
    snprintf(path, sizeof path, "%s/models/%s", getenv("BERT_TEST_DATA"), name);
    cr_assert_eq(bert_pipeline_open(&p, path, &options, &err), BERT_OK, "%s", err.text);
    return p;
}

static void tokenize(const char *words) {
    const bert_text t = {words, strlen(words), NULL, 0};
    cr_assert_eq(bert_tokenize(&tokens, bert_pipeline_tokenizer(pipeline), &t, 1, NULL, &err), BERT_OK, "%s", err.text);
    text = bert_tokens_at(tokens, 0, 0);
    cr_assert(text.n <= MOST);
}

static void setup(void) {
    pipeline = open_pipeline("tiny-bert", NULL);
    cr_assert_eq(bert_session_open(&session, bert_pipeline_model(pipeline), NULL, &err), BERT_OK);
    cr_assert_eq(bert_mlm_open(&mlm, bert_pipeline_model(pipeline), &err), BERT_OK, "%s", err.text);
    tokenize("the quick dog is lazy");
}

static void teardown(void) {
    bert_mlm_close(&mlm);
    bert_tokens_close(&tokens);
    bert_session_close(&session);
    bert_pipeline_close(&pipeline);
}
TestSuite(ablate, .init = setup, .fini = teardown);

static bert_ablation *ablate(const bert_ablate_options *options) {
    bert_ablation *a;
    cr_assert_eq(bert_ablate(&a, session, pipeline, &text, options, &err), BERT_OK, "%s", err.text);
    return a;
}

/* Last hidden states of n tokens, with one tap more. */
static void run(float *hidden, const int32_t *ids, size_t n, const bert_tap *edit) {
    const size_t start[2] = {0, n};
    const bert_batch batch = {sizeof batch, 1, start, ids, NULL};
    bert_tap taps[2] = {BERT_TAP_INIT, BERT_TAP_INIT};
    taps[0].layer = L;
    taps[0].dst = hidden;
    taps[0].dst_len = n * H;
    if (edit) taps[1] = *edit;
    cr_assert_eq(bert_run(session, &batch, taps, edit ? 2 : 1, NULL, &err), BERT_OK, "%s", err.text);
}

/* The mean over tokens, which is how tiny-bert is pooled. */
static void mean(double y[H], const float *hidden, size_t n) {
    for (size_t k = 0; k < H; k++) {
        y[k] = 0;
        for (size_t i = 0; i < n; i++) y[k] += (double)hidden[i * H + k] / (double)n;
    }
}

static double change(const double *x, const double *y) {
    double xy = 0, xx = 0, yy = 0;
    for (size_t k = 0; k < H; k++) xy += x[k] * y[k], xx += x[k] * x[k], yy += y[k] * y[k];
    return 1 - xy / sqrt(xx * yy);
}

static double token_change(const float *x, const float *y) {
    double a[H], b[H];
    mean(a, x, 1);
    mean(b, y, 1);
    return change(a, b);
}

/* Everything about one trial; `removed`: the token that is missing, or text.n. */
static void check(const bert_effects *e, size_t at, const float *plain, const float *hidden, size_t removed) {
    const size_t n = text.n - (removed < text.n);
    float before[MOST], after[MOST];
    int32_t ids[MOST];
    double x[H], y[H], sum = 0;
    size_t own = 0, k = 0;
    mean(x, plain, text.n);
    mean(y, hidden, n);
    cr_assert(fabs((double)e->embedding[at] - change(x, y)) < 1e-6, "%g, expected %g", (double)e->embedding[at], change(x, y));
    for (size_t i = 0; i < text.n; i++)
        if (i != removed) ids[k++] = text.ids[i];
    cr_assert_eq(bert_mlm_log_probs(mlm, before, plain, text.ids, text.n, NULL, &err), BERT_OK);
    cr_assert_eq(bert_mlm_log_probs(mlm, after, hidden, ids, n, NULL, &err), BERT_OK);
    k = 0;
    for (size_t i = 0; i < text.n; i++) {
        const float effect = e->tokens[at * text.n + i];
        if (i == removed) {
            cr_assert(isnan(effect));
            continue;
        }
        cr_assert(fabs((double)effect - token_change(plain + i * H, hidden + k * H)) < 1e-6);
        if (!text.special_tokens_mask[i]) sum += (double)after[k] - (double)before[i], own++;
        k++;
    }
    cr_assert(fabs((double)e->log_prob[at] - sum / (double)own) < 1e-6);
}

Test(ablate, tokens_masked_and_removed) {
    bert_ablate_options options = BERT_ABLATE_OPTIONS_INIT;
    options.mlm = mlm;
    bert_ablation *a = ablate(&options);
    float plain[MOST * H], hidden[MOST * H];
    const int32_t mask = bert_tokenizer_special(bert_pipeline_tokenizer(pipeline), BERT_SPECIAL_MASK);
    size_t tried = 0;
    run(plain, text.ids, text.n, NULL);
    cr_assert(mask >= 0);
    for (size_t i = 0; i < text.n; i++) {
        int32_t ids[MOST];
        if (text.special_tokens_mask[i]) {
            cr_expect(isnan(a->masked.embedding[i]) && isnan(a->removed.embedding[i]));
            continue;
        }
        memcpy(ids, text.ids, text.n * sizeof *ids);
        ids[i] = mask;
        run(hidden, ids, text.n, NULL);
        check(&a->masked, i, plain, hidden, text.n);
        memcpy(ids + i, text.ids + i + 1, (text.n - i - 1) * sizeof *ids);
        run(hidden, ids, text.n - 1, NULL);
        check(&a->removed, i, plain, hidden, i);
        cr_expect(a->masked.embedding[i] > 0 && a->removed.embedding[i] > 0);
        tried++;
    }
    cr_expect(tried > 5);
    bert_ablation_close(&a);
    cr_expect_null(a);
}

static int fill(void *user, const bert_view *v) {
    for (size_t i = 0; i < v->dim[1]; i++)
        for (size_t k = 0; k < v->dim[2]; k++) v->data[i * v->step[1] + k] = *(const float *)user;
    return 0;
}

Test(ablate, heads_silenced_either_way) {
    float plain[MOST * H], hidden[MOST * H];
    run(plain, text.ids, text.n, NULL);
    for (int silence = BERT_SILENCE_ZERO; silence <= BERT_SILENCE_UNIFORM; silence++) {
        bert_ablate_options options = BERT_ABLATE_OPTIONS_INIT;
        options.silence = (bert_silence)silence;
        options.mlm = mlm;
        bert_ablation *a = ablate(&options);
        float value = silence == BERT_SILENCE_ZERO ? 0 : 1 / (float)text.n;
        for (size_t i = 0; i < L * A; i++) {
            bert_tap tap = BERT_TAP_INIT;
            tap.site = silence == BERT_SILENCE_ZERO ? BERT_SITE_CONTEXT : BERT_SITE_WEIGHTS;
            tap.layer = (int32_t)(i / A);
            tap.head = (int32_t)(i % A);
            tap.edit = 1;
            tap.got = fill;
            tap.user = &value;
            run(hidden, text.ids, text.n, &tap);
            check(&a->silenced, i, plain, hidden, text.n);
            cr_expect(a->silenced.embedding[i] > 0);
        }
        bert_ablation_close(&a);
    }
}

static void expect_same(const bert_ablation *x, const bert_ablation *y) {
    const bert_effects *a[] = {&x->masked, &x->removed, &x->silenced}, *b[] = {&y->masked, &y->removed, &y->silenced};
    for (size_t i = 0; i < 3; i++) {
        const size_t n = i < 2 ? text.n : L * A;
        cr_expect(memcmp(a[i]->embedding, b[i]->embedding, n * sizeof(float)) == 0);
        cr_expect(memcmp(a[i]->tokens, b[i]->tokens, n * text.n * sizeof(float)) == 0);
        cr_expect(memcmp(a[i]->log_prob, b[i]->log_prob, n * sizeof(float)) == 0);
    }
    for (size_t k = 0; k < BERT_SAID; k++) cr_expect(memcmp(x->said[k], y->said[k], text.n * sizeof(float)) == 0);
    cr_expect_eq(x->layers_run, y->layers_run);
}

Test(ablate, same_bits_with_any_size_of_a_pass_and_any_workers) {
    bert_ablate_options options = BERT_ABLATE_OPTIONS_INIT;
    options.mlm = mlm;
    bert_ablation *usual = ablate(&options);
    for (size_t budget = 1; budget < 100; budget += 33) {
        options.pass_tokens = budget;
        bert_ablation *a = ablate(&options);
        expect_same(usual, a);
        bert_ablation_close(&a);
    }
    bert_pool *pool;
    bert_session_options with_pool = BERT_SESSION_OPTIONS_INIT;
    cr_assert_eq(bert_pool_open(&pool, 3, &err), BERT_OK);
    with_pool.workers = bert_pool_workers(pool);
    bert_session_close(&session);
    cr_assert_eq(bert_session_open(&session, bert_pipeline_model(pipeline), &with_pool, &err), BERT_OK);
    bert_ablation *a = ablate(&options);
    expect_same(usual, a);
    bert_ablation_close(&a);
    bert_session_close(&session);
    bert_pool_close(&pool);
    bert_ablation_close(&usual);
}

Test(ablate, same_bits_under_a_host_that_rounds_up) {
    bert_ablate_options options = BERT_ABLATE_OPTIONS_INIT;
    options.mlm = mlm;
    options.silence = BERT_SILENCE_UNIFORM;
    bert_ablation *usual = ablate(&options);
    fesetround(FE_UPWARD);
    bert_ablation *strange = ablate(&options);
    fesetround(FE_TONEAREST);
    expect_same(usual, strange);
    bert_ablation_close(&strange);
    bert_ablation_close(&usual);
}

Test(ablate, what_attention_said) {
    bert_ablation *a = ablate(NULL);
    float rollout[MOST * MOST], norms[L * A * MOST * MOST], weights[L * A * MOST * MOST], tried[3][MOST];
    const size_t t = text.n, start[2] = {0, t};
    const bert_batch batch = {sizeof batch, 1, start, text.ids, NULL};
    bert_study study = BERT_STUDY_INIT;
    bert_tap tap = BERT_TAP_INIT;
    double rho;
    size_t n = 0;
    study.rollout = rollout;
    study.norms = norms;
    tap.site = BERT_SITE_WEIGHTS;
    tap.dst = weights;
    tap.dst_len = L * A * t * t;
    cr_assert_eq(bert_study_run(session, &study, text.ids, NULL, t, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_run(session, &batch, &tap, 1, NULL, &err), BERT_OK, "%s", err.text);
    for (size_t j = 0; j < t; j++) {
        double received = 0, norm = 0, rolled = 0;
        for (size_t row = 0; row < L * A * t; row++) {
            received += (double)weights[row * t + j] / (double)(L * A * t);
            norm += (double)norms[row * t + j] / (double)(L * A * t);
        }
        for (size_t i = 0; i < t; i++) rolled += (double)rollout[i * t + j] / (double)t;
        cr_expect(fabs((double)a->said[BERT_SAID_RECEIVED][j] - received) < 1e-6);
        cr_expect(fabs((double)a->said[BERT_SAID_NORM][j] - norm) < 1e-6);
        cr_expect(fabs((double)a->said[BERT_SAID_ROLLOUT][j] - rolled) < 1e-6);
        if (text.special_tokens_mask[j]) continue;
        tried[0][n] = a->masked.embedding[j];
        tried[1][n] = a->removed.embedding[j];
        tried[2][n++] = a->said[BERT_SAID_NORM][j];
    }
    cr_assert_eq(bert_rank_correlation(&rho, tried[0], tried[2], n, &err), BERT_OK);
    cr_expect_eq(a->masked_rank[BERT_SAID_NORM], rho);
    cr_assert_eq(bert_rank_correlation(&rho, tried[1], tried[2], n, &err), BERT_OK);
    cr_expect_eq(a->removed_rank[BERT_SAID_NORM], rho);
    cr_expect_null(a->masked.log_prob);
    bert_ablation_close(&a);
}

/* ---- What it costs. ---- */

static void count_rows(void *user, float *y, size_t ldy, const float *x, size_t ldx, const float *w, size_t ldw, size_t t,
                       size_t n, size_t k) {
    if (n == 3 * H) *(size_t *)user += t; /* queries, keys and values: once a layer */
    for (size_t i = 0; i < t; i++)
        for (size_t j = 0; j < n; j++) {
            float sum = 0;
            for (size_t c = 0; c < k; c++) sum += x[i * ldx + c] * w[j * ldw + c];
            y[i * ldy + j] = sum;
        }
}

Test(ablate, layers_before_a_silent_head_are_not_run_again) {
    size_t rows = 0;
    const bert_gemm gemm = {&rows, "counting", count_rows};
    bert_model_options model = BERT_MODEL_OPTIONS_INIT;
    model.gemm = &gemm;
    bert_pipeline *p = open_pipeline("tiny-bert", &model);
    bert_session *s;
    bert_ablation *a;
    cr_assert_eq(bert_session_open(&s, bert_pipeline_model(p), NULL, &err), BERT_OK);
    cr_assert_eq(bert_ablate(&a, s, p, &text, NULL, &err), BERT_OK, "%s", err.text);
    const size_t t = text.n, tried = t - 2, heads = A * (L * (L + 1) / 2);
    cr_expect_eq(rows, t * 2 * L + tried * L * (t + t - 1) + t * heads);
    cr_expect_eq(a->layers_run, 2 * L + 2 * tried * L + heads);
    bert_ablation_close(&a);
    bert_session_close(&s);
    bert_pipeline_close(&p);
    /* The same sum for bert-base: 12 layers of 12 heads, and the two passes over the text as it is. */
    cr_expect(12 * (12 * 13 / 2) + 2 * 12 <= 90 * 12);
}

/* bert-base itself, where its weights are: what its 144 heads cost, in passes through all layers. */
Test(ablate, heads_of_bert_base_cost_at_most_90_passes) {
    const char *const roots[] = {getenv("BERT_TEST_MODELS"), getenv("BERT_TEST_SOURCE_MODELS")};
    char dir[4096] = "";
    bert_pipeline *p = NULL;
    bert_session *s;
    bert_ablation *a;
    for (size_t i = 0; i < 2 && !p; i++) {
        snprintf(dir, sizeof dir, "%s/bert-base-uncased", roots[i] ? roots[i] : "");
        if (roots[i] && bert_pipeline_open(&p, dir, NULL, &err) != BERT_OK) p = NULL;
    }
    if (!p) cr_skip_test("bert-base-uncased is not here");
    const bert_text words = {"fox", 3, NULL, 0};
    cr_assert_eq(bert_tokenize(&tokens, bert_pipeline_tokenizer(p), &words, 1, NULL, &err), BERT_OK, "%s", err.text);
    text = bert_tokens_at(tokens, 0, 0);
    cr_assert_eq(bert_session_open(&s, bert_pipeline_model(p), NULL, &err), BERT_OK);
    cr_assert_eq(bert_ablate(&a, s, p, &text, NULL, &err), BERT_OK, "%s", err.text);
    /* Without the token that was masked and removed, and the two looks at the text as it is. */
    const size_t heads = a->layers_run - 4 * a->layers;
    fprintf(stderr, "ablate: %zu heads of bert-base cost %.1f passes\n", a->layers * a->heads,
            (double)heads / (double)a->layers);
    cr_expect_eq(a->layers * a->heads, 144);
    cr_expect(heads <= 90 * a->layers);
    bert_ablation_close(&a);
    bert_session_close(&s);
    bert_pipeline_close(&p);
}

/* ---- Edges. ---- */

Test(ablate, no_text_and_one_token) {
    tokenize("");
    bert_ablation *a = ablate(NULL);
    cr_expect(isnan(a->masked.embedding[0]) && isnan(a->removed.embedding[1]) && isnan(a->masked_rank[0]));
    cr_expect(a->silenced.embedding[0] >= 0);
    bert_ablation_close(&a);
    tokenize("the");
    a = ablate(NULL);
    cr_expect(a->removed.embedding[1] > 0 && isnan(a->removed_rank[0]));
    bert_ablation_close(&a);
    bert_tokenize_options bare = BERT_TOKENIZE_OPTIONS_INIT;
    const bert_text the = {"the", 3, NULL, 0};
    bare.no_special_tokens = 1;
    cr_assert_eq(bert_tokenize(&tokens, bert_pipeline_tokenizer(pipeline), &the, 1, &bare, &err), BERT_OK);
    text = bert_tokens_at(tokens, 0, 0);
    a = ablate(NULL); /* no [CLS] and no [SEP]: masking is a change, without its token there is no text */
    cr_expect(a->masked.embedding[0] > 0 && isnan(a->removed.embedding[0]));
    bert_ablation_close(&a);
}

Test(ablate, pooling_and_the_pooler) {
    bert_ablate_options options = BERT_ABLATE_OPTIONS_INIT;
    bert_embed_options embed = BERT_EMBED_OPTIONS_INIT;
    float rollout[MOST * MOST];
    bert_study study = BERT_STUDY_INIT;
    study.rollout = rollout;
    cr_assert_eq(bert_study_run(session, &study, text.ids, NULL, text.n, NULL, &err), BERT_OK);
    options.embed = &embed;
    embed.pooling = BERT_POOLING_POOLER;
    bert_ablation *pooler = ablate(&options);
    embed.pooling = BERT_POOLING_CLS;
    bert_ablation *cls = ablate(&options);
    cr_expect(memcmp(cls->said[BERT_SAID_ROLLOUT], rollout, text.n * sizeof *rollout) == 0);
    for (size_t i = 0; i < L * A; i++) {
        cr_expect(pooler->silenced.embedding[i] > 0 && pooler->silenced.embedding[i] != cls->silenced.embedding[i]);
        cr_expect(fabsf(cls->silenced.embedding[i] - cls->silenced.tokens[i * text.n]) < 1e-7f, "[CLS] is the vector");
    }
    bert_ablation_close(&pooler);
    bert_ablation_close(&cls);
}

Test(ablate, stops_and_refuses) {
    const int stop = 1;
    bert_run_options run_options = BERT_RUN_OPTIONS_INIT;
    bert_ablate_options options = BERT_ABLATE_OPTIONS_INIT;
    bert_ablation *a;
    run_options.stop = &stop;
    options.run = &run_options;
    cr_expect_eq(bert_ablate(&a, session, pipeline, &text, &options, &err), BERT_STOPPED);
    cr_expect_null(a);
    options = (bert_ablate_options)BERT_ABLATE_OPTIONS_INIT;
    options.silence = (bert_silence)7;
    cr_expect_eq(bert_ablate(&a, session, pipeline, &text, &options, &err), BERT_INVALID_ARGUMENT);
    bert_pipeline *other = open_pipeline("tiny-bert-relu", NULL);
    cr_expect_eq(bert_ablate(&a, session, other, &text, NULL, &err), BERT_INVALID_ARGUMENT);
    bert_pipeline_close(&other);
}
