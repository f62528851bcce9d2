/* verify_compare.h: runs a text and compares all that a file has of it. */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include "reference.h"
#include "results.h"

/* A text, and where the file has its results. */
typedef struct compared {
    const sequence *tokens;
    const float *memory; /* [memory_rows, H]: what a decoder looks at; NULL: nothing */
    size_t memory_rows;
    long text;     /* the n of "{n}." in front of the names of its tensors; -1: none */
    size_t row;    /* in those tensors, */
    size_t number; /* and in those of embeddings */
} compared;

typedef struct comparison {
    const engine *engine;
    const bert_embed_options *embed; /* how vectors are made */
    reference *file;                 /* its targets gather the differences */
    /* Grown as texts need it, and kept for the next one. */
    bert_tap *taps;
    float *last, *pooler; /* [T, H], [H]: what a vector is made of */
    float *vector;        /* [dim] */
    float *values;        /* of a view */
    double *theirs;
    /* while it is run */
    const compared *now;
    int status;
} comparison;

/* Adds to every target that has results of the text how far ours are from them. */
int comparison_run(comparison *c, const compared *text);
void comparison_close(comparison *c);

#endif
