#include "utf8.h"

/* How many bytes the character that begins with `lead` has, and what its second byte may be (Unicode 15, table 3-7).
 * 0: no character begins like this. */
static size_t expect(unsigned char lead, unsigned char *low, unsigned char *high) {
    *low = 0x80;
    *high = 0xBF;
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    if (lead < 0xE0) return 2;
    if (lead == 0xE0) *low = 0xA0;
    if (lead == 0xED) *high = 0x9F;
    if (lead < 0xF0) return 3;
    if (lead == 0xF0) *low = 0x90;
    if (lead == 0xF4) *high = 0x8F;
    return 4;
}

size_t utf8_step(const char *s, size_t n, int *valid) {
    const unsigned char *u = (const unsigned char *)s;
    unsigned char low, high;
    size_t length = expect(u[0], &low, &high), have = 1;
    while (have < length && have < n && u[have] >= low && u[have] <= high) {
        have++;
        low = 0x80;
        high = 0xBF;
    }
    *valid = have == length;
    return have;
}

size_t utf8_count_invalid(const char *s, size_t n, size_t *first) {
    size_t count = 0;
    *first = n;
    for (size_t i = 0; i < n;) {
        int valid;
        size_t step = utf8_step(s + i, n - i, &valid);
        if (!valid && count++ == 0) *first = i;
        i += step;
    }
    return count;
}

size_t utf8_decode(const char *s, size_t n, uint32_t *code) {
    int valid;
    size_t step = utf8_step(s, n, &valid);
    const unsigned char *u = (const unsigned char *)s;
    *code = 0xFFFD;
    if (!valid) return step;
    *code = step == 1 ? u[0] : u[0] & (0xFFu >> (step + 1));
    for (size_t i = 1; i < step; i++) *code = *code << 6 | (u[i] & 0x3Fu);
    return step;
}

void utf8_add_mended(buffer *b, const char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        int valid;
        size_t step = utf8_step(s + i, n - i, &valid);
        if (valid)
            buffer_add(b, s + i, step);
        else
            buffer_text(b, "\xEF\xBF\xBD");
        i += step;
    }
}

int utf8_is_printable(uint32_t code) {
    if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return 0;
    if (code == 0x61C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E)) return 0;
    return !(code >= 0x2066 && code <= 0x2069) && code != 0xFEFF;
}

void utf8_add_printable(buffer *b, const char *s, size_t n) {
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t code;
        int valid;
        step = utf8_step(s + i, n - i, &valid);
        utf8_decode(s + i, n - i, &code);
        if (valid && utf8_is_printable(code))
            buffer_add(b, s + i, step);
        else
            for (size_t k = 0; k < step; k++) buffer_print(b, "\\x%02x", (unsigned char)s[i + k]);
    }
}
