#include "buffer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/sink.h"
#include "progress.h"
#include "say.h"

/* Says so without say_error, which needs memory too. */
static _Noreturn void no_memory(void) {
    progress_clear();
    fputs("bert: out of memory\n", stderr);
    sink_abandon_all();
    exit(EXIT_COULD_NOT);
}

void *need_more(void *p, size_t count, size_t size) {
    if (size && count > SIZE_MAX / 2 / size) no_memory();
    size_t bytes = count * size;
    void *grown = realloc(p, bytes ? bytes : 1);
    if (!grown) no_memory();
    return grown;
}

void *need(size_t count, size_t size) {
    return need_more(NULL, count, size);
}

char *need_copy(const char *text) {
    size_t bytes = strlen(text) + 1;
    return memcpy(need(bytes, 1), text, bytes);
}

char *buffer_reserve(buffer *b, size_t n) {
    if (n > b->room - b->len) {
        if (n > SIZE_MAX / 4 || b->len > SIZE_MAX / 4) no_memory();
        size_t room = 2 * b->room > b->len + n ? 2 * b->room : b->len + n;
        b->room = room < 64 ? 64 : room;
        b->data = need_more(b->data, b->room, 1);
    }
    return b->data + b->len;
}

void buffer_add(buffer *b, const void *bytes, size_t n) {
    if (n == 0) return;
    memcpy(buffer_reserve(b, n), bytes, n);
    b->len += n;
}

void buffer_byte(buffer *b, char byte) {
    *buffer_reserve(b, 1) = byte;
    b->len++;
}

void buffer_text(buffer *b, const char *text) {
    buffer_add(b, text, strlen(text));
}

void buffer_print_list(buffer *b, const char *format, va_list values) {
    va_list again;
    va_copy(again, values);
    int n = vsnprintf(NULL, 0, format, values);
    if (n > 0) {
        vsnprintf(buffer_reserve(b, (size_t)n + 1), (size_t)n + 1, format, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void buffer_print(buffer *b, const char *format, ...) {
    va_list values;
    va_start(values, format);
    buffer_print_list(b, format, values);
    va_end(values);
}

void buffer_close(buffer *b) {
    free(b->data);
    *b = (buffer){0};
}
