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

/* Lowercase of n bytes of ASCII letters, digits or punctuation, if `lowercase`; else a copy. */
static inline void bert_ascii_lower(uint8_t *to, const uint8_t *from, size_t n, bool lowercase) {
    if (!lowercase) {
        memcpy(to, from, n);
        return;
    }
    for (size_t i = 0; i < n; i++) to[i] = (uint8_t)(from[i] + ((uint8_t)(from[i] - 'A') < 26 ? 32 : 0));
}

/* What clean_text deletes: tab, LF and CR become spaces instead. */
static inline bool bert_cleaned_away(uint32_t c, const bert_char *of) {
    if (c == '\t' || c == '\n' || c == '\r') return false;
    return c == 0 || c == 0xFFFD || of->flags & BERT_CHAR_CONTROL;
}

#endif
