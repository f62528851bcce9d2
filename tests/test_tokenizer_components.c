/* The components of tokenizer.json that are not BERT's own: generated files, and what HF tokenizers 0.23.3 made of texts
 * with them (scripts/compare_components.py --write). */
#include "cost.h"
#include "golden.h"

static void one_text(const bert_tokenizer *tokenizer, bert_tokens **tokens, bert_json row, int *differences) {
    bert_text text = {0};
    bert_error err = {0};
    const bert_tokenize_options options = {.size = sizeof options, .offsets_cp = 1};
    char *a = golden_string(golden_member(row, "text"), &text.a_len);
    text.a = a;
    const char *differs = bert_tokenize(tokens, tokenizer, &text, 1, &options, &err) == BERT_OK
                              ? golden_differs(row, *tokens, 0, 0) : err.text;
    if (differs != NULL && (*differences)++ < 10) cr_log_error("%.*s: %s", (int)row.len, row.at, differs);
    free(a);
}

static void one_file(bert_json row, void *arg) {
    size_t len;
    char *file = golden_string(golden_member(row, "file"), &len);
    bert_json text;
    bert_tokenizer *tokenizer = NULL;
    bert_tokens *tokens = NULL;
    bert_error err = {0};
    const bert_file files[] = {{"tokenizer.json", file, len}};
    cr_assert_eq(bert_tokenizer_open_files(&tokenizer, files, 1, NULL, &err), BERT_OK, "%s", err.text);
    for (size_t place = 0; bert_json_next(golden_member(row, "texts"), &place, NULL, &text);)
        one_text(tokenizer, &tokens, text, arg);
    bert_tokens_close(&tokens);
    bert_tokenizer_close(&tokenizer);
    free(file);
}

Test(components, generated) {
    int differences = 0;
    cr_expect_eq(golden_lines("tokenizer/components.jsonl", one_file, &differences), 99);
    cr_expect_eq(differences, 0, "%d texts differ", differences);
}

/* A tokenizer.json with the given normalizer and pre_tokenizer; returns the status of opening it. */
static bert_status open_with(const char *normalizer, const char *splitter, bert_error *err) {
    char json[8192];
    const int n = snprintf(json, sizeof json,
                           "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\","
                           "\"vocab\":{\"u\":0}}}", normalizer, splitter);
    const bert_file files[] = {{"tokenizer.json", json, (size_t)n}};
    bert_tokenizer *tokenizer = NULL;
    const bert_status status = bert_tokenizer_open_files(&tokenizer, files, 1, NULL, err);
    bert_tokenizer_close(&tokenizer);
    return status;
}

static bert_status open_regex(const char *regex, bert_error *err) {
    char normalizer[2048];
    snprintf(normalizer, sizeof normalizer, "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"%s\"},\"content\":\"\"}", regex);
    return open_with(normalizer, "null", err);
}

Test(components, refused_by_name) {
    bert_error err;
    cr_expect_eq(open_with("null", "{\"type\":\"Metaspace\",\"replacement\":\"_\"}", &err), BERT_UNSUPPORTED);
    cr_expect(strstr(err.text, "Metaspace") != NULL && strstr(err.text, "XLM-RoBERTa") != NULL, "%s", err.text);
    cr_expect_eq(open_with("{\"type\":\"Precompiled\"}", "null", &err), BERT_UNSUPPORTED);
    cr_expect_not_null(strstr(err.text, "Precompiled"), "%s", err.text);
    cr_expect_eq(open_with("{\"type\":\"NFC\"}", "{\"type\":\"Whitespace\"}", &err), BERT_OK, "%s", err.text);
}

/* Expressions that can take exponential time, or that PCRE2 and Oniguruma read differently. */
Test(components, refused_expressions) {
    static const char *const refused[] = {"(a+)+", "(a*)*b", "((a|b)+c)*", "(?:x{2,})+", "(\\\\w+\\\\s?)+", "\\\\p{L}", "\\\\bx",
                                          "\\\\h", "\\\\v", "\\\\1", "(?i)a", "(?<n>a)", "(?#c)a", "[[:alpha:]]", "[a&&b]", "[]a]", "a**",
                                          "a{,3}", "a{2}+", "a{", "a}", "(a", "a)", "[a", "*a", "\\\\x80", "\\\\Z", "[z-a]", "(?<=a+)b"};
    static const char *const taken[] = {"a+", "(ab)+", "(?:a|b)*", "a{2,3}?", "[^a-z\\\\s]+", "\\\\d+\\\\.", "(?<!a)b", "\\\\u00e9",
                                        "x*+y", "", "a|", "(?>ab?)c", "(a+)?", "^a$"};
    bert_error err;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        cr_expect_eq(open_regex(refused[i], &err), BERT_UNSUPPORTED, "%s", refused[i]);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        cr_expect_eq(open_regex(taken[i], &err), BERT_OK, "%s: %s", taken[i], err.text);
}

