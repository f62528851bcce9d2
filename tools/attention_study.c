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

int study_has_rows(const int *studies) {
    return studies[STUDY_DISTANCE] || studies[STUDY_ENTROPY];
}

int study_chooses_heads(const int *sites, const int *studies) {
    int any = studies[STUDY_NORMS] || study_has_rows(studies);
    for (int i = 0; i < SITES; i++) any |= sites[i] && site_has_heads(site_names[i].site);
    return any;
}

int study_chooses_layers(const int *sites, const int *studies) {
    int any = studies[STUDY_NORMS] || studies[STUDY_BLOCK_NORMS] || study_has_rows(studies);
    for (int i = 0; i < SITES; i++) any |= sites[i] && !site_comes_once(site_names[i].site);
    return any;
}

/* Keeps the planes of x [n, floats] that are wanted, one behind the other; returns how many. */
static size_t keep_planes(float *x, size_t n, size_t floats, const char *keep) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (keep[i]) memmove(x + kept++ * floats, x + i * floats, floats * sizeof *x);
    return kept;
}

static int write_layers(const numbers *n, int which, const char *layers, const char *heads) {
    buffer name = {0};
    size_t square = n->T * n->T, floats = which == STUDY_NORMS ? n->A * square : square;
    int status = 0;
    for (size_t l = 0; l < n->L && !status; l++) {
        float *x = n->x[which] + l * floats;
        tensor t = {.type = TENSOR_F32, .rank = 3, .dim = {1, n->T, n->T}, .data = x};
        if (!layers[l]) continue;
        if (which == STUDY_NORMS) {
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

static int write_table(const numbers *n, int which, const char *layers, const char *heads) {
    float *x = n->x[which];
    tensor t = {study_names[which], TENSOR_F32, 2, {results_count(layers, n->L), results_count(heads, n->A)}, x, 1};
    size_t rows = keep_planes(x, n->L, n->A, layers);
    for (size_t l = 0; l < rows; l++) {
        keep_planes(x + l * n->A, n->A, 1, heads);
        memmove(x + l * t.dim[1], x + l * n->A, t.dim[1] * sizeof *x);
    }
    return writer_tensor(n->w, &t);
}

static int write_numbers(const numbers *n, const char *layers, const char *heads) {
    tensor rollout = {"rollout", TENSOR_F32, 3, {1, n->T, n->T}, n->x[STUDY_ROLLOUT], 0};
    if (n->x[STUDY_ROLLOUT]) TRY(writer_tensor(n->w, &rollout));
    if (n->x[STUDY_NORMS]) TRY(write_layers(n, STUDY_NORMS, layers, heads));
    if (n->x[STUDY_BLOCK_NORMS]) TRY(write_layers(n, STUDY_BLOCK_NORMS, layers, heads));
    if (n->x[STUDY_DISTANCE]) TRY(write_table(n, STUDY_DISTANCE, layers, heads));
    if (n->x[STUDY_ENTROPY]) TRY(write_table(n, STUDY_ENTROPY, layers, heads));
    return 0;
}

size_t study_floats(int which, size_t layers, size_t heads, size_t T) {
    const size_t square = T * T, table = layers * heads;
    return (const size_t[STUDIES]){square, table * square, layers * square, table, table}[which];
}

int study_run(float *x[STUDIES], const int *wanted, const engine *e, const sequence *q,
              const bert_run_options *options) {
    bert_study study = BERT_STUDY_INIT;
    float **const place[STUDIES] = {&study.rollout, &study.norms, &study.block_norms, &study.distance, &study.entropy};
    bert_error err;
    int any = 0;
    for (int i = 0; i < STUDIES; i++) {
        any |= wanted[i];
        if (wanted[i]) *place[i] = x[i] = need(study_floats(i, e->info.layers, e->info.heads, q->n), sizeof(float));
    }
    if (!any || !bert_study_run(e->session, &study, q->ids, q->types, q->n, options, &err)) return 0;
    return say_failure(&err);
}

int study_write(writer *w, const engine *e, const sequence *q, const int *wanted, const char *layers,
                const char *heads) {
    numbers n = {.L = e->info.layers, .A = e->info.heads, .T = q->n, .w = w};
    int status = study_run(n.x, wanted, e, q, &e->run);
    if (!status) status = write_numbers(&n, layers, heads);
    for (int i = 0; i < STUDIES; i++) free(n.x[i]);
    return status;
}
