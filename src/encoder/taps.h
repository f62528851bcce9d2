/* encoder/taps.h: handing results out, and taking edits back. */
#ifndef BERT_ENCODER_TAPS_H
#define BERT_ENCODER_TAPS_H

#include "encoder/session.h"

/* Checks every tap against model and batch, and sets what the pass needs to compute for them. */
BERT_MUST_USE bert_status bert_taps_plan(bert_pass *pass, bert_error *err);

/* Where maps go in what taps keep: fills map_start and cross_start of the reserved buffers. */
void bert_taps_place(bert_pass *pass);

/* Whether anybody asked for the site in this layer. */
bool bert_taps_wanted(const bert_pass *pass, bert_site site, size_t layer);

/* Gives a site's values of all texts to the taps that asked: calls got, then copies to dst. `data` is where the first
 * text's view begins, `row` the stride between tokens; not for maps and results by heads. */
BERT_MUST_USE bert_status bert_taps_emit(bert_pass *pass, bert_site site, size_t layer, float *data, size_t row,
                                         bert_error *err);
/* The same for one text and an array [A, T, Tk] (scores, weights) or [A, T, H] (results by heads). */
BERT_MUST_USE bert_status bert_taps_emit_text(bert_pass *pass, bert_site site, size_t layer, size_t text, float *data,
                                              bert_error *err);

/* Where the first tap that keeps this head's map wants it [T, Tk], NULL if none does. */
float *bert_taps_map(const bert_pass *pass, bert_site site, size_t layer, size_t text, size_t head);
/* Copies it to the other taps that keep it. */
void bert_taps_share_map(const bert_pass *pass, bert_site site, size_t layer, size_t text, size_t head,
                         const float *map);

#endif
