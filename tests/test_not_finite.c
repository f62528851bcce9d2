/* A NaN in any weight is an error that says where, whatever is computed from it and however it is activated: none is
 * lost in a maximum, a softmax or a tanh. The same models without it run, so that a refusal says something. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

#include "file/source.h"
#include "scratch.h"

enum { T = 5, MOST = T * 3005 };
static const int32_t ids[T] = {2, 5, 104, 7, 3};
static const size_t start[2] = {0, T};
static const bert_batch batch = {sizeof batch, 1, start, ids, NULL};
static bert_error err;

/* The files of a model; its weights are changed in place. */
typedef struct files {
    char *config, *weights;
    size_t config_len, weights_len;
    bert_safetensors *table; /* of the weights */
} files;

static char *read_file(size_t *len, const char *model, const char *name) {
    char path[4096], *text;
    snprintf(path, sizeof path, "%s/models/%s/%s", getenv("BERT_TEST_DATA"), model, name);
    cr_assert_eq(bert_read_text(&text, len, path, 64 << 20, &err), BERT_OK, "%s", err.text);
    return text;
}

static files open_files(const char *model) {
    files f = {0};
    f.config = read_file(&f.config_len, model, "config.json");
    f.weights = read_file(&f.weights_len, model, "model.safetensors");
    const bert_file memory = {"model.safetensors", f.weights, f.weights_len};
    cr_assert_eq(bert_safetensors_open_memory(&f.table, &memory, &err), BERT_OK, "%s", err.text);
    return f;
}

static void close_files(files *f) {
    bert_safetensors_close(&f->table);
    free(f->config);
    free(f->weights);
}

static bert_model *open_model(const files *f, bert_isa isa) {
    const bert_file memory[] = {{"config.json", f->config, f->config_len}, {"model.safetensors", f->weights, f->weights_len}};
    bert_model_options options = BERT_MODEL_OPTIONS_INIT;
    bert_model *m;
    options.isa = isa;
    cr_assert_eq(bert_model_open_files(&m, memory, 2, &options, &err), BERT_OK, "%s", err.text);
    return m;
}

/* Writes `value` over elements [first, first + n) of a tensor at `at`. */
static void overwrite(char *at, const bert_tensor_info *t, size_t first, size_t n, float value) {
    cr_assert(t->dtype == BERT_F32 && first + n <= t->count, "%s", t->name);
    for (size_t i = first; i < first + n; i++) memcpy(at + 4 * i, &value, 4);
}

/* What is run over the model. */
typedef bert_status run_model(const bert_model *m);

/* All of the tensor NaN, and but one value in its middle, by every instruction set that is here. */
static void check_tensor(files *f, const bert_tensor_info *t, int also_one, run_model *run, const char *said) {
    char *at = f->weights + t->offset, *kept = malloc(t->bytes);
    memcpy(kept, at, t->bytes);
    for (int one = 0; one <= also_one; one++)
        for (bert_isa isa = BERT_ISA_AUTO; isa <= BERT_ISA_NEON; isa++) {
            if (bert_isa_name(isa) == NULL) continue;
            overwrite(at, t, one ? t->count / 2 : 0, one ? 1 : t->count, NAN);
            bert_model *m = open_model(f, isa);
            const bert_status status = run(m);
            cr_expect_eq(status, BERT_NOT_FINITE, "%s, %s, %s: status %d", t->name, one ? "one" : "all", bert_isa_name(isa), status);
            cr_expect(status == BERT_OK || strstr(err.text, said), "%s: %s, expected %s", t->name, err.text, said);
            bert_model_close(&m);
            memcpy(at, kept, t->bytes);
        }
    free(kept);
}

/* ---- Encoder and pooler. ---- */

static bert_status run_encoder(const bert_model *m) {
    static float hidden[T * 64], pooled[64];
    const bert_model_info info = bert_model_describe(m);
    bert_session *s;
    bert_tap taps[] = {BERT_TAP_INIT, BERT_TAP_INIT};
    taps[0].layer = (int32_t)info.layers, taps[0].dst = hidden, taps[0].dst_len = T * info.hidden;
    taps[1].site = BERT_SITE_POOLER, taps[1].dst = pooled, taps[1].dst_len = info.hidden;
    cr_assert_eq(bert_session_open(&s, m, NULL, &err), BERT_OK, "%s", err.text);
    const bert_status status = bert_run(s, &batch, taps, 2, NULL, &err);
    bert_session_close(&s);
    return status;
}

