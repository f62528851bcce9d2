/* Any bytes as tokenizer.json, alone and beside a tokenizer_config.json; what opens has to tokenize and decode. */
#include <bert/tokenizer.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const bert_tokenizer *tokenizer) {
    static const char text[] = "The cats sat, unbelievable! [MASK] na\xC3\xAFve \xE6\x88\x91 hello-world \xC3 12 ab  Foo\n";
    bert_tokens *tokens = NULL;
    const bert_text texts[] = {{text, sizeof text - 1, NULL, 0}, {text, 30, text + 30, 20}};
    const bert_tokenize_options options = {.size = sizeof options, .max_length = 9, .stride = 1, .overflow = BERT_OVERFLOW_PARTS, .offsets_cp = 1};
    char decoded[100];
    (void)bert_tokenize(&tokens, tokenizer, texts, 2, &options, NULL);
    if (bert_tokenize(&tokens, tokenizer, texts, 2, NULL, NULL) == BERT_OK) {
        const bert_encoding e = bert_tokens_at(tokens, 1, 0);
        for (size_t i = 0; i < e.n; i++)
            if (e.ids[i] < 0 || (size_t)e.ids[i] >= bert_tokenizer_vocab_size(tokenizer) || e.offsets[i].end > 30) abort();
        (void)bert_tokenizer_decode(tokenizer, decoded, sizeof decoded, e.ids, e.n, 1, 1);
    }
    bert_tokens_close(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char config[] = "{\"tokenizer_class\":\"BertTokenizer\",\"do_lower_case\":false}";
    const bert_file files[] = {{"tokenizer.json", data, size}, {"tokenizer_config.json", config, sizeof config - 1}};
    for (int alone = 0; alone < 2; alone++) {
        bert_tokenizer *tokenizer = NULL;
        const bert_tokenizer_options options = {.size = sizeof options, .tokenizer_json = alone};
        if (bert_tokenizer_open_files(&tokenizer, files, 2, &options, NULL) == BERT_OK) use(tokenizer);
        bert_tokenizer_close(&tokenizer);
    }
    return 0;
}
