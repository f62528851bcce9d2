/* text/tokens.c: growing and reading a bert_tokens. */
#include "text/tokens.h"

#include <string.h>

#include "base/size.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

enum { COLUMNS = 7 };

typedef struct column {
    void **at;
    size_t size;
} column;

static void list(column all[COLUMNS], bert_columns *c) {
    const column columns[COLUMNS] = {
        {(void **)&c->ids, sizeof *c->ids},         {(void **)&c->words, sizeof *c->words},
        {(void **)&c->types, sizeof *c->types},     {(void **)&c->offsets, sizeof *c->offsets},
        {(void **)&c->attention, 1},                {(void **)&c->special, 1},
        {(void **)&c->offsets_cp, sizeof *c->offsets_cp},
    };
    memcpy(all, columns, sizeof columns);
}

/* All columns move together, so that a failure leaves them as they were. */
static bool resize(bert_columns *c, const bert_memory *memory, size_t room, bool code_points) {
    column all[COLUMNS];
    void *moved[COLUMNS] = {NULL};
    list(all, c);
    const size_t count = code_points || c->offsets_cp != NULL ? COLUMNS : COLUMNS - 1;
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        if (bert_size_mul(&bytes, room, all[i].size)) moved[i] = memory->get(memory->user, bytes, 64);
        if (moved[i] != NULL) continue;
        while (i-- > 0) bert_memory_free(memory, moved[i], room, all[i].size);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (*all[i].at != NULL) memcpy(moved[i], *all[i].at, c->n * all[i].size);
        bert_memory_free(memory, *all[i].at, c->room, all[i].size);
        *all[i].at = moved[i];
    }
    c->room = room;
    return true;
}

bool bert_columns_reserve(bert_columns *c, const bert_memory *memory, size_t more, bool code_points) {
    size_t need, room;
    if (!bert_size_add(&need, c->n, more)) return false;
    if (need <= c->room && (!code_points || c->offsets_cp != NULL)) return true;
    const size_t half_more = c->room + c->room / 2; /* fits: room counts elements of more than two bytes */
    if (!bert_size_add(&room, need, 16)) return false;
    return resize(c, memory, need > half_more ? room : half_more, code_points);
}

void bert_columns_free(bert_columns *c, const bert_memory *memory) {
    column all[COLUMNS];
    list(all, c);
    for (size_t i = 0; i < COLUMNS; i++) bert_memory_free(memory, *all[i].at, c->room, all[i].size);
    *c = (bert_columns){0};
}

bool bert_word_reserve(bert_word *word, const bert_memory *memory, size_t bytes) {
    if (bytes <= word->room) return true;
    const size_t room = 2 * bytes;
    uint8_t *text = bert_memory_new(memory, room + BERT_VOCAB_PAD, 1);
    uint32_t *start = bert_memory_new(memory, room, sizeof *start), *end = bert_memory_new(memory, room, sizeof *end);
    if (text == NULL || start == NULL || end == NULL) {
        bert_memory_free(memory, text, room + BERT_VOCAB_PAD, 1);
        bert_memory_free(memory, start, room, sizeof *start);
        bert_memory_free(memory, end, room, sizeof *end);
        return false;
    }
    bert_word old = *word;
    if (old.n > 0) {
        memcpy(text, old.bytes, old.n);
        memcpy(start, old.start, old.n * sizeof *start);
        memcpy(end, old.end, old.n * sizeof *end);
    }
    word->bytes = text, word->start = start, word->end = end, word->room = room;
    bert_word_free(&old, memory);
    return true;
}

void bert_word_free(bert_word *word, const bert_memory *memory) {
    bert_memory_free(memory, word->bytes, word->room + BERT_VOCAB_PAD, 1);
    bert_memory_free(memory, word->start, word->room, sizeof *word->start);
    bert_memory_free(memory, word->end, word->room, sizeof *word->end);
}

bool bert_cells_reserve(bert_cells *cells, const bert_memory *memory, size_t more) {
    size_t need;
    void *at = cells->at;
    if (!bert_size_add(&need, cells->n, more)) return false;
    if (!bert_memory_grow(memory, &at, &cells->room, need, sizeof *cells->at)) return false;
    cells->at = at;
    return true;
}

bool bert_bytes_append(bert_bytes *bytes, const bert_memory *memory, const void *from, size_t n) {
    size_t need;
    void *at = bytes->at;
    if (!bert_size_add(&need, bytes->n, n)) return false;
    if (!bert_memory_grow(memory, &at, &bytes->room, need, 1)) return false;
    bytes->at = at;
    if (n > 0) memcpy(bytes->at + bytes->n, from, n);
    bytes->n = need;
    return true;
}

bool bert_spellings_add(bert_spellings *odd, const bert_memory *memory, bert_spelling spelling) {
    void *at = odd->at;
    if (!bert_memory_grow(memory, &at, &odd->room, odd->n + 1, sizeof *odd->at)) return false;
    odd->at = at;
    odd->at[odd->n++] = spelling;
    return true;
}

bool bert_tokens_spell(bert_tokens *t, size_t place, const uint8_t *text, size_t len, const bert_hit *hit) {
    const bool kept = hit->again && len <= t->run_end;
    if (!kept && !bert_bytes_append(&t->spelled, &t->memory, text, len)) return false;
    const size_t end = kept ? t->run_end : t->spelled.n;
    if (hit->run) t->run_end = end;
    return bert_spellings_add(&t->odd, &t->memory, (bert_spelling){place, end - len, len});
}

