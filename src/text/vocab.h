/* text/vocab.h: the vocabulary: bytes to id by open addressing, id to bytes; no string is copied to look it up. */
#ifndef BERT_TEXT_VOCAB_H
#define BERT_TEXT_VOCAB_H

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

/* Texts that are looked up must be readable this far beyond their end (the bytes there do not matter). */
#define BERT_VOCAB_PAD 8

typedef struct bert_vocab_slot {
    uint64_t head; /* first 8 bytes, zeros behind the end: all of most spellings */
    uint32_t len;
    int32_t id; /* -1: empty */
} bert_vocab_slot;

/* One set of spellings: words as they begin, or pieces that continue a word (without their prefix). */
typedef struct bert_vocab_table {
    bert_vocab_slot *slots; /* [mask + 1] */
    size_t mask;
    uint64_t *filter; /* [filter_mask + 1] words; a bit that is 0: no spelling has this hash. Fits the first cache */
    size_t filter_mask;
    uint64_t seed, factor; /* of the hash, by chance; the factor is odd */
    size_t skip;    /* bytes of the prefix that the vocabulary's entries have before these spellings */
    size_t longest; /* bytes of the longest spelling */
} bert_vocab_table;

typedef struct bert_vocab_entry {
    int32_t id;
    uint32_t at, len;
} bert_vocab_entry;

typedef struct bert_vocab {
    bert_memory memory;
    uint8_t *bytes; /* all spellings, one behind the other, and BERT_VOCAB_PAD bytes */
    size_t bytes_n, bytes_room;
    bert_vocab_entry *entries; /* ascending ids once built */
    size_t n, room;
    bert_vocab_table first, rest;
} bert_vocab;

/* Makes room at once for so many tokens and their bytes; false: no memory. */
BERT_MUST_USE bool bert_vocab_reserve(bert_vocab *vocab, size_t tokens, size_t bytes);
/* Takes a spelling in; false: no memory, or more than 4 GiB of them. */
BERT_MUST_USE bool bert_vocab_add(bert_vocab *vocab, int32_t id, const char *bytes, size_t len);

/* Makes the tables once all are in; `prefix` marks pieces that continue a word. Of equal spellings the last stays;
 * *replaced counts the others. Equal ids are BERT_BAD_FILE. */
BERT_MUST_USE bert_status bert_vocab_build(bert_vocab *vocab, const char *prefix, size_t prefix_len, size_t *replaced,
                                           bert_error *err);
void bert_vocab_free(bert_vocab *vocab);

/* Id of exactly these bytes (which need no padding), -1 if there is none. */
int32_t bert_vocab_id(const bert_vocab *vocab, const char *bytes, size_t len);

/* NULL if no entry has this id. */
const bert_vocab_entry *bert_vocab_entry_of(const bert_vocab *vocab, int32_t id);

/* Little-endian load; file/dtype.c asserts that the machine is one. */
static inline uint64_t bert_load64(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

static inline uint64_t bert_vocab_word(const uint8_t *text, size_t len) {
    const uint64_t x = bert_load64(text);
    return len >= 8 ? x : x & ((UINT64_C(1) << 8 * len) - 1);
}

/* Hashing: all but the last 1 to 8 bytes enters in blocks of 8, so the state in front of each block serves every
 * spelling that goes on from there. Every block is multiplied by a number that nobody outside knows, and the halves of
 * the product are folded: nobody can write spellings that crowd together. (A product of 128 bits: what there is of C17
 * on 64-bit processors.) */
static inline uint64_t bert_vocab_block(const bert_vocab_table *table, uint64_t state, uint64_t block) {
    const unsigned __int128 product = (unsigned __int128)(state ^ block) * table->factor;
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

static inline uint64_t bert_vocab_end(const bert_vocab_table *table, uint64_t state, uint64_t last, size_t len) {
    return bert_vocab_block(table, state ^ len, last);
}

/* Where the last block of a spelling begins. */
static inline size_t bert_vocab_last(size_t len) {
    return len > 8 ? (len - 1) & ~(size_t)7 : 0;
}

static inline uint64_t bert_vocab_hash(const bert_vocab_table *table, const uint8_t *text, size_t len, uint64_t last) {
    uint64_t state = table->seed;
    for (size_t i = 0; i < bert_vocab_last(len); i += 8) state = bert_vocab_block(table, state, bert_load64(text + i));
    return bert_vocab_end(table, state, last, len);
}

/* Where an entry's bytes begin; only for ids that have an entry. */
static inline const uint8_t *bert_vocab_bytes(const bert_vocab *vocab, int32_t id) {
    const bool in_place = (size_t)id < vocab->n && vocab->entries[id].id == id;
    return vocab->bytes + (in_place ? &vocab->entries[id] : bert_vocab_entry_of(vocab, id))->at;
}

static inline int32_t bert_vocab_search(const bert_vocab *vocab, const bert_vocab_table *table, const uint8_t *text,
                                        size_t len, uint64_t head, uint64_t hash) {
    for (size_t i = hash;; i++) {
        const bert_vocab_slot *slot = &table->slots[i & table->mask];
        if (slot->id < 0) return -1;
        if (slot->head != head || slot->len != len) continue;
        if (len <= 8 || memcmp(bert_vocab_bytes(vocab, slot->id) + table->skip + 8, text + 8, len - 8) == 0)
            return slot->id;
    }
}

/* The id of a spelling of at most 8 bytes, which are the first `len` of `bytes`; what follows them does not matter. */
static inline int32_t bert_vocab_short(const bert_vocab_table *table, uint64_t bytes, size_t len) {
    const uint64_t head = len < 8 ? bytes & ((UINT64_C(1) << 8 * len) - 1) : bytes;
    for (size_t i = bert_vocab_end(table, table->seed, head, len);; i++) {
        const bert_vocab_slot *slot = &table->slots[i & table->mask];
        if (slot->id < 0 || (slot->head == head && slot->len == len)) return slot->id;
    }
}

/* The hash's place in the filter; its low bits are used for the slot. */
static inline bool bert_vocab_may_have(const bert_vocab_table *table, uint64_t hash) {
    return table->filter[(hash >> 26) & table->filter_mask] >> ((hash >> 20) & 63) & 1;
}

static inline uint64_t bert_vocab_hash_of(const bert_vocab_table *table, const uint8_t *text, size_t len) {
    const size_t last = bert_vocab_last(len);
    return bert_vocab_hash(table, text, len, bert_vocab_word(text + last, len - last));
}

/* The id of text[0..len) in the table, -1 if it is not there. */
static inline int32_t bert_vocab_look(const bert_vocab *vocab, const bert_vocab_table *table, const uint8_t *text,
                                      size_t len) {
    const uint64_t head = bert_vocab_word(text, len);
    return bert_vocab_search(vocab, table, text, len, head, bert_vocab_hash_of(table, text, len));
}

#endif
