/* The tokenizer against Hugging Face's: every array of every stored case (data/tokenizer, made by tokenizers 0.23.3). */
#include "golden.h"

typedef struct golden {
    bert_tokenizer *uncased, *cased, *other; /* other: with options of its own, for the case at hand */
    const char *vocab;
    bert_tokens *tokens;
    int differences;
} golden;

static bert_tokenizer *open_file(const char *name, const char *config) {
    char path[PATH_MAX], *text = NULL;
    size_t len = 0;
    bert_error err = {0};
    bert_tokenizer *tokenizer = NULL;
    cr_assert_eq(bert_read_text(&text, &len, golden_path(path, name), 1 << 20, &err), BERT_OK, "%s", err.text);
    const bert_file files[] = {{"vocab.txt", text, len}, {"tokenizer_config.json", config, strlen(config)}};
    cr_assert_eq(bert_tokenizer_open_files(&tokenizer, files, 2, NULL, &err), BERT_OK, "%s", err.text);
    free(text);
    return tokenizer;
}

/* true, false or null as it stands in the row, or `absent`. */
static const char *literal(bert_json options, const char *name, const char *absent) {
    const bert_json value = golden_member(options, name);
    static const char *const words[] = {"null", "false", "true"};
    bert_json there;
    if (!bert_json_member(options, name, &there)) return absent;
    return words[bert_json_kind_of(value)];
}

static const bert_tokenizer *for_case(golden *g, bert_json options) {
    const bool cased = bert_json_kind_of(golden_member(options, "cased")) == BERT_JSON_TRUE;
    const char *strip = literal(options, "strip_accents", "null"), *cjk = literal(options, "tokenize_chinese_chars", "true");
    if (strcmp(strip, "null") == 0 && strcmp(cjk, "true") == 0) return cased ? g->cased : g->uncased;
    char config[200];
    snprintf(config, sizeof config, "{\"do_lower_case\":%s,\"strip_accents\":%s,\"tokenize_chinese_chars\":%s}",
             cased ? "false" : "true", strip, cjk);
    bert_tokenizer_close(&g->other);
    g->other = open_file(g->vocab, config);
    return g->other;
}

static bert_tokenize_options options_of(bert_json o) {
    bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
    const bert_json strategy = golden_member(o, "strategy");
    options.max_length = (size_t)golden_integer(o, "max_length", 0);
    options.stride = (size_t)golden_integer(o, "stride", 0);
    if (bert_json_equals(strategy, "only_first")) options.truncation = BERT_ONLY_FIRST;
    if (bert_json_equals(strategy, "only_second")) options.truncation = BERT_ONLY_SECOND;
    if (bert_json_equals(golden_member(o, "truncation_side"), "left")) options.truncation_side = BERT_LEFT;
    options.no_special_tokens = bert_json_kind_of(golden_member(o, "add_special_tokens")) == BERT_JSON_FALSE;
    options.overflow = BERT_OVERFLOW_PARTS;
    options.offsets_cp = 1;
    return options;
}

static const char *compare_parts(bert_json row, const bert_tokens *tokens) {
    bert_json part;
    size_t place = 0, n = 1;
    const char *differs = golden_differs(row, tokens, 0, 0);
    const bert_json overflow = golden_member(row, "overflow");
    for (; differs == NULL && !golden_null(overflow) && bert_json_next(overflow, &place, NULL, &part); n++)
        differs = n < bert_tokens_parts(tokens, 0) ? golden_differs(part, tokens, 0, n) : "number of parts";
    return differs == NULL && n != bert_tokens_parts(tokens, 0) ? "number of parts" : differs;
}

static void one_case(bert_json row, void *arg) {
    golden *g = arg;
    bert_error err = {0};
    bert_text text = {0};
    const bert_json id = golden_member(row, "id");
    if (golden_null(id)) return; /* the line that lists added tokens */
    const bert_tokenizer *tokenizer = for_case(g, golden_member(row, "options"));
    const bert_tokenize_options options = options_of(golden_member(row, "options"));
    char *a = golden_string(golden_member(row, "text"), &text.a_len), *b = golden_string(golden_member(row, "pair"), &text.b_len);
    text.a = a;
    text.b = b;
    const bert_status status = bert_tokenize(&g->tokens, tokenizer, &text, 1, &options, &err);
    const bool fails = !golden_null(golden_member(row, "error"));
    const char *differs = fails ? status == BERT_OK ? "error" : NULL
                                : status != BERT_OK ? err.text : compare_parts(row, g->tokens);
    if (differs != NULL && g->differences++ < 10) cr_log_error("%.*s: %s", (int)id.len, id.at, differs);
    free(a);
    free(b);
}

