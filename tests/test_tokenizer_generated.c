/* 5,000 generated strings with options, and what HF tokenizers made of them (scripts/compare_tokenizers.py --write); and
 * what must hold for any text whatever: ids in the vocabulary, offsets on character boundaries, nothing lost. */
#include "golden.h"

#include "base/utf8.h"

typedef struct models {
    bert_tokenizer *uncased, *cased;
    bert_tokens *tokens;
    int differences, failures;
} models;

static bert_tokenizer *open_json(const char *name) {
    char path[PATH_MAX];
    bert_tokenizer *tokenizer = NULL;
    bert_error err = {0};
    cr_assert_eq(bert_tokenizer_open(&tokenizer, golden_path(path, name), NULL, &err), BERT_OK, "%s", err.text);
    return tokenizer;
}

static models open_models(void) {
    return (models){.uncased = open_json("tokenizer/all-MiniLM-L6-v2-tokenizer.json"),
                    .cased = open_json("tokenizer/cased/tokenizer.json")};
}

static void close_models(models *m) {
    bert_tokens_close(&m->tokens);
    bert_tokenizer_close(&m->uncased);
    bert_tokenizer_close(&m->cased);
}

static bert_tokenize_options options_of(bert_json row) {
    bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
    const bert_json o = golden_member(row, "options"), strategy = golden_member(o, "strategy");
    options.max_length = (size_t)golden_integer(o, "max_length", 0);
    options.stride = (size_t)golden_integer(o, "stride", 0);
    if (bert_json_equals(strategy, "only_first")) options.truncation = BERT_ONLY_FIRST;
    if (bert_json_equals(strategy, "only_second")) options.truncation = BERT_ONLY_SECOND;
    if (bert_json_equals(golden_member(o, "direction"), "left")) options.truncation_side = BERT_LEFT;
    options.no_special_tokens = bert_json_kind_of(golden_member(row, "special")) == BERT_JSON_FALSE;
    options.overflow = BERT_OVERFLOW_PARTS;
    options.offsets_cp = 1;
    return options;
}

static bool on_boundaries(const bert_encoding *e, const char *text, size_t len) {
    for (size_t i = 0; i < e->n; i++) {
        const bert_span s = e->offsets[i];
        if (s.start > s.end || s.end > len) return false;
        if (s.start < len && !bert_utf8_begins((uint8_t)text[s.start])) return false;
        if (s.end < len && !bert_utf8_begins((uint8_t)text[s.end])) return false;
    }
    return true;
}

/* Single texts: spans never go back, and every token of the whole text is in one of the parts. */
static bool covers(const models *m, const bert_tokenizer *tokenizer, const bert_text *text, const bert_tokenize_options *o) {
    bert_tokens *whole = NULL;
    bert_tokenize_options all = *o;
    all.max_length = all.stride = 0;
    cr_assert_eq(bert_tokenize(&whole, tokenizer, text, 1, &all, NULL), BERT_OK);
    const bert_encoding w = bert_tokens_at(whole, 0, 0);
    bool found_all = true;
    uint32_t last = 0;
    for (size_t i = 0; i < w.n; i++) {
        bool found = w.special_tokens_mask[i];
        if (!found && w.offsets[i].start < last) found_all = false;
        if (!found) last = w.offsets[i].start;
        for (size_t p = 0; !found && p < bert_tokens_parts(m->tokens, 0); p++) {
            const bert_encoding e = bert_tokens_at(m->tokens, 0, p);
            for (size_t k = 0; k < e.n && !found; k++)
                found = e.ids[k] == w.ids[i] && e.offsets[k].start == w.offsets[i].start && e.words[k] == w.words[i];
        }
        found_all &= found;
    }
    bert_tokens_close(&whole);
    return found_all;
}

static const char *check_any(const models *m, const bert_tokenizer *tokenizer, const bert_text *text,
                             const bert_tokenize_options *options) {
    const size_t size = bert_tokenizer_vocab_size(tokenizer);
    for (size_t p = 0; p < bert_tokens_parts(m->tokens, 0); p++) {
        const bert_encoding e = bert_tokens_at(m->tokens, 0, p);
        for (size_t i = 0; i < e.n; i++)
            if (e.ids[i] < 0 || (size_t)e.ids[i] >= size) return "an id outside the vocabulary";
        if (options->max_length > 0 && e.n > options->max_length) return "too long";
        if (text->b == NULL && !on_boundaries(&e, text->a, text->a_len)) return "an offset that is not a boundary";
    }
    return text->b == NULL && !covers(m, tokenizer, text, options) ? "a token is in no part" : NULL;
}

