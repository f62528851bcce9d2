#include "file/json_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "file/json.h"

/* FNV-1a: good enough for keys that mean no harm. */
static uint64_t hash_of(const char *at) {
    uint64_t hash = 0xcbf29ce484222325u;
    char bytes[4];
    for (size_t n; (n = bert_json_character(&at, bytes)) > 0;) {
        for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

/* Any total order will do in which only equal strings are equal. */
static int compare_strings(const char *a, const char *b) {
    char from_a[4], from_b[4];
    for (;;) {
        const size_t n = bert_json_character(&a, from_a), m = bert_json_character(&b, from_b);
        const int order = n != m ? (n > m) - (n < m) : memcmp(from_a, from_b, n);
        if (order != 0 || n == 0) return order;
    }
}

static int compare(const void *a, const void *b) {
    const bert_json_key *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return compare_strings(x->at, y->at);
}

bool bert_json_keys_push(bert_json_keys *keys, const char *at) {
    if (keys->n == keys->room) {
        const size_t room = keys->room > 0 ? 2 * keys->room : 64;
        size_t bytes;
        bert_json_key *bigger = bert_size_mul(&bytes, room, sizeof *bigger) ? realloc(keys->at, bytes) : NULL;
        if (bigger == NULL) return false;
        keys->at = bigger;
        keys->room = room;
    }
    keys->at[keys->n++] = (bert_json_key){hash_of(at), at};
    return true;
}

/* In a table of twice the size, open addressing. false, with nothing decided, if there is no memory for it or the keys
 * crowd together more than chance would have them. */
static bool find_by_hash(const bert_json_key *keys, size_t n, const char **twin) {
    size_t slots = 64, probes_left = 16 * n;
    while (slots < 2 * n) slots *= 2;
    uint32_t *table = n < UINT32_MAX ? calloc(slots, sizeof *table) : NULL; /* number of the key + 1; 0: free */
    if (table == NULL) return false;
    for (size_t i = 0; i < n && *twin == NULL; i++) {
        size_t slot = (size_t)keys[i].hash & (slots - 1);
        while (table[slot] != 0 && compare(&keys[i], &keys[table[slot] - 1]) != 0 && probes_left > 0) {
            slot = (slot + 1) & (slots - 1);
            probes_left--;
        }
        if (probes_left == 0) break;
        if (table[slot] != 0) *twin = keys[i].at;
        table[slot] = (uint32_t)i + 1;
    }
    free(table);
    return probes_left > 0;
}

static const char *find_by_sorting(bert_json_key *keys, size_t n) {
    qsort(keys, n, sizeof *keys, compare);
    for (size_t i = 1; i < n; i++) {
        if (compare(&keys[i - 1], &keys[i]) == 0) return keys[i - 1].at > keys[i].at ? keys[i - 1].at : keys[i].at;
    }
    return NULL;
}

static const char *find_by_pairs(const bert_json_key *keys, size_t n) {
    for (size_t i = 1; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (compare(&keys[i], &keys[j]) == 0) return keys[i].at;
        }
    }
    return NULL;
}

const char *bert_json_keys_pop(bert_json_keys *keys, size_t first) {
    enum { FEW = 16 };
    const size_t n = keys->n - first;
    const char *twin = NULL;
    keys->n = first;
    if (n < 2) return NULL;
    bert_json_key *from = keys->at + first;
    if (n <= FEW) return find_by_pairs(from, n);
    if (find_by_hash(from, n, &twin)) return twin;
    return find_by_sorting(from, n);
}
