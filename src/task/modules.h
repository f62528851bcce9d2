/* task/modules.h: what the files of a sentence-transformers folder say: its modules in order, and prompts. */
#ifndef BERT_TASK_MODULES_H
#define BERT_TASK_MODULES_H

#include <bert/embed.h>

#include "file/json.h"
#include "task/dense.h"

enum { BERT_MAX_POOLINGS = 6, BERT_MAX_MODULES = 16, BERT_MODULE_PATH = 4096 };

/* One module behind the pooling: y = activation(W·x + b), + x or + R·x where it has a residual; or y = x / ‖x‖. */
typedef struct bert_module {
    int normalize; /* 1: that, and nothing of the below */
    char file_name[96]; /* of its weights */
    bert_dense linear;
    bert_epilogue activation;
    int residual;
    bert_dense projection; /* R; n 0: the residual is x itself */
} bert_module;

typedef struct bert_prompt {
    char *name, *text;
} bert_prompt;

typedef struct bert_modules {
    int listed;                              /* there is a modules.json: a sentence-transformers folder */
    bert_pooling pooling[BERT_MAX_POOLINGS]; /* several: their vectors one behind the other */
    size_t n_poolings;                       /* 0: nothing said */
    int leave_out_prompt;                    /* its tokens are not pooled */
    bert_module behind[BERT_MAX_MODULES];    /* what follows the pooling, without a last Normalize */
    size_t n_behind;
    int normalize;         /* the last module is Normalize */
    size_t max_seq_length; /* 0: nothing said */
    int do_lower_case;
    bert_prompt *prompts; /* [n_prompts] */
    size_t n_prompts;
    const bert_prompt *default_prompt; /* NULL: none */
} bert_modules;

/* The folder that has the model itself: `dir`, or the one in it that modules.json names (0_Transformer). */
BERT_MUST_USE bert_status bert_modules_transformer(char path[BERT_MODULE_PATH], const char *dir, bert_error *err);

/* Reads modules.json, the modules' folders, sentence_bert_config.json (from `transformer`) and
 * config_sentence_transformers.json; each may be absent. After an error there is nothing to close. */
BERT_MUST_USE bert_status bert_modules_read(bert_modules *modules, const char *dir, const char *transformer,
                                            size_t hidden, const bert_kernels *kernels,
                                            const bert_model_options *options, bert_error *err);
void bert_modules_close(bert_modules *modules);

/* How many values come out at the end if n come out of the pooling; `code` if a module takes another number. */
BERT_MUST_USE bert_status bert_modules_dim(size_t *dim, const bert_modules *modules, size_t n, bert_status code,
                                           bert_error *err);

/* ---- The files, one reader each. `name` is how messages call the file. ---- */

/* The file as checked JSON; *found 0 and no error if it is not there. *text is freed by the caller. */
BERT_MUST_USE bert_status bert_modules_json(const char *dir, const char *name, const char *shown, char **text,
                                            bert_json *root, int *found, bert_error *err);
/* The value as it stands in the file, without the quotes of a string, fit for a message. */
enum { BERT_MODULE_QUOTE = 96 };
const char *bert_modules_quote(char room[BERT_MODULE_QUOTE], bert_json value);
/* Member `key` as a boolean if it is there and not null. */
BERT_MUST_USE bert_status bert_modules_bool(int *value, bert_json root, const char *key, const char *shown,
                                            bert_error *err);
BERT_MUST_USE bert_status bert_pooling_read(bert_modules *modules, bert_json root, const char *shown, size_t hidden,
                                            bert_error *err);
/* Modules can also work on token vectors, or beside the sentence vector: that is another kind of model. */
BERT_MUST_USE bert_status bert_module_place(bert_json root, const char *shown, bert_error *err);
/* A Dense module from its config, and its tensors from `dir`/model.safetensors; `sub` is that folder in messages. */
BERT_MUST_USE bert_status bert_module_dense(bert_module *module, bert_json root, const char *dir, const char *sub,
                                            const bert_kernels *kernels, const bert_model_options *options,
                                            bert_error *err);
void bert_module_close(bert_module *module);
BERT_MUST_USE bert_status bert_prompts_read(bert_modules *modules, const char *dir, bert_error *err);
/* The prompt with this name; "query" and "document" are always there, and empty unless the folder says more. */
BERT_MUST_USE bert_status bert_prompts_find(const char **text, const bert_modules *modules, const char *name,
                                            bert_error *err);

/* Copies of the texts with the prompt before the first of each pair, one block for free() in place of *put (which may
 * be NULL); *put NULL: the prompt is empty, and the texts may be used as they are. */
BERT_MUST_USE bert_status bert_prompts_put(bert_text **put, const char *prompt, const bert_text *texts, size_t n,
                                           bert_error *err);
/* Where the first invalid byte of `text`, as it was given, is: `found` behind the prompt that was put before it. */
size_t bert_prompts_first_invalid(const bert_text *text, size_t found);

#endif
