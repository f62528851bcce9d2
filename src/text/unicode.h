/* text/unicode.h: what HF's tokenizers do with a character: one look-up in generated tables.
 *
 * HF mixes Unicode versions (categories 8.0, decompositions 9.0, lowercase and white space 17.0), so the tables come
 * from measured properties (scripts/make_unicode_tables.py) and not from a Unicode library. */
#ifndef BERT_TEXT_UNICODE_H
#define BERT_TEXT_UNICODE_H

#include <stdint.h>

enum bert_char_flag { /* the letters are those of unicode_props.txt and unicode_classes.txt */
    BERT_CHAR_CONTROL = 1 << 0,  /* C: removed by clean_text */
    BERT_CHAR_SPACE = 1 << 1,    /* W: White_Space */
    BERT_CHAR_MARK = 1 << 2,     /* M: removed by strip_accents */
    BERT_CHAR_PUNCT = 1 << 3,    /* P: a word of its own */
    BERT_CHAR_CJK = 1 << 4,      /* K: padded with spaces */
    BERT_CHAR_HANGUL = 1 << 5,   /* H: a syllable, decomposed by arithmetic */
    BERT_CHAR_ORDERED = 1 << 6,  /* O: decomposes to something that stays and has a combining class */
    BERT_CHAR_WORD = 1 << 7,     /* A: \w of HF's regular expressions */
    BERT_CHAR_NUMERIC = 1 << 8,  /* N */
    BERT_CHAR_ACCENT = 1 << 9,   /* X: removed by the StripAccents normalizer */
    BERT_CHAR_REGEX_DIGIT = 1 << 10, /* D: \d of regular expressions in files */
    BERT_CHAR_REGEX_WORD = 1 << 11   /* R: \w of them */
};

typedef struct bert_char {
    uint16_t flags;
    uint8_t combining; /* canonical combining class */
    uint8_t nfd_len;   /* 0: decomposes to itself */
    uint16_t nfd_at;   /* in bert_char_pool */
    int32_t lower;     /* lowercase minus the character */
} bert_char;

extern const bert_char bert_char_records[];
extern const uint32_t bert_char_pool[];
extern const uint16_t bert_char_blocks[];
extern const uint16_t bert_char_entries[];

/* c must be a scalar value (at most 0x10FFFF). */
static inline const bert_char *bert_char_of(uint32_t c) {
    return &bert_char_records[bert_char_entries[(uint32_t)bert_char_blocks[c >> 7] << 7 | (c & 127)]];
}

#define BERT_NFD_MOST 4 /* characters that one character decomposes to, at most */

/* Full canonical decomposition; returns the number of characters (1: maybe c itself). */
static inline unsigned bert_char_nfd(uint32_t nfd[BERT_NFD_MOST], uint32_t c, const bert_char *of) {
    if (of->flags & BERT_CHAR_HANGUL) { /* The Unicode Standard, 3.12 */
        const uint32_t s = c - 0xAC00, t = s % 28;
        nfd[0] = 0x1100 + s / 588;
        nfd[1] = 0x1161 + s % 588 / 28;
        nfd[2] = 0x11A7 + t;
        return t ? 3 : 2;
    }
    if (of->nfd_len == 0) {
        nfd[0] = c;
        return 1;
    }
    for (unsigned i = 0; i < of->nfd_len; i++) nfd[i] = bert_char_pool[of->nfd_at + i];
    return of->nfd_len;
}

/* Full lowercase mapping without context or locale; returns the number of characters. */
static inline unsigned bert_char_lower(uint32_t lower[2], uint32_t c, const bert_char *of) {
    lower[0] = (uint32_t)((int32_t)c + of->lower);
    lower[1] = 0x307;
    return c == 0x130 ? 2 : 1; /* the only one that becomes two */
}

#endif
