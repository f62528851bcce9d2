/* What becomes of every Unicode scalar value, uncased and cased, with its offsets: "a" + c + "b" against the table that
 * was made from HF tokenizers (data/tokenizer/bert_unicode_table.txt). */
#include "golden.h"

#include "base/utf8.h"

/* A vocabulary in which single characters cannot be told from [UNK] would hide differences, so the pre-tokens are read
 * back from spans and words: each word is checked for its span, its kind, and for the characters it was looked up as. */
typedef struct effect {
    char kind;        /* J D S P C, see the table's header */
    uint32_t to[4];   /* what the character becomes; n 0: itself */
    unsigned n;
} effect;

enum { SCALARS = 0x110000 };

static effect parse(const char *field, size_t len) {
    effect e = {.kind = field[0]};
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)len, field);
    char *at = strchr(text, '>');
    while (at != NULL && *at != '\0' && e.n < 4) e.to[e.n++] = (uint32_t)strtoul(at + 1, &at, 16);
    return e;
}

static effect *read_table(int column) {
    char path[PATH_MAX], *text = NULL;
    size_t len = 0;
    bert_error err;
    effect *table = malloc(SCALARS * sizeof *table);
    for (uint32_t c = 0; c < SCALARS; c++) table[c] = (effect){.kind = 'J'};
    cr_assert_eq(bert_read_text(&text, &len, golden_path(path, "tokenizer/bert_unicode_table.txt"), 1 << 20, &err), BERT_OK);
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (line[0] == '#' || line[0] == '\0') continue;
        char *after;
        const uint32_t first = (uint32_t)strtoul(line, &after, 16);
        const uint32_t last = after[0] == '.' ? (uint32_t)strtoul(after + 2, &after, 16) : first;
        const char *field = after + 1;
        for (int i = 0; i < column; i++) field = strchr(field, ';') + 1;
        for (uint32_t c = first; c <= last; c++) table[c] = parse(field, strcspn(field, ";"));
    }
    free(text);
    return table;
}

/* The pre-tokens that the table asks for, as a vocabulary would have to have them. */
typedef struct pretoken {
    uint8_t text[32];
    size_t len;
    uint32_t start, end;
} pretoken;

static void append(pretoken *p, uint32_t c) {
    p->len += bert_utf8_write(p->text + p->len, c);
}

static size_t expected(pretoken want[3], uint32_t c, const effect *e) {
    uint8_t bytes[4];
    const uint32_t n = bert_utf8_write(bytes, c), behind = 1 + n;
    memset(want, 0, 3 * sizeof *want);
    append(&want[0], 'a');
    want[0].end = 1;
    if (e->kind == 'J' || e->kind == 'D') {
        for (unsigned i = 0; e->kind == 'J' && i < (e->n ? e->n : 1); i++) append(&want[0], e->n ? e->to[i] : c);
        append(&want[0], 'b');
        want[0].end = behind + 1;
        return 1;
    }
    size_t count = 1;
    if (e->kind != 'S') {
        want[1].start = 1;
        want[1].end = behind;
        for (unsigned i = 0; i < (e->n ? e->n : 1); i++) append(&want[1], e->n ? e->to[i] : c);
        count = 2;
    }
    want[count].start = behind;
    want[count].end = behind + 1;
    append(&want[count], 'b');
    return count + 1;
}

/* A vocabulary of the pre-tokens of code points [first, first + 4096). The table's words all become tokens of their own,
 * so ids prove the characters. */
static bert_tokenizer *open_block(const effect *table, uint32_t first, bool cased) {
    char *vocab = malloc(1 << 20);
    size_t n = (size_t)sprintf(vocab, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    for (uint32_t c = first; c < first + 4096; c++) {
        pretoken want[3];
        if (c >= 0xD800 && c < 0xE000) continue;
        const size_t count = expected(want, c, &table[c]);
        for (size_t i = 0; i < count; i++) {
            if (want[i].len == 1 && memchr("\n\r ", want[i].text[0], 3) != NULL) continue;
            if (memchr(want[i].text, 0, want[i].len) != NULL) continue;
            memcpy(vocab + n, want[i].text, want[i].len);
            n += want[i].len;
            vocab[n++] = '\n';
        }
    }
    const char *config = cased ? "{\"do_lower_case\":false}" : "{}";
    const bert_file files[] = {{"vocab.txt", vocab, n}, {"tokenizer_config.json", config, strlen(config)}};
    bert_tokenizer *tokenizer = NULL;
    bert_error err = {0};
    cr_assert_eq(bert_tokenizer_open_files(&tokenizer, files, 2, NULL, &err), BERT_OK, "%s", err.text);
    free(vocab);
    return tokenizer;
}

static bool as_expected(const bert_tokens *tokens, size_t i, const pretoken *want, size_t count) {
    const bert_encoding e = bert_tokens_at(tokens, i, 0);
    if (e.n != count) return false;
    for (size_t k = 0; k < count; k++) {
        size_t len;
        const char *spelling = bert_tokens_spelling(tokens, i, 0, k, &len);
        if (e.offsets[k].start != want[k].start || e.offsets[k].end != want[k].end) return false;
        if (len != want[k].len || memcmp(spelling, want[k].text, len) != 0) return false;
    }
    return true;
}

static void one_block(const effect *table, uint32_t first, bool cased, int *checked, int *wrong) {
    static char room[4096][8];
    static bert_text texts[4096];
    static uint32_t codes[4096];
    size_t n = 0;
    bert_tokens *tokens = NULL;
    bert_error err = {0};
    bert_tokenizer *tokenizer = open_block(table, first, cased);
    const bert_tokenize_options options = {.size = sizeof options, .no_special_tokens = 1};
    for (uint32_t c = first; c < first + 4096; c++) {
        if (c >= 0xD800 && c < 0xE000) continue;
        room[n][0] = 'a';
        const size_t len = 1 + bert_utf8_write((uint8_t *)room[n] + 1, c);
        room[n][len] = 'b';
        codes[n] = c;
        texts[n] = (bert_text){room[n], len + 1, NULL, 0};
        n++;
    }
    cr_assert_eq(bert_tokenize(&tokens, tokenizer, texts, n, &options, &err), BERT_OK, "%s", err.text);
    for (size_t i = 0; i < n; i++) {
        pretoken want[3];
        const size_t count = expected(want, codes[i], &table[codes[i]]);
        if (!as_expected(tokens, i, want, count) && (*wrong)++ < 10) cr_log_error("U+%04X", (unsigned)codes[i]);
    }
    *checked += (int)n;
    bert_tokens_close(&tokens);
    bert_tokenizer_close(&tokenizer);
}

static void all_scalars(bool cased) {
    effect *table = read_table(cased ? 1 : 0);
    int checked = 0, wrong = 0;
    for (uint32_t first = 0; first < SCALARS; first += 4096) one_block(table, first, cased, &checked, &wrong);
    cr_expect_eq(checked, 1112064);
    cr_expect_eq(wrong, 0, "%d scalar values differ", wrong);
    free(table);
}

Test(unicode_table, uncased) {
    all_scalars(false);
}

Test(unicode_table, cased) {
    all_scalars(true);
}
