/* output/zip.h: a zip archive of stored files, written from front to end (PKWARE APPNOTE 6.3.10; ZIP64 where sizes,
 * offsets or counts need it). */
#ifndef ZIP_H
#define ZIP_H

#include <stdint.h>

#include "buffer.h"
#include "sink.h"

/* CRC-32 of zip and gzip; start with 0. */
uint32_t crc32_add(uint32_t crc, const void *bytes, size_t n);

typedef struct zip {
    sink *out;
    uint64_t entries;
    buffer directory;
} zip;

/* Begins a file of `size` bytes with this checksum; the caller then writes them to the sink. */
int zip_begin(zip *z, const char *name, uint64_t size, uint32_t crc);
int zip_finish(zip *z);
void zip_close(zip *z);

#endif
