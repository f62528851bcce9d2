/* output/npy_header.h: the header of a .npy file
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). */
#ifndef NPY_HEADER_H
#define NPY_HEADER_H

#include <stdint.h>

#include "buffer.h"

/* Appends the header for C order; `type` is numpy's: "<f4", "<i8", "<U12". */
void npy_header_add(buffer *b, const char *type, const size_t *dim, int rank);

enum { NPY_RANK = 8 };
/* Bytes to have at hand for npy_header_read: no header that is read is longer, and no more need be read to see that a
 * file (or a device without an end) is no npy file. */
enum { NPY_HEADER_MOST = 1 << 16 };
typedef struct npy_header {
    char kind; /* 'i', 'u' or 'f' */
    int size;  /* bytes of one element */
    int rank;
    size_t dim[NPY_RANK], count;
    size_t length; /* of the header: where the data begins */
} npy_header;

/* Reads the header of a file that begins with these bytes. NULL: fine, else what is wrong. */
const char *npy_header_read(npy_header *h, const char *bytes, size_t n);

#endif
