/* text/vocab.c: building the vocabulary's tables. */
#include "text/vocab.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/size.h"

bool bert_vocab_reserve(bert_vocab *vocab, size_t tokens, size_t bytes) {
    size_t room;
    void *grown = vocab->bytes, *entries = vocab->entries;
    if (!bert_size_add(&room, bytes, BERT_VOCAB_PAD)) return false;
    const bool done = bert_memory_grow(&vocab->memory, &grown, &vocab->bytes_room, room, 1) &&
                      bert_memory_grow(&vocab->memory, &entries, &vocab->room, tokens, sizeof *vocab->entries);
    vocab->bytes = grown;
    vocab->entries = entries;
    return done;
}

bool bert_vocab_add(bert_vocab *vocab, int32_t id, const char *bytes, size_t len) {
    size_t need;
    if (!bert_size_add(&need, vocab->bytes_n, len) || need > UINT32_MAX - BERT_VOCAB_PAD) return false;
    void *grown = vocab->bytes;
    if (!bert_memory_grow(&vocab->memory, &grown, &vocab->bytes_room, need + BERT_VOCAB_PAD, 1)) return false;
    vocab->bytes = grown;
    void *entries = vocab->entries;
    if (!bert_memory_grow(&vocab->memory, &entries, &vocab->room, vocab->n + 1, sizeof *vocab->entries)) return false;
    vocab->entries = entries;
    memcpy(vocab->bytes + vocab->bytes_n, bytes, len);
    memset(vocab->bytes + need, 0, BERT_VOCAB_PAD);
    vocab->entries[vocab->n++] = (bert_vocab_entry){id, (uint32_t)vocab->bytes_n, (uint32_t)len};
    vocab->bytes_n = need;
    return true;
}

/* A number that who wrote the vocabulary does not know: at least where memory happens to be. */
static uint64_t by_chance(const void *place) {
    uint64_t x = (uintptr_t)place * UINT64_C(0x9E3779B97F4A7C15);
    (void)!getrandom(&x, sizeof x, GRND_NONBLOCK);
    return x;
}

static bool table_open(bert_vocab *vocab, bert_vocab_table *table, size_t n, size_t skip) {
    size_t slots = 64;
    while (slots < 2 * n) slots *= 2;
    *table = (bert_vocab_table){.mask = slots - 1, .filter_mask = slots / 16 - 1, .skip = skip};
    table->slots = bert_memory_new(&vocab->memory, slots, sizeof *table->slots);
    table->filter = bert_memory_new(&vocab->memory, slots / 16, sizeof *table->filter);
    if (table->slots == NULL || table->filter == NULL) return false;
    table->seed = by_chance(table->slots);
    table->factor = by_chance(table->filter) * 2 + 1;
    for (size_t i = 0; i < slots; i++) table->slots[i].id = -1;
    return true;
}

static void table_free(const bert_vocab *vocab, bert_vocab_table *table) {
    bert_memory_free(&vocab->memory, table->slots, table->mask + 1, sizeof *table->slots);
    bert_memory_free(&vocab->memory, table->filter, table->filter_mask + 1, sizeof *table->filter);
}

/* Returns the id that the spelling had before, -1 if it is new. */
static int32_t table_put(const bert_vocab *vocab, bert_vocab_table *table, bert_vocab_entry entry) {
    const uint8_t *text = vocab->bytes + entry.at + table->skip;
    const size_t len = entry.len - table->skip;
    const uint64_t head = bert_vocab_word(text, len);
    const uint64_t hash = bert_vocab_hash_of(table, text, len);
    const int32_t before = bert_vocab_search(vocab, table, text, len, head, hash);
    size_t i = hash & table->mask;
    while (table->slots[i].id != before) i = (i + 1) & table->mask;
    table->slots[i] = (bert_vocab_slot){head, (uint32_t)len, entry.id};
    table->filter[(hash >> 26) & table->filter_mask] |= UINT64_C(1) << ((hash >> 20) & 63);
    if (len > table->longest) table->longest = len;
    return before;
}

static int by_id(const void *a, const void *b) {
    const int32_t x = ((const bert_vocab_entry *)a)->id, y = ((const bert_vocab_entry *)b)->id;
    return (x > y) - (x < y);
}

static bool ascending(const bert_vocab *vocab) {
    for (size_t i = 1; i < vocab->n; i++)
        if (vocab->entries[i].id <= vocab->entries[i - 1].id) return false;
    return true;
}

