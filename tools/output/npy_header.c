#include "npy_header.h"

#include <stdlib.h>
#include <string.h>

void npy_header_add(buffer *b, const char *type, const size_t *dim, int rank) {
    buffer dict = {0};
    buffer_print(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int i = 0; i < rank; i++) buffer_print(&dict, i ? " %zu," : "%zu,", dim[i]);
    if (rank > 1) dict.len--; /* (3,) but (3, 4) */
    buffer_text(&dict, "), }");
    while ((10 + dict.len + 1) % 64) buffer_byte(&dict, ' '); /* the data is aligned to 64 bytes */
    buffer_byte(&dict, '\n');
    buffer_add(b, "\x93NUMPY\x01\x00", 8);
    buffer_byte(b, (char)(dict.len & 0xFF));
    buffer_byte(b, (char)(dict.len >> 8));
    buffer_add(b, dict.data, dict.len);
    buffer_close(&dict);
}

/* Where the value of 'key' begins in the dictionary (a Python literal, in the form that numpy writes); NULL: none. */
static const char *value_of(const char *dict, const char *key) {
    const char *at = strstr(dict, key);
    if (!at) return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':') at++;
    return at;
}

static const char *read_type(npy_header *h, const char *dict) {
    const char *at = value_of(dict, "'descr'");
    if (!at || *at++ != '\'') return "its type is not a simple one";
    char type[4] = {0}; /* <i8 */
    memcpy(type, at, strnlen(at, 3));
    h->kind = type[1];
    h->size = type[2] - '0';
    if (!strchr("<|", type[0]) || !type[1] || !strchr("iuf", type[1]) || !type[2] || !strchr("1248", type[2]) ||
        at[3] != '\'')
        return "expected little-endian integers or floats";
    return NULL;
}

static const char *read_shape(npy_header *h, const char *dict) {
    const char *at = value_of(dict, "'shape'");
    if (!at || *at++ != '(') return "it has no shape";
    h->rank = 0;
    h->count = 1;
    for (; *at != ')'; at += strspn(at, ", ")) {
        char *end;
        if (*at < '0' || *at > '9' || h->rank == NPY_RANK) return "its shape is not one that is read here";
        unsigned long long n = strtoull(at, &end, 10);
        if (n && h->count > SIZE_MAX / 16 / n) return "its shape is too large";
        h->dim[h->rank++] = (size_t)n;
        h->count *= (size_t)n;
        at = end;
    }
    return NULL;
}

/* Of one dimension both orders are the same. */
static const char *read_order(const npy_header *h, const char *dict) {
    const char *at = value_of(dict, "'fortran_order'");
    if (at && strncmp(at, "False", 5) == 0) return NULL;
    if (!at || strncmp(at, "True", 4) != 0) return "it does not say its order";
    return h->rank > 1 ? "it is in Fortran order" : NULL;
}

const char *npy_header_read(npy_header *h, const char *bytes, size_t n) {
    const unsigned char *u = (const unsigned char *)bytes;
    if (n < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0 || u[6] < 1 || u[6] > 3) return "it is not a npy file";
    size_t begin = u[6] == 1 ? 10 : 12;
    size_t length = u[8] | (size_t)u[9] << 8;
    if (u[6] > 1) length |= (size_t)u[10] << 16 | (size_t)u[11] << 24;
    if (length > n - begin) return "its header is cut off";
    char *dict = need(length + 1, 1);
    memcpy(dict, bytes + begin, length);
    dict[length] = 0;
    const char *wrong = read_type(h, dict);
    if (!wrong) wrong = read_shape(h, dict);
    if (!wrong) wrong = read_order(h, dict);
    h->length = begin + length;
    free(dict);
    return wrong;
}
