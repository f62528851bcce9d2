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
    TRY(bert_pass_linear(pass, t, b->qkv, b->hidden, &w->cross_query, &w->cross_query_bias, NULL, BERT_EPILOGUE_NONE,
                         err));
    TRY(bert_pass_linear(pass, pass->memory_tokens, b->memory_kv, pass->options.memory, &w->cross_kv,
                         &w->cross_kv_bias, NULL, BERT_EPILOGUE_NONE, err));
    TRY(bert_pass_attend(pass, layer, &heads, err));
    TRY(bert_pass_linear(pass, t, b->sum, b->context, &w->cross_out, &w->cross_out_bias, b->hidden, BERT_EPILOGUE_NONE,
                         err));
    return bert_pass_layer_norm(pass, b->hidden, b->sum, &w->cross_gamma, &w->cross_beta, layer, err);
}
