/* encode_pass.h: some sequences through the model at once, with everything that encode was asked for kept. */
#ifndef ENCODE_PASS_H
#define ENCODE_PASS_H

#include "results.h"

enum { WANT_EMBEDDING = 1, WANT_LAST = 2, WANT_HIDDEN = 4, WANT_POOLER = 8 };

typedef struct encode_wants {
    unsigned what;
    char *layers;     /* [L+1]: hidden states that are wanted */
    size_t dim;       /* of the embedding; 0: none */
    int pools_pooler; /* the embedding is made of the pooler's output */
} encode_wants;

typedef struct encode_pass {
    const engine *engine;
    const encode_wants *wants;
    const bert_embed_options *embed;
    size_t begin, end;    /* which sequences have been run */
    size_t *start;        /* [end-begin+1]: where each begins among the tokens */
    int32_t *ids, *types; /* [ΣT] */
    float **hidden;       /* [L+1], each [ΣT, H], or NULL */
    float *pooler;        /* [end-begin, H] */
    float *vector;        /* [dim] */
    buffer tokens, name;
} encode_pass;

/* 1: these options pool with the model's own pooler. */
int encode_pools_pooler(const bert_pipeline *pipeline, const bert_embed_options *embed);

/* Runs sequences from `begin` on, of `n`, as many as make a good pass. */
int encode_pass_run(encode_pass *p, const engine *e, const encode_wants *wants, const bert_embed_options *embed,
                    const sequence *all, size_t begin, size_t n);

/* Writes one of those that were run. */
int encode_pass_write(encode_pass *p, writer *w, const sequence *q, size_t at, const bert_tokens *tokens);
void encode_pass_close(encode_pass *p);

#endif
