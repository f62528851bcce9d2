/* task/long_text.c: a text that is longer than a pass takes, read in overlapping windows: the states of its tokens from
 * where each has most context, and the vector that is pooled from them. */
#include <stdlib.h>
#include <string.h>

#include <bert/window.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "task/passes.h"
#include "task/pipeline.h"

typedef struct long_text long_text;

/* Where the states behind one layer go. */
typedef struct slot {
    long_text *owner;
    int32_t layer;
    float *dst; /* [T, H] */
} slot;

struct long_text {
    bert_session *session;
    const bert_run_options *run;
    size_t length, hidden, parts; /* T, H, windows */
    bert_place *places;           /* [T] */
    size_t *begin, *order;        /* tokens of window p: order[begin[p]] .. order[begin[p+1]-1] */
    float *last_layer;            /* [T, H] if nobody else wants it */
    float *ends;                  /* [3, H]: sums over the windows of first and last token and of the pooler */
    slot *slots;                  /* [n_slots]: the layers that are wanted */
    bert_tap *taps;               /* [n_taps]: a slot each, then the ends and the pooler */
    size_t n_slots, n_taps, done; /* done: windows of earlier passes */
};

/* Taps are called in the host's floating-point environment. */
static void add_row(float *sum, const float *row, size_t h) {
    const uint64_t host = bert_fpenv_enter();
    for (size_t k = 0; k < h; k++) sum[k] += row[k];
    bert_fpenv_leave(host);
}

static int take_rows(void *user, const bert_view *view) {
    const slot *s = user;
    const long_text *t = s->owner;
    const size_t part = t->done + (size_t)view->text;
    for (size_t i = t->begin[part]; i < t->begin[part + 1]; i++)
        memcpy(s->dst + t->order[i] * t->hidden, view->data + t->places[t->order[i]].token * view->step[0],
               t->hidden * sizeof *s->dst);
    return 0;
}

static int add_ends(void *user, const bert_view *view) {
    const long_text *t = user;
    add_row(t->ends, view->data, t->hidden);
    add_row(t->ends + t->hidden, view->data + (view->dim[0] - 1) * view->step[0], t->hidden);
    return 0;
}

static int add_pooler(void *user, const bert_view *view) {
    const long_text *t = user;
    add_row(t->ends + 2 * t->hidden, view->data, t->hidden);
    return 0;
}

static bert_status run_pass(void *user, const bert_batch *batch, bert_error *err) {
    long_text *t = user;
    const bert_status status = bert_run(t->session, batch, t->taps, t->n_taps, t->run, err);
    t->done += batch->n;
    return status;
}

/* Groups the tokens by the window that each is taken from. */
static void group(long_text *t) {
    for (size_t i = 0; i < t->length; i++) t->begin[t->places[i].part + 1]++;
    for (size_t p = 0; p < t->parts; p++) t->begin[p + 1] += t->begin[p];
    for (size_t i = t->length; i-- > 0;) t->order[--t->begin[t->places[i].part + 1]] = i;
    for (size_t p = 0; p < t->parts; p++) t->begin[p] = t->begin[p + 1];
    t->begin[t->parts] = t->length;
}

static void add_tap(long_text *t, int32_t site, int32_t layer, int (*got)(void *, const bert_view *), void *user) {
    bert_tap *tap = &t->taps[t->n_taps++];
    *tap = (bert_tap)BERT_TAP_INIT;
    tap->site = site;
    tap->layer = layer;
    tap->got = got;
    tap->user = user;
}

/* bert_run knows how many layers there are; to its taps -1 is all of them, which would be one behind another here. */
static bert_status check_layers(const bert_window_states *states, bert_error *err) {
    for (size_t i = 0; i < states->n_layers; i++)
        if (states->layers[i] < 0)
            return bert_fail(err, BERT_INVALID_ARGUMENT, "layer %d: expected 0 to the number of layers",
                             (int)states->layers[i]);
    return BERT_OK;
}

