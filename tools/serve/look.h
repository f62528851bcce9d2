/* serve/look.h: what a request wants to see of attention: the tensors of `bert attention`, written into memory. */
#ifndef SERVE_LOOK_H
#define SERVE_LOOK_H

#include "attention_study.h"
#include "job.h"
#include "sites.h"

/* Numbers as a request gave them; NULL: all. Negative ones count from the end. */
typedef struct choice {
    int64_t *at;
    size_t n;
} choice;

typedef struct look {
    const writer_kind *kind;
    int wanted[SITES];    /* by place in site_names */
    int studies[STUDIES]; /* in study_names */
    choice layers, heads;
    char *bytes;          /* owns what the records point to */
    bert_tokens *tokens;  /* of these texts only */
    record *records;      /* [n] */
    sequence *sequences;  /* [n] */
    size_t n;
    facts known;
    buffer answer;
} look;

/* Sets keep[n] as the choice says; 0: one of its numbers is not there, *wrong is it. */
int choice_resolve(char *keep, size_t n, const choice *c, int64_t *wrong);

/* Bytes that the answer will have, about. */
size_t look_bytes(const look *l, const engine *e);

/* Runs the texts and fills the answer; failures go to the job. */
void look_run(job *j);
void look_close(look **l);

#endif
