/* buffer.h: bytes that grow. Running out of memory ends the command with a message; nobody else has to think of it. */
#ifndef BUFFER_H
#define BUFFER_H

#include <stdarg.h>
#include <stddef.h>

/* count × size bytes; never returns NULL. */
void *need(size_t count, size_t size);
/* p grown to count × size bytes; never returns NULL. */
void *need_more(void *p, size_t count, size_t size);
/* A copy of the text; never returns NULL. */
char *need_copy(const char *text);

typedef struct buffer {
    char *data;
    size_t len, room;
} buffer;

/* Room for n more bytes behind len; returns where they go. */
char *buffer_reserve(buffer *b, size_t n);
void buffer_add(buffer *b, const void *bytes, size_t n);
void buffer_byte(buffer *b, char byte);
void buffer_text(buffer *b, const char *text);
/* What it prints has a NUL behind it, which is not counted. */
void buffer_print(buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buffer_print_list(buffer *b, const char *format, va_list values) __attribute__((format(printf, 2, 0)));
void buffer_close(buffer *b);

#endif
