/* text/tokenizer.h: what a bert_tokenizer holds, and the steps of tokenizing in the order in which they run. */
#ifndef BERT_TEXT_TOKENIZER_H
#define BERT_TEXT_TOKENIZER_H

#include "text/added.h"
#include "text/tokens.h"
#include "text/vocab.h"

/* Bytes of the longest piece of a word that is looked for: the work of a word is its length times this. Words of
 * 128 characters or fewer have no longer ones; where longer words are split, a longer entry is refused. */
enum { BERT_WORDPIECE_LONGEST = 512 };

typedef struct bert_general bert_general; /* general.h: components other than BERT's */

/* Options of HF's BertNormalizer; strip_accents is resolved (null follows lowercase). */
typedef struct bert_normalizer {
    bool clean_text, handle_chinese_chars, strip_accents, lowercase;
} bert_normalizer;

/* One step of a template: a special token, or the place of a text. */
typedef struct bert_step {
    int32_t id;    /* -1: a text */
    int32_t type;
    bool second;   /* which text */
} bert_step;

typedef struct bert_template {
    bert_step *steps; /* [n] */
    size_t n, added;  /* added: steps that are special tokens */
} bert_template;

struct bert_tokenizer {
    bert_memory memory;
    bert_vocab vocab;
    bert_vocab extra;     /* added tokens by content, also those that are in the vocabulary */
    bert_added added;
    uint8_t *normalized_contents; /* [normalized_room] what added.normalized points to */
    size_t normalized_room;
    bert_normalizer normalizer;
    bert_general *general; /* NULL: BertNormalizer, BertPreTokenizer and WordPiece, all in one pass */
    bool lowercases;
    int32_t unk;
    size_t max_chars; /* characters of a word that is still looked up */
    bool word_level;  /* words are looked up whole */
    bert_template single, pair;
    int32_t special[5]; /* by bert_special */
    bert_tokenizer_said said;
    size_t size;         /* largest id + 1 */
    char *decoder_prefix; /* NUL-terminated, [decoder_room]; NULL: tokens are joined with spaces */
    size_t decoder_room;
};

/* Normalizes, splits and looks up text[begin, end), which has no added tokens in it. `text` is valid UTF-8. False: no
 * memory. The one-pass BERT path (words.c). */
bool bert_words(bert_tokens *tokens, const bert_tokenizer *tokenizer, const uint8_t *text, size_t begin, size_t end);

/* Looks up the word in tokens->word and appends its pieces. False: no memory (wordpiece.c). */
bool bert_wordpiece(bert_tokens *tokens, const bert_tokenizer *tokenizer);
/* Appends the pieces of text[0, n), readable BERT_VOCAB_PAD bytes beyond, with offsets inside the word. `out` has room
 * for n tokens. False: the word is unknown and nothing was appended. */
bool bert_wordpiece_split(bert_columns *out, const bert_vocab *vocab, const uint8_t *text, size_t n, int32_t word);

/* Canonical ordering of the run of combining characters around text[at] (order.c); returns where the run ends.
 * Characters that stay are in tokens->cells. 0: no memory. */
size_t bert_order(bert_tokens *tokens, const bert_tokenizer *tokenizer, const uint8_t *text, size_t begin, size_t at,
                  size_t end);

#endif
