/* encoder/ffn.c: hidden = LayerNorm(hidden + W_down · act(W_up · hidden)). */
#include "base/error.h"
#include "encoder/session.h"

static bert_epilogue epilogue_of(bert_activation activation) {
    switch (activation) {
    case BERT_GELU_TANH: return BERT_EPILOGUE_GELU_TANH;
    case BERT_RELU: return BERT_EPILOGUE_RELU;
    case BERT_SILU: return BERT_EPILOGUE_SILU;
    default: return BERT_EPILOGUE_GELU_ERF;
    }
}

bert_status bert_pass_ffn(bert_pass *pass, size_t layer, bert_error *err) {
    const bert_layer *w = &pass->session->weights->layer[layer];
    const bert_buffers *b = &pass->b;
    TRY(bert_pass_linear(pass, pass->tokens, b->inner, b->hidden, &w->up, &w->up_bias, NULL,
                         epilogue_of(pass->session->config->activation), err));
    TRY(bert_pass_linear(pass, pass->tokens, b->sum, b->inner, &w->down, &w->down_bias, b->hidden, BERT_EPILOGUE_NONE, err));
    return bert_pass_layer_norm(pass, b->hidden, b->sum, &w->down_gamma, &w->down_beta, layer, err);
}