static bert_status sort_entries(bert_vocab *vocab, bert_error *err) {
    if (ascending(vocab)) return BERT_OK;
    qsort(vocab->entries, vocab->n, sizeof *vocab->entries, by_id);
    for (size_t i = 1; i < vocab->n; i++) {
        const bert_vocab_entry *a = &vocab->entries[i - 1], *b = &vocab->entries[i];
        if (a->id != b->id) continue;
        char x[64], y[64];
        return bert_fail(err, BERT_BAD_FILE, "vocabulary: id %d is given to two tokens, \"%s\" and \"%s\"", (int)a->id,
                         bert_quote(x, sizeof x, (const char *)vocab->bytes + a->at, a->len),
                         bert_quote(y, sizeof y, (const char *)vocab->bytes + b->at, b->len));
    }
    return BERT_OK;
}

/* Entries whose spelling came again later have lost their id's token: HF's map from id to token has no such id. */
static void drop_replaced(bert_vocab *vocab) {
    size_t kept = 0;
    for (size_t i = 0; i < vocab->n; i++) {
        const bert_vocab_entry entry = vocab->entries[i];
        if (bert_vocab_look(vocab, &vocab->first, vocab->bytes + entry.at, entry.len) != entry.id)
            vocab->entries[i].len = UINT32_MAX;
    }
    for (size_t i = 0; i < vocab->n; i++)
        if (vocab->entries[i].len != UINT32_MAX) vocab->entries[kept++] = vocab->entries[i];
    vocab->n = kept;
}

/* Is the entry a piece that continues a word? */
static bool continues(const bert_vocab *vocab, const bert_vocab_entry *entry, const char *prefix, size_t prefix_len) {
    return entry->len > prefix_len && memcmp(vocab->bytes + entry->at, prefix, prefix_len) == 0;
}

bert_status bert_vocab_build(bert_vocab *vocab, const char *prefix, size_t prefix_len, size_t *replaced,
                             bert_error *err) {
    size_t rest = 0;
    *replaced = 0;
    TRY(sort_entries(vocab, err));
    for (size_t i = 0; i < vocab->n; i++) rest += continues(vocab, &vocab->entries[i], prefix, prefix_len);
    if (!table_open(vocab, &vocab->first, vocab->n, 0) || !table_open(vocab, &vocab->rest, rest, prefix_len))
        return bert_fail(err, BERT_NO_MEMORY, "no memory for a vocabulary of %zu tokens", vocab->n);
    for (size_t i = 0; i < vocab->n; i++) {
        const bert_vocab_entry entry = vocab->entries[i];
        const int32_t before = table_put(vocab, &vocab->first, entry);
        if (before >= 0) (*replaced)++;
        if (continues(vocab, &entry, prefix, prefix_len)) (void)table_put(vocab, &vocab->rest, entry);
    }
    if (*replaced > 0) drop_replaced(vocab);
    return BERT_OK;
}

void bert_vocab_free(bert_vocab *vocab) {
    const bert_memory *memory = &vocab->memory;
    bert_memory_free(memory, vocab->bytes, vocab->bytes_room, 1);
    bert_memory_free(memory, vocab->entries, vocab->room, sizeof *vocab->entries);
    table_free(vocab, &vocab->first);
    table_free(vocab, &vocab->rest);
}

int32_t bert_vocab_id(const bert_vocab *vocab, const char *bytes, size_t len) {
    if (vocab->n == 0 || len > vocab->first.longest) return -1;
    const uint8_t *text = (const uint8_t *)bytes;
    const size_t at = bert_vocab_last(len);
    uint64_t head = 0, last = 0; /* loaded by memcpy: the bytes may end where a page does */
    if (len > 0) memcpy(&head, bytes, len < 8 ? len : 8);
    if (len > 0) memcpy(&last, bytes + at, len - at);
    return bert_vocab_search(vocab, &vocab->first, text, len, head, bert_vocab_hash(&vocab->first, text, len, last));
}

const bert_vocab_entry *bert_vocab_entry_of(const bert_vocab *vocab, int32_t id) {
    if (id < 0) return NULL;
    if ((size_t)id < vocab->n && vocab->entries[id].id == id) return &vocab->entries[id];
    const bert_vocab_entry key = {id, 0, 0};
    return vocab->n ? bsearch(&key, vocab->entries, vocab->n, sizeof key, by_id) : NULL;
}
