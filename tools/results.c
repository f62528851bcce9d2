#include "results.h"

#include <stdio.h>
#include <stdlib.h>

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

static sequence of_tokens(window *w, const bert_tokens *tokens, size_t i) {
    bert_encoding x = bert_tokens_at(tokens, i, 0);
    return (sequence){&w->records[w->places[i]], x.n, x.ids, x.type_ids, x.truncated, i};
}

int sequences_make(sequence **all, size_t *n, window *w, bert_tokens **tokens, const engine *e, const settings *s) {
    if (s->ids) {
        for (size_t i = 0; i < w->n; i++) check_ids(&w->records[i], e);
        window_gather(w);
    } else {
        bert_tokenize_options options = engine_tokenize_options(e, s);
        TRY(window_tokenize(w, tokens, e->tokenizer, &options));
    }
    *all = need_more(*all, w->n_texts, sizeof **all);
    *n = 0;
    for (size_t i = 0; i < w->n_texts; i++) {
        record *r = &w->records[w->places[i]];
        sequence q = s->ids ? (sequence){r, r->n_ids, r->ids, NULL, 0, i} : of_tokens(w, *tokens, i);
        window_note(w, r, q.truncated, e->max_length);
        if (!r->wrong[0]) (*all)[(*n)++] = q;
    }
    return 0;
}

int results_facts(facts *known, const engine *e, const writer_kind *kind) {
    bert_error err;
    if (!(kind->can & WRITES_METADATA)) return 0;
    snprintf(known->numerics, sizeof known->numerics, "%u", bert_numerics());
    return bert_model_hash(e->model, known->weights_hash, &err) ? say_failure(&err) : 0;
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
                    .second_begins = token_list_second(q->types, q->n)};
    if (w->kind->can & WRITES_TOKENS && (!r->ids || e->tokenizer)) {
        tokens_json->len = 0;
        if (r->ids)
            token_list_add_ids(tokens_json, e->tokenizer, q->ids, q->n);
        else
            token_list_add(tokens_json, tokens, q->text, 0);
        buffer_byte(tokens_json, 0);
        text->tokens = tokens_json->data;
    }
    TRY(writer_begin(w, text));
    if (!(w->kind->can & WRITES_IDS)) return 0;
    TRY(write_integers(w, "input_ids", q->ids, 0, q->n));
    TRY(write_integers(w, "token_type_ids", q->types, 0, q->n));
    return write_integers(w, "attention_mask", NULL, 1, q->n);
}
