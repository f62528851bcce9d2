/* task/head.h: a linear head, and what config.json says about it. */
#ifndef BERT_TASK_HEAD_H
#define BERT_TASK_HEAD_H

#include <bert/heads.h>

#include "task/dense.h"

/* Rows of the classifier have these names. */
typedef struct bert_labels {
    char **name; /* [n] */
    size_t n;
} bert_labels;
BERT_MUST_USE bert_status bert_labels_read(bert_labels *labels, const bert_model *model, size_t n, bert_error *err);
void bert_labels_close(bert_labels *labels);

/* What config.json says about a classifier over the pooler. */
BERT_MUST_USE bert_status bert_head_config_read(bert_head_info *info, char unknown[96], const bert_model *model,
                                                bert_error *err);
/* Whose classifier.weight it is by `architectures`: SEQUENCE, TOKENS, or without a word about it SEQUENCE if there is a
 * pooler. */
BERT_MUST_USE bert_status bert_head_classifier_kind(bert_head_kind *kind, const bert_model *model, bert_error *err);

struct bert_head {
    const bert_model *model; /* retained */
    bert_head_info info;
    char unknown[96]; /* the function that info.rerank stands for, if it is not known */
    bert_dense linear;       /* [N, H] */
    bert_labels labels;
};

/* BERT_UNSUPPORTED on a decoder. */
BERT_MUST_USE bert_status bert_head_refuse_decoder(const bert_model *model, bert_error *err);
/* BERT_INVALID_ARGUMENT unless the session is of this model. */
BERT_MUST_USE bert_status bert_head_check_session(const bert_session *session, const bert_model *model,
                                                  bert_error *err);

#endif
