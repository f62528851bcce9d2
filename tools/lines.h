/* lines.h: lines of any length from a descriptor, as they come. */
#ifndef LINES_H
#define LINES_H

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

typedef struct lines {
    int fd;
    const char *name; /* in messages */
    char *data;
    size_t begin, end, room; /* what is waiting: data[begin, end) */
    size_t searched;         /* so many of these bytes hold no end of a line */
    size_t most;             /* bytes that a line may have; 0: any number */
    int cut;                 /* the last line had more: what was handed out is its beginning */
    size_t number;           /* of the last line, from 1 */
    uint64_t taken;          /* bytes handed out or skipped so far */
    int ended;
    int failed; /* exit status of a read that did not work; it has been said why */
} lines;

/* Opens the file at `path`, "-": stdin. Opening a FIFO waits for its writer; a signal ends that too. */
int lines_open(lines *l, const char *path);

/* The next line without its end (LF, or CR LF), valid until the next call; the last one may lack its end. *line = NULL
 * at the end of the file. A line of more than `most` bytes is answered as soon as that is seen, `cut` is set, and the
 * next call skips the rest of it, in constant memory. */
int lines_next(lines *l, const char **line, size_t *n);

/* The line just handed out, of n bytes, into memory of the caller's. One of megabytes is not copied: `in` gets the
 * memory that it was read into. */
void lines_keep(lines *l, const char *line, size_t n, buffer *in);

/* Reads until n bytes are waiting, or all that there are. */
int lines_peek(lines *l, size_t n);
/* The next n bytes; *bytes = NULL if fewer are left. */
int lines_bytes(lines *l, const char **bytes, size_t n);

/* 1: lines_next would not wait: a whole line is there, or the end. Reads what can be read without waiting. */
int lines_ready(lines *l);

/* Bytes that were to be read when the first was, 0 if it is no regular file. */
uint64_t lines_size(const lines *l);
void lines_close(lines *l);

#endif
