/* text/tokenizer.c: what a tokenizer tells about itself. */
#include "text/tokenizer.h"

size_t bert_tokenizer_vocab_size(const bert_tokenizer *tokenizer) {
    return tokenizer->size;
}

const char *bert_tokenizer_token(const bert_tokenizer *tokenizer, int32_t id, size_t *len) {
    const bert_vocab *vocab = &tokenizer->extra;
    const bert_vocab_entry *entry = bert_vocab_entry_of(vocab, id);
    if (entry == NULL) {
        vocab = &tokenizer->vocab;
        entry = bert_vocab_entry_of(vocab, id);
    }
    *len = entry != NULL ? entry->len : 0;
    return entry != NULL ? (const char *)vocab->bytes + entry->at : NULL;
}

int32_t bert_tokenizer_id(const bert_tokenizer *tokenizer, const char *token, size_t len) {
    const int32_t id = bert_vocab_id(&tokenizer->extra, token, len);
    return id >= 0 ? id : bert_vocab_id(&tokenizer->vocab, token, len);
}

int32_t bert_tokenizer_special(const bert_tokenizer *tokenizer, bert_special which) {
    return (unsigned)which < 5 ? tokenizer->special[which] : -1;
}

size_t bert_tokenizer_added(const bert_tokenizer *tokenizer, int pair) {
    return pair ? tokenizer->pair.added : tokenizer->single.added;
}

int bert_tokenizer_lowercases(const bert_tokenizer *tokenizer) {
    return tokenizer->lowercases;
}

bert_tokenizer_said bert_tokenizer_file_lengths(const bert_tokenizer *tokenizer) {
    return tokenizer->said;
}
