/* engine.h: everything that a subcommand which runs a model needs, opened as the settings say. */
#ifndef ENGINE_H
#define ENGINE_H

#include <bert/bert.h>

#include "args.h"

typedef struct engine {
    bert_pool *pool;
    bert_gemm gemm;
    bert_pipeline *pipeline; /* NULL: only the model was needed */
    bert_model *own_model;   /* without a pipeline */
    const bert_model *model;
    bert_tokenizer *own_tokenizer;   /* likewise */
    const bert_tokenizer *tokenizer; /* NULL: the folder has none that can be used */
    bert_session *session;
    bert_model_info info;
    int weights_stay_in_file; /* --max-mem has no room for them */
    size_t max_length;        /* tokens that a text is cut to */
    bert_run_options run;     /* with the stop flag */
} engine;

/* ENGINE_MODEL: a tokenizer only names tokens, and may be missing. ENGINE_PIPELINE: tokenizer and pooling.
 * ENGINE_DECODERS, or'ed to them: the subcommand runs decoders, which others refuse. */
enum { ENGINE_MODEL, ENGINE_PIPELINE, ENGINE_DECODERS };
int engine_open(engine *e, const settings *s, int parts);
void engine_close(engine *e);

/* The folder that --model or $BERT_MODEL names. */
int engine_model_path(const settings *s, const char **path);

/* For subcommands that have --window beside --max-length: it cuts nothing off, so what says how to cut does not go with
 * it. */
int engine_check_window(const settings *s);

/* Which prompt --prompt, --no-prompt and --ids ask for; without any of them the options are left alone. */
int engine_read_prompt(bert_embed_options *options, const settings *s);

/* How texts become tokens, as the settings say. */
bert_tokenize_options engine_tokenize_options(const engine *e, const settings *s);

/* gemm_openblas.c: the hook, with OpenBLAS loaded and told how many threads to use. */
int gemm_openblas_open(bert_gemm *gemm, int threads);
/* 1: it can be loaded here. */
int gemm_openblas_there(void);

#endif
