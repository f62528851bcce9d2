/* text/normalize.c: the normalizers of the general path, each on tokens->cells. */
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/ascii.h"
#include "text/cells.h"
#include "text/general.h"

static void filter(bert_cells *cells, unsigned flags) {
    size_t kept = 0;
    for (size_t i = 0; i < cells->n; i++)
        if (!(bert_char_of(cells->at[i].code)->flags & flags)) cells->at[kept++] = cells->at[i];
    cells->n = kept;
}

static void clean(bert_cells *cells) {
    size_t kept = 0;
    for (size_t i = 0; i < cells->n; i++) {
        bert_cell cell = cells->at[i];
        const bert_char *of = bert_char_of(cell.code);
        if (bert_cleaned_away(cell.code, of)) continue;
        if (of->flags & BERT_CHAR_SPACE) cell.code = ' ';
        cells->at[kept++] = cell;
    }
    cells->n = kept;
}

static void swap(bert_tokens *t) {
    const bert_cells cells = t->cells;
    t->cells = t->spare;
    t->spare = cells;
}

static bool pad_cjk(bert_tokens *t) {
    t->spare.n = 0;
    if (!bert_cells_reserve(&t->spare, &t->memory, 3 * t->cells.n)) return false;
    for (size_t i = 0; i < t->cells.n; i++) {
        const bert_cell cell = t->cells.at[i], space = {' ', cell.start, cell.end};
        const bool cjk = bert_char_of(cell.code)->flags & BERT_CHAR_CJK;
        if (cjk) t->spare.at[t->spare.n++] = space;
        t->spare.at[t->spare.n++] = cell;
        if (cjk) t->spare.at[t->spare.n++] = space;
    }
    swap(t);
    return true;
}

static bool lowercase(bert_tokens *t) {
    t->spare.n = 0;
    if (!bert_cells_reserve(&t->spare, &t->memory, 2 * t->cells.n)) return false;
    for (size_t i = 0; i < t->cells.n; i++) {
        const bert_cell cell = t->cells.at[i];
        uint32_t lower[2];
        const unsigned n = bert_char_lower(lower, cell.code, bert_char_of(cell.code));
        for (unsigned k = 0; k < n; k++) t->spare.at[t->spare.n++] = (bert_cell){lower[k], cell.start, cell.end};
    }
    swap(t);
    return true;
}

static bool like_bert(bert_tokens *t, const bert_normalizer *options) {
    if (options->clean_text) clean(&t->cells);
    if (options->handle_chinese_chars && !pad_cjk(t)) return false;
    if (options->strip_accents && !bert_cells_form(t, false, false)) return false;
    if (options->strip_accents) filter(&t->cells, BERT_CHAR_MARK);
    return !options->lowercase || lowercase(t);
}

static void strip(bert_cells *cells, bool left, bool right) {
    size_t first = 0, end = cells->n;
    while (left && first < end && bert_char_of(cells->at[first].code)->flags & BERT_CHAR_SPACE) first++;
    while (right && end > first && bert_char_of(cells->at[end - 1].code)->flags & BERT_CHAR_SPACE) end--;
    if (end > first) memmove(cells->at, cells->at + first, (end - first) * sizeof *cells->at);
    cells->n = end - first;
}

/* Appends the characters of a NUL-terminated text, all with one span. */
static bool append(bert_cells *cells, const bert_memory *memory, const char *text, uint32_t start, uint32_t end) {
    const uint8_t *at = (const uint8_t *)text;
    if (!bert_cells_reserve(cells, memory, strlen(text))) return false;
    while (*at != '\0') {
        uint32_t c;
        at += bert_utf8_read(&c, at);
        cells->at[cells->n++] = (bert_cell){c, start, end};
    }
    return true;
}

static bool append_cells(bert_cells *to, const bert_memory *memory, const bert_cell *from, size_t n) {
    if (!bert_cells_reserve(to, memory, n)) return false;
    if (n > 0) memcpy(to->at + to->n, from, n * sizeof *from);
    to->n += n;
    return true;
}

