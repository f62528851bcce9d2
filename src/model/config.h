/* model/config.h: config.json, every field range-checked. */
#ifndef BERT_MODEL_CONFIG_H
#define BERT_MODEL_CONFIG_H

#include <bert/model.h>

typedef struct bert_config {
    size_t vocab, hidden, layers, heads, intermediate, positions, types;
    double layer_norm_eps;
    bert_activation activation;
    char hidden_act[24], model_type[24];
    int32_t pad_token_id;
    int is_decoder, cross_attention;
} bert_config;

/* `name` appears in messages. */
BERT_MUST_USE bert_status bert_config_parse(bert_config *config, const char *text, size_t len, const char *name,
                                            bert_error *err);

#endif
