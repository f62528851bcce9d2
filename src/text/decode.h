/* text/decode.h: tokens to text, one after another. */
#ifndef BERT_TEXT_DECODE_H
#define BERT_TEXT_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include <bert/tokenizer.h>

typedef struct bert_decoder {
    const bert_tokenizer *tokenizer;
    bool clean_up;
    char *text;
    size_t room, n; /* n: bytes of the whole text, also of what has no room */
    bool begun;
} bert_decoder;

/* Appends a token by its spelling, joined to the one before it or behind a space. */
void bert_decode_token(bert_decoder *decoder, const char *token, size_t len);

#endif
