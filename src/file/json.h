/* file/json.h: what readers of model files need beyond <bert/json.h>. */
#ifndef BERT_FILE_JSON_H
#define BERT_FILE_JSON_H

#include <bert/json.h>

#include <stdbool.h>

/* As bert_json_check, for a file: messages name it, with line and column, and \u0000 is refused, so that every
 * string of the file may become a C string. */
BERT_MUST_USE bert_status bert_json_check_file(bert_json *root, const char *text, size_t len, const char *name,
                                               bert_error *err);

/* The checker behind both. `name` NULL: the text is not a file. */
BERT_MUST_USE bert_status bert_json_check_text(bert_json *root, const char *text, size_t len, const char *name,
                                               bool allow_nul, bert_error *err);

/* A string as a NUL-terminated copy, freed with free(). NULL if it is not a string or there is no memory. */
char *bert_json_dup(bert_json value);

/* 1 if the value is the string `text`. */
int bert_json_equals(bert_json value, const char *text);

/* The value as it is written, fit for a message (base/error.h), a string between its quotes. Returns `text`, of `room`
 * >= 8 bytes. */
const char *bert_json_quote(char *text, size_t room, bert_json value);

/* 1 if the value is true or false; *b is set only then. */
int bert_json_bool(int *b, bert_json value);

/* How many values an array holds, or members an object; 0 for anything else. */
size_t bert_json_count(bert_json container);

/* One character of a checked string, *at being behind the opening quote or where the last call stopped: writes its
 * UTF-8, escapes resolved, and returns the number of bytes; 0 at the closing quote. */
size_t bert_json_character(const char **at, char bytes[4]);

#endif
