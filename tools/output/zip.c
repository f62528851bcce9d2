#include "zip.h"

#include <string.h>

enum {
    LOCAL_HEADER = 0x04034b50,
    DIRECTORY_ENTRY = 0x02014b50,
    DIRECTORY_END = 0x06054b50,
    ZIP64_END = 0x06064b50,
    ZIP64_LOCATOR = 0x07064b50,
    VERSION_ZIP64 = 45,
    VERSION_PLAIN = 20,
    UTF8_NAMES = 1 << 11,
    DATE_1980 = 1 << 5 | 1 /* 1 January 1980: the same results give the same bytes */
};
static const uint64_t max32 = 0xFFFFFFFF, max16 = 0xFFFF; /* and "look into the ZIP64 field" */

/* Eight tables, so that eight bytes are taken at once (M. Kounavis, F. Berry: "A Systematic Approach to Building High
 * Performance, Software-based, CRC Generators", 2005). tables[k][b]: the effect of byte b followed by k zero bytes. */
static uint32_t tables[8][256];

static void make_tables(void) {
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
        tables[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++) tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xFF];
}

uint32_t crc32_add(uint32_t crc, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    if (!tables[0][1]) make_tables();
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t a, b;
        memcpy(&a, p, 4);
        memcpy(&b, p + 4, 4);
        a ^= crc;
        crc = tables[7][a & 0xFF] ^ tables[6][a >> 8 & 0xFF] ^ tables[5][a >> 16 & 0xFF] ^ tables[4][a >> 24] ^
              tables[3][b & 0xFF] ^ tables[2][b >> 8 & 0xFF] ^ tables[1][b >> 16 & 0xFF] ^ tables[0][b >> 24];
    }
    for (; n > 0; n--) crc = crc >> 8 ^ tables[0][(crc ^ *p++) & 0xFF];
    return ~crc;
}

static void put(buffer *b, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) buffer_byte(b, (char)(value >> 8 * i & 0xFF));
}

static uint64_t capped(uint64_t value) {
    return value < max32 ? value : max32;
}

/* What a local header and a directory entry have in common: version to name length. */
static void put_common(buffer *b, const char *name, uint64_t size, uint32_t crc, int is64) {
    put(b, is64 ? VERSION_ZIP64 : VERSION_PLAIN, 2);
    put(b, UTF8_NAMES, 2);
    put(b, 0, 2); /* stored */
    put(b, 0, 2);
    put(b, DATE_1980, 2);
    put(b, crc, 4);
    put(b, capped(size), 4);
    put(b, capped(size), 4);
    put(b, strlen(name), 2);
}

static void put_directory_entry(zip *z, const char *name, uint64_t size, uint32_t crc, uint64_t offset) {
    buffer *b = &z->directory;
    int fields = 2 * (size >= max32) + (offset >= max32);
    put(b, DIRECTORY_ENTRY, 4);
    put(b, VERSION_ZIP64, 2); /* made by; system 0 */
    put_common(b, name, size, crc, fields > 0);
    put(b, fields ? 4 + 8 * (unsigned)fields : 0, 2);
    put(b, 0, 2); /* comment */
    put(b, 0, 2); /* disk */
    put(b, 0, 2); /* internal attributes */
    put(b, 0, 4); /* external attributes */
    put(b, capped(offset), 4);
    buffer_text(b, name);
    if (!fields) return;
    put(b, 1, 2);
    put(b, 8 * (unsigned)fields, 2);
    if (size >= max32) {
        put(b, size, 8);
        put(b, size, 8);
    }
    if (offset >= max32) put(b, offset, 8);
}

int zip_begin(zip *z, const char *name, uint64_t size, uint32_t crc) {
    put_directory_entry(z, name, size, crc, sink_tell(z->out));
    z->entries++;
    buffer b = {0};
    int is64 = size >= max32;
    put(&b, LOCAL_HEADER, 4);
    put_common(&b, name, size, crc, is64);
    put(&b, is64 ? 20 : 0, 2);
    buffer_text(&b, name);
    if (is64) {
        put(&b, 1, 2);
        put(&b, 16, 2);
        put(&b, size, 8);
        put(&b, size, 8);
    }
    int status = sink_write(z->out, b.data, b.len);
    buffer_close(&b);
    return status;
}

static void put_zip64_end(zip *z, uint64_t begin, uint64_t length) {
    buffer *b = &z->directory;
    put(b, ZIP64_END, 4);
    put(b, 44, 8); /* bytes of this record that follow */
    put(b, VERSION_ZIP64, 2);
    put(b, VERSION_ZIP64, 2);
    put(b, 0, 4);
    put(b, 0, 4);
    put(b, z->entries, 8);
    put(b, z->entries, 8);
    put(b, length, 8);
    put(b, begin, 8);
    put(b, ZIP64_LOCATOR, 4);
    put(b, 0, 4);
    put(b, begin + length, 8);
    put(b, 1, 4);
}

int zip_finish(zip *z) {
    buffer *b = &z->directory;
    uint64_t begin = sink_tell(z->out), length = b->len;
    uint64_t entries = z->entries < max16 ? z->entries : max16;
    if (entries == max16 || begin >= max32 || length >= max32) put_zip64_end(z, begin, length);
    put(b, DIRECTORY_END, 4);
    put(b, 0, 4);
    put(b, entries, 2);
    put(b, entries, 2);
    put(b, capped(length), 4);
    put(b, capped(begin), 4);
    put(b, 0, 2);
    return sink_write(z->out, b->data, b->len);
}

void zip_close(zip *z) {
    buffer_close(&z->directory);
}
