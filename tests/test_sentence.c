/* Sentence models against sentence-transformers (tests/data/pipelines/sentence, made by scripts/make_sentence_goldens.py):
 * poolings in both schemas, Dense, Normalize, prompts, lengths and casing. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

#include "sanitizers.h"

enum { MOST_TEXTS = 16, MOST_DIM = 128, ROOM = 1 << 20 };

static bert_error err;

static const char *folder(char path[4096], const char *name) {
    snprintf(path, 4096, "%s/pipelines/sentence/%s", getenv("BERT_TEST_DATA"), name);
    return path;
}

static void open_all(bert_pipeline **p, bert_session **s, const char *name) {
    char path[4096];
    cr_assert_eq(bert_pipeline_open(p, folder(path, name), NULL, &err), BERT_OK, "%s: %s", name, err.text);
    cr_assert_eq(bert_session_open(s, bert_pipeline_model(*p), NULL, &err), BERT_OK, "%s", err.text);
}

static bert_json golden(char *text, const char *name, const char *file_name) {
    char dir[4096], path[8192];
    bert_json root;
    snprintf(path, sizeof path, "%s/%s", folder(dir, name), file_name);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    const size_t len = fread(text, 1, ROOM, file);
    fclose(file);
    cr_assert_eq(bert_json_check(&root, text, len, &err), BERT_OK, "%s", err.text);
    return root;
}

static bert_json member(bert_json object, const char *key) {
    bert_json value;
    cr_assert(bert_json_member(object, key, &value), "%s", key);
    return value;
}

/* The texts' bytes go to `bytes`, one behind the other. */
static size_t read_texts(bert_text texts[MOST_TEXTS], char *bytes, bert_json list) {
    bert_json item, part;
    size_t n = 0, place = 0;
    while (bert_json_next(list, &place, NULL, &item)) {
        bert_text *t = &texts[n++];
        const int pair = bert_json_kind_of(item) == BERT_JSON_ARRAY;
        size_t inner = 0;
        *t = (bert_text){0};
        if (pair) cr_assert(bert_json_next(item, &inner, NULL, &part));
        t->a = bytes;
        t->a_len = bert_json_string(bytes, pair ? part : item);
        bytes += t->a_len;
        if (!pair) continue;
        cr_assert(bert_json_next(item, &inner, NULL, &part));
        t->b = bytes;
        t->b_len = bert_json_string(bytes, part);
        bytes += t->b_len;
    }
    return n;
}

/* The largest difference between the vectors and those of the run. */
static double difference(const float *vectors, size_t dim, bert_json run) {
    bert_json row, value;
    size_t place = 0, i = 0;
    double most = 0;
    bert_json rows = member(run, "vectors");
    while (bert_json_next(rows, &place, NULL, &row)) {
        size_t inner = 0;
        cr_assert_eq(bert_json_kind_of(row), BERT_JSON_ARRAY);
        for (size_t k = 0; k < dim; k++) {
            double expected;
            cr_assert(bert_json_next(row, &inner, NULL, &value) && bert_json_number(&expected, value));
            most = fmax(most, fabs((double)vectors[i * dim + k] - expected));
        }
        cr_assert(!bert_json_next(row, &inner, NULL, &value), "more than %zu values", dim);
        i++;
    }
    return most;
}

static void check_run(bert_session *s, const bert_pipeline *p, const char *name, bert_json run, const bert_text *texts,
                      size_t n) {
    static float vectors[MOST_TEXTS * MOST_DIM];
    char prompt[64] = "";
    double number;
    bert_embed_options o = BERT_EMBED_OPTIONS_INIT;
    const bert_json prompt_name = member(run, "prompt"), dim = member(run, "dim");
    if (bert_json_kind_of(prompt_name) == BERT_JSON_STRING) {
        prompt[bert_json_string(prompt, prompt_name)] = '\0';
        o.prompt_name = prompt;
    }
    if (bert_json_number(&number, dim)) o.dim = (size_t)number;
    cr_assert_leq(bert_pipeline_dim(p, &o), MOST_DIM);
    cr_assert_eq(bert_embed(s, p, vectors, texts, n, &o, NULL, &err), BERT_OK, "%s: %s", name, err.text);
    const double most = difference(vectors, bert_pipeline_dim(p, &o), run);
    cr_expect(most < 4e-6, "%s, prompt %s, dim %zu: differs by %g", name, o.prompt_name ? prompt : "by default", o.dim, most);
}

