/* Which file wins, what is refused, and the parts of the interface that golden files do not reach. */
#include "golden.h"
#include "sanitizers.h"
#include "scratch.h"

#include "base/utf8.h"
#include "text/tokenizer.h"

#define VOCAB "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\nThe\n,\n.\n?\n'\nt\ndo\nnot\nn\n"

typedef struct notes {
    int n;
    char last[512];
} notes;

static void take_note(void *user, const char *text) {
    notes *taken = user;
    taken->n++;
    snprintf(taken->last, sizeof taken->last, "%s", text);
}

enum { MOST = 4 };

/* Opens files given as name, content, name, content, …, NULL. */
static bert_status open_files(bert_tokenizer **tokenizer, const char *const *given, int strict, int json, notes *taken,
                              bert_error *err) {
    bert_file files[MOST];
    size_t n = 0;
    const bert_notes to = {taken, take_note};
    const bert_tokenizer_options options = {.size = sizeof options, .notes = taken ? &to : NULL, .strict = strict,
                                            .tokenizer_json = json};
    for (; given[2 * n] != NULL; n++) files[n] = (bert_file){given[2 * n], given[2 * n + 1], strlen(given[2 * n + 1])};
    return bert_tokenizer_open_files(tokenizer, files, n, &options, err);
}

static bert_tokenizer *must_open(const char *const *files) {
    bert_tokenizer *tokenizer = NULL;
    bert_error err = {0};
    cr_assert_eq(open_files(&tokenizer, files, 0, 0, NULL, &err), BERT_OK, "%s", err.text);
    return tokenizer;
}

static bool gives(const bert_tokenizer *tokenizer, const char *text, const char *ids) {
    bert_tokens *tokens = NULL;
    const bert_text one = {text, strlen(text), NULL, 0};
    cr_assert_eq(bert_tokenize(&tokens, tokenizer, &one, 1, NULL, NULL), BERT_OK);
    const bert_encoding e = bert_tokens_at(tokens, 0, 0);
    const bool same = golden_integers((bert_json){ids, strlen(ids)}, e.n, golden_i32, e.ids);
    bert_tokens_close(&tokens);
    return same;
}

#define JSON(lowercase) \
    "{\"version\":\"1.0\",\"truncation\":{\"max_length\":8},\"added_tokens\":[{\"id\":2,\"content\":\"[CLS]\",\"special\":true," \
    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false}],\"normalizer\":{\"type\":\"BertNormalizer\"," \
    "\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":" lowercase "},\"pre_tokenizer\":" \
    "{\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]}," \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\"," \
    "\"max_input_chars_per_word\":100,\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"the\":5,\"The\":8}}}"

/* For BERT's classes tokenizer_config.json decides, with its defaults; the difference is said. */
Test(tokenizer, config_wins) {
    static const char *const config[] = {"{\"tokenizer_class\":\"BertTokenizer\"}", "{\"tokenizer_class\":\"DistilBertTokenizerFast\"}",
                                         "{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", "{}"};
    static const char *const ids[] = {"[2,5,3]", "[2,5,3]", "[2,8,3]", "[2,8,3]"};
    for (int i = 0; i < 4; i++) {
        const char *const files[] = {"tokenizer.json", JSON("false"), "tokenizer_config.json", config[i], NULL};
        bert_tokenizer *tokenizer = NULL;
        bert_error err = {0};
        notes taken = {0};
        cr_assert_eq(open_files(&tokenizer, files, 0, 0, &taken, &err), BERT_OK, "%s", err.text);
        cr_expect(gives(tokenizer, "The", ids[i]), "%s", config[i]);
        cr_expect_eq(taken.n > 0, i < 2, "%s", taken.last);
        cr_expect(i >= 2 || strstr(taken.last, "strip_accents") != NULL, "%s", taken.last);
        cr_expect_eq(bert_tokenizer_lowercases(tokenizer), i < 2);
        cr_expect_eq(bert_tokenizer_file_lengths(tokenizer).truncation_max_length, 8);
        bert_tokenizer_close(&tokenizer);
        cr_expect_eq(open_files(&tokenizer, files, 1, 0, NULL, &err), i < 2 ? BERT_BAD_FILE : BERT_OK);
        bert_tokenizer_close(&tokenizer);
    }
}

