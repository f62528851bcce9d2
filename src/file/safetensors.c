/* file/safetensors.c: opening a container and reading from it. What its header may say is header.c's business. */
#include "file/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "file/dtype.h"
#include "file/header.h"

enum { HEADER_LIMIT = 16 << 20, BLOCK = 16 << 10 };

struct bert_safetensors {
    bert_source *source;
    bert_header header;
};

/* What people hand over instead, by its first bytes. */
static const char *foreign_format(const char *bytes, size_t len) {
    static const struct {
        const char *magic;
        size_t len;
        const char *what;
    } formats[] = {
        {"version ", 8, "a Git LFS pointer, not the file itself (git lfs pull fetches it)"},
        {"PK\3\4", 4, "a ZIP archive, as pytorch_model.bin is (convert it to safetensors)"},
        {"\x80\2", 2, "a pickle (convert it to safetensors)"},
        {"GGUF", 4, "a GGUF file"},
        {"\x93NUMPY", 6, "a .npy file"},
        {"\x89HDF", 4, "an HDF5 file"},
        {"\x1f\x8b", 2, "compressed with gzip"},
        {"<!DOCTYP", 8, "a web page"},
        {"<!doctyp", 8, "a web page"},
        {"<html", 5, "a web page"},
        {"{\"", 2, "JSON without the 8-byte header length"},
    };
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (len >= formats[i].len && memcmp(bytes, formats[i].magic, formats[i].len) == 0) return formats[i].what;
    }
    return NULL;
}

/* *n is proven to lie inside the file before anyone allocates as much. */
static bert_status header_length(size_t *n, const bert_source *source, bert_error *err) {
    const char *name = bert_source_name(source);
    const uint64_t size = bert_source_size(source);
    char bytes[8] = {0};
    const size_t have = size < sizeof bytes ? (size_t)size : sizeof bytes;
    TRY(bert_source_read(source, 0, bytes, have, err));
    uint64_t length;
    memcpy(&length, bytes, sizeof length);
    if (size >= sizeof bytes && length <= HEADER_LIMIT && length <= size - sizeof bytes) {
        *n = (size_t)length;
        return BERT_OK;
    }
    const char *foreign = foreign_format(bytes, have);
    if (foreign != NULL) return bert_fail(err, BERT_BAD_FILE, "%s: not safetensors, but %s", name, foreign);
    if (size < sizeof bytes) {
        return bert_fail(err, BERT_BAD_FILE, "%s: %llu bytes, too short for the 8-byte header length", name,
                         (unsigned long long)size);
    }
    if (length > HEADER_LIMIT) {
        return bert_fail(err, BERT_BAD_FILE, "%s: a header of %llu bytes, the limit is %d", name,
                         (unsigned long long)length, HEADER_LIMIT);
    }
    return bert_fail(err, BERT_BAD_FILE, "%s: a header of %llu bytes, but only %llu bytes follow its length", name,
                     (unsigned long long)length, (unsigned long long)(size - sizeof bytes));
}

static bert_status read_header(bert_safetensors *file, bert_error *err) {
    size_t n = 0;
    TRY(header_length(&n, file->source, err));
    const char *name = bert_source_name(file->source);
    char *text = malloc(n + 1);
    if (text == NULL) return bert_fail(err, BERT_NO_MEMORY, "%s: no memory for a header of %zu bytes", name, n);
    const uint64_t data = sizeof(uint64_t) + n;
    bert_status status = bert_source_read(file->source, sizeof(uint64_t), text, n, err);
    if (status == BERT_OK) {
        status = bert_header_parse(&file->header, text, n, name, data, bert_source_size(file->source), err);
    }
    free(text);
    return status;
}

bert_status bert_safetensors_open_source(bert_safetensors **file, bert_source *source, bert_error *err) {
    *file = NULL;
    bert_safetensors *f = calloc(1, sizeof *f);
    if (f == NULL) {
        const bert_status status = bert_fail(err, BERT_NO_MEMORY, "%s: no memory to open it", bert_source_name(source));
        bert_source_close(&source);
        return status;
    }
    f->source = source;
    const bert_status status = read_header(f, err);
    if (status == BERT_OK) {
        *file = f;
    } else {
        bert_safetensors_close(&f);
    }
    return status;
}