/* Moves the spellings of the tokens that stay; their bytes are given up when none is left. */
static void drop_spellings(bert_tokens *t, size_t from, size_t n) {
    bert_spellings *odd = &t->odd;
    const size_t first = bert_spellings_find(odd, from), behind = bert_spellings_find(odd, from + n);
    for (size_t i = behind; i < odd->n; i++) {
        odd->at[first + i - behind] = odd->at[i];
        odd->at[first + i - behind].token -= n;
    }
    odd->n -= behind - first;
    if (odd->n == 0) t->spelled.n = t->run_end = 0;
}

/* Takes tokens [from, from + n) of the sequence at hand out of the results. The columns that only a whole text has are
 * not filled yet. */
static void drop(bert_tokens *t, size_t from, size_t n) {
    bert_columns *c = &t->out;
    const size_t behind = c->n - (from + n);
    memmove(c->ids + from, c->ids + from + n, behind * sizeof *c->ids);
    memmove(c->words + from, c->words + from + n, behind * sizeof *c->words);
    memmove(c->offsets + from, c->offsets + from + n, behind * sizeof *c->offsets);
    drop_spellings(t, from, n);
    c->n -= n;
    t->keep.dropped += n;
}

static void drop_unneeded(bert_tokens *t) {
    const bert_keep *keep = &t->keep;
    const size_t n = t->out.n - keep->from;
    if (n > keep->most) drop(t, keep->last ? keep->from : keep->from + keep->most, n - keep->most);
}

bool bert_tokens_reserve(bert_tokens *t, size_t more) {
    if (more > t->out.room - t->out.n) drop_unneeded(t);
    return bert_columns_reserve(&t->out, &t->memory, more, false);
}

void bert_tokens_drop_rest(bert_tokens *t) {
    if (t->keep.dropped > 0) drop_unneeded(t);
}

size_t bert_tokens_count(const bert_tokens *tokens) {
    return tokens ? tokens->texts_n : 0;
}

size_t bert_tokens_parts(const bert_tokens *tokens, size_t i) {
    return i < bert_tokens_count(tokens) ? tokens->texts[i].n : 0;
}

bert_encoding bert_tokens_at(const bert_tokens *tokens, size_t i, size_t part) {
    if (part >= bert_tokens_parts(tokens, i)) return (bert_encoding){0};
    const bert_text_parts *text = &tokens->texts[i];
    const bert_part *p = &tokens->parts[text->first + part];
    const bert_columns *c = &tokens->out;
    return (bert_encoding){.n = p->n,
                           .ids = c->ids + p->start,
                           .type_ids = c->types + p->start,
                           .attention_mask = c->attention + p->start,
                           .special_tokens_mask = c->special + p->start,
                           .offsets = c->offsets + p->start,
                           .offsets_cp = tokens->code_points ? c->offsets_cp + p->start : NULL,
                           .words = c->words + p->start,
                           .sequences = {p->sequences[0], p->sequences[1]},
                           .truncated = p->truncated,
                           .unknown = p->unknown,
                           .invalid_utf8 = text->invalid,
                           .first_invalid = text->first_invalid};
}

size_t bert_spellings_find(const bert_spellings *odd, size_t token) {
    size_t low = 0, high = odd->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (odd->at[middle].token < token) low = middle + 1;
        else high = middle;
    }
    return low;
}

const char *bert_tokens_spelling(const bert_tokens *tokens, size_t i, size_t part, size_t token, size_t *len) {
    *len = 0;
    if (part >= bert_tokens_parts(tokens, i)) return NULL;
    const bert_part *p = &tokens->parts[tokens->texts[i].first + part];
    if (token >= p->n) return NULL;
    const size_t place = p->start + token, found = bert_spellings_find(&tokens->odd, place);
    if (found < tokens->odd.n && tokens->odd.at[found].token == place) {
        *len = tokens->odd.at[found].len;
        return (const char *)tokens->spelled.at + tokens->odd.at[found].at;
    }
    return bert_tokenizer_token(tokens->tokenizer, tokens->out.ids[place], len);
}

void bert_tokens_free_scratch(bert_tokens *t) {
    const bert_memory *memory = &t->memory;
    bert_cells *const cells[] = {&t->cells, &t->spare, &t->pieces};
    bert_bytes *const bytes[] = {&t->repaired, &t->subject, &t->normalized};
    for (size_t i = 0; i < 3; i++) bert_memory_free(memory, cells[i]->at, cells[i]->room, sizeof *t->cells.at);
    for (size_t i = 0; i < 3; i++) bert_memory_free(memory, bytes[i]->at, bytes[i]->room, 1);
    bert_columns_free(&t->kept, memory);
    bert_word_free(&t->word, memory);
    bert_memory_free(memory, t->kept_odd.at, t->kept_odd.room, sizeof *t->kept_odd.at);
    bert_memory_free(memory, t->patches.at, t->patches.room, sizeof *t->patches.at);
}

void bert_tokens_close(bert_tokens **tokens) {
    if (tokens == NULL || *tokens == NULL) return;
    bert_tokens *t = *tokens;
    const bert_memory memory = t->memory;
    bert_tokens_free_scratch(t);
    bert_columns_free(&t->out, &memory);
    bert_memory_free(&memory, t->odd.at, t->odd.room, sizeof *t->odd.at);
    bert_memory_free(&memory, t->spelled.at, t->spelled.room, 1);
    bert_memory_free(&memory, t->parts, t->parts_room, sizeof *t->parts);
    bert_memory_free(&memory, t->texts, t->texts_room, sizeof *t->texts);
    bert_memory_free(&memory, t, 1, sizeof *t);
    *tokens = NULL;
}
