/* text/pattern.h: what Replace and Split look for: a literal string, or a regular expression. */
#ifndef BERT_TEXT_PATTERN_H
#define BERT_TEXT_PATTERN_H

#include <bert/base.h>

#include <stdbool.h>

#include "base/memory.h"

typedef struct bert_pattern bert_pattern; /* immutable; any number of threads */

BERT_MUST_USE bert_status bert_pattern_open_literal(bert_pattern **pattern, const char *text, const bert_memory *memory,
                                                    bert_error *err);
/* Regular expressions come from files: hostile ones, and those that PCRE2 would read differently from HF's Oniguruma,
 * are refused by name. */
BERT_MUST_USE bert_status bert_pattern_open_regex(bert_pattern **pattern, const char *text, const bert_memory *memory,
                                                  bert_error *err);
void bert_pattern_close(bert_pattern **pattern);

/* A search through one subject; matches do not overlap, and an empty one moves on by a character. */
typedef struct bert_matches {
    const bert_pattern *pattern;
    const uint8_t *text; /* valid UTF-8 */
    size_t len;
    size_t at;
    size_t last_end; /* of the match before; SIZE_MAX: none */
    size_t *work;    /* steps that are left for the text, of a regular expression */
    size_t reached;  /* where its last step was */
    void *data, *limits; /* PCRE2's */
} bert_matches;

/* Steps that the regular expressions may take together on a text of so many bytes: linear, and enough for any sensible
 * one; a search that is quadratic runs out of them where some 900 characters or more repeat. */
static inline size_t bert_matches_work(size_t len) {
    return ((size_t)1 << 20) + 256 * len;
}

/* *work becomes less by what the search takes; `matches` stays where it is. BERT_NO_MEMORY; BERT_INVALID_ARGUMENT: not
 * UTF-8. */
BERT_MUST_USE bert_status bert_matches_open(bert_matches *matches, const bert_pattern *pattern, const uint8_t *text,
                                            size_t len, size_t *work, bert_error *err);
/* *found 0: no further match. A match that takes too much work is BERT_UNSUPPORTED. */
BERT_MUST_USE bert_status bert_matches_next(bert_matches *matches, bool *found, size_t *start, size_t *end,
                                            bert_error *err);
void bert_matches_close(bert_matches *matches);

#endif
