/* token_list.h: the tokens of a text as a JSON list of strings. */
#ifndef TOKEN_LIST_H
#define TOKEN_LIST_H

#include <bert/window.h>

#include "buffer.h"

/* Token k of a part of text i of a tokenizer's results, as a string. */
void token_list_add_one(buffer *b, const bert_tokens *tokens, size_t i, size_t part, size_t k);
/* All of them. */
void token_list_add(buffer *b, const bert_tokens *tokens, size_t i, size_t part);
/* The same of tokens that stand in several parts: a text in windows. */
void token_list_add_places(buffer *b, const bert_tokens *tokens, size_t i, const bert_place *places, size_t n);
/* Of ids; what the vocabulary does not have is null. */
void token_list_add_ids(buffer *b, const bert_tokenizer *tokenizer, const int32_t *ids, size_t n);

/* Index of the first token of the second text: where type 1 begins; -1: nowhere. */
long token_list_second(const int32_t *types, size_t n);

#endif
