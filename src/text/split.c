/* text/split.c: the pre-tokenizers of the general path. Each takes the pieces there are and splits them further; a
 * piece is a range of tokens->cells. */
#include "base/error.h"
#include "base/utf8.h"
#include "text/cells.h"
#include "text/general.h"
#include "text/unicode.h"

/* A stretch of a piece, and whether the pattern matched it. */
typedef struct stretches {
    bert_cells *list; /* start, end: cells; code: 1 if matched */
    const bert_memory *memory;
    bool failed;
} stretches;

static void add(stretches *s, size_t start, size_t end, bool matched) {
    if (s->failed || !bert_cells_reserve(s->list, s->memory, 1)) {
        s->failed = true;
        return;
    }
    s->list->at[s->list->n++] = (bert_cell){matched, (uint32_t)start, (uint32_t)end};
}

static bool separates(const bert_splitter *splitter, uint32_t c) {
    const unsigned flags = bert_char_of(c)->flags;
    switch (splitter->kind) {
    case BERT_SPLIT_SPACES: return flags & BERT_CHAR_SPACE;
    case BERT_SPLIT_PUNCTUATION: return flags & BERT_CHAR_PUNCT;
    case BERT_SPLIT_DIGITS: return flags & BERT_CHAR_NUMERIC;
    default: return c == splitter->delimiter;
    }
}

/* Every separating character is a match of its own. */
static void match_characters(stretches *s, const bert_splitter *splitter, const bert_cell *cells, bert_cell piece) {
    size_t done = piece.start;
    for (size_t i = piece.start; i < piece.end; i++) {
        if (!separates(splitter, cells[i].code)) continue;
        if (done < i) add(s, done, i, false);
        add(s, i, i + 1, true);
        done = i + 1;
    }
    if (done < piece.end) add(s, done, piece.end, false);
}

/* \w+|[^\w\s]+ as what is kept: runs of word characters, runs of others, white space between. */
static void match_words(stretches *s, const bert_cell *cells, bert_cell piece) {
    for (size_t i = piece.start, end; i < piece.end; i = end) {
        const unsigned flags = bert_char_of(cells[i].code)->flags & (BERT_CHAR_WORD | BERT_CHAR_SPACE);
        end = i + 1;
        while (end < piece.end && (bert_char_of(cells[end].code)->flags & (BERT_CHAR_WORD | BERT_CHAR_SPACE)) == flags)
            end++;
        add(s, i, end, flags == BERT_CHAR_SPACE);
    }
}

static bert_status match_pattern(stretches *s, const bert_splitter *splitter, bert_tokens *t, bert_cell piece,
                                 bert_error *err) {
    bert_matches matches = {0};
    size_t start, end, done = 0, cell = piece.start;
    bool found;
    bert_status status = BERT_OK;
    if (!bert_cells_text(t, piece.start, piece.end)) return bert_fail(err, BERT_NO_MEMORY, "no memory to split a text");
    TRY_OR_DONE(bert_matches_open(&matches, splitter->pattern, t->subject.at, t->subject.n, &t->work, err));
    for (;;) {
        TRY_OR_DONE(bert_matches_next(&matches, &found, &start, &end, err));
        if (!found) break;
        const size_t first = cell + bert_utf8_count(t->subject.at + done, start - done);
        const size_t last = first + bert_utf8_count(t->subject.at + start, end - start);
        if (cell < first) add(s, cell, first, splitter->invert);
        add(s, first, last, !splitter->invert);
        done = end;
        cell = last;
    }
    if (cell < piece.end) add(s, cell, piece.end, splitter->invert);
done:
    bert_matches_close(&matches);
    return status;
}

/* Does a stretch go on with the one before it? */
static bool joins(bool matched, bool before, bert_behavior behavior) {
    switch (behavior) {
    case BERT_CONTIGUOUS: return matched == before;
    case BERT_MERGED_WITH_PREVIOUS: return matched && !before;
    case BERT_MERGED_WITH_NEXT: return !matched && before;
    default: return false;
    }
}

/* The pieces that the stretches [from, n) make, in their place. Empty ones vanish. */
static void merge(bert_cells *list, size_t from, bert_behavior behavior) {
    size_t kept = from;
    bert_cell last = {0, 0, 0};
    for (size_t i = from; i < list->n; i++) {
        const bert_cell stretch = list->at[i];
        const bool join = i > from && joins(stretch.code, last.code, behavior);
        last = stretch;
        if (join) list->at[kept - 1].end = stretch.end;
        else if (behavior != BERT_REMOVED || !stretch.code) list->at[kept++] = stretch;
    }
    list->n = kept;
    for (size_t i = kept = from; i < list->n; i++)
        if (list->at[i].start < list->at[i].end) list->at[kept++] = list->at[i];
    list->n = kept;
}

static bert_status split_piece(stretches *s, const bert_splitter *splitter, bert_tokens *t, bert_cell piece,
                               bert_error *err) {
    const size_t from = s->list->n;
    if (splitter->kind == BERT_SPLIT_PATTERN) TRY(match_pattern(s, splitter, t, piece, err));
    else if (splitter->kind == BERT_SPLIT_WORDS) match_words(s, t->cells.at, piece);
    else match_characters(s, splitter, t->cells.at, piece);
    if (s->failed) return bert_fail(err, BERT_NO_MEMORY, "no memory to split a text");
    merge(s->list, from, splitter->behavior);
    return BERT_OK;
}

/* Splits all pieces: from tokens->pieces by way of tokens->spare. */
static bert_status split_all(bert_tokens *t, const bert_splitter *splitter, bert_error *err) {
    stretches s = {&t->spare, &t->memory, false};
    t->spare.n = 0;
    for (size_t i = 0; i < t->pieces.n; i++) TRY(split_piece(&s, splitter, t, t->pieces.at[i], err));
    const bert_cells pieces = t->spare;
    t->spare = t->pieces;
    t->pieces = pieces;
    return BERT_OK;
}

bert_status bert_general_split(bert_tokens *t, const bert_general *general, size_t begin, size_t end, bert_error *err) {
    static const bert_splitter spaces = {.kind = BERT_SPLIT_SPACES, .behavior = BERT_REMOVED};
    static const bert_splitter punctuation = {.kind = BERT_SPLIT_PUNCTUATION, .behavior = BERT_ISOLATED};
    t->pieces.n = 0;
    if (!bert_cells_reserve(&t->pieces, &t->memory, 1))
        return bert_fail(err, BERT_NO_MEMORY, "no memory to split a text");
    t->pieces.at[t->pieces.n++] = (bert_cell){0, (uint32_t)begin, (uint32_t)end};
    for (size_t i = 0; i < general->splitters_n; i++) {
        const bert_splitter *splitter = &general->splitters[i];
        if (splitter->kind == BERT_SPLIT_BERT) {
            TRY(split_all(t, &spaces, err));
            TRY(split_all(t, &punctuation, err));
        } else {
            TRY(split_all(t, splitter, err));
        }
    }
    return BERT_OK;
}
