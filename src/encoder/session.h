/* encoder/session.h: the scratch memory of one thread that runs passes, and the pass itself. */
#ifndef BERT_ENCODER_SESSION_H
#define BERT_ENCODER_SESSION_H

#include <sys/types.h>

#include <bert/encoder.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "model/model.h"

/* Everything a pass writes, sized in bert_session_reserve and nowhere else. A layer needs query, key, value and
 * context first and the FFN's inner values later, so the two share one place. */
typedef struct bert_buffers {
    float *hidden;  /* [T, H]: residual stream */
    float *sum;     /* [T, H]: a sublayer's output plus its residual, before LayerNorm */
    float *qkv;     /* [T, 3H] */
    float *context; /* [T, H] */
    float *inner; size_t inner_stride; /* [T, F]; same place as qkv and context */
    float *pooled;  /* [B, H] */
    float *memory_kv; /* [ΣTm, 2H]: key and value of the memory; NULL: there is none */
    float *scores;  /* [A, T, Tk] of one text, only if a tap wants to look: else NULL */
    float *weights; /* likewise */
    float *by_head; /* [1 or 2, A, T, H] of one text: W_O's results by heads, and before an edit; NULL: not asked for */
    size_t *map_start, *cross_start; /* [n+1]: ΣT² and ΣT·Tm of the texts before; set if a tap keeps maps */
    float *scratch; /* [slots, slot_floats] */
    size_t slot_floats;
} bert_buffers;

struct bert_session {
    const bert_model *model; /* retained */
    const bert_config *config;
    const bert_kernels *kernels;
    const bert_weights *weights;
    bert_memory memory;
    const bert_workers *workers;
    size_t max_memory;
    pid_t pid;
    bert_arena arena;
};

/* One call of bert_run on its way through the layers. */
typedef struct bert_pass {
    bert_session *session;
    const bert_batch *batch;
    const bert_tap *taps;
    size_t n_taps;
    bert_run_options options;
    size_t tokens;      /* ΣT */
    size_t longest;     /* max T */
    size_t memory_tokens, longest_memory; /* ΣTm, max Tm; 0: no memory */
    size_t layers;      /* layers that the taps need */
    bool need_last_ffn; /* false: nobody asks for anything behind the last layer's attention */
    bool need_pooler;
    bool look_at_maps;  /* a tap's `got` wants scores or weights */
    bool keep_maps;     /* a tap's `dst` does */
    size_t by_head;     /* arrays [A, T, H] that taps need: 2 if they may edit */
    bool packed;        /* the matrices are in memory; else they are read from the file, block by block */
    bert_buffers b;
} bert_pass;

/* The caller's options, those that its header did not know at their defaults. */
bert_run_options bert_run_options_or_default(const bert_run_options *given);

/* Makes room for the pass and fills pass->b. */
BERT_MUST_USE bert_status bert_session_reserve(bert_pass *pass, bert_error *err);

/* Runs items over the session's workers; between them the stop flag and the deadline are looked at. */
BERT_MUST_USE bert_status bert_pass_parallel(bert_pass *pass, size_t items, bert_parallel_body body, void *arg,
                                             bert_error *err);

float *bert_pass_scratch(const bert_pass *pass, int slot);

/* Matrix rows that a pass from the file reads at once. */
enum { BERT_FILE_ROWS = BERT_TILE_PANELS * BERT_PANEL };

/* y[t, N] = epilogue(x[t, K] · Wᵀ + bias) + residual, with our kernels or the model's GEMM hook. `linear` says t, y, x
 * and what else it needs of residual, epilogue and strides; a stride of 0 is that of dense rows. */
BERT_MUST_USE bert_status bert_pass_linear(bert_pass *pass, const bert_param *w, const bert_param *bias,
                                           bert_linear linear, bert_error *err);
/* y[t, n] = epilogue(y) + residual: what bert_pass_linear left out because somebody looks in between. */
BERT_MUST_USE bert_status bert_pass_finish(bert_pass *pass, bert_linear linear, bert_error *err);
/* y[T, H] = LayerNorm(x). A value that is not finite is BERT_NOT_FINITE, said to be in `layer`. */
BERT_MUST_USE bert_status bert_pass_layer_norm(bert_pass *pass, float *y, const float *x, const bert_param *gamma,
                                               const bert_param *beta, size_t layer, bert_error *err);
/* BERT_NOT_FINITE with the layer's number; behind the last layer is the pooler. */
BERT_MUST_USE bert_status bert_pass_check_finite(const bert_pass *pass, const float *x, size_t n, size_t layer,
                                                 bert_error *err);

/* The parts of a pass, in the order of their use (embed.c, attention.c, ffn.c, pooler.c). */
BERT_MUST_USE bert_status bert_pass_embed(bert_pass *pass, bert_error *err);
BERT_MUST_USE bert_status bert_pass_attention(bert_pass *pass, size_t layer, bert_error *err);
/* Attention of all heads of all texts, into `context`. Its maps go to the taps of `scores` and `weights`. */
typedef struct bert_layer_heads {
    const float *q; size_t ldq;       /* [ΣT, H], heads side by side */
    const float *k, *v; size_t ldkv;  /* [ΣTk, H] */
    const size_t *keys;               /* [n+1]: text i's keys are rows keys[i] .. keys[i+1]-1 */
    const bert_attend_mask *mask;     /* NULL: none */
    bert_site scores, weights;
} bert_layer_heads;
BERT_MUST_USE bert_status bert_pass_attend(bert_pass *pass, size_t layer, const bert_layer_heads *heads,
                                           bert_error *err);
/* Does nothing without a memory. */
BERT_MUST_USE bert_status bert_pass_cross_attention(bert_pass *pass, size_t layer, bert_error *err);
/* For taps: VALUE_OUTPUT from qkv; HEAD_OUTPUT from context, whose edits are added to the attention output in `sum`. */
BERT_MUST_USE bert_status bert_pass_value_outputs(bert_pass *pass, size_t layer, bert_error *err);
BERT_MUST_USE bert_status bert_pass_head_outputs(bert_pass *pass, size_t layer, bert_error *err);
BERT_MUST_USE bert_status bert_pass_ffn(bert_pass *pass, size_t layer, bert_error *err);
BERT_MUST_USE bert_status bert_pass_pooler(bert_pass *pass, bert_error *err);

#endif
