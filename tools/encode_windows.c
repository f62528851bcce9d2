#include "encode_windows.h"

#include <stdlib.h>

#include "say.h"

/* The layers that are kept, in ascending order; the last counts as one of them. */
static void choose_layers(encode_windows *p, const engine *e, const encode_wants *wants) {
    if (p->layers) return;
    p->layers = need(e->info.layers + 1, sizeof *p->layers);
    for (size_t l = 0; l <= e->info.layers; l++)
        if (wants->layers[l] || (l == e->info.layers && wants->what & WANT_LAST)) p->layers[p->n_layers++] = (int32_t)l;
}

/* The text as one sequence, as if there were no windows. */
static sequence gather(encode_windows *p, record *r, const bert_tokens *tokens, size_t i) {
    size_t n = bert_windows_length(tokens, i);
    p->places = need_more(p->places, n, sizeof *p->places);
    p->ids = need_more(p->ids, n, sizeof *p->ids);
    p->types = need_more(p->types, n, sizeof *p->types);
    bert_windows_place(p->places, tokens, i);
    for (size_t t = 0; t < n; t++) {
        bert_encoding part = bert_tokens_at(tokens, i, p->places[t].part);
        p->ids[t] = part.ids[p->places[t].token];
        p->types[t] = part.type_ids[p->places[t].token];
    }
    return (sequence){.from = r, .n = n, .ids = p->ids, .types = p->types, .text = i, .places = p->places,
                      .windows = bert_tokens_parts(tokens, i)};
}

static int run(encode_windows *p, const bert_tokens *tokens, const sequence *q, const engine *e,
               const encode_wants *wants, const bert_embed_options *embed) {
    size_t width = e->info.hidden;
    bert_error err;
    bert_window_states states = {sizeof states, p->layers, p->n_layers, NULL, NULL};
    p->hidden = need_more(p->hidden, p->n_layers * q->n, width * sizeof *p->hidden);
    p->pooler = need_more(p->pooler, width, sizeof *p->pooler);
    p->vector = need_more(p->vector, wants->dim, sizeof *p->vector);
    states.hidden = p->hidden;
    if (wants->what & WANT_POOLER) states.pooler = p->pooler;
    if (!bert_embed_windows(e->session, e->pipeline, tokens, q->text, wants->dim ? p->vector : NULL, &states, embed,
                            &err))
        return 0;
    return say_failure(&err);
}

static int write_states(encode_windows *p, writer *w, const char *name, size_t kept, size_t n, size_t width) {
    tensor t = {name, TENSOR_F32, 3, {1, n, width}, p->hidden + kept * n * width, 0};
    return writer_tensor(w, &t);
}

static int write_results(encode_windows *p, writer *w, const sequence *q, const engine *e, const encode_wants *wants) {
    size_t width = e->info.hidden;
    tensor vector = {"embedding", TENSOR_F32, 2, {1, wants->dim}, p->vector, 0};
    tensor pooler = {"pooler_output", TENSOR_F32, 2, {1, width}, p->pooler, 0};
    if (wants->what & WANT_EMBEDDING) TRY(writer_tensor(w, &vector));
    if (wants->what & WANT_LAST) TRY(write_states(p, w, "last_hidden_state", p->n_layers - 1, q->n, width));
    for (size_t k = 0; k < p->n_layers; k++) {
        if (!wants->layers[p->layers[k]]) continue;
        p->name.len = 0;
        buffer_print(&p->name, "hidden_states.%d", p->layers[k]);
        buffer_byte(&p->name, 0);
        TRY(write_states(p, w, p->name.data, k, q->n, width));
    }
    return wants->what & WANT_POOLER ? writer_tensor(w, &pooler) : 0;
}

int encode_windows_write(encode_windows *p, writer *w, record *r, const bert_tokens *tokens, size_t i, const engine *e,
                         const encode_wants *wants, const bert_embed_options *embed) {
    about text;
    choose_layers(p, e, wants);
    sequence q = gather(p, r, tokens, i);
    TRY(run(p, tokens, &q, e, wants, embed));
    TRY(results_begin(w, &text, &p->tokens, &q, tokens, e));
    TRY(write_results(p, w, &q, e, wants));
    return writer_end(w);
}

void encode_windows_close(encode_windows *p) {
    free(p->layers);
    free(p->hidden);
    free(p->pooler);
    free(p->vector);
    free(p->places);
    free(p->ids);
    free(p->types);
    buffer_close(&p->tokens);
    buffer_close(&p->name);
}
