/* Linear heads: logits within the reference rule, the same bits in every arrangement, scores and labels as the files
 * say, errors by name. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bert/bert.h>

#include "file/source.h"
#include "sanitizers.h"

enum { MOST = 64, CASES = 3 };
static bert_error err;

static const char *data_path(char path[4096], const char *format, const char *name) {
    const int n = snprintf(path, 4096, "%s/", getenv("BERT_TEST_DATA"));
    snprintf(path + n, 4096 - (size_t)n, format, name);
    return path;
}

static bert_pipeline *open_pipeline(const char *name) {
    char path[4096];
    bert_pipeline *p;
    cr_assert_eq(bert_pipeline_open(&p, data_path(path, "models/%s", name), NULL, &err), BERT_OK, "%s", err.text);
    return p;
}

/* ---- The reference rule. ---- */

typedef struct errors {
    double ours, hf, ours_max, hf_max;
    size_t n;
} errors;

/* One case of the reference, run alone: its errors are added up. */
static void add_case(errors *e, bert_session *s, const bert_head *head, const char *file_name, const char *name, size_t column) {
    char key[64];
    bert_safetensors *file;
    int64_t wide[MOST];
    int32_t ids[MOST], types[MOST];
    double truth[MOST * 8];
    float hf[MOST * 8], logits[MOST * 8];
    const size_t labels = bert_head_describe(head).labels;
    cr_assert_eq(bert_safetensors_open(&file, file_name, &err), BERT_OK, "%s", err.text);
    const bert_tensor_info *t = bert_safetensors_find(file, "input_ids");
    cr_assert(t && t->count <= MOST);
    const size_t n = t->count, start[2] = {0, n};
    cr_assert_eq(bert_safetensors_read(file, t, 0, wide, n * sizeof *wide, &err), BERT_OK);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)wide[i];
    cr_assert_eq(bert_safetensors_read(file, bert_safetensors_find(file, "token_type_ids"), 0, wide, n * sizeof *wide, &err), BERT_OK);
    for (size_t i = 0; i < n; i++) types[i] = (int32_t)wide[i];
    snprintf(key, sizeof key, "f64.%s", name);
    t = bert_safetensors_find(file, key);
    cr_assert(t, "%s", key);
    cr_assert_eq(bert_safetensors_read(file, t, 0, truth, t->count * sizeof *truth, &err), BERT_OK);
    snprintf(key, sizeof key, "f32.%s", name);
    cr_assert_eq(bert_safetensors_read_f32(file, bert_safetensors_find(file, key), 0, hf, t->count, &err), BERT_OK);
    const bert_batch batch = {sizeof batch, 1, start, ids, types};
    cr_assert_eq(bert_head_run(s, head, logits, &batch, NULL, &err), BERT_OK, "%s", err.text);
    const size_t step = column == SIZE_MAX ? 1 : labels, offset = column == SIZE_MAX ? 0 : column;
    for (size_t i = 0; i < t->count; i++) {
        const double a = fabs((double)logits[i * step + offset] - truth[i]), b = fabs((double)hf[i] - truth[i]);
        e->ours += a * a;
        e->hf += b * b;
        e->ours_max = fmax(e->ours_max, a);
        e->hf_max = fmax(e->hf_max, b);
    }
    e->n += t->count;
    bert_safetensors_close(&file);
}

