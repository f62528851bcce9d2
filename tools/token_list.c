#include "token_list.h"

#include "json_out.h"

void token_list_add_one(buffer *b, const bert_tokens *tokens, size_t i, size_t part, size_t k) {
    size_t length;
    const char *token = bert_tokens_spelling(tokens, i, part, k, &length);
    json_string(b, token, length);
}

void token_list_add(buffer *b, const bert_tokens *tokens, size_t i, size_t part) {
    size_t n = bert_tokens_at(tokens, i, part).n;
    buffer_byte(b, '[');
    for (size_t k = 0; k < n; k++) {
        if (k) buffer_byte(b, ',');
        token_list_add_one(b, tokens, i, part, k);
    }
    buffer_byte(b, ']');
}

void token_list_add_places(buffer *b, const bert_tokens *tokens, size_t i, const bert_place *places, size_t n) {
    buffer_byte(b, '[');
    for (size_t k = 0; k < n; k++) {
        if (k) buffer_byte(b, ',');
        token_list_add_one(b, tokens, i, places[k].part, places[k].token);
    }
    buffer_byte(b, ']');
}

void token_list_add_ids(buffer *b, const bert_tokenizer *tokenizer, const int32_t *ids, size_t n) {
    buffer_byte(b, '[');
    for (size_t k = 0; k < n; k++) {
        size_t length;
        const char *token = bert_tokenizer_token(tokenizer, ids[k], &length);
        if (k) buffer_byte(b, ',');
        if (token)
            json_string(b, token, length);
        else
            buffer_text(b, "null");
    }
    buffer_byte(b, ']');
}

long token_list_second(const int32_t *types, size_t n) {
    for (size_t k = 0; types && k < n; k++)
        if (types[k] == 1) return (long)k;
    return -1;
}
