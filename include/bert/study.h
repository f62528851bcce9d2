/* bert/study.h: what attention maps say, in numbers, and what a model does when parts of it are taken away.
 *
 *     float rollout[T * T], entropy[L * A];
 *     bert_study study = BERT_STUDY_INIT;
 *     study.rollout = rollout, study.entropy = entropy;
 *     bert_study_run(session, &study, ids, NULL, T, NULL, &err);
 *
 * Everything here is computed in double precision from what the taps of bert/encoder.h give, and rounded to float once
 * at the end; sums run in ascending order of index, so the same maps give the same bits everywhere. α[a,i,j] is the
 * weight with which token i looks at token j in head a. Any thread.
 */
#ifndef BERT_STUDY_H
#define BERT_STUDY_H

#include <bert/embed.h>
#include <bert/heads.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- On arrays. ---- */

/* Attention rollout (Abnar & Zuidema 2020, arXiv 2005.00928): R[0] = I, R[l] = (½·mean over heads of α +
 * ½·I) · R[l-1]; the half is the residual connection. rollout [T, T] is R of the last layer: row i says from which
 * inputs position i is mixed. weights [L, A, T, T]. Errors: BERT_NO_MEMORY. */
BERT_API BERT_MUST_USE bert_status bert_rollout(float *rollout, const float *weights, size_t layers, size_t heads,
                                                size_t tokens, bert_error *err);

/* Mean entropy of a head's rows in nats: −Σ_j α ln α, mean over i; 0 where a token looks at one other only, ln T where
 * it looks at all alike (Clark et al. 2019, arXiv 1906.04341). entropy [A], weights [A, Tq, Tk]. */
BERT_API void bert_head_entropy(float *entropy, const float *weights, size_t heads, size_t tq, size_t tk);

/* Mean distance in tokens that a head looks: Σ_j α·|i − j|, mean over i (Vig & Belinkov 2019, arXiv 1906.04284).
 * distance [A], weights [A, Tq, Tk]. */
BERT_API void bert_head_distance(float *distance, const float *weights, size_t heads, size_t tq, size_t tk);

/* Norm-based attention (Kobayashi et al. 2020, arXiv 2004.10102): ‖α[a,i,j] · f(x[j])‖ with f(x) = (x·W_V +
 * b_V)·W_O, which is BERT_SITE_VALUE_OUTPUT: a heavy weight on a short vector counts little. norms [A, T, T], weights
 * [A, T, T], f [A, T, H]. */
BERT_API void bert_attention_norms(float *norms, const float *weights, const float *f, size_t heads, size_t tokens,
                                   size_t hidden);

/* The same for the whole attention block, with residual connection and LayerNorm (Kobayashi et al. 2021, arXiv
 * 2109.07152): ‖(c − mean(c)) / s[i] ∘ γ‖, where c = Σ_a α[a,i,j]·f[a](x[j]), plus x[i] where j = i, and
 * s[i] is the standard deviation that the LayerNorm divides by. norms [T, T]. */
typedef struct bert_block {
    const float *weights; /* [A, T, T] */
    const float *f;       /* [A, T, H]: BERT_SITE_VALUE_OUTPUT */
    const float *input;   /* [T, H]: hidden states before the layer */
    const float *sum;     /* [T, H]: BERT_SITE_ATTENTION_SUM */
    const float *gamma;   /* [H]: attention.output.LayerNorm.weight */
    double eps;           /* layer_norm_eps of config.json */
    size_t heads, tokens, hidden;
} bert_block;
BERT_API BERT_MUST_USE bert_status bert_block_norms(float *norms, const bert_block *block, bert_error *err);

/* Spearman's rank correlation of x [n] and y [n]: Pearson's over the ranks, ties share the mean of theirs. *rho is NaN
 * where it has no meaning: n < 2, or all values of one side equal. Errors: BERT_NO_MEMORY. */
BERT_API BERT_MUST_USE bert_status bert_rank_correlation(double *rho, const float *x, const float *y, size_t n,
                                                         bert_error *err);

/* ---- On one text, in one pass. ---- */

