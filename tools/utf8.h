/* utf8.h: finding and mending what is not UTF-8 in texts that we read or print (Unicode 15, section 3.9: each maximal
 * part of an ill-formed sequence is replaced by one U+FFFD). */
#ifndef UTF8_H
#define UTF8_H

#include <stdint.h>

#include "buffer.h"

/* The length of the character at s (n > 0 bytes), *valid = 1; or of the maximal invalid part, *valid = 0. */
size_t utf8_step(const char *s, size_t n, int *valid);

/* The number of invalid parts; *first is where the first one begins (n if there is none). */
size_t utf8_count_invalid(const char *s, size_t n, size_t *first);

/* The same, and the character itself (U+FFFD for an invalid part). */
size_t utf8_decode(const char *s, size_t n, uint32_t *code);

/* 0: a control character, a line or paragraph separator, or a mark that reorders the text around it. All of these are
 * below U+10000. */
int utf8_is_printable(uint32_t code);

/* Appends s with every invalid part replaced by U+FFFD. */
void utf8_add_mended(buffer *b, const char *s, size_t n);

/* Appends s as part of a line for people: what would break the line, reorder it or steer a terminal, and what is not
 * UTF-8, as \xNN. */
void utf8_add_printable(buffer *b, const char *s, size_t n);

#endif
