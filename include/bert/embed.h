/* bert/embed.h: texts to sentence vectors: a model together with its tokenizer and its own pooling.
 *
 *     bert_pipeline *p; bert_session *s; float vector[384];
 *     bert_pipeline_open(&p, "models/all-MiniLM-L6-v2", NULL, &err);
 *     bert_session_open(&s, bert_pipeline_model(p), NULL, &err);
 *     bert_embed(s, p, vector, &(bert_text){"hello", 5, NULL, 0}, 1, NULL, NULL, &err);
 */
#ifndef BERT_EMBED_H
#define BERT_EMBED_H

#include <bert/encoder.h>
#include <bert/tokenizer.h>
#include <bert/window.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bert_pipeline bert_pipeline; /* immutable; any number of threads */

typedef struct bert_pipeline_options {
    size_t size;
    const bert_model_options *model;         /* NULL: defaults */
    const bert_tokenizer_options *tokenizer; /* NULL: defaults */
} bert_pipeline_options;
#define BERT_PIPELINE_OPTIONS_INIT {sizeof(bert_pipeline_options), NULL, NULL}

/* Opens everything in the folder: the model, its tokenizer, and for sentence-transformers models modules.json,
 * pooling and normalisation. A vocabulary longer than the embedding table is BERT_BAD_FILE; a module that is not
 * known is BERT_UNSUPPORTED by name. A decoder opens, for its tokenizer and for bert_run, but has no sentence vectors:
 * bert_embed answers BERT_UNSUPPORTED. */
BERT_API BERT_MUST_USE bert_status bert_pipeline_open(bert_pipeline **pipeline, const char *dir,
                                                      const bert_pipeline_options *options, bert_error *err);
BERT_API void bert_pipeline_close(bert_pipeline **pipeline);
BERT_API const bert_model *bert_pipeline_model(const bert_pipeline *pipeline);
BERT_API const bert_tokenizer *bert_pipeline_tokenizer(const bert_pipeline *pipeline);

/* How a text's token vectors become one vector (names as in sentence-transformers' 1_Pooling/config.json). */
typedef enum bert_pooling {
    BERT_POOLING_AUTO,          /* what the folder says, else the mean */
    BERT_POOLING_CLS, BERT_POOLING_MEAN, BERT_POOLING_MAX, BERT_POOLING_MEAN_SQRT_LEN, BERT_POOLING_WEIGHTED_MEAN,
    BERT_POOLING_LAST_TOKEN,
    BERT_POOLING_POOLER         /* the model's own pooler: tanh(W·h[CLS] + b) */
} bert_pooling;
/* "mean", …; NULL for a number that is none. */
BERT_API const char *bert_pooling_name(bert_pooling pooling);

typedef struct bert_pipeline_info {
    bert_pooling pooling;  /* never AUTO */
    int pooling_assumed;   /* 1: no 1_Pooling in the folder, the mean was assumed */
    int normalize;         /* 1: vectors get length 1 */
    size_t dim;            /* behind the Dense modules, if there are any */
    size_t max_length;     /* tokens with specials: sentence_bert_config.json, or in a sentence-transformers folder that
                              does not say tokenizer_config.json, else the position table */
    const bert_pooling *poolings; /* [n_poolings]: their vectors stand one behind the other; lives with the pipeline */
    size_t n_poolings;
    size_t n_dense;        /* Dense modules behind the pooling */
    int lowercases;        /* 1: do_lower_case: texts are lower-cased before anything else */
    size_t n_prompts;
    const char *default_prompt; /* name of the prompt that stands before each text unless another is asked for, or NULL;
                                   lives with the pipeline */
} bert_pipeline_info;
BERT_API bert_pipeline_info bert_pipeline_describe(const bert_pipeline *pipeline);
/* Name of the i-th prompt of config_sentence_transformers.json, NULL if there are fewer. */
BERT_API const char *bert_pipeline_prompt_name(const bert_pipeline *pipeline, size_t i);

