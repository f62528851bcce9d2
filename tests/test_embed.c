/* Sentence vectors: what the folder's files say, the poolings, and the vectors against sentence-transformers'. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bert/bert.h>

#include "kernels/kernels.h"
#include "task/pipeline.h"

static bert_error err;

/* ---- What the files say. ---- */

static char folder[64];

static void setup(void) {
    char path[96];
    strcpy(folder, "/tmp/bert-embed-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/1_Pooling", folder);
    cr_assert_eq(mkdir(path, 0700), 0);
}

static void teardown(void) {
    char path[96];
    static const char *const NAMES[] = {"modules.json", "sentence_bert_config.json", "1_Pooling/config.json",
                                        "config_sentence_transformers.json"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, NAMES[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/1_Pooling", folder);
    rmdir(path);
    rmdir(folder);
}
TestSuite(modules, .init = setup, .fini = teardown);

static void put(const char *name, const char *text) {
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static bert_status read_modules(bert_modules *modules) {
    const bert_model_options options = BERT_MODEL_OPTIONS_INIT;
    bert_modules_close(modules);
    return bert_modules_read(modules, folder, folder, 40, bert_kernels_get(BERT_ISA_AUTO), &options, &err);
}

static const char THREE[] =
    "[{\"idx\":0,\"name\":\"0\",\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
    "{\"idx\":1,\"name\":\"1\",\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"},"
    "{\"idx\":2,\"name\":\"2\",\"path\":\"2_Normalize\",\"type\":\"sentence_transformers.models.Normalize\"}]";

Test(modules, nothing_said) {
    bert_modules m = {0};
    cr_assert_eq(read_modules(&m), BERT_OK, "%s", err.text);
    cr_expect(m.n_poolings == 0 && !m.normalize && m.max_seq_length == 0);
}

Test(modules, as_most_models_say_it) {
    bert_modules m = {0};
    put("modules.json", THREE);
    put("1_Pooling/config.json", "{\"word_embedding_dimension\":40,\"pooling_mode_cls_token\":true,"
                                 "\"pooling_mode_mean_tokens\":false}");
    put("sentence_bert_config.json", "{\"max_seq_length\": 32, \"do_lower_case\": false}");
    cr_assert_eq(read_modules(&m), BERT_OK, "%s", err.text);
    cr_expect(m.n_poolings == 1 && m.pooling[0] == BERT_POOLING_CLS && m.normalize && m.max_seq_length == 32);
}

Test(modules, the_schema_since_5_4) {
    bert_modules m = {0};
    put("modules.json", THREE);
    put("1_Pooling/config.json", "{\"embedding_dimension\":40,\"pooling_mode\":[\"mean\",\"max\"]}");
    cr_assert_eq(read_modules(&m), BERT_OK, "%s", err.text);
    cr_expect(m.n_poolings == 2 && m.pooling[0] == BERT_POOLING_MEAN && m.pooling[1] == BERT_POOLING_MAX);
}

static void expect_refused(const char *says, bert_status status) {
    bert_modules m = {0};
    cr_expect_eq(read_modules(&m), status, "%s", says);
    cr_expect(strstr(err.text, says), "expected \"%s\" in: %s", says, err.text);
}

Test(modules, refusals_name_what_is_wrong) {
    put("modules.json", THREE);
    expect_refused("1_Pooling/config.json", BERT_NOT_FOUND);
    put("1_Pooling/config.json", "{\"word_embedding_dimension\":39,\"pooling_mode_mean_tokens\":true}");
    expect_refused("word_embedding_dimension", BERT_BAD_FILE);
    put("1_Pooling/config.json", "{\"pooling_mode\":[]}");
    expect_refused("at least one mode", BERT_BAD_FILE);
    put("1_Pooling/config.json", "{\"pooling_mode_cls_token\":1}");
    expect_refused("pooling_mode_cls_token: expected true or false", BERT_BAD_FILE);
    put("1_Pooling/config.json", "{\"pooling_mode\":\"nonesuch\"}");
    expect_refused("nonesuch", BERT_UNSUPPORTED);
    put("1_Pooling/config.json", "{\"pooling_mode\":[\"cls\",\"cls\",\"cls\",\"cls\",\"cls\",\"cls\",\"cls\"]}");
    expect_refused("more than 6", BERT_UNSUPPORTED);
    put("modules.json", "[{\"path\":\"2_CNN\",\"type\":\"sentence_transformers.models.CNN\"}]");
    expect_refused("models.CNN", BERT_UNSUPPORTED);
    put("modules.json", "[{\"path\":\"../other\",\"type\":\"sentence_transformers.models.Pooling\"}]");
    expect_refused("../other", BERT_BAD_FILE);
    put("modules.json", "{}");
    expect_refused("list of modules", BERT_BAD_FILE);
    put("modules.json", "[]");
    put("sentence_bert_config.json", "{\"max_seq_length\": 0}");
    expect_refused("max_seq_length", BERT_BAD_FILE);
}

/* ---- Poolings of a small hand-made sequence. ---- */

static bert_pipeline *open_pipeline(const char *name) {
    char path[4096];
    bert_pipeline *p;
    snprintf(path, sizeof path, "%s/models/%s", getenv("BERT_TEST_DATA"), name);
    cr_assert_eq(bert_pipeline_open(&p, path, NULL, &err), BERT_OK, "%s", err.text);
    return p;
}

static void expect_pooled(const bert_pipeline *p, bert_pooling pooling, int normalize, const float expected[2]) {
    float hidden[3 * 40] = {0}, vector[40];
    static const float FIRST_TWO[3][2] = {{1, -2}, {3, 0}, {-4, 8}};
    bert_embed_options options = BERT_EMBED_OPTIONS_INIT;
    const bert_encoding tokens = {.n = 3};
    for (size_t i = 0; i < 3; i++) memcpy(hidden + 40 * i, FIRST_TWO[i], sizeof FIRST_TWO[i]);
    options.pooling = pooling;
    options.normalize = normalize;
    cr_assert_eq(bert_pipeline_pool(p, vector, hidden, hidden + 40, &tokens, &options, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < 40; i++)
        cr_expect(fabsf(vector[i] - (i < 2 ? expected[i] : 0)) < 1e-6f, "%s: %g", bert_pooling_name(pooling),
                  (double)vector[i]);
}

Test(pooling, every_mode) {
    bert_pipeline *p = open_pipeline("tiny-bert");
    const float root = sqrtf(3);
    expect_pooled(p, BERT_POOLING_CLS, 0, (float[]){1, -2});
    expect_pooled(p, BERT_POOLING_MEAN, 0, (float[]){0, 2});
    expect_pooled(p, BERT_POOLING_MEAN, 1, (float[]){0, 1});
    expect_pooled(p, BERT_POOLING_MAX, 0, (float[]){3, 8});
    expect_pooled(p, BERT_POOLING_MEAN_SQRT_LEN, 0, (float[]){0, 6 / root});
    expect_pooled(p, BERT_POOLING_WEIGHTED_MEAN, 0, (float[]){-5 / 6.0f, 22 / 6.0f});
    expect_pooled(p, BERT_POOLING_LAST_TOKEN, 0, (float[]){-4, 8});
    expect_pooled(p, BERT_POOLING_POOLER, 0, (float[]){3, 0});
    bert_pipeline_close(&p);
}

/* ---- Embedding. ---- */

static bert_text text_of(const char *s) { return (bert_text){s, strlen(s), NULL, 0}; }

Test(embed, many_texts_give_the_bits_of_each_alone_in_their_order) {
    enum { N = 1300, DIM = 40 };
    static char words[N][64];
    static bert_text texts[N];
    static float together[N * DIM];
    static bert_embed_info infos[N];
    float alone[DIM];
    bert_pipeline *p = open_pipeline("tiny-bert");
    bert_session *s;
    cr_assert_eq(bert_session_open(&s, bert_pipeline_model(p), NULL, &err), BERT_OK);
    for (size_t i = 0; i < N; i++) {
        snprintf(words[i], sizeof words[i], "%.*s number %zu", (int)(i * 7 % 40), "the cat sat on the mat, and the dog lay", i);
        texts[i] = text_of(words[i]);
    }
    cr_assert_eq(bert_embed(s, p, together, texts, N, NULL, infos, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < N; i += 13) {
        cr_assert_eq(bert_embed(s, p, alone, &texts[i], 1, NULL, NULL, &err), BERT_OK, "%s", err.text);
        cr_expect(memcmp(alone, together + i * DIM, sizeof alone) == 0, "text %zu", i);
        cr_expect(infos[i].tokens >= 4 && infos[i].truncated == 0);
    }
    bert_session_close(&s);
    bert_pipeline_close(&p);
}

Test(embed, closing_nothing_does_nothing) {
    bert_pool *pool = NULL;
    bert_mlm *mlm = NULL;
    bert_ablation *ablation = NULL;
    bert_safetensors *file = NULL;
    bert_tokenizer *tokenizer = NULL;
    bert_tokens *tokens = NULL;
    bert_session *session = NULL;
    bert_model *model = NULL;
    bert_pipeline *pipeline = NULL;
    bert_pool_close(NULL), bert_pool_close(&pool);
    bert_mlm_close(NULL), bert_mlm_close(&mlm);
    bert_ablation_close(NULL), bert_ablation_close(&ablation);
    bert_safetensors_close(NULL), bert_safetensors_close(&file);
    bert_tokenizer_close(NULL), bert_tokenizer_close(&tokenizer);
    bert_tokens_close(NULL), bert_tokens_close(&tokens);
    bert_session_close(NULL), bert_session_close(&session);
    bert_model_close(NULL), bert_model_close(&model);
    bert_pipeline_close(NULL), bert_pipeline_close(&pipeline);
}

Test(embed, cut_texts_are_counted_and_the_empty_text_has_a_vector) {
    float vectors[3 * 8];
    char longer[2000];
    bert_embed_info infos[3];
    bert_pipeline *p = open_pipeline("tiny-bert");
    bert_session *s;
    bert_embed_options options = BERT_EMBED_OPTIONS_INIT;
    for (size_t i = 0; i < sizeof longer - 1; i++) longer[i] = i % 4 == 3 ? ' ' : 'a';
    longer[sizeof longer - 1] = '\0';
    const bert_text texts[3] = {text_of(""), text_of(longer), text_of("a\x80 b")};
    options.dim = 8;
    options.normalize = 1;
    cr_assert_eq(bert_session_open(&s, bert_pipeline_model(p), NULL, &err), BERT_OK);
    cr_assert_eq(bert_embed(s, p, vectors, texts, 3, &options, infos, &err), BERT_OK, "%s", err.text);
    cr_expect(infos[0].tokens == 2 && infos[1].tokens == 64 && infos[1].truncated > 0);
    cr_expect(infos[2].invalid_utf8 == 1 && infos[2].first_invalid == 1);
    for (size_t i = 0; i < 3; i++) {
        double length = 0;
        for (size_t k = 0; k < 8; k++) length += (double)vectors[i * 8 + k] * (double)vectors[i * 8 + k];
        cr_expect(fabs(length - 1) < 1e-6, "%g", length);
    }
    options.truncation = BERT_NO_TRUNCATION;
    cr_expect_eq(bert_embed(s, p, vectors, texts, 3, &options, infos, &err), BERT_TOO_LONG);
    options = (bert_embed_options)BERT_EMBED_OPTIONS_INIT;
    options.max_length = 65;
    cr_expect_eq(bert_embed(s, p, vectors, texts, 3, &options, infos, &err), BERT_INVALID_ARGUMENT);
    cr_expect(strstr(err.text, "64 positions"), "%s", err.text);
    bert_session_close(&s);
    bert_pipeline_close(&p);
}

Test(embed, a_vocabulary_longer_than_the_embedding_is_refused) {
    char path[4096];
    bert_pipeline *p;
    snprintf(path, sizeof path, "%s/pipelines/long-vocabulary", getenv("BERT_TEST_DATA"));
    cr_expect_eq(bert_pipeline_open(&p, path, NULL, &err), BERT_BAD_FILE);
    cr_expect(strstr(err.text, "41") || strstr(err.text, "40 rows"), "%s", err.text);
    cr_expect_null(p);
}

/* ---- The vectors of a real model, where its weights are. ---- */

static const char *real_model(char dir[4096]) {
    const char *const roots[] = {getenv("BERT_TEST_MODELS"), getenv("BERT_TEST_SOURCE_MODELS")};
    for (size_t i = 0; i < 2; i++) {
        if (!roots[i]) continue;
        snprintf(dir, 4096, "%s/all-MiniLM-L6-v2/model.safetensors", roots[i]);
        const int there = access(dir, R_OK) == 0;
        *strrchr(dir, '/') = '\0';
        if (there) return dir;
    }
    return NULL;
}

/* Options of a caller whose header had no `strict` yet: what stands behind their size is not looked at. */
Test(embed, options_of_an_older_header) {
    char dir[] = "/tmp/bert-embed-XXXXXX", from[4096], to[4096];
    static const char *const FILES[] = {"config.json", "vocab.txt", "model.safetensors", "sentence_bert_config.json"};
    cr_assert_not_null(mkdtemp(dir));
    for (size_t i = 0; i < 4; i++) {
        snprintf(from, sizeof from, "%s/models/tiny-bert/%s", getenv("BERT_TEST_DATA"), FILES[i]);
        snprintf(to, sizeof to, "%s/%s", dir, FILES[i]);
        if (i < 3) cr_assert_eq(symlink(from, to), 0);
    }
    FILE *config = fopen(to, "w");
    fputs("{\"max_seq_length\": 1000}", config); /* more than the model has: an error if strict */
    fclose(config);
    bert_model_options model = BERT_MODEL_OPTIONS_INIT;
    bert_pipeline_options options = BERT_PIPELINE_OPTIONS_INIT;
    bert_pipeline *p;
    options.model = &model;
    model.strict = 1;
    cr_expect_eq(bert_pipeline_open(&p, dir, &options, &err), BERT_BAD_FILE, "%s", err.text);
    model.size = offsetof(bert_model_options, strict);
    cr_expect_eq(bert_pipeline_open(&p, dir, &options, &err), BERT_OK, "%s", err.text);
    bert_pipeline_close(&p);
    for (size_t i = 0; i < 4; i++) {
        snprintf(to, sizeof to, "%s/%s", dir, FILES[i]);
        unlink(to);
    }
    rmdir(dir);
}

/* A tokenizer that adds nothing: of an empty text nothing is left, which the pass says before anyone looks at it. */
Test(embed, a_text_without_tokens_is_an_error) {
    static const char *const FILES[] = {"config.json", "model.safetensors", "tokenizer.json"};
    char dir[] = "/tmp/bert-embed-XXXXXX", from[4096], to[4096];
    cr_assert_not_null(mkdtemp(dir));
    for (size_t i = 0; i < 3; i++) {
        snprintf(from, sizeof from, "%s/models/tiny-bert/%s", getenv("BERT_TEST_DATA"), FILES[i]);
        snprintf(to, sizeof to, "%s/%s", dir, FILES[i]);
        if (i < 2) cr_assert_eq(symlink(from, to), 0);
    }
    FILE *file = fopen(to, "w");
    fputs("{\"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", "
          "\"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, "
          "\"vocab\": {\"[UNK]\": 0, \"the\": 1, \"cat\": 2}}}", file);
    fclose(file);
    float vectors[2 * 40];
    bert_tokenizer_options tokenizer = BERT_TOKENIZER_OPTIONS_INIT;
    bert_pipeline_options options = BERT_PIPELINE_OPTIONS_INIT;
    bert_pipeline *p;
    bert_session *s;
    const bert_text texts[] = {text_of(""), text_of("the cat")};
    options.tokenizer = &tokenizer;
    tokenizer.tokenizer_json = 1;
    cr_assert_eq(bert_pipeline_open(&p, dir, &options, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_session_open(&s, bert_pipeline_model(p), NULL, &err), BERT_OK);
    for (size_t n = 1; n <= 2; n++) {
        cr_expect_eq(bert_embed(s, p, vectors, texts, n, NULL, NULL, &err), BERT_INVALID_ARGUMENT);
        cr_expect(strstr(err.text, "no tokens"), "%s", err.text);
    }
    cr_expect_eq(bert_embed(s, p, vectors, texts + 1, 1, NULL, NULL, &err), BERT_OK, "%s", err.text);
    bert_session_close(&s);
    bert_pipeline_close(&p);
    for (size_t i = 0; i < 3; i++) {
        snprintf(to, sizeof to, "%s/%s", dir, FILES[i]);
        unlink(to);
    }
    rmdir(dir);
}

/* Hidden states so large that the vector's length overflows: said by the pooling, not taken for a wish to stop. */
Test(embed, a_vector_without_a_length_is_an_error) {
    static const char *const FILES[] = {"config.json", "vocab.txt", "model.safetensors"};
    static const char GAMMA[] = "encoder.layer.2.output.LayerNorm.weight";
    char dir[] = "/tmp/bert-embed-XXXXXX", from[4096], to[4096];
    cr_assert_not_null(mkdtemp(dir));
    for (size_t i = 0; i < 3; i++) {
        snprintf(from, sizeof from, "%s/models/tiny-bert/%s", getenv("BERT_TEST_DATA"), FILES[i]);
        snprintf(to, sizeof to, "%s/%s", dir, FILES[i]);
        if (i < 2) cr_assert_eq(symlink(from, to), 0);
    }
    bert_safetensors *weights;
    cr_assert_eq(bert_safetensors_open(&weights, from, &err), BERT_OK, "%s", err.text);
    char prefixed[64];
    snprintf(prefixed, sizeof prefixed, "bert.%s", GAMMA);
    const bert_tensor_info *gamma = bert_safetensors_find(weights, GAMMA);
    if (!gamma) gamma = bert_safetensors_find(weights, prefixed);
    cr_assert(gamma && gamma->dtype == BERT_F32);
    FILE *original = fopen(from, "rb"), *copy = fopen(to, "w+b");
    for (int c; (c = getc(original)) != EOF;) putc(c, copy);
    fseek(copy, (long)gamma->offset, SEEK_SET);
    for (size_t i = 0; i < gamma->count; i++) fwrite(&(float){1e30f}, sizeof(float), 1, copy);
    fclose(original);
    fclose(copy);
    bert_safetensors_close(&weights);

    bert_pipeline *p;
    bert_session *s;
    float vector[40];
    bert_embed_options options = BERT_EMBED_OPTIONS_INIT;
    options.normalize = 1;
    cr_assert_eq(bert_pipeline_open(&p, dir, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_session_open(&s, bert_pipeline_model(p), NULL, &err), BERT_OK);
    const bert_text text = {"hello", 5, NULL, 0};
    cr_expect_eq(bert_embed(s, p, vector, &text, 1, &options, NULL, &err), BERT_NOT_FINITE, "%s", err.text);
    cr_expect_eq(err.code, BERT_NOT_FINITE);
    cr_expect_not_null(strstr(err.text, "sentence vector"), "%s", err.text);
    options.normalize = 0;
    cr_expect_eq(bert_embed(s, p, vector, &text, 1, &options, NULL, &err), BERT_OK, "%s", err.text);
    bert_session_close(&s);
    bert_pipeline_close(&p);
    for (size_t i = 0; i < 3; i++) {
        snprintf(to, sizeof to, "%s/%s", dir, FILES[i]);
        unlink(to);
    }
    rmdir(dir);
}

Test(embed, sentence_vectors_of_all_minilm_l6_v2) {
    char dir[4096], path[4096];
    bert_pipeline *p;
    bert_session *s;
    bert_safetensors *file;
    bert_json root, item;
    if (!real_model(dir)) cr_skip_test("weights of all-MiniLM-L6-v2 are not on this machine");
    snprintf(path, sizeof path, "%s/outputs/all-MiniLM-L6-v2/sentence_embeddings.safetensors", getenv("BERT_TEST_DATA"));
    cr_assert_eq(bert_safetensors_open(&file, path, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_pipeline_open(&p, dir, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_session_open(&s, bert_pipeline_model(p), NULL, &err), BERT_OK);
    const char *list = bert_safetensors_metadata(file, "texts");
    cr_assert_eq(bert_json_check(&root, list, strlen(list), &err), BERT_OK, "%s", err.text);
    const bert_tensor_info *t = bert_safetensors_find(file, "f64.embeddings"), *f = bert_safetensors_find(file, "f32.embeddings");
    const size_t dim = t->shape[1];
    double *truth = malloc(t->bytes), ours_sum = 0, hf_sum = 0;
    float *hf = malloc(f->bytes), *vector = malloc(dim * sizeof *vector);
    char *text = malloc(root.len);
    cr_assert_eq(bert_safetensors_read(file, t, 0, truth, t->bytes, &err), BERT_OK);
    cr_assert_eq(bert_safetensors_read_f32(file, f, 0, hf, f->count, &err), BERT_OK);
    size_t place = 0;
    for (size_t i = 0; bert_json_next(root, &place, NULL, &item); i++) {
        const bert_text one = {text, bert_json_string(text, item), NULL, 0};
        cr_assert_eq(bert_embed(s, p, vector, &one, 1, NULL, NULL, &err), BERT_OK, "%s", err.text);
        for (size_t k = 0; k < dim; k++) {
            ours_sum += pow((double)vector[k] - truth[i * dim + k], 2);
            hf_sum += pow((double)hf[i * dim + k] - truth[i * dim + k], 2);
        }
    }
    fprintf(stderr, "parity: all-MiniLM-L6-v2 sentence vectors: rms %.3e  HF %.3e  ratio %.3f\n",
            sqrt(ours_sum / (double)t->count), sqrt(hf_sum / (double)t->count), sqrt(ours_sum / hf_sum));
    cr_expect(ours_sum <= 1.10 * 1.10 * hf_sum);
    free(truth);
    free(hf);
    free(vector);
    free(text);
    bert_session_close(&s);
    bert_pipeline_close(&p);
    bert_safetensors_close(&file);
}
