#include "verify_compare.h"

#include <stdlib.h>

#include "attention_study.h"
#include "say.h"
#include "sites.h"

/* Adds the differences between n of our values and those of the file from `first` on. */
static int compare(comparison *c, target *t, const float *ours, size_t first, size_t n) {
    double *theirs = c->theirs = need_more(c->theirs, 2 * n, sizeof *theirs), *others = theirs + n;
    TRY(reference_read(c->file, t, 0, first, theirs, n));
    if (t->other) TRY(reference_read(c->file, t, 1, first, others, n));
    for (size_t i = 0; i < n; i++) {
        difference_add(&t->ours, (double)ours[i], theirs[i]);
        if (t->other) difference_add(&t->others, others[i], theirs[i]);
    }
    return 0;
}

static void add_shape(buffer *b, const size_t *dim, int rank) {
    buffer_byte(b, '[');
    for (int i = 0; i < rank; i++) buffer_print(b, i ? ", %zu" : "%zu", dim[i]);
    buffer_byte(b, ']');
}

/* `dim`: what it would be for one text. */
static int shape_differs(const comparison *c, const target *t, const size_t *dim, int rank) {
    buffer shape = {0};
    add_shape(&shape, t->dim, t->rank);
    buffer_text(&shape, ", that of one text is ");
    add_shape(&shape, dim, rank);
    buffer_byte(&shape, 0);
    int status = say_error("%s: %s: its shape is %s", c->file->path, t->name, shape.data);
    buffer_close(&shape);
    return status;
}

/* Row `row` of the tensor is compared. */
static int take_row(const comparison *c, target *t, size_t row) {
    if (row >= t->dim[0])
        return say_error("%s: %s: %zu rows, but there are more texts", c->file->path, t->name, t->dim[0]);
    t->rows++;
    return 0;
}

/* 1: dimension i of such a view counts tokens: the file's may be longer by padding. */
static int counts_tokens(const comparison *c, const bert_view *view, int i) {
    if (i == 2 && (view->site == BERT_SITE_CROSS_SCORES || view->site == BERT_SITE_CROSS_WEIGHTS)) return 1;
    return view->site != BERT_SITE_POOLER && (view->rank == 2 ? i == 0 : i > 0) && view->dim[i] == c->now->tokens->n;
}

/* One view, with the heads that the file has, against the row of the file's tensor that belongs to it. */
static int compare_view(comparison *c, target *t, const bert_view *view) {
    size_t dim[4], d[3] = {1, 1, 1}, n[3] = {1, 1, 1};
    const float *ours = c->values = need_more(c->values, site_floats(view), sizeof *c->values);
    int rank = site_copy(c->values, dim, view, c->file->heads), fits = t->rank == rank;
    for (int i = 1; i < rank && fits; i++) {
        fits = counts_tokens(c, view, i - 1) ? t->dim[i] >= dim[i] : t->dim[i] == dim[i];
        d[3 - rank + i] = t->dim[i];
        n[3 - rank + i] = dim[i];
    }
    if (!fits) return shape_differs(c, t, dim, rank);
    TRY(take_row(c, t, c->now->row));
    for (size_t a = 0; a < n[0]; a++)
        for (size_t i = 0; i < n[1]; i++, ours += n[2])
            TRY(compare(c, t, ours, ((c->now->row * d[0] + a) * d[1] + i) * d[2], n[2]));
    return 0;
}

static int take_view(void *user, const bert_view *view) {
    comparison *c = user;
    for (size_t i = 0; i < c->file->n_targets && !c->status; i++) {
        target *t = &c->file->targets[i];
        int same_layer = t->layer == view->layer || view->site == BERT_SITE_POOLER;
        if (t->site == view->site && t->text == c->now->text && same_layer) c->status = compare_view(c, t, view);
    }
    return c->status;
}

/* x [L, A] against the file's, which has some of its layers and heads. */
static int compare_table(comparison *c, target *t, const float *x) {
    const size_t layers = c->engine->info.layers, heads = c->engine->info.heads;
    const char *keep_layers = c->file->layers, *keep_heads = c->file->heads;
    const size_t dim[2] = {results_count(keep_layers, layers), results_count(keep_heads, heads)};
    size_t at = 0;
    if (t->rank != 2 || t->dim[0] != dim[0] || t->dim[1] != dim[1]) return shape_differs(c, t, dim, 2);
    if (t->rows) return say_error("%s: %s is of one text, but there are more", c->file->path, t->name);
    for (size_t l = 0; l < layers; l++)
        for (size_t a = 0; a < heads; a++)
            if ((!keep_layers || keep_layers[l]) && (!keep_heads || keep_heads[a]))
                TRY(compare(c, t, &x[l * heads + a], at++, 1));
    t->rows = dim[0];
    return 0;
}

