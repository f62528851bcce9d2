/* The head for masked words: within the reference rule, the same bits in every arrangement, errors by name. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

enum { H = 40, V = 3005, T = 17, L = 3 };
static bert_model *model;
static float hidden[T * H];
static float logits[T * V], other[T * V];
static bert_error err;

static bert_model *open_model(const char *name, const bert_model_options *options) {
    char path[4096];
    bert_model *m;
    snprintf(path, sizeof path, "%s/models/%s", getenv("BERT_TEST_DATA"), name);
    cr_assert_eq(bert_model_open(&m, path, options, &err), BERT_OK, "%s", err.text);
    return m;
}

static bert_safetensors *open_reference(void) {
    char path[4096];
    bert_safetensors *file;
    snprintf(path, sizeof path, "%s/outputs/tiny-bert/heads.safetensors", getenv("BERT_TEST_DATA"));
    cr_assert_eq(bert_safetensors_open(&file, path, &err), BERT_OK, "%s", err.text);
    return file;
}

static void read_ids(int32_t ids[T], const bert_safetensors *file, const char *name) {
    int64_t wide[T];
    const bert_tensor_info *t = bert_safetensors_find(file, name);
    cr_assert(t && t->count == T);
    cr_assert_eq(bert_safetensors_read(file, t, 0, wide, sizeof wide, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < T; i++) ids[i] = (int32_t)wide[i];
}

static void setup(void) {
    int32_t ids[T], types[T];
    const size_t start[2] = {0, T};
    const bert_batch batch = {sizeof batch, 1, start, ids, types};
    bert_safetensors *file = open_reference();
    bert_session *s;
    bert_tap tap = BERT_TAP_INIT;
    read_ids(ids, file, "input_ids");
    read_ids(types, file, "token_type_ids");
    bert_safetensors_close(&file);
    model = open_model("tiny-bert", NULL);
    tap.layer = L;
    tap.dst = hidden;
    tap.dst_len = T * H;
    cr_assert_eq(bert_session_open(&s, model, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_run(s, &batch, &tap, 1, NULL, &err), BERT_OK, "%s", err.text);
    bert_session_close(&s);
}

static void teardown(void) { bert_model_close(&model); }
TestSuite(mlm, .init = setup, .fini = teardown);

static void run(const bert_model *m, float *y, const bert_workers *workers) {
    bert_mlm *mlm;
    cr_assert_eq(bert_mlm_open(&mlm, m, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_mlm_logits(mlm, y, hidden, T, workers, &err), BERT_OK, "%s", err.text);
    bert_mlm_close(&mlm);
}

Test(mlm, logits_within_the_reference_rule) {
    bert_safetensors *file = open_reference();
    static double truth[T * V];
    double ours = 0, hf = 0, ours_max = 0, hf_max = 0;
    run(model, logits, NULL);
    cr_assert_eq(bert_safetensors_read(file, bert_safetensors_find(file, "f64.mlm_logits"), 0, truth, sizeof truth, &err), BERT_OK);
    cr_assert_eq(bert_safetensors_read_f32(file, bert_safetensors_find(file, "f32.mlm_logits"), 0, other, T * V, &err), BERT_OK);
    for (size_t i = 0; i < T * V; i++) {
        const double a = fabs((double)logits[i] - truth[i]), b = fabs((double)other[i] - truth[i]);
        ours += a * a;
        hf += b * b;
        ours_max = fmax(ours_max, a);
        hf_max = fmax(hf_max, b);
    }
    fprintf(stderr, "mlm_logits: rms %.3e, HF %.3e, ratio %.3f; largest %.2e, HF %.2e\n", sqrt(ours / (T * V)), sqrt(hf / (T * V)),
            sqrt(ours / hf), ours_max, hf_max);
    cr_expect(sqrt(ours) <= 1.25 * sqrt(hf) && ours_max <= 8 * hf_max);
    bert_safetensors_close(&file);
}

Test(mlm, same_bits_in_every_arrangement) {
    run(model, logits, NULL);
    for (int way = 0; way < 3; way++) {
        bert_model_options options = BERT_MODEL_OPTIONS_INIT;
        bert_pool *pool = NULL;
        if (way == 0) options.isa = BERT_ISA_REF;
        if (way == 1) cr_assert_eq(bert_pool_open(&pool, 3, &err), BERT_OK);
        bert_model *m = open_model(way == 2 ? "tiny-bert-original-names" : "tiny-bert", &options);
        run(m, other, pool ? bert_pool_workers(pool) : NULL);
        cr_expect(memcmp(logits, other, sizeof logits) == 0, "way %d", way);
        bert_model_close(&m);
        bert_pool_close(&pool);
    }
    bert_mlm *mlm;
    cr_assert_eq(bert_mlm_open(&mlm, model, &err), BERT_OK);
    cr_assert_eq(bert_mlm_logits(mlm, other, hidden + 5 * H, 1, NULL, &err), BERT_OK);
    cr_expect(memcmp(logits + 5 * V, other, V * sizeof *other) == 0, "one position alone");
    bert_mlm_close(&mlm);
}

Test(mlm, log_probabilities) {
    enum { N = 40 }; /* more than are held at once */
    static float many[N * H];
    float log_probs[N];
    int32_t ids[N];
    bert_mlm *mlm;
    run(model, logits, NULL);
    for (size_t i = 0; i < N; i++) {
        memcpy(many + i * H, hidden + i % T * H, H * sizeof *many);
        ids[i] = (int32_t)(i * 75 % V);
    }
    cr_assert_eq(bert_mlm_open(&mlm, model, &err), BERT_OK);
    cr_assert_eq(bert_mlm_log_probs(mlm, log_probs, many, ids, N, NULL, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < N; i++) {
        const float *x = logits + i % T * V;
        double sum = 0;
        for (size_t k = 0; k < V; k++) sum += exp((double)x[k]);
        cr_expect(fabs((double)log_probs[i] - ((double)x[ids[i]] - log(sum))) < 2e-6);
    }
    ids[3] = V;
    cr_expect_eq(bert_mlm_log_probs(mlm, log_probs, many, ids, N, NULL, &err), BERT_INVALID_ARGUMENT);
    cr_expect(strstr(err.text, "id 3005"), "%s", err.text);
    cr_expect_eq(bert_mlm_log_probs(mlm, log_probs, many, ids, 0, NULL, &err), BERT_OK);
    bert_mlm_close(&mlm);
}

