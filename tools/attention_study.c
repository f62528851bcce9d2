#include "attention_study.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

const char *const study_names[STUDIES] = {"rollout", "norms", "block_norms", "distance", "entropy"};

/* Where each one's results are, and their shape. */
typedef struct numbers {
    float *x[STUDIES]; /* NULL: not wanted */
    size_t L, A, T;
    writer *w;
} numbers;
enum { ROLLOUT, NORMS, BLOCK_NORMS, DISTANCE, ENTROPY };

/* Keeps the planes of x [n, floats] that are wanted, one behind the other; returns how many. */
static size_t keep_planes(float *x, size_t n, size_t floats, const char *keep) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (keep[i]) memmove(x + kept++ * floats, x + i * floats, floats * sizeof *x);
    return kept;
}

static int write_layers(const numbers *n, int which, const char *layers, const char *heads) {
    buffer name = {0};
    size_t square = n->T * n->T, floats = which == NORMS ? n->A * square : square;
    int status = 0;
    for (size_t l = 0; l < n->L && !status; l++) {
        float *x = n->x[which] + l * floats;
        tensor t = {.type = TENSOR_F32, .rank = 3, .dim = {1, n->T, n->T}, .data = x};
        if (!layers[l]) continue;
        if (which == NORMS) {
            t.rank = 4;
            t.dim[1] = keep_planes(x, n->A, square, heads);
            t.dim[2] = t.dim[3] = n->T;
        }
        name.len = 0;
        buffer_print(&name, "%s.%zu", study_names[which], l);
        buffer_byte(&name, 0);
        t.name = name.data;
        status = writer_tensor(n->w, &t);
    }
    buffer_close(&name);
    return status;
}

/* `heads` [L, A]: which are wanted, `kept` of each layer. */
static int write_heads(const numbers *n, int which, const char *heads, size_t kept) {
    tensor t = {study_names[which], TENSOR_F32, 2, {n->L, kept}, n->x[which], 1};
    keep_planes(n->x[which], n->L * n->A, 1, heads);
    return writer_tensor(n->w, &t);
}

static int write_numbers(const numbers *n, const char *layers, const char *heads) {
    char *all_heads = need(n->L, n->A); /* [L, A]: the same heads in every layer */
    tensor rollout = {"rollout", TENSOR_F32, 3, {1, n->T, n->T}, n->x[ROLLOUT], 0};
    size_t kept = 0;
    int status = 0;
    for (size_t a = 0; a < n->A; a++) kept += heads[a] != 0;
    for (size_t l = 0; l < n->L; l++) memcpy(all_heads + l * n->A, heads, n->A);
    if (n->x[ROLLOUT]) status = writer_tensor(n->w, &rollout);
    if (!status && n->x[NORMS]) status = write_layers(n, NORMS, layers, heads);
    if (!status && n->x[BLOCK_NORMS]) status = write_layers(n, BLOCK_NORMS, layers, heads);
    if (!status && n->x[DISTANCE]) status = write_heads(n, DISTANCE, all_heads, kept);
    if (!status && n->x[ENTROPY]) status = write_heads(n, ENTROPY, all_heads, kept);
    free(all_heads);
    return status;
}

int study_write(writer *w, const engine *e, const sequence *q, const int *wanted, const char *layers,
                const char *heads) {
    numbers n = {.L = e->info.layers, .A = e->info.heads, .T = q->n, .w = w};
    const size_t square = n.T * n.T;
    const size_t floats[STUDIES] = {square, n.L * n.A * square, n.L * square, n.L * n.A, n.L * n.A};
    bert_study study = BERT_STUDY_INIT;
    float **const place[STUDIES] = {&study.rollout, &study.norms, &study.block_norms, &study.distance, &study.entropy};
    bert_error err;
    int any = 0;
    for (int i = 0; i < STUDIES; i++) {
        any |= wanted[i];
        if (wanted[i]) *place[i] = n.x[i] = need(floats[i], sizeof(float));
    }
    int status = 0;
    if (any && bert_study_run(e->session, &study, q->ids, q->types, q->n, &e->run, &err)) status = say_failure(&err);
    if (!status) status = write_numbers(&n, layers, heads);
    for (int i = 0; i < STUDIES; i++) free(n.x[i]);
    return status;
}
