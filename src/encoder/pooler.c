/* encoder/pooler.c: pooled = tanh(W · h[CLS] + b), the model's own summary of a text. */
#include <string.h>

#include "encoder/session.h"

bert_status bert_pass_pooler(bert_pass *pass, bert_error *err) {
    const bert_weights *w = pass->session->weights;
    const bert_batch *batch = pass->batch;
    const size_t h = pass->session->config->hidden;
    float *first = pass->b.sum; /* [B, H]: the first token of each text */
    for (size_t i = 0; i < batch->n; i++)
        memcpy(first + i * h, pass->b.hidden + batch->start[i] * h, h * sizeof *first);
    return bert_pass_linear(pass, batch->n, pass->b.pooled, first, &w->pooler, &w->pooler_bias, NULL,
                            BERT_EPILOGUE_TANH, err);
}