static void check_folder(const char *name) {
    static char text[ROOM], bytes[ROOM];
    bert_text texts[MOST_TEXTS];
    bert_pipeline *p;
    bert_session *s;
    double dim;
    open_all(&p, &s, name);
    const bert_json root = golden(text, name, "golden.json");
    const size_t n = read_texts(texts, bytes, member(root, "texts"));
    cr_assert(bert_json_number(&dim, member(root, "dim")));
    cr_expect_eq(bert_pipeline_describe(p).dim, (size_t)dim, "%s", name);
    bert_json runs = member(root, "runs"), run;
    size_t place = 0, n_runs = 0;
    for (; bert_json_next(runs, &place, NULL, &run); n_runs++) check_run(s, p, name, run, texts, n);
    cr_expect_geq(n_runs, 6);
    bert_session_close(&s);
    bert_pipeline_close(&p);
}

Test(sentence, every_mode_of_the_old_schema) { check_folder("every-flag"); }
Test(sentence, no_mode_of_the_old_schema_is_the_mean_and_the_tokenizer_says_the_length) { check_folder("no-flag"); }
Test(sentence, modes_in_the_order_of_the_new_schema) { check_folder("modes"); }
Test(sentence, prompts_and_a_default) { check_folder("prompts"); }
Test(sentence, prompts_that_are_not_pooled) { check_folder("prompts-left-out"); }
Test(sentence, two_dense_modules_one_without_bias) { check_folder("dense"); }
Test(sentence, dense_with_residuals_behind_normalize) { check_folder("dense-residual"); }
Test(sentence, a_cased_tokenizer_that_lower_cases_and_a_folder_of_the_transformers_own) { check_folder("lower-case"); }

Test(sentence, what_the_folders_say) {
    bert_pipeline *p;
    bert_session *s;
    open_all(&p, &s, "prompts");
    bert_pipeline_info info = bert_pipeline_describe(p);
    cr_expect(info.n_prompts == 4 && strcmp(info.default_prompt, "query") == 0 && info.max_length == 40);
    cr_expect_str_eq(bert_pipeline_prompt_name(p, 3), "query");
    cr_expect_null(bert_pipeline_prompt_name(p, 4));
    bert_embed_options o = BERT_EMBED_OPTIONS_INIT;
    const char *prompt;
    cr_expect_eq(bert_pipeline_prompt(p, &prompt, NULL, &err), BERT_OK);
    cr_expect_str_eq(prompt, "query: ");
    o.prompt = "other: ";
    cr_expect_eq(bert_pipeline_prompt(p, &prompt, &o, &err), BERT_OK);
    cr_expect_str_eq(prompt, "other: ");
    o.prompt = NULL;
    o.prompt_name = "nonesuch";
    cr_expect_eq(bert_pipeline_prompt(p, &prompt, &o, &err), BERT_INVALID_ARGUMENT);
    cr_expect(strstr(err.text, "nonesuch") && strstr(err.text, "passage"), "%s", err.text);
    bert_session_close(&s);
    bert_pipeline_close(&p);
    open_all(&p, &s, "lower-case");
    info = bert_pipeline_describe(p);
    cr_expect(info.lowercases && info.max_length == 14 && !info.pooling_assumed && info.n_dense == 0);
    bert_session_close(&s);
    bert_pipeline_close(&p);
    open_all(&p, &s, "dense-residual");
    info = bert_pipeline_describe(p);
    cr_expect(info.dim == 8 && info.n_dense == 3 && !info.normalize && info.pooling == BERT_POOLING_CLS);
    o = (bert_embed_options)BERT_EMBED_OPTIONS_INIT;
    o.dim = 9;
    cr_expect_eq(bert_pipeline_dim(p, &o), 0);
    bert_session_close(&s);
    bert_pipeline_close(&p);
    open_all(&p, &s, "every-flag");
    info = bert_pipeline_describe(p);
    cr_expect(info.n_poolings == 6 && info.poolings[1] == BERT_POOLING_MAX && info.dim == 96);
    bert_session_close(&s);
    bert_pipeline_close(&p);
}

