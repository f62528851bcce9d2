/* Opening model folders: what is found, what is refused and how it is said, and files that change in use. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bert/bert.h>

static bert_error err;

/* A folder of its own, with links to a tiny model's files; tests replace what they need to. */
static char folder[64];

static void path_in(char path[4096], const char *name) { snprintf(path, 4096, "%s/%s", folder, name); }

static void setup(void) {
    static const char *const FILES[] = {"config.json", "model.safetensors", "vocab.txt"};
    char from[4096], to[4096];
    strcpy(folder, "/tmp/bert-model-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    for (size_t i = 0; i < 3; i++) {
        snprintf(from, sizeof from, "%s/models/tiny-bert/%s", getenv("BERT_TEST_DATA"), FILES[i]);
        path_in(to, FILES[i]);
        cr_assert_eq(symlink(from, to), 0);
    }
}

static void teardown(void) {
    static const char *const FILES[] = {"config.json", "model.safetensors", "vocab.txt", "pytorch_model.bin",
                                        "bert_config.json"};
    char path[4096];
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        path_in(path, FILES[i]);
        unlink(path);
    }
    rmdir(folder);
}
TestSuite(model, .init = setup, .fini = teardown);

static void remove_file(const char *name) {
    char path[4096];
    path_in(path, name);
    cr_assert_eq(unlink(path), 0);
}

