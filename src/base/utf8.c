#include "base/utf8.h"

static uint32_t tail(const char *bytes, size_t i) {
    return (unsigned char)bytes[i] & 0x3fu;
}

/* Length that the first byte announces; 0 for a byte that starts no character. */
static size_t length_of(unsigned char first) {
    if (first < 0x80) return 1;
    if (first < 0xc2) return 0; /* continuation, or C0 and C1, which only overlong forms begin with */
    if (first < 0xe0) return 2;
    if (first < 0xf0) return 3;
    return first < 0xf5 ? 4 : 0;
}

size_t bert_utf8_decode(const char *bytes, size_t len, uint32_t *code) {
    *code = 0xfffd;
    const unsigned char first = len > 0 ? (unsigned char)bytes[0] : 0x80;
    const size_t n = length_of(first);
    if (n == 0 || n > len) return 0;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)bytes[i] & 0xc0) != 0x80) return 0;
    }
    uint32_t c = first;
    if (n == 2) c = (first & 0x1fu) << 6 | tail(bytes, 1);
    if (n == 3) c = (first & 0x0fu) << 12 | tail(bytes, 1) << 6 | tail(bytes, 2);
    if (n == 4) c = (first & 0x07u) << 18 | tail(bytes, 1) << 12 | tail(bytes, 2) << 6 | tail(bytes, 3);
    if (n == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) return 0;
    if (n == 4 && (c < 0x10000 || c > 0x10ffff)) return 0;
    *code = c;
    return n;
}

size_t bert_utf8_encode(char bytes[4], uint32_t code) {
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    const size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(lead[n] | code);
    return n;
}
