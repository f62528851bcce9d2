/* config.json: each fault with its whole message, and what is let pass. In the rows ' stands for ". */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "model/config.h"
#include "quotes.h"

#define SIZES \
    "'vocab_size':8,'hidden_size':4,'num_hidden_layers':1,'num_attention_heads':2,'intermediate_size':8," \
    "'max_position_embeddings':8"

static bert_status parse(bert_config *config, const char *given, bert_error *err) {
    char text[1024];
    snprintf(text, sizeof text, "%s", given);
    double_quotes(text);
    return bert_config_parse(config, text, strlen(text), "config.json", err);
}

Test(config, refused) {
    static const struct {
        const char *text, *message;
        bert_status status;
    } rows[] = {
        {"[]", "the whole file: expected a JSON object, found []", BERT_BAD_FILE},
        {"{'model_type':1}", "model_type: expected a string, found 1", BERT_BAD_FILE},
        {"{'model_type':'roberta'}", "model_type: expected \"bert\", found \"roberta\"", BERT_UNSUPPORTED},
        {"{'model_type':'a name of more than 24 bytes'}",
         "model_type: expected a name that this library knows, found \"a name of more than 24 bytes\"", BERT_UNSUPPORTED},
        {"{'position_embedding_type':1}", "position_embedding_type: expected a string, found 1", BERT_BAD_FILE},
        {"{'position_embedding_type':'relative_key'}",
         "position_embedding_type: expected \"absolute\", found \"relative_key\"", BERT_UNSUPPORTED},
        {"{'quantization_config':{}}", "quantization_config: expected none: quantised weights are not read, found {}",
         BERT_UNSUPPORTED},
        {"{'pruned_heads':{'0':[1]}}", "pruned_heads: expected none, found {\\x220\\x22:[1]}", BERT_UNSUPPORTED},
        {"{'pruned_heads':[]}", "pruned_heads: expected none, found []", BERT_UNSUPPORTED},
        {"{'is_decoder':1}", "is_decoder: expected true or false, found 1", BERT_BAD_FILE},
        {"{'add_cross_attention':0}", "add_cross_attention: expected true or false, found 0", BERT_BAD_FILE},
        {"{'add_cross_attention':true}", "add_cross_attention is true but is_decoder is not", BERT_BAD_FILE},
        {"{'is_decoder':false,'add_cross_attention':true}", "add_cross_attention is true but is_decoder is not", BERT_BAD_FILE},
        {"{}", "vocab_size is missing", BERT_BAD_FILE},
        {"{'vocab_size':'8'}", "vocab_size: expected an integer from 1 to 16777216, found \"8\"", BERT_BAD_FILE},
        {"{" SIZES ",'type_vocab_size':0}", "type_vocab_size: expected an integer from 1 to 1024, found 0", BERT_BAD_FILE},
        {"{" SIZES ",'layer_norm_eps':0}", "layer_norm_eps: expected a positive number that a float can hold, found 0",
         BERT_BAD_FILE},
        {"{" SIZES ",'hidden_act':'mish'}", "hidden_act: expected gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, relu or silu, "
         "found \"mish\"", BERT_UNSUPPORTED},
        {"{" SIZES ",'hidden_act':1}", "hidden_act: expected a string, found 1", BERT_BAD_FILE},
        {"{" SIZES ",'pad_token_id':8}", "pad_token_id: expected an id below vocab_size, found 8", BERT_BAD_FILE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bert_config config;
        bert_error err = {0};
        char expected[256];
        snprintf(expected, sizeof expected, "config.json: %s", rows[i].message);
        cr_expect_eq(parse(&config, rows[i].text, &err), rows[i].status, "%s", rows[i].text);
        cr_expect_str_eq(err.text, expected);
    }
}

Test(config, let_pass) {
    static const char *const rows[] = {
        "", ",'position_embedding_type':null", ",'position_embedding_type':'absolute'", ",'quantization_config':null",
        ",'pruned_heads':null", ",'pruned_heads':{}", ",'is_decoder':null,'add_cross_attention':null", ",'pad_token_id':null",
        ",'is_decoder':true,'add_cross_attention':true", ",'pad_token_id':7", ",'model_type':'bert'",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bert_config config;
        bert_error err = {0};
        char text[512];
        snprintf(text, sizeof text, "{%s%s}", SIZES, rows[i]);
        cr_expect_eq(parse(&config, text, &err), BERT_OK, "%s: %s", rows[i], err.text);
        cr_expect(config.hidden == 4 && config.types == 2 && config.activation == BERT_GELU_ERF);
        cr_expect_eq(config.pad_token_id, strstr(rows[i], ":7") != NULL ? 7 : 0);
        cr_expect_eq(config.cross_attention, strstr(rows[i], "attention':true") != NULL);
    }
}
