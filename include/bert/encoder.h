/* bert/encoder.h: running a model: token ids in, hidden states and attention out.
 *
 *     bert_session *s;
 *     bert_session_open(&s, model, NULL, &err);
 *     bert_tap tap = {.size = sizeof tap, .site = BERT_SITE_WEIGHTS, .layer = -1, .head = -1};
 *     tap.dst = maps, tap.dst_len = n;
 *     bert_run(s, &batch, &tap, 1, NULL, &err);
 *
 * One pass gives everything that was asked for, and asking changes no bit of it. Formulas: Vaswani et al. 2017
 * (arXiv 1706.03762), Devlin et al. 2018 (arXiv 1810.04805); arithmetic: docs/numerics.md.
 */
#ifndef BERT_ENCODER_H
#define BERT_ENCODER_H

#include <bert/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bert_session bert_session; /* scratch memory; one thread at a time; keeps its model alive */

typedef struct bert_session_options {
    size_t size;
    const bert_memory *memory;   /* NULL: the C library's */
    const bert_workers *workers; /* NULL: the calling thread alone; must outlive the session */
    size_t max_memory;           /* bytes of scratch memory; 0: no limit. A pass that needs more is BERT_NO_MEMORY */
} bert_session_options;
#define BERT_SESSION_OPTIONS_INIT {sizeof(bert_session_options), NULL, NULL, 0}

/* A session must be opened after fork(), never before it in the parent: one that notices another process id
 * answers BERT_INVALID_ARGUMENT. */
BERT_API BERT_MUST_USE bert_status bert_session_open(bert_session **session, const bert_model *model,
                                                     const bert_session_options *options, bert_error *err);
BERT_API void bert_session_close(bert_session **session);
BERT_API const bert_model *bert_session_model(const bert_session *session);

/* n texts packed one behind the other without padding: text i has tokens start[i] .. start[i+1]-1. */
typedef struct bert_batch {
    size_t size, n;
    const size_t *start;    /* [n+1], start[0] = 0, no empty text */
    const int32_t *ids;     /* [ΣT] */
    const int32_t *types;   /* [ΣT] or NULL: all 0 */
} bert_batch;

/* Where a tap listens, and what its view is for one text of T tokens. */
typedef enum bert_site {
    BERT_SITE_HIDDEN_STATES, /* [T, H]; layer 0: the embeddings after LayerNorm, layer l: output of layer l (1..L) */
    BERT_SITE_QUERY,         /* [A, T, D]; layers 0..L-1 here and below */
    BERT_SITE_KEY,           /* [A, T, D] */
    BERT_SITE_VALUE,         /* [A, T, D] */
    BERT_SITE_SCORES,        /* [A, T, T]: q·k / √D, before mask and softmax */
    BERT_SITE_WEIGHTS,       /* [A, T, T]: softmax of the scores; each row sums to 1 */
    BERT_SITE_CONTEXT,       /* [A, T, D]: weights · V */
    BERT_SITE_POOLER,        /* [H]: tanh(W·h[CLS] + b); layer is ignored */
    BERT_SITE_WORD,          /* [T, H]: one of the embeddings' three parts, before their sum; layer is ignored */
    BERT_SITE_POSITION,      /* [T, H] */
    BERT_SITE_TYPE,          /* [T, H] */
    BERT_SITE_VALUE_OUTPUT,  /* [A, T, H]: value · W_O by heads: what a token gives where its weight is 1; no edits */
    BERT_SITE_HEAD_OUTPUT,   /* [A, T, H]: context · W_O by heads; with the bias they add up to the attention output. An
                                edit adds what it changed to that output */
    BERT_SITE_ATTENTION_OUTPUT, /* [T, H]: context · W_O + b, before the residual */
    BERT_SITE_ATTENTION_SUM, /* [T, H]: the residual stream with it, before LayerNorm */
    BERT_SITE_FFN_PRE,       /* [T, F]: before the activation */
    BERT_SITE_FFN_POST,      /* [T, F]: behind it */
    BERT_SITE_FFN_OUTPUT,    /* [T, H]: before the residual */
    BERT_SITE_FFN_SUM,       /* [T, H]: the residual stream with it, before LayerNorm */
    BERT_SITE_CROSS_SCORES,  /* [A, T, Tm]: of cross-attention over the text's memory, before softmax */
    BERT_SITE_CROSS_WEIGHTS  /* [A, T, Tm] */
} bert_site;