static void write_file(const char *name, const void *bytes, size_t n) {
    char path[4096];
    path_in(path, name);
    unlink(path);
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

/* The link becomes a copy that a test may spoil. */
static void own_copy(const char *name, size_t drop) {
    char path[4096];
    struct stat st;
    path_in(path, name);
    const int fd = open(path, O_RDONLY);
    cr_assert(fd >= 0 && fstat(fd, &st) == 0);
    char *bytes = malloc((size_t)st.st_size);
    cr_assert_eq(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    write_file(name, bytes, (size_t)st.st_size - drop);
    free(bytes);
}

static void expect_refused(bert_status status, const char *says) {
    bert_model *m = (bert_model *)1;
    cr_expect_eq(bert_model_open(&m, folder, NULL, &err), status, "%s: %s", says, err.text);
    cr_expect_null(m);
    cr_expect(strstr(err.text, says), "expected \"%s\" in: %s", says, err.text);
}

Test(model, missing_folder) {
    bert_model *m;
    cr_expect_eq(bert_model_open(&m, "no/such/folder", NULL, &err), BERT_NOT_FOUND);
    cr_expect(strstr(err.text, "no/such/folder"), "%s", err.text);
}

Test(model, missing_config) {
    remove_file("config.json");
    expect_refused(BERT_NOT_FOUND, "config.json");
    write_file("bert_config.json", "{}", 2);
    expect_refused(BERT_UNSUPPORTED, "bert_config.json");
}

Test(model, missing_weights) {
    remove_file("model.safetensors");
    expect_refused(BERT_NOT_FOUND, "model.safetensors");
    write_file("pytorch_model.bin", "x", 1);
    expect_refused(BERT_UNSUPPORTED, "save_pretrained");
}

Test(model, truncated_weights) {
    own_copy("model.safetensors", 1);
    expect_refused(BERT_BAD_FILE, "model.safetensors");
}

Test(model, shape_against_config) {
    own_copy("config.json", 0);
    char path[4096], text[4096];
    path_in(path, "config.json");
    FILE *file = fopen(path, "r+b");
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    char *size = strstr(text, "\"intermediate_size\": 100");
    cr_assert_not_null(size);
    size[strlen("\"intermediate_size\": 10")] = '1';
    rewind(file);
    fwrite(text, 1, n, file);
    fclose(file);
    expect_refused(BERT_BAD_FILE, "expected shape [101, 40] from config.json, found [100, 40]");
}

Test(model, description) {
    bert_model *m;
    size_t used = 0;
    cr_assert_eq(bert_model_open(&m, folder, NULL, &err), BERT_OK, "%s", err.text);
    const bert_model_info info = bert_model_describe(m);
    cr_expect(info.vocab == 3005 && info.hidden == 40 && info.layers == 3 && info.heads == 4 && info.head_size == 10);
    cr_expect(info.intermediate == 100 && info.positions == 64 && info.types == 2 && info.has_pooler);
    cr_expect_str_eq(info.hidden_act, "gelu");
    for (size_t i = 0; i < bert_model_tensor_count(m); i++) {
        const bert_model_tensor t = bert_model_tensor_at(m, i);
        const int head = strncmp(t.info->name, "cls.", 4) == 0;
        cr_expect_eq(t.used, !head, "%s", t.info->name);
        used += (size_t)t.used;
    }
    cr_expect_eq(used, 5 + 3 * 16 + 2);
    const size_t behind[] = {bert_model_tensor_count(m), bert_model_tensor_count(m) + 1, SIZE_MAX};
    for (size_t i = 0; i < 3; i++) {
        const bert_model_tensor none = bert_model_tensor_at(m, behind[i]);
        cr_expect(!none.info && !none.file && !none.used);
        cr_expect_null(bert_model_missing(m, behind[i]));
    }
    cr_expect_str_eq(bert_model_tensor_at(m, 0).file, "model.safetensors");
    cr_expect_null(bert_model_missing(m, 0));
    bert_model_close(&m);
}

Test(model, the_hash_is_of_the_weights_not_of_their_spelling) {
    char first[33], hex[33], dir[4096];
    static const char *const MODELS[] = {"tiny-bert", "tiny-bert-original-names", "tiny-bert-relu", "tiny-bert-sharded"};
    for (size_t i = 0; i < 4; i++) {
        bert_model *m;
        snprintf(dir, sizeof dir, "%s/models/%s", getenv("BERT_TEST_DATA"), MODELS[i]);
        cr_assert_eq(bert_model_open(&m, dir, NULL, &err), BERT_OK, "%s", err.text);
        cr_assert_eq(bert_model_hash(m, hex, &err), BERT_OK, "%s", err.text);
        if (i == 0) strcpy(first, hex);
        else cr_expect_eq(strcmp(first, hex) == 0, i == 1, "%s: %s", MODELS[i], hex);
        bert_model_close(&m);
    }
    cr_expect_eq(strspn(first, "0123456789abcdef"), 32);
}

static bert_status use(bert_model *m) {
    static const size_t start[2] = {0, 3};
    static const int32_t ids[3] = {2, 100, 3};
    const bert_batch batch = {sizeof batch, 1, start, ids, NULL};
    float hidden[120];
    bert_session *s;
    bert_tap tap = BERT_TAP_INIT;
    tap.layer = 3;
    tap.dst = hidden;
    tap.dst_len = 120;
    cr_assert_eq(bert_session_open(&s, m, NULL, &err), BERT_OK);
    const bert_status status = bert_run(s, &batch, &tap, 1, NULL, &err);
    bert_session_close(&s);
    return status;
}

Test(model, weights_that_change_between_open_and_use_are_an_error) {
    bert_model *m;
    char path[4096];
    path_in(path, "model.safetensors");
    own_copy("model.safetensors", 0);
    cr_assert_eq(bert_model_open(&m, folder, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(truncate(path, 10000), 0);
    cr_expect_eq(use(m), BERT_CHANGED, "%s", err.text);
    bert_model_close(&m);

    own_copy("config.json", 0); /* another file of the folder changes nothing */
    remove_file("model.safetensors");
    char from[4096];
    snprintf(from, sizeof from, "%s/models/tiny-bert/model.safetensors", getenv("BERT_TEST_DATA"));
    cr_assert_eq(symlink(from, path), 0);
    own_copy("model.safetensors", 0);
    cr_assert_eq(bert_model_open(&m, folder, NULL, &err), BERT_OK, "%s", err.text);
    const int fd = open(path, O_WRONLY);
    cr_assert_eq(pwrite(fd, "\0\0\0\0", 4, 500000), 4);
    close(fd);
    cr_expect_eq(use(m), BERT_CHANGED, "%s", err.text);
    bert_model_close(&m);
}

Test(model, weights_that_change_after_the_first_use_change_nothing) {
    bert_model *m;
    char path[4096];
    path_in(path, "model.safetensors");
    own_copy("model.safetensors", 0);
    cr_assert_eq(bert_model_open(&m, folder, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_model_prepare(m, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(truncate(path, 0), 0);
    cr_expect_eq(use(m), BERT_OK, "%s", err.text);
    bert_model_close(&m);
}

/* An allocator that knows how much has not been given back. */
static void *counted_get(void *user, size_t n, size_t align) {
    *(size_t *)user += n;
    return aligned_alloc(align, (n + align - 1) / align * align);
}
static void counted_put(void *user, void *p, size_t n) {
    *(size_t *)user -= n;
    free(p);
}

Test(model, weights_that_were_packed_in_vain_are_given_back) {
    bert_model *m;
    char path[4096];
    size_t held = 0;
    const bert_memory memory = {&held, counted_get, counted_put};
    bert_model_options options = BERT_MODEL_OPTIONS_INIT;
    options.memory = &memory;
    options.weights = BERT_WEIGHTS_PACKED;
    path_in(path, "model.safetensors");
    own_copy("model.safetensors", 0);
    cr_assert_eq(bert_model_open(&m, folder, &options, &err), BERT_OK, "%s", err.text);
    const size_t after_open = held;
    const int fd = open(path, O_WRONLY);
    cr_assert_eq(pwrite(fd, "\0\0\0\0", 4, 500000), 4);
    close(fd);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(use(m), BERT_CHANGED, "%s", err.text);
        cr_expect_eq(held, after_open);
    }
    bert_model_close(&m);
    cr_expect_eq(held, 0);
}

/* ---- Matrices of one column are matrices. ---- */

typedef struct narrow_file {
    char header[8192];
    size_t len, values;
} narrow_file;

static void add_tensor(narrow_file *f, const char *layer, const char *name, size_t rows, size_t cols) {
    const size_t n = rows * (cols ? cols : 1);
    char shape[48];
    snprintf(shape, sizeof shape, cols ? "%zu,%zu" : "%zu", rows, cols);
    f->len += (size_t)snprintf(f->header + f->len, sizeof f->header - f->len,
                               "%s\"%s%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                               f->values ? "," : "{", layer, name, shape, 4 * f->values, 4 * (f->values + n));
    f->values += n;
}

/* One layer of hidden size h and intermediate size f. */
static void add_tensors(narrow_file *file, size_t h, size_t f) {
    static const char LAYER[] = "encoder.layer.0.";
    static const char *const SQUARE[] = {"attention.self.query", "attention.self.key", "attention.self.value",
                                         "attention.output.dense"};
    static const char *const NORMS[] = {"attention.output.LayerNorm", "output.LayerNorm"};
    char name[64];
    add_tensor(file, "", "embeddings.word_embeddings.weight", 3, h);
    add_tensor(file, "", "embeddings.position_embeddings.weight", 2, h);
    add_tensor(file, "", "embeddings.token_type_embeddings.weight", 2, h);
    add_tensor(file, "", "embeddings.LayerNorm.weight", h, 0);
    add_tensor(file, "", "embeddings.LayerNorm.bias", h, 0);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s.weight", SQUARE[i]);
        add_tensor(file, LAYER, name, h, h);
        snprintf(name, sizeof name, "%s.bias", SQUARE[i]);
        add_tensor(file, LAYER, name, h, 0);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s.weight", NORMS[i]);
        add_tensor(file, LAYER, name, h, 0);
        snprintf(name, sizeof name, "%s.bias", NORMS[i]);
        add_tensor(file, LAYER, name, h, 0);
    }
    add_tensor(file, LAYER, "intermediate.dense.weight", f, h);
    add_tensor(file, LAYER, "intermediate.dense.bias", f, 0);
    add_tensor(file, LAYER, "output.dense.weight", h, f);
    add_tensor(file, LAYER, "output.dense.bias", h, 0);
}

/* All values ½: the residual stream is the same in every column, so LayerNorm leaves its bias. */
Test(model, matrices_of_one_column) {
    static const size_t SIZES[][2] = {{1, 1}, {2, 1}, {1, 3}}, start[2] = {0, 2};
    static const int32_t ids[2] = {1, 2};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        const size_t h = SIZES[i][0], f = SIZES[i][1];
        char config[256], weights[16384];
        narrow_file file = {.len = 0};
        const int n = snprintf(config, sizeof config,
                               "{\"vocab_size\":3,\"hidden_size\":%zu,\"num_hidden_layers\":1,"
                               "\"num_attention_heads\":1,\"intermediate_size\":%zu,"
                               "\"max_position_embeddings\":2,\"type_vocab_size\":2}", h, f);
        add_tensors(&file, h, f);
        file.header[file.len++] = '}';
        const uint64_t len = file.len;
        memcpy(weights, &len, 8);
        memcpy(weights + 8, file.header, file.len);
        for (size_t k = 0; k < file.values; k++) memcpy(weights + 8 + file.len + 4 * k, &(float){0.5f}, 4);
        const bert_file files[] = {{"config.json", config, (size_t)n},
                                   {"model.safetensors", weights, 8 + file.len + 4 * file.values}};
        const bert_batch batch = {sizeof batch, 1, start, ids, NULL};
        bert_model *m;
        bert_session *s;
        float last[4];
        bert_tap tap = BERT_TAP_INIT;
        tap.layer = 1, tap.dst = last, tap.dst_len = 4;
        cr_assert_eq(bert_model_open_files(&m, files, 2, NULL, &err), BERT_OK, "%s", err.text);
        cr_assert_eq(bert_session_open(&s, m, NULL, &err), BERT_OK);
        for (int pass = 0; pass < 2; pass++) { /* from the file, then packed */
            memset(last, 0, sizeof last);
            cr_assert_eq(bert_run(s, &batch, &tap, 1, NULL, &err), BERT_OK, "%s", err.text);
            for (size_t k = 0; k < 2 * h; k++) cr_expect_eq(last[k], 0.5f);
        }
        bert_session_close(&s);
        bert_model_close(&m);
    }
}

Test(model, finite_check_names_the_tensor) {
    bert_model *m;
    char dir[4096];
    const char *name;
    cr_assert_eq(bert_model_open(&m, folder, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_model_check_finite(m, &name, &err), BERT_OK, "%s", err.text);
    cr_expect_null(name);
    bert_model_close(&m);
    snprintf(dir, sizeof dir, "%s/hostile/model/nan_weight", getenv("BERT_TEST_DATA"));
    cr_assert_eq(bert_model_open(&m, dir, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_model_check_finite(m, &name, &err), BERT_OK, "%s", err.text);
    cr_expect_str_eq(name, "encoder.layer.0.attention.self.query.weight");
    bert_model_close(&m);
}

static int notes_seen;
static void count_note(void *user, const char *text) {
    (void)user;
    notes_seen += strstr(text, "more layers") != NULL;
}

Test(model, more_layers_than_the_config_are_noted) {
    bert_model *m;
    char dir[4096];
    bert_model_options options = BERT_MODEL_OPTIONS_INIT;
    const bert_notes notes = {NULL, count_note};
    options.notes = &notes;
    snprintf(dir, sizeof dir, "%s/hostile/model/third_layer", getenv("BERT_TEST_DATA"));
    cr_assert_eq(bert_model_open(&m, dir, &options, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(notes_seen, 1);
    bert_model_close(&m);
}

/* y = x · wᵀ as the hook sees it: by tolerance the same result, and the hook's name in the description. */
static void plain_gemm(void *user, float *y, size_t ldy, const float *x, size_t ldx, const float *w, size_t ldw,
                       size_t t, size_t n, size_t k) {
    ++*(int *)user;
    for (size_t i = 0; i < t; i++)
        for (size_t j = 0; j < n; j++) {
            float sum = 0;
            for (size_t c = 0; c < k; c++) sum += x[i * ldx + c] * w[j * ldw + c];
            y[i * ldy + j] = sum;
        }
}

Test(model, gemm_hook) {
    bert_model *models[2];
    float hidden[2][120];
    int calls = 0;
    const bert_gemm gemm = {&calls, "plain", plain_gemm};
    bert_model_options options = BERT_MODEL_OPTIONS_INIT;
    options.gemm = &gemm;
    for (int i = 0; i < 2; i++) {
        static const size_t start[2] = {0, 3};
        static const int32_t ids[3] = {2, 100, 3};
        const bert_batch batch = {sizeof batch, 1, start, ids, NULL};
        bert_session *s;
        bert_tap tap = BERT_TAP_INIT;
        tap.layer = 3;
        tap.dst = hidden[i];
        tap.dst_len = 120;
        cr_assert_eq(bert_model_open(&models[i], folder, i ? &options : NULL, &err), BERT_OK, "%s", err.text);
        cr_assert_eq(bert_session_open(&s, models[i], NULL, &err), BERT_OK);
        cr_assert_eq(bert_run(s, &batch, &tap, 1, NULL, &err), BERT_OK, "%s", err.text);
        cr_expect_str_eq(bert_model_describe(models[i]).gemm, i ? "plain" : "native");
        bert_session_close(&s);
        bert_model_close(&models[i]);
    }
    cr_expect_eq(calls, 3 * 4);
    for (size_t i = 0; i < 120; i++) {
        const float difference = hidden[0][i] - hidden[1][i];
        cr_expect(difference < 1e-4f && difference > -1e-4f);
    }
}
