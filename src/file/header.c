/* file/header.c: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …, "__metadata__": {…}}
 *
 * Each entry is checked by itself as it is read (its bytes are shape × dtype); then all of them together, in order of
 * offset: they must cover the file's data from its first byte to its last, without a hole and without overlap.
 */
#include "file/header.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "file/dtype.h"
#include "file/json.h"

/* Integers up to here are exact in every reader, also in those that keep numbers as doubles. */
static const int64_t MAX_INTEGER = (int64_t)1 << 53;

typedef struct parser {
    bert_header *header;
    const char *name; /* of the file */
    uint64_t data, size;
    char *free_string; /* where the next string goes */
    bert_error *err;
} parser;

static int by_string(const void *a, const void *b) { /* tensors and metadata both begin with their name */
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_offset(const void *a, const void *b) {
    const bert_tensor_info *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bert_status tensor_fault(const parser *p, const char *tensor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bert_status tensor_fault(const parser *p, const char *tensor, const char *format, ...) {
    char quoted[160], message[320];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    bert_quote(quoted, sizeof quoted, tensor, strlen(tensor));
    return bert_fail(p->err, BERT_BAD_FILE, "%s: tensor '%s': %s", p->name, quoted, message);
}

static const char *excerpt(char text[64], bert_json value) {
    const bool quotes = value.at[0] == '"';
    return bert_quote(text, 64, value.at + quotes, value.len - 2 * (size_t)quotes);
}

/* Copies a key or value into the header's strings. *len counts the bytes before the NUL that ends it. */
static const char *keep_string(parser *p, bert_json value, size_t *len) {
    char *text = p->free_string;
    *len = bert_json_string(text, value);
    text[*len] = '\0';
    p->free_string += *len + 1;
    return text;
}

/* Names with NUL would end there for C and not for others: two tensors could share what looks like one name. */
static bert_status keep_name(parser *p, const char **name, bert_json key) {
    size_t len;
    *name = keep_string(p, key, &len);
    if (strlen(*name) == len) return BERT_OK;
    char quoted[160];
    return bert_fail(p->err, BERT_BAD_FILE, "%s: the name '%s' contains NUL", p->name,
                     bert_quote(quoted, sizeof quoted, *name, len));
}

static bert_status parse_dtype(const parser *p, bert_tensor_info *tensor, bert_json value) {
    char found[64];
    if (bert_dtype_parse(&tensor->dtype, value)) return BERT_OK;
    return tensor_fault(p, tensor->name, "unknown dtype '%s'", excerpt(found, value));
}

static bert_status parse_shape(const parser *p, bert_tensor_info *tensor, bert_json value) {
    char found[64];
    if (bert_json_kind_of(value) != BERT_JSON_ARRAY) {
        return tensor_fault(p, tensor->name, "shape: expected an array, found '%s'", excerpt(found, value));
    }
    bert_json item;
    for (size_t place = 0; bert_json_next(value, &place, NULL, &item);) {
        int64_t dim;
        if (tensor->rank == BERT_TENSOR_RANK) {
            return tensor_fault(p, tensor->name, "shape: %zu dimensions, at most %d are supported",
                                bert_json_count(value), BERT_TENSOR_RANK);
        }
        if (!bert_json_integer(&dim, item, 0, MAX_INTEGER)) {
            return tensor_fault(p, tensor->name, "shape: expected integers in 0..2^53, found '%s'",
                                excerpt(found, item));
        }
        tensor->shape[tensor->rank++] = (size_t)dim;
    }
    return BERT_OK;
}

static bert_status parse_offsets(const parser *p, bert_tensor_info *tensor, bert_json value) {
    char found[64];
    int64_t offset[2] = {0, -1};
    size_t n = 0;
    bert_json item;
    for (size_t place = 0; n < 3 && bert_json_next(value, &place, NULL, &item); n++) {
        if (n < 2 && !bert_json_integer(&offset[n], item, 0, MAX_INTEGER)) {
            return tensor_fault(p, tensor->name, "data_offsets: expected integers in 0..2^53, found '%s'",
                                excerpt(found, item));
        }
    }
    if (bert_json_kind_of(value) != BERT_JSON_ARRAY || n != 2 || offset[0] > offset[1]) {
        return tensor_fault(p, tensor->name, "data_offsets: expected [begin, end] with begin <= end, found '%s'",
                            excerpt(found, value));
    }
    tensor->offset = p->data + (uint64_t)offset[0];
    tensor->bytes = (uint64_t)(offset[1] - offset[0]);
    return BERT_OK;
}

/* Elements and bytes. Dimensions of 0 are left out of the product until the end: whether a shape overflows must not
 * depend on where its 0 stands. */
static bool shape_bytes(bert_tensor_info *tensor, size_t *bytes) {
    size_t count = 1, bits;
    bool empty = false;
    for (int i = 0; i < tensor->rank; i++) {
        empty = empty || tensor->shape[i] == 0;
        if (tensor->shape[i] > 0 && !bert_size_mul(&count, count, tensor->shape[i])) return false;
    }
    if (!bert_size_mul(&bits, count, bert_dtype_bits(tensor->dtype))) return false;
    if (empty) count = bits = 0;
    tensor->count = count;
    *bytes = bits / 8;
    return bits % 8 == 0;
}

static const char *shape_text(char text[200], const bert_tensor_info *tensor) {
    size_t n = 0;
    for (int i = 0; i < tensor->rank; i++) {
        n += (size_t)snprintf(text + n, 200 - n, "%s%zu", i > 0 ? ", " : "", tensor->shape[i]);
    }
    text[n] = '\0';
    return text;
}

static bert_status check_size(const parser *p, bert_tensor_info *tensor) {
    char shape[200];
    size_t bytes;
    if (!shape_bytes(tensor, &bytes)) {
        return tensor_fault(p, tensor->name, "%s [%s] is not a whole number of bytes below 2^61",
                            bert_dtype_name(tensor->dtype), shape_text(shape, tensor));
    }
    if (bytes == tensor->bytes) return BERT_OK;
    return tensor_fault(p, tensor->name, "%s [%s] takes %zu bytes, data_offsets hold %llu",
                        bert_dtype_name(tensor->dtype), shape_text(shape, tensor), bytes,
                        (unsigned long long)tensor->bytes);
}

/* Fields that the format does not have are passed over, as its reference reader does. */
static bert_status parse_tensor(parser *p, bert_json key, bert_json entry) {
    static bert_status (*const parse[])(const parser *, bert_tensor_info *, bert_json) = {parse_dtype, parse_shape,
                                                                                          parse_offsets};
    static const char *const fields[] = {"dtype", "shape", "data_offsets"};
    bert_tensor_info *tensor = &p->header->tensors[p->header->n_tensors++];
    char found[64];
    TRY(keep_name(p, &tensor->name, key));
    if (bert_json_kind_of(entry) != BERT_JSON_OBJECT) {
        return tensor_fault(p, tensor->name, "expected an object, found '%s'", excerpt(found, entry));
    }
    for (int i = 0; i < 3; i++) {
        bert_json value;
        if (!bert_json_member(entry, fields[i], &value)) return tensor_fault(p, tensor->name, "no %s", fields[i]);
        TRY(parse[i](p, tensor, value));
    }
    return check_size(p, tensor);
}

static bert_status parse_metadata(parser *p, bert_json metadata) {
    bert_header *header = p->header;
    if (bert_json_kind_of(metadata) == BERT_JSON_NULL) return BERT_OK;
    if (bert_json_kind_of(metadata) != BERT_JSON_OBJECT) {
        return bert_fail(p->err, BERT_BAD_FILE, "%s: __metadata__: expected an object of strings", p->name);
    }
    header->metadata = calloc(bert_json_count(metadata) + 1, sizeof *header->metadata);
    if (header->metadata == NULL) return bert_fail(p->err, BERT_NO_MEMORY, "%s: no memory for its metadata", p->name);
    bert_json key, value;
    for (size_t place = 0; bert_json_next(metadata, &place, &key, &value);) {
        bert_metadata *entry = &header->metadata[header->n_metadata++];
        size_t len;
        TRY(keep_name(p, &entry->key, key));
        if (bert_json_kind_of(value) != BERT_JSON_STRING) {
            char quoted[160];
            return bert_fail(p->err, BERT_BAD_FILE, "%s: __metadata__: the value of '%s' is not a string", p->name,
                             bert_quote(quoted, sizeof quoted, entry->key, strlen(entry->key)));
        }
        entry->value = keep_string(p, value, &len);
    }
    qsort(header->metadata, header->n_metadata, sizeof *header->metadata, by_string);
    return BERT_OK;
}

static bert_status parse_entries(parser *p, bert_json root) {
    bert_json key, value;
    for (size_t place = 0; bert_json_next(root, &place, &key, &value);) {
        if (bert_json_equals(key, "__metadata__")) {
            TRY(parse_metadata(p, value));
        } else {
            TRY(parse_tensor(p, key, value));
        }
    }
    return BERT_OK;
}

/* In order of (begin, end): each tensor begins where the one before it ends, and the last one ends with the file. */
static bert_status check_layout(const parser *p) {
    const bert_header *header = p->header;
    uint64_t end = p->data;
    qsort(header->tensors, header->n_tensors, sizeof *header->tensors, by_offset);
    for (size_t i = 0; i < header->n_tensors; i++) {
        const bert_tensor_info *tensor = &header->tensors[i];
        if (tensor->offset != end) {
            return tensor_fault(p, tensor->name, "%s: begins at byte %llu of the data, the one before it ends at %llu",
                                tensor->offset > end ? "a hole before it" : "overlaps another",
                                (unsigned long long)(tensor->offset - p->data), (unsigned long long)(end - p->data));
        }
        end += tensor->bytes;
        if (end > p->size) {
            return tensor_fault(p, tensor->name, "ends at byte %llu of the data, the file has %llu (truncated?)",
                                (unsigned long long)(end - p->data), (unsigned long long)(p->size - p->data));
        }
    }
    if (end == p->size) return BERT_OK;
    return bert_fail(p->err, BERT_BAD_FILE, "%s: %llu bytes behind the last tensor", p->name,
                     (unsigned long long)(p->size - end));
}

static bert_status parse_root(parser *p, bert_json root) {
    bert_header *header = p->header;
    if (bert_json_kind_of(root) != BERT_JSON_OBJECT) {
        return bert_fail(p->err, BERT_BAD_FILE, "%s: the header is not a JSON object", p->name);
    }
    /* What has been decoded, and a NUL instead of two quotes, is never longer than what was written. */
    header->strings = malloc(root.len);
    header->tensors = calloc(bert_json_count(root) + 1, sizeof *header->tensors);
    if (header->strings == NULL || header->tensors == NULL) {
        return bert_fail(p->err, BERT_NO_MEMORY, "%s: no memory for its tables", p->name);
    }
    p->free_string = header->strings;
    TRY(parse_entries(p, root));
    TRY(check_layout(p));
    qsort(header->tensors, header->n_tensors, sizeof *header->tensors, by_string);
    return BERT_OK;
}

bert_status bert_header_parse(bert_header *header, const char *text, size_t len, const char *name, uint64_t data,
                              uint64_t size, bert_error *err) {
    parser p = {.header = header, .name = name, .data = data, .size = size, .err = err};
    bert_json root;
    *header = (bert_header){0};
    TRY(bert_json_check_text(&root, text, len, name, true, err)); /* NUL may stand in metadata */
    const bert_status status = parse_root(&p, root);
    if (status != BERT_OK) bert_header_close(header);
    return status;
}

void bert_header_close(bert_header *header) {
    free(header->tensors);
    free(header->metadata);
    free(header->strings);
    *header = (bert_header){0};
}

const bert_tensor_info *bert_header_tensor(const bert_header *header, const char *name) {
    return bsearch(&name, header->tensors, header->n_tensors, sizeof *header->tensors, by_string);
}

const char *bert_header_metadata(const bert_header *header, const char *key) {
    if (header->n_metadata == 0) return NULL; /* then there is no table, and bsearch wants one */
    const bert_metadata *entry =
        bsearch(&key, header->metadata, header->n_metadata, sizeof *header->metadata, by_string);
    return entry != NULL ? entry->value : NULL;
}
