/* base/utf8.c: checking UTF-8 (The Unicode Standard, table 3-7: well-formed byte sequences). */
#include "base/utf8.h"

#include <string.h>

static size_t skip_ascii(const uint8_t *text, size_t at, size_t len) {
    while (len - at >= 8) {
        uint64_t word;
        memcpy(&word, text + at, 8);
        if (word & 0x8080808080808080u) break;
        at += 8;
    }
    while (at < len && text[at] < 0x80) at++;
    return at;
}

/* The second byte decides about overlong forms, surrogates and what lies above 10FFFF. */
static int second_fits(uint8_t first, uint8_t second) {
    switch (first) {
    case 0xE0: return second >= 0xA0 && second <= 0xBF;
    case 0xED: return second >= 0x80 && second <= 0x9F;
    case 0xF0: return second >= 0x90 && second <= 0xBF;
    case 0xF4: return second >= 0x80 && second <= 0x8F;
    default: return second >= 0x80 && second <= 0xBF;
    }
}

/* Length that the first byte promises, 0 if it cannot begin a character. */
static size_t promised(uint8_t first) {
    if (first < 0x80) return 1;
    if (first < 0xC2) return 0;
    if (first < 0xE0) return 2;
    if (first < 0xF0) return 3;
    return first < 0xF5 ? 4 : 0;
}

/* Bytes at text[0] that fit together; *whole: they are a character. */
static size_t matching(const uint8_t *text, size_t len, int *whole) {
    const size_t n = promised(text[0]);
    size_t i = 1;
    if (n > 1 && len > 1 && second_fits(text[0], text[1])) {
        i = 2;
        while (i < n && i < len && (text[i] & 0xC0) == 0x80) i++;
    }
    *whole = i == n;
    return i;
}

size_t bert_utf8_decode(uint32_t *c, const uint8_t *text, size_t len) {
    int whole = 0;
    *c = 0xFFFD;
    if (len > 0) matching(text, len, &whole);
    return whole ? bert_utf8_read(c, text) : 0;
}

size_t bert_utf8_valid(const uint8_t *text, size_t len) {
    size_t at = 0;
    while ((at = skip_ascii(text, at, len)) < len) {
        int whole;
        const size_t n = matching(text + at, len - at, &whole);
        if (!whole) break;
        at += n;
    }
    return at;
}

size_t bert_utf8_invalid(const uint8_t *text, size_t len) {
    int whole;
    return matching(text, len, &whole);
}

size_t bert_utf8_count(const uint8_t *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) n += (size_t)bert_utf8_begins(text[i]);
    return n;
}
