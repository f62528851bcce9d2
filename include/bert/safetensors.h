/* bert/safetensors.h: named tensors in a safetensors file, checked completely before any of them is seen.
 *
 * The rules are those of the format (https://github.com/huggingface/safetensors, README "Format"), read strictly:
 * header at most 16 MiB, one JSON object, names unique and without NUL, offsets without holes or overlap, every
 * size equal to shape × dtype, nothing behind the last tensor. Files are read with pread, never mapped; a file
 * that is cut or overwritten while open gives BERT_CHANGED or BERT_BAD_FILE.
 */
#ifndef BERT_SAFETENSORS_H
#define BERT_SAFETENSORS_H

#include <bert/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BERT_TENSOR_RANK 8

typedef enum bert_dtype {
    BERT_BOOL, BERT_F4, BERT_F6_E2M3, BERT_F6_E3M2, BERT_U8, BERT_I8, BERT_F8_E5M2, BERT_F8_E4M3, BERT_F8_E8M0,
    BERT_F8_E4M3FNUZ, BERT_F8_E5M2FNUZ, BERT_I16, BERT_U16, BERT_F16, BERT_BF16, BERT_I32, BERT_U32, BERT_F32,
    BERT_C64, BERT_F64, BERT_I64, BERT_U64
} bert_dtype;

/* "F32", "BF16", …, as the format spells them. */
BERT_API const char *bert_dtype_name(bert_dtype dtype);

typedef struct bert_tensor_info {
    const char *name; /* NUL-terminated UTF-8, owned by the file object */
    bert_dtype dtype;
    int rank;
    size_t shape[BERT_TENSOR_RANK];
    size_t count;       /* product of shape; 1 for a scalar */
    uint64_t offset;    /* of its first byte in the file */
    uint64_t bytes;
} bert_tensor_info;

typedef struct bert_safetensors bert_safetensors; /* immutable once open; any number of threads may read */

BERT_API BERT_MUST_USE bert_status bert_safetensors_open(bert_safetensors **file, const char *path, bert_error *err);
/* The same from memory, which must outlive the object. `name` appears in messages. */
BERT_API BERT_MUST_USE bert_status bert_safetensors_open_memory(bert_safetensors **file, const bert_file *memory,
                                                                bert_error *err);
BERT_API void bert_safetensors_close(bert_safetensors **file);

/* Tensors in order of name (bytewise). */
BERT_API size_t bert_safetensors_count(const bert_safetensors *file);
BERT_API const bert_tensor_info *bert_safetensors_at(const bert_safetensors *file, size_t i);
/* NULL if there is no such tensor. */
BERT_API const bert_tensor_info *bert_safetensors_find(const bert_safetensors *file, const char *name);

/* A value of __metadata__, UTF-8, NUL-terminated (values with NUL are cut at it), or NULL. */
BERT_API const char *bert_safetensors_metadata(const bert_safetensors *file, const char *key);

/* Copies raw bytes [at, at + n) of a tensor. */
BERT_API BERT_MUST_USE bert_status bert_safetensors_read(const bert_safetensors *file, const bert_tensor_info *tensor,
                                                         uint64_t at, void *bytes, size_t n, bert_error *err);
/* Elements [first, first + n) as float32. F32, F16, BF16 exactly; F64 rounded to nearest even, beyond the float
 * range to infinity. Other types: BERT_UNSUPPORTED. */
BERT_API BERT_MUST_USE bert_status bert_safetensors_read_f32(const bert_safetensors *file,
                                                             const bert_tensor_info *tensor, size_t first, float *x,
                                                             size_t n, bert_error *err);
/* BERT_CHANGED if the file on disk is no longer the one that was opened (size, mtime, ctime, inode). */
BERT_API BERT_MUST_USE bert_status bert_safetensors_unchanged(const bert_safetensors *file, bert_error *err);

#ifdef __cplusplus
}
#endif
#endif