Test(mlm, most_probable_words) {
    enum { K = 7 };
    int32_t ids[T * K], all[V];
    float log_probs[T * K], one[T], same[V];
    bert_mlm *mlm;
    run(model, logits, NULL);
    cr_assert_eq(bert_mlm_open(&mlm, model, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_mlm_top(mlm, ids, log_probs, hidden, T, K, NULL, &err), BERT_OK, "%s", err.text);
    for (size_t k = 0; k < K; k++) {
        int32_t column[T];
        for (size_t i = 0; i < T; i++) {
            const float *x = logits + i * V;
            size_t better = 0; /* words that come before this one */
            column[i] = ids[i * K + k];
            for (int32_t w = 0; w < V; w++) better += x[w] > x[column[i]] || (x[w] == x[column[i]] && w < column[i]);
            cr_expect_eq(better, k, "place %zu: word %zu is the one of rank %zu", i, k, better);
        }
        cr_assert_eq(bert_mlm_log_probs(mlm, one, hidden, column, T, NULL, &err), BERT_OK, "%s", err.text);
        for (size_t i = 0; i < T; i++) cr_expect_eq(one[i], log_probs[i * K + k]);
    }
    cr_assert_eq(bert_mlm_top(mlm, all, same, hidden, 1, V, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect(memcmp(all, ids, K * sizeof *ids) == 0 && memcmp(same, log_probs, K * sizeof *same) == 0);
    cr_expect_eq(bert_mlm_top(mlm, all, same, hidden, 1, V + 1, NULL, &err), BERT_INVALID_ARGUMENT);
    cr_expect(strstr(err.text, "expected 1 to 3005"), "%s", err.text);
    cr_expect_eq(bert_mlm_top(mlm, all, same, hidden, 1, 0, NULL, &err), BERT_INVALID_ARGUMENT);
    bert_mlm_close(&mlm);
}

Test(mlm, keeps_its_model_alive) {
    bert_model *m = open_model("tiny-bert", NULL);
    bert_mlm *mlm;
    run(model, logits, NULL);
    cr_assert_eq(bert_mlm_open(&mlm, m, &err), BERT_OK);
    bert_model_close(&m);
    cr_assert_eq(bert_mlm_logits(mlm, other, hidden, T, NULL, &err), BERT_OK);
    cr_expect(memcmp(logits, other, sizeof logits) == 0);
    bert_mlm_close(&mlm);
}

Test(mlm, a_model_without_the_head) {
    bert_model *m = open_model("tiny-bert-classifier", NULL);
    bert_mlm *mlm;
    cr_expect_eq(bert_mlm_open(&mlm, m, &err), BERT_NOT_FOUND);
    cr_expect_null(mlm);
    cr_expect(strstr(err.text, "cls.predictions.transform.dense.weight"), "%s", err.text);
    bert_model_close(&m);
}