/* A borrowed look at one result: element (i, j, k) is data[i·step[0] + j·step[1] + k·step[2]]. */
typedef struct bert_view {
    int32_t site, layer, text, rank;
    size_t dim[4], step[4];
    float *data;
} bert_view;

/* A tap asks for one site of a layer (-1: all) and a head (-1: all; ignored where the site has no heads).
 *   dst   results are written there, contiguous, in order of layer, then text, each with the shape above.
 *   got   is called on the calling thread in order of layer, then text; nonzero stops the pass (BERT_STOPPED).
 *   edit  1: what `got` wrote into the view is used from there on: masking a head, patching an activation.
 * Layers behind the last tap are not run. After an error what is in dst is unspecified. */
typedef struct bert_tap {
    size_t size;
    int32_t site, layer, head, edit;
    float *dst;     /* NULL: only `got` */
    size_t dst_len; /* floats that dst has room for */
    int (*got)(void *user, const bert_view *view);
    void *user;
} bert_tap;
#define BERT_TAP_INIT {sizeof(bert_tap), BERT_SITE_HIDDEN_STATES, -1, -1, 0, NULL, 0, NULL, NULL}

typedef struct bert_run_options {
    size_t size;
    int64_t deadline_ns;  /* CLOCK_MONOTONIC; 0: none */
    const volatile int *stop; /* polled between parts of a layer; nonzero: BERT_STOPPED. Set by an atomic store */
    int32_t first_layer;  /* where to start if `hidden` is given; nothing before it can be tapped, and in the dst of a
                             tap of all layers the places of those before it stay as they are */
    const float *hidden;  /* [ΣT, H]: the input of first_layer, instead of ids (which may be NULL then); NULL: the
                             embeddings are computed */
    const float *memory;  /* [ΣTm, H]: what a decoder's cross-attention looks at: the states that an encoder gave,
                             packed like the batch; NULL: its layers go without cross-attention, as HF's do */
    const size_t *memory_start; /* [n+1]: text i looks at rows memory_start[i] .. memory_start[i+1]-1, at least one */
} bert_run_options;
#define BERT_RUN_OPTIONS_INIT {sizeof(bert_run_options), 0, NULL, 0, NULL, NULL, NULL}

/* Floats that tap->dst needs for this batch; 0 if the tap asks for what the model does not have, or for more than a
 * size can count. Cross-attention is there only with a memory, so its size is bert_run_tap_size's to say. `options`
 * NULL: none. */
BERT_API size_t bert_tap_size(const bert_model *model, const bert_batch *batch, const bert_tap *tap);
BERT_API size_t bert_run_tap_size(const bert_model *model, const bert_batch *batch, const bert_tap *tap,
                                  const bert_run_options *options);

/* Runs the batch. In a decoder (is_decoder in config.json) a token sees itself and the tokens before it; the weights of
 * those behind it are 0. Outputs of a text have the same bits alone or with any neighbours, with any workers, on any
 * instruction set and whatever is tapped. Errors: BERT_INVALID_ARGUMENT (ids, types or lengths out of range, a dst
 * too small), BERT_TOO_LONG, BERT_NOT_FOUND (no pooler), BERT_NOT_FINITE, BERT_NO_MEMORY, BERT_IO, BERT_CHANGED,
 * BERT_STOPPED, BERT_DEADLINE; after each the session can be used again. */
BERT_API BERT_MUST_USE bert_status bert_run(bert_session *session, const bert_batch *batch, const bert_tap *taps,
                                            size_t n_taps, const bert_run_options *options, bert_error *err);

#ifdef __cplusplus
}
#endif
#endif