/* Without a class config.json's model_type decides, as in AutoTokenizer; tokenizer_json takes the file as it stands. */
Test(tokenizer, model_type_and_as_it_stands) {
    const char *const files[] = {"tokenizer.json", JSON("false"), "config.json", "{\"model_type\":\"bert\"}", NULL};
    bert_tokenizer *tokenizer = must_open(files);
    cr_expect(gives(tokenizer, "The", "[2,5,3]"));
    bert_tokenizer_close(&tokenizer);
    cr_assert_eq(open_files(&tokenizer, files, 1, 1, NULL, NULL), BERT_OK);
    cr_expect(gives(tokenizer, "The", "[2,8,3]"));
    bert_tokenizer_close(&tokenizer);
}

/* Folders as transformers 4 and before wrote them. */
Test(tokenizer, older_files) {
    const char *const files[] = {"vocab.txt", VOCAB, "tokenizer_config.json", "{\"do_lower_case\":false,\"model_max_length\":512}",
                                 "special_tokens_map.json", "{\"mask_token\":{\"content\":\"[MASK]\",\"lstrip\":true,\"rstrip\":false,"
                                 "\"single_word\":false,\"normalized\":false}}", "added_tokens.json", "{\"[MASK]\":4,\"xyz\":17}", NULL};
    bert_tokenizer *tokenizer = must_open(files);
    cr_expect(gives(tokenizer, "The xyz  [MASK]", "[2,8,17,4,3]"));
    cr_expect_eq(bert_tokenizer_vocab_size(tokenizer), 18);
    cr_expect_eq(bert_tokenizer_file_lengths(tokenizer).model_max_length, 512);
    cr_expect_eq(bert_tokenizer_id(tokenizer, "xyz", 3), 17);
    cr_expect_eq(bert_tokenizer_special(tokenizer, BERT_SPECIAL_MASK), 4);
    cr_expect_eq(bert_tokenizer_added(tokenizer, 0), 2);
    cr_expect_eq(bert_tokenizer_added(tokenizer, 1), 3);
    bert_tokenizer_close(&tokenizer);
}

/* An added token that has no character, or none after normalization, is never found; HF ignores it too. */
Test(tokenizer, an_added_token_of_no_characters) {
    static const char REPLACE[] = "{\"added_tokens\":[{\"id\":6,\"content\":\"x\",\"special\":false,\"single_word\":false,"
        "\"lstrip\":false,\"rstrip\":false,\"normalized\":true}],\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},\"content\":\"\"},{\"type\":\"Lowercase\"},{\"type\":\"NFC\"},"
        "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}]},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],"
        "\"cls\":[\"[CLS]\",2]},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
        "\"max_input_chars_per_word\":100,\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"the\":4,\"cat\":5}}}";
    const char *const listed[] = {"vocab.txt", VOCAB, "added_tokens.json", "{\"\":17}", NULL};
    const char *const normalized[] = {"tokenizer.json", REPLACE, NULL};
    const char *const *const all[] = {listed, normalized};
    for (int i = 0; i < 2; i++) {
        bert_tokenizer *tokenizer = must_open(all[i]);
        cr_expect(gives(tokenizer, "the cat", i == 0 ? "[2,5,6,3]" : "[2,4,5,3]"));
        cr_expect(gives(tokenizer, "", "[2,3]"));
        bert_tokenizer_close(&tokenizer);
    }
}

