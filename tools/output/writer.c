#include "writer.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

size_t tensor_count(const tensor *t) {
    size_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= t->dim[i];
    return n;
}

size_t tensor_bytes(const tensor *t) {
    return tensor_count(t) * (t->type == TENSOR_I64 ? sizeof(int64_t) : sizeof(float));
}

int writer_open(writer **out, const writer_kind *kind, sink *to, const facts *known) {
    if (kind->can & WRITES_BINARY && sink_is_terminal(to))
        return say_usage("%s is not for terminals: give a file with -o, or another --format", kind->name);
    writer *w = need(1, sizeof *w);
    *w = (writer){.kind = kind, .out = to, .known = *known};
    w->state = need(1, kind->state);
    memset(w->state, 0, kind->state);
    *out = w;
    return 0;
}

int writer_begin(writer *w, const about *text) {
    w->text = text;
    return w->kind->begin ? w->kind->begin(w, text) : 0;
}

int writer_tensor(writer *w, const tensor *t) {
    return w->kind->tensor(w, t);
}

int writer_end(writer *w) {
    TRY(w->kind->end ? w->kind->end(w, w->text) : 0);
    w->texts++;
    return 0;
}

int writer_finish(writer *w) {
    return w->kind->finish ? w->kind->finish(w) : 0;
}

void writer_close(writer **at) {
    writer *w = *at;
    if (!w) return;
    if (w->kind->close) w->kind->close(w);
    buffer_close(&w->scratch);
    free(w->state);
    free(w);
    *at = NULL;
}

void writer_name(writer *w, buffer *name, const char *tensor_name) {
    if (w->known.several) buffer_print(name, "%zu.", w->texts);
    buffer_text(name, tensor_name);
}

int writer_add_text(writer *w, const char *name, const char *s, size_t n,
                    int (*add)(writer *, const char *, const char *, size_t)) {
    buffer full = {0};
    writer_name(w, &full, name);
    buffer_byte(&full, 0);
    int status = add(w, full.data, s, n);
    buffer_close(&full);
    return status;
}

int writer_metadata(writer *w, const about *text, int (*add)(writer *, const char *, const char *, size_t)) {
    const struct {
        const char *key, *s;
        size_t n;
    } all[] = {{"tokens", text->tokens, text->tokens ? strlen(text->tokens) : 0},
               {"text", text->text ? text->text->a : NULL, text->text ? text->text->a_len : 0},
               {"pair", text->text ? text->text->b : NULL, text->text ? text->text->b_len : 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].s) TRY(writer_add_text(w, all[i].key, all[i].s, all[i].n, add));
    return 0;
}

int writer_global_metadata(writer *w, int (*add)(writer *, const char *, const char *, size_t)) {
    const facts *known = &w->known;
    TRY(add(w, "numerics", known->numerics, strlen(known->numerics)));
    TRY(add(w, "weights_hash", known->weights_hash, strlen(known->weights_hash)));
    if (known->prompt) TRY(add(w, "prompt", known->prompt, strlen(known->prompt)));
    if (known->layers) TRY(add(w, "layers", known->layers, strlen(known->layers)));
    return known->heads ? add(w, "heads", known->heads, strlen(known->heads)) : 0;
}

static int no_such_format(const writer_kind *const *list, const char *what, const char *name) {
    buffer names = {0};
    for (size_t i = 0; list[i]; i++) buffer_print(&names, i ? ", %s" : "%s", list[i]->name);
    int status = say_usage("%s %s: expected one of %.*s", what, name, (int)names.len, names.data);
    buffer_close(&names);
    return status;
}

const char *writer_ending(const char *path) {
    if (!path || strncmp(path, "/dev/", 5) == 0) return NULL;
    const char *slash = strrchr(path, '/');
    return strrchr(slash ? slash : path, '.');
}

int writer_choose(const writer_kind **kind, const writer_kind *const *list, const char *name, const char *path) {
    const char *ending = writer_ending(path);
    *kind = list[0];
    if (!name && !ending) return 0;
    for (size_t i = 0; list[i]; i++) {
        *kind = list[i];
        if (name ? strcmp(name, list[i]->name) == 0 : strcmp(ending, list[i]->ending) == 0) return 0;
    }
    return name ? no_such_format(list, "--format", name)
                : no_such_format(list, "--format is missing, and the ending", ending);
}
