/* text/repair.c: see repair.h. */
#include "text/repair.h"

#include "base/utf8.h"

static bool patch(bert_tokens *t, size_t raw, size_t len) {
    void *at = t->patches.at;
    if (!bert_memory_grow(&t->memory, &at, &t->patches.room, t->patches.n + 1, sizeof *t->patches.at)) return false;
    t->patches.at = at;
    t->patches.at[t->patches.n++] = (bert_patch){(uint32_t)t->repaired.n, (uint32_t)raw, (uint32_t)len};
    return bert_bytes_append(&t->repaired, &t->memory, "\xEF\xBF\xBD", 3);
}

bool bert_repair(bert_tokens *t, const uint8_t **text, size_t *len) {
    t->patches.n = t->repaired.n = 0;
    size_t at = bert_utf8_valid(*text, *len);
    if (at == *len) return true;
    if (!bert_bytes_append(&t->repaired, &t->memory, *text, at)) return false;
    while (at < *len) {
        const size_t bad = bert_utf8_invalid(*text + at, *len - at);
        if (!patch(t, at, bad)) return false;
        at += bad;
        const size_t good = bert_utf8_valid(*text + at, *len - at);
        if (!bert_bytes_append(&t->repaired, &t->memory, *text + at, good)) return false;
        at += good;
        if (t->repaired.n > UINT32_MAX - 3) return false;
    }
    *text = t->repaired.at;
    *len = t->repaired.n;
    return true;
}

/* Patches that begin before `clean`. */
static size_t patches_before(const bert_patches *patches, uint32_t clean) {
    size_t low = 0, high = patches->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (patches->at[middle].clean < clean) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Offsets are at character boundaries, so never inside a U+FFFD. */
static uint32_t given(const bert_patches *patches, uint32_t clean) {
    const size_t n = patches_before(patches, clean);
    if (n == 0) return clean;
    const bert_patch *last = &patches->at[n - 1];
    return last->raw + last->len + (clean - (last->clean + 3));
}

void bert_repair_offsets(bert_columns *columns, size_t from, const bert_patches *patches) {
    for (size_t i = from; patches->n > 0 && i < columns->n; i++) {
        bert_span *span = &columns->offsets[i];
        *span = (bert_span){given(patches, span->start), given(patches, span->end)};
    }
}

/* A place in a text, in bytes and in characters, that moves to where it is needed. */
typedef struct cursor {
    const uint8_t *text;
    uint32_t byte, character;
} cursor;

static uint32_t move(cursor *c, uint32_t to) {
    while (c->byte < to) c->character += (uint32_t)bert_utf8_begins(c->text[c->byte++]);
    while (c->byte > to) c->character -= (uint32_t)bert_utf8_begins(c->text[--c->byte]);
    return c->character;
}

void bert_count_offsets(bert_columns *columns, size_t from, const uint8_t *text) {
    cursor start = {text, 0, 0}, end = start;
    for (size_t i = from; i < columns->n; i++) {
        const bert_span span = columns->offsets[i];
        columns->offsets_cp[i].start = move(&start, span.start);
        columns->offsets_cp[i].end = move(&end, span.end);
    }
}
