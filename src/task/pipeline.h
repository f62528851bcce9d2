/* task/pipeline.h: a model together with its tokenizer and the modules that sentence-transformers puts behind it. */
#ifndef BERT_TASK_PIPELINE_H
#define BERT_TASK_PIPELINE_H

#include "task/modules.h"

struct bert_pipeline {
    bert_model *model;
    bert_tokenizer *tokenizer;
    bert_modules modules;
    size_t max_length;
};

/* Options of a call, with what they leave open filled in from the folder. Not to be copied: `pooling` may point into
 * `options`. */
typedef struct bert_embed_plan {
    bert_embed_options options;
    const bert_pooling *pooling; /* [n_poolings] */
    size_t n_poolings;
    size_t full_dim, dim; /* of what the last module gives, and after the cut */
    size_t width;         /* the most values that a vector has on its way */
    int normalize, need_pooler;
    const char *prompt; /* never NULL */
    size_t left_out;    /* tokens in front that are not pooled */
} bert_embed_plan;
BERT_MUST_USE bert_status bert_embed_plan_make(bert_embed_plan *plan, const bert_pipeline *pipeline,
                                               const bert_embed_options *options, bert_error *err);

/* What one vector is made of. Poolings that take one token take it of every window of a long text, and of these the
 * mean: then first and last are not those of `hidden`. */
typedef struct bert_pool_input {
    const float *hidden; /* [T, H] */
    size_t tokens;       /* T */
    const float *first, *last; /* [H] */
    const float *pooler;       /* [H] or NULL */
} bert_pool_input;

/* dst [dim]; `scratch` [2, width]. */
BERT_MUST_USE bert_status bert_embed_plan_pool(const bert_embed_plan *plan, const bert_pipeline *pipeline, float *dst,
                                               float *scratch, const bert_pool_input *input, bert_error *err);

#endif
