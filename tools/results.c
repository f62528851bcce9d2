#include "results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "token_list.h"

/* Ids that the model cannot take make a record that cannot be used. */
static void check_ids(record *r, const engine *e) {
    if (r->n_ids > e->max_length)
        snprintf(r->wrong, sizeof r->wrong, "%zu ids, but at most %zu are allowed", r->n_ids, e->max_length);
    for (size_t i = 0; i < r->n_ids && !r->wrong[0]; i++)
        if ((size_t)r->ids[i] >= e->info.vocab)
            snprintf(r->wrong, sizeof r->wrong, "id %d is outside the vocabulary of %zu", r->ids[i], e->info.vocab);
}

static sequence of_tokens(window *w, const bert_tokens *tokens, size_t i, size_t part, const settings *s) {
    bert_encoding x = bert_tokens_at(tokens, i, part);
    return (sequence){.from = &w->records[w->places[i]], .n = x.n, .ids = x.ids, .types = x.type_ids, .text = i,
                      .truncated = s->window ? 0 : x.truncated, .part = part, .windows = bert_tokens_parts(tokens, i)};
}

/* Texts as sequences; more than there are texts where they have windows. */
static void add_text(sequence **all, size_t *n, window *w, const bert_tokens *tokens, size_t i, const engine *e,
                     const settings *s) {
    size_t parts = bert_tokens_parts(tokens, i);
    sequence q = of_tokens(w, tokens, i, 0, s);
    window_note(w, q.from, q.truncated, e->max_length);
    if (q.from->wrong[0]) return;
    *all = need_more(*all, *n + w->n_texts + parts, sizeof **all);
    for (size_t part = 0; part < parts; part++) (*all)[(*n)++] = of_tokens(w, tokens, i, part, s);
}

static void add_ids(sequence **all, size_t *n, window *w, size_t i, const engine *e) {
    record *r = &w->records[w->places[i]];
    window_note(w, r, 0, e->max_length);
    *all = need_more(*all, *n + w->n_texts, sizeof **all);
    if (!r->wrong[0]) (*all)[(*n)++] = (sequence){.from = r, .n = r->n_ids, .ids = r->ids, .text = i};
}

int sequences_make(sequence **all, size_t *n, window *w, bert_tokens **tokens, const engine *e, const settings *s) {
    *n = 0;
    if (s->ids) {
        for (size_t i = 0; i < w->n; i++) check_ids(&w->records[i], e);
        window_gather(w);
        for (size_t i = 0; i < w->n_texts; i++) add_ids(all, n, w, i, e);
        return 0;
    }
    bert_tokenize_options options = engine_tokenize_options(e, s);
    TRY(window_tokenize(w, tokens, e->tokenizer, &options));
    for (size_t i = 0; i < w->n_texts; i++) add_text(all, n, w, *tokens, i, e, s);
    return 0;
}

int results_facts(facts *known, const engine *e, const writer_kind *kind) {
    bert_error err;
    if (!(kind->can & WRITES_METADATA)) return 0;
    snprintf(known->numerics, sizeof known->numerics, "%u", bert_numerics());
    return bert_model_hash(e->model, known->weights_hash, &err) ? say_failure(&err) : 0;
}

size_t results_count(const char *keep, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) kept += !keep || keep[i];
    return kept;
}

const char *results_choice(buffer *b, const char *keep, size_t n) {
    if (!memchr(keep, 0, n)) return NULL;
    for (size_t i = 0; i < n; i++)
        if (keep[i]) buffer_print(b, b->len ? ",%zu" : "[%zu", i);
    buffer_text(b, "]");
    buffer_byte(b, 0);
    return b->data;
}

static int write_integers(writer *w, const char *name, const int32_t *x, int64_t otherwise, size_t n) {
    int64_t *wide = need(n, sizeof *wide);
    for (size_t i = 0; i < n; i++) wide[i] = x ? x[i] : otherwise;
    tensor t = {name, TENSOR_I64, 2, {1, n}, wide, 0};
    int status = writer_tensor(w, &t);
    free(wide);
    return status;
}

int results_begin(writer *w, about *text, buffer *tokens_json, const sequence *q, const bert_tokens *tokens,
                  const engine *e) {
    record *r = q->from;
    *text = (about){.id = r->id.at,
                    .id_len = r->id.len,
                    .text = r->ids ? NULL : &r->text,
                    .n_tokens = q->n,
                    .truncated = q->truncated,
                    .windows = q->windows,
                    .second_begins = token_list_second(q->types, q->n)};
    if (w->kind->can & WRITES_TOKENS && (!r->ids || e->tokenizer)) {
        tokens_json->len = 0;
        if (r->ids)
            token_list_add_ids(tokens_json, e->tokenizer, q->ids, q->n);
        else if (q->places)
            token_list_add_places(tokens_json, tokens, q->text, q->places, q->n);
        else
            token_list_add(tokens_json, tokens, q->text, q->part);
        buffer_byte(tokens_json, 0);
        text->tokens = tokens_json->data;
    }
    TRY(writer_begin(w, text));
    if (!(w->kind->can & WRITES_IDS)) return 0;
    TRY(write_integers(w, "input_ids", q->ids, 0, q->n));
    TRY(write_integers(w, "token_type_ids", q->types, 0, q->n));
    return write_integers(w, "attention_mask", NULL, 1, q->n);
}
