/* text/cells.c: see cells.h. */
#include "text/cells.h"

#include "base/utf8.h"
#include "text/compose.h"
#include "text/unicode.h"

bool bert_cells_read(bert_cells *cells, const bert_memory *memory, const uint8_t *text, size_t begin, size_t end) {
    if (!bert_cells_reserve(cells, memory, end - begin)) return false;
    for (size_t at = begin; at < end;) {
        uint32_t c;
        const size_t next = at + bert_utf8_read(&c, text + at);
        cells->at[cells->n++] = (bert_cell){c, (uint32_t)at, (uint32_t)next};
        at = next;
    }
    return true;
}

bool bert_cells_text(bert_tokens *t, size_t begin, size_t end) {
    t->subject.n = 0;
    for (size_t i = begin; i < end; i++) {
        uint8_t bytes[4];
        if (!bert_bytes_append(&t->subject, &t->memory, bytes, bert_utf8_write(bytes, t->cells.at[i].code)))
            return false;
    }
    return true;
}

/* One character of an edit. change 0: it replaces a character; 1: it is inserted; -n: it replaces n + 1 characters. */
typedef struct edit {
    uint32_t code;
    int32_t change;
} edit;

/* Edits are kept in cells, `start` holding the change. */
static bert_cell edit_cell(uint32_t code, int32_t change) {
    return (bert_cell){code, (uint32_t)change, 0};
}

static edit edit_of(bert_cell cell) {
    return (edit){cell.code, (int32_t)cell.start};
}

static bool decompose(bert_cells *to, const bert_cells *from, const bert_memory *memory, bool compat) {
    to->n = 0;
    for (size_t i = 0; i < from->n; i++) {
        uint32_t parts[BERT_NFKD_MOST];
        const uint32_t c = from->at[i].code;
        const unsigned n = compat ? bert_compat_decompose(parts, c) : bert_char_nfd(parts, c, bert_char_of(c));
        if (!bert_cells_reserve(to, memory, n)) return false;
        for (unsigned k = 0; k < n; k++) to->at[to->n++] = edit_cell(parts[k], k > 0);
    }
    return true;
}

static unsigned combining(bert_cell cell) {
    return bert_char_of(cell.code)->combining;
}

/* A run of combining characters, class by class in ascending order: a stable sort that is linear in the run. */
static void copy_run(bert_cells *to, const bert_cell *run, size_t n) {
    for (unsigned class = 0, next; class < 256; class = next) {
        next = 256;
        for (size_t i = 0; i < n; i++) {
            const unsigned c = combining(run[i]);
            if (c == class) to->at[to->n++] = run[i];
            if (c > class && c < next) next = c;
        }
    }
}

/* Canonical ordering (The Unicode Standard, 3.11). */
static bool order(bert_cells *to, const bert_cells *from, const bert_memory *memory) {
    to->n = 0;
    if (!bert_cells_reserve(to, memory, from->n)) return false;
    for (size_t i = 0, end; i < from->n; i = end) {
        end = i + 1;
        if (combining(from->at[i]) == 0) {
            to->at[to->n++] = from->at[i];
            continue;
        }
        while (end < from->n && combining(from->at[end]) != 0) end++;
        copy_run(to, from->at + i, end - i);
    }
    return true;
}

/* Canonical composition in place: each starter takes in what follows and is not blocked. */
static void compose(bert_cells *edits) {
    size_t kept = 0, starter = SIZE_MAX;
    unsigned last = 0; /* combining class of what stands behind the starter; 0: nothing does */
    for (size_t i = 0; i < edits->n; i++) {
        const bert_cell cell = edits->at[i];
        const unsigned class = combining(cell);
        uint32_t whole;
        if (starter != SIZE_MAX && (last == 0 || last < class) &&
            bert_compose_pair(&whole, edits->at[starter].code, cell.code)) {
            const int32_t change = edit_of(edits->at[starter]).change + edit_of(cell).change - 1;
            edits->at[starter] = edit_cell(whole, change);
            continue;
        }
        if (class == 0) starter = kept;
        last = class;
        edits->at[kept++] = cell;
    }
    edits->n = kept;
}

/* The cells that the edits make of `from`. */
static bool apply(bert_cells *to, const bert_cells *from, const bert_cells *edits, const bert_memory *memory) {
    size_t source = 0;
    to->n = 0;
    if (!bert_cells_reserve(to, memory, edits->n)) return false;
    for (size_t i = 0; i < edits->n; i++) {
        const edit e = edit_of(edits->at[i]);
        size_t span = e.change > 0 && source > 0 ? source - 1 : source;
        if (span >= from->n) span = from->n - 1;
        to->at[to->n++] = (bert_cell){e.code, from->at[span].start, from->at[span].end};
        if (e.change <= 0) source += 1 + (size_t)-e.change;
    }
    return true;
}

bool bert_cells_form(bert_tokens *t, bool compat, bool composed) {
    bert_cells *edits = &t->pieces;
    if (t->cells.n == 0) return true;
    if (!decompose(&t->spare, &t->cells, &t->memory, compat) || !order(edits, &t->spare, &t->memory)) return false;
    if (composed) compose(edits);
    if (!apply(&t->spare, &t->cells, edits, &t->memory)) return false;
    const bert_cells done = t->spare;
    t->spare = t->cells;
    t->cells = done;
    return true;
}
