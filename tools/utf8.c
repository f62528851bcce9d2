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
