/* JSON: one object a text. `jsonl` counts the tokens, `json` lists them; bertviz is a shape of its own. */
#include <stdlib.h>
#include <string.h>

#include "json_out.h"
#include "writer.h"

/* "hidden_states.0" and "hidden_states.1" are members of one object "hidden_states", so tensors are kept by group until
 * the text is complete. */
typedef struct group {
    buffer name; /* ends with a NUL */
    int members; /* 1: an object, 0: a value */
    buffer text;
} group;

typedef struct json_state {
    group *groups;
    size_t n, room; /* behind n: buffers of the text before, to be used again */
} json_state;

static int json_begin(writer *w, const about *text) {
    json_state *state = w->state;
    buffer *b = &w->scratch;
    state->n = 0;
    b->len = 0;
    buffer_byte(b, '{');
    json_given(b, "id", text->id, text->id_len);
    if (!text->text) return 0;
    json_key(b, "text");
    json_string(b, text->text->a, text->text->a_len);
    if (text->text->b) {
        json_key(b, "pair");
        json_string(b, text->text->b, text->text->b_len);
    }
    return 0;
}

/* The group whose name is the first n bytes of `name`, made if it is new. */
static group *find_group(json_state *state, const char *name, size_t n) {
    for (size_t i = 0; i < state->n; i++)
        if (state->groups[i].name.len == n + 1 && memcmp(state->groups[i].name.data, name, n) == 0)
            return &state->groups[i];
    if (state->n == state->room) {
        state->groups = need_more(state->groups, state->room + 1, sizeof *state->groups);
        state->groups[state->room++] = (group){0};
    }
    group *g = &state->groups[state->n++];
    g->name.len = g->text.len = 0;
    buffer_add(&g->name, name, n);
    buffer_byte(&g->name, 0);
    return g;
}

static int json_tensor(writer *w, const tensor *t) {
    const char *dot = strchr(t->name, '.');
    group *g = find_group(w->state, t->name, dot ? (size_t)(dot - t->name) : strlen(t->name));
    g->members = dot != NULL;
    if (dot) {
        if (g->text.len == 0) buffer_byte(&g->text, '{');
        json_key(&g->text, dot + 1);
    }
    if (t->type == TENSOR_JSON)
        buffer_add(&g->text, t->data, t->dim[0]);
    else if (t->type == TENSOR_I64)
        json_integers(&g->text, t->data, t->dim + !t->whole, t->rank - !t->whole); /* without the batch of one */
    else
        json_floats(&g->text, t->data, t->dim + !t->whole, t->rank - !t->whole);
    return 0;
}

static void add_groups(writer *w) {
    json_state *state = w->state;
    for (size_t i = 0; i < state->n; i++) {
        group *g = &state->groups[i];
        json_key(&w->scratch, g->name.data);
        buffer_add(&w->scratch, g->text.data, g->text.len);
        if (g->members) buffer_byte(&w->scratch, '}');
    }
}

static int write_object(writer *w) {
    buffer_text(&w->scratch, "}\n");
    return sink_write(w->out, w->scratch.data, w->scratch.len);
}

/* What happened to a text that was too long. */
static void add_length(writer *w, const about *text) {
    if (text->truncated) {
        json_key(&w->scratch, "truncated");
        buffer_print(&w->scratch, "%zu", text->truncated);
    }
    if (text->windows > 1) {
        json_key(&w->scratch, "windows");
        buffer_print(&w->scratch, "%zu", text->windows);
    }
}

static int jsonl_end(writer *w, const about *text) {
    add_groups(w);
    json_key(&w->scratch, "tokens");
    buffer_print(&w->scratch, "%zu", text->n_tokens);
    add_length(w, text);
    return write_object(w);
}

static int json_end(writer *w, const about *text) {
    if (text->tokens) {
        json_key(&w->scratch, "tokens");
        buffer_text(&w->scratch, text->tokens);
    }
    add_length(w, text);
    if (w->known.layers) {
        json_key(&w->scratch, "layers");
        buffer_text(&w->scratch, w->known.layers);
    }
    if (w->known.heads) {
        json_key(&w->scratch, "heads");
        buffer_text(&w->scratch, w->known.heads);
    }
    add_groups(w);
    return write_object(w);
}

static void json_close(writer *w) {
    json_state *state = w->state;
    for (size_t i = 0; i < state->room; i++) {
        buffer_close(&state->groups[i].name);
        buffer_close(&state->groups[i].text);
    }
    free(state->groups);
}

const writer_kind writer_jsonl = {"jsonl",     ".jsonl",  WRITES_STREAM, sizeof(json_state), json_begin,
                                  json_tensor, jsonl_end, NULL,          json_close};
const writer_kind writer_json = {"json",
                                 ".json",
                                 WRITES_STREAM | WRITES_IDS | WRITES_TOKENS,
                                 sizeof(json_state),
                                 json_begin,
                                 json_tensor,
                                 json_end,
                                 NULL,
                                 json_close};

/* What bertviz's head_view and model_view take: {"tokens", "sentence_b_start", "attention": [L][A][T][T]}. */
static int bertviz_begin(writer *w, const about *text) {
    buffer *b = &w->scratch;
    b->len = 0;
    buffer_print(b, "{\"tokens\":%s,\"sentence_b_start\":", text->tokens ? text->tokens : "[]");
    if (text->second_begins < 0)
        buffer_text(b, "null");
    else
        buffer_print(b, "%ld", text->second_begins);
    buffer_text(b, ",\"attention\":[");
    return 0;
}

static int bertviz_tensor(writer *w, const tensor *t) {
    buffer *b = &w->scratch;
    if (b->data[b->len - 1] != '[') buffer_byte(b, ',');
    json_floats(b, t->data, t->dim + 1, t->rank - 1);
    return 0;
}

static int bertviz_end(writer *w, const about *text) {
    (void)text;
    buffer_byte(&w->scratch, ']');
    return write_object(w);
}

const writer_kind writer_bertviz = {
    "bertviz", ".bertviz", WRITES_STREAM | WRITES_TOKENS, 0, bertviz_begin, bertviz_tensor, bertviz_end, NULL, NULL};
