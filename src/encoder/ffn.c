/* encoder/ffn.c: hidden = LayerNorm(hidden + W_down · act(W_up · hidden)). */
#include "base/error.h"
#include "encoder/session.h"
#include "encoder/taps.h"

/* Activation and residual belong to the edge of a product's tiles, unless somebody looks in between; the values are the
 * same. */
static bert_status widen(bert_pass *pass, size_t layer, bert_error *err) {
    const bert_layer *w = &pass->session->weights->layer[layer];
    const bert_epilogue activation = bert_epilogue_of(pass->session->config->activation);
    const bool apart = bert_taps_wanted(pass, BERT_SITE_FFN_PRE, layer);
    const bert_buffers *b = &pass->b;
    bert_linear up = {.t = pass->tokens, .y = b->inner, .ldy = b->inner_stride, .x = b->hidden,
                      .epilogue = apart ? BERT_EPILOGUE_NONE : activation};
    TRY(bert_pass_linear(pass, &w->up, &w->up_bias, up, err));
    TRY(bert_taps_emit(pass, BERT_SITE_FFN_PRE, layer, b->inner, b->inner_stride, err));
    up.n = pass->session->config->intermediate;
    up.epilogue = activation;
    if (apart) TRY(bert_pass_finish(pass, up, err));
    return bert_taps_emit(pass, BERT_SITE_FFN_POST, layer, b->inner, b->inner_stride, err);
}

bert_status bert_pass_ffn(bert_pass *pass, size_t layer, bert_error *err) {
    const bert_layer *w = &pass->session->weights->layer[layer];
    const bert_buffers *b = &pass->b;
    const size_t t = pass->tokens, h = pass->session->config->hidden;
    const bool apart = bert_taps_wanted(pass, BERT_SITE_FFN_OUTPUT, layer);
    TRY(widen(pass, layer, err));
    TRY(bert_pass_linear(pass, &w->down, &w->down_bias,
                         (bert_linear){.t = t, .y = b->sum, .x = b->inner, .ldx = b->inner_stride,
                                       .residual = apart ? NULL : b->hidden},
                         err));
    TRY(bert_taps_emit(pass, BERT_SITE_FFN_OUTPUT, layer, b->sum, h, err));
    if (apart) TRY(bert_pass_finish(pass, (bert_linear){.t = t, .n = h, .y = b->sum, .residual = b->hidden}, err));
    TRY(bert_taps_emit(pass, BERT_SITE_FFN_SUM, layer, b->sum, h, err));
    return bert_pass_layer_norm(pass, b->hidden, b->sum, &w->down_gamma, &w->down_beta, layer, err);
}
