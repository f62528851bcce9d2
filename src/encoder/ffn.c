/* encoder/ffn.c: hidden = LayerNorm(hidden + W_down · act(W_up · hidden)). */
#include "base/error.h"
#include "encoder/session.h"
#include "encoder/taps.h"

/* Activation and residual belong to the edge of a product's tiles, unless somebody looks in between; the values are the
 * same. */
static bert_status widen(bert_pass *pass, size_t layer, bert_error *err) {
    const bert_layer *w = &pass->session->weights->layer[layer];
    const bert_epilogue activation = bert_epilogue_of(pass->session->config->activation);
    const size_t t = pass->tokens, f = pass->session->config->intermediate;
    const bool apart = bert_taps_wanted(pass, BERT_SITE_FFN_PRE, layer);
    TRY(bert_pass_linear(pass, t, pass->b.inner, pass->b.hidden, &w->up, &w->up_bias, NULL,
                         apart ? BERT_EPILOGUE_NONE : activation, err));
    TRY(bert_taps_emit(pass, BERT_SITE_FFN_PRE, layer, pass->b.inner, f, err));
    if (apart) TRY(bert_pass_finish(pass, t, pass->b.inner, f, NULL, activation, err));
    return bert_taps_emit(pass, BERT_SITE_FFN_POST, layer, pass->b.inner, f, err);
}

bert_status bert_pass_ffn(bert_pass *pass, size_t layer, bert_error *err) {
    const bert_layer *w = &pass->session->weights->layer[layer];
    const bert_buffers *b = &pass->b;
    const size_t t = pass->tokens, h = pass->session->config->hidden;
    const bool apart = bert_taps_wanted(pass, BERT_SITE_FFN_OUTPUT, layer);
    TRY(widen(pass, layer, err));
    TRY(bert_pass_linear(pass, t, b->sum, b->inner, &w->down, &w->down_bias, apart ? NULL : b->hidden,
                         BERT_EPILOGUE_NONE, err));
    TRY(bert_taps_emit(pass, BERT_SITE_FFN_OUTPUT, layer, b->sum, h, err));
    if (apart) TRY(bert_pass_finish(pass, t, b->sum, h, b->hidden, BERT_EPILOGUE_NONE, err));
    TRY(bert_taps_emit(pass, BERT_SITE_FFN_SUM, layer, b->sum, h, err));
    return bert_pass_layer_norm(pass, b->hidden, b->sum, &w->down_gamma, &w->down_beta, layer, err);
}
