#include "study/rollout.h"

#include <stdlib.h>
#include <string.h>

#include <bert/study.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/size.h"

bert_status bert_rollout_open(bert_rollout_state *state, size_t tokens, bert_error *err) {
    size_t cells = 0;
    *state = (bert_rollout_state){.tokens = tokens};
    if (bert_size_mul(&cells, tokens, tokens)) {
        state->so_far = calloc(cells, sizeof *state->so_far);
        state->next = calloc(cells, sizeof *state->next);
    }
    if (!state->so_far || !state->next)
        return bert_fail(err, BERT_NO_MEMORY, "no memory for the rollout of %zu tokens", tokens);
    for (size_t i = 0; i < tokens; i++) state->so_far[i * tokens + i] = 1;
    return BERT_OK;
}

void bert_rollout_close(bert_rollout_state *state) {
    free(state->so_far);
    free(state->next);
    *state = (bert_rollout_state){0};
}

/* ½·mean over heads of α[a,i,j], plus ½ where a token keeps itself. */
static double mixed(const float *weights, size_t heads, size_t t, size_t i, size_t j) {
    double sum = 0;
    for (size_t a = 0; a < heads; a++) sum += (double)weights[(a * t + i) * t + j];
    return 0.5 * sum / (double)heads + (i == j ? 0.5 : 0);
}

void bert_rollout_step(bert_rollout_state *state, const float *weights, size_t heads) {
    const size_t t = state->tokens;
    const uint64_t host = bert_fpenv_enter();
    memset(state->next, 0, t * t * sizeof *state->next);
    for (size_t i = 0; i < t; i++)
        for (size_t j = 0; j < t; j++) {
            const double weight = mixed(weights, heads, t, i, j);
            for (size_t k = 0; k < t; k++) state->next[i * t + k] += weight * state->so_far[j * t + k];
        }
    double *swap = state->so_far;
    state->so_far = state->next;
    state->next = swap;
    bert_fpenv_leave(host);
}

void bert_rollout_result(const bert_rollout_state *state, float *rollout) {
    const uint64_t host = bert_fpenv_enter();
    for (size_t i = 0; i < state->tokens * state->tokens; i++) rollout[i] = (float)state->so_far[i];
    bert_fpenv_leave(host);
}

bert_status bert_rollout(float *rollout, const float *weights, size_t layers, size_t heads, size_t tokens,
                         bert_error *err) {
    bert_rollout_state state;
    const bert_status status = bert_rollout_open(&state, tokens, err);
    for (size_t l = 0; l < layers && status == BERT_OK; l++)
        bert_rollout_step(&state, weights + l * heads * tokens * tokens, heads);
    if (status == BERT_OK) bert_rollout_result(&state, rollout);
    bert_rollout_close(&state);
    return status;
}
