/* bert/attention.h: attention on plain arrays: the formulas of Vaswani et al. 2017 (arXiv 1706.03762), computed by the
 * very kernels that the encoder uses, to the same bits.
 *
 *     float x[4][2] = {{1, 0}, {0, 1}, {1, 1}, {.5f, 1}}, weights[4][4], result[4][2];
 *     bert_attention a = BERT_ATTENTION_INIT;
 *     a.tq = a.tk = 4, a.d = 2, a.q = a.k = a.v = &x[0][0], a.weights = &weights[0][0], a.result = &result[0][0];
 *     bert_attention_run(&a, NULL, &err);
 *
 * Nothing here needs a model. Any number of threads may call these functions at once, on results of their own;
 * `workers` divide the work of one call and change no bit of it. Arithmetic: docs/numerics.md. Shapes: B texts, A
 * heads, Tq queries, Tk keys, D head size, H = A·D.
 */
#ifndef BERT_ATTENTION_H
#define BERT_ATTENTION_H

#include <bert/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How to compute; NULL for the defaults. */
typedef struct bert_compute_options {
    size_t size;
    const bert_memory *memory;   /* scratch memory; NULL: the C library's */
    const bert_workers *workers; /* NULL: the calling thread alone */
    bert_isa isa;
} bert_compute_options;
#define BERT_COMPUTE_OPTIONS_INIT {sizeof(bert_compute_options), NULL, NULL, BERT_ISA_AUTO}

/* Which keys a query may see: all conditions that are given hold together; all zero: no mask. A key that is not seen
 * has the weight 0. A query that sees no key weighs all Tk keys alike, 1/Tk each, as Hugging Face's models do. */
typedef struct bert_attention_mask {
    const size_t *keys;           /* [B]: of text b only the first keys[b] keys; NULL: all Tk */
    int causal;                   /* 1: query i sees the keys 0 … first + i */
    size_t first;                 /* place of query 0 among the keys: 0, or Tk − Tq where the queries are the last */
    const unsigned char *allowed; /* [Tq, Tk]: 0 where query i does not see key j; NULL: it sees all */
    size_t allowed_step[2];       /* elements from one text's, one head's to the next; 0: the same for all */
    const float *added;           /* [Tq, Tk]: added to the scores, −∞: not seen; NULL: nothing */
    size_t added_step[2];
} bert_attention_mask;

/* Scaled dot-product attention (section 3.2.1), for each text and head by itself:
 *     scores = q · kᵀ · scale      weights = softmax(mask(scores))      result = weights · v
 * q, k, v and result hold a vector of D floats for each text b, head a and token t, at b·step[0] + a·step[1] +
 * t·step[2]; steps of 0, 0, 0 stand for dense arrays [B, A, T, D]. A dense [B, T, A, D], which projections give, has
 * the steps {T·A·D, D, A·D}. k and v may be another text's (cross-attention); result must not overlap the inputs. */
typedef struct bert_attention {
    size_t size;
    size_t batch, heads, tq, tk, d;
    const float *q;  size_t q_step[3]; /* [B, A, Tq, D] */
    const float *k;  size_t k_step[3]; /* [B, A, Tk, D] */
    const float *v;  size_t v_step[3]; /* [B, A, Tk, D] */
    bert_attention_mask mask;
    float scale;                       /* 0: 1/√D */
    float *result; size_t result_step[3]; /* [B, A, Tq, D] */
    float *scores;                     /* [B, A, Tq, Tk], before the mask; NULL: not wanted */
    float *weights;                    /* [B, A, Tq, Tk]; NULL: not wanted */
} bert_attention;
#define BERT_ATTENTION_INIT                                                                                 \
    {sizeof(bert_attention), 1, 1, 0, 0, 0, NULL, {0, 0, 0}, NULL, {0, 0, 0}, NULL, {0, 0, 0},              \
     {NULL, 0, 0, NULL, {0, 0}, NULL, {0, 0}}, 0.0f, NULL, {0, 0, 0}, NULL, NULL}