static void close_golden(golden *g) {
    cr_expect_eq(g->differences, 0, "%d cases differ", g->differences);
    bert_tokens_close(&g->tokens);
    bert_tokenizer_close(&g->uncased);
    bert_tokenizer_close(&g->cased);
    bert_tokenizer_close(&g->other);
}

static void run_cases(const char *vocab, const char *cases, int count) {
    golden g = {.vocab = vocab, .uncased = open_file(vocab, "{}"), .cased = open_file(vocab, "{\"do_lower_case\":false}")};
    cr_expect_eq(golden_lines(cases, one_case, &g), count);
    close_golden(&g);
}

Test(golden, uncased) {
    run_cases("tokenizer/bert-base-uncased-vocab.txt", "tokenizer/cases.jsonl", 1983);
}

Test(golden, cased) {
    run_cases("tokenizer/cased/vocab.txt", "tokenizer/cased/cases.jsonl", 696);
}

/* The cased vocabulary again, from its tokenizer.json. */
Test(golden, cased_json) {
    char path[PATH_MAX];
    bert_error err = {0};
    golden g = {.vocab = "tokenizer/cased/vocab.txt", .uncased = open_file("tokenizer/cased/vocab.txt", "{}")};
    cr_assert_eq(bert_tokenizer_open(&g.cased, golden_path(path, "tokenizer/cased/tokenizer.json"), NULL, &err), BERT_OK,
                 "%s", err.text);
    cr_expect_eq(golden_lines("tokenizer/cased/cases.jsonl", one_case, &g), 696);
    close_golden(&g);
}

/* all-MiniLM-L6-v2 has the uncased vocabulary; its truncation and padding are never applied. */
Test(golden, minilm_json) {
    char path[PATH_MAX];
    bert_error err = {0};
    golden g = {.vocab = "tokenizer/bert-base-uncased-vocab.txt",
                .cased = open_file("tokenizer/bert-base-uncased-vocab.txt", "{\"do_lower_case\":false}")};
    cr_assert_eq(bert_tokenizer_open(&g.uncased, golden_path(path, "tokenizer/all-MiniLM-L6-v2-tokenizer.json"), NULL, &err),
                 BERT_OK, "%s", err.text);
    cr_expect_eq(bert_tokenizer_file_lengths(g.uncased).truncation_max_length, 128);
    cr_expect_eq(bert_tokenizer_file_lengths(g.uncased).padding_length, 128);
    cr_expect_eq(golden_lines("tokenizer/cases.jsonl", one_case, &g), 1983);
    close_golden(&g);
}

/* A tokenizer_config.json that adds the tokens of the file's first line. */
static void take_added(bert_json row, void *arg) {
    char **config = arg;
    const bert_json list = golden_member(row, "added_tokens");
    bert_json token;
    size_t n = 0;
    if (golden_null(list)) return;
    char *text = malloc(list.len + 4000);
    n += (size_t)sprintf(text, "{\"added_tokens_decoder\":{");
    for (size_t place = 0; bert_json_next(list, &place, NULL, &token);)
        n += (size_t)sprintf(text + n, "%s\"%d\":%.*s", text[n - 1] == '{' ? "" : ",", (int)golden_integer(token, "id", -1),
                             (int)token.len, token.at);
    sprintf(text + n, "}}");
    *config = text;
}

Test(golden, added_tokens) {
    char *config = NULL;
    golden_lines("tokenizer/added_tokens.jsonl", take_added, &config);
    cr_assert_not_null(config);
    golden g = {.vocab = "tokenizer/bert-base-uncased-vocab.txt", .uncased = open_file("tokenizer/bert-base-uncased-vocab.txt", config)};
    cr_expect_eq(bert_tokenizer_vocab_size(g.uncased), 30532);
    cr_expect_eq(golden_lines("tokenizer/added_tokens.jsonl", one_case, &g), 83);
    close_golden(&g);
    free(config);
}

