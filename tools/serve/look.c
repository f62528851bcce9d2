#include "look.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

int choice_resolve(char *keep, size_t n, const choice *c, int64_t *wrong) {
    memset(keep, !c->at, n);
    if (!c->at) return 1;
    for (size_t i = 0; i < c->n; i++) {
        int64_t at = c->at[i] < 0 ? c->at[i] + (int64_t)n : c->at[i];
        *wrong = c->at[i];
        if (at < 0 || at >= (int64_t)n) return 0;
        keep[at] = 1;
    }
    return 1;
}

static size_t kept(const choice *c, size_t n) {
    return c->at && c->n < n ? c->n : n;
}

/* Floats of one text of T tokens at all sites and studies that are wanted; heads and layers that are left out do not
 * count. */
static size_t floats_of(const look *l, const engine *e, size_t T) {
    const bert_model_info *info = &e->info;
    size_t layers = kept(&l->layers, info->layers), heads = kept(&l->heads, info->heads), floats = 0;
    size_t start[2] = {0, T};
    bert_batch batch = {sizeof batch, 1, start, NULL, NULL};
    for (int i = 0; i < SITES; i++) {
        bert_tap tap = BERT_TAP_INIT;
        bert_site site = site_names[i].site;
        if (!l->wanted[i]) continue;
        tap.site = (int32_t)site;
        tap.layer = 0;
        size_t one = bert_tap_size(e->model, &batch, &tap);
        tap.head = 0;
        size_t of_head = bert_tap_size(e->model, &batch, &tap);
        size_t times = site_comes_once(site) ? 1 : kept(&l->layers, site_layers(site, info));
        floats += times * (of_head < one ? of_head * heads : one);
    }
    for (int i = 0; i < STUDIES; i++) floats += l->studies[i] ? study_floats(i, layers, heads, T) : 0;
    return floats;
}

size_t look_bytes(const look *l, const engine *e) {
    size_t floats = 0, a_float = l->kind == &writer_html ? 2 : l->kind == &writer_safetensors ? 4 : 12;
    for (size_t i = 0; i < l->n; i++) floats += floats_of(l, e, l->sequences[i].n);
    return floats * a_float;
}

/* One text on its way into the answer. */
typedef struct work {
    job *of;
    look *look;
    writer *writer;
    char *heads, *layers; /* [A], [L] */
    bert_tap *taps;
    size_t n_taps;
    buffer tokens, name, head_list, layer_list;
    float *values; /* the tensor that is being written */
    int status;
} work;

static int write_view(void *user, const bert_view *view) {
    work *w = user;
    tensor t = {.type = TENSOR_F32};
    const site_name *site = site_names;
    while (site->site != (bert_site)view->site) site++;
    w->name.len = 0;
    buffer_text(&w->name, site->tensor);
    if (!site_comes_once(site->site)) buffer_print(&w->name, ".%d", view->layer);
    buffer_byte(&w->name, 0);
    w->values = need_more(w->values, site_floats(view), sizeof *w->values);
    t.name = w->name.data;
    t.rank = site_copy(w->values, t.dim, view, w->heads);
    t.data = w->values;
    w->status = writer_tensor(w->writer, &t);
    return w->status;
}

static void make_taps(work *w, const bert_model_info *info) {
    int64_t wrong;
    char *keep = need(info->layers + 1, 1);
    w->taps = need(SITES * (info->layers + 1), sizeof *w->taps);
    for (int i = 0; i < SITES; i++) {
        if (!w->look->wanted[i]) continue;
        size_t layers = site_layers(site_names[i].site, info);
        if (site_comes_once(site_names[i].site))
            keep[0] = 1;
        else
            choice_resolve(keep, layers, &w->look->layers, &wrong);
        for (size_t l = 0; l < layers; l++) {
            if (!keep[l]) continue;
            bert_tap *tap = &w->taps[w->n_taps++];
            *tap = (bert_tap)BERT_TAP_INIT;
            tap->site = (int32_t)site_names[i].site;
            tap->layer = (int32_t)l;
            tap->got = write_view;
            tap->user = w;
        }
    }
    free(keep);
}

/* The heads and layers that are kept, and their lists for the answer unless they are all. */
static void make_choices(work *w, const bert_model_info *info) {
    int64_t wrong;
    w->heads = need(info->heads, 1);
    w->layers = need(info->layers, 1);
    choice_resolve(w->heads, info->heads, &w->look->heads, &wrong);
    choice_resolve(w->layers, info->layers, &w->look->layers, &wrong);
    w->look->known.heads = results_choice(&w->head_list, w->heads, info->heads);
    if (study_has_rows(w->look->studies))
        w->look->known.layers = results_choice(&w->layer_list, w->layers, info->layers);
}

static int run_text(work *w, const engine *e, const sequence *q, bert_error *err) {
    size_t start[2] = {0, q->n};
    bert_batch batch = {sizeof batch, 1, start, q->ids, q->types};
    about text;
    TRY(results_begin(w->writer, &text, &w->tokens, q, w->look->tokens, e));
    if (w->n_taps && bert_run(e->session, &batch, w->taps, w->n_taps, &e->run, err)) return EXIT_COULD_NOT;
    TRY(study_write(w->writer, e, q, w->look->studies, w->layers, w->heads));
    return writer_end(w->writer);
}

static int run(work *w, sink *out, bert_error *err) {
    const engine *e = &w->of->model->engine;
    make_choices(w, &e->info);
    make_taps(w, &e->info);
    w->look->known.several = w->look->n > 1;
    TRY(writer_open(&w->writer, w->look->kind, out, &w->look->known));
    for (size_t i = 0; i < w->look->n; i++) TRY(run_text(w, e, &w->look->sequences[i], err));
    TRY(writer_finish(w->writer));
    return sink_flush(out);
}

void look_run(job *j) {
    work w = {.of = j, .look = j->look};
    bert_error err = {0};
    sink *out = sink_open_memory(&j->look->answer);
    if (run(&w, out, &err)) {
        j->failure = err;
        if (!err.code) j->failure = (bert_error){BERT_IO, "the answer could not be written"};
    }
    j->done = j->n;
    writer_close(&w.writer);
    sink_abandon(&out);
    buffer_close(&w.tokens);
    buffer_close(&w.name);
    buffer_close(&w.head_list);
    buffer_close(&w.layer_list);
    free(w.heads);
    free(w.layers);
    free(w.taps);
    free(w.values);
}

void look_close(look **at) {
    look *l = *at;
    if (!l) return;
    bert_tokens_close(&l->tokens);
    buffer_close(&l->answer);
    free(l->layers.at);
    free(l->heads.at);
    free(l->bytes);
    free(l->records);
    free(l->sequences);
    free(l);
    *at = NULL;
}
