/* reference.h: a file of outputs to compare with: whose inputs it has, and which of its tensors are what. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <bert/bert.h>

#include "buffer.h"
#include "difference.h"

/* A tensor of the file that we can compute. Its truth is `f64.NAME` if there is one; then `f32.NAME`, if it is there
 * too, is the other engine's own result. */
typedef struct target {
    char name[64];                         /* "hidden_states.3", "2.hidden_states.3" */
    long text;                             /* the n of "{n}." in front; -1: none */
    int site, layer;                       /* a bert_site, or one of REFERENCE_* */
    const bert_tensor_info *truth, *other; /* other NULL: none. In a npy file both are NULL */
    int rank;
    size_t dim[BERT_TENSOR_RANK];
    difference ours, others; /* from the truth */
    size_t rows;             /* of dim[0]: how many were compared */
} target;
enum { REFERENCE_NAMED = 10 };
enum { REFERENCE_EMBEDDING = 1000, REFERENCE_STUDY }; /* from there on: a study's place in study_names */

/* One input that the file holds. */
typedef struct reference_input {
    long text;            /* as above */
    size_t row;           /* of the tensors with this n */
    int32_t *ids, *types; /* [n]; NULL: the text */
    size_t n;
    char *a, *b; /* the text and its pair; NULL: none */
    float *memory; /* [memory_rows, H]: encoder_hidden_states; NULL: none */
    size_t memory_rows;
} reference_input;

typedef struct reference {
    const char *path;
    size_t hidden; /* the model's */
    bert_safetensors *file; /* NULL: npy */
    float *array;           /* the npy file's values */
    target *targets;
    size_t n_targets;
    buffer skipped;   /* " a, b": the first REFERENCE_NAMED of its other tensors, inputs apart, */
    size_t n_skipped; /* and how many there are */
    char *heads, *layers; /* [A], [L]: those that its tensors, or the tables of its studies, have; NULL: all */
    const char *prompt; /* what stood before each text that was embedded; NULL: the file does not say */
    reference_input *inputs; /* none: the file does not say */
    size_t n_inputs;
} reference;

int reference_open(reference *r, const char *path, const bert_model_info *info);
/* Elements [first, first + n) of the truth (other 0) or the other engine's result. */
int reference_read(const reference *r, const target *t, int other, size_t first, double *x, size_t n);
/* The vectors of whole texts; NULL: it has none. */
target *reference_embedding(const reference *r);
void reference_close(reference *r);

#endif