typedef struct bert_embed_options {
    size_t size;
    bert_pooling pooling;
    int normalize;               /* -1: as the folder says */
    size_t dim;                  /* keep the first dim values, renormalised if normalized; 0: all */
    size_t max_length;           /* 0: the model's own */
    bert_truncation truncation;
    bert_side truncation_side;
    int literal_specials;
    size_t pass_tokens;          /* tokens of one pass; 0: a good value. Never changes a result */
    const bert_run_options *run; /* stop flag and deadline; NULL: none */
    const char *prompt_name;     /* of config_sentence_transformers.json: put before each text; NULL: its default. One
                                    that it does not have is BERT_INVALID_ARGUMENT */
    const char *prompt;          /* or the prompt itself, valid UTF-8, "": none; NULL: by name */
    size_t window, stride;       /* window > 0: a longer text is not cut to max_length but read in windows of so many
                                    tokens, specials included, of which neighbours share `stride` (bert/window.h) */
} bert_embed_options;
#define BERT_EMBED_OPTIONS_INIT {sizeof(bert_embed_options), BERT_POOLING_AUTO, -1, 0, 0, BERT_LONGEST_FIRST, \
                                 BERT_RIGHT, 0, 0, NULL, NULL, NULL, 0, 0}

/* What happened to one text; nothing is cut silently. */
typedef struct bert_embed_info {
    size_t tokens, truncated, unknown; /* a prompt's among them */
    size_t invalid_utf8, first_invalid; /* first_invalid: a byte of a, or if that is valid of b, as given */
    size_t windows; /* that the text was read in; `unknown` counts a token in each of them */
} bert_embed_info;

/* dst [n, dim] gets one vector a text, in order. `infos` [n] or NULL. Any number of texts: they are sorted by
 * length and packed into passes inside the call. The session must be of the pipeline's model; one
 * thread at a time uses it. Errors: those of bert_run and bert_tokenize, of which BERT_TOO_LONG and
 * BERT_INVALID_ARGUMENT may concern one text, and BERT_NOT_FINITE as in bert_pipeline_pool; dst is then not whole. */
BERT_API BERT_MUST_USE bert_status bert_embed(bert_session *session, const bert_pipeline *pipeline, float *dst,
                                              const bert_text *texts, size_t n, const bert_embed_options *options,
                                              bert_embed_info *infos, bert_error *err);

/* The prompt that bert_embed puts before each text: the options' or the folder's, "" if there is none. Lives as long as
 * the pipeline, or the options' own. */
BERT_API BERT_MUST_USE bert_status bert_pipeline_prompt(const bert_pipeline *pipeline, const char **text,
                                                        const bert_embed_options *options, bert_error *err);

/* Pools one text's hidden states [T, H] (and its pooler output [H], NULL unless that is the pooling) the way
 * bert_embed does: dst [dim]. For callers that run the model themselves to get more than the vector. Where the folder
 * leaves the prompt's tokens out of the pooling, the text is taken to begin with the prompt that the options say.
 * BERT_NOT_FINITE if a value of the vector, or the length that it is to be divided by, is NaN or infinite. */
BERT_API BERT_MUST_USE bert_status bert_pipeline_pool(const bert_pipeline *pipeline, float *dst, const float *hidden,
                                                      const float *pooler, const bert_encoding *tokens,
                                                      const bert_embed_options *options, bert_error *err);
/* Values of a vector with these options (NULL: the defaults); 0 if the options do not fit the pipeline. */
BERT_API size_t bert_pipeline_dim(const bert_pipeline *pipeline, const bert_embed_options *options);

/* What else a long text's windows give. */
typedef struct bert_window_states {
    size_t size;
    const int32_t *layers; /* [n_layers], 0: the embeddings, l: behind layer l */
    size_t n_layers;
    float *hidden;         /* [n_layers, T, H], T = bert_windows_length: the state of each token from the window where
                              it has most context */
    float *pooler;         /* [H]: the mean of the windows' pooler outputs; NULL: not wanted */
} bert_window_states;
#define BERT_WINDOW_STATES_INIT {sizeof(bert_window_states), NULL, 0, NULL, NULL}

/* Text i of `tokens`, which bert_tokenize made with overflow and a max_length that the model takes: its windows are
 * run, `vector` [bert_pipeline_dim] is pooled over the states of all its tokens as bert_embed does with `window`.
 * Poolings by one token (cls, lasttoken, pooler) take it of each window, and of these the mean. Either of `vector` and
 * `states` may be NULL. With a prompt the text must begin with it already. Errors as bert_embed; BERT_INVALID_ARGUMENT
 * also for a text that is not there, or a layer. */
BERT_API BERT_MUST_USE bert_status bert_embed_windows(bert_session *session, const bert_pipeline *pipeline,
                                                      const bert_tokens *tokens, size_t i, float *vector,
                                                      const bert_window_states *states,
                                                      const bert_embed_options *options, bert_error *err);

#ifdef __cplusplus
}
#endif
#endif