/* The place of an invalid byte is that in the text, not behind its prompt. */
Test(sentence, a_prompt_does_not_move_what_is_said_of_the_text) {
    float vectors[3 * 16];
    bert_pipeline *p;
    bert_session *s;
    bert_embed_info infos[3];
    const bert_text texts[3] = {{"the\x80 cat", 8, NULL, 0}, {"", 0, NULL, 0}, {"the cat", 7, "a\x80", 2}};
    const bert_text bad = {NULL, 3, NULL, 0};
    open_all(&p, &s, "prompts");
    cr_assert_eq(bert_embed(s, p, vectors, texts, 3, NULL, infos, &err), BERT_OK, "%s", err.text);
    cr_expect(infos[0].invalid_utf8 == 1 && infos[0].first_invalid == 3 && infos[1].invalid_utf8 == 0);
    cr_expect(infos[2].invalid_utf8 == 1 && infos[2].first_invalid == 1, "at %zu of text b", infos[2].first_invalid);
    cr_expect_eq(bert_embed(s, p, vectors, &bad, 1, NULL, infos, &err), BERT_INVALID_ARGUMENT);
    bert_embed_options o = BERT_EMBED_OPTIONS_INIT;
    o.prompt = "find: \xe2\x82"; /* would make a euro sign with a text that begins with \xac */
    cr_expect_eq(bert_embed(s, p, vectors, texts, 2, &o, infos, &err), BERT_INVALID_ARGUMENT);
    cr_expect_str_eq(err.text, "the prompt is not valid UTF-8 at byte 6");
    bert_session_close(&s);
    bert_pipeline_close(&p);
}

/* ---- A long text in windows, against Hugging Face's tokenizer and model run over the same windows. ---- */

static double number(bert_json object, const char *key) {
    double x;
    cr_assert(bert_json_number(&x, member(object, key)));
    return x;
}

/* The largest difference to the numbers of a list, which may be one of rows. */
static double list_difference(const float **x, bert_json list) {
    bert_json item;
    size_t place = 0;
    double most = 0, expected;
    while (bert_json_next(list, &place, NULL, &item)) {
        if (bert_json_kind_of(item) == BERT_JSON_ARRAY) {
            most = fmax(most, list_difference(x, item));
            continue;
        }
        cr_assert(bert_json_number(&expected, item));
        most = fmax(most, fabs((double)*(*x)++ - expected));
    }
    return most;
}

static void check_states(bert_session *s, const bert_pipeline *p, bert_text text, const bert_embed_options *o,
                         bert_json root, const float *vector) {
    enum { H = 16, MOST = 128 };
    static float hidden[2 * MOST * H], own[6 * H], pooler[H];
    static const int32_t LAYERS[] = {0, 2};
    bert_tokens *tokens = NULL;
    bert_tokenize_options t = BERT_TOKENIZE_OPTIONS_INIT;
    t.max_length = o->window;
    t.stride = o->stride;
    t.overflow = BERT_OVERFLOW_PARTS;
    cr_assert_eq(bert_tokenize(&tokens, bert_pipeline_tokenizer(p), &text, 1, &t, &err), BERT_OK, "%s", err.text);
    const size_t n = bert_windows_length(tokens, 0);
    cr_assert_leq(n, MOST);
    const bert_window_states states = {sizeof states, LAYERS, 2, hidden, pooler};
    cr_assert_eq(bert_embed_windows(s, p, tokens, 0, own, &states, o, &err), BERT_OK, "%s", err.text);
    const float *x = hidden + n * H;
    const double most = list_difference(&x, member(root, "hidden"));
    cr_expect_eq((size_t)(x - hidden), 2 * n * H);
    cr_expect(most < 4e-6, "the states differ by %g", most);
    cr_expect_eq(memcmp(own, vector, sizeof own), 0);
    for (size_t k = 0; k < H; k++) cr_expect(fabsf(pooler[k]) <= 1 && pooler[k] != 0);
    cr_expect_eq(bert_embed_windows(s, p, tokens, 1, own, NULL, o, &err), BERT_INVALID_ARGUMENT);
    static const int32_t NONE[][2] = {{0, -1}, {3, 0}}; /* -1 is every layer to a tap: the last would be left */
    for (size_t i = 0; i < 2; i++) {
        const bert_window_states bad = {sizeof bad, NONE[i], 2, hidden, NULL};
        cr_expect_eq(bert_embed_windows(s, p, tokens, 0, NULL, &bad, o, &err), BERT_INVALID_ARGUMENT, "%zu", i);
    }
    bert_tokens_close(&tokens);
}

