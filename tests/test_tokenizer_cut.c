/* Texts that are cut: tokens that truncation cannot keep are dropped on the way. What stays is what the first part is
 * where the overflow, and with it every token, is asked for (which tokenizer_golden compares with HF). */
#include <bert/tokenizer.h>

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sanitizers.h"

static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\n##at\nc\n,\nsat\n\u4e2d\n";
static const char specials[] = "{\"mask_token\":{\"content\":\"[MASK]\",\"lstrip\":true,\"rstrip\":false,"
                               "\"single_word\":false,\"normalized\":false}}";

/* What the texts are made of; broken UTF-8, words of several pieces, and a token that takes the blanks before it. */
static const char *const pieces[] = {"the ",  "cats ", "Cat, ", "[MASK] ", "  [MASK]", "nowhere ",
                                     "\xff ", "c\314\201at ", "\u4e2d\u4e2d ", "sat sat sats ", "[SEP] "};
enum { PIECES = sizeof pieces / sizeof *pieces, ROOM = 1 << 15 };

static bert_tokenizer *open_tokenizer(const bert_memory *memory) {
    const bert_file files[] = {{"vocab.txt", vocab, strlen(vocab)},
                               {"special_tokens_map.json", specials, strlen(specials)}};
    bert_tokenizer_options options = BERT_TOKENIZER_OPTIONS_INIT;
    bert_tokenizer *tokenizer = NULL;
    bert_error err;
    options.memory = memory;
    cr_assert_eq(bert_tokenizer_open_files(&tokenizer, files, 2, &options, &err), BERT_OK, "%s", err.text);
    return tokenizer;
}

/* n pieces in an order that `seed` decides. */
static size_t make_text(char *text, size_t n, uint32_t seed) {
    size_t len = 0;
    while (n-- > 0) {
        seed = seed * 1664525 + 1013904223;
        const char *piece = pieces[(seed >> 16) % PIECES];
        memcpy(text + len, piece, strlen(piece));
        len += strlen(piece);
    }
    return len;
}

static bool same(const void *a, const void *b, size_t n, size_t size) {
    return n == 0 || memcmp(a, b, n * size) == 0;
}

static const char *differs(const bert_tokens *all, const bert_tokens *cut, size_t i) {
    const bert_encoding a = bert_tokens_at(all, i, 0), b = bert_tokens_at(cut, i, 0);
    if (a.n != b.n) return "n";
    if (!same(a.ids, b.ids, a.n, sizeof *a.ids)) return "ids";
    if (!same(a.words, b.words, a.n, sizeof *a.words)) return "words";
    if (!same(a.type_ids, b.type_ids, a.n, sizeof *a.type_ids)) return "type_ids";
    if (!same(a.offsets, b.offsets, a.n, sizeof *a.offsets)) return "offsets";
    if (!same(a.offsets_cp, b.offsets_cp, a.n, sizeof *a.offsets_cp)) return "offsets_cp";
    if (!same(a.special_tokens_mask, b.special_tokens_mask, a.n, 1)) return "special_tokens_mask";
    if (!same(a.attention_mask, b.attention_mask, a.n, 1)) return "attention_mask";
    if (memcmp(a.sequences, b.sequences, sizeof a.sequences) != 0) return "sequences";
    if (a.truncated != b.truncated || a.unknown != b.unknown) return "counts";
    if (a.invalid_utf8 != b.invalid_utf8 || a.first_invalid != b.first_invalid) return "invalid_utf8";
    for (size_t k = 0; k < a.n; k++) {
        size_t x, y;
        const char *p = bert_tokens_spelling(all, i, 0, k, &x), *q = bert_tokens_spelling(cut, i, 0, k, &y);
        if (x != y || !same(p, q, x, 1)) return "spelling";
    }
    return NULL;
}

/* Results are used again, as callers do. */
typedef struct results {
    const bert_tokenizer *tokenizer;
    bert_tokens *all, *cut;
} results;

/* A short text, then the given one, then a short one: neighbours are not touched. */
static void compare(results *r, bert_text text, bert_tokenize_options options) {
    const bert_text texts[] = {{"[MASK] cats", 11, NULL, 0}, text, {"the  [MASK]", 11, "cat", 3}};
    bert_error expected = {0}, err = {0};
    options.offsets_cp = 1;
    options.overflow = BERT_OVERFLOW_PARTS;
    const bert_status status = bert_tokenize(&r->all, r->tokenizer, texts, 3, &options, &expected);
    if (status == BERT_TOO_LONG && strstr(expected.text, "parts")) return; /* only because all were to be kept */
    options.overflow = BERT_NO_OVERFLOW;
    cr_expect_eq(bert_tokenize(&r->cut, r->tokenizer, texts, 3, &options, &err), status, "%s", err.text);
    cr_expect_str_eq(err.text, expected.text);
    for (size_t i = 0; status == BERT_OK && i < 3; i++) {
        const char *what = differs(r->all, r->cut, i);
        cr_expect_null(what, "text %zu of %zu and %zu bytes, max_length %zu, truncation %d, side %d: %s", i, text.a_len,
                       text.b_len, options.max_length, (int)options.truncation, (int)options.truncation_side, what);
    }
}

static const size_t lengths[] = {2, 3, 8, 64, 500, SIZE_MAX};
static const size_t sizes[] = {0, 1, 20, 100, 1000};
enum { LENGTHS = sizeof lengths / sizeof *lengths, SIZES = sizeof sizes / sizeof *sizes };

