/* file/header.h: the JSON header of a safetensors file, checked completely, as sorted tables. */
#ifndef BERT_FILE_HEADER_H
#define BERT_FILE_HEADER_H

#include <bert/safetensors.h>

typedef struct bert_metadata {
    const char *key, *value;
} bert_metadata;

typedef struct bert_header {
    bert_tensor_info *tensors; /* [n_tensors], by name */
    size_t n_tensors;
    bert_metadata *metadata; /* [n_metadata], by key */
    size_t n_metadata;
    char *strings; /* every name, key and value, each with its NUL */
} bert_header;

/* text [len] is the header, `data` the offset of the first byte behind it, `size` that of the file's end. Errors name
 * the file, the tensor, what was expected and what was found. Closes the header again on failure. */
BERT_MUST_USE bert_status bert_header_parse(bert_header *header, const char *text, size_t len, const char *name,
                                            uint64_t data, uint64_t size, bert_error *err);
void bert_header_close(bert_header *header);

/* NULL if there is none. */
const bert_tensor_info *bert_header_tensor(const bert_header *header, const char *name);
const char *bert_header_metadata(const bert_header *header, const char *key);

#endif
