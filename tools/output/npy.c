/* npy: all texts as one array. Its header holds their number, so the data waits in a spool. */
#include <stdlib.h>

#include "npy_header.h"
#include "say.h"
#include "spool.h"
#include "writer.h"

typedef struct npy_state {
    spool data;
    size_t *length, room; /* rows of each text; token vectors only */
    size_t longest, width;
    int rank; /* with the batch */
} npy_state;

static int check_length(writer *w, const tensor *t) {
    npy_state *state = w->state;
    const facts *known = &w->known;
    size_t length = t->dim[1];
    if (known->pad == PAD_FIXED && length > known->pad_length)
        return say_error("%s: a text of %zu tokens does not fit --padding %zu: use --max-length too", sink_name(w->out),
                         length, known->pad_length);
    if (known->pad == PAD_NONE && w->texts && length != state->length[0])
        return say_error("%s: npy needs texts of equal length, found %zu and %zu tokens: use --padding longest or "
                         "--format npz",
                         sink_name(w->out), state->length[0], length);
    return 0;
}

static int npy_tensor(writer *w, const tensor *t) {
    npy_state *state = w->state;
    state->rank = t->rank;
    state->width = t->dim[t->rank - 1];
    if (t->rank > 2) {
        TRY(check_length(w, t));
        if (w->texts == state->room) {
            state->room = state->room ? 2 * state->room : 64;
            state->length = need_more(state->length, state->room, sizeof *state->length);
        }
        state->length[w->texts] = t->dim[1];
        if (t->dim[1] > state->longest) state->longest = t->dim[1];
    }
    return spool_add(&state->data, t->data, tensor_bytes(t));
}

static int write_zeros(sink *out, uint64_t n) {
    static const char zeros[4096];
    for (; n > sizeof zeros; n -= sizeof zeros) TRY(sink_write(out, zeros, sizeof zeros));
    return sink_write(out, zeros, (size_t)n);
}

/* The rows of each text and behind them zeros up to `rows`. */
static int write_padded(writer *w, size_t rows) {
    npy_state *state = w->state;
    uint64_t at = 0, row = state->width * sizeof(float);
    for (size_t i = 0; i < w->texts; i++) {
        TRY(spool_copy(&state->data, at, state->length[i] * row, w->out));
        TRY(write_zeros(w->out, (rows - state->length[i]) * row));
        at += state->length[i] * row;
    }
    return 0;
}

static int npy_finish(writer *w) {
    npy_state *state = w->state;
    const facts *known = &w->known;
    if (w->texts == 0) {
        state->rank = known->rank;
        state->width = known->width;
    }
    size_t rows = known->pad == PAD_FIXED ? known->pad_length : state->longest;
    size_t dim[3] = {w->texts, state->rank > 2 ? rows : state->width, state->width};
    w->scratch.len = 0;
    npy_header_add(&w->scratch, "<f4", dim, state->rank);
    TRY(sink_write(w->out, w->scratch.data, w->scratch.len));
    return state->rank > 2 ? write_padded(w, rows) : spool_copy(&state->data, 0, state->data.size, w->out);
}

static void npy_close(writer *w) {
    npy_state *state = w->state;
    spool_close(&state->data);
    free(state->length);
}

const writer_kind writer_npy = {
    "npy", ".npy", WRITES_BINARY | WRITES_ONE_TENSOR, sizeof(npy_state), NULL, npy_tensor, NULL, npy_finish, npy_close};
