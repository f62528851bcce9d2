/* model/weights.h: the encoder's parameters, bound by name and shape to the tensors of a checkpoint. */
#ifndef BERT_MODEL_WEIGHTS_H
#define BERT_MODEL_WEIGHTS_H

#include <stdbool.h>

#include "base/memory.h"
#include "kernels/kernels.h"
#include "model/checkpoint.h"
#include "model/config.h"

enum { BERT_MAX_PARTS = 3 };

/* One array as the encoder wants it: a matrix W [rows, cols], or a vector [rows, 1], stacked from one to three
 * tensors (query, key and value become one matrix, so that a layer needs one product for all three). */
typedef struct bert_param {
    size_t rows, cols;
    bool vector; /* a bias or half of a LayerNorm; a matrix can have one column too */
    bool panels; /* data is packed for the kernels (kernels.h); else row-major as in the file */
    int parts;   /* 0: absent */
    const bert_stored *part[BERT_MAX_PARTS];
    float *data; /* NULL until loaded; matrices and tables: only for passes that were told they are (model.h) */
} bert_param;

typedef struct bert_layer {
    bert_param qkv, qkv_bias;             /* [3H, H], [3H]: query, key, value */
    bert_param out, out_bias;             /* [H, H], [H]: W_O of the attention */
    bert_param out_gamma, out_beta;       /* [H] */
    bert_param cross_query, cross_query_bias; /* [H, H], [H]: absent without cross-attention, here and below */
    bert_param cross_kv, cross_kv_bias;       /* [2H, H], [2H]: key and value of the memory */
    bert_param cross_out, cross_out_bias;     /* [H, H], [H] */
    bert_param cross_gamma, cross_beta;       /* [H] */
    bert_param up, up_bias;               /* [F, H], [F]: HF's "intermediate" */
    bert_param down, down_bias;           /* [H, F], [H]: HF's "output" */
    bert_param down_gamma, down_beta;     /* [H] */
} bert_layer;

typedef struct bert_weights {
    bert_param word, position, type; /* [V, H], [P, H], [types, H] */
    bert_param gamma, beta;          /* [H]: LayerNorm of the embeddings */
    bert_param pooler, pooler_bias;  /* [H, H], [H]; absent in many checkpoints */
    bert_layer *layer;               /* [layers] */
    size_t layers;
    bool cross; /* layers have cross-attention */
    size_t parameters; /* elements of all tensors in use */
    bert_arena vectors;  /* biases and LayerNorms: small, always in memory */
    bert_arena matrices; /* matrices and tables, once they are packed */
} bert_weights;

/* Finds every tensor and checks its shape and type; reads nothing. `panels`: matrices are packed when loaded. */
BERT_MUST_USE bert_status bert_weights_bind(bert_weights *weights, const bert_config *config,
                                            bert_checkpoint *checkpoint, bool panels,
                                            const bert_model_options *options, bert_error *err);
/* Reads the vectors, or everything else, into an arena, in the order in which a pass uses it. */
BERT_MUST_USE bert_status bert_weights_load_vectors(bert_weights *weights, const bert_memory *memory,
                                                    bert_error *err);
BERT_MUST_USE bert_status bert_weights_load_matrices(bert_weights *weights, const bert_kernels *kernels,
                                                     const bert_memory *memory, const bert_workers *workers,
                                                     bert_error *err);
void bert_weights_close(bert_weights *weights);

/* Bytes that all of them take once they are loaded. BERT_NO_MEMORY: for the list of them. */
BERT_MUST_USE bert_status bert_weights_bytes(bert_weights *weights, size_t *bytes, bert_error *err);
/* Writes the arrays in the order in which a pass uses them, returns how many; `params` NULL only counts. */
size_t bert_weights_params(bert_weights *weights, bert_param **params);

/* Name of the i-th optional tensor that is absent, NULL behind the last. */
const char *bert_weights_missing(const bert_weights *weights, size_t i);

/* Rows [first, first + n) as float32, gathered from the tensors: [n, cols]. */
BERT_MUST_USE bert_status bert_param_rows(const bert_param *param, size_t first, size_t n, float *rows,
                                          bert_error *err);

/* Calls visit for every tensor in use, in the order of the table, layer by layer, with its canonical HF name. */
typedef bert_status (*bert_weights_visit)(void *user, const char *name, const bert_stored *stored, bert_error *err);
BERT_MUST_USE bert_status bert_weights_each(const bert_weights *weights, bert_weights_visit visit, void *user,
                                            bert_error *err);

#endif
