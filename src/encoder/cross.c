/* encoder/cross.c: hidden = LayerNorm(hidden + W_O · attention of the hidden states to the memory): what a decoder's
 * layer does between its self-attention and its feed-forward part.
 */
#include "base/error.h"
#include "encoder/session.h"

bert_status bert_pass_cross_attention(bert_pass *pass, size_t layer, bert_error *err) {
    const bert_layer *w = &pass->session->weights->layer[layer];
    const bert_buffers *b = &pass->b;
    const size_t t = pass->tokens, h = pass->session->config->hidden;
    if (pass->memory_tokens == 0) return BERT_OK; /* and no place for its keys and values */
    const bert_layer_heads heads = {.q = b->qkv, .ldq = h, .k = b->memory_kv, .v = b->memory_kv + h, .ldkv = 2 * h,
                                    .keys = pass->options.memory_start,
                                    .scores = BERT_SITE_CROSS_SCORES, .weights = BERT_SITE_CROSS_WEIGHTS};
    TRY(bert_pass_linear(pass, &w->cross_query, &w->cross_query_bias,
                         (bert_linear){.t = t, .y = b->qkv, .x = b->hidden}, err));
    TRY(bert_pass_linear(pass, &w->cross_kv, &w->cross_kv_bias,
                         (bert_linear){.t = pass->memory_tokens, .y = b->memory_kv, .x = pass->options.memory}, err));
    TRY(bert_pass_attend(pass, layer, &heads, err));
    TRY(bert_pass_linear(pass, &w->cross_out, &w->cross_out_bias,
                         (bert_linear){.t = t, .y = b->sum, .x = b->context, .residual = b->hidden}, err));
    return bert_pass_layer_norm(pass, b->hidden, b->sum, &w->cross_gamma, &w->cross_beta, layer, err);
}