/* x: all that study `which` gives for the text. */
static int compare_study(comparison *c, target *t, int which, float *x) {
    const size_t T = c->now->tokens->n, layer = (size_t)t->layer;
    if (which == STUDY_DISTANCE || which == STUDY_ENTROPY) return compare_table(c, t, x);
    bert_view map = {.rank = 2, .dim = {T, T}, .step = {T, 1}, .data = x + layer * T * T};
    if (which != STUDY_NORMS) return compare_view(c, t, &map);
    const size_t heads = c->engine->info.heads;
    bert_view maps = {.rank = 3, .dim = {heads, T, T}, .step = {T * T, T, 1}, .data = x + layer * heads * T * T};
    return compare_view(c, t, &maps);
}

static int compare_studies(comparison *c, const bert_run_options *options) {
    int wanted[STUDIES] = {0};
    float *x[STUDIES] = {0};
    for (size_t i = 0; i < c->file->n_targets; i++) {
        const target *t = &c->file->targets[i];
        if (t->site >= REFERENCE_STUDY && t->text == c->now->text) wanted[t->site - REFERENCE_STUDY] = 1;
    }
    int status = study_run(x, wanted, c->engine, c->now->tokens, options);
    for (size_t i = 0; i < c->file->n_targets && !status; i++) {
        target *t = &c->file->targets[i];
        const int which = t->site - REFERENCE_STUDY;
        if (which >= 0 && t->text == c->now->text) status = compare_study(c, t, which, x[which]);
    }
    for (int i = 0; i < STUDIES; i++) free(x[i]);
    return status;
}

static int compare_embedding(comparison *c, target *t) {
    bert_error err;
    bert_encoding tokens = {.n = c->now->tokens->n, .ids = c->now->tokens->ids, .type_ids = c->now->tokens->types};
    size_t dim = bert_pipeline_dim(c->engine->pipeline, c->embed);
    c->vector = need_more(c->vector, dim, sizeof *c->vector);
    if (bert_pipeline_pool(c->engine->pipeline, c->vector, c->last, c->pooler, &tokens, c->embed, &err))
        return say_failure(&err);
    if (t->rank != 2 || t->dim[1] != dim) return shape_differs(c, t, (size_t[]){1, dim}, 2);
    TRY(take_row(c, t, c->now->number));
    return compare(c, t, c->vector, c->now->number * dim, dim);
}

/* A tap for each site and layer that the file has for this text, and for what the embedding is made of. */
static size_t make_taps(comparison *c, int embeds) {
    const bert_model_info *info = &c->engine->info;
    size_t n = 0;
    c->taps = need_more(c->taps, c->file->n_targets + 2, sizeof *c->taps);
    for (size_t i = 0; i < c->file->n_targets; i++) {
        const target *t = &c->file->targets[i];
        int seen = t->site >= REFERENCE_EMBEDDING || t->text != c->now->text;
        for (size_t k = 0; k < n && !seen; k++) seen = c->taps[k].site == t->site && c->taps[k].layer == t->layer;
        if (seen) continue;
        c->taps[n] = (bert_tap)BERT_TAP_INIT;
        c->taps[n].site = t->site;
        c->taps[n].layer = t->layer;
        c->taps[n].got = take_view;
        c->taps[n++].user = c;
    }
    if (!embeds) return n;
    c->last = need_more(c->last, c->now->tokens->n * info->hidden, sizeof *c->last);
    c->taps[n] = (bert_tap)BERT_TAP_INIT;
    c->taps[n].layer = (int32_t)info->layers;
    c->taps[n].dst = c->last;
    c->taps[n++].dst_len = c->now->tokens->n * info->hidden;
    if (bert_pipeline_describe(c->engine->pipeline).pooling != BERT_POOLING_POOLER) return n;
    c->pooler = need_more(c->pooler, info->hidden, sizeof *c->pooler);
    c->taps[n] = (bert_tap)BERT_TAP_INIT;
    c->taps[n].site = BERT_SITE_POOLER;
    c->taps[n].dst = c->pooler;
    c->taps[n].dst_len = info->hidden;
    return n + 1;
}

int comparison_run(comparison *c, const compared *text) {
    const sequence *q = text->tokens;
    target *embedding = reference_embedding(c->file);
    const size_t start[2] = {0, q->n}, memory_start[2] = {0, text->memory_rows};
    const bert_batch batch = {sizeof batch, 1, start, q->ids, q->types};
    bert_run_options options = c->engine->run;
    bert_error err;
    c->now = text;
    size_t n_taps = make_taps(c, embedding != NULL);
    options.memory = text->memory;
    options.memory_start = memory_start;
    bert_status ran = bert_run(c->engine->session, &batch, c->taps, n_taps, &options, &err);
    int status = c->status;
    if (!status && ran) status = say_failure(&err);
    if (!status && embedding) status = compare_embedding(c, embedding);
    if (!status) status = compare_studies(c, &options);
    c->now = NULL;
    return status;
}

void comparison_close(comparison *c) {
    free(c->taps);
    free(c->last);
    free(c->pooler);
    free(c->vector);
    free(c->values);
    free(c->theirs);
}
