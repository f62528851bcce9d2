/* task/dense.h: a linear layer of a head: y = epilogue(x · Wᵀ + b), from tensors that the encoder does not use. */
#ifndef BERT_TASK_DENSE_H
#define BERT_TASK_DENSE_H

#include "base/memory.h"
#include "model/model.h"

typedef struct bert_dense {
    const bert_kernels *kernels;
    size_t n, k;
    bert_arena arena; /* W [n, k] in panels, then b [n] */
    const float *bias; /* NULL: none */
} bert_dense;

/* Reads tensor `name` [rows, cols], with cols 1 also [rows], into x, after checking its shape. */
BERT_MUST_USE bert_status bert_dense_read(float *x, const bert_stored *stored, const char *name, size_t rows,
                                          size_t cols, bert_error *err);
/* `weight` [n, k] and `bias` [n]; `stored` NULL where the checkpoint has none: that is an error by name. */
BERT_MUST_USE bert_status bert_dense_open(bert_dense *dense, const bert_model *model, const char *weight,
                                          const char *bias, size_t n, size_t k, bert_error *err);
/* The same from tensors at hand; the names are for messages, `bias_name` NULL: it has none. */
BERT_MUST_USE bert_status bert_dense_open_stored(bert_dense *dense, const bert_kernels *kernels,
                                                 const bert_stored *weight, const char *weight_name,
                                                 const bert_stored *bias, const char *bias_name, size_t n, size_t k,
                                                 bert_error *err);
/* y [rows, n] = epilogue(x [rows, k] · Wᵀ + b). */
BERT_MUST_USE bert_status bert_dense_run(const bert_dense *dense, float *y, const float *x, size_t rows,
                                         bert_epilogue epilogue, const bert_workers *workers, bert_error *err);
void bert_dense_close(bert_dense *dense);

#endif
