/* A whole folder, from its files to hidden states and a sentence vector: the input is a list of edits to a good one, so
 * that most of it stays good. An edit: which file, where, what is written there; or the file is cut, or given anew. */
#include "tiny_folder.h"

enum { FILES = 4, ROOM = 2 * TINY_WEIGHTS };

static const char tokenizer_config[] = "{\"do_lower_case\":true,\"tokenizer_class\":\"BertTokenizer\"}";

typedef struct content {
    unsigned char bytes[ROOM];
    size_t len;
} content;

static void fill(content files[FILES]) {
    files[0].len = tiny_weights(files[0].bytes);
    memcpy(files[1].bytes, tiny_config, files[1].len = sizeof tiny_config - 1);
    memcpy(files[2].bytes, tiny_vocab, files[2].len = sizeof tiny_vocab - 1);
    memcpy(files[3].bytes, tokenizer_config, files[3].len = sizeof tokenizer_config - 1);
}

/* 4 bytes say what, then come as many bytes as the third one says. */
static size_t edit(content files[FILES], const uint8_t *data, size_t size) {
    content *file = &files[data[0] % FILES];
    const size_t at = ((size_t)data[1] << 8 | data[2]) % (file->len + 1);
    size_t n = data[3];
    if (n > size - 4) n = size - 4;
    if (data[0] & 0x80) file->len = at;
    if (at + n > ROOM) n = ROOM - at;
    memcpy(file->bytes + at, data + 4, n);
    if (at + n > file->len) file->len = at + n;
    return 4 + n;
}

/* Text to tokens by this vocabulary, whatever became of it. */
static void tokenize(const bert_file *files) {
    static const char text[] = "ab a. [MASK] b\xC3\xA9";
    const bert_text one = {text, sizeof text - 1, NULL, 0};
    bert_tokenizer *tokenizer;
    bert_tokens *tokens = NULL;
    if (bert_tokenizer_open_files(&tokenizer, files, FILES, NULL, NULL) == BERT_OK) {
        if (bert_tokenize(&tokens, tokenizer, &one, 1, NULL, NULL) != BERT_OK) abort();
        bert_tokens_close(&tokens);
    }
    bert_tokenizer_close(&tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[FILES] = {"model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json"};
    content *made = calloc(FILES, sizeof *made);
    bert_file files[FILES];
    fill(made);
    while (size >= 4) {
        const size_t used = edit(made, data, size);
        data += used, size -= used;
    }
    for (int i = 0; i < FILES; i++) {
        unsigned char *exact = malloc(made[i].len + (made[i].len == 0)); /* ends where its allocation ends */
        memcpy(exact, made[i].bytes, made[i].len);
        files[i] = (bert_file){names[i], exact, made[i].len};
    }
    tiny_run(files, FILES);
    tokenize(files);
    for (int i = 0; i < FILES; i++) free((void *)files[i].data);
    free(made);
    return 0;
}