/* `column`: which of a token's logits the tensor has; SIZE_MAX: all. */
static void check_rule(const char *model, bert_head_kind kind, const char *name, size_t column, size_t cases) {
    bert_pipeline *p = open_pipeline(model);
    bert_session *s;
    bert_head *head;
    errors e = {0};
    cr_assert_eq(bert_session_open(&s, bert_pipeline_model(p), NULL, &err), BERT_OK);
    cr_assert_eq(bert_head_open(&head, bert_pipeline_model(p), kind, &err), BERT_OK, "%s", err.text);
    cr_expect(bert_model_has_head(bert_pipeline_model(p), kind));
    for (size_t i = 0; i < cases; i++) {
        char file[64], path[4096];
        snprintf(file, sizeof file, kind == BERT_HEAD_NEXT ? "%s/heads.safetensors" : "%s/case%02zu.safetensors", model, i);
        add_case(&e, s, head, data_path(path, "outputs/%s", file), name, column);
    }
    const double n = (double)e.n;
    fprintf(stderr, "%s %s: rms %.3e, HF %.3e, ratio %.3f; largest %.2e, HF %.2e\n", model, name, sqrt(e.ours / n), sqrt(e.hf / n),
            sqrt(e.ours / e.hf), e.ours_max, e.hf_max);
    /* Two numbers of one text are no sample of rounding errors: only the limit of a single tensor holds for them. */
    cr_expect(e.n > 0 && sqrt(e.ours) <= (e.n == 2 ? 4 : 1.25) * sqrt(e.hf), "%s %s", model, name);
    cr_expect(e.ours_max <= 8 * e.hf_max, "%s %s", model, name);
    bert_head_close(&head);
    bert_session_close(&s);
    bert_pipeline_close(&p);
}

Test(heads, logits_within_the_reference_rule) {
    check_rule("tiny-bert-classifier", BERT_HEAD_SEQUENCE, "logits", SIZE_MAX, CASES);
    check_rule("tiny-bert-reranker", BERT_HEAD_SEQUENCE, "logits", SIZE_MAX, CASES);
    check_rule("tiny-bert-ner", BERT_HEAD_TOKENS, "logits", SIZE_MAX, CASES);
    check_rule("tiny-bert-qa", BERT_HEAD_SPAN, "start_logits", 0, CASES);
    check_rule("tiny-bert-qa", BERT_HEAD_SPAN, "end_logits", 1, CASES);
    check_rule("tiny-bert", BERT_HEAD_NEXT, "nsp_logits", SIZE_MAX, 1);
}

/* ---- Texts. ---- */

#define TEXT(s) {s, sizeof s - 1, NULL, 0}
static const bert_text TEXTS[] = {TEXT("The quick brown fox jumps over the lazy dog."),
                                  {"the cat sat on the mat", 22, "the cat lay on the rug", 22},
                                  TEXT(""),
                                  TEXT("How old are you? I am twelve years old, and the others are thirteen.")};
enum { TEXTS_N = sizeof TEXTS / sizeof *TEXTS };

typedef struct setting {
    bert_pipeline *p;
    bert_session *s;
    bert_head *head;
} setting;

static setting open_setting(const char *model, bert_head_kind kind, const bert_workers *workers) {
    setting x = {.p = open_pipeline(model)};
    bert_session_options options = BERT_SESSION_OPTIONS_INIT;
    options.workers = workers;
    cr_assert_eq(bert_session_open(&x.s, bert_pipeline_model(x.p), &options, &err), BERT_OK);
    cr_assert_eq(bert_head_open(&x.head, bert_pipeline_model(x.p), kind, &err), BERT_OK, "%s", err.text);
    return x;
}

static void close_setting(setting *x) {
    bert_head_close(&x->head);
    bert_session_close(&x->s);
    bert_pipeline_close(&x->p);
}

