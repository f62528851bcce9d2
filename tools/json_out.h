/* json_out.h: JSON as we write it. */
#ifndef JSON_OUT_H
#define JSON_OUT_H

#include <stdint.h>

#include "buffer.h"

/* A string: whatever is not UTF-8 as U+FFFD; escaped is also what JSON would allow but what breaks lines for some
 * readers (U+2028, U+0085), steers a terminal or reorders the text around it. */
void json_string(buffer *b, const char *s, size_t n);
void json_text(buffer *b, const char *s); /* the same for a C string */
/* "name": with a comma before it unless the object has just been opened. */
void json_key(buffer *b, const char *name);
/* A member whose value is JSON already, of n bytes; nothing where it is NULL. */
void json_given(buffer *b, const char *name, const char *json, size_t n);
void json_integer(buffer *b, int64_t x);
void json_float(buffer *b, float x);
void json_double(buffer *b, double x);
/* Nested arrays of shape dim[0..rank-1]. */
void json_floats(buffer *b, const float *x, const size_t *dim, int rank);
void json_integers(buffer *b, const int64_t *x, const size_t *dim, int rank);

#endif
