/* Rollout, norms, distance, entropy against float64 goldens (scripts/make_study_goldens.py), and on maps that can be
 * worked out by hand. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

#include "base/logarithm.h"

enum { A = 4, L = 3, MOST = 16 };
static bert_model *model;
static bert_session *session;
static bert_safetensors *golden;
static bert_error err;

static void setup(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/models/tiny-bert", getenv("BERT_TEST_DATA"));
    cr_assert_eq(bert_model_open(&model, path, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_session_open(&session, model, NULL, &err), BERT_OK, "%s", err.text);
    snprintf(path, sizeof path, "%s/study/tiny-bert.safetensors", getenv("BERT_TEST_DATA"));
    cr_assert_eq(bert_safetensors_open(&golden, path, &err), BERT_OK, "%s", err.text);
}

static void teardown(void) {
    bert_safetensors_close(&golden);
    bert_session_close(&session);
    bert_model_close(&model);
}
TestSuite(study, .init = setup, .fini = teardown);

static const bert_tensor_info *find(const char *text, const char *name) {
    char full[64];
    snprintf(full, sizeof full, "%s.%s", text, name);
    const bert_tensor_info *t = bert_safetensors_find(golden, full);
    cr_assert_not_null(t, "%s", full);
    return t;
}

static size_t read_ids(int32_t ids[MOST], const char *text, const char *name) {
    const bert_tensor_info *t = find(text, name);
    int64_t wide[MOST];
    cr_assert(t->count <= MOST);
    cr_assert_eq(bert_safetensors_read(golden, t, 0, wide, t->count * sizeof *wide, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < t->count; i++) ids[i] = (int32_t)wide[i];
    return t->count;
}

static void near(const float *x, size_t n, const char *text, const char *name) {
    const bert_tensor_info *t = find(text, name);
    double *truth = malloc(n * sizeof *truth);
    cr_assert_eq(t->count, n, "%s.%s: %zu values, expected %zu", text, name, n, t->count);
    cr_assert_eq(bert_safetensors_read(golden, t, 0, truth, n * sizeof *truth, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < n; i++)
        cr_assert(fabs((double)x[i] - truth[i]) <= 1e-5 * (0.1 + fabs(truth[i])), "%s.%s[%zu]: %.9g, expected %.9g", text,
                  name, i, (double)x[i], truth[i]);
    free(truth);
}

static void check_text(const char *text) {
    int32_t ids[MOST], types[MOST];
    float rollout[MOST * MOST], norms[L * A * MOST * MOST], block[L * MOST * MOST], distance[L * A], entropy[L * A];
    const size_t t = read_ids(ids, text, "ids");
    bert_study all = {sizeof all, rollout, norms, block, distance, entropy, NULL, NULL};
    read_ids(types, text, "types");
    cr_assert_eq(bert_study_run(session, &all, ids, types, t, NULL, &err), BERT_OK, "%s", err.text);
    near(rollout, t * t, text, "rollout");
    near(norms, L * A * t * t, text, "norms");
    near(block, L * t * t, text, "block_norms");
    near(distance, L * A, text, "distance");
    near(entropy, L * A, text, "entropy");
    /* Each alone is the same. */
    float one[L * A * MOST * MOST];
    float **where[] = {&all.rollout, &all.norms, &all.block_norms, &all.distance, &all.entropy};
    const float *together[] = {rollout, norms, block, distance, entropy};
    const size_t n[] = {t * t, L * A * t * t, L * t * t, L * A, L * A};
    for (size_t i = 0; i < 5; i++) {
        all = (bert_study)BERT_STUDY_INIT;
        *where[i] = one;
        cr_assert_eq(bert_study_run(session, &all, ids, types, t, NULL, &err), BERT_OK, "%s", err.text);
        cr_expect(memcmp(one, together[i], n[i] * sizeof *one) == 0, "%zu", i);
    }
}

Test(study, single) { check_text("single"); }
Test(study, pair) { check_text("pair"); }