static void every_way(results *r, bert_text text) {
    for (size_t i = 0; i < LENGTHS; i++)
        for (int way = 0; way < 16; way++) {
            bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
            options.max_length = lengths[i];
            options.truncation = (bert_truncation)(way % 4);
            options.truncation_side = way & 4 ? BERT_LEFT : BERT_RIGHT;
            options.no_special_tokens = way >= 8;
            compare(r, text, options);
        }
}

Test(tokenizer_cut, as_if_all_were_kept) {
    bert_tokenizer *tokenizer = open_tokenizer(NULL);
    results r = {tokenizer, NULL, NULL};
    char *a = malloc(ROOM), *b = malloc(ROOM);
    const size_t n_sizes = under_valgrind() ? SIZES - 1 : SIZES;
    for (size_t i = 0; i < n_sizes; i++) {
        const size_t a_len = make_text(a, sizes[i], (uint32_t)i);
        every_way(&r, (bert_text){a, a_len, NULL, 0});
        for (size_t k = 0; k < n_sizes; k++)
            every_way(&r, (bert_text){a, a_len, b, make_text(b, sizes[k], (uint32_t)(100 + k))});
    }
    free(a);
    free(b);
    bert_tokens_close(&r.all);
    bert_tokens_close(&r.cut);
    bert_tokenizer_close(&tokenizer);
}

/* What the tokenizer and its results take, and took at most. */
typedef struct meter {
    size_t now, most;
} meter;

static void *get(void *user, size_t n, size_t align) {
    meter *m = user;
    m->now += n;
    if (m->now > m->most) m->most = m->now;
    return aligned_alloc(align, (n + align - 1) / align * align);
}

static void put(void *user, void *p, size_t n) {
    meter *m = user;
    m->now -= n;
    free(p);
}

/* Ten million bytes that are cut to 64 tokens: the memory is that of the 64. */
Test(tokenizer_cut, memory_of_what_stays) {
    meter m = {0, 0};
    const bert_memory memory = {&m, get, put};
    bert_tokenizer *tokenizer = open_tokenizer(&memory);
    const size_t words = under_valgrind() ? 50000 : 2500000;
    char *text = malloc(4 * words);
    for (size_t i = 0; i < words; i++) memcpy(text + 4 * i, "the ", 4);
    for (int side = 0; side < 2; side++) {
        const bert_text one = {text, 4 * words, NULL, 0};
        bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
        bert_tokens *tokens = NULL;
        options.max_length = 64;
        options.truncation_side = (bert_side)side;
        m.most = m.now;
        const size_t before = m.now;
        cr_assert_eq(bert_tokenize(&tokens, tokenizer, &one, 1, &options, NULL), BERT_OK);
        const bert_encoding e = bert_tokens_at(tokens, 0, 0);
        cr_expect_eq(e.n, 64);
        cr_expect_eq(e.truncated, words - 62);
        cr_expect_eq((size_t)e.words[1], side == 0 ? 0 : words - 62);
        cr_expect_eq(e.offsets[1].start, side == 0 ? 0 : 4 * (words - 62));
        cr_expect_lt(m.most - before, 1 << 16);
        bert_tokens_close(&tokens);
    }
    free(text);
    bert_tokenizer_close(&tokenizer);
    cr_expect_eq(m.now, 0);
}

/* How many parts a pair of so many words gives in windows of 7 tokens; 0: it has too many. */
static size_t parts_of(const bert_tokenizer *tokenizer, size_t first, size_t second, bert_truncation truncation,
                       bert_overflow overflow) {
    static char words[4 * 4096];
    for (size_t i = 0; i < 4096; i++) memcpy(words + 4 * i, "the ", 4);
    const bert_text pair = {words, 4 * first, words, 4 * second};
    bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
    bert_tokens *tokens = NULL;
    bert_error err = {0};
    options.max_length = 7, options.truncation = truncation, options.overflow = overflow;
    const bert_status status = bert_tokenize(&tokens, tokenizer, &pair, 1, &options, &err);
    const size_t parts = bert_tokens_parts(tokens, 0);
    cr_expect(status == BERT_OK || (status == BERT_TOO_LONG && strstr(err.text, "parts") && parts == 0), "%s", err.text);
    bert_tokens_close(&tokens);
    return parts;
}

/* The numbers are those of tokenizers 0.23, which has no limit: windows of one text times windows of the other. */
Test(tokenizer_cut, parts_of_a_pair) {
    bert_tokenizer *tokenizer = open_tokenizer(NULL);
    cr_expect_eq(parts_of(tokenizer, 4, 4, BERT_LONGEST_FIRST, BERT_OVERFLOW_PARTS), 4);
    cr_expect_eq(parts_of(tokenizer, 200, 3, BERT_LONGEST_FIRST, BERT_OVERFLOW_PARTS), 200);
    cr_expect_eq(parts_of(tokenizer, 128, 128, BERT_LONGEST_FIRST, BERT_OVERFLOW_PARTS), 4096);
    cr_expect_eq(parts_of(tokenizer, 130, 128, BERT_LONGEST_FIRST, BERT_OVERFLOW_PARTS), 0); /* 4160 there */
    cr_expect_eq(parts_of(tokenizer, 4096, 4096, BERT_LONGEST_FIRST, BERT_OVERFLOW_PARTS), 0);
    cr_expect_eq(parts_of(tokenizer, 4096, 4096, BERT_LONGEST_FIRST, BERT_NO_OVERFLOW), 1);
    cr_expect_eq(parts_of(tokenizer, 1, 4096, BERT_ONLY_SECOND, BERT_OVERFLOW_PARTS), 1366); /* one window each: as many as it takes */
    bert_tokenizer_close(&tokenizer);
}