bert_status bert_safetensors_open(bert_safetensors **file, const char *path, bert_error *err) {
    bert_source *source;
    *file = NULL;
    TRY(bert_source_open(&source, path, err));
    return bert_safetensors_open_source(file, source, err);
}

bert_status bert_safetensors_open_memory(bert_safetensors **file, const bert_file *memory, bert_error *err) {
    bert_source *source;
    *file = NULL;
    TRY(bert_source_open_memory(&source, memory, err));
    return bert_safetensors_open_source(file, source, err);
}

void bert_safetensors_close(bert_safetensors **file) {
    if (file == NULL || *file == NULL) return;
    bert_safetensors *f = *file;
    *file = NULL;
    bert_header_close(&f->header);
    bert_source_close(&f->source);
    free(f);
}

size_t bert_safetensors_count(const bert_safetensors *file) {
    return file->header.n_tensors;
}

const bert_tensor_info *bert_safetensors_at(const bert_safetensors *file, size_t i) {
    return i < file->header.n_tensors ? &file->header.tensors[i] : NULL;
}

const bert_tensor_info *bert_safetensors_find(const bert_safetensors *file, const char *name) {
    return bert_header_tensor(&file->header, name);
}

const char *bert_safetensors_metadata(const bert_safetensors *file, const char *key) {
    return bert_header_metadata(&file->header, key);
}

bert_status bert_safetensors_read(const bert_safetensors *file, const bert_tensor_info *tensor, uint64_t at,
                                  void *bytes, size_t n, bert_error *err) {
    if (at > tensor->bytes || n > tensor->bytes - at) {
        char quoted[128];
        return bert_fail(err, BERT_INVALID_ARGUMENT, "%s: tensor '%s': asked for %zu bytes at %llu, it has %llu",
                         bert_source_name(file->source),
                         bert_quote(quoted, sizeof quoted, tensor->name, strlen(tensor->name)), n,
                         (unsigned long long)at, (unsigned long long)tensor->bytes);
    }
    return bert_source_read(file->source, tensor->offset + at, bytes, n, err);
}

/* In blocks through the stack, so that a file of halves or doubles needs no memory beside its destination. */
static bert_status read_converted(const bert_safetensors *file, const bert_tensor_info *tensor, size_t first, float *x,
                                  size_t n, bert_error *err) {
    char block[BLOCK];
    const size_t width = bert_dtype_bits(tensor->dtype) / 8;
    while (n > 0) {
        const size_t some = n < BLOCK / width ? n : BLOCK / width;
        TRY(bert_safetensors_read(file, tensor, (uint64_t)first * width, block, some * width, err));
        bert_dtype_to_f32(x, block, tensor->dtype, some);
        x += some;
        first += some;
        n -= some;
    }
    return BERT_OK;
}

bert_status bert_safetensors_read_f32(const bert_safetensors *file, const bert_tensor_info *tensor, size_t first,
                                      float *x, size_t n, bert_error *err) {
    char quoted[128];
    bert_quote(quoted, sizeof quoted, tensor->name, strlen(tensor->name));
    if (!bert_dtype_is_float(tensor->dtype)) {
        return bert_fail(err, BERT_UNSUPPORTED, "%s: tensor '%s': dtype %s, expected F32, F16, BF16 or F64",
                         bert_source_name(file->source), quoted, bert_dtype_name(tensor->dtype));
    }
    if (first > tensor->count || n > tensor->count - first) {
        return bert_fail(err, BERT_INVALID_ARGUMENT, "%s: tensor '%s': asked for %zu elements at %zu, it has %zu",
                         bert_source_name(file->source), quoted, n, first, tensor->count);
    }
    if (tensor->dtype != BERT_F32) return read_converted(file, tensor, first, x, n, err);
    return bert_safetensors_read(file, tensor, (uint64_t)first * sizeof *x, x, n * sizeof *x, err);
}

bert_status bert_safetensors_unchanged(const bert_safetensors *file, bert_error *err) {
    return bert_source_unchanged(file->source, err);
}
