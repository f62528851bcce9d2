/* output/spool.h: bytes kept until it is known what comes before them: a file's header with the sizes of all that
 * follows. Small amounts stay in memory, larger ones go to an unnamed temporary file. */
#ifndef SPOOL_H
#define SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "sink.h"

typedef struct spool {
    int fd; /* of the temporary file; 0: none yet */
    uint64_t size, spilled;
    char *held;
    size_t room;
} spool;

int spool_add(spool *s, const void *bytes, size_t n);
/* Copies bytes [at, at + n) to where `use` puts them. */
int spool_read(spool *s, uint64_t at, uint64_t n, int (*use)(void *user, const void *bytes, size_t n), void *user);
int spool_copy(spool *s, uint64_t at, uint64_t n, sink *out);
void spool_close(spool *s);

#endif