/* Normalizers in a row multiply: a line of a kilobyte could become gigabytes, and is an error instead. */
Test(components, bounded_growth) {
    char json[4096], *p = json;
    static char text[1000];
    bert_tokenizer *tokenizer = NULL;
    bert_tokens *tokens = NULL;
    bert_error err = {0};
    memset(text, 'a', sizeof text);
    p += sprintf(p, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 8; i++)
        p += sprintf(p, "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aaaaaaaaaaaaaaaa\"}", i ? "," : "");
    p += sprintf(p, "]},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0}}}");
    const bert_file files[] = {{"tokenizer.json", json, (size_t)(p - json)}};
    const bert_text long_one = {text, sizeof text, NULL, 0}, empty = {"", 0, NULL, 0};
    cr_assert_eq(bert_tokenizer_open_files(&tokenizer, files, 1, NULL, &err), BERT_OK, "%s", err.text);
    const cost before = cost_begin();
    cost worst = {0, 0};
    cr_expect_eq(bert_tokenize(&tokens, tokenizer, &long_one, 1, NULL, &err), BERT_UNSUPPORTED);
    cost_end(before, "a text that grows", cost_of_a_file, &worst);
    cr_expect_not_null(strstr(err.text, "more than 129536 characters"), "%s", err.text);
    cr_expect_eq(bert_tokenize(&tokens, tokenizer, &empty, 1, NULL, &err), BERT_OK);
    bert_tokens_close(&tokens);
    bert_tokenizer_close(&tokenizer);
}

Test(components, patterns_and_contents_have_a_limit) {
    char *json = malloc(10000), *p = json;
    bert_error err = {0};
    p += sprintf(p, "{\"type\":\"Prepend\",\"prepend\":\"");
    memset(p, 'a', 4097);
    strcpy(p + 4097, "\"}");
    cr_expect_eq(open_with(json, "null", &err), BERT_UNSUPPORTED);
    cr_expect_not_null(strstr(err.text, "prepend has 4097 bytes"), "%s", err.text);
    strcpy(p + 4096, "\"}");
    cr_expect_eq(open_with(json, "null", &err), BERT_OK, "%s", err.text);
    p = json + sprintf(json, "{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"Regex\":\"");
    memset(p, 'a', 4097);
    strcpy(p + 4097, "\"}}");
    cr_expect_eq(open_with(json, "null", &err), BERT_UNSUPPORTED);
    cr_expect_not_null(strstr(err.text, "a pattern of 4097 bytes"), "%s", err.text);
    strcpy(p + 4096, "\"}}");
    cr_expect_eq(open_with(json, "null", &err), BERT_OK, "%s", err.text);
    free(json);
}

/* A match that takes too much work is an error of that text, in bounded time. */
Test(components, bounded_match, .timeout = 60) {
    static const char json[] = "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(?:a?){30}a{30}$\"},\"content\":\"\"},"
                               "\"pre_tokenizer\":null,\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0}}}";
    const bert_file files[] = {{"tokenizer.json", json, sizeof json - 1}};
    bert_tokenizer *tokenizer = NULL;
    bert_tokens *tokens = NULL;
    bert_error err = {0};
    const bert_text bad = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 30, NULL, 0}, good = {"b", 1, NULL, 0};
    cr_assert_eq(bert_tokenizer_open_files(&tokenizer, files, 1, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(bert_tokenize(&tokens, tokenizer, &bad, 1, NULL, &err), BERT_UNSUPPORTED);
    cr_expect_not_null(strstr(err.text, "regular expression"), "%s", err.text);
    cr_expect_eq(bert_tokenize(&tokens, tokenizer, &good, 1, NULL, &err), BERT_OK);
    bert_tokens_close(&tokens);
    bert_tokenizer_close(&tokenizer);
}

/* `unit` n times, then `end`; freed by the caller. */
static bert_text repeated(const char *unit, size_t n, const char *end) {
    const size_t step = strlen(unit), len = n * step + strlen(end);
    char *text = malloc(len + 1);
    for (size_t i = 0; i < n; i++) memcpy(text + i * step, unit, step);
    strcpy(text + n * step, end);
    return (bert_text){text, len, NULL, 0};
}

static bert_tokenizer *open_split(const char *regex) {
    char json[1024];
    bert_tokenizer *tokenizer = NULL;
    bert_error err = {0};
    const int n = snprintf(json, sizeof json,
                           "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"Isolated\","
                           "\"invert\":false},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0}}}",
                           regex);
    const bert_file files[] = {{"tokenizer.json", json, (size_t)n}};
    cr_assert_eq(bert_tokenizer_open_files(&tokenizer, files, 1, NULL, &err), BERT_OK, "%s", err.text);
    return tokenizer;
}

/* What grows faster than the text is an error of that text, and what does not has all the work it needs. */
Test(components, bounded_work, .timeout = 60) {
    static const struct {
        const char *regex, *unit, *end;
        size_t n, tokens; /* 0: too much work */
    } cases[] = {
        {"a*a*b", "a", "cb", 3000, 0},          {"a*a*b", "a", "cb", 100, 2},
        {"\\\\s+$", " ", "x", 200000, 0},       {"\\\\s+$", " ", "x", 500, 1},
        {"\\\\w+|\\\\s+", "ab ", "", 200000, 400000}, {"(?:a|b|c)+", "abcd", "", 200000, 400000},
        {"[aA]", "a", "", 200000, 200000},      {"[aA]b?", "a", "", 200000, 200000},
        {"\\\\s+(?!\\\\S)|\\\\s+", " ", "x", 200000, 3},
    };
    bert_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bert_tokenizer *tokenizer = open_split(cases[i].regex);
        bert_tokens *tokens = NULL;
        const bert_text text = repeated(cases[i].unit, cases[i].n, cases[i].end);
        const bert_status status = bert_tokenize(&tokens, tokenizer, &text, 1, NULL, &err);
        cr_expect_eq(status, cases[i].tokens > 0 ? BERT_OK : BERT_UNSUPPORTED, "%s: %d", cases[i].regex, (int)status);
        if (status == BERT_OK)
            cr_expect_eq(bert_tokens_at(tokens, 0, 0).n, cases[i].tokens, "%s: %zu tokens", cases[i].regex,
                         bert_tokens_at(tokens, 0, 0).n);
        free((char *)text.a);
        bert_tokens_close(&tokens);
        bert_tokenizer_close(&tokenizer);
    }
}

