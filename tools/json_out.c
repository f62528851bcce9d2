#include "json_out.h"

#include <math.h>
#include <string.h>

#include "number.h"
#include "utf8.h"

/* A character of the first plane that shall not stand there as it is. */
static void escape(buffer *b, uint32_t c) {
    static const char *const names[] = {['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f",
                                        ['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\"};
    if (c < sizeof names / sizeof *names && names[c])
        buffer_text(b, names[c]);
    else
        buffer_print(b, "\\u%04x", c);
}

/* Bytes that stand for themselves in a JSON string, up to the next one that does not. */
static size_t plain_run(const char *s, size_t n) {
    size_t i = 0;
    while (i < n && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x7F && s[i] != '"' && s[i] != '\\') i++;
    return i;
}

void json_string(buffer *b, const char *s, size_t n) {
    buffer_byte(b, '"');
    for (size_t i = 0; i < n;) {
        size_t run = plain_run(s + i, n - i);
        buffer_add(b, s + i, run);
        i += run;
        if (i == n) break;
        uint32_t code;
        size_t step = utf8_decode(s + i, n - i, &code);
        if (code == '"' || code == '\\' || !utf8_is_printable(code))
            escape(b, code);
        else
            utf8_add_mended(b, s + i, step);
        i += step;
    }
    buffer_byte(b, '"');
}

void json_text(buffer *b, const char *s) {
    json_string(b, s, strlen(s));
}

void json_key(buffer *b, const char *name) {
    if (b->len && b->data[b->len - 1] != '{') buffer_byte(b, ',');
    json_text(b, name);
    buffer_byte(b, ':');
}

void json_given(buffer *b, const char *name, const char *json, size_t n) {
    if (!json) return;
    json_key(b, name);
    buffer_add(b, json, n);
}

void json_float(buffer *b, float x) {
    b->len += number_print(buffer_reserve(b, NUMBER_ROOM), x);
}

void json_integer(buffer *b, int64_t x) {
    b->len += number_print_integer(buffer_reserve(b, NUMBER_ROOM), x);
}

void json_double(buffer *b, double x) {
    if (isfinite(x))
        buffer_print(b, "%.17g", x);
    else
        buffer_text(b, "null");
}

void json_floats(buffer *b, const float *x, const size_t *dim, int rank) {
    if (rank == 0) {
        json_float(b, x[0]);
        return;
    }
    size_t step = 1;
    for (int i = 1; i < rank; i++) step *= dim[i];
    buffer_byte(b, '[');
    for (size_t i = 0; i < dim[0]; i++) {
        if (i) buffer_byte(b, ',');
        json_floats(b, x + i * step, dim + 1, rank - 1);
    }
    buffer_byte(b, ']');
}

void json_integers(buffer *b, const int64_t *x, const size_t *dim, int rank) {
    if (rank == 0) {
        json_integer(b, x[0]);
        return;
    }
    size_t step = 1;
    for (int i = 1; i < rank; i++) step *= dim[i];
    buffer_byte(b, '[');
    for (size_t i = 0; i < dim[0]; i++) {
        if (i) buffer_byte(b, ',');
        json_integers(b, x + i * step, dim + 1, rank - 1);
    }
    buffer_byte(b, ']');
}
