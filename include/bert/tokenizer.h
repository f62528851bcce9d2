/* bert/tokenizer.h: text to token ids exactly as Hugging Face's fast BERT tokenizer gives them
 * (tokenizers 0.23.3 under transformers 5.24), with offsets back into the bytes as given.
 */
#ifndef BERT_TOKENIZER_H
#define BERT_TOKENIZER_H

#include <bert/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bert_tokenizer bert_tokenizer; /* immutable; any number of threads */
typedef struct bert_tokens bert_tokens;       /* results; one thread at a time; may be reused call after call */

typedef struct bert_tokenizer_options {
    size_t size;
    const bert_memory *memory; /* NULL: the C library's */
    const bert_notes *notes;   /* NULL: warnings are dropped */
    int tokenizer_json;        /* 1: tokenizer.json as it stands, tokenizer_config.json is not read */
    int strict;                /* 1: files that disagree are an error, not a warning */
    int lowercase;             /* 1: also lower-case texts, before anything else, as sentence-transformers does for
                                  models that say do_lower_case */
} bert_tokenizer_options;
#define BERT_TOKENIZER_OPTIONS_INIT {sizeof(bert_tokenizer_options), NULL, NULL, 0, 0, 0}

/* `path` is a model folder (weights are not looked at), a tokenizer.json or a vocab.txt. A tokenizer.json that is
 * there but bad is an error, never a fall-back to vocab.txt. */
BERT_API BERT_MUST_USE bert_status bert_tokenizer_open(bert_tokenizer **tokenizer, const char *path,
                                                       const bert_tokenizer_options *options, bert_error *err);
/* From memory: files named tokenizer.json, vocab.txt, tokenizer_config.json, special_tokens_map.json,
 * added_tokens.json, config.json (its model_type decides whether BERT's rules hold where tokenizer_config.json names no
 * class); others are ignored. */
BERT_API BERT_MUST_USE bert_status bert_tokenizer_open_files(bert_tokenizer **tokenizer, const bert_file *files,
                                                             size_t n, const bert_tokenizer_options *options,
                                                             bert_error *err);
BERT_API void bert_tokenizer_close(bert_tokenizer **tokenizer);

/* Largest id + 1, added tokens included: what an embedding table must have at least. */
BERT_API size_t bert_tokenizer_vocab_size(const bert_tokenizer *tokenizer);
/* Bytes of the entry with this id (not NUL-terminated), NULL if there is none. */
BERT_API const char *bert_tokenizer_token(const bert_tokenizer *tokenizer, int32_t id, size_t *len);
/* Id of exactly these bytes in the vocabulary or the added tokens, -1 if there is none. */
BERT_API int32_t bert_tokenizer_id(const bert_tokenizer *tokenizer, const char *token, size_t len);

typedef enum bert_special {
    BERT_SPECIAL_UNK,
    BERT_SPECIAL_CLS,
    BERT_SPECIAL_SEP,
    BERT_SPECIAL_PAD,
    BERT_SPECIAL_MASK
} bert_special;
/* Id of a special token, -1 if the tokenizer has none. */
BERT_API int32_t bert_tokenizer_special(const bert_tokenizer *tokenizer, bert_special which);
/* How many tokens the template adds to a single text (pair 0) or a pair (pair 1). */
BERT_API size_t bert_tokenizer_added(const bert_tokenizer *tokenizer, int pair);
/* 1 if the tokenizer lowercases. */
BERT_API int bert_tokenizer_lowercases(const bert_tokenizer *tokenizer);
/* What tokenizer.json and tokenizer_config.json say about length; 0: nothing. Never applied by itself. */
typedef struct bert_tokenizer_said {
    size_t truncation_max_length; /* tokenizer.json "truncation" */
    size_t padding_length;        /* tokenizer.json "padding" Fixed */
    size_t model_max_length;      /* tokenizer_config.json; sentinels such as 1e30 read as 0 */
} bert_tokenizer_said;
BERT_API bert_tokenizer_said bert_tokenizer_file_lengths(const bert_tokenizer *tokenizer);

typedef enum bert_truncation {
    BERT_LONGEST_FIRST,
    BERT_ONLY_FIRST,
    BERT_ONLY_SECOND,
    BERT_NO_TRUNCATION
} bert_truncation;
typedef enum bert_side { BERT_RIGHT, BERT_LEFT } bert_side;
/* What becomes of tokens that are cut off: nothing; further parts, as HF has them; or the same as windows, none longer
 * than max_length: where that has no room for a token of each text, HF has one part of everything, this is an error. */
