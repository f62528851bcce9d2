/* text/decode.c: ids back to text as HF's WordPiece decoder does it: pieces that continue a word are joined to it,
 * others follow a space; clean_up takes spaces away where English has none. */
#include "text/decode.h"

#include <string.h>

#include "text/tokenizer.h"

static void put(bert_decoder *out, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++, out->n++)
        if (out->n < out->room) out->text[out->n] = bytes[i];
}

/* The added token with this id, NULL: it is not an added token. */
static const bert_added_token *added(const bert_tokenizer *z, int32_t id) {
    if (bert_vocab_entry_of(&z->extra, id) == NULL) return NULL;
    for (int k = 0; k < 2; k++) {
        const bert_added_set *set = k == 0 ? &z->added.raw : &z->added.normalized;
        for (size_t i = 0; i < set->n; i++)
            if (set->tokens[i].id == id) return &set->tokens[i];
    }
    return NULL;
}

/* What HF decodes an id to: for an added token that is searched in normalized text the normalized form, which then
 * does not count as special. NULL: no such id, or it is to be skipped. */
static const char *token_of(const bert_tokenizer *z, int32_t id, bool skip_special, size_t *len) {
    const char *token = bert_tokenizer_token(z, id, len);
    const bert_added_token *a = added(z, id);
    if (a == NULL) return token;
    const bool changed = a->len != *len || memcmp(a->text, token, *len) != 0;
    if (skip_special && a->special && !changed) return NULL;
    *len = a->len;
    return (const char *)a->text;
}

/* HF's list, each rule applied to the whole token before the next one. */
static const char *const rules[][2] = {{" .", "."},      {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                       {" ' ", "'"},     {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                       {" 's", "'s"},    {" 've", "'ve"}, {" 're", "'re"}};
enum { RULES = sizeof rules / sizeof *rules, MOST_CLEANED = 256 };

/* Replaces from left to right; a rule never makes a text longer. */
static size_t apply(const char *const rule[2], char *text, size_t n) {
    const size_t from = strlen(rule[0]), to = strlen(rule[1]);
    size_t kept = 0;
    for (size_t i = 0; i < n;) {
        if (n - i >= from && memcmp(text + i, rule[0], from) == 0) {
            memmove(text + kept, rule[1], to);
            kept += to;
            i += from;
        } else {
            text[kept++] = text[i++];
        }
    }
    return kept;
}

/* A token as it is appended, with the space before it. HF cleans each token by itself; only short ones can match. */
static void put_token(bert_decoder *out, const char *token, size_t n, bool space, bool clean_up) {
    char text[MOST_CLEANED + 1];
    if (!clean_up || n > MOST_CLEANED) {
        if (space) put(out, " ", 1);
        put(out, token, n);
        return;
    }
    size_t len = 0;
    if (space) text[len++] = ' ';
    if (n > 0) memcpy(text + len, token, n);
    len += n;
    for (int i = 0; i < RULES; i++) len = apply(rules[i], text, len);
    put(out, text, len);
}

void bert_decode_token(bert_decoder *out, const char *token, size_t len) {
    const char *prefix = out->tokenizer->decoder_prefix;
    const size_t prefix_len = prefix != NULL ? strlen(prefix) : 0;
    const bool joins = prefix != NULL && out->begun && len >= prefix_len && memcmp(token, prefix, prefix_len) == 0;
    if (joins) token += prefix_len, len -= prefix_len;
    put_token(out, token, len, out->begun && !joins, out->clean_up && prefix != NULL);
    out->begun = true;
}

size_t bert_tokenizer_decode(const bert_tokenizer *z, char *text, size_t room, const int32_t *ids, size_t n,
                             int skip_special_tokens, int clean_up) {
    bert_decoder out = {.tokenizer = z, .clean_up = clean_up != 0, .text = text, .room = room};
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *token = token_of(z, ids[i], skip_special_tokens != 0, &len);
        if (token != NULL) bert_decode_token(&out, token, len);
    }
    return out.n;
}
