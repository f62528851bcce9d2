/* serve/job.h: what a request wants of a model. Made by the thread that reads requests, filled by the one that runs the
 * model, and never touched by both at once: the queue hands it over and back. */
#ifndef SERVE_JOB_H
#define SERVE_JOB_H

#include "bounds.h"
#include "models.h"

struct look; /* look.h */

typedef struct job {
    struct job *next;
    void *owner; /* the request */
    served *model;
    size_t n;             /* texts */
    size_t *start;        /* [n+1]: where each begins among the tokens */
    int32_t *ids, *types; /* [ΣT] */
    size_t taken, done;   /* texts that have gone into a pass, that are ready */
    bert_embed_options embed;
    int ranks;         /* 1: the texts are pairs, and their relevance is wanted: dim is 1, the vectors are logits */
    size_t dim;
    float *vectors;    /* [n, dim] */
    int cancelled;     /* under the queue's lock */
    struct look *look; /* not NULL: attention is wanted, not vectors */
    bert_error failure; /* code not 0: it could not be done */
    int64_t queued_ns, began_ns, ended_ns;
} job;

/* Room for n texts of `tokens` tokens in all. */
job *job_open(served *model, size_t n, size_t tokens);
void job_close(job **j);

#endif
