/* base/utf8.h: UTF-8 in and out, strictly (RFC 3629: no overlong forms, no surrogates, nothing above 10FFFF). Inside
 * src/text every text is valid: what is not is repaired first (text/repair.h). */
#ifndef BERT_BASE_UTF8_H
#define BERT_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Reads one character of valid UTF-8 at p; returns its length. */
static inline unsigned bert_utf8_read(uint32_t *c, const uint8_t *p) {
    if (p[0] < 0x80) return *c = p[0], 1;
    if (p[0] < 0xE0) return *c = (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3F), 2;
    if (p[0] < 0xF0) return *c = (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F), 3;
    *c = (uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    return 4;
}

/* Writes a scalar value; returns its length, at most 4. */
static inline unsigned bert_utf8_write(uint8_t *p, uint32_t c) {
    if (c < 0x80) return p[0] = (uint8_t)c, 1;
    if (c < 0x800) {
        p[0] = (uint8_t)(0xC0 | c >> 6), p[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        p[0] = (uint8_t)(0xE0 | c >> 12), p[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F)), p[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    p[0] = (uint8_t)(0xF0 | c >> 18), p[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    p[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F)), p[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

/* 1 for the bytes that begin a character. */
static inline int bert_utf8_begins(uint8_t byte) {
    return (byte & 0xC0) != 0x80;
}

/* The character that ends before text[at], at > 0; returns where it begins. */
static inline size_t bert_utf8_before(uint32_t *c, const uint8_t *text, size_t at) {
    do at--;
    while (!bert_utf8_begins(text[at]));
    bert_utf8_read(c, text + at);
    return at;
}

/* Reads one character at `text`, whatever is there; 0, and *c = U+FFFD, if that is not valid or ends too early. */
size_t bert_utf8_decode(uint32_t *c, const uint8_t *text, size_t len);
/* Length of the valid part that the text begins with; len: all of it. */
size_t bert_utf8_valid(const uint8_t *text, size_t len);
/* Length of the maximal invalid subpart at text[0], where bert_utf8_valid() stopped: what becomes one U+FFFD. */
size_t bert_utf8_invalid(const uint8_t *text, size_t len);
/* Characters in a valid text. */
size_t bert_utf8_count(const uint8_t *text, size_t len);

#endif
