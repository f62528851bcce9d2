#include "memory.h"

#include <string.h>

#include "lines.h"
#include "output/npy_header.h"
#include "say.h"

static const char *check_shape(npy_header *h, size_t hidden) {
    if (h->rank == 3 && h->dim[0] == 1) {
        h->rank = 2;
        memmove(h->dim, h->dim + 1, 2 * sizeof *h->dim);
    }
    if (h->kind != 'f' || (h->size != 4 && h->size != 8)) return "expected float32 or float64";
    return h->rank == 2 && h->dim[0] > 0 && h->dim[1] == hidden ? NULL : "expected the shape [Tm, hidden_size]";
}

static int read_states(float **states, size_t *rows, lines *l, size_t hidden) {
    npy_header h;
    const char *bytes;
    TRY(lines_peek(l, NPY_HEADER_MOST));
    const char *wrong = npy_header_read(&h, l->data + l->begin, l->end - l->begin);
    if (!wrong) wrong = check_shape(&h, hidden);
    if (wrong) return say_error("%s: not a memory of %zu columns: %s", l->name, hidden, wrong);
    l->begin += h.length;
    TRY(lines_bytes(l, &bytes, h.count * (size_t)h.size));
    if (!bytes) return say_error("%s: expected %zu numbers, found the end of the file before", l->name, h.count);
    *rows = h.dim[0];
    *states = need(h.count, sizeof **states);
    if (h.size == 4) memcpy(*states, bytes, h.count * sizeof **states);
    for (size_t i = 0; h.size == 8 && i < h.count; i++) {
        double x;
        memcpy(&x, bytes + i * sizeof x, sizeof x);
        (*states)[i] = (float)x;
    }
    return 0;
}

int memory_read(float **states, size_t *rows, const char *path, size_t hidden) {
    lines l;
    TRY(lines_open(&l, path));
    const int status = read_states(states, rows, &l, hidden);
    lines_close(&l);
    return status;
}