Test(heads, same_bits_alone_in_batches_and_on_threads) {
    float together[TEXTS_N * 3], other[TEXTS_N * 3];
    bert_score_options options = BERT_SCORE_OPTIONS_INIT;
    bert_pool *pool;
    setting x = open_setting("tiny-bert-classifier", BERT_HEAD_SEQUENCE, NULL);
    options.scoring = BERT_SCORING_LOGITS;
    cr_assert_eq(bert_classify(x.s, x.p, x.head, together, TEXTS, TEXTS_N, &options, NULL, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < TEXTS_N; i++)
        cr_assert_eq(bert_classify(x.s, x.p, x.head, other + 3 * i, TEXTS + i, 1, &options, NULL, &err), BERT_OK);
    cr_expect_eq(memcmp(together, other, sizeof other), 0);
    options.pass_tokens = 1;
    cr_assert_eq(bert_classify(x.s, x.p, x.head, other, TEXTS, TEXTS_N, &options, NULL, &err), BERT_OK);
    cr_expect_eq(memcmp(together, other, sizeof other), 0);
    close_setting(&x);
    cr_assert_eq(bert_pool_open(&pool, 3, &err), BERT_OK);
    x = open_setting("tiny-bert-classifier", BERT_HEAD_SEQUENCE, bert_pool_workers(pool));
    cr_assert_eq(bert_classify(x.s, x.p, x.head, other, TEXTS, TEXTS_N, &options, NULL, &err), BERT_OK);
    cr_expect_eq(memcmp(together, other, sizeof other), 0);
    close_setting(&x);
    bert_pool_close(&pool);
}

Test(heads, more_texts_than_are_tokenized_at_once) {
    enum { N = 600 };
    static bert_text many[N];
    static float scores[N];
    static bert_embed_info infos[N];
    setting x = open_setting("tiny-bert-reranker", BERT_HEAD_SEQUENCE, NULL);
    for (size_t i = 0; i < N; i++) many[i] = TEXTS[i % TEXTS_N == 1 ? 0 : i % TEXTS_N];
    cr_assert_eq(bert_rerank(x.s, x.p, x.head, scores, "cat", 3, many, N, NULL, infos, &err), BERT_OK, "%s", err.text);
    for (size_t i = TEXTS_N; i < N; i++) {
        cr_assert(memcmp(&scores[i], &scores[i % TEXTS_N], sizeof *scores) == 0, "text %zu", i);
        cr_assert_eq(infos[i].tokens, infos[i % TEXTS_N].tokens);
    }
    cr_expect_neq(scores[0], scores[2]);
    close_setting(&x);
}

Test(heads, scores) {
    const float logits[] = {1.5f, -2, 0.25f, 80, 0, -80};
    float scores[6];
    setting x = open_setting("tiny-bert-classifier", BERT_HEAD_SEQUENCE, NULL);
    cr_assert_eq(bert_head_score(x.head, scores, logits, 2, BERT_SCORING_AUTO, &err), BERT_OK);
    for (size_t i = 0; i < 6; i++) {
        const float *row = logits + i / 3 * 3;
        const double sum = exp((double)row[0]) + exp((double)row[1]) + exp((double)row[2]);
        cr_expect_float_eq((double)scores[i], exp((double)logits[i]) / sum, 1e-7);
    }
    cr_assert_eq(bert_head_score(x.head, scores, logits, 2, BERT_SCORING_SIGMOID, &err), BERT_OK);
    for (size_t i = 0; i < 6; i++) {
        const double want = 1 / (1 + exp(-(double)logits[i]));
        /* What is below 1e-30 may be 0 (docs/numerics.md, exp). */
        cr_expect(fabs((double)scores[i] - want) <= 2e-7 * want + 1e-30, "%zu: %g", i, (double)scores[i]);
    }
    cr_assert_eq(bert_head_score(x.head, scores, logits, 2, BERT_SCORING_LOGITS, &err), BERT_OK);
    cr_expect_eq(memcmp(scores, logits, sizeof scores), 0);
    cr_expect_eq(bert_head_score(x.head, scores, logits, 2, (bert_scoring)9, &err), BERT_INVALID_ARGUMENT);
    close_setting(&x);
}

Test(heads, relevance_is_the_sigmoid_of_the_pair_s_logit) {
    float scores[2], logit;
    bert_score_options raw = BERT_SCORE_OPTIONS_INIT;
    const bert_text pair = {"How old are you?", 16, TEXTS[0].a, TEXTS[0].a_len}, documents[] = {TEXTS[2], TEXTS[0]};
    setting x = open_setting("tiny-bert-reranker", BERT_HEAD_SEQUENCE, NULL);
    raw.scoring = BERT_SCORING_LOGITS;
    cr_assert_eq(bert_classify(x.s, x.p, x.head, &logit, &pair, 1, &raw, NULL, &err), BERT_OK);
    cr_assert_eq(bert_rerank(x.s, x.p, x.head, scores, pair.a, pair.a_len, documents, 2, NULL, NULL, &err), BERT_OK);
    cr_expect_float_eq((double)scores[1], 1 / (1 + exp(-(double)logit)), 1e-7);
    cr_assert_eq(bert_rerank(x.s, x.p, x.head, scores, pair.a, pair.a_len, documents, 2, &raw, NULL, &err), BERT_OK);
    cr_expect_eq(scores[1], logit);
    cr_expect_eq(bert_rerank(x.s, x.p, x.head, scores, "q", 1, &pair, 1, &raw, NULL, &err), BERT_INVALID_ARGUMENT);
    const bert_text empty[] = {{NULL, 0, NULL, 0}, {"", 0, NULL, 0}}, no_bytes = {NULL, 40, NULL, 0};
    cr_assert_eq(bert_rerank(x.s, x.p, x.head, scores, "q", 1, empty, 2, NULL, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(memcmp(scores, scores + 1, sizeof *scores), 0, "no text is the empty text");
    cr_expect_eq(bert_rerank(x.s, x.p, x.head, scores, "q", 1, &no_bytes, 1, NULL, NULL, &err), BERT_INVALID_ARGUMENT);
    close_setting(&x);
    x = open_setting("tiny-bert-classifier", BERT_HEAD_SEQUENCE, NULL);
    cr_expect_eq(bert_rerank(x.s, x.p, x.head, scores, "q", 1, documents, 1, NULL, NULL, &err), BERT_UNSUPPORTED);
    cr_expect(strstr(err.text, "3 classes"), "%s", err.text);
    close_setting(&x);
}

Test(heads, next_sentence_takes_pairs) {
    float scores[2];
    setting x = open_setting("tiny-bert", BERT_HEAD_NEXT, NULL);
    cr_assert_eq(bert_classify(x.s, x.p, x.head, scores, TEXTS + 1, 1, NULL, NULL, &err), BERT_OK);
    cr_expect_float_eq((double)scores[0] + (double)scores[1], 1.0, 1e-6);
    cr_expect_eq(bert_classify(x.s, x.p, x.head, scores, TEXTS, 1, NULL, NULL, &err), BERT_INVALID_ARGUMENT);
    cr_expect(strstr(err.text, "pair"), "%s", err.text);
    close_setting(&x);
}

#if defined(__x86_64__)
#include <xmmintrin.h>
/* A host with flush-to-zero, rounding to zero and traps: the heads' bits stay, and so does its word. */
Test(heads, hostile_floating_point_environment) {
    float plain[3], odd[3], words[2][2];
    int32_t ids[2][2];
    const unsigned host = 0x8000u | 0x6000u | 0x0040u, usual = _mm_getcsr();
    const bert_text text = TEXT("the [MASK] sat.");
    bert_tokens *tokens = NULL;
    setting x = open_setting("tiny-bert-classifier", BERT_HEAD_SEQUENCE, NULL), y = open_setting("tiny-bert", BERT_HEAD_NEXT, NULL);
    const bert_tokenizer *z = bert_pipeline_tokenizer(y.p);
    const int32_t mask = bert_tokenizer_special(z, BERT_SPECIAL_MASK);
    cr_assert_eq(bert_tokenize(&tokens, z, &text, 1, NULL, &err), BERT_OK);
    for (int strange = 0; strange < 2; strange++) {
        bert_mlm *mlm = NULL;
        _mm_setcsr(strange ? host : usual);
        const bert_status opened = bert_mlm_open(&mlm, bert_pipeline_model(y.p), &err);
        const bert_status status = bert_classify(x.s, x.p, x.head, strange ? odd : plain, TEXTS, 1, NULL, NULL, &err);
        const bert_status filled = bert_mlm_fill(y.s, mlm, ids[strange], words[strange], tokens, mask, 2, 0, 0, NULL, &err);
        const unsigned after = _mm_getcsr();
        _mm_setcsr(usual);
        cr_assert(opened == BERT_OK && status == BERT_OK && filled == BERT_OK &&
                  (!strange || after == host || under_valgrind()));
        bert_mlm_close(&mlm);
    }
    cr_expect_eq(memcmp(plain, odd, sizeof odd), 0);
    cr_expect_eq(memcmp(ids[0], ids[1], sizeof *ids), 0);
    cr_expect_eq(memcmp(words[0], words[1], sizeof *words), 0);
    bert_tokens_close(&tokens);
    close_setting(&x);
    close_setting(&y);
}
#endif

/* ---- What files say. ---- */

/* The model of a folder with `from` in config.json replaced by `to`, and a further file. */
static bert_status open_changed(bert_model **model, bert_head **head, const char *name, bert_head_kind kind, const char *from,
                                const char *to, const char *sentence) {
    static char config[8192];
    static char *weights;
    static size_t weights_len;
    char path[4096], *text;
    size_t len;
    cr_assert_eq(bert_read_text(&text, &len, data_path(path, "models/%s/config.json", name), 1 << 20, &err), BERT_OK);
    const char *at = strstr(text, from);
    cr_assert(at, "%s", from);
    snprintf(config, sizeof config, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    free(weights);
    cr_assert_eq(bert_read_text(&weights, &weights_len, data_path(path, "models/%s/model.safetensors", name), 64 << 20, &err), BERT_OK);
    const bert_file files[] = {{"config.json", config, strlen(config)}, {"model.safetensors", weights, weights_len},
                               {"config_sentence_transformers.json", sentence, sentence ? strlen(sentence) : 0}};
    cr_assert_eq(bert_model_open_files(model, files, sentence ? 3 : 2, NULL, &err), BERT_OK, "%s", err.text);
    return bert_head_open(head, *model, kind, &err);
}

#define LABELS "\"0\": \"negative\",\n    \"1\": \"neutral\",\n    \"2\": \"positive\""

static void refused(const char *name, bert_head_kind kind, const char *from, const char *to, bert_status status, const char *said) {
    bert_model *m;
    bert_head *head;
    cr_expect_eq(open_changed(&m, &head, name, kind, from, to, NULL), status, "%s", to);
    cr_expect(strstr(err.text, said), "%s: %s", to, err.text);
    cr_expect_null(head);
    bert_model_close(&m);
}

Test(heads, labels) {
    bert_model *m;
    bert_head *head;
    cr_assert_eq(open_changed(&m, &head, "tiny-bert-classifier", BERT_HEAD_SEQUENCE, LABELS,
                              "\"2\": \"c\\u00e9\", \"0\": \"a\", \"1\": \"b\"", NULL), BERT_OK, "%s", err.text);
    cr_expect_str_eq(bert_head_label(head, 0), "a");
    cr_expect_str_eq(bert_head_label(head, 2), "c\xc3\xa9");
    cr_expect_null(bert_head_label(head, 3));
    bert_model_close(&m); /* the head keeps it */
    bert_head_close(&head);
    cr_assert_eq(open_changed(&m, &head, "tiny-bert-classifier", BERT_HEAD_SEQUENCE, "\"id2label\"", "\"other\"", NULL), BERT_OK);
    cr_expect_str_eq(bert_head_label(head, 1), "LABEL_1");
    bert_head_close(&head);
    bert_model_close(&m);
}

Test(heads, labels_that_do_not_fit) {
    static const char NAME[] = "tiny-bert-classifier";
    const bert_head_kind kind = BERT_HEAD_SEQUENCE;
    refused(NAME, kind, LABELS, "\"0\": \"a\", \"1\": \"b\"", BERT_BAD_FILE, "found no name for 2");
    refused(NAME, kind, LABELS, LABELS ", \"3\": \"more\"", BERT_BAD_FILE, "keys 0 to 2");
    refused(NAME, kind, LABELS, LABELS ", \"02\": \"again\"", BERT_BAD_FILE, "keys 0 to 2");
    refused(NAME, kind, LABELS, LABELS ", \"99999999999999999999999\": \"more\"", BERT_BAD_FILE, "keys 0 to 2");
    refused(NAME, kind, LABELS, "\"\": \"a\"", BERT_BAD_FILE, "keys 0 to 2");
    refused(NAME, kind, "\"neutral\",", "7,", BERT_BAD_FILE, "names of classes, found 7");
    refused(NAME, kind, "\"is_decoder\": false", "\"problem_type\": \"other\"", BERT_BAD_FILE, "problem_type");
}

static bert_head_info info_with(const char *name, const char *member, const char *sentence) {
    bert_model *m;
    bert_head *head;
    char to[256];
    snprintf(to, sizeof to, "\"is_decoder\": false, %s", member);
    cr_assert_eq(open_changed(&m, &head, name, BERT_HEAD_SEQUENCE, "\"is_decoder\": false", to, sentence), BERT_OK, "%s", err.text);
    const bert_head_info info = bert_head_describe(head);
    bert_head_close(&head);
    bert_model_close(&m);
    return info;
}

/* The expected values are those of transformers' TextClassificationPipeline and sentence-transformers' CrossEncoder. */
Test(heads, what_scores_are_made_of) {
    static const char THREE[] = "tiny-bert-classifier", ONE[] = "tiny-bert-reranker", NONE[] = "\"x\": 0";
    cr_expect_eq(info_with(THREE, NONE, NULL).classify, BERT_SCORING_SOFTMAX);
    cr_expect_eq(info_with(THREE, NONE, NULL).rerank, BERT_SCORING_LOGITS);
    cr_expect_eq(info_with(ONE, NONE, NULL).classify, BERT_SCORING_SIGMOID);
    setting span = open_setting("tiny-bert-qa", BERT_HEAD_SPAN, NULL);
    cr_expect_eq(bert_head_describe(span.head).classify, BERT_SCORING_LOGITS);
    close_setting(&span);
    cr_expect_eq(info_with(ONE, NONE, NULL).rerank, BERT_SCORING_SIGMOID);
    cr_expect_eq(info_with(THREE, "\"problem_type\": \"multi_label_classification\"", NULL).classify, BERT_SCORING_SIGMOID);
    cr_expect_eq(info_with(ONE, "\"problem_type\": \"regression\"", NULL).classify, BERT_SCORING_LOGITS);
    cr_expect_eq(info_with(ONE, "\"problem_type\": \"single_label_classification\"", NULL).classify, BERT_SCORING_SIGMOID);
    cr_expect_eq(info_with(THREE, "\"problem_type\": null", NULL).classify, BERT_SCORING_SOFTMAX);
    cr_expect_eq(info_with(ONE, "\"sbert_ce_default_activation_function\": \"torch.nn.modules.linear.Identity\"", NULL).rerank,
                 BERT_SCORING_LOGITS);
    cr_expect_eq(info_with(ONE, "\"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.linear.Identity\"}", NULL).rerank,
                 BERT_SCORING_LOGITS);
    cr_expect_eq(info_with(ONE, "\"sentence_transformers\": {\"version\": \"4.0\"}, \"sbert_ce_default_activation_function\": null", NULL)
                     .rerank, BERT_SCORING_SIGMOID);
    cr_expect_eq(info_with(ONE, "\"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.linear.Identity\"}",
                           "{\"activation_fn\": \"torch.nn.modules.activation.Sigmoid\"}").rerank, BERT_SCORING_SIGMOID);
    cr_expect_eq(info_with(ONE, "\"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.activation.Tanh\"}", NULL).rerank,
                 BERT_SCORING_AUTO);
}

/* ---- A cross-encoder's folder with a default prompt. ---- */

static bert_pipeline *open_prompted(char dir[]) {
    static const char *const NAMES[] = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"};
    char from[4096], to[4096];
    bert_pipeline *p;
    cr_assert_not_null(mkdtemp(dir));
    for (size_t i = 0; i < 4; i++) {
        char *absolute = realpath(data_path(from, "models/tiny-bert-reranker/%s", NAMES[i]), NULL);
        snprintf(to, sizeof to, "%s/%s", dir, NAMES[i]);
        cr_assert_eq(symlink(absolute, to), 0, "%s", to);
        free(absolute);
    }
    snprintf(to, sizeof to, "%s/config_sentence_transformers.json", dir);
    FILE *file = fopen(to, "w");
    cr_assert_not_null(file);
    fputs("{\"prompts\": {\"query\": \"query: \"}, \"default_prompt_name\": \"query\"}", file);
    fclose(file);
    cr_assert_eq(bert_pipeline_open(&p, dir, NULL, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < 4; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", dir, NAMES[i]);
        unlink(name);
    }
    unlink(to);
    rmdir(dir);
    return p;
}

/* The scores are those of sentence-transformers 6.2's CrossEncoder, which puts it before the query. */
Test(heads, a_default_prompt_stands_before_the_query) {
    char dir[] = "/tmp/bert-heads-XXXXXX";
    const bert_text documents[2] = {TEXT("I am twelve years old."), TEXT("the cat lay on the rug")};
    static const char QUERY[] = "How old are you?", BAD[] = "How\x80?";
    float scores[2];
    bert_embed_info infos[2];
    bert_score_options none = BERT_SCORE_OPTIONS_INIT;
    none.prompt = "";
    setting x = {.p = open_prompted(dir)};
    cr_assert_eq(bert_session_open(&x.s, bert_pipeline_model(x.p), NULL, &err), BERT_OK);
    cr_assert_eq(bert_head_open(&x.head, bert_pipeline_model(x.p), BERT_HEAD_SEQUENCE, &err), BERT_OK);
    cr_assert_eq(bert_rerank(x.s, x.p, x.head, scores, QUERY, sizeof QUERY - 1, documents, 2, NULL, NULL, &err), BERT_OK);
    cr_expect(fabsf(scores[0] - 0.45279741287231445f) < 2e-6f && fabsf(scores[1] - 0.1941223442554474f) < 2e-6f);
    cr_assert_eq(bert_rerank(x.s, x.p, x.head, scores, QUERY, sizeof QUERY - 1, documents, 2, &none, NULL, &err), BERT_OK);
    cr_expect(fabsf(scores[0] - 0.33210381865501404f) < 2e-6f && fabsf(scores[1] - 0.16705358028411865f) < 2e-6f);
    cr_assert_eq(bert_rerank(x.s, x.p, x.head, scores, BAD, sizeof BAD - 1, documents, 2, NULL, infos, &err), BERT_OK);
    cr_expect(infos[0].invalid_utf8 == 1 && infos[1].first_invalid == 3, "at %zu", infos[1].first_invalid);
    cr_expect_eq(bert_rerank(x.s, x.p, x.head, scores, NULL, 5, documents, 0, NULL, infos, &err), BERT_OK);
    none.prompt = NULL;
    none.prompt_name = "poem";
    cr_expect_eq(bert_rerank(x.s, x.p, x.head, scores, "q", 1, documents, 2, &none, NULL, &err), BERT_INVALID_ARGUMENT);
    close_setting(&x);
}

/* ---- Models without. ---- */

static void has_none(const char *name, bert_head_kind kind, bert_status status, const char *said) {
    char path[4096];
    bert_model *m;
    bert_head *head;
    cr_assert_eq(bert_model_open(&m, data_path(path, "models/%s", name), NULL, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(bert_model_has_head(m, kind), 0, "%s", name);
    cr_expect_eq(bert_head_open(&head, m, kind, &err), status, "%s", name);
    cr_expect_null(head);
    cr_expect(strstr(err.text, said), "%s: %s", name, err.text);
    bert_model_close(&m);
}

Test(heads, missing_heads_are_named) {
    has_none("tiny-bert", BERT_HEAD_SEQUENCE, BERT_NOT_FOUND, "classifier.weight is not in its files");
    has_none("tiny-bert", BERT_HEAD_SPAN, BERT_NOT_FOUND, "qa_outputs.weight");
    has_none("tiny-bert-qa", BERT_HEAD_NEXT, BERT_NOT_FOUND, "cls.seq_relationship.weight");
    has_none("tiny-bert-ner", BERT_HEAD_SEQUENCE, BERT_NOT_FOUND, "is for classes of tokens");
    has_none("tiny-bert-classifier", BERT_HEAD_TOKENS, BERT_NOT_FOUND, "is for classes of texts");
    has_none("tiny-bert-decoder", BERT_HEAD_NEXT, BERT_UNSUPPORTED, "is_decoder");
    has_none("tiny-bert", BERT_HEAD_WORDS + 1, BERT_INVALID_ARGUMENT, "no linear head");
    refused("tiny-bert-ner", BERT_HEAD_SEQUENCE, "BertForTokenClassification", "BertForSequenceClassification", BERT_NOT_FOUND,
            "pooler.dense.weight");
}

Test(heads, a_decoder_has_no_masked_words) {
    char path[4096];
    bert_model *m;
    bert_mlm *mlm;
    cr_assert_eq(bert_model_open(&m, data_path(path, "models/%s", "tiny-bert-decoder"), NULL, &err), BERT_OK);
    cr_expect_eq(bert_mlm_open(&mlm, m, &err), BERT_UNSUPPORTED);
    cr_expect(strstr(err.text, "is_decoder"), "%s", err.text);
    bert_model_close(&m);
}

Test(heads, sessions_of_another_model) {
    float scores[3];
    setting x = open_setting("tiny-bert-classifier", BERT_HEAD_SEQUENCE, NULL), y = open_setting("tiny-bert-reranker", BERT_HEAD_SEQUENCE, NULL);
    cr_expect_eq(bert_classify(y.s, x.p, x.head, scores, TEXTS, 1, NULL, NULL, &err), BERT_INVALID_ARGUMENT);
    cr_expect_eq(bert_classify(x.s, y.p, x.head, scores, TEXTS, 1, NULL, NULL, &err), BERT_INVALID_ARGUMENT);
    const bert_batch empty = {.size = sizeof empty, .n = 1};
    cr_expect_eq(bert_head_run(x.s, x.head, scores, &empty, NULL, &err), BERT_INVALID_ARGUMENT);
    close_setting(&x);
    close_setting(&y);
}

/* ---- Masked words. ---- */

Test(heads, masked_words_of_several_texts) {
    enum { K = 4, V = 3005 };
    static float logits[V];
    int32_t ids[3 * K], raw_ids[3 * K];
    float probs[3 * K], raw[3 * K];
    const bert_text texts[] = {TEXT("no mask here"), TEXT("the [MASK] sat on the [MASK]."), TEXT("[MASK]")};
    bert_tokens *tokens = NULL;
    bert_mlm *mlm;
    setting x = open_setting("tiny-bert", BERT_HEAD_NEXT, NULL);
    const bert_tokenizer *z = bert_pipeline_tokenizer(x.p);
    const int32_t mask = bert_tokenizer_special(z, BERT_SPECIAL_MASK);
    cr_assert_eq(bert_tokenize(&tokens, z, texts, 3, NULL, &err), BERT_OK);
    cr_assert_eq(bert_mlm_open(&mlm, bert_pipeline_model(x.p), &err), BERT_OK);
    cr_assert_eq(bert_mlm_count(tokens, mask), 3);
    cr_assert_eq(bert_mlm_fill(x.s, mlm, ids, probs, tokens, mask, K, 0, 0, NULL, &err), BERT_OK, "%s", err.text);
    cr_assert_eq(bert_mlm_fill(x.s, mlm, raw_ids, raw, tokens, mask, K, 1, 1, NULL, &err), BERT_OK, "%s", err.text);
    /* The last one once more by hand: all logits, sorted by looking. */
    const bert_encoding e = bert_tokens_at(tokens, 2, 0);
    float hidden[3 * 40];
    bert_tap tap = BERT_TAP_INIT;
    tap.layer = 3, tap.dst = hidden, tap.dst_len = 120;
    const size_t start[2] = {0, 3};
    const bert_batch batch = {sizeof batch, 1, start, e.ids, NULL};
    cr_assert_eq(e.n, 3);
    cr_assert_eq(bert_run(x.s, &batch, &tap, 1, NULL, &err), BERT_OK);
    cr_assert_eq(bert_mlm_logits(mlm, logits, hidden + 40, 1, NULL, &err), BERT_OK);
    double sum = 0;
    for (size_t i = 0; i < V; i++) sum += exp((double)logits[i]);
    for (size_t k = 0; k < K; k++) {
        size_t better = 0;
        const int32_t id = ids[2 * K + k];
        for (size_t i = 0; i < V; i++) better += logits[i] > logits[id];
        cr_expect_eq(better, k);
        cr_expect_float_eq((double)probs[2 * K + k], exp((double)logits[id]) / sum, 1e-7);
        cr_expect_eq(raw_ids[2 * K + k], id);
        cr_expect_eq(raw[2 * K + k], logits[id]);
    }
    cr_expect_eq(bert_mlm_fill(x.s, mlm, ids, probs, tokens, mask, V + 1, 0, 0, NULL, &err), BERT_INVALID_ARGUMENT);
    bert_mlm_close(&mlm);
    bert_tokens_close(&tokens);
    close_setting(&x);
}
