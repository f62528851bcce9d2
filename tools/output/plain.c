/* f32: nothing but the numbers, little-endian. text: one row a line, for people, awk and numpy.loadtxt. */
#include "number.h"
#include "writer.h"

static int f32_tensor(writer *w, const tensor *t) {
    return sink_write(w->out, t->data, tensor_bytes(t));
}

const writer_kind writer_f32 = {
    "f32", ".f32", WRITES_STREAM | WRITES_BINARY | WRITES_ONE_TENSOR, 0, NULL, f32_tensor, NULL, NULL, NULL};

static int text_tensor(writer *w, const tensor *t) {
    size_t width = t->dim[t->rank - 1], n = tensor_count(t);
    const float *x = t->data;
    w->scratch.len = 0;
    for (size_t i = 0; i < n; i++) {
        char number[NUMBER_ROOM];
        buffer_add(&w->scratch, number, number_print(number, x[i]));
        buffer_byte(&w->scratch, (i + 1) % width ? ' ' : '\n');
    }
    if (t->rank > 2) buffer_byte(&w->scratch, '\n'); /* texts of several rows are set apart */
    return sink_write(w->out, w->scratch.data, w->scratch.len);
}

const writer_kind writer_text = {"text", ".txt", WRITES_STREAM | WRITES_ONE_TENSOR, 0, NULL, text_tensor, NULL,
                                 NULL,   NULL};