/* Where the results go; NULL: not wanted. */
typedef struct bert_study {
    size_t size;
    float *rollout;     /* [T, T] */
    float *norms;       /* [L, A, T, T] */
    float *block_norms; /* [L, T, T] */
    float *distance;    /* [L, A] */
    float *entropy;     /* [L, A] */
    float *received;    /* [L, A, T]: weight that token j receives: α[a,i,j], mean over i */
    float *given;       /* [L, A, T]: norm that token j gives: ‖α[a,i,j]·f(x[j])‖, mean over i */
} bert_study;
#define BERT_STUDY_INIT {sizeof(bert_study), NULL, NULL, NULL, NULL, NULL, NULL, NULL}

/* `types` [T] or NULL. Errors as bert_run. */
BERT_API BERT_MUST_USE bert_status bert_study_run(bert_session *session, const bert_study *study, const int32_t *ids,
                                                  const int32_t *types, size_t tokens, const bert_run_options *options,
                                                  bert_error *err);

/* ---- Taking parts away. A map alone explains nothing: this is the check beside it. ---- */

typedef enum bert_silence {
    BERT_SILENCE_ZERO,   /* a silent head's context is 0 */
    BERT_SILENCE_UNIFORM /* it looks at all tokens alike */
} bert_silence;

typedef struct bert_ablate_options {
    size_t size;
    bert_silence silence;
    const bert_mlm *mlm;             /* of the same model; NULL: no log-probabilities */
    const bert_embed_options *embed; /* how the sentence vector is pooled; NULL: as the folder says */
    size_t pass_tokens;              /* tokens of one pass; 0: a good value. Never changes a result */
    const bert_run_options *run;     /* stop flag and deadline; NULL: none */
} bert_ablate_options;
#define BERT_ABLATE_OPTIONS_INIT {sizeof(bert_ablate_options), BERT_SILENCE_ZERO, NULL, NULL, 0, NULL}

/* What n changes to the model or its input did, against the model and the input as they are. NaN: not tried ([CLS] and
 * [SEP] stay; a tokenizer without [MASK]), or without meaning. */
typedef struct bert_effects {
    float *embedding; /* [n]: 1 − cosine of the sentence vectors */
    float *tokens;    /* [n, T]: 1 − cosine of each token's last hidden states; NaN for a token that was removed */
    float *log_prob;  /* [n]: change of the log-probability of the original tokens where they stand, mean over those
                         that are still there and are not [CLS] or [SEP]; NULL without a head */
} bert_effects;

enum { BERT_SAID_RECEIVED, BERT_SAID_ROLLOUT, BERT_SAID_NORM, BERT_SAID };

typedef struct bert_ablation {
    size_t tokens, layers, heads;
    bert_effects masked, removed; /* n = T: token i is [MASK], or not there */
    bert_effects silenced;        /* n = L·A: head a of layer l at l·A + a */
    /* What attention said of the tokens, [T] each: the mean weight that a token receives and the mean norm that it
     * gives (over layers, heads and queries), and its share in the rollout of what is pooled: the first row where that
     * is the first token, the last where it is the last, else the mean of all. */
    float *said[BERT_SAID];
    /* Rank correlations of the effects on the sentence vector with what attention said, over the tokens tried. */
    double masked_rank[BERT_SAID], removed_rank[BERT_SAID];
    size_t layers_run; /* how often a text went through a layer. A silent head costs only its own and those behind it */
} bert_ablation;

/* Masks and removes each token and silences each head, one at a time. `tokens`: one text of the pipeline's tokenizer,
 * not padded. The session must be of the pipeline's model. Close with bert_ablation_close. Errors as bert_run and
 * bert_pipeline_pool; BERT_UNSUPPORTED for decoders. */
BERT_API BERT_MUST_USE bert_status bert_ablate(bert_ablation **ablation, bert_session *session,
                                               const bert_pipeline *pipeline, const bert_encoding *tokens,
                                               const bert_ablate_options *options, bert_error *err);
BERT_API void bert_ablation_close(bert_ablation **ablation);

#ifdef __cplusplus
}
#endif
#endif
