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
    const bert_linear tanh = {.t = batch->n, .y = pass->b.pooled, .x = first, .epilogue = BERT_EPILOGUE_TANH};
    return bert_pass_linear(pass, &w->pooler, &w->pooler_bias, tanh, err);
}