typedef enum bert_overflow { BERT_NO_OVERFLOW, BERT_OVERFLOW_PARTS, BERT_OVERFLOW_WINDOWS } bert_overflow;
typedef enum bert_padding { BERT_PAD_NONE, BERT_PAD_LONGEST, BERT_PAD_FIXED } bert_padding;

typedef struct bert_tokenize_options {
    size_t size;
    size_t max_length;           /* tokens with specials; 0: no limit */
    bert_truncation truncation;  /* BERT_NO_TRUNCATION: longer than max_length is BERT_TOO_LONG */
    bert_side truncation_side;
    size_t stride;               /* tokens that neighbouring overflow parts share */
    bert_overflow overflow;
    int no_special_tokens;       /* 1: no [CLS]/[SEP] */
    int literal_specials;        /* 1: special tokens spelt in the text are plain text (untrusted input) */
    bert_padding padding;
    size_t pad_length;           /* for BERT_PAD_FIXED */
    size_t pad_to_multiple;      /* 0: none */
    bert_side padding_side;
    int offsets_cp;              /* 1: also fill offsets in code points */
} bert_tokenize_options;
#define BERT_TOKENIZE_OPTIONS_INIT {sizeof(bert_tokenize_options), 0, BERT_LONGEST_FIRST, BERT_RIGHT, 0, \
                                    BERT_NO_OVERFLOW, 0, 0, BERT_PAD_NONE, 0, 0, BERT_RIGHT, 0}

/* Half-open span [start, end) in the text as given, of the sequence (a or b) that the token came from. */
typedef struct bert_span {
    uint32_t start, end;
} bert_span;

/* What a part has of one sequence: its tokens [at, at + n) are tokens [first, first + n) of the whole sequence. */
typedef struct bert_stretch {
    size_t at, first, n;
} bert_stretch;

/* One tokenized text, or one overflow part of it: arrays of n, valid until the bert_tokens is used again. */
typedef struct bert_encoding {
    size_t n;
    const int32_t *ids, *type_ids;
    const uint8_t *attention_mask;      /* 0 for padding */
    const uint8_t *special_tokens_mask; /* 1 for what template or padding added */
    const bert_span *offsets;           /* bytes; [0,0) for specials and padding */
    const bert_span *offsets_cp;        /* code points; NULL unless asked for */
    const int32_t *words;               /* index of the word in its sequence, -1 for specials and padding */
    bert_stretch sequences[2];          /* of text a and b; n 0: nothing of it */
    size_t truncated;                   /* tokens of the text(s) that are not in this part */
    size_t unknown;                     /* unk tokens in this part */
    size_t invalid_utf8;                /* invalid byte sequences in the text(s) */
    size_t first_invalid;               /* byte position of the first of them, of a, or if that is valid of b */
} bert_encoding;

/* Tokenizes n texts. *tokens is NULL at first (it is made, in the tokenizer's memory) or from an earlier call (it is
 * reused); the tokenizer must outlive it.
 * Errors: BERT_INVALID_ARGUMENT (stride too large, max_length below the specials, no pair to cut),
 * BERT_TOO_LONG (also where only one sequence may be cut, and it is too short; and with overflow a pair of which both
 * texts are cut, into more than 4,096 parts: each window of one goes with each of the other), BERT_UNSUPPORTED (a
 * regular expression of tokenizer.json that takes too much work on a text); the message names the text's number. After
 * an error *tokens holds no text. A text may have at most 4 GiB - 2 bytes. */
BERT_API BERT_MUST_USE bert_status bert_tokenize(bert_tokens **tokens, const bert_tokenizer *tokenizer,
                                                 const bert_text *texts, size_t n,
                                                 const bert_tokenize_options *options, bert_error *err);
BERT_API size_t bert_tokens_count(const bert_tokens *tokens);
/* Parts of text i: 1 + overflow. */
BERT_API size_t bert_tokens_parts(const bert_tokens *tokens, size_t i);
/* Part 0 is the text itself, the others are its overflow in HF's order. */
BERT_API bert_encoding bert_tokens_at(const bert_tokens *tokens, size_t i, size_t part);
/* The token's spelling as HF lists it: the vocabulary entry, or for an added token the text it matched. */
BERT_API const char *bert_tokens_spelling(const bert_tokens *tokens, size_t i, size_t part, size_t token, size_t *len);
BERT_API void bert_tokens_close(bert_tokens **tokens);

/* Ids back to text as HF's decode does; clean_up is what tokenizer.json calls the decoder's cleanup. Writes at most
 * `room` bytes, returns the bytes the whole text needs. */
BERT_API size_t bert_tokenizer_decode(const bert_tokenizer *tokenizer, char *text, size_t room, const int32_t *ids,
                                      size_t n, int skip_special_tokens, int clean_up);

#ifdef __cplusplus
}
#endif
#endif
