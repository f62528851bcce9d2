/* results.h: what encode and attention have in common on the way from a pass to a writer. */
#ifndef RESULTS_H
#define RESULTS_H

#include "engine.h"
#include "output/writer.h"
#include "window.h"

/* One text or list of ids, ready to be run. Borrowed from the window and its tokens. */
typedef struct sequence {
    record *from;
    size_t n;                   /* T */
    const int32_t *ids, *types; /* types NULL: all 0 */
    size_t truncated;
    size_t text;             /* its number in the tokens */
    size_t part;             /* --window: which window of it, */
    size_t windows;          /* of how many; */
    const bert_place *places; /* or all of them: where each token is */
} sequence;

/* The usable records as sequences, after tokenizing, or straight from --ids: one each, or with --window one for each
 * window of a text, one behind the other. */
int sequences_make(sequence **all, size_t *n, window *w, bert_tokens **tokens, const engine *e, const settings *s);

/* What the files say about all texts; reads the weights for their hash if the format wants it. */
int results_facts(facts *known, const engine *e, const writer_kind *kind);

/* How many of n are kept; keep NULL: all. */
size_t results_count(const char *keep, size_t n);

/* The numbers below n that are kept as a JSON list in b; NULL: all are. */
const char *results_choice(buffer *b, const char *keep, size_t n);

/* Begins a text in the writer: its tokens, and input_ids, token_type_ids and attention_mask where the format has them.
 * `tokens_json` keeps the list that `text` points to until the end. */
int results_begin(writer *w, about *text, buffer *tokens_json, const sequence *q, const bert_tokens *tokens,
                  const engine *e);

#endif
