/* bert/heads.h: what was trained on top of an encoder: classes of texts, relevance of a pair, masked words.
 * Entities and answers, which are found in a text, are in bert/extract.h.
 *
 *     bert_head *head; float scores[2];
 *     bert_head_open(&head, bert_pipeline_model(p), BERT_HEAD_SEQUENCE, &err);
 *     bert_rerank(session, p, head, scores, "how old are you", 15, documents, 2, NULL, NULL, &err);
 *
 *     bert_mlm *mlm; float logits[V];
 *     bert_mlm_open(&mlm, model, &err);
 *     bert_mlm_logits(mlm, logits, hidden + position * H, 1, NULL, &err);   hidden: the last layer's [T, H]
 *
 * Heads stand on encoders; on a decoder (is_decoder in config.json) opening one is BERT_UNSUPPORTED.
 */
#ifndef BERT_HEADS_H
#define BERT_HEADS_H

#include <bert/embed.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Linear heads: logits = W·x + b, W [N, H], where x is the pooler's output or a token's last hidden state. ---- */

typedef enum bert_head_kind {
    BERT_HEAD_NEXT,     /* cls.seq_relationship over the pooler, N = 2: text b follows text a, or does not */
    BERT_HEAD_SEQUENCE, /* classifier over the pooler: the classes of a text or pair; N = 1: its relevance */
    BERT_HEAD_TOKENS,   /* classifier over each token: the classes of tokens */
    BERT_HEAD_SPAN,     /* qa_outputs over each token, N = 2: an answer starts here, ends here */
    BERT_HEAD_WORDS     /* masked words: bert_mlm below, which is no bert_head */
} bert_head_kind;

/* 1 if the files have such a head for this encoder. Of SEQUENCE and TOKENS, whose tensors have one name, a model has
 * the one that `architectures` in config.json says, else SEQUENCE if it has a pooler. */
BERT_API int bert_model_has_head(const bert_model *model, bert_head_kind kind);
/* 1 if the head of this kind uses the tensor of this name. */
BERT_API int bert_model_head_uses(const bert_model *model, bert_head_kind kind, const char *tensor);

typedef struct bert_head bert_head; /* immutable; any number of threads; keeps its model alive */

/* Reads and packs N × H floats, and of config.json what the kind needs. BERT_NOT_FOUND: the model has no such head;
 * the message names the tensor. BERT_BAD_FILE: labels that do not fit the tensor, a problem_type that is none. */
BERT_API BERT_MUST_USE bert_status bert_head_open(bert_head **head, const bert_model *model, bert_head_kind kind,
                                                  bert_error *err);
BERT_API void bert_head_close(bert_head **head);

/* How logits become scores. */
typedef enum bert_scoring {
    BERT_SCORING_AUTO,    /* what the files say: bert_head_info */
    BERT_SCORING_LOGITS,  /* as they are */
    BERT_SCORING_SIGMOID, /* each by itself: 1 / (1 + e^-x) */
    BERT_SCORING_SOFTMAX  /* the N of one text or token together */
} bert_scoring;

typedef struct bert_head_info {
    bert_head_kind kind;
    size_t labels;         /* N */
    /* As transformers' text classification: problem_type "regression": logits; "multi_label_classification", or N = 1:
     * sigmoid; else softmax. TOKENS and NEXT: softmax; SPAN, whose two are no classes of one thing: logits. */
    bert_scoring classify;
    /* As sentence-transformers' CrossEncoder: activation_fn of config_sentence_transformers.json, or in config.json
     * sentence_transformers.activation_fn or sbert_ce_default_activation_function; else sigmoid if N = 1, else logits.
     * AUTO: the files name a function that is not known here. */
    bert_scoring rerank;
} bert_head_info;
BERT_API bert_head_info bert_head_describe(const bert_head *head);
/* id2label of config.json, "LABEL_i" where there is none; lives as long as the head. NULL behind the last, and for
 * kinds whose outputs have no names. */
BERT_API const char *bert_head_label(const bert_head *head, size_t i);

/* logits of a packed batch: [n, N] of NEXT and SEQUENCE, [ΣT, N] of TOKENS and SPAN. Same bits whatever else is in the
 * batch. The session must be of the head's model. Errors of bert_run; BERT_NOT_FINITE also for a logit. */
BERT_API BERT_MUST_USE bert_status bert_head_run(bert_session *session, const bert_head *head, float *logits,
                                                 const bert_batch *batch, const bert_run_options *options,
                                                 bert_error *err);
/* The same for all texts of `tokens`, each part as a text of its own (bert_tokenize without padding), in passes of
 * about pass_tokens (0: a good value; never changes a result). logits: bert_head_size floats, parts one behind the
 * other. */
BERT_API size_t bert_head_size(const bert_head *head, const bert_tokens *tokens);
BERT_API BERT_MUST_USE bert_status bert_head_run_tokens(bert_session *session, const bert_head *head, float *logits,
                                                        const bert_tokens *tokens, size_t pass_tokens,
                                                        const bert_run_options *options, bert_error *err);

/* scores [n, N] of logits [n, N]; they may be the same array. AUTO is what `classify` of the head's info says. Pure;
 * any thread. BERT_INVALID_ARGUMENT: no such scoring. */
