/* text/tokens.h: what a bert_tokens holds: results in columns, and the scratch memory of the pass that makes them. */
#ifndef BERT_TEXT_TOKENS_H
#define BERT_TEXT_TOKENS_H

#include <bert/tokenizer.h>

#include <stdbool.h>

#include "base/memory.h"
#include "text/added.h"

/* One value for each token. While a sequence is tokenized only ids, words, offsets and offsets_cp are written; the
 * template adds the others. */
typedef struct bert_columns {
    int32_t *ids, *words, *types;
    bert_span *offsets, *offsets_cp; /* offsets_cp: NULL unless somebody asked */
    uint8_t *attention, *special;
    size_t n, room;
} bert_columns;

/* The word at hand, normalized: bytes, and for each character the span it came from. `start` is set at a
 * character's first byte, `end` at its last. */
typedef struct bert_word {
    uint8_t *bytes; /* [room + BERT_VOCAB_PAD] */
    uint32_t *start, *end;
    size_t n, room;
    size_t chars;
    uint32_t first, last; /* span of the whole word, also when it is too long to be kept */
} bert_word;

/* One character of a text on its way through the normalizers, with the bytes of the text that it came from. */
typedef struct bert_cell {
    uint32_t code, start, end;
} bert_cell;

typedef struct bert_cells {
    bert_cell *at;
    size_t n, room;
} bert_cells;

typedef struct bert_bytes {
    uint8_t *at;
    size_t n, room;
} bert_bytes;

/* Where an added token matched something else than its own spelling: white space beside it, normalized text. */
typedef struct bert_spelling {
    size_t token; /* place in the columns */
    size_t at, len; /* in spelled */
} bert_spelling;

typedef struct bert_spellings {
    bert_spelling *at; /* ascending tokens */
    size_t n, room;
} bert_spellings;

/* An invalid part of a text: at `clean` of the repaired text 3 bytes (U+FFFD) stand for `len` at `raw`. */
typedef struct bert_patch {
    uint32_t clean, raw, len;
} bert_patch;

typedef struct bert_patches {
    bert_patch *at;
    size_t n, room;
} bert_patches;

/* Which tokens of the sequence at hand are needed when it will be cut; the others are counted. */
typedef struct bert_keep {
    size_t from;    /* where the sequence begins in the columns */
    size_t most;    /* so many are enough; SIZE_MAX: all are needed */
    bool last;      /* those at its end, not those at its beginning */
    size_t dropped; /* so far */
} bert_keep;

typedef struct bert_part {
    size_t start, n; /* in the columns */
    bert_stretch sequences[2];
    size_t truncated, unknown;
} bert_part;

typedef struct bert_text_parts {
    size_t first, n; /* in parts */
    size_t invalid, first_invalid;
} bert_text_parts;

struct bert_tokens {
    bert_memory memory;
    const bert_tokenizer *tokenizer;
    bert_columns out;
    bert_spellings odd;
    bert_bytes spelled;
    size_t run_end; /* in spelled: of the last hit that took white space along; 0: none, or it has been dropped */
    bert_part *parts;
    size_t parts_n, parts_room;
    bert_text_parts *texts;
    size_t texts_n, texts_room;
    bool code_points; /* offsets_cp of this call are filled */
    /* scratch */
    bert_word word;
    bert_columns kept;        /* a text's tokens while they are cut */
    bert_spellings kept_odd;
    bert_bytes repaired;
    bert_patches patches;
    bert_cells cells, spare;  /* the general path and canonical ordering */
    bert_bytes subject, normalized;
    bert_cells pieces;        /* words of the general path as ranges of cells */
    bert_keep keep;
    size_t work; /* what regular expressions may still do to the sequence at hand */
    int32_t next_word;
    uint32_t segment_begin; /* where the segment that is normalized begins in its text */
};

void bert_tokens_free_scratch(bert_tokens *tokens);

/* Makes room for `more` further elements; false: no memory. */
bool bert_columns_reserve(bert_columns *columns, const bert_memory *memory, size_t more, bool code_points);
/* Room in tokens->out for `more` further tokens of the sequence at hand, for which those that are not needed make way;
 * so out.n may become less. False: no memory. */
bool bert_tokens_reserve(bert_tokens *tokens, size_t more);
/* Drops what is not needed of the sequence, if anything has been dropped yet. */
void bert_tokens_drop_rest(bert_tokens *tokens);
void bert_columns_free(bert_columns *columns, const bert_memory *memory);
bool bert_word_reserve(bert_word *word, const bert_memory *memory, size_t bytes);
void bert_word_free(bert_word *word, const bert_memory *memory);
bool bert_cells_reserve(bert_cells *cells, const bert_memory *memory, size_t more);
bool bert_bytes_append(bert_bytes *bytes, const bert_memory *memory, const void *from, size_t n);

bool bert_spellings_add(bert_spellings *odd, const bert_memory *memory, bert_spelling spelling);
/* Place of the first spelling whose token is at or behind `token`. */
size_t bert_spellings_find(const bert_spellings *odd, size_t token);

/* Notes that the token at `place` is spelled as the text that the hit matched. White space that several hits took is
 * kept once. False: no memory. */
bool bert_tokens_spell(bert_tokens *tokens, size_t place, const uint8_t *text, size_t len, const bert_hit *hit);

static inline void bert_columns_push(bert_columns *c, int32_t id, uint32_t start, uint32_t end, int32_t word) {
    c->ids[c->n] = id;
    c->offsets[c->n] = (bert_span){start, end};
    c->words[c->n] = word;
    c->n++;
}

#endif
