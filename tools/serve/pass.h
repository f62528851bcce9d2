/* serve/pass.h: some texts of one model, packed and run at once: all for their vectors, or all for their relevance. */
#ifndef SERVE_PASS_H
#define SERVE_PASS_H

#include "job.h"

/* A text of a job. */
typedef struct item {
    job *of;
    size_t text;
} item;

typedef struct pass {
    item *items; /* [n] */
    size_t n, room, tokens;
    size_t *start;
    int32_t *ids, *types;
    float *logits; /* [n] */
} pass;

void pass_add(pass *p, job *j, size_t text);
/* Runs it; what cannot be done is told to the jobs concerned. */
void pass_run(pass *p);
void pass_close(pass *p);

#endif
