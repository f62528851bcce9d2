/* text/ascii.h: the part of the character tables that English needs, in 256 bytes. */
#ifndef BERT_TEXT_ASCII_H
#define BERT_TEXT_ASCII_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "text/unicode.h"

enum bert_ascii_class {
    BERT_ASCII_OTHER, /* control characters, which join what is beside them, and everything beyond ASCII */
    BERT_ASCII_WORD,
    BERT_ASCII_PUNCT,
    BERT_ASCII_SPACE
};
extern const uint8_t bert_ascii_classes[256];

/* Eight bytes at once: every byte is a lane, and no sum below carries into the next one. */
#define BERT_ASCII_LANES(byte) (UINT64_C(0x0101010101010101) * (byte))
#define BERT_ASCII_HIGH BERT_ASCII_LANES(0x80)

/* The high bit of each lane that holds low..high (both below 0x80), given its low 7 bits. */
static inline uint64_t bert_ascii_between(uint64_t low_bits, unsigned low, unsigned high) {
    return (low_bits + BERT_ASCII_LANES(0x80 - low)) ^ (low_bits + BERT_ASCII_LANES(0x7F - high));
}

/* How many bytes at the beginning are letters and digits. */
static inline unsigned bert_ascii_word_length(uint64_t bytes) {
    const uint64_t low_bits = bytes & ~BERT_ASCII_HIGH;
    const uint64_t word = bert_ascii_between(low_bits | BERT_ASCII_LANES(0x20), 'a', 'z') |
                          bert_ascii_between(low_bits, '0', '9');
    const uint64_t others = (~word | bytes) & BERT_ASCII_HIGH;
    return others != 0 ? (unsigned)__builtin_ctzll(others) / 8 : 8;
}

static inline uint64_t bert_ascii_lower(uint64_t bytes) {
    const uint64_t upper = bert_ascii_between(bytes & ~BERT_ASCII_HIGH, 'A', 'Z') & ~bytes & BERT_ASCII_HIGH;
    return bytes | upper >> 2;
}

/* What clean_text deletes: tab, LF and CR become spaces instead. */
static inline bool bert_cleaned_away(uint32_t c, const bert_char *of) {
    if (c == '\t' || c == '\n' || c == '\r') return false;
    return c == 0 || c == 0xFFFD || of->flags & BERT_CHAR_CONTROL;
}

#endif