/* "layer 1" for a tensor of the second layer. */
static const char *place_of(char room[32], const char *name) {
    const char *layer = strstr(name, "encoder.layer.");
    if (strstr(name, "pooler.")) return "pooler";
    snprintf(room, 32, "layer %d:", layer ? atoi(layer + strlen("encoder.layer.")) : 0);
    return room;
}

static void check_encoder(const char *model) {
    files f = open_files(model);
    bert_model *m = open_model(&f, BERT_ISA_AUTO);
    size_t n = 0;
    cr_expect_eq(run_encoder(m), BERT_OK, "%s: %s", model, err.text);
    for (size_t i = 0; i < bert_model_tensor_count(m); i++) {
        const bert_model_tensor t = bert_model_tensor_at(m, i);
        char room[32];
        if (!t.used) continue;
        n++; /* of tables of embeddings most rows are not used */
        check_tensor(&f, bert_safetensors_find(f.table, t.info->name), strstr(t.info->name, "_embeddings.") == NULL, run_encoder,
                     place_of(room, t.info->name));
    }
    cr_expect_eq(n, 5 + 3 * 16 + 2);
    bert_model_close(&m);
    close_files(&f);
}

Test(not_finite, gelu) { check_encoder("tiny-bert"); }
Test(not_finite, relu) { check_encoder("tiny-bert-relu"); }
Test(not_finite, silu) { check_encoder("tiny-bert-silu"); }
Test(not_finite, gelu_new) { check_encoder("tiny-bert-gelu-new"); }

/* ---- Heads. ---- */

static bert_head_kind kind; /* the head that run_head runs */

