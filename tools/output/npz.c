/* npz: a zip of npy files, written as the tensors come. Metadata are 0-dimensional arrays of text. */
#include <string.h>

#include "npy_header.h"
#include "say.h"
#include "spool.h"
#include "utf8.h"
#include "writer.h"
#include "zip.h"

typedef struct npz_state {
    zip archive;
    spool embedding; /* rows of the one [N, H] */
    buffer header, name;
} npz_state;

/* One array whose data is at hand. */
static int add_array(writer *w, const char *name, const char *type, const size_t *dim, int rank, const void *data,
                     size_t bytes) {
    npz_state *state = w->state;
    state->header.len = 0;
    npy_header_add(&state->header, type, dim, rank);
    uint32_t crc = crc32_add(crc32_add(0, state->header.data, state->header.len), data, bytes);
    TRY(zip_begin(&state->archive, name, state->header.len + bytes, crc));
    TRY(sink_write(w->out, state->header.data, state->header.len));
    return sink_write(w->out, data, bytes);
}

/* "hidden_states.0" as "{n}.hidden_states.0.npy" */
static const char *file_name(npz_state *state, const char *name) {
    buffer_print(&state->name, "%s.npy", name);
    buffer_byte(&state->name, 0);
    return state->name.data;
}

/* A text as numpy's "<Un": UTF-32. At least one character, numpy knows no shorter type. */
static int add_string(writer *w, const char *key, const char *s, size_t n) {
    npz_state *state = w->state;
    buffer wide = {0}, type = {0};
    for (size_t i = 0; i < n;) {
        uint32_t code;
        i += utf8_decode(s + i, n - i, &code);
        buffer_add(&wide, &code, sizeof code);
    }
    if (wide.len == 0) buffer_add(&wide, "\0\0\0", 4);
    buffer_print(&type, "<U%zu", wide.len / 4);
    buffer_byte(&type, 0);
    state->name.len = 0;
    int status = add_array(w, file_name(state, key), type.data, NULL, 0, wide.data, wide.len);
    buffer_close(&wide);
    buffer_close(&type);
    return status;
}

static int npz_tensor(writer *w, const tensor *t) {
    npz_state *state = w->state;
    if (t->type == TENSOR_JSON) return writer_add_text(w, t->name, t->data, t->dim[0], add_string);
    if (strcmp(t->name, "embedding") == 0) return spool_add(&state->embedding, t->data, tensor_bytes(t));
    state->name.len = 0;
    if (w->known.several) buffer_print(&state->name, "%zu.", w->texts);
    return add_array(w, file_name(state, t->name), t->type == TENSOR_I64 ? "<i8" : "<f4", t->dim, t->rank, t->data,
                     tensor_bytes(t));
}

static int npz_begin(writer *w, const about *text) {
    npz_state *state = w->state;
    state->archive.out = w->out;
    return writer_metadata(w, text, add_string);
}

static int add_crc(void *crc, const void *bytes, size_t n) {
    *(uint32_t *)crc = crc32_add(*(uint32_t *)crc, bytes, n);
    return 0;
}

/* Read twice: the checksum stands in front of the data. */
static int add_embedding(writer *w) {
    npz_state *state = w->state;
    spool *rows = &state->embedding;
    size_t dim[2] = {w->texts, w->known.embedding};
    state->header.len = 0;
    npy_header_add(&state->header, "<f4", dim, 2);
    uint32_t crc = crc32_add(0, state->header.data, state->header.len);
    TRY(spool_read(rows, 0, rows->size, add_crc, &crc));
    TRY(zip_begin(&state->archive, "embedding.npy", state->header.len + rows->size, crc));
    TRY(sink_write(w->out, state->header.data, state->header.len));
    return spool_copy(rows, 0, rows->size, w->out);
}

static int npz_finish(writer *w) {
    npz_state *state = w->state;
    state->archive.out = w->out;
    if (w->known.embedding) TRY(add_embedding(w));
    TRY(writer_global_metadata(w, add_string));
    return zip_finish(&state->archive);
}

static void npz_close(writer *w) {
    npz_state *state = w->state;
    zip_close(&state->archive);
    spool_close(&state->embedding);
    buffer_close(&state->header);
    buffer_close(&state->name);
}

const writer_kind writer_npz = {"npz",
                                ".npz",
                                WRITES_BINARY | WRITES_IDS | WRITES_TOKENS | WRITES_METADATA,
                                sizeof(npz_state),
                                npz_begin,
                                npz_tensor,
                                NULL,
                                npz_finish,
                                npz_close};
