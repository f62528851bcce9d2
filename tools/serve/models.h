/* serve/models.h: the models that are served, and the names under which requests ask for them. */
#ifndef SERVE_MODELS_H
#define SERVE_MODELS_H

#include "engine.h"
#include "output/writer.h"

typedef struct served {
    const char *folder;
    char *name; /* the last part of the folder's path */
    engine engine;
    bert_pipeline_info pipeline;
    bert_head *head;          /* scores pairs of query and document; NULL: the model is none for that */
    bert_embed_options embed; /* as the command line says; its length and truncation hold for all requests */
    facts known;
    bert_tokens *tokens; /* of the thread that reads requests */
} served;

typedef struct models {
    served *all;
    size_t n;
} models;

/* Opens the folders of s->models (or the one that s->model or $BERT_MODEL names) and packs their weights. */
int models_open(models *m, const settings *s);
void models_close(models *m);

/* The one that a request calls `name`; with one model whatever the name. NULL: none. */
served *models_find(const models *m, const char *name, size_t n);

#endif
