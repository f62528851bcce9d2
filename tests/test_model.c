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