static bool prepend(bert_tokens *t, const char *content) {
    if (t->cells.n == 0) return true;
    const bert_cell first = t->cells.at[0];
    t->spare.n = 0;
    if (!append(&t->spare, &t->memory, content, first.start, first.end) ||
        !append_cells(&t->spare, &t->memory, t->cells.at, t->cells.n))
        return false;
    swap(t);
    return true;
}

/* Normalizers come from a file, texts from anywhere: a few of them in a row could make gigabytes of one line. */
enum { MOST_TIMES = 64, MOST_ANYWAY = 1 << 16 };

static bert_status too_long(size_t most, bert_error *err) {
    return bert_fail(err, BERT_UNSUPPORTED, "tokenizer.json: its normalizers make more than %zu characters of a text "
                                            "(the limit is %d times its length and %d)", most, MOST_TIMES, MOST_ANYWAY);
}

/* What replaces a match takes the span of the last character that it matched, or of the one before if it matched
 * nothing; at the very beginning an empty span. */
static bool replacement(bert_tokens *t, const char *content, size_t end) {
    const uint32_t begin = t->segment_begin;
    const bert_cell before = end > 0 ? t->cells.at[end - 1] : (bert_cell){0, begin, begin};
    return append(&t->spare, &t->memory, content, before.start, before.end);
}

static bert_status replace(bert_tokens *t, const bert_normalize *normalizer, size_t most, bert_error *err) {
    bert_matches matches = {0};
    size_t start = 0, end = 0, done = 0, cell = 0;
    bool found, memory = true;
    bert_status status = BERT_OK;
    if (t->cells.n == 0) return BERT_OK;
    t->spare.n = 0;
    if (!bert_cells_text(t, 0, t->cells.n)) return bert_fail(err, BERT_NO_MEMORY, "no memory to normalize a text");
    TRY_OR_DONE(bert_matches_open(&matches, normalizer->pattern, t->subject.at, t->subject.n, &t->work, err));
    for (;;) {
        TRY_OR_DONE(bert_matches_next(&matches, &found, &start, &end, err));
        if (!found || !memory) break;
        if (t->spare.n > most) TRY_OR_DONE(too_long(most, err));
        const size_t first = cell + bert_utf8_count(t->subject.at + done, start - done);
        const size_t last = first + bert_utf8_count(t->subject.at + start, end - start);
        memory = append_cells(&t->spare, &t->memory, t->cells.at + cell, first - cell) &&
                 replacement(t, normalizer->content, last);
        done = end;
        cell = last;
    }
    memory = memory && append_cells(&t->spare, &t->memory, t->cells.at + cell, t->cells.n - cell);
    if (memory) swap(t);
    else status = bert_fail(err, BERT_NO_MEMORY, "no memory to normalize a text");
done:
    bert_matches_close(&matches);
    return status;
}

static bool one_in_memory(bert_tokens *t, const bert_normalize *n) {
    switch (n->kind) {
    case BERT_NORMALIZE_BERT: return like_bert(t, &n->bert);
    case BERT_NORMALIZE_NFC: return bert_cells_form(t, false, true);
    case BERT_NORMALIZE_NFD: return bert_cells_form(t, false, false);
    case BERT_NORMALIZE_NFKC: return bert_cells_form(t, true, true);
    case BERT_NORMALIZE_NFKD: return bert_cells_form(t, true, false);
    case BERT_NORMALIZE_LOWERCASE: return lowercase(t);
    case BERT_NORMALIZE_STRIP_ACCENTS: filter(&t->cells, BERT_CHAR_ACCENT); return true;
    case BERT_NORMALIZE_STRIP: strip(&t->cells, n->left, n->right); return true;
    default: return prepend(t, n->content);
    }
}

bert_status bert_general_normalize(bert_tokens *t, const bert_general *general, bert_error *err) {
    const size_t most = t->cells.n * MOST_TIMES + MOST_ANYWAY;
    for (size_t i = 0; i < general->normalizers_n; i++) {
        const bert_normalize *n = &general->normalizers[i];
        if (n->kind == BERT_NORMALIZE_REPLACE) TRY(replace(t, n, most, err));
        else if (!one_in_memory(t, n)) return bert_fail(err, BERT_NO_MEMORY, "no memory to normalize a text");
        if (t->cells.n > most) return too_long(most, err);
    }
    return BERT_OK;
}
