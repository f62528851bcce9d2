/* task/window.c: in which of its overlapping windows each token of a long text is to be looked at. */
#include <bert/window.h>

#include <stdint.h>

/* One sequence of text i: which of its tokens the parts have between them. */
typedef struct sequence {
    const bert_tokens *tokens;
    size_t text;
    int which;       /* 0 or 1 */
    size_t begin, n; /* begin is not 0 only where a text was cut on the left, and nothing else was kept */
} sequence;

static bert_stretch stretch_of(const sequence *s, size_t part) {
    return bert_tokens_at(s->tokens, s->text, part).sequences[s->which];
}

static sequence find_sequence(const bert_tokens *tokens, size_t text, int which) {
    const size_t parts = bert_tokens_parts(tokens, text);
    sequence s = {tokens, text, which, 0, 0};
    size_t begin = SIZE_MAX, end = 0;
    for (size_t part = 0; part < parts; part++) {
        const bert_stretch x = stretch_of(&s, part);
        if (x.n == 0) continue;
        if (x.first < begin) begin = x.first;
        if (x.first + x.n > end) end = x.first + x.n;
    }
    if (end == 0) return s;
    s.begin = begin;
    s.n = end - begin;
    return s;
}

size_t bert_windows_length(const bert_tokens *tokens, size_t i) {
    const bert_encoding part = bert_tokens_at(tokens, i, 0);
    size_t n = find_sequence(tokens, i, 0).n + find_sequence(tokens, i, 1).n;
    for (size_t k = 0; k < part.n; k++) n += part.attention_mask[k] != 0;
    return n - part.sequences[0].n - part.sequences[1].n;
}

/* How far the k-th of n tokens is from the nearer end. */
static size_t context(size_t k, size_t n) { return k < n - 1 - k ? k : n - 1 - k; }

/* Whether the k-th token of stretch x has a better place there than at `now`. */
static int is_better(const sequence *s, bert_stretch x, size_t k, bert_place now) {
    if (now.part == SIZE_MAX) return 1;
    const bert_stretch y = stretch_of(s, now.part);
    const size_t here = context(k, x.n), there = context(now.token - y.at, y.n);
    return here != there ? here > there : x.first < y.first;
}

/* places [s->n] */
static void place_sequence(bert_place *places, const sequence *s) {
    const size_t parts = bert_tokens_parts(s->tokens, s->text);
    for (size_t t = 0; t < s->n; t++) places[t].part = SIZE_MAX;
    for (size_t part = 0; part < parts; part++) {
        const bert_stretch x = stretch_of(s, part);
        bert_place *own = places + (x.first - s->begin);
        for (size_t k = 0; k < x.n; k++)
            if (is_better(s, x, k, own[k])) own[k] = (bert_place){part, x.at + k};
    }
}

/* The order is that of part 0. Where a sequence ends in the whole text it ends in the window of its last token too, so
 * what the template has behind it stands behind that token, and likewise in front. */
void bert_windows_place(bert_place *places, const bert_tokens *tokens, size_t i) {
    const bert_encoding part = bert_tokens_at(tokens, i, 0);
    const sequence sequences[2] = {find_sequence(tokens, i, 0), find_sequence(tokens, i, 1)};
    const int first = part.sequences[1].at < part.sequences[0].at;
    size_t n = 0, front = SIZE_MAX; /* added tokens before the first sequence */
    for (size_t k = 0; k <= part.n; k++) {
        for (int turn = 0; turn < 2; turn++) {
            const int s = turn == 0 ? first : 1 - first;
            if (sequences[s].n == 0 || part.sequences[s].at != k) continue;
            place_sequence(places + n, &sequences[s]);
            if (front == SIZE_MAX) front = n;
            n += sequences[s].n;
            k += part.sequences[s].n;
        }
        if (k == part.n || !part.attention_mask[k]) continue;
        places[n] = (bert_place){0, k};
        if (front != SIZE_MAX) places[n] = (bert_place){places[n - 1].part, places[n - 1].token + 1};
        n++;
    }
    for (size_t k = front; k != SIZE_MAX && k-- > 0;)
        places[k] = (bert_place){places[k + 1].part, places[k + 1].token - 1};
}