enum { MOST_TEXTS = 64 };

static size_t strings(bert_json list, char *texts[MOST_TEXTS], size_t lens[MOST_TEXTS]) {
    bert_json item;
    size_t n = 0;
    for (size_t place = 0; bert_json_next(list, &place, NULL, &item); n++) texts[n] = golden_string(item, &lens[n]);
    return n;
}

static void one_batch(bert_json row, void *arg) {
    golden *g = arg;
    char *a[MOST_TEXTS], *b[MOST_TEXTS];
    size_t a_len[MOST_TEXTS], b_len[MOST_TEXTS], place = 0, i = 0;
    const bert_json o = golden_member(row, "options"), pairs = golden_member(row, "pairs"), id = golden_member(row, "id");
    bert_tokenize_options options = options_of(o);
    bert_text texts[MOST_TEXTS] = {{0}};
    bert_error err = {0};
    bert_json want;
    const size_t n = strings(golden_member(row, "texts"), a, a_len);
    const size_t m = golden_null(pairs) ? 0 : strings(pairs, b, b_len);
    for (size_t k = 0; k < n; k++) texts[k] = (bert_text){a[k], a_len[k], m ? b[k] : NULL, m ? b_len[k] : 0};
    options.padding = bert_json_equals(golden_member(o, "padding"), "longest") ? BERT_PAD_LONGEST : BERT_PAD_FIXED;
    options.pad_length = options.max_length;
    options.pad_to_multiple = (size_t)golden_integer(o, "pad_to_multiple_of", 0);
    if (bert_json_equals(golden_member(o, "padding_side"), "left")) options.padding_side = BERT_LEFT;
    options.overflow = BERT_NO_OVERFLOW;
    cr_assert_eq(bert_tokenize(&g->tokens, g->uncased, texts, n, &options, &err), BERT_OK, "%s", err.text);
    const char *differs = NULL;
    for (; bert_json_next(golden_member(row, "rows"), &place, NULL, &want); i++) {
        differs = differs != NULL ? differs : golden_differs(want, g->tokens, i, 0);
    }
    if ((differs != NULL || i != n) && g->differences++ < 10) cr_log_error("%.*s: %s", (int)id.len, id.at, differs);
    for (size_t k = 0; k < n; k++) free(a[k]);
    for (size_t k = 0; k < m; k++) free(b[k]);
}

Test(golden, padding) {
    golden g = {.uncased = open_file("tokenizer/bert-base-uncased-vocab.txt", "{}")};
    cr_expect_eq(golden_lines("tokenizer/batch_padding.jsonl", one_batch, &g), 24);
    close_golden(&g);
}

static void one_invalid(bert_json row, void *arg) {
    golden *g = arg;
    const bert_json hex = golden_member(row, "bytes_hex"), id = golden_member(row, "id");
    const size_t n = (hex.len - 2) / 2;
    char *bytes = malloc(n + (n == 0));
    for (size_t i = 0; i < n; i++) {
        unsigned byte = 0;
        cr_assert_eq(sscanf(hex.at + 1 + 2 * i, "%2x", &byte), 1);
        bytes[i] = (char)byte;
    }
    const bert_text text = {bytes, n, NULL, 0};
    bert_error err = {0};
    cr_assert_eq(bert_tokenize(&g->tokens, g->uncased, &text, 1, NULL, &err), BERT_OK, "%s", err.text);
    const char *differs = golden_differs(row, g->tokens, 0, 0);
    if (differs == NULL && bert_tokens_at(g->tokens, 0, 0).invalid_utf8 == 0) differs = "invalid_utf8";
    if (differs != NULL && g->differences++ < 10) cr_log_error("%.*s: %s", (int)id.len, id.at, differs);
    free(bytes);
}

Test(golden, invalid_utf8) {
    golden g = {.uncased = open_file("tokenizer/bert-base-uncased-vocab.txt", "{}")};
    cr_expect_eq(golden_lines("tokenizer/invalid_utf8.jsonl", one_invalid, &g), 35);
    close_golden(&g);
}