static bert_status run_head(const bert_model *m) {
    static float logits[T * 16];
    bert_head *head;
    bert_session *s;
    cr_assert_eq(bert_session_open(&s, m, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_head_open(&head, m, kind, &err), BERT_OK, "%s", err.text);
    const bert_status status = bert_head_run(s, head, logits, &batch, NULL, &err);
    bert_head_close(&head);
    bert_session_close(&s);
    return status;
}

static bert_status run_words(const bert_model *m) {
    static float logits[MOST], hidden[T * 40];
    bert_mlm *mlm;
    for (int i = 0; i < T * 40; i++) hidden[i] = (float)(i % 7) - 3;
    cr_assert_eq(bert_mlm_open(&mlm, m, &err), BERT_OK, "%s", err.text);
    const bert_status status = bert_mlm_logits(mlm, logits, hidden, T, NULL, &err);
    bert_mlm_close(&mlm);
    return status;
}

static void check_head(const char *model, run_model *run, const char *prefix, const char *said, size_t tensors) {
    files f = open_files(model);
    bert_model *m = open_model(&f, BERT_ISA_AUTO);
    size_t n = 0;
    cr_expect_eq(run(m), BERT_OK, "%s: %s", model, err.text);
    bert_model_close(&m);
    for (size_t i = 0; i < bert_safetensors_count(f.table); i++) {
        const bert_tensor_info *t = bert_safetensors_at(f.table, i);
        if (strncmp(t->name, prefix, strlen(prefix)) != 0) continue;
        check_tensor(&f, t, 1, run, said);
        n++;
    }
    cr_expect_eq(n, tensors, "%s: %zu", model, n);
    close_files(&f);
}

Test(not_finite, heads) {
    kind = BERT_HEAD_SEQUENCE;
    check_head("tiny-bert-classifier", run_head, "classifier.", "classifier.weight", 2);
    check_head("tiny-bert-reranker", run_head, "classifier.", "classifier.weight", 2);
    check_head("tiny-bert-classifier", run_head, "bert.pooler.", "pooler", 2);
    kind = BERT_HEAD_TOKENS;
    check_head("tiny-bert-ner", run_head, "classifier.", "classifier.weight", 2);
    kind = BERT_HEAD_SPAN;
    check_head("tiny-bert-qa", run_head, "qa_outputs.", "qa_outputs.weight", 2);
    kind = BERT_HEAD_NEXT;
    check_head("tiny-bert", run_head, "cls.seq_relationship.", "cls.seq_relationship.weight", 2);
    check_head("tiny-bert", run_words, "cls.predictions.", "masked words", 5);
}

/* `bert inspect` names them without running anything, the heads' too. */
Test(not_finite, the_check_of_a_file_names_every_tensor) {
    files f = open_files("tiny-bert");
    for (size_t i = 0; i < bert_safetensors_count(f.table); i++) {
        const bert_tensor_info *t = bert_safetensors_at(f.table, i);
        char *last = f.weights + t->offset + t->bytes - 4, kept[4];
        const char *name;
        memcpy(kept, last, 4);
        memcpy(last, &(float){-INFINITY}, 4);
        bert_model *m = open_model(&f, BERT_ISA_AUTO);
        cr_assert_eq(bert_model_check_finite(m, &name, &err), BERT_OK, "%s", err.text);
        cr_expect(name && strcmp(name, t->name) == 0, "%s: %s", t->name, name ? name : "nothing");
        bert_model_close(&m);
        memcpy(last, kept, 4);
    }
    close_files(&f);
}

/* ---- The modules behind a pooling. ---- */

/* Where there is no vector, nothing is written. */
static bert_status run_pipeline(const char *dir) {
    enum { DIM = 64 };
    float vector[DIM];
    const bert_text text = {"the cat", 7, NULL, 0};
    bert_pipeline *p;
    bert_session *s;
    cr_assert_eq(bert_pipeline_open(&p, dir, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_session_open(&s, bert_pipeline_model(p), NULL, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < DIM; i++) vector[i] = 7;
    const bert_status status = bert_embed(s, p, vector, &text, 1, NULL, NULL, &err);
    cr_expect_leq(bert_pipeline_dim(p, NULL), DIM);
    for (size_t i = 0; i < bert_pipeline_dim(p, NULL); i++) cr_expect_eq(vector[i] == 7, status != BERT_OK);
    bert_session_close(&s);
    bert_pipeline_close(&p);
    return status;
}

/* A copy of the folder in which the module's tensor has a NaN as its last value. */
static void check_module(const char *folder, const char *module, const char *tensor) {
    scratch s;
    char command[3 * PATH_MAX], name[64], *bytes;
    size_t len;
    bert_safetensors *table;
    scratch_open(&s);
    snprintf(command, sizeof command, "cp -rL '%s/pipelines/sentence/%s/.' '%s'", getenv("BERT_TEST_DATA"), folder, s.dir);
    cr_assert_eq(system(command), 0);
    cr_expect_eq(run_pipeline(s.dir), BERT_OK, "%s", err.text);
    snprintf(name, sizeof name, "%s/model.safetensors", module);
    cr_assert_eq(bert_read_text(&bytes, &len, scratch_path(&s, name), 1 << 20, &err), BERT_OK, "%s", err.text);
    const bert_file memory = {name, bytes, len};
    cr_assert_eq(bert_safetensors_open_memory(&table, &memory, &err), BERT_OK, "%s", err.text);
    const bert_tensor_info *t = bert_safetensors_find(table, tensor);
    cr_assert_not_null(t, "%s", tensor);
    overwrite(bytes + t->offset, t, t->count - 1, 1, NAN);
    bert_safetensors_close(&table);
    scratch_write(&s, name, bytes, len);
    const bert_status status = run_pipeline(s.dir);
    cr_expect(status == BERT_NOT_FINITE && strstr(err.text, module), "%s, %s %s: %d, %s", folder, module, tensor, status, err.text);
    free(bytes);
    scratch_close(&s);
}

Test(not_finite, modules) {
    check_module("dense", "2_Dense", "linear.weight");
    check_module("dense", "2_Dense", "linear.bias");
    check_module("dense", "3_Dense", "linear.weight");
    check_module("dense-residual", "3_Dense", "linear.weight");   /* GELU, x added */
    check_module("dense-residual", "4_Dense", "linear.bias");     /* ReLU */
    check_module("dense-residual", "4_Dense", "residual.weight"); /* R·x added */
    check_module("dense-residual", "5_Dense", "linear.weight");   /* SiLU */
}
