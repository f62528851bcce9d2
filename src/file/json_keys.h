/* file/json_keys.h: the keys of the objects that are open while JSON is checked, to find one that is there twice. */
#ifndef BERT_FILE_JSON_KEYS_H
#define BERT_FILE_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bert_json_key {
    uint64_t hash;  /* of its characters, escapes resolved */
    const char *at; /* behind the opening quote */
} bert_json_key;

/* A stack: the keys of the innermost object are the last ones. Starts as {0}; `at` is freed with free(). */
typedef struct bert_json_keys {
    bert_json_key *at;
    size_t n, room;
} bert_json_keys;

/* `at` is behind the opening quote of a checked string. false: no memory. */
bool bert_json_keys_push(bert_json_keys *keys, const char *at);

/* Pops the keys from `first` on, those of an object that closes. NULL if all differ, or else the second of two equal
 * ones. Takes time n for n keys, n log n if they were chosen so that their hashes meet. */
const char *bert_json_keys_pop(bert_json_keys *keys, size_t first);

#endif
