/* study/ablate_pass.c: several trials as the texts of one batch, and what each of them changed.
 *
 * A batch gives every text the bits that it has alone, so trials may share a pass. A silent head changes nothing before
 * its layer: its pass starts there, from the states that the text has as it is.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "encoder/session.h"
#include "study/ablate.h"

static bert_effects *effects_of(const bert_ablater *b, bert_trial_kind kind) {
    return kind == BERT_TRIAL_MASK ? &b->out->masked : kind == BERT_TRIAL_REMOVE ? &b->out->removed : &b->out->silenced;
}

/* ---- Silencing, by writing back. ---- */

static int make_context_zero(void *user, const bert_view *view) {
    const bert_ablater *b = user;
    float *head = view->data + (b->first_head + (size_t)view->text) * view->step[0];
    for (size_t i = 0; i < view->dim[1]; i++) memset(head + i * view->step[1], 0, view->dim[2] * sizeof *head);
    return 0;
}

static int make_weights_uniform(void *user, const bert_view *view) {
    const bert_ablater *b = user;
    float *head = view->data + (b->first_head + (size_t)view->text) * view->step[0];
    for (size_t i = 0; i < view->dim[1] * view->dim[2]; i++) head[i] = b->uniform;
    return 0;
}

static bert_tap silencer(bert_ablater *b, size_t layer) {
    const bool zero = b->options.silence == BERT_SILENCE_ZERO;
    bert_tap tap = BERT_TAP_INIT;
    tap.site = zero ? BERT_SITE_CONTEXT : BERT_SITE_WEIGHTS;
    tap.got = zero ? make_context_zero : make_weights_uniform;
    tap.layer = (int32_t)layer;
    tap.user = b;
    tap.edit = 1;
    return tap;
}

/* ---- The pass. ---- */

/* The text with token `which` masked or removed, or as it is, behind the trials that are there; returns its length. */
static size_t add_text(bert_ablater *b, bert_trial_kind kind, size_t which, size_t at) {
    const size_t gap = kind == BERT_TRIAL_REMOVE, before = gap ? which : b->t;
    memcpy(b->ids + at, b->tokens->ids, before * sizeof *b->ids);
    memcpy(b->types + at, b->tokens->type_ids, before * sizeof *b->types);
    if (gap) {
        memcpy(b->ids + at + which, b->tokens->ids + which + 1, (b->t - which - 1) * sizeof *b->ids);
        memcpy(b->types + at + which, b->tokens->type_ids + which + 1, (b->t - which - 1) * sizeof *b->types);
    }
    if (kind == BERT_TRIAL_MASK) b->ids[at + which] = b->mask;
    return b->t - gap;
}

static bert_status run_trials(bert_ablater *b, bert_trial_kind kind, size_t layer, size_t first, size_t n,
                              bert_error *err) {
    const size_t state = b->t * b->h;
    const bert_batch batch = {sizeof batch, n, b->start, b->ids, b->types};
    bert_run_options run = b->run;
    bert_tap taps[3] = {BERT_TAP_INIT, BERT_TAP_INIT, BERT_TAP_INIT};
    size_t n_taps = 1;
    for (size_t i = 0; i < n; i++) b->start[i + 1] = b->start[i] + add_text(b, kind, first + i, b->start[i]);
    taps[0].layer = (int32_t)b->l;
    taps[0].dst = b->hidden;
    taps[0].dst_len = b->start[n] * b->h;
    if (b->plan.need_pooler) {
        taps[n_taps].site = BERT_SITE_POOLER;
        taps[n_taps].dst = b->summary;
        taps[n_taps++].dst_len = n * b->h;
    }
    if (kind == BERT_TRIAL_SILENCE) {
        for (size_t i = 0; i < n; i++)
            memcpy(b->input + i * state, b->states + layer * state, state * sizeof *b->input);
        b->first_head = first;
        run.first_layer = (int32_t)layer;
        run.hidden = b->input;
        taps[n_taps++] = silencer(b, layer);
    }
    b->out->layers_run += n * (b->l - layer);
    return bert_run(b->session, &batch, taps, n_taps, &run, err);
}

