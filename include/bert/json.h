/* bert/json.h: strict reading of JSON without building a tree: views into the caller's text.
 *
 * For programs that take requests or records (`--jsonl`, HTTP bodies) and want the same strictness as the model
 * files get: RFC 8259 grammar, valid UTF-8, no duplicate keys in an object, depth at most 64, nothing but white
 * space behind the value. Unlike most C libraries it keeps \u0000 in strings and reads integers exactly.
 * All functions are pure; any thread. Views live as long as the text they point into.
 */
#ifndef BERT_JSON_H
#define BERT_JSON_H

#include <bert/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bert_json_kind {
    BERT_JSON_NULL, BERT_JSON_FALSE, BERT_JSON_TRUE, BERT_JSON_NUMBER,
    BERT_JSON_STRING, BERT_JSON_ARRAY, BERT_JSON_OBJECT
} bert_json_kind;

/* One value of a checked text, byte for byte as written (strings with their quotes). */
typedef struct bert_json {
    const char *at;
    size_t len;
} bert_json;

/* Checks the whole text and sets *root to its value. Error: BERT_BAD_FILE with byte position and cause. */
BERT_API BERT_MUST_USE bert_status bert_json_check(bert_json *root, const char *text, size_t len, bert_error *err);

BERT_API bert_json_kind bert_json_kind_of(bert_json value);

/* Walks an array (key NULL allowed) or an object: start with *place = 0, call until it returns 0.
 * `key` is the member's name as a string view. Only for values that come from bert_json_check. */
BERT_API int bert_json_next(bert_json container, size_t *place, bert_json *key, bert_json *value);

/* The member called `name` (exact bytes after unescaping); 0 if there is none or `object` is not an object. */
BERT_API int bert_json_member(bert_json object, const char *name, bert_json *value);

/* Decodes a string view into `text` (at least value.len bytes), returns the number of bytes written: UTF-8, NUL
 * kept, no terminator. Lone surrogates never occur: bert_json_check refuses them. */
BERT_API size_t bert_json_string(char *text, bert_json value);

/* 1 if the value is an integer written in digits that lies in [low, high]; *n is set only then. */
BERT_API int bert_json_integer(int64_t *n, bert_json value, int64_t low, int64_t high);

/* 1 if the value is a number; *x is the nearest double (independent of the locale). */
BERT_API int bert_json_number(double *x, bert_json value);

#ifdef __cplusplus
}
#endif
#endif
