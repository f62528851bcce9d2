/* study/study.c: one pass over one text, whose taps feed everything that was asked for, layer by layer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bert/study.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "encoder/session.h"
#include "study/rollout.h"

enum { MAX_TAPS = 4 };

typedef struct student {
    const bert_session *session;
    bert_study want;
    size_t heads, tokens, hidden;
    double eps;
    float *weights; /* [A, T, T] of the layer that runs */
    float *f;       /* [A, T, H]: its values through W_O */
    float *input;   /* [T, H]: hidden states before it */
    bert_rollout_state rollout;
    bert_tap taps[MAX_TAPS];
    size_t n_taps;
    bert_status status; /* of what happens here, and what it says: a tap can only stop the pass */
    bert_error error;
} student;

static int take_input(void *user, const bert_view *view) {
    student *s = user;
    memcpy(s->input, view->data, s->tokens * s->hidden * sizeof *s->input);
    return 0;
}

static int take_values(void *user, const bert_view *view) {
    student *s = user;
    memcpy(s->f, view->data, s->heads * s->tokens * s->hidden * sizeof *s->f);
    return 0;
}

/* Of one head's map: the mean of each column, and what the token's vector makes of it. */
static void take_columns(const student *s, size_t layer, size_t head, const float *weights) {
    const size_t t = s->tokens, at = (layer * s->heads + head) * t;
    const float *map = weights + head * t * t;
    const uint64_t host = bert_fpenv_enter();
    for (size_t j = 0; j < t; j++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < t; i++) sum += (double)map[i * t + j];
        if (s->want.received) s->want.received[at + j] = (float)(sum / (double)t);
        if (!s->want.given) continue;
        const float *f = s->f + (head * t + j) * s->hidden;
        for (size_t k = 0; k < s->hidden; k++) squares += (double)f[k] * (double)f[k];
        s->want.given[at + j] = (float)(sum / (double)t * sqrt(squares));
    }
    bert_fpenv_leave(host);
}

/* The maps of a layer come when its values are there. */
static int take_weights(void *user, const bert_view *view) {
    student *s = user;
    const size_t layer = (size_t)view->layer, t = s->tokens, heads = s->heads;
    if (s->want.rollout) bert_rollout_step(&s->rollout, view->data, heads);
    if (s->want.distance) bert_head_distance(s->want.distance + layer * heads, view->data, heads, t, t);
    if (s->want.entropy) bert_head_entropy(s->want.entropy + layer * heads, view->data, heads, t, t);
    if (s->want.norms)
        bert_attention_norms(s->want.norms + layer * heads * t * t, view->data, s->f, heads, t, s->hidden);
    for (size_t a = 0; a < heads && (s->want.received || s->want.given); a++) take_columns(s, layer, a, view->data);
    if (s->want.block_norms) memcpy(s->weights, view->data, heads * t * t * sizeof *s->weights);
    return 0;
}

/* Before the LayerNorm everything about the block is known. */
static int take_sum(void *user, const bert_view *view) {
    student *s = user;
    const size_t layer = (size_t)view->layer;
    const bert_block block = {.weights = s->weights, .f = s->f, .input = s->input, .sum = view->data,
                              .gamma = s->session->weights->layer[layer].out_gamma.data, .eps = s->eps,
                              .heads = s->heads, .tokens = s->tokens, .hidden = s->hidden};
    s->status = bert_block_norms(s->want.block_norms + layer * s->tokens * s->tokens, &block, &s->error);
    return s->status != BERT_OK;
}

static void add_tap(student *s, bert_site site, int (*got)(void *, const bert_view *)) {
    bert_tap *tap = &s->taps[s->n_taps++];
    *tap = (bert_tap)BERT_TAP_INIT;
    tap->site = (int32_t)site;
    tap->got = got;
    tap->user = s;
}

static bert_status prepare(student *s, bert_error *err) {
    const bool values = s->want.norms || s->want.block_norms || s->want.given;
    add_tap(s, BERT_SITE_WEIGHTS, take_weights);
    if (s->want.rollout) TRY(bert_rollout_open(&s->rollout, s->tokens, err));
    if (values) {
        add_tap(s, BERT_SITE_VALUE_OUTPUT, take_values);
        if (!(s->f = calloc(s->heads * s->tokens, s->hidden * sizeof *s->f)))
            return bert_fail(err, BERT_NO_MEMORY, "no memory for the values of %zu tokens", s->tokens);
    }
    if (s->want.block_norms) {
        add_tap(s, BERT_SITE_HIDDEN_STATES, take_input);
        add_tap(s, BERT_SITE_ATTENTION_SUM, take_sum);
        s->input = calloc(s->tokens, s->hidden * sizeof *s->input);
        s->weights = calloc(s->heads * s->tokens, s->tokens * sizeof *s->weights);
        if (!s->input || !s->weights)
            return bert_fail(err, BERT_NO_MEMORY, "no memory for the maps of %zu tokens", s->tokens);
    }
    return BERT_OK;
}

static bert_status study(student *s, bert_session *session, const bert_batch *batch, const bert_run_options *options,
                         bert_error *err) {
    TRY(prepare(s, err));
    const bert_status ran = bert_run(session, batch, s->taps, s->n_taps, options, err);
    if (s->status != BERT_OK && err) *err = s->error;
    TRY(s->status != BERT_OK ? s->status : ran);
    if (s->want.rollout) bert_rollout_result(&s->rollout, s->want.rollout);
    return BERT_OK;
}

bert_status bert_study_run(bert_session *session, const bert_study *wanted, const int32_t *ids, const int32_t *types,
                           size_t tokens, const bert_run_options *options, bert_error *err) {
    const bert_model_info model = bert_model_describe(bert_session_model(session));
    const size_t start[2] = {0, tokens};
    const bert_batch batch = {sizeof batch, 1, start, ids, types};
    student s = {.session = session, .want = BERT_STUDY_INIT, .heads = model.heads, .tokens = tokens,
                 .hidden = model.hidden, .eps = model.layer_norm_eps};
    if (tokens == 0 || bert_run_options_or_default(options).first_layer > 0)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "a study needs tokens, from layer 0 on, found %zu", tokens);
    if (tokens > model.positions)
        return bert_fail(err, BERT_TOO_LONG, "a study of %zu tokens, the model has %zu positions", tokens,
                         model.positions);
    memcpy(&s.want, wanted, wanted->size < sizeof s.want ? wanted->size : sizeof s.want);
    const bert_status status = study(&s, session, &batch, options, err);
    bert_rollout_close(&s.rollout);
    free(s.weights);
    free(s.f);
    free(s.input);
    return status;
}
