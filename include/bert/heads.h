/* bert/heads.h: what was trained on top of an encoder.
 *
 *     bert_mlm *mlm; float logits[V];
 *     bert_mlm_open(&mlm, model, &err);
 *     bert_mlm_logits(mlm, logits, hidden + position * H, 1, NULL, &err);   hidden: the last layer's [T, H]
 */
#ifndef BERT_HEADS_H
#define BERT_HEADS_H

#include <bert/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The head of masked language modelling (Devlin et al. 2018, arXiv 1810.04805): logits = W ·
 * LayerNorm(act(W_t·h + b_t)) + b over the vocabulary, where W is cls.predictions.decoder.weight, or where that is not
 * stored the word embeddings, to which it is tied. Immutable; any number of threads; keeps its model alive. */
typedef struct bert_mlm bert_mlm;

/* Reads and packs the head's weights, V × H floats and a little. BERT_NOT_FOUND: the model has no such head. */
BERT_API BERT_MUST_USE bert_status bert_mlm_open(bert_mlm **mlm, const bert_model *model, bert_error *err);
BERT_API void bert_mlm_close(bert_mlm **mlm);

/* logits [n, V] of the n last hidden states [n, H]. Same bits for any n and workers (NULL: the calling thread). */
BERT_API BERT_MUST_USE bert_status bert_mlm_logits(const bert_mlm *mlm, float *logits, const float *hidden, size_t n,
                                                   const bert_workers *workers, bert_error *err);
/* log_probs [n]: natural logarithm of the probability that ids[i] has at hidden[i]. Needs no room for V values an n. */
BERT_API BERT_MUST_USE bert_status bert_mlm_log_probs(const bert_mlm *mlm, float *log_probs, const float *hidden,
                                                      const int32_t *ids, size_t n, const bert_workers *workers,
                                                      bert_error *err);
/* The k most probable words at each of n places, best first, of equal ones the lower id: ids [n, k], and log_probs
 * [n, k], natural logarithms over all V words. Over BERT_SITE_HIDDEN_STATES of every layer it is the
 * logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens"): which word each layer would say if it were the
 * last. Errors as bert_mlm_log_probs; k is at most V. */
BERT_API BERT_MUST_USE bert_status bert_mlm_top(const bert_mlm *mlm, int32_t *ids, float *log_probs,
                                                const float *hidden, size_t n, size_t k, const bert_workers *workers,
                                                bert_error *err);

#ifdef __cplusplus
}
#endif
#endif
