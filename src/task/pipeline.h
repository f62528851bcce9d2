/* task/pipeline.h: a model together with its tokenizer and the modules that sentence-transformers puts behind it. */
#ifndef BERT_TASK_PIPELINE_H
#define BERT_TASK_PIPELINE_H

#include <bert/embed.h>

enum { BERT_MAX_POOLINGS = 6 };

/* What the files in the folder say about sentence vectors. */
typedef struct bert_modules {
    bert_pooling pooling[BERT_MAX_POOLINGS]; /* several: their vectors one behind the other */
    size_t n_poolings;                       /* 0: nothing said */
    int normalize;
    size_t max_seq_length; /* 0: nothing said */
    int do_lower_case;
} bert_modules;

/* Reads modules.json, the pooling config and sentence_bert_config.json; each may be absent. */
BERT_MUST_USE bert_status bert_modules_read(bert_modules *modules, const char *dir, size_t hidden,
                                            const bert_model_options *options, bert_error *err);

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
    size_t full_dim, dim; /* before and after the cut */
    int normalize, need_pooler;
} bert_embed_plan;
BERT_MUST_USE bert_status bert_embed_plan_make(bert_embed_plan *plan, const bert_pipeline *pipeline,
                                               const bert_embed_options *options, bert_error *err);

/* dst [dim] from hidden states [T, H] and the pooler's output [H]; `full` [full_dim] is scratch. */
BERT_MUST_USE bert_status bert_embed_plan_pool(const bert_embed_plan *plan, const bert_pipeline *pipeline, float *dst,
                                               float *full, const float *hidden, size_t tokens, const float *pooler,
                                               bert_error *err);

#endif
