/* text/repair.h: texts that are not valid UTF-8: each maximal invalid subpart becomes one U+FFFD (The Unicode
 * Standard, 3.9, "Substitution of Maximal Subparts"), and offsets lead back to the bytes as given. */
#ifndef BERT_TEXT_REPAIR_H
#define BERT_TEXT_REPAIR_H

#include "text/tokens.h"

/* Sets text, len to valid UTF-8: the text itself, or a repaired copy in tokens->repaired, with tokens->patches telling
 * what was replaced. False: no memory, or the copy is longer than 4 GiB. */
bool bert_repair(bert_tokens *tokens, const uint8_t **text, size_t *len);

/* Offsets from the repaired text to the text as given, for tokens [from, n) of the columns. */
void bert_repair_offsets(bert_columns *columns, size_t from, const bert_patches *patches);

/* Fills offsets_cp of tokens [from, n) from their offsets into the (repaired) text. */
void bert_count_offsets(bert_columns *columns, size_t from, const uint8_t *text);

#endif
