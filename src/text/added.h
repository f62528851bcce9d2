/* text/added.h: added tokens: found in a text before anything else happens to it, or once it is normalized. */
#ifndef BERT_TEXT_ADDED_H
#define BERT_TEXT_ADDED_H

#include <stdbool.h>

#include "base/memory.h"

typedef struct bert_added_token {
    const uint8_t *text; /* what is searched: the content, or its normalized form */
    size_t len;
    int32_t id;
    bool special, single_word, lstrip, rstrip, normalized;
} bert_added_token;

/* Tokens that are searched in the same texts, in bytewise order. */
typedef struct bert_added_set {
    bert_added_token *tokens; /* [n], allocated for room */
    size_t n, room;
    bool begins[256]; /* bytes that a token begins with */
    int only;         /* that byte, if there is just one; else -1 */
} bert_added_set;

typedef struct bert_added {
    bert_added_set raw, normalized;
} bert_added;

typedef struct bert_hit {
    const bert_added_token *token;
    size_t start, end;
    bool run;   /* it took white space behind the token along */
    bool again; /* it ends where the last such hit did, and what it matched is the end of what that one matched */
} bert_hit;

/* State of a search through text[0, len). */
typedef struct bert_added_search {
    const bert_added_set *set;
    const uint8_t *text;
    size_t len;
    size_t at;    /* where the next match may begin */
    size_t done;  /* end of the last hit, with the white space it took */
    size_t spaces, spaces_end; /* white space that was looked through behind a hit: its beginning and end */
    size_t run_end;            /* of the last hit that took some */
    bool literal; /* special tokens are plain text */
} bert_added_search;

/* The next hit, leftmost and longest; false: none left. A token that begins with white space may begin before `done`,
 * in what the hit before took along: as in HF it has that white space once more. */
bool bert_added_next(bert_added_search *search, bert_hit *hit);

/* Sorts the tokens and fills `begins`. BERT_UNSUPPORTED: one of more than 256 bytes, which a search may go from every
 * place of a text. */
BERT_MUST_USE bert_status bert_added_set_build(bert_added_set *set, bert_error *err);

#endif
