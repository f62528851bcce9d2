/* encode_windows.h: encode --window: a text of any length, with the state of each token from the window where it has
 * most context. */
#ifndef ENCODE_WINDOWS_H
#define ENCODE_WINDOWS_H

#include "encode_pass.h"

typedef struct encode_windows {
    int32_t *layers; /* [n_layers]: those that are kept */
    size_t n_layers;
    float *hidden; /* [n_layers, T, H] */
    float *pooler, *vector; /* [H], [dim] */
    bert_place *places;     /* [T] */
    int32_t *ids, *types;   /* [T] */
    buffer tokens, name;
} encode_windows;

/* Runs text i of `tokens`, which is what the record has, and writes what is wanted of it. */
int encode_windows_write(encode_windows *p, writer *w, record *r, const bert_tokens *tokens, size_t i, const engine *e,
                         const encode_wants *wants, const bert_embed_options *embed);
void encode_windows_close(encode_windows *p);

#endif
