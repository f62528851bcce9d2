/* safetensors (https://github.com/huggingface/safetensors, "Format"): the header holds every shape and offset, so the
 * data waits in spools: I64 comes first in the file, so that everything is aligned, then F32, then `embedding`. */
#include <stdlib.h>
#include <string.h>

#include "json_out.h"
#include "say.h"
#include "spool.h"
#include "writer.h"

enum { HEADER_LIMIT = 16 << 20 }; /* what libbert reads; the format's own reader takes 100 MB */

typedef struct entry {
    size_t name; /* where it begins in names */
    tensor_type type;
    int rank;
    size_t dim[4];
} entry;

typedef struct safetensors_state {
    spool data[2]; /* by tensor_type */
    spool embedding;
    entry *entries;
    size_t n, room;
    buffer names, metadata;
} safetensors_state;

static int add_metadata(writer *w, const char *key, const char *s, size_t n) {
    safetensors_state *state = w->state;
    if (state->metadata.len) buffer_byte(&state->metadata, ',');
    json_text(&state->metadata, key);
    buffer_byte(&state->metadata, ':');
    json_string(&state->metadata, s, n);
    if (state->metadata.len + state->names.len > HEADER_LIMIT)
        return say_error("%s: too many texts for the header of one safetensors file: use --format npz",
                         sink_name(w->out));
    return 0;
}

static int safetensors_tensor(writer *w, const tensor *t) {
    safetensors_state *state = w->state;
    if (t->type == TENSOR_JSON) return writer_add_text(w, t->name, t->data, t->dim[0], add_metadata);
    if (strcmp(t->name, "embedding") == 0) return spool_add(&state->embedding, t->data, tensor_bytes(t));
    if (state->n == state->room) {
        state->room = state->room ? 2 * state->room : 64;
        state->entries = need_more(state->entries, state->room, sizeof *state->entries);
    }
    entry *e = &state->entries[state->n++];
    *e = (entry){.name = state->names.len, .type = t->type, .rank = t->rank};
    memcpy(e->dim, t->dim, sizeof e->dim);
    writer_name(w, &state->names, t->name);
    buffer_byte(&state->names, 0);
    return spool_add(&state->data[t->type], t->data, tensor_bytes(t));
}

static int safetensors_begin(writer *w, const about *text) {
    return writer_metadata(w, text, add_metadata);
}

/* Adds one tensor to the header, returns where its data ends. */
static uint64_t add_entry(buffer *header, const char *name, const entry *e, uint64_t begin) {
    static const char *const types[] = {[TENSOR_F32] = "F32", [TENSOR_I64] = "I64"};
    uint64_t size = e->type == TENSOR_I64 ? 8 : 4;
    json_key(header, name);
    buffer_print(header, "{\"dtype\":\"%s\",\"shape\":[", types[e->type]);
    for (int i = 0; i < e->rank; i++) {
        size *= e->dim[i];
        buffer_print(header, i ? ",%zu" : "%zu", e->dim[i]);
    }
    const uint64_t end = begin + size;
    buffer_print(header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin, (unsigned long long)end);
    return end;
}

static void make_header(writer *w, buffer *header) {
    static const tensor_type order[] = {TENSOR_I64, TENSOR_F32};
    safetensors_state *state = w->state;
    uint64_t at = 0;
    buffer_text(header, "{\"__metadata__\":{");
    buffer_add(header, state->metadata.data, state->metadata.len);
    buffer_byte(header, '}');
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < state->n; i++)
            if (state->entries[i].type == order[pass])
                at = add_entry(header, state->names.data + state->entries[i].name, &state->entries[i], at);
    entry embedding = {.type = TENSOR_F32, .rank = 2, .dim = {w->texts, w->known.embedding}};
    if (w->known.embedding) add_entry(header, "embedding", &embedding, at);
    buffer_byte(header, '}');
    while (header->len % 8) buffer_byte(header, ' ');
}

static int safetensors_finish(writer *w) {
    safetensors_state *state = w->state;
    TRY(writer_global_metadata(w, add_metadata));
    buffer *header = &w->scratch;
    header->len = 0;
    make_header(w, header);
    uint64_t length = header->len; /* little-endian, as every machine that we run on */
    if (length > HEADER_LIMIT)
        return say_error("%s: too many tensors for the header of one safetensors file: use --format npz",
                         sink_name(w->out));
    TRY(sink_write(w->out, &length, sizeof length));
    TRY(sink_write(w->out, header->data, header->len));
    TRY(spool_copy(&state->data[TENSOR_I64], 0, state->data[TENSOR_I64].size, w->out));
    TRY(spool_copy(&state->data[TENSOR_F32], 0, state->data[TENSOR_F32].size, w->out));
    return spool_copy(&state->embedding, 0, state->embedding.size, w->out);
}

static void safetensors_close(writer *w) {
    safetensors_state *state = w->state;
    for (int i = 0; i < 2; i++) spool_close(&state->data[i]);
    spool_close(&state->embedding);
    free(state->entries);
    buffer_close(&state->names);
    buffer_close(&state->metadata);
}

const writer_kind writer_safetensors = {"safetensors",
                                        ".safetensors",
                                        WRITES_BINARY | WRITES_IDS | WRITES_TOKENS | WRITES_METADATA,
                                        sizeof(safetensors_state),
                                        safetensors_begin,
                                        safetensors_tensor,
                                        NULL,
                                        safetensors_finish,
                                        safetensors_close};