Test(tokenizer, refused) {
    static const struct {
        const char *name, *content, *config, *says;
        bert_status status;
    } cases[] = {
        {"vocab.txt", "a\nb\n", "{}", "[UNK]", BERT_BAD_FILE},
        {"vocab.txt", VOCAB, "{\"tokenizer_class\":\"BertJapaneseTokenizer\"}", "BertJapaneseTokenizer", BERT_UNSUPPORTED},
        {"vocab.txt", VOCAB, "{\"do_lower_case\":1}", "do_lower_case", BERT_BAD_FILE},
        {"vocab.txt", VOCAB, "{\"cls_token\":\"<s>\"}", "<s>", BERT_BAD_FILE},
        {"vocab.txt", VOCAB, "[]", "tokenizer_config.json", BERT_BAD_FILE},
        {"vocab.txt", VOCAB, "{\"added_tokens_decoder\":[1]}", "added_tokens_decoder", BERT_BAD_FILE},
        {"tokenizer.json", "{\"model\":{\"type\":\"Unigram\"}}", "{}", "XLM-RoBERTa", BERT_UNSUPPORTED},
        {"tokenizer.json", "{\"model\":{\"type\":\"BPE\"}}", "{}", "RoBERTa", BERT_UNSUPPORTED},
        {"tokenizer.json", "{}", "{}", "model", BERT_BAD_FILE},
        {"other.txt", VOCAB, "{}", "vocab.txt", BERT_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const files[] = {cases[i].name, cases[i].content, "tokenizer_config.json", cases[i].config, NULL};
        bert_tokenizer *tokenizer = NULL;
        bert_error err = {0};
        cr_expect_eq(open_files(&tokenizer, files, 0, 0, NULL, &err), cases[i].status, "%zu: %s", i, err.text);
        cr_expect_not_null(strstr(err.text, cases[i].says), "%zu: %s", i, err.text);
        cr_expect_null(tokenizer);
    }
}

/* A tokenizer.json that is bad is an error, never a fall-back to the vocabulary beside it. */
Test(tokenizer, paths) {
    scratch s;
    bert_tokenizer *tokenizer = NULL;
    scratch_open(&s);
    cr_expect_eq(bert_tokenizer_open(&tokenizer, s.dir, NULL, NULL), BERT_NOT_FOUND);
    scratch_write(&s, "vocab.txt", VOCAB, strlen(VOCAB));
    cr_expect_eq(bert_tokenizer_open(&tokenizer, s.path, NULL, NULL), BERT_OK);
    bert_tokenizer_close(&tokenizer);
    cr_expect_eq(bert_tokenizer_open(&tokenizer, s.dir, NULL, NULL), BERT_OK);
    bert_tokenizer_close(&tokenizer);
    scratch_write(&s, "tokenizer.json", JSON("true"), strlen(JSON("true")));
    cr_expect_eq(bert_tokenizer_open(&tokenizer, s.path, NULL, NULL), BERT_OK);
    bert_tokenizer_close(&tokenizer);
    scratch_write(&s, "tokenizer.json", "{", 1);
    cr_expect_eq(bert_tokenizer_open(&tokenizer, s.dir, NULL, NULL), BERT_BAD_FILE);
    cr_expect_null(tokenizer);
    scratch_close(&s);
}

/* Untrusted text: special tokens spelt in it are plain text. */
Test(tokenizer, literal_specials) {
    const char *const files[] = {"vocab.txt", VOCAB "[\n]\nsep\n", NULL};
    bert_tokenizer *tokenizer = must_open(files);
    bert_tokens *tokens = NULL;
    const bert_text text = {"[SEP]", 5, NULL, 0};
    const bert_tokenize_options options = {.size = sizeof options, .literal_specials = 1};
    cr_expect(gives(tokenizer, "[SEP]", "[2,3,3]"));
    cr_assert_eq(bert_tokenize(&tokens, tokenizer, &text, 1, &options, NULL), BERT_OK);
    const bert_encoding e = bert_tokens_at(tokens, 0, 0);
    cr_expect(golden_integers((bert_json){"[2,17,19,18,3]", 14}, e.n, golden_i32, e.ids));
    bert_tokens_close(&tokens);
    bert_tokenizer_close(&tokenizer);
}

Test(tokenizer, call_errors) {
    const char *const files[] = {"vocab.txt", VOCAB, NULL};
    static const struct {
        bert_tokenize_options options;
        bert_status status;
    } cases[] = {
        {{.size = sizeof(bert_tokenize_options), .max_length = 1}, BERT_INVALID_ARGUMENT},
        {{.size = sizeof(bert_tokenize_options), .max_length = 4, .stride = 3}, BERT_INVALID_ARGUMENT},
        {{.size = sizeof(bert_tokenize_options), .max_length = 4, .stride = 2}, BERT_INVALID_ARGUMENT},
        {{.size = sizeof(bert_tokenize_options), .max_length = 4, .truncation = BERT_NO_TRUNCATION}, BERT_TOO_LONG},
        {{.size = sizeof(bert_tokenize_options), .max_length = 4, .truncation = BERT_ONLY_SECOND}, BERT_INVALID_ARGUMENT},
        {{.size = sizeof(bert_tokenize_options), .max_length = 5}, BERT_OK},
    };
    bert_tokenizer *tokenizer = must_open(files);
    bert_tokens *tokens = NULL;
    const bert_text texts[] = {{"the", 3, NULL, 0}, {"the the the the", 15, NULL, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bert_error err = {0};
        cr_expect_eq(bert_tokenize(&tokens, tokenizer, texts, 2, &cases[i].options, &err), cases[i].status, "%zu: %s", i, err.text);
        cr_expect_eq(bert_tokens_count(tokens), cases[i].status == BERT_OK ? 2 : 0);
    }
    cr_expect_eq(bert_tokens_at(tokens, 1, 0).truncated, 1);
    cr_expect_eq(bert_tokens_at(tokens, 2, 0).n, 0);
    bert_tokens_close(&tokens);
    bert_tokenizer_close(&tokenizer);
}

/* Nothing at all is a text: [CLS] [SEP]; an empty second text makes a pair. */
Test(tokenizer, empty) {
    const char *const files[] = {"vocab.txt", VOCAB, NULL};
    bert_tokenizer *tokenizer = must_open(files);
    bert_tokens *tokens = NULL;
    const bert_text texts[] = {{NULL, 0, NULL, 0}, {"", 0, "", 0}, {" \xFF", 2, NULL, 0}};
    cr_assert_eq(bert_tokenize(&tokens, tokenizer, texts, 3, NULL, NULL), BERT_OK);
    cr_expect_eq(bert_tokens_at(tokens, 0, 0).n, 2);
    cr_expect_eq(bert_tokens_at(tokens, 1, 0).n, 3);
    cr_expect_eq(bert_tokens_at(tokens, 2, 0).invalid_utf8, 1);
    cr_expect_eq(bert_tokens_at(tokens, 2, 0).first_invalid, 1);
    cr_assert_eq(bert_tokenize(&tokens, tokenizer, NULL, 0, NULL, NULL), BERT_OK);
    cr_expect_eq(bert_tokens_count(tokens), 0);
    bert_tokens_close(&tokens);
    bert_tokenizer_close(&tokenizer);
}

Test(tokenizer, decode) {
    const char *const files[] = {"vocab.txt", VOCAB, NULL};
    static const int32_t ids[] = {2, 5, 6, 7, 9, 14, 15, 11, 3, 99, -1};
    static const char *const want[] = {"[CLS] the cats , do not ? [SEP]", "[CLS] the cats, do not? [SEP]", "the cats , do not ?",
                                       "the cats, do not?"};
    bert_tokenizer *tokenizer = must_open(files);
    for (int i = 0; i < 4; i++) {
        char text[64] = {0};
        const size_t n = bert_tokenizer_decode(tokenizer, text, sizeof text, ids, 11, i / 2, i % 2);
        cr_expect_str_eq(text, want[i]);
        cr_expect_eq(n, strlen(want[i]));
        memset(text, '#', sizeof text);
        cr_expect_eq(bert_tokenizer_decode(tokenizer, text, 3, ids, 11, i / 2, i % 2), n);
        cr_expect_eq(text[3], '#');
    }
    bert_tokenizer_close(&tokenizer);
}

/* Time and memory are linear in the text: a word of a million letters is one [UNK], whatever the letters are. */
Test(tokenizer, long_words, .timeout = 60) {
    const char *const files[] = {"vocab.txt", VOCAB, NULL};
    static const char *const letters[] = {"a", "\xC3\xA9", "\xCC\x81", "\xE0\xA3\x94", "\xE1\x84\x80", "\x01"};
    bert_tokenizer *tokenizer = must_open(files);
    bert_tokens *tokens = NULL;
    for (size_t k = 0; k < sizeof letters / sizeof *letters; k++) {
        const size_t size = strlen(letters[k]), n = (under_valgrind() ? 20000 : 1000000) * size;
        char *text = malloc(n);
        for (size_t i = 0; i < n; i += size) memcpy(text + i, letters[k], size);
        const bert_text one = {text, n, NULL, 0};
        cr_assert_eq(bert_tokenize(&tokens, tokenizer, &one, 1, NULL, NULL), BERT_OK);
        const bert_encoding e = bert_tokens_at(tokens, 0, 0);
        const bool vanishes = k == 2 || k == 5;
        cr_expect_eq(e.n, vanishes ? 2 : 3, "%zu: %zu", k, e.n);
        cr_expect(vanishes || (e.ids[1] == 1 && e.offsets[1].start == 0 && e.offsets[1].end == n));
        cr_expect_eq(e.unknown, vanishes ? 0 : 1);
        free(text);
    }
    bert_tokens_close(&tokens);
    bert_tokenizer_close(&tokenizer);
}

Test(utf8, maximal_subparts) {
    static const struct {
        const char *bytes;
        size_t valid, invalid;
    } cases[] = {{"a\x80" "b", 1, 1}, {"\xE0\x80", 0, 1}, {"\xE1\x80z", 0, 2}, {"\xF0\x90\x80", 0, 3}, {"\xF4\x90", 0, 1},
                 {"\xC0\xAF", 0, 1}, {"\xED\xA0\x80", 0, 1}, {"\xC3\xA9\xFF", 2, 1}, {"abcdefgh\xFF", 8, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint8_t *bytes = (const uint8_t *)cases[i].bytes;
        const size_t len = strlen(cases[i].bytes), valid = bert_utf8_valid(bytes, len);
        cr_expect_eq(valid, cases[i].valid, "%zu", i);
        cr_expect_eq(bert_utf8_invalid(bytes + valid, len - valid), cases[i].invalid, "%zu", i);
    }
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t bytes[4];
        uint32_t back;
        if (c >= 0xD800 && c < 0xE000) continue;
        const unsigned n = bert_utf8_write(bytes, c);
        cr_assert(bert_utf8_valid(bytes, n) == n && bert_utf8_read(&back, bytes) == n && back == c, "U+%04X", (unsigned)c);
    }
}

/* Look-ups in a vocabulary of all lengths around the 8 bytes that hashing takes at a time. */
Test(vocab, every_length) {
    bert_vocab vocab = {.memory = bert_memory_or_default(NULL)};
    char text[70 + BERT_VOCAB_PAD];
    size_t replaced;
    memset(text, 'x', sizeof text);
    for (int32_t n = 0; n < 70; n++) cr_assert(bert_vocab_add(&vocab, 3 * n, text, (size_t)n));
    cr_assert_eq(bert_vocab_build(&vocab, "xx", 2, &replaced, NULL), BERT_OK);
    for (int32_t n = 0; n < 70; n++) {
        cr_expect_eq(bert_vocab_id(&vocab, text, (size_t)n), 3 * n);
        cr_expect_eq(bert_vocab_look(&vocab, &vocab.first, (const uint8_t *)text, (size_t)n), 3 * n);
        if (n > 0 && n < 68) cr_expect_eq(bert_vocab_look(&vocab, &vocab.rest, (const uint8_t *)text, (size_t)n), 3 * n + 6);
        cr_expect_eq(bert_vocab_entry_of(&vocab, 3 * n)->len, (uint32_t)n);
        cr_expect_null(bert_vocab_entry_of(&vocab, 3 * n + 1));
    }
    cr_expect_eq(bert_vocab_id(&vocab, "x\0", 2), -1);
    bert_vocab_free(&vocab);
}

/* Slots that the table's spellings lie away from their own, at most. */
static size_t farthest(const bert_vocab *vocab, const bert_vocab_table *table) {
    size_t most = 0;
    for (size_t i = 0; i <= table->mask; i++) {
        if (table->slots[i].id < 0) continue;
        const uint64_t hash = bert_vocab_hash_of(table, bert_vocab_bytes(vocab, table->slots[i].id), table->slots[i].len);
        const size_t away = (i - (size_t)hash) & table->mask;
        if (away > most) most = away;
    }
    return most;
}

/* Spellings that differ in few bits crowd together no more than chance would have them: in their last byte, as
 * numbers, in their first block of 8 bytes; and what was written against a hash whose factor is the usual one: multiples
 * of its inverse, which are neighbours behind the multiplication, and second blocks that undo the first. */
Test(vocab, no_crowds) {
    enum { N = 50000, KINDS = 5 };
    const uint64_t factor = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t inverse = factor; /* Newton: each step doubles the bits that are right */
    for (int i = 0; i < 6; i++) inverse *= 2 - factor * inverse;
    for (int kind = 0; kind < KINDS; kind++) {
        bert_vocab vocab = {.memory = bert_memory_or_default(NULL)};
        size_t replaced;
        for (int32_t id = 0; id < N; id++) {
            char text[24];
            uint64_t blocks[2] = {((uint64_t)id << 40) * inverse ^ 8, 0};
            if (kind == 4) blocks[0] = (uint64_t)id + 1, blocks[1] = blocks[0] * factor ^ blocks[0] * factor >> 32;
            if (kind == 0) snprintf(text, sizeof text, "%07d%c", (int)id / 90, '!' + (int)id % 90);
            else if (kind == 1) snprintf(text, sizeof text, "%08d", (int)id);
            else if (kind == 2) snprintf(text, sizeof text, "%08dabcdefgh", (int)id);
            else memcpy(text, blocks, sizeof blocks);
            cr_assert(bert_vocab_add(&vocab, id, text, kind == 2 || kind == 4 ? 16 : 8));
        }
        cr_assert_eq(bert_vocab_build(&vocab, "##", 2, &replaced, NULL), BERT_OK);
        cr_expect_lt(farthest(&vocab, &vocab.first), 128, "kind %d: %zu", kind, farthest(&vocab, &vocab.first));
        bert_vocab_free(&vocab);
    }
}

/* Words of any length where the file allows them: the pieces are the longest that there are, up to 512 bytes. */
Test(vocab, long_pieces) {
    enum { N = 3000 };
    static char json[4096], piece[600], word[N + 1];
    bert_tokenizer *tokenizer = NULL;
    bert_tokens *tokens = NULL;
    bert_error err = {0};
    memset(word, 'a', N);
    for (int longest = 512; longest <= 513; longest++) {
        memset(piece, 'a', (size_t)longest - 2);
        const int n = snprintf(json, sizeof json,
                               "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"continuing_subword_prefix\":\"##\","
                               "\"max_input_chars_per_word\":1000000000,\"vocab\":{\"u\":0,\"a\":1,\"##a\":2,\"##%s\":3}}}", piece);
        const bert_file files[] = {{"tokenizer.json", json, (size_t)n}};
        const bert_text text = {word, N, NULL, 0};
        const bert_status status = bert_tokenizer_open_files(&tokenizer, files, 1, NULL, &err);
        if (longest == 513) {
            cr_expect_eq(status, BERT_UNSUPPORTED);
            cr_expect_not_null(strstr(err.text, "an entry of 513 bytes"), "%s", err.text);
            break;
        }
        cr_assert_eq(status, BERT_OK, "%s", err.text);
        cr_assert_eq(bert_tokenize(&tokens, tokenizer, &text, 1, NULL, &err), BERT_OK, "%s", err.text);
        const bert_encoding e = bert_tokens_at(tokens, 0, 0);
        const size_t long_ones = (N - 1) / 510, short_ones = (N - 1) % 510;
        cr_assert_eq(e.n, 1 + long_ones + short_ones);
        for (size_t i = 0; i < e.n; i++)
            cr_expect_eq(e.ids[i], i == 0 ? 1 : i <= long_ones ? 3 : 2, "token %zu: %d", i, (int)e.ids[i]);
        bert_tokens_close(&tokens);
        bert_tokenizer_close(&tokenizer);
    }
}

/* An allocator that fails once at the n-th call, and counts what is out. */
typedef struct failing {
    long calls, fail_at, out;
} failing;

static void *get_or_fail(void *user, size_t n, size_t align) {
    failing *f = user;
    void *p = NULL;
    if (++f->calls == f->fail_at || posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, n) != 0) return NULL;
    f->out++;
    return p;
}

static void put_back(void *user, void *p, size_t n) {
    failing *f = user;
    memset(p, 0xDB, n); /* the size must be right */
    f->out--;
    free(p);
}

/* Whatever allocation fails: BERT_NO_MEMORY and nothing leaks; the same tokens then serve the next call. */
static void every_allocation(const char *path) {
    const bert_text texts[] = {{"the cats \xFF na\xC3\xAFve \xE0\xA3\x94\xCC\xA3 [MASK] caf\xC3\xA9 New York ab", 43, NULL, 0}, {"a b c d e f", 11, "g h", 3}};
    const bert_tokenize_options options = {.size = sizeof options, .max_length = 7, .overflow = BERT_OVERFLOW_PARTS, .offsets_cp = 1,
                                           .padding = BERT_PAD_LONGEST, .pad_to_multiple = 16};
    bert_status status = BERT_NO_MEMORY;
    long n = 0;
    while (status == BERT_NO_MEMORY && n < 5000) {
        failing f = {.fail_at = ++n};
        const bert_memory memory = {&f, get_or_fail, put_back};
        const bert_tokenizer_options open = {.size = sizeof open, .memory = &memory};
        bert_tokenizer *tokenizer = NULL;
        bert_tokens *tokens = NULL;
        bert_error err = {0};
        status = bert_tokenizer_open(&tokenizer, path, &open, &err);
        if (status == BERT_OK) {
            status = bert_tokenize(&tokens, tokenizer, texts, 2, &options, &err);
            cr_expect_eq(bert_tokenize(&tokens, tokenizer, texts, 2, &options, &err), BERT_OK, "%ld: %s", n, err.text);
        }
        cr_expect(status == BERT_OK || status == BERT_NO_MEMORY, "%ld: %s", n, err.text);
        bert_tokens_close(&tokens);
        bert_tokenizer_close(&tokenizer);
        cr_expect_eq(f.out, 0, "%ld: %ld blocks leak", n, f.out);
    }
    cr_expect_eq(status, BERT_OK);
    cr_expect_gt(n, 20);
}

/* An added token of no characters is passed over, as in HF: those behind it have the ids that they would have. */
Test(tokenizer, an_empty_added_token_has_no_id) {
    static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", config[] =
        "{\"additional_special_tokens\":[\"\",\"<x>\",\"\",\"<y>\"]}";
    const bert_file files[] = {{"vocab.txt", vocab, sizeof vocab - 1}, {"tokenizer_config.json", config, sizeof config - 1}};
    bert_tokenizer *tokenizer = NULL;
    bert_error err = {0};
    cr_assert_eq(bert_tokenizer_open_files(&tokenizer, files, 2, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(bert_tokenizer_id(tokenizer, "<x>", 3), 6);
    cr_expect_eq(bert_tokenizer_id(tokenizer, "<y>", 3), 7);
    cr_expect_eq(bert_tokenizer_id(tokenizer, "", 0), -1);
    cr_expect_eq(bert_tokenizer_vocab_size(tokenizer), 8);
    bert_tokenizer_close(&tokenizer);
}

Test(tokenizer, allocations_fail) {
    char path[PATH_MAX];
    every_allocation(golden_path(path, "tokenizer/cased/tokenizer.json"));
}

/* Lengths near the largest number wrap in no sum on the way, and what is no choice is not taken for one. */
Test(tokenizer, options_out_of_range) {
    static const char *const files[] = {"vocab.txt", VOCAB, NULL};
    bert_tokenizer *tokenizer = must_open(files);
    const bert_text text = {"the cat", 7, NULL, 0};
    const struct {
        bert_tokenize_options options;
        bert_status status;
    } rows[] = {
        {{.padding = BERT_PAD_FIXED, .pad_length = SIZE_MAX}, BERT_NO_MEMORY},
        {{.padding = BERT_PAD_FIXED, .pad_length = SIZE_MAX - 8}, BERT_NO_MEMORY},
        {{.padding = BERT_PAD_FIXED, .pad_length = SIZE_MAX / 4}, BERT_NO_MEMORY},
        {{.padding = BERT_PAD_LONGEST, .pad_to_multiple = SIZE_MAX}, BERT_NO_MEMORY},
        {{.padding = BERT_PAD_FIXED, .pad_length = SIZE_MAX, .pad_to_multiple = 2}, BERT_INVALID_ARGUMENT},
        {{.max_length = SIZE_MAX, .overflow = BERT_OVERFLOW_PARTS, .stride = SIZE_MAX}, BERT_INVALID_ARGUMENT},
        {{.max_length = SIZE_MAX}, BERT_OK},
        {{.padding = (bert_padding)3}, BERT_INVALID_ARGUMENT},
        {{.padding_side = (bert_side)2}, BERT_INVALID_ARGUMENT},
        {{.truncation = (bert_truncation)4}, BERT_INVALID_ARGUMENT},
        {{.truncation_side = (bert_side)-1}, BERT_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bert_tokens *tokens = NULL;
        bert_error err = {0};
        bert_tokenize_options options = rows[i].options;
        options.size = sizeof options;
        cr_expect_eq(bert_tokenize(&tokens, tokenizer, &text, 1, &options, &err), rows[i].status, "%zu: %s", i, err.text);
        bert_tokens_close(&tokens);
    }
    bert_tokenizer_close(&tokenizer);
}

/* Of vocab.txt; a token that is searched in normalized text takes BERT's own normalizer to the general path. */
Test(tokenizer, allocations_fail_vocab) {
    static const char vocab[] = "\xEF\xBB\xBF" VOCAB;
    static const char config[] = "{\"additional_special_tokens\":[{\"content\":\"the\",\"lstrip\":false,\"rstrip\":false,"
                                 "\"single_word\":false,\"normalized\":true}]}";
    scratch s;
    char folder[PATH_MAX];
    scratch_open(&s);
    scratch_write(&s, "vocab.txt", vocab, sizeof vocab - 1);
    snprintf(folder, sizeof folder, "%s", scratch_write(&s, "tokenizer_config.json", config, sizeof config - 1));
    *strrchr(folder, '/') = '\0';
    every_allocation(folder);
    scratch_close(&s);
}

Test(tokenizer, allocations_fail_general) {
    scratch s;
    char *row = NULL, path[PATH_MAX], *text = NULL;
    size_t len = 0;
    bert_error err;
    bert_json root;
    scratch_open(&s);
    cr_assert_eq(bert_read_text(&row, &len, golden_path(path, "tokenizer/components.jsonl"), 4 << 20, &err), BERT_OK);
    char *rest = row;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && line[0] != '\0';) {
        if (strstr(line, "Replace") == NULL || strstr(line, "Split\\\"") == NULL) continue;
        cr_assert_eq(bert_json_check(&root, line, strlen(line), &err), BERT_OK);
        text = golden_string(golden_member(root, "file"), &len);
        scratch_write(&s, "tokenizer.json", text, len);
        free(text);
        every_allocation(s.path);
        break;
    }
    cr_expect_not_null(text);
    free(row);
    scratch_close(&s);
}
