/* file/dtype.h: the element types of safetensors: names, widths, conversion to float32. */
#ifndef BERT_FILE_DTYPE_H
#define BERT_FILE_DTYPE_H

#include <bert/safetensors.h>

#include <stdbool.h>

#include "file/json.h"

/* 1 if the JSON string is the name of a type, spelt exactly. */
int bert_dtype_parse(bert_dtype *dtype, bert_json name);

/* Width of an element in bits: 4, 6, 8, 16, 32 or 64. */
unsigned bert_dtype_bits(bert_dtype dtype);

/* Whether bert_dtype_to_f32 takes it: F16, BF16, F32, F64. */
bool bert_dtype_is_float(bert_dtype dtype);

/* n elements at `bytes`, at any alignment, as float32. F16, BF16 and F32 exactly (NaN payloads too), F64 to the
 * nearest, ties to even, beyond the range to infinity. The host's floating-point environment has no influence.
 * Of other types nothing is written. */
void bert_dtype_to_f32(float *x, const void *bytes, bert_dtype dtype, size_t n);

#endif
