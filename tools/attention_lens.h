/* attention_lens.h: the logit lens: which words the head for masked words would say if a layer were the last. */
#ifndef ATTENTION_LENS_H
#define ATTENTION_LENS_H

#include "results.h"

typedef struct lens {
    const engine *engine;
    bert_mlm *head; /* NULL: the lens is not wanted */
    size_t top;     /* K words a token */
    int32_t *ids;   /* [T, K] of the layer that is being written */
    int64_t *wide;  /* the same as files have them */
    float *log_probs;
    buffer name, words;
} lens;

/* The model's head; K = `top`. */
int lens_open(lens *l, const engine *e, size_t top);
/* Of one layer's hidden states [T, H]: logit_lens.{l} [1, T, K], log-probabilities, best first; logit_lens_ids.{l}, the
 * words' ids; logit_lens_tokens.{l}, the words as JSON lists, where there is a vocabulary. */
int lens_write(lens *l, writer *w, const bert_view *states);
void lens_close(lens *l);

#endif
