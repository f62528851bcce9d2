/* lines.h: lines of any length from a descriptor, as they come. */
#ifndef LINES_H
#define LINES_H

#include <stddef.h>
#include <stdint.h>

typedef struct lines {
    int fd;
    const char *name; /* in messages */
    char *data;
    size_t begin, end, room; /* what is waiting: data[begin, end) */
    size_t number;           /* of the last line, from 1 */
    uint64_t taken;          /* bytes handed out so far */
    int ended;
} lines;

/* Opens the file at `path`, "-": stdin. Opening a FIFO waits for its writer; a signal ends that too. */
int lines_open(lines *l, const char *path);

/* The next line without its end (LF, or CR LF), valid until the next call; the last one may lack its end. *line = NULL
 * at the end of the file. */
int lines_next(lines *l, const char **line, size_t *n);

/* Reads until n bytes are waiting, or all that there are. */
int lines_peek(lines *l, size_t n);
/* The next n bytes; *bytes = NULL if fewer are left. */
int lines_bytes(lines *l, const char **bytes, size_t n);

/* 1: there is a line, or the end, without waiting (as far as one can see from here). */
int lines_ready(lines *l);

/* Bytes in the file, 0 if it is none. */
uint64_t lines_size(const lines *l);
void lines_close(lines *l);

#endif
