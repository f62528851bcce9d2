/* study/ablate.h: what the two halves of an ablation share: what is tried, and what each trial is compared with. */
#ifndef BERT_STUDY_ABLATE_H
#define BERT_STUDY_ABLATE_H

#include <bert/study.h>

#include "task/pipeline.h"

typedef enum bert_trial_kind { BERT_TRIAL_MASK, BERT_TRIAL_REMOVE, BERT_TRIAL_SILENCE } bert_trial_kind;

typedef struct bert_ablater {
    bert_session *session;
    const bert_pipeline *pipeline;
    const bert_encoding *tokens;
    bert_ablate_options options;
    bert_embed_plan plan;
    bert_run_options run;
    int32_t mask;       /* id of [MASK], -1: none */
    size_t t, h, l, a;  /* T, H, L, A */
    bert_ablation *out;
    /* The text as it is. */
    float *states;   /* [L+1, T, H] */
    float *pooled;   /* [H]: the pooler's output, if that is the sentence vector */
    float *vector;   /* [dim] */
    float *log_prob; /* [T], with a head */
    /* One pass over several trials. */
    size_t room;         /* trials that fit */
    size_t *start;       /* [room + 1] */
    int32_t *ids, *types;/* [room, T] */
    float *input;        /* [room, T, H]: hidden states before the first layer that runs */
    float *hidden;       /* [room, T, H]: the last ones */
    float *summary;      /* [room, H]: the pooler's output */
    float *changed;      /* [dim] */
    float *probable;     /* [T]: log-probabilities */
    size_t first_head;   /* that is silent, in the pass's first text */
    float uniform;       /* 1/T */
} bert_ablater;

/* Tries tokens or heads number [first, first + n) of `kind` (heads of one layer) in as few passes as fit, and writes
 * down what they did. */
BERT_MUST_USE bert_status bert_ablater_try(bert_ablater *ablater, bert_trial_kind kind, size_t layer, size_t first,
                                           size_t n, bert_error *err);

/* Log-probabilities of the tokens `ids` [n] at `hidden` [n, H], with the head that the options name. */
BERT_MUST_USE bert_status bert_ablater_log_probs(const bert_ablater *ablater, float *log_probs, const float *hidden,
                                                 const int32_t *ids, size_t n, bert_error *err);

#endif
