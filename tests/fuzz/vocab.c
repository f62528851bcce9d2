/* Any bytes as vocab.txt, as tokenizer_config.json and as added_tokens.json: the first byte says which. */
#include <bert/tokenizer.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\nb\n";
    static const char *const names[] = {"vocab.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                                        "config.json"};
    static const char text[] = "a b ab [MASK] abab \xC3\xA9";
    if (size == 0) return 0;
    const char *name = names[data[0] % 5];
    const bert_file files[] = {{name, data + 1, size - 1}, {"vocab.txt", vocab, sizeof vocab - 1}};
    bert_tokenizer *tokenizer = NULL;
    if (bert_tokenizer_open_files(&tokenizer, files, data[0] % 5 == 0 ? 1 : 2, NULL, NULL) == BERT_OK) {
        bert_tokens *tokens = NULL;
        const bert_text one = {text, sizeof text - 1, NULL, 0};
        if (bert_tokenize(&tokens, tokenizer, &one, 1, NULL, NULL) != BERT_OK) abort();
        const bert_encoding e = bert_tokens_at(tokens, 0, 0);
        for (size_t i = 0; i < e.n; i++)
            if (e.ids[i] < 0 || (size_t)e.ids[i] >= bert_tokenizer_vocab_size(tokenizer)) abort();
        bert_tokens_close(&tokens);
    }
    bert_tokenizer_close(&tokenizer);
    return 0;
}
