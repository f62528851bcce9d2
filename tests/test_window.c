/* Windows over long texts: which window each token is looked at in. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <bert/bert.h>

static bert_error err;
static bert_tokenizer *tokenizer;

/* 26 words of one letter, so that a token's id says which it is. */
static void setup(void) {
    static const char VOCAB[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\nq\nr\ns\nt\n"
                                "u\nv\nw\nx\ny\nz\n";
    const bert_file file = {"vocab.txt", VOCAB, sizeof VOCAB - 1};
    cr_assert_eq(bert_tokenizer_open_files(&tokenizer, &file, 1, NULL, &err), BERT_OK, "%s", err.text);
}

static void teardown(void) { bert_tokenizer_close(&tokenizer); }
TestSuite(window, .init = setup, .fini = teardown);

static bert_tokens *cut(const bert_text *text, const bert_tokenize_options *options) {
    bert_tokens *tokens = NULL;
    cr_assert_eq(bert_tokenize(&tokens, tokenizer, text, 1, options, &err), BERT_OK, "%s", err.text);
    return tokens;
}

static bert_text text_of(const char *a, const char *b) {
    return (bert_text){a, strlen(a), b, b ? strlen(b) : 0};
}

static bert_tokenize_options windows(size_t window, size_t stride) {
    bert_tokenize_options o = BERT_TOKENIZE_OPTIONS_INIT;
    o.max_length = window;
    o.stride = stride;
    o.overflow = BERT_OVERFLOW_PARTS;
    return o;
}

static void expect_places(const bert_tokens *tokens, size_t n, const size_t expected[][2]) {
    bert_place places[64];
    cr_assert_eq(bert_windows_length(tokens, 0), n);
    bert_windows_place(places, tokens, 0);
    for (size_t t = 0; t < n; t++)
        cr_expect(places[t].part == expected[t][0] && places[t].token == expected[t][1],
                  "token %zu: part %zu, token %zu", t, places[t].part, places[t].token);
}

/* [a b c d] [c d e f] [e f g h]: c has one neighbour on its nearer side in the first window, none in the second. */
Test(window, by_hand) {
    const bert_text text = text_of("a b c d e f g h", NULL);
    const bert_tokenize_options options = windows(6, 2);
    static const size_t PLACES[10][2] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 2}, {2, 3}, {2, 4}, {2, 5}};
    bert_tokens *tokens = cut(&text, &options);
    cr_assert_eq(bert_tokens_parts(tokens, 0), 3);
    expect_places(tokens, 10, PLACES);
    bert_tokens_close(&tokens);
}

/* [a b c d e] [c d e f]: d is one away from an end of both windows, and the earlier one counts. */
Test(window, of_equal_windows_the_earlier_counts) {
    const bert_text text = text_of("a b c d e f", NULL);
    const bert_tokenize_options options = windows(7, 3);
    static const size_t PLACES[8][2] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 3}, {1, 4}, {1, 5}};
    bert_tokens *tokens = cut(&text, &options);
    expect_places(tokens, 8, PLACES);
    bert_tokens_close(&tokens);
}

/* A question stays whole before each part of its context: [CLS] a b [SEP] c d [SEP] / … d e … / … e f …. */
Test(window, the_second_of_a_pair) {
    const bert_text text = text_of("a b", "c d e f");
    bert_tokenize_options options = windows(7, 1);
    static const size_t PLACES[9][2] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {1, 5}, {2, 5}, {2, 6}};
    options.truncation = BERT_ONLY_SECOND;
    bert_tokens *tokens = cut(&text, &options);
    cr_assert_eq(bert_tokens_parts(tokens, 0), 3);
    const bert_encoding part = bert_tokens_at(tokens, 0, 1);
    cr_expect(part.sequences[0].at == 1 && part.sequences[0].first == 0 && part.sequences[0].n == 2);
    cr_expect(part.sequences[1].at == 4 && part.sequences[1].first == 1 && part.sequences[1].n == 2);
    expect_places(tokens, 9, PLACES);
    bert_tokens_close(&tokens);
}

Test(window, short_and_empty_texts_are_where_they_are) {
    static const size_t PLACES[5][2] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}};
    const bert_tokenize_options options = windows(8, 2);
    const bert_text short_text = text_of("a b c", NULL), empty = text_of("", NULL), half = text_of("", "a b");
    bert_tokens *tokens = cut(&short_text, &options);
    expect_places(tokens, 5, PLACES);
    cr_expect_eq(bert_windows_length(tokens, 1), 0);
    bert_tokens_close(&tokens);
    tokens = cut(&empty, &options);
    expect_places(tokens, 2, PLACES);
    bert_tokens_close(&tokens);
    tokens = cut(&half, &options);
    expect_places(tokens, 5, PLACES);
    bert_tokens_close(&tokens);
}

/* ---- Against a search over all windows. ---- */

