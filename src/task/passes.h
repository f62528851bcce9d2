/* task/passes.h: tokenized texts as packed batches of about equal work. */
#ifndef BERT_TASK_PASSES_H
#define BERT_TASK_PASSES_H

#include <bert/encoder.h>
#include <bert/tokenizer.h>

/* What a pass is handed to; a failure ends the passes. */
typedef bert_status bert_pass_run(void *user, const bert_batch *batch, bert_error *err);

/* Calls run for n of the texts of `tokens`, those with the numbers in `texts` (NULL: the first n), in this order, each
 * part as a text of its own, as many in a batch as `budget` tokens take (0: a good number), at least one. */
BERT_MUST_USE bert_status bert_passes_run(const bert_tokens *tokens, const size_t *texts, size_t n, size_t budget,
                                          bert_pass_run *run, void *user, bert_error *err);

/* What heads look at: *states [rows, H], n rows of the batch from the pooler, or ΣT behind the last layer; freed with
 * free(), NULL after an error. */
size_t bert_pass_rows(const bert_batch *batch, int pooled);
BERT_MUST_USE bert_status bert_pass_states(float **states, bert_session *session, int pooled, const bert_batch *batch,
                                           const bert_run_options *options, bert_error *err);

#endif
