/* serve/head.h: a strict look at the head of an HTTP/1.1 request (RFC 9112), before libmicrohttpd reads it.
 *
 * libmicrohttpd takes a lone CR for the end of a line, cuts values at a NUL, and accepts two Host fields, two lengths,
 * or a length beside a transfer coding. Each is a way to make two programs in a row see different requests, so nothing
 * of the kind gets to it.
 */
#ifndef SERVE_HEAD_H
#define SERVE_HEAD_H

#include <stddef.h>
#include <stdint.h>

enum { HEAD_MOST = 16 << 10, HEAD_TARGET = 4096, HEAD_FIELDS = 100 };

typedef struct head {
    size_t size;     /* with the empty line behind it */
    uint64_t length; /* of the body, from Content-Length; 0: none */
    int chunked;
} head;

enum { HEAD_GOOD = 0, HEAD_PART = 1 };

/* Looks at the first n bytes of a request, whatever they are. HEAD_GOOD: a whole head, *h says what is in it.
 * HEAD_PART: nothing wrong so far. Else the HTTP status to refuse it with, and *why. */
int head_check(head *h, const char *bytes, size_t n, const char **why);

#endif
