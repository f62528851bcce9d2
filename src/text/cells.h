/* text/cells.h: a text as an array of characters that remember where they came from, and the edits that normalizers
 * make on it. HF's rule for spans: an edit goes through the characters in order; what replaces a character takes its
 * span, what is inserted repeats the span before. So spans follow position, not meaning. */
#ifndef BERT_TEXT_CELLS_H
#define BERT_TEXT_CELLS_H

#include "text/tokens.h"

/* Appends the characters of text[begin, end). */
bool bert_cells_read(bert_cells *cells, const bert_memory *memory, const uint8_t *text, size_t begin, size_t end);

/* The characters of tokens->cells[begin, end) as UTF-8 in tokens->subject. */
bool bert_cells_text(bert_tokens *tokens, size_t begin, size_t end);

/* Brings tokens->cells to a Unicode normalization form: decomposed canonically or (compat) for compatibility, put in
 * canonical order, and composed again if asked. */
bool bert_cells_form(bert_tokens *tokens, bool compat, bool compose);

#endif
