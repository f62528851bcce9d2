/* attention_study.h: what else can be asked about attention: the numbers of bert/study.h as tensors. */
#ifndef ATTENTION_STUDY_H
#define ATTENTION_STUDY_H

#include "results.h"
#include "sites.h"

enum { STUDY_ROLLOUT, STUDY_NORMS, STUDY_BLOCK_NORMS, STUDY_DISTANCE, STUDY_ENTROPY, STUDIES };
extern const char *const study_names[STUDIES]; /* as --what and files call them */

/* Of what is wanted, by place in site_names and in study_names: has any heads, or layers, to choose from? */
int study_chooses_heads(const int *sites, const int *studies);
int study_chooses_layers(const int *sites, const int *studies);
/* Is any a table with a row for each layer? */
int study_has_rows(const int *studies);

/* Floats that study `which` gives for a text of T tokens, of so many layers and heads. */
size_t study_floats(int which, size_t layers, size_t heads, size_t T);

/* Runs the text once more for what is wanted (by place in study_names): x[i] gets rollout [T, T], norms [L, A, T, T],
 * block_norms [L, T, T], distance or entropy [L, A]; to be freed, also after an error. */
int study_run(float *x[STUDIES], const int *wanted, const engine *e, const sequence *q,
              const bert_run_options *options);

/* Does so and writes the tensors that are wanted: rollout [1, T, T],
 * norms.{l} [1, A, T, T], block_norms.{l} [1, T, T], distance and entropy [L, A]. `heads` [A] and `layers` [L]: those
 * that are kept. */
int study_write(writer *w, const engine *e, const sequence *q, const int *wanted, const char *layers,
                const char *heads);

/* Entropy and distance of every head, their mean and spread over all texts of the input, as JSON. */
int study_compare(window *w, sink *out, const engine *e, const settings *s);

#endif