/* An added token may have 256 bytes, as it is or once it is normalized. */
Test(components, long_added_tokens) {
    for (int n = 255; n <= 257; n++) {
        for (int normalized = 0; normalized < 2; normalized++) {
            char json[2048], content[300];
            bert_tokenizer *tokenizer = NULL;
            bert_error err = {0};
            memset(content, 'A', (size_t)n);
            content[n] = 0;
            const int len = snprintf(json, sizeof json,
                                     "{\"added_tokens\":[{\"id\":1,\"content\":\"%s\",\"special\":false,\"single_word\":false,\"lstrip\":false,"
                                     "\"rstrip\":false,\"normalized\":%s}],\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"_\"},\"model\":"
                                     "{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"%s\":1}}}",
                                     content, normalized ? "true" : "false", content);
            const bert_file files[] = {{"tokenizer.json", json, (size_t)len}};
            const bert_status status = bert_tokenizer_open_files(&tokenizer, files, 1, NULL, &err);
            cr_expect_eq(status, n + normalized > 256 ? BERT_UNSUPPORTED : BERT_OK, "%d: %s", n, err.text);
            if (status != BERT_OK) cr_expect_not_null(strstr(err.text, n + normalized == 257 ? "has 257 bytes" : "has 258 bytes"), "%s", err.text);
            bert_tokenizer_close(&tokenizer);
        }
    }
}

/* Each space is a hit that takes all white space behind it, also with tabs between, which are tokens that take none:
 * ends and spellings are not looked for and kept again for each. */
Test(components, white_space_that_takes_white_space, .timeout = 60) {
    enum { N = 100000 };
    static const char *const flags[] = {"false", "true"};
    for (int kind = 0; kind < 4; kind++) {
        const char *normalized = flags[kind & 1], *unit = kind & 2 ? " \t" : "  ";
        char json[1024];
        bert_tokenizer *tokenizer = NULL;
        bert_tokens *tokens = NULL;
        bert_error err = {0};
        const int n = snprintf(json, sizeof json,
                               "{\"added_tokens\":[{\"id\":1,\"content\":\" \",\"special\":false,\"single_word\":false,\"lstrip\":false,"
                               "\"rstrip\":true,\"normalized\":%s},{\"id\":2,\"content\":\"\\t\",\"special\":false,\"single_word\":false,"
                               "\"lstrip\":false,\"rstrip\":false,\"normalized\":%s}],\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\","
                               "\"vocab\":{\"u\":0,\" \":1,\"\\t\":2}}}", normalized, normalized);
        const bert_file files[] = {{"tokenizer.json", json, (size_t)n}};
        const bert_text text = repeated(unit, N, "x");
        cr_assert_eq(bert_tokenizer_open_files(&tokenizer, files, 1, NULL, &err), BERT_OK, "%s", err.text);
        for (size_t most = 0; most <= N; most += N) { /* whole, and the last of them, for which others are dropped */
            bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
            options.max_length = most;
            options.truncation_side = BERT_LEFT;
            cr_assert_eq(bert_tokenize(&tokens, tokenizer, &text, 1, &options, &err), BERT_OK, "%s", err.text);
            const bert_encoding e = bert_tokens_at(tokens, 0, 0);
            cr_assert_eq(e.n, most > 0 ? most : 2 * N + 1);
            for (size_t i = 0; i < e.n; i += i < 100 || i + 100 > e.n ? 1 : 997) {
                const size_t at = e.offsets[i].start;
                size_t len;
                const char *spelling = bert_tokens_spelling(tokens, 0, 0, i, &len);
                cr_assert_eq(at, i + 2 * N + 1 - e.n);
                cr_assert(len == e.offsets[i].end - at && memcmp(spelling, text.a + at, len) == 0, "token %zu", i);
                cr_assert_eq(len, text.a[at] == ' ' ? 2 * N - at : 1);
            }
        }
        free((char *)text.a);
        bert_tokens_close(&tokens);
        bert_tokenizer_close(&tokenizer);
    }
}
