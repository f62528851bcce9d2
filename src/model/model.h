/* model/model.h: what the encoder sees of a model. */
#ifndef BERT_MODEL_MODEL_H
#define BERT_MODEL_MODEL_H

#include <bert/json.h>

#include "model/weights.h"

/* The caller's options, those that its header did not know at their defaults. */
bert_model_options bert_model_options_or_default(const bert_model_options *given);

/* Immutable to the outside: what changes (the loaded weights, the count of owners) is guarded inside. */
const bert_config *bert_model_config(const bert_model *model);
const bert_kernels *bert_model_kernels(const bert_model *model);
const bert_gemm *bert_model_gemm(const bert_model *model); /* NULL: our own kernels */

/* What a pass works with: the weights, with the vectors loaded. *packed: whether matrices and tables are in memory
 * too; else the pass reads them through bert_param_rows and does not look at their `data`. Any thread; one loads and
 * the others wait. */
BERT_MUST_USE bert_status bert_model_weights(const bert_model *model, const bert_weights **weights, bool *packed,
                                             bert_error *err);
/* BERT_CHANGED if a file is no longer what was opened: after a pass that read from it. */
BERT_MUST_USE bert_status bert_model_unchanged(const bert_model *model, bert_error *err);
int bert_model_has_pooler(const bert_model *model);

/* A tensor of the files by its full name, whether the encoder uses it or not; NULL if there is none. For heads. */
const bert_stored *bert_model_find(const bert_model *model, const char *name);

/* What the folder's files say beyond what the encoder needs, for heads: views that live as long as the model. *root has
 * `at` NULL if there is no such file. */
typedef enum bert_model_text { BERT_TEXT_CONFIG, BERT_TEXT_SENTENCE, BERT_MODEL_TEXTS } bert_model_text;
BERT_MUST_USE bert_status bert_model_json(const bert_model *model, bert_model_text which, bert_json *root,
                                          bert_error *err);

/* Sessions own their model too. */
void bert_model_retain(const bert_model *model);
void bert_model_release(const bert_model *model);

#endif
