/* text/general.c: the general path: a segment as cells, through normalizers and pre-tokenizers one after another. */
#include "text/general.h"

#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/cells.h"
#include "text/encode.h"
#include "text/pattern.h"

bool bert_general_add_normalizer(bert_general *general, bert_normalize normalizer) {
    void *at = general->normalizers;
    if (!bert_memory_grow(&general->memory, &at, &general->normalizers_room, general->normalizers_n + 1,
                          sizeof normalizer))
        return false;
    general->normalizers = at;
    general->normalizers[general->normalizers_n++] = normalizer;
    return true;
}

bool bert_general_add_splitter(bert_general *general, bert_splitter splitter) {
    void *at = general->splitters;
    if (!bert_memory_grow(&general->memory, &at, &general->splitters_room, general->splitters_n + 1, sizeof splitter))
        return false;
    general->splitters = at;
    general->splitters[general->splitters_n++] = splitter;
    return true;
}

void bert_general_free(bert_general *general) {
    const bert_memory memory = general->memory;
    for (size_t i = 0; i < general->normalizers_n; i++) {
        bert_normalize *n = &general->normalizers[i];
        if (n->content != NULL) bert_memory_free(&memory, n->content, strlen(n->content) + 1, 1);
        bert_pattern_close(&n->pattern);
    }
    for (size_t i = 0; i < general->splitters_n; i++) bert_pattern_close(&general->splitters[i].pattern);
    bert_memory_free(&memory, general->normalizers, general->normalizers_room, sizeof *general->normalizers);
    bert_memory_free(&memory, general->splitters, general->splitters_room, sizeof *general->splitters);
    bert_memory_free(&memory, general, 1, sizeof *general);
}

/* A word made of cells [begin, end), to the model. */
static bool look_up(bert_tokens *t, const bert_tokenizer *z, const bert_cell *cells, size_t n) {
    bert_word *word = &t->word;
    const size_t kept = n > z->max_chars ? 0 : n;
    word->n = 0;
    if (!bert_word_reserve(word, &t->memory, 4 * kept)) return false;
    for (size_t i = 0; i < kept; i++) {
        word->start[word->n] = cells[i].start;
        word->n += bert_utf8_write(word->bytes + word->n, cells[i].code);
        word->end[word->n - 1] = cells[i].end;
    }
    word->chars = n;
    word->first = cells[0].start;
    word->last = cells[n - 1].end;
    const bool done = bert_wordpiece(t, z);
    word->n = word->chars = 0;
    return done;
}

/* Words of cells [begin, end), in which no added token is. */
static bert_status words(bert_tokens *t, const bert_tokenizer *z, size_t begin, size_t end, bert_error *err) {
    if (begin >= end) return BERT_OK;
    TRY(bert_general_split(t, z->general, begin, end, err));
    for (size_t i = 0; i < t->pieces.n; i++) {
        const bert_cell piece = t->pieces.at[i];
        if (!look_up(t, z, t->cells.at + piece.start, piece.end - piece.start))
            return bert_fail(err, BERT_NO_MEMORY, "no memory for tokens");
    }
    return BERT_OK;
}

static size_t cells_in(const bert_bytes *text, size_t from, size_t to) {
    return bert_utf8_count(text->at + from, to - from);
}

/* Splits at the added tokens that are searched in normalized text, which is kept apart from tokens->subject because
 * words() uses that for its own purposes. */
static bert_status at_added(bert_tokens *t, const bert_tokenizer *z, bool literal, bert_error *err) {
    bert_bytes *normalized = &t->normalized;
    size_t start = 0, start_cell = 0, run_cell = 0, done_cell = 0; /* of hits before; they begin in order */
    bert_hit hit;
    normalized->n = 0;
    if (!bert_cells_text(t, 0, t->cells.n) || !bert_bytes_append(normalized, &t->memory, t->subject.at, t->subject.n))
        return bert_fail(err, BERT_NO_MEMORY, "no memory for a normalized text");
    bert_added_search search = {.set = &z->added.normalized, .text = normalized->at, .len = normalized->n,
                                .literal = literal};
    while (bert_added_next(&search, &hit)) {
        const size_t first = start_cell + cells_in(normalized, start, hit.start);
        const size_t last = hit.again ? run_cell : first + cells_in(normalized, hit.start, hit.end);
        const bert_span span = {t->cells.at[first].start, t->cells.at[last - 1].end};
        TRY(words(t, z, done_cell, first, err));
        if (!bert_sequence_hit(t, normalized->at + hit.start, hit.end - hit.start, &hit, span))
            return bert_fail(err, BERT_NO_MEMORY, "no memory for tokens");
        start = hit.start;
        start_cell = first;
        done_cell = last;
        if (hit.run) run_cell = last;
    }
    return words(t, z, done_cell, t->cells.n, err);
}

bert_status bert_general_segment(bert_tokens *t, const bert_tokenizer *z, const uint8_t *text, size_t begin, size_t end,
                                 bool literal, bert_error *err) {
    t->cells.n = 0;
    t->segment_begin = (uint32_t)begin;
    if (!bert_cells_read(&t->cells, &t->memory, text, begin, end))
        return bert_fail(err, BERT_NO_MEMORY, "no memory for a text of %zu bytes", end - begin);
    TRY(bert_general_normalize(t, z->general, err));
    if (z->added.normalized.n > 0) return at_added(t, z, literal, err);
    return words(t, z, 0, t->cells.n, err);
}

static bert_status no_memory_for_added(bert_error *err) {
    return bert_fail(err, BERT_NO_MEMORY, "no memory to normalize added tokens");
}

static void place_forms(bert_added_set *set, const bert_bytes *forms) {
    size_t at = 0, kept = 0;
    for (size_t i = 0; i < set->n; i++) {
        bert_added_token token = set->tokens[i];
        if (token.len == 0) continue;
        token.text = forms->at + at;
        at += token.len;
        set->tokens[kept++] = token;
    }
    set->n = kept;
}

/* Appends the normalized form of a token's content. */
static bert_status append_form(bert_bytes *forms, bert_tokens *t, const bert_tokenizer *z, bert_added_token *token,
                               bert_error *err) {
    t->cells.n = 0;
    if (!bert_cells_read(&t->cells, &t->memory, token->text, 0, token->len)) return no_memory_for_added(err);
    TRY(bert_general_normalize(t, z->general, err));
    if (!bert_cells_text(t, 0, t->cells.n) || !bert_bytes_append(forms, &z->memory, t->subject.at, t->subject.n))
        return no_memory_for_added(err);
    token->len = t->subject.n;
    return BERT_OK;
}

/* Forms of all contents go into one block; tokens whose form is empty are never found. */
bert_status bert_general_normalize_added(bert_tokenizer *z, bert_error *err) {
    bert_added_set *set = &z->added.normalized;
    bert_tokens scratch = {.memory = z->memory};
    bert_bytes forms = {0};
    bert_status status = BERT_OK;
    size_t bytes = 0;
    for (size_t i = 0; i < set->n; i++) bytes += set->tokens[i].len;
    scratch.work = bert_matches_work(bytes);
    for (size_t i = 0; i < set->n && status == BERT_OK; i++)
        status = append_form(&forms, &scratch, z, &set->tokens[i], err);
    z->normalized_contents = forms.at;
    z->normalized_room = forms.room;
    if (status == BERT_OK) {
        place_forms(set, &forms);
        status = bert_added_set_build(set, err);
    }
    bert_tokens_free_scratch(&scratch);
    return status;
}
