/* study/rollout.h: attention rollout one layer after another, as a pass gives the maps. */
#ifndef BERT_STUDY_ROLLOUT_H
#define BERT_STUDY_ROLLOUT_H

#include <bert/base.h>

typedef struct bert_rollout_state {
    double *so_far, *next; /* [T, T] */
    size_t tokens;
} bert_rollout_state;

BERT_MUST_USE bert_status bert_rollout_open(bert_rollout_state *state, size_t tokens, bert_error *err);
/* The next layer's maps [A, T, T]. */
void bert_rollout_step(bert_rollout_state *state, const float *weights, size_t heads);
void bert_rollout_result(const bert_rollout_state *state, float *rollout);
void bert_rollout_close(bert_rollout_state *state);

#endif