/* Their hidden sizes may differ: the session's states would not fit. */
Test(sentence, a_session_of_another_model_is_refused) {
    float vector[96];
    bert_pipeline *p, *other;
    bert_session *s, *other_session;
    bert_tokens *tokens = NULL;
    const bert_text text = {"the cat", 7, NULL, 0};
    const bert_encoding nothing = {0};
    open_all(&p, &s, "every-flag");
    open_all(&other, &other_session, "dense");
    cr_assert_eq(bert_tokenize(&tokens, bert_pipeline_tokenizer(p), &text, 1, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(bert_embed_windows(other_session, p, tokens, 0, vector, NULL, NULL, &err), BERT_INVALID_ARGUMENT);
    cr_expect_eq(bert_embed_windows(s, p, tokens, 0, vector, NULL, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(bert_pipeline_pool(p, vector, vector, NULL, &nothing, NULL, &err), BERT_INVALID_ARGUMENT);
    bert_tokens_close(&tokens);
    bert_session_close(&s);
    bert_pipeline_close(&p);
    bert_session_close(&other_session);
    bert_pipeline_close(&other);
}

Test(sentence, long_texts_in_windows) {
    static char text[ROOM], bytes[ROOM];
    float vectors[3][96], alone[96];
    bert_embed_info infos[3];
    bert_pipeline *p;
    bert_session *s;
    bert_embed_options o = BERT_EMBED_OPTIONS_INIT;
    open_all(&p, &s, "every-flag");
    const bert_json root = golden(text, "every-flag", "windows.json");
    const bert_text the_long = {bytes, bert_json_string(bytes, member(root, "text")), NULL, 0};
    const bert_text texts[3] = {{"the cat", 7, NULL, 0}, the_long, {"", 0, NULL, 0}};
    o.window = (size_t)number(root, "window");
    o.stride = (size_t)number(root, "stride");
    cr_assert_eq(bert_embed(s, p, vectors[0], texts, 3, &o, infos, &err), BERT_OK, "%s", err.text);
    const float *x = vectors[1];
    const double most = list_difference(&x, member(root, "vector"));
    cr_expect(most < 4e-6 && x == vectors[1] + 96, "the vector differs by %g", most);
    cr_expect(infos[1].windows == (size_t)number(root, "windows") && infos[1].truncated == 0);
    cr_expect(infos[0].windows == 1 && infos[2].windows == 1 && infos[0].tokens == 4);
    check_states(s, p, the_long, &o, root, vectors[1]);
    for (o.pass_tokens = 1; o.pass_tokens < 100; o.pass_tokens += 40) {
        cr_assert_eq(bert_embed(s, p, alone, &the_long, 1, &o, NULL, &err), BERT_OK, "%s", err.text);
        cr_expect_eq(memcmp(alone, vectors[1], sizeof alone), 0, "passes of %zu tokens", o.pass_tokens);
    }
    cr_assert_eq(bert_embed(s, p, alone, texts, 1, NULL, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(memcmp(alone, vectors[0], sizeof alone), 0, "a text of one window has the bits it has without");
    o.stride = 11;
    cr_expect_eq(bert_embed(s, p, alone, &the_long, 1, &o, NULL, &err), BERT_INVALID_ARGUMENT);
    o.window = 41;
    cr_expect_eq(bert_embed(s, p, alone, &the_long, 1, &o, NULL, &err), BERT_INVALID_ARGUMENT);
    cr_expect(strstr(err.text, "window 41: the model has 40 positions"), "%s", err.text);
    bert_session_close(&s);
    bert_pipeline_close(&p);
}

#if defined(__x86_64__)
#include <xmmintrin.h>
/* A host with flush-to-zero, rounding to zero and traps: every pooling over windows, and modules, have the same bits. */
Test(sentence, hostile_floating_point_environment) {
    static const char *const NAMES[] = {"every-flag", "dense-residual"};
    static const bert_pooling POOLINGS[] = {BERT_POOLING_AUTO, BERT_POOLING_POOLER};
    static const char LONG[] = "the cat sat on the mat and the dog lay in the sun while it was asleep";
    const bert_text text = {LONG, sizeof LONG - 1, NULL, 0};
    const unsigned host = 0x8000u | 0x6000u | 0x0040u, usual = _mm_getcsr();
    for (size_t i = 0; i < 4; i++) {
        float vectors[2][96];
        bert_embed_info infos[2];
        bert_embed_options o = BERT_EMBED_OPTIONS_INIT;
        o.pooling = POOLINGS[i / 2];
        o.window = 9;
        o.stride = 3;
        size_t dim = 0;
        for (int strange = 0; strange < 2; strange++) {
            bert_pipeline *p;
            bert_session *s;
            _mm_setcsr(strange ? host : usual);
            open_all(&p, &s, NAMES[i % 2]);
            const bert_status status = bert_embed(s, p, vectors[strange], &text, 1, &o, &infos[strange], &err);
            dim = bert_pipeline_dim(p, &o);
            bert_session_close(&s);
            bert_pipeline_close(&p);
            const unsigned after = _mm_getcsr();
            _mm_setcsr(usual);
            cr_assert(status == BERT_OK && (!strange || after == host || under_valgrind()), "%s", err.text);
        }
        cr_expect(infos[0].windows > 1 && dim > 0);
        cr_expect_eq(memcmp(vectors[0], vectors[1], dim * sizeof(float)), 0, "%s", NAMES[i % 2]);
    }
}
#endif