Test(study, rollout_of_all_layers_at_once) {
    int32_t ids[MOST];
    const size_t t = read_ids(ids, "single", "ids"), start[2] = {0, t};
    const bert_batch batch = {sizeof batch, 1, start, ids, NULL};
    float weights[L * A * MOST * MOST], rollout[MOST * MOST];
    bert_tap tap = BERT_TAP_INIT;
    tap.site = BERT_SITE_WEIGHTS;
    tap.dst = weights;
    tap.dst_len = L * A * t * t;
    cr_assert_eq(bert_run(session, &batch, &tap, 1, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_rollout(rollout, weights, L, A, t, &err), BERT_OK, "%s", err.text);
    near(rollout, t * t, "single", "rollout");
}

Test(study, maps_by_hand) {
    /* One head looks at itself, one evenly, one at the token before (the first at the last). */
    const float third = 1.0f / 3;
    const float weights[3][9] = {{1, 0, 0, 0, 1, 0, 0, 0, 1},
                                 {third, third, third, third, third, third, third, third, third},
                                 {0, 0, 1, 1, 0, 0, 0, 1, 0}};
    float entropy[3], distance[3], norms[3 * 9], rollout[9];
    bert_head_entropy(entropy, weights[0], 3, 3, 3);
    bert_head_distance(distance, weights[0], 3, 3, 3);
    cr_expect_eq(entropy[0], 0);
    cr_expect(fabs((double)entropy[1] - log(3)) < 1e-7);
    cr_expect_eq(entropy[2], 0);
    cr_expect_eq(distance[0], 0);
    cr_expect(fabs((double)distance[1] - 8.0 / 9) < 1e-7);
    cr_expect(fabs((double)distance[2] - 4.0 / 3) < 1e-7);
    const float f[3][6] = {{3, 4, 0, 0, 1, 0}, {0, 0, 6, 8, 0, 0}, {1, 0, 0, 1, 2, 0}};
    bert_attention_norms(norms, weights[0], f[0], 3, 3, 2);
    cr_expect_eq(norms[0], 5);
    cr_expect_eq(norms[8], 1);
    cr_expect(fabs((double)norms[9 + 1] - 10.0 / 3) < 1e-6);
    cr_expect_eq(norms[18 + 2], 2);
    cr_assert_eq(bert_rollout(rollout, weights[2], 1, 1, 3, &err), BERT_OK);
    const float expected[9] = {0.5f, 0, 0.5f, 0.5f, 0.5f, 0, 0, 0.5f, 0.5f};
    cr_expect(memcmp(rollout, expected, sizeof expected) == 0);
}

Test(study, logarithm) {
    double worst = 0;
    for (double x = 1.2e-38; x < 10; x *= 1.0037) {
        const double off = fabs(natural_log(x) - log(x)) / (1 + fabs(log(x)));
        worst = fmax(worst, off);
    }
    cr_expect(worst < 3e-16, "%g", worst);
    cr_expect_eq(natural_log(1), 0);
}

static double rho(const float *x, const float *y, size_t n) {
    double r = 7;
    cr_assert_eq(bert_rank_correlation(&r, x, y, n, &err), BERT_OK);
    return r;
}

/* The values between are correlations of the ranks by numpy. */
Test(study, rank_correlation) {
    const float up[] = {1, 2, 3, 4, 50}, down[] = {9, 7, 5, 3, 1}, ties[] = {1, 1, 2, 3, 3}, mixed[] = {0.3f, -1, 2, 0.5f, 0.4f};
    cr_expect_eq(rho(up, up, 5), 1);
    cr_expect_eq(rho(up, down, 5), -1);
    cr_expect(fabs(rho(up, ties, 5) - 0.9486832980505138) < 1e-15);
    cr_expect(fabs(rho(ties, mixed, 5) - 0.6324555320336759) < 1e-15);
    cr_expect(fabs(rho(up, mixed, 5) - 0.5) < 1e-15);
    const float even[] = {2, 2, 2};
    cr_expect(isnan(rho(up, even, 3)) && isnan(rho(up, down, 1)) && isnan(rho(up, down, 0)));
}

Test(study, errors) {
    float entropy[L * A];
    int32_t ids[100] = {0};
    bert_study want = BERT_STUDY_INIT;
    want.entropy = entropy;
    cr_expect_eq(bert_study_run(session, &want, ids, NULL, 0, NULL, &err), BERT_INVALID_ARGUMENT);
    cr_expect_eq(bert_study_run(session, &want, ids, NULL, 65, NULL, &err), BERT_TOO_LONG);
    ids[1] = -1;
    cr_expect_eq(bert_study_run(session, &want, ids, NULL, 4, NULL, &err), BERT_INVALID_ARGUMENT);
    cr_expect(strstr(err.text, "id -1"), "%s", err.text);
}

Test(study, rollout_under_a_host_that_rounds_to_zero) {
    enum { T = 3 };
    static const float weights[2 * T * T] = {.3f, .3f, .4f, .1f, .2f, .7f, .6f, .3f, .1f,
                                             .5f, .4f, .1f, .2f, .2f, .6f, .9f, .05f, .05f};
    float rollout[2][T * T];
    for (int strange = 0; strange < 2; strange++) {
        if (strange) fesetround(FE_TOWARDZERO);
        const bert_status status = bert_rollout(rollout[strange], weights, 2, 1, T, &err);
        fesetround(FE_TONEAREST);
        cr_assert_eq(status, BERT_OK, "%s", err.text);
    }
    cr_expect(memcmp(rollout[0], rollout[1], sizeof rollout[0]) == 0);
}