static const char *compare(bert_json row, const bert_tokens *tokens) {
    const bert_encoding e = bert_tokens_at(tokens, 0, 0);
    const bert_json cp = golden_member(row, "offsets_cp");
    if (!golden_integers(golden_member(row, "ids"), e.n, golden_i32, e.ids)) return "ids";
    if (!golden_integers(golden_member(row, "words"), e.n, golden_i32, e.words)) return "words";
    if (!golden_integers(cp, 2 * e.n, golden_i32, e.offsets_cp)) return "offsets_cp";
    bert_json part;
    size_t place = 0, p = 1;
    for (; bert_json_next(golden_member(row, "overflow"), &place, NULL, &part); p++) {
        const bert_encoding o = bert_tokens_at(tokens, 0, p);
        if (!golden_integers(part, o.n, golden_i32, o.ids)) return "overflow";
    }
    return p == bert_tokens_parts(tokens, 0) ? NULL : "number of parts";
}

static void one_row(bert_json row, void *arg) {
    models *m = arg;
    bert_text text = {0};
    const bert_tokenizer *tokenizer = bert_json_equals(golden_member(row, "model"), "cased") ? m->cased : m->uncased;
    char *a = golden_string(golden_member(row, "text"), &text.a_len), *b = golden_string(golden_member(row, "pair"), &text.b_len);
    text.a = a;
    text.b = b;
    const bert_tokenize_options options = options_of(row);
    const bool refused = golden_null(golden_member(row, "ids"));
    const bool done = bert_tokenize(&m->tokens, tokenizer, &text, 1, &options, NULL) == BERT_OK;
    const char *differs = done == refused ? "refused by one only" : done ? compare(row, m->tokens) : NULL;
    const char *fails = done ? check_any(m, tokenizer, &text, &options) : NULL;
    if ((differs != NULL || fails != NULL) && m->differences + m->failures < 10)
        cr_log_error("%.*s: %s", (int)(row.len < 200 ? row.len : 200), row.at, differs != NULL ? differs : fails);
    m->differences += differs != NULL;
    m->failures += fails != NULL;
    free(a);
    free(b);
}

Test(generated, answers) {
    models m = open_models();
    cr_expect_eq(golden_lines("tokenizer/generated.jsonl", one_row, &m), 5000);
    cr_expect_eq(m.differences, 0, "%d texts differ", m.differences);
    cr_expect_eq(m.failures, 0, "%d texts break a property", m.failures);
    close_models(&m);
}

/* Random bytes: nothing is known about them but the properties. */
Test(generated, any_bytes) {
    models m = open_models();
    uint32_t state = 12345;
    int failures = 0;
    for (int i = 0; i < 20000; i++) {
        char bytes[64];
        size_t n = 0;
        for (size_t k = 0; k < sizeof bytes; k++) {
            state = state * 1664525 + 1013904223;
            bytes[k] = (char)(state >> 24);
            if (k == 0) n = state >> 16 & 63;
        }
        /* Spans are of whole invalid parts, so only order and range can be checked here. */
        bert_text text = {bytes, n, NULL, 0};
        const bert_tokenize_options options = {.size = sizeof options, .offsets_cp = 1};
        cr_assert_eq(bert_tokenize(&m.tokens, m.uncased, &text, 1, &options, NULL), BERT_OK);
        const bert_encoding e = bert_tokens_at(m.tokens, 0, 0);
        for (size_t k = 0; k < e.n; k++) {
            const bert_span s = e.offsets[k];
            failures += s.start > s.end || s.end > n || e.ids[k] < 0 || e.ids[k] >= 30522;
            failures += !e.special_tokens_mask[k] && k > 1 && s.start < e.offsets[k - 1].start;
        }
    }
    cr_expect_eq(failures, 0);
    close_models(&m);
}