static size_t min(size_t a, size_t b) { return a < b ? a : b; }

/* The token's letters are all different in a sequence, so its id and type find it in every part. */
static size_t context_in(const bert_encoding *part, int32_t id, int32_t type, size_t *at) {
    size_t begin = part->n, end = 0, found = SIZE_MAX;
    for (size_t k = 0; k < part->n; k++) {
        if (part->special_tokens_mask[k] || part->type_ids[k] != type) continue;
        begin = min(begin, k);
        end = k;
        if (part->ids[k] == id) found = k;
    }
    *at = found;
    return found == SIZE_MAX ? 0 : 1 + min(found - begin, end - found);
}

static void expect_best(const bert_tokens *tokens, bert_place place, int32_t id, int32_t type, const char *about) {
    size_t best = 0, best_part = 0, at, best_at = 0, best_left = 0;
    for (size_t p = 0; p < bert_tokens_parts(tokens, 0); p++) {
        const bert_encoding part = bert_tokens_at(tokens, 0, p);
        const size_t found = context_in(&part, id, type, &at), left = part.sequences[type].first;
        if (found < best || found == 0 || (found == best && left >= best_left)) continue;
        best = found, best_part = p, best_at = at, best_left = left;
    }
    cr_expect(best > 0 && place.part == best_part && place.token == best_at,
              "%s: id %d in part %zu at %zu, expected part %zu at %zu", about, (int)id, place.part, place.token, best_part,
              best_at);
}

static void check_all(const bert_text *text, const bert_tokenize_options *options) {
    char about[128];
    bert_place places[64];
    snprintf(about, sizeof about, "window %zu, stride %zu, truncation %d, side %d, padding %d", options->max_length,
             options->stride, (int)options->truncation, (int)options->truncation_side, (int)options->padding_side);
    bert_tokens *long_one = cut(text, NULL), *tokens = cut(text, options);
    const bert_encoding whole = bert_tokens_at(long_one, 0, 0);
    cr_assert_eq(bert_windows_length(tokens, 0), whole.n, "%s", about);
    bert_windows_place(places, tokens, 0);
    for (size_t t = 0; t < whole.n; t++) {
        const bert_encoding part = bert_tokens_at(tokens, 0, places[t].part);
        cr_assert(places[t].token < part.n, "%s", about);
        cr_expect_eq(part.ids[places[t].token], whole.ids[t], "%s: token %zu", about, t);
        cr_expect_eq(part.type_ids[places[t].token], whole.type_ids[t], "%s: token %zu", about, t);
        if (!whole.special_tokens_mask[t]) expect_best(tokens, places[t], whole.ids[t], whole.type_ids[t], about);
    }
    bert_tokens_close(&long_one);
    bert_tokens_close(&tokens);
}

Test(window, every_window_and_stride_against_a_search) {
    const bert_text single = text_of("a b c d e f g h i j k l m n o p q r s t u v w x y z", NULL);
    for (size_t window = 3; window <= 29; window++)
        for (size_t stride = 0; stride + 2 < window; stride++)
            for (int side = 0; side < 2; side++) {
                bert_tokenize_options options = windows(window, stride);
                options.truncation_side = side ? BERT_LEFT : BERT_RIGHT;
                check_all(&single, &options);
                options.padding = BERT_PAD_FIXED;
                options.pad_length = window + 3;
                options.padding_side = side ? BERT_LEFT : BERT_RIGHT;
                check_all(&single, &options);
            }
}

Test(window, pairs_against_a_search) {
    const bert_text pair = text_of("a b c d e f", "g h i j k l m n o p q r");
    static const bert_truncation WHICH[] = {BERT_ONLY_SECOND, BERT_ONLY_FIRST, BERT_LONGEST_FIRST};
    static const size_t LEAST[] = {10, 16, 7};
    for (int w = 0; w < 3; w++)
        for (size_t window = LEAST[w]; window <= 22; window++)
            for (size_t stride = 0; stride + LEAST[w] <= window && stride < 2; stride++)
                for (int side = 0; side < 2; side++) {
                    bert_tokenize_options options = windows(window, stride);
                    options.truncation = WHICH[w];
                    options.truncation_side = side ? BERT_LEFT : BERT_RIGHT;
                    check_all(&pair, &options);
                }
}

/* Parts that were not kept have no places: what is left of the text has. */
Test(window, a_text_cut_without_overflow) {
    const bert_text text = text_of("a b c d e f g h", NULL);
    bert_tokenize_options options = windows(5, 0);
    static const size_t PLACES[5][2] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}};
    options.overflow = BERT_NO_OVERFLOW;
    for (int side = 0; side < 2; side++) {
        options.truncation_side = side ? BERT_LEFT : BERT_RIGHT;
        bert_tokens *tokens = cut(&text, &options);
        expect_places(tokens, 5, PLACES);
        bert_tokens_close(&tokens);
    }
}