/* One tap for each layer that is wanted, and those that the vector is made of. */
static void make_taps(long_text *t, const bert_window_states *states, int pooler) {
    const int32_t last = (int32_t)bert_model_describe(bert_session_model(t->session)).layers;
    for (size_t i = 0; i < states->n_layers; i++)
        t->slots[t->n_slots++] = (slot){t, states->layers[i], states->hidden + i * t->length * t->hidden};
    if (t->last_layer) t->slots[t->n_slots++] = (slot){t, last, t->last_layer};
    for (size_t i = 0; i < t->n_slots; i++)
        add_tap(t, BERT_SITE_HIDDEN_STATES, t->slots[i].layer, take_rows, &t->slots[i]);
    if (t->last_layer) add_tap(t, BERT_SITE_HIDDEN_STATES, last, add_ends, t);
    if (pooler) add_tap(t, BERT_SITE_POOLER, 0, add_pooler, t);
}

static bert_status open_text(long_text *t, const bert_tokens *tokens, size_t i, size_t layers, int vector,
                             bert_error *err) {
    t->parts = bert_tokens_parts(tokens, i);
    t->length = bert_windows_length(tokens, i);
    if (t->length == 0) return bert_fail(err, BERT_INVALID_ARGUMENT, "there is no text %zu, or it has no tokens", i);
    t->places = malloc(t->length * sizeof *t->places);
    t->order = malloc(t->length * sizeof *t->order);
    t->begin = calloc(t->parts + 1, sizeof *t->begin);
    t->ends = calloc(3 * t->hidden, sizeof *t->ends);
    t->slots = calloc(layers + 1, sizeof *t->slots);
    t->taps = calloc(layers + 3, sizeof *t->taps);
    if (vector) t->last_layer = calloc(t->length, t->hidden * sizeof *t->last_layer);
    if (!t->places || !t->order || !t->begin || !t->ends || !t->slots || !t->taps || (vector && !t->last_layer))
        return bert_fail(err, BERT_NO_MEMORY, "no memory for a text of %zu tokens", t->length);
    bert_windows_place(t->places, tokens, i);
    group(t);
    return BERT_OK;
}

static void close_text(long_text *t) {
    free(t->places);
    free(t->order);
    free(t->begin);
    free(t->ends);
    free(t->slots);
    free(t->taps);
    free(t->last_layer);
}

/* Sums over the windows become means. */
static void divide(long_text *t) {
    const uint64_t host = bert_fpenv_enter();
    for (size_t k = 0; k < 3 * t->hidden; k++) t->ends[k] /= (float)t->parts;
    bert_fpenv_leave(host);
}

static bert_status pool(const long_text *t, const bert_embed_plan *plan, const bert_pipeline *pipeline, float *vector,
                        bert_error *err) {
    const bert_pool_input input = {t->last_layer, t->length, t->ends, t->ends + t->hidden, t->ends + 2 * t->hidden};
    float *scratch = malloc(2 * plan->width * sizeof *scratch);
    if (!scratch) return bert_fail(err, BERT_NO_MEMORY, "no memory for a vector of %zu values", plan->width);
    const bert_status status = bert_embed_plan_pool(plan, pipeline, vector, scratch, &input, err);
    free(scratch);
    return status;
}

bert_status bert_embed_windows(bert_session *session, const bert_pipeline *pipeline, const bert_tokens *tokens,
                               size_t i, float *vector, const bert_window_states *given,
                               const bert_embed_options *options, bert_error *err) {
    bert_window_states states = BERT_WINDOW_STATES_INIT;
    long_text t = {.session = session, .hidden = bert_model_describe(pipeline->model).hidden};
    bert_embed_plan plan;
    bert_status status;
    if (bert_session_model(session) != pipeline->model)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "the session is of another model than the pipeline's");
    if (given) memcpy(&states, given, given->size < sizeof states ? given->size : sizeof states);
    TRY_OR_DONE(check_layers(&states, err));
    TRY_OR_DONE(bert_embed_plan_make(&plan, pipeline, options, err));
    TRY_OR_DONE(open_text(&t, tokens, i, states.n_layers, vector != NULL, err));
    t.run = plan.options.run;
    make_taps(&t, &states, (vector && plan.need_pooler) || states.pooler);
    TRY_OR_DONE(bert_passes_run(tokens, &i, 1, plan.options.pass_tokens, run_pass, &t, err));
    divide(&t);
    if (states.pooler) memcpy(states.pooler, t.ends + 2 * t.hidden, t.hidden * sizeof *states.pooler);
    if (vector) TRY_OR_DONE(pool(&t, &plan, pipeline, vector, err));
done:
    close_text(&t);
    return status;
}