/* Without scores and weights, memory beyond the arrays is 2·Tk·D floats and 24 rows of scores for each worker, however
 * large Tq·Tk is; heads of short texts (fewer blocks of 24 queries than four for each worker) are packed by every
 * worker for itself. Errors: BERT_INVALID_ARGUMENT (a dimension of 0, an array that is missing, keys[b] > Tk),
 * BERT_UNSUPPORTED (an instruction set that is not here), BERT_NO_MEMORY. */
BERT_API BERT_MUST_USE bert_status bert_attention_run(const bert_attention *attention,
                                                      const bert_compute_options *options, bert_error *err);

/* y = x · Wᵀ + b, as torch.nn.Linear and safetensors keep it. */
typedef struct bert_projection {
    const float *weight; /* [out, in] */
    const float *bias;   /* [out]; NULL: none */
} bert_projection;

/* Multi-head attention (section 3.2.2), with the residual and LayerNorm around it (section 3.1) where gamma is given:
 *     Q = x·W_Qᵀ + b_Q      K = m·W_Kᵀ + b_K      V = m·W_Vᵀ + b_V          (m: memory, or x)
 *     attention = concat(head 0 … A−1) · W_Oᵀ + b_O
 *     result = attention, or LayerNorm(x + attention) */
typedef struct bert_multi_head {
    size_t size;
    size_t batch, heads, tq, tk, hidden;
    const float *x;      /* [B, Tq, H] */
    const float *memory; /* [B, Tk, H]; NULL: x itself, and Tk is Tq */
    bert_projection query, key, value, output; /* each [H, H] */
    bert_attention_mask mask;
    const float *gamma, *beta; /* [H]; both or neither */
    float eps;
    float *result;  /* [B, Tq, H]; may be x */
    float *context; /* [B, Tq, H]: the heads' results side by side, before W_O; NULL: not wanted */
    float *scores;  /* [B, A, Tq, Tk] as above */
    float *weights;
} bert_multi_head;
#define BERT_MULTI_HEAD_INIT                                                                                      \
    {sizeof(bert_multi_head), 1, 1, 0, 0, 0, NULL, NULL, {NULL, NULL}, {NULL, NULL}, {NULL, NULL}, {NULL, NULL},  \
     {NULL, 0, 0, NULL, {0, 0}, NULL, {0, 0}}, NULL, NULL, 1e-12f, NULL, NULL, NULL, NULL}

/* Scratch memory: 3·B·T·H floats and what bert_attention_run takes. Errors as above, and BERT_INVALID_ARGUMENT where A
 * does not divide H. */
BERT_API BERT_MUST_USE bert_status bert_multi_head_run(const bert_multi_head *multi_head,
                                                       const bert_compute_options *options, bert_error *err);

/* y = LayerNorm(x + residual) over each of `rows` rows of H values (Ba et al. 2016, arXiv 1607.06450):
 * (s − mean) / √(var + eps) · gamma + beta, s = x + residual. residual NULL: none. y may be x or residual. */
BERT_API BERT_MUST_USE bert_status bert_add_norm(float *y, const float *x, const float *residual, const float *gamma,
                                                 const float *beta, float eps, size_t rows, size_t hidden,
                                                 const bert_compute_options *options, bert_error *err);

/* Sinusoidal positions (section 3.5): dst [T, H], H even,
 *     dst[t, 2i] = sin(t · base^(−2i/H))      dst[t, 2i+1] = cos(t · base^(−2i/H))
 * base 10000 in the paper; it must be more than 1. Within 1e-7 of the true values for t up to 10⁶; the same bits
 * everywhere. */
BERT_API BERT_MUST_USE bert_status bert_sinusoidal_positions(float *dst, size_t tokens, size_t hidden, double base,
                                                             bert_error *err);

#ifdef __cplusplus
}
#endif
#endif