/* ---- What changed. ---- */

static float one_minus_cosine(const float *x, const float *y, size_t n) {
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        xy += (double)x[i] * (double)y[i];
        xx += (double)x[i] * (double)x[i];
        yy += (double)y[i] * (double)y[i];
    }
    const double change = 1 - xy / sqrt(xx * yy);
    return change > 0 ? (float)change : change <= 0 ? 0.0f : NAN; /* rounding must not make it negative */
}

bert_status bert_ablater_log_probs(const bert_ablater *b, float *log_probs, const float *hidden, const int32_t *ids,
                                   size_t n, bert_error *err) {
    return bert_mlm_log_probs(b->options.mlm, log_probs, hidden, ids, n, b->session->workers, err);
}

/* Mean change over the original tokens that are still there and are the text's own. */
static bert_status compare_log_probs(bert_ablater *b, float *change, const float *hidden, size_t gap, size_t removed,
                                     bert_error *err) {
    const int32_t *ids = b->tokens->ids;
    double sum = 0;
    size_t counted = 0;
    if (gap) { /* the ids without it; the pass's own are no longer needed */
        memcpy(b->ids, ids, removed * sizeof *ids);
        memcpy(b->ids + removed, ids + removed + 1, (b->t - removed - 1) * sizeof *ids);
    }
    TRY(bert_ablater_log_probs(b, b->probable, hidden, gap ? b->ids : ids, b->t - gap, err));
    const uint64_t host = bert_fpenv_enter();
    for (size_t i = 0; i < b->t; i++) {
        if (b->tokens->special_tokens_mask[i] || (gap && i == removed)) continue;
        sum += (double)b->probable[i - (gap && i > removed)] - (double)b->log_prob[i];
        counted++;
    }
    *change = counted ? (float)(sum / (double)counted) : NAN;
    bert_fpenv_leave(host);
    return BERT_OK;
}

static bert_status compare(bert_ablater *b, bert_trial_kind kind, size_t effect, size_t which, const float *hidden,
                           const float *summary, bert_error *err) {
    const size_t gap = kind == BERT_TRIAL_REMOVE, dim = b->plan.dim;
    const bert_effects *e = effects_of(b, kind);
    const bert_encoding length = {.n = b->t - gap};
    TRY(bert_pipeline_pool(b->pipeline, b->changed, hidden, summary, &length, b->options.embed, err));
    const uint64_t host = bert_fpenv_enter();
    e->embedding[effect] = one_minus_cosine(b->vector, b->changed, dim);
    for (size_t i = 0; i < b->t; i++)
        if (!gap || i != which)
            e->tokens[effect * b->t + i] = one_minus_cosine(b->states + (b->l * b->t + i) * b->h,
                                                            hidden + (i - (gap && i > which)) * b->h, b->h);
    bert_fpenv_leave(host);
    if (!b->options.mlm) return BERT_OK;
    return compare_log_probs(b, &e->log_prob[effect], hidden, gap, which, err);
}

bert_status bert_ablater_try(bert_ablater *b, bert_trial_kind kind, size_t layer, size_t first, size_t n,
                             bert_error *err) {
    for (size_t done = 0, now; done < n; done += now) {
        now = n - done < b->room ? n - done : b->room;
        TRY(run_trials(b, kind, layer, first + done, now, err));
        for (size_t i = 0; i < now; i++) {
            const size_t which = first + done + i;
            TRY(compare(b, kind, kind == BERT_TRIAL_SILENCE ? layer * b->a + which : which, which,
                        b->hidden + b->start[i] * b->h, b->plan.need_pooler ? b->summary + i * b->h : NULL, err));
        }
    }
    return BERT_OK;
}
