/* Every tokenizer.json and vocab.txt of the hostile corpus: the verdict that its row asks for, as a folder with an
 * embedding table of 40 rows would have it, and what is accepted gives the row's ids for a probe. */
#include "cost.h"
#include "golden.h"

enum { TABLE = 40 };

static const char probe[] = "The cats sat, unbelievable! [MASK] na\xC3\xAFve \xE6\x88\x91 hello-world";

/* Rows of strength `should` that are answered otherwise, and why. Nothing else may differ. */
static const struct {
    const char *file, *reason;
} otherwise[] = {
    {"vocab/bom.txt", "a byte-order mark is skipped, with a note (an error if the caller is strict)"},
    {"vocab/no_mask.txt", "accepted as asked, but [MASK] gets no id: HF's 40 lies behind the embedding table"},
    {"tok/model_WordLevel.json", "WordLevel models are implemented"},
    {"tok/normalizer_nfc.json", "NFC is implemented"},
    {"tok/pretok_null.json", "no pre-tokenizer is honoured: the line is one word"},
    {"tok/pretok_whitespace.json", "Whitespace is implemented"},
    {"tok/trunc_4.json", "truncation that is baked into the file is reported, never applied"},
};
enum { N_OTHERWISE = sizeof otherwise / sizeof *otherwise };

static bool is_otherwise(bert_json file) {
    for (size_t i = 0; i < N_OTHERWISE; i++)
        if (bert_json_equals(file, otherwise[i].file)) return true;
    return false;
}

/* The files called gen:NAME are too large to store. */
static size_t generate(bert_json file, char **text) {
    char path[PATH_MAX];
    size_t len = 0;
    bert_error err;
    char *base = NULL;
    cr_assert_eq(bert_read_text(&base, &len, golden_path(path, "hostile/vocab/base.txt"), 1 << 20, &err), BERT_OK);
    *text = malloc(len + 2000001);
    if (bert_json_equals(file, "gen:vocab_1M_lines")) {
        memcpy(*text, base, len);
        for (int i = 0; i < 1000000; i++) memcpy(*text + len + 2 * i, "t\n", 2);
        len += 2000000;
    } else { /* vocab_token_1M: entry 35 is a million times x */
        char *at = base;
        for (int i = 0; i < 35; i++) at = strchr(at, '\n') + 1;
        char *rest = strchr(at, '\n');
        const size_t before = (size_t)(at - base), behind = len - (size_t)(rest - base);
        memcpy(*text, base, before);
        memset(*text + before, 'x', 1000000);
        memcpy(*text + before + 1000000, rest, behind);
        len = before + 1000000 + behind;
    }
    free(base);
    return len;
}

static size_t content(bert_json file, char **text) {
    char path[PATH_MAX], name[128], *file_name = bert_json_dup(file);
    size_t len = 0;
    bert_error err = {0};
    if (strncmp(file_name, "gen:", 4) == 0) {
        len = generate(file, text);
    } else {
        snprintf(name, sizeof name, "hostile/%s", file_name);
        cr_assert_eq(bert_read_text(text, &len, golden_path(path, name), 1 << 20, &err), BERT_OK, "%s", err.text);
    }
    free(file_name);
    return len;
}

static bool ids_as_asked(const bert_tokenizer *tokenizer, bert_json ids) {
    bert_tokens *tokens = NULL;
    const bert_text text = {probe, sizeof probe - 1, NULL, 0};
    cr_assert_eq(bert_tokenize(&tokens, tokenizer, &text, 1, NULL, NULL), BERT_OK);
    const bert_encoding e = bert_tokens_at(tokens, 0, 0);
    const bool same = golden_integers(ids, e.n, golden_i32, e.ids);
    bert_tokens_close(&tokens);
    return same;
}

static cost worst;

static void one_row(bert_json row, void *arg) {
    const bert_json file = golden_member(row, "file"), ids = golden_member(row, "probe_ids");
    const bool json = bert_json_equals(golden_member(row, "kind"), "tokenizer_json");
    const bool accept = bert_json_equals(golden_member(row, "expect"), "accept");
    const bool must = bert_json_equals(golden_member(row, "strength"), "must");
    char *text = NULL;
    const size_t len = content(file, &text);
    const bert_file files[] = {{json ? "tokenizer.json" : "vocab.txt", text, len}};
    const bert_tokenizer_options options = {.size = sizeof options, .tokenizer_json = json};
    bert_tokenizer *tokenizer = NULL;
    bert_error err = {0};
    const cost before = cost_begin();
    const bert_status status = bert_tokenizer_open_files(&tokenizer, files, 1, &options, &err);
    const bool fits = status == BERT_OK && bert_tokenizer_vocab_size(tokenizer) <= TABLE;
    const bool same = !fits || ids_as_asked(tokenizer, ids), as_asked = fits == accept && (same || !accept);
    cr_expect_eq(as_asked, !is_otherwise(file), "%.*s: %s, %s", (int)file.len, file.at, fits ? "accepted" : "refused",
                 fits ? same ? "ids as asked" : "other ids" : err.text);
    cr_expect(as_asked || !must, "%.*s is a must", (int)file.len, file.at);
    if (status != BERT_OK) {
        cr_expect_null(tokenizer);
        cr_expect(status == BERT_BAD_FILE || status == BERT_UNSUPPORTED, "%.*s: %d", (int)file.len, file.at, status);
        cr_expect(strstr(err.text, files[0].name), "%.*s: no file named: %s", (int)file.len, file.at, err.text);
    }
    bert_tokenizer_close(&tokenizer);
    const bool made = strncmp(file.at, "\"gen:", 5) == 0;
    cost_end(before, made ? "a vocabulary made here" : files[0].name, made ? (cost){2, 512} : cost_of_a_file, &worst);
    free(text);
    (void)arg;
}

Test(hostile_tokenizer, manifest) {
    cr_expect_eq(golden_lines("hostile/manifest_tokenizer.jsonl", one_row, NULL), 144);
    cost_print("tokenizer and vocabulary rows", worst);
}

/* A file that is accepted against the row's wish still has to give what the reference gives. */
Test(hostile_tokenizer, implemented) {
    static const char *const files[] = {"model_WordLevel", "normalizer_nfc", "pretok_null", "pretok_whitespace"};
    static const char *const ids[] = {"[2,5,1,7,19,1,21,4,24,26,31,35,32,3]",
                                      "[2,1,6,13,7,19,10,11,12,21,4,1,26,31,35,32,3]", "[2,1,4,1,3]",
                                      "[2,5,6,13,1,1,4,24,26,1,3]"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[PATH_MAX], name[128];
        bert_tokenizer *tokenizer = NULL;
        bert_error err = {0};
        snprintf(name, sizeof name, "hostile/tok/%s.json", files[i]);
        cr_assert_eq(bert_tokenizer_open(&tokenizer, golden_path(path, name), NULL, &err), BERT_OK, "%s", err.text);
        cr_expect(ids_as_asked(tokenizer, (bert_json){ids[i], strlen(ids[i])}), "%s", files[i]);
        bert_tokenizer_close(&tokenizer);
    }
}
