/* text/order.c: the one-pass BERT path takes combining characters as they come, which is right where all of them are
 * deleted. Where one stays, the run around it is taken out, decomposed and put into canonical order by itself. */
#include "base/utf8.h"
#include "text/ascii.h"
#include "text/cells.h"
#include "text/tokenizer.h"

static bool deleted(const bert_tokenizer *z, uint32_t c, const bert_char *of) {
    return z->normalizer.clean_text && bert_cleaned_away(c, of);
}

/* Does the character belong to a run that began before it? Deleted ones do not interrupt runs. */
static bool continues(const bert_tokenizer *z, uint32_t c) {
    uint32_t nfd[BERT_NFD_MOST];
    const bert_char *of = bert_char_of(c);
    if (deleted(z, c, of)) return true;
    bert_char_nfd(nfd, c, of);
    return bert_char_of(nfd[0])->combining != 0;
}

/* Where the character begins that the run before text[at] stands on. */
static size_t base_of(const bert_tokenizer *z, const uint8_t *text, size_t begin, size_t at) {
    for (uint32_t c; at > begin;) {
        at = bert_utf8_before(&c, text, at);
        if (!continues(z, c)) break;
    }
    return at;
}

static size_t run_end(const bert_tokenizer *z, const uint8_t *text, size_t at, size_t end) {
    for (uint32_t c; at < end;) {
        const unsigned n = bert_utf8_read(&c, text + at);
        if (!continues(z, c)) break;
        at += n;
    }
    return at;
}

/* Keeps what is neither deleted by clean_text nor, once ordered, a mark or (`based`) the base, which is out already. */
static void keep(bert_cells *cells, const bert_tokenizer *z, bool ordered, bool based) {
    size_t kept = 0;
    for (size_t i = 0; i < cells->n; i++) {
        const bert_char *of = bert_char_of(cells->at[i].code);
        const bool out = ordered ? of->flags & BERT_CHAR_MARK || (based && of->combining == 0)
                                 : deleted(z, cells->at[i].code, of);
        if (!out) cells->at[kept++] = cells->at[i];
    }
    cells->n = kept;
}

size_t bert_order(bert_tokens *t, const bert_tokenizer *z, const uint8_t *text, size_t begin, size_t at, size_t end) {
    uint32_t c;
    const size_t next = at + bert_utf8_read(&c, text + at);
    const bool based = continues(z, c);
    const size_t from = based ? base_of(z, text, begin, at) : at;
    const size_t behind = run_end(z, text, next, end);
    t->cells.n = 0;
    if (!bert_cells_read(&t->cells, &t->memory, text, from, behind)) return 0;
    keep(&t->cells, z, false, false);
    if (!bert_cells_form(t, false, false)) return 0;
    keep(&t->cells, z, true, based);
    return behind;
}
