/* Any bytes as text: a real vocabulary in miniature, every option taken from the first bytes. What must hold for every
 * text is checked too: ids in the vocabulary, spans in range and in order, the overflow parts together all of the text. */
#include <bert/tokenizer.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\ncat\n##s\n##a\n##b\n\xC3\xA9\n\xE6\x88\x91\n##\xCC\x81\n1\n.\n,\n"
                            "e\n##e\n\xD0\xB8\n##\xD0\xB8\n\xE0\xA3\x94\n##\xE0\xA3\x94\n##1\n\xE1\x84\x80\n##\xE1\x85\xA1\n";
static const char added[] = "{\"added_tokens_decoder\":{"
    "\"26\":{\"content\":\"<l>\",\"lstrip\":true,\"rstrip\":false,\"single_word\":false,\"normalized\":false,\"special\":true},"
    "\"27\":{\"content\":\" r\",\"lstrip\":false,\"rstrip\":true,\"single_word\":false,\"normalized\":false,\"special\":false},"
    "\"28\":{\"content\":\"new\",\"lstrip\":false,\"rstrip\":false,\"single_word\":true,\"normalized\":false,\"special\":false}%s}}";
static const char normalized[] = ",\"29\":{\"content\":\"\xC3\x89t\xC3\xA9\",\"lstrip\":true,\"rstrip\":true,"
                                 "\"single_word\":false,\"normalized\":true,\"special\":false}";

static bert_tokenizer *open_one(int with_normalized) {
    char config[2000];
    bert_tokenizer *tokenizer = NULL;
    const char *at = strstr(added, "%s");
    const size_t before = (size_t)(at - added);
    memcpy(config, added, before);
    strcpy(config + before, with_normalized ? normalized : "");
    strcat(config, at + 2);
    const bert_file files[] = {{"vocab.txt", vocab, sizeof vocab - 1}, {"tokenizer_config.json", config, strlen(config)}};
    if (bert_tokenizer_open_files(&tokenizer, files, 2, NULL, NULL) != BERT_OK) abort();
    return tokenizer;
}

static void check_part(bert_encoding e, size_t vocab_size, size_t len, int pair) {
    for (size_t i = 0; i < e.n; i++) {
        if (e.ids[i] < 0 || (size_t)e.ids[i] >= vocab_size) abort();
        if (e.offsets[i].start > e.offsets[i].end || e.offsets_cp[i].start > e.offsets_cp[i].end) abort();
        if (!pair && e.offsets[i].end > len) abort();
        if (!pair && i > 0 && !e.special_tokens_mask[i] && e.offsets[i].start < e.offsets[i - 1].start) abort();
    }
}

static void check_cover(const bert_tokens *tokens, bert_encoding whole) {
    for (size_t i = 0; i < whole.n; i++) {
        int found = whole.special_tokens_mask[i];
        for (size_t p = 0; !found && p < bert_tokens_parts(tokens, 0); p++) {
            const bert_encoding e = bert_tokens_at(tokens, 0, p);
            for (size_t k = 0; k < e.n && !found; k++)
                found = e.words[k] == whole.words[i] && e.ids[k] == whole.ids[i] && e.offsets[k].end == whole.offsets[i].end;
        }
        if (!found) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bert_tokenizer *tokenizers[2];
    static bert_tokens *tokens, *whole;
    if (tokenizers[0] == NULL) tokenizers[0] = open_one(0), tokenizers[1] = open_one(1);
    if (size < 4) return 0;
    const bert_tokenizer *tokenizer = tokenizers[data[0] & 1];
    const int pair = data[0] & 2;
    bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
    options.max_length = data[1] & 63;
    options.truncation = (bert_truncation)(data[2] & 3);
    options.truncation_side = (bert_side)(data[2] >> 2 & 1);
    options.no_special_tokens = data[2] >> 3 & 1;
    options.literal_specials = data[2] >> 4 & 1;
    options.padding = (bert_padding)((data[2] >> 5) % 3);
    options.padding_side = (bert_side)(data[0] >> 2 & 1);
    options.stride = data[3] & 15;
    options.pad_length = options.pad_to_multiple = data[3] >> 4;
    options.overflow = BERT_OVERFLOW_PARTS;
    options.offsets_cp = 1;
    data += 4, size -= 4;
    char *copy = malloc(size + (size == 0)); /* ends where its allocation ends */
    memcpy(copy, data, size);
    const size_t cut = pair ? size / 2 : size;
    const bert_text text = {copy, cut, pair ? copy + cut : NULL, size - cut};
    if (bert_tokenize(&tokens, tokenizer, &text, 1, &options, NULL) == BERT_OK) {
        for (size_t p = 0; p < bert_tokens_parts(tokens, 0); p++) {
            const bert_encoding e = bert_tokens_at(tokens, 0, p);
            size_t len;
            check_part(e, bert_tokenizer_vocab_size(tokenizer), cut, pair);
            for (size_t i = 0; i < e.n; i++)
                if (bert_tokens_spelling(tokens, 0, p, i, &len) == NULL) abort();
            char decoded[64];
            (void)bert_tokenizer_decode(tokenizer, decoded, sizeof decoded, e.ids, e.n, data != NULL, 1);
        }
        options.max_length = options.stride = 0;
        options.padding = BERT_PAD_NONE;
        if (bert_tokenize(&whole, tokenizer, &text, 1, &options, NULL) != BERT_OK) abort();
        if (!pair && size < 256) check_cover(tokens, bert_tokens_at(whole, 0, 0));
    }
    free(copy);
    return 0;
}
