/* base/utf8.h: one character of UTF-8, strictly (RFC 3629: no overlong forms, no surrogates, nothing above 10FFFF). */
#ifndef BERT_BASE_UTF8_H
#define BERT_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length of the character at `bytes` (1..4) and its code point; 0, and *code = 0xFFFD, if the bytes there are not
 * valid or end too early. */
size_t bert_utf8_decode(const char *bytes, size_t len, uint32_t *code);

/* Writes the character, returns its length. `code` is a Unicode scalar value. */
size_t bert_utf8_encode(char bytes[4], uint32_t code);

#endif