BERT_API BERT_MUST_USE bert_status bert_head_score(const bert_head *head, float *scores, const float *logits, size_t n,
                                                   bert_scoring scoring, bert_error *err);

/* ---- Texts to scores. ---- */

typedef struct bert_score_options {
    size_t size;
    bert_scoring scoring;
    size_t max_length;           /* 0: the model's own */
    bert_truncation truncation;
    bert_side truncation_side;
    int literal_specials;
    size_t pass_tokens;          /* tokens of one pass; 0: a good value. Never changes a result */
    const bert_run_options *run; /* stop flag and deadline; NULL: none */
    const char *prompt_name, *prompt; /* as bert_embed_options has them, put before the query by bert_rerank */
} bert_score_options;
#define BERT_SCORE_OPTIONS_INIT {sizeof(bert_score_options), BERT_SCORING_AUTO, 0, BERT_LONGEST_FIRST, BERT_RIGHT, 0, \
                                 0, NULL, NULL, NULL}

/* scores [n, N] of any number of texts or pairs, with a head of kind SEQUENCE or NEXT (which takes pairs only: scores
 * are softmax of "follows" and "does not"). `infos` [n] or NULL says what happened to each text. Errors as bert_embed,
 * BERT_INVALID_ARGUMENT also for a head of another kind or model. */
BERT_API BERT_MUST_USE bert_status bert_classify(bert_session *session, const bert_pipeline *pipeline,
                                                 const bert_head *head, float *scores, const bert_text *texts, size_t n,
                                                 const bert_score_options *options, bert_embed_info *infos,
                                                 bert_error *err);
/* scores [n]: how well each document (`a` of the text; b must be NULL) answers the query, in the order given; higher is
 * better. The model reads query and document as a pair (Nogueira & Cho 2019, arXiv 1901.04085), behind the folder's
 * default prompt, as CrossEncoder has it. The head must be of kind SEQUENCE with N = 1. Where the files name a function
 * that is not known here, AUTO is BERT_UNSUPPORTED. */
BERT_API BERT_MUST_USE bert_status bert_rerank(bert_session *session, const bert_pipeline *pipeline,
                                               const bert_head *head, float *scores, const char *query,
                                               size_t query_len, const bert_text *documents, size_t n,
                                               const bert_score_options *options, bert_embed_info *infos,
                                               bert_error *err);

/* ---- Masked words. ---- */

/* The head of masked language modelling (Devlin et al. 2018, arXiv 1810.04805): logits = W ·
 * LayerNorm(act(W_t·h + b_t)) + b over the vocabulary, where W is cls.predictions.decoder.weight, or where that is not
 * stored the word embeddings, to which it is tied. Immutable; any number of threads; keeps its model alive. */
typedef struct bert_mlm bert_mlm;

/* Reads and packs the head's weights, V × H floats and a little. BERT_NOT_FOUND: the model has no such head. */
BERT_API BERT_MUST_USE bert_status bert_mlm_open(bert_mlm **mlm, const bert_model *model, bert_error *err);
BERT_API void bert_mlm_close(bert_mlm **mlm);

/* logits [n, V] of the n last hidden states [n, H]. Same bits for any n and workers (NULL: the calling thread).
 * BERT_NOT_FINITE: a logit is NaN or infinite; BERT_NO_MEMORY. */
BERT_API BERT_MUST_USE bert_status bert_mlm_logits(const bert_mlm *mlm, float *logits, const float *hidden, size_t n,
                                                   const bert_workers *workers, bert_error *err);
/* log_probs [n]: natural logarithm of the probability that ids[i] has at hidden[i]. Needs no room for V values an n. An
 * id that is none of the V words is BERT_INVALID_ARGUMENT; else errors as bert_mlm_logits. */
BERT_API BERT_MUST_USE bert_status bert_mlm_log_probs(const bert_mlm *mlm, float *log_probs, const float *hidden,
                                                      const int32_t *ids, size_t n, const bert_workers *workers,
                                                      bert_error *err);
/* The k most probable words at each of n places, best first, of equal ones the lower id: ids [n, k], and log_probs
 * [n, k], natural logarithms over all V words. Over BERT_SITE_HIDDEN_STATES of every layer it is the
 * logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens"): which word each layer would say if it were the
 * last. k is 1 to V, else BERT_INVALID_ARGUMENT; other errors as bert_mlm_logits. */
BERT_API BERT_MUST_USE bert_status bert_mlm_top(const bert_mlm *mlm, int32_t *ids, float *log_probs,
                                                const float *hidden, size_t n, size_t k, const bert_workers *workers,
                                                bert_error *err);

/* The k likeliest words for every token of `tokens` with the id `mask`, in order of text, part and token: ids and
 * scores [bert_mlm_count, k], best first. Scores are probabilities, or with `raw` 1 logits. pass_tokens as above.
 * `tokens` without padding. Errors as bert_run and bert_mlm_top. */
BERT_API size_t bert_mlm_count(const bert_tokens *tokens, int32_t mask);
BERT_API BERT_MUST_USE bert_status bert_mlm_fill(bert_session *session, const bert_mlm *mlm, int32_t *ids,
                                                 float *scores, const bert_tokens *tokens, int32_t mask, size_t k,
                                                 int raw, size_t pass_tokens, const bert_run_options *options,
                                                 bert_error *err);

#ifdef __cplusplus
}
#endif
#endif
