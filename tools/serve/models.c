#include "models.h"

#include <stdlib.h>
#include <string.h>

#include "results.h"
#include "say.h"

/* "all-MiniLM-L6-v2" of "models/all-MiniLM-L6-v2/"; of "." or "..", what it stands for. */
static char *name_of(const char *folder) {
    char *whole = realpath(folder, NULL);
    const char *path = whole ? whole : folder, *slash = strrchr(path, '/');
    char *name = need_copy(slash && slash[1] ? slash + 1 : path);
    free(whole);
    return name;
}

static int check_name(const models *m, const served *new) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->all[i].name, new->name) == 0)
            return say_usage("--model %s: two models are called %s, and requests could not tell them apart",
                             new->folder, new->name);
    return 0;
}

/* The head of a cross-encoder, where there is one. */
static int open_head(served *v) {
    bert_error err;
    if (!bert_model_has_head(v->engine.model, BERT_HEAD_SEQUENCE)) return 0;
    if (bert_head_open(&v->head, v->engine.model, BERT_HEAD_SEQUENCE, &err)) return say_failure(&err);
    if (bert_head_describe(v->head).labels != 1) bert_head_close(&v->head); /* classes, not relevance */
    return 0;
}

static int open_one(served *v, const settings *s) {
    bert_error err;
    settings own = *s;
    own.model = v->folder;
    TRY(engine_open(&v->engine, &own, ENGINE_PIPELINE));
    v->pipeline = bert_pipeline_describe(v->engine.pipeline);
    v->embed = (bert_embed_options)BERT_EMBED_OPTIONS_INIT;
    v->embed.max_length = v->engine.max_length;
    v->embed.truncation = s->strict ? BERT_NO_TRUNCATION : (bert_truncation)s->truncation;
    v->embed.truncation_side = (bert_side)s->truncation_side;
    v->embed.literal_specials = s->literal_specials;
    v->known.model = v->folder;
    TRY(open_head(v));
    TRY(results_facts(&v->known, &v->engine, &writer_safetensors));
    return bert_model_prepare(v->engine.model, &err) ? say_failure(&err) : 0;
}

int models_open(models *m, const settings *s) {
    const char *only;
    TRY(engine_model_path(s, &only));
    const char *const *folders = s->n_models ? s->models : &only;
    size_t n = s->n_models ? s->n_models : 1;
    m->all = need(n, sizeof *m->all);
    for (size_t i = 0; i < n; i++) {
        served *v = &m->all[i];
        *v = (served){.folder = folders[i], .name = name_of(folders[i])};
        int status = check_name(m, v);
        m->n++;
        TRY(status ? status : open_one(v, s));
    }
    return 0;
}

void models_close(models *m) {
    for (size_t i = 0; i < m->n; i++) {
        bert_tokens_close(&m->all[i].tokens);
        bert_head_close(&m->all[i].head);
        engine_close(&m->all[i].engine);
        free(m->all[i].name);
    }
    free(m->all);
    *m = (models){0};
}

served *models_find(const models *m, const char *name, size_t n) {
    if (m->n == 1) return &m->all[0];
    for (size_t i = 0; i < m->n; i++) {
        const served *v = &m->all[i];
        if ((strlen(v->name) == n && memcmp(v->name, name, n) == 0) ||
            (strlen(v->folder) == n && memcmp(v->folder, name, n) == 0))
            return &m->all[i];
    }
    return NULL;
}
