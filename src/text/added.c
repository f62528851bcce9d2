/* text/added.c: searching added tokens: leftmost, longest, not overlapping; a hit that breaks its token's rules is
 * dropped for good, a shorter one is not tried at its place (as in HF). */
#include "text/added.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/unicode.h"

enum { LONGEST = 256 };

static int by_text(const void *a, const void *b) {
    const bert_added_token *x = a, *y = b;
    const int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static bert_status check_length(const bert_added_token *token, bert_error *err) {
    char quoted[64];
    if (token->len <= LONGEST) return BERT_OK;
    return bert_fail(err, BERT_UNSUPPORTED, "the added token \"%s\" has %zu bytes%s, at most %d are supported",
                     bert_quote(quoted, sizeof quoted, (const char *)token->text, token->len), token->len,
                     token->normalized ? " once it is normalized" : "", LONGEST);
}

bert_status bert_added_set_build(bert_added_set *set, bert_error *err) {
    if (set->n > 0) qsort(set->tokens, set->n, sizeof *set->tokens, by_text);
    set->only = -1;
    size_t distinct = 0;
    for (size_t i = 0; i < set->n; i++) {
        const uint8_t first = set->tokens[i].text[0];
        distinct += !set->begins[first];
        set->begins[first] = true;
        set->only = distinct == 1 ? first : -1;
        TRY(check_length(&set->tokens[i], err));
    }
    return BERT_OK;
}

/* First place at or behind `at` where a token may begin; len: none. */
static size_t candidate(const bert_added_search *s, size_t at) {
    if (s->set->only >= 0) {
        const uint8_t *found = at < s->len ? memchr(s->text + at, s->set->only, s->len - at) : NULL;
        return found ? (size_t)(found - s->text) : s->len;
    }
    while (at < s->len && !s->set->begins[s->text[at]]) at++;
    return at;
}

/* In tokens[low, high), which agree in their first `depth` bytes: where those whose next byte is at least `byte`
 * begin. A token that ends at `depth` comes before all of them. */
static size_t lower_bound(const bert_added_token *tokens, size_t low, size_t high, size_t depth, unsigned byte) {
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const bert_added_token *t = &tokens[middle];
        if (t->len <= depth || t->text[depth] < byte) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The longest token at text[0, len): the tokens that agree with the text so far are a range that narrows. */
static const bert_added_token *longest(const bert_added_set *set, const uint8_t *text, size_t len) {
    const bert_added_token *best = NULL;
    size_t low = 0, high = set->n;
    for (size_t depth = 0; low < high && depth < len; depth++) {
        const unsigned byte = text[depth];
        low = lower_bound(set->tokens, low, high, depth, byte);
        high = lower_bound(set->tokens, low, high, depth, byte + 1);
        if (low < high && set->tokens[low].len == depth + 1) best = &set->tokens[low];
    }
    return best;
}

static bool word_before(const uint8_t *text, size_t at) {
    uint32_t c;
    if (at == 0) return false;
    bert_utf8_before(&c, text, at);
    return bert_char_of(c)->flags & BERT_CHAR_WORD;
}

static bool word_behind(const uint8_t *text, size_t at, size_t len) {
    uint32_t c;
    if (at >= len) return false;
    bert_utf8_read(&c, text + at);
    return bert_char_of(c)->flags & BERT_CHAR_WORD;
}

static size_t spaces_before(const uint8_t *text, size_t at, size_t least) {
    while (at > least) {
        uint32_t c;
        const size_t before = bert_utf8_before(&c, text, at);
        if (before < least || !(bert_char_of(c)->flags & BERT_CHAR_SPACE)) break;
        at = before;
    }
    return at;
}

/* Where the white space ends that begins at `at`. Each of its characters may be a hit that takes all behind it: its end
 * is looked for once. */
static size_t spaces_behind(bert_added_search *s, size_t at) {
    if (at >= s->spaces && at < s->spaces_end) return s->spaces_end;
    s->spaces = at;
    while (at < s->len) {
        uint32_t c;
        const unsigned n = bert_utf8_read(&c, s->text + at);
        if (!(bert_char_of(c)->flags & BERT_CHAR_SPACE)) break;
        at += n;
    }
    return s->spaces_end = at;
}

bool bert_added_next(bert_added_search *s, bert_hit *hit) {
    if (s->set->n == 0) return false;
    while ((s->at = candidate(s, s->at)) < s->len) {
        const bert_added_token *token = longest(s->set, s->text + s->at, s->len - s->at);
        if (token == NULL) {
            s->at++;
            continue;
        }
        const size_t start = s->at, end = start + token->len;
        s->at = end;
        if (s->literal && token->special) continue;
        if (token->single_word && (word_before(s->text, start) || word_behind(s->text, end, s->len))) continue;
        *hit = (bert_hit){.token = token, .start = start, .end = end};
        if (token->lstrip) hit->start = start > s->done ? spaces_before(s->text, start, s->done) : s->done;
        if (token->rstrip) hit->end = spaces_behind(s, end);
        if (hit->start >= hit->end) continue; /* all of it went with the hit before */
        hit->run = hit->end > end;
        hit->again = hit->end == s->run_end;
        if (hit->run) s->run_end = hit->end;
        s->done = hit->end;
        return true;
    }
    return false;
}
