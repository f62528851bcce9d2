#include "input_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/npy_header.h"
#include "say.h"

static int read_npy_header(input *in) {
    npy_header h;
    lines *l = &in->lines;
    TRY(lines_peek(l, NPY_HEADER_MOST));
    const char *wrong = npy_header_read(&h, l->data + l->begin, l->end - l->begin);
    if (!wrong && (h.kind == 'f' || h.rank < 1 || h.rank > 2)) wrong = "expected integers of shape [T] or [N, T]";
    /* Rows without bytes: the file's size would say nothing about how many there are. */
    if (!wrong && h.rank == 2 && h.dim[0] > 0 && h.dim[1] == 0) wrong = "its rows have no ids";
    if (wrong) return say_error("%s: not ids that can be read: %s", l->name, wrong);
    l->begin += h.length;
    in->is_npy = 1;
    in->rows = h.rank == 2 ? h.dim[0] : 1;
    in->columns = h.dim[h.rank - 1];
    in->id_bytes = h.size;
    in->id_unsigned = h.kind == 'u';
    return 0;
}

int input_open_ids(input *in) {
    static const char magic[6] = "\x93NUMPY";
    lines *l = &in->lines;
    TRY(lines_open(l, in->s->ids));
    TRY(lines_peek(l, sizeof magic));
    int is_npy = l->end - l->begin >= sizeof magic && memcmp(l->data + l->begin, magic, sizeof magic) == 0;
    return is_npy ? read_npy_header(in) : 0;
}

/* 1: the id is one that a table can have. */
static int take_id(record *r, int64_t id) {
    if (id < 0 || id > INT32_MAX) {
        snprintf(r->wrong, sizeof r->wrong, "id %lld is outside 0 to %d", (long long)id, INT32_MAX);
        return 0;
    }
    r->ids[r->n_ids++] = (int32_t)id;
    return 1;
}

static int64_t element(const input *in, const char *at) {
    uint64_t value = 0;
    int bits = 8 * in->id_bytes;
    memcpy(&value, at, (size_t)in->id_bytes);
    if (in->id_unsigned) return value > INT64_MAX ? INT64_MAX : (int64_t)value;
    return (int64_t)(value << (64 - bits)) >> (64 - bits); /* the sign reaches the top */
}

static int next_row(input *in, record *r, int *got) {
    const char *bytes;
    *got = in->next < in->rows;
    if (!*got) return 0;
    r->number = ++in->next;
    TRY(lines_bytes(&in->lines, &bytes, in->columns * (size_t)in->id_bytes));
    if (!bytes)
        return say_error("%s: expected %zu rows of %zu ids, found its end in row %zu", in->lines.name, in->rows,
                         in->columns, r->number);
    r->ids = need(in->columns, sizeof *r->ids);
    for (size_t i = 0; i < in->columns; i++)
        if (!take_id(r, element(in, bytes + i * (size_t)in->id_bytes))) break;
    return 0;
}

static void take_list(record *r, bert_json list) {
    size_t place = 0, n = 0;
    bert_json item;
    while (bert_json_next(list, &place, NULL, &item)) n++;
    r->ids = need(n, sizeof *r->ids);
    for (place = 0; bert_json_next(list, &place, NULL, &item);) {
        int64_t id;
        if (!bert_json_integer(&id, item, INT64_MIN, INT64_MAX)) {
            snprintf(r->wrong, sizeof r->wrong, "expected ids, found %.*s", item.len < 40 ? (int)item.len : 40,
                     item.at);
            return;
        }
        if (!take_id(r, id)) return;
    }
}

static int next_list(input *in, record *r, int *got) {
    const char *line = NULL;
    size_t n = 0;
    bert_json root;
    bert_error err;
    TRY(lines_next(&in->lines, &line, &n));
    *got = line != NULL;
    if (!line) return 0;
    r->number = in->lines.number;
    if (input_cut(in, r)) return 0;
    r->ids = need(1, sizeof *r->ids);
    if (bert_json_check(&root, line, n, &err))
        snprintf(r->wrong, sizeof r->wrong, "expected a JSON list of ids: %.400s", err.text);
    else if (bert_json_kind_of(root) != BERT_JSON_ARRAY)
        snprintf(r->wrong, sizeof r->wrong, "expected a JSON list of ids");
    else {
        free(r->ids);
        take_list(r, root);
    }
    return 0;
}

int input_next_ids(input *in, record *r, int *got) {
    TRY(in->is_npy ? next_row(in, r, got) : next_list(in, r, got));
    if (*got && !r->wrong[0] && r->n_ids == 0)
        snprintf(r->wrong, sizeof r->wrong, "expected at least one id, found none");
    return 0;
}
