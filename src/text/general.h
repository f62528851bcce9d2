/* text/general.h: the components of tokenizer.json that go with WordPiece and WordLevel models and are not BERT's own,
 * and added tokens that are searched in normalized text: everything that the one pass of words.c does not do. */
#ifndef BERT_TEXT_GENERAL_H
#define BERT_TEXT_GENERAL_H

#include "text/pattern.h"
#include "text/tokenizer.h"

typedef enum bert_normalize_kind {
    BERT_NORMALIZE_BERT, BERT_NORMALIZE_NFC, BERT_NORMALIZE_NFD, BERT_NORMALIZE_NFKC, BERT_NORMALIZE_NFKD,
    BERT_NORMALIZE_LOWERCASE, BERT_NORMALIZE_STRIP_ACCENTS, BERT_NORMALIZE_STRIP, BERT_NORMALIZE_PREPEND,
    BERT_NORMALIZE_REPLACE
} bert_normalize_kind;

typedef struct bert_normalize {
    bert_normalize_kind kind;
    bert_normalizer bert;  /* BERT */
    bool left, right;      /* STRIP */
    char *content;         /* PREPEND, REPLACE; NUL-terminated */
    bert_pattern *pattern; /* REPLACE */
} bert_normalize;

typedef enum bert_split_kind {
    BERT_SPLIT_BERT, BERT_SPLIT_WORDS, BERT_SPLIT_SPACES, BERT_SPLIT_PUNCTUATION, BERT_SPLIT_DIGITS,
    BERT_SPLIT_PATTERN, BERT_SPLIT_DELIMITER
} bert_split_kind;

/* What becomes of what separates (SplitDelimiterBehavior). */
typedef enum bert_behavior {
    BERT_REMOVED, BERT_ISOLATED, BERT_MERGED_WITH_PREVIOUS, BERT_MERGED_WITH_NEXT, BERT_CONTIGUOUS
} bert_behavior;

typedef struct bert_splitter {
    bert_split_kind kind;
    bert_behavior behavior;
    bool invert;           /* PATTERN: it matches what is kept */
    uint32_t delimiter;    /* DELIMITER */
    bert_pattern *pattern; /* PATTERN */
} bert_splitter;

struct bert_general {
    bert_memory memory;
    bert_normalize *normalizers;
    size_t normalizers_n, normalizers_room;
    bert_splitter *splitters;
    size_t splitters_n, splitters_room;
};

/* Adds a component at the end; false: no memory. The list then owns what it points to. */
bool bert_general_add_normalizer(bert_general *general, bert_normalize normalizer);
bool bert_general_add_splitter(bert_general *general, bert_splitter splitter);
void bert_general_free(bert_general *general);

/* Tokens of text[begin, end), in which no raw added token is. */
BERT_MUST_USE bert_status bert_general_segment(bert_tokens *tokens, const bert_tokenizer *tokenizer,
                                               const uint8_t *text, size_t begin, size_t end, bool literal,
                                               bert_error *err);

/* Gives the added tokens that are searched in normalized text their normalized form. */
BERT_MUST_USE bert_status bert_general_normalize_added(bert_tokenizer *tokenizer, bert_error *err);

/* All normalizers in order, on tokens->cells. */
BERT_MUST_USE bert_status bert_general_normalize(bert_tokens *tokens, const bert_general *general, bert_error *err);

/* Splits tokens->cells[begin, end) into words: their ranges go to tokens->pieces, as start and end of cells. */
BERT_MUST_USE bert_status bert_general_split(bert_tokens *tokens, const bert_general *general, size_t begin, size_t end,
                                             bert_error *err);

#endif
