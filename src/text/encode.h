/* text/encode.h: from a text's tokens to its parts: template, truncation, padding. */
#ifndef BERT_TEXT_ENCODE_H
#define BERT_TEXT_ENCODE_H

#include "text/tokenizer.h"

/* What one call of bert_tokenize works on. */
typedef struct bert_call {
    bert_tokens *tokens;
    const bert_tokenizer *tokenizer;
    bert_tokenize_options options;
    size_t text; /* its number, for messages */
    bert_error *err;
} bert_call;

/* Tokens [at, at + n) of some columns: a text, or what truncation leaves of it. */
typedef struct bert_slice {
    size_t at, n;
} bert_slice;

/* The sequences of a text: the tokens that are there, and how many there would be if truncation needed all. */
typedef struct bert_whole {
    bert_slice sequences[2];
    size_t total[2];
} bert_whole;

/* Appends the tokens of one text; invalid UTF-8 is counted in the text's entry (sequence.c). */
BERT_MUST_USE bert_status bert_sequence(bert_call *call, const char *text, size_t len);

/* Appends an added token that was found; `matched` is what stood there (sequence.c). False: no memory. */
bool bert_sequence_hit(bert_tokens *tokens, const uint8_t *matched, size_t len, const bert_hit *hit, bert_span span);

/* Cuts the text's one part, made of the sequences, to max_length: BERT_OK also if it fits (truncate.c). */
BERT_MUST_USE bert_status bert_truncate(bert_call *call, const bert_template *template, bool pair,
                                        const bert_whole *whole);

/* Checks that hold for the whole call, before any text is read. */
BERT_MUST_USE bert_status bert_truncate_check(const bert_call *call);

/* Pads every part of the call to a common or fixed length (pad.c). */
BERT_MUST_USE bert_status bert_pad(bert_call *call);

/* The template that the call uses for a single text or a pair. */
const bert_template *bert_call_template(const bert_call *call, bool pair);

/* Parts are written between begin_part and end_part: steps of the template as they come. */
BERT_MUST_USE bert_status bert_begin_part(bert_call *call);
BERT_MUST_USE bert_status bert_add_special(bert_call *call, const bert_step *step);
/* Gives tokens [at, out.n), which were just appended, the step's type; in their sequence they begin at `first`. */
void bert_mark_text(bert_call *call, size_t at, const bert_step *step, size_t first);
/* `total` is the number of tokens that the texts have, `kept` how many of them are in the part. */
void bert_end_part(bert_call *call, size_t total, size_t kept);

bert_status bert_call_no_memory(const bert_call *call);

#endif
