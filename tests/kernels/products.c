/* tests/kernels/products.c: linear layers, attention and packing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { GAP = 3 }; /* columns behind each row of an output that nobody may write */
static const float GUARD = -7.25e9f;

static void fill(float *x, size_t n, float (*value)(void)) {
    for (size_t i = 0; i < n; i++) x[i] = value();
}

static float *guarded(size_t rows, size_t ld) {
    float *y = floats(rows * ld);
    for (size_t i = 0; i < rows * ld; i++) y[i] = GUARD;
    return y;
}

static float *packed(const bert_kernels *kernels, const float *w, size_t n, size_t k) {
    float *panels = floats(bert_panels(n) * k * BERT_PANEL);
    for (size_t i = 0; i < n; i += BERT_PANEL)
        bert_pack_panel(kernels, panels + i * k, w + i * k, k, n - i < BERT_PANEL ? n - i : BERT_PANEL, k);
    return panels;
}

/* One linear layer's inputs; strides are odd and nothing but the panels is aligned. */
typedef struct test_layer {
    size_t t, n, k, ldx;
    float *x, *w, *bias, *residual;
} test_layer;

static test_layer new_layer(size_t t, size_t n, size_t k) {
    test_layer layer = {.t = t, .n = n, .k = k, .ldx = k + 1};
    layer.x = floats(t * layer.ldx);
    layer.w = floats(n * k);
    layer.bias = floats(n + 1);
    layer.residual = floats(t * (n + GAP) + 1);
    fill(layer.x, t * layer.ldx, random_float);
    fill(layer.w, n * k, random_float);
    fill(layer.bias, n + 1, random_float);
    fill(layer.residual, t * (n + GAP) + 1, random_float);
    return layer;
}

static void free_layer(test_layer *layer) {
    free(layer->x), free(layer->w), free(layer->bias), free(layer->residual);
}

/* Runs it in two calls that divide the panels, on exactly the scratch that was asked for. y [t, n+GAP]. */
static float *run_layer(const bert_kernels *kernels, const test_layer *layer, bert_epilogue epilogue, int edges) {
    const size_t ldy = layer->n + GAP, panels = bert_panels(layer->n), middle = panels / 3;
    float *y = guarded(layer->t, ldy), *w = packed(kernels, layer->w, layer->n, layer->k);
    bert_linear linear = {.y = y, .ldy = ldy, .x = layer->x, .ldx = layer->ldx, .w = w, .epilogue = epilogue,
                          .t = layer->t, .n = layer->n, .k = layer->k};
    if (edges & 1) linear.bias = layer->bias + 1;
    if (edges & 2) linear.residual = layer->residual + 1, linear.ldr = layer->n + GAP;
    if (edges & 4) { /* the residual is y itself */
        for (size_t i = 0; i < layer->t; i++)
            memcpy(y + i * ldy, layer->residual + 1 + i * ldy, layer->n * sizeof *y);
        linear.residual = y, linear.ldr = ldy;
    }
    float *scratch = floats(bert_linear_scratch(kernels, &linear));
    bert_linear_run(kernels, &linear, middle, panels, scratch);
    bert_linear_run(kernels, &linear, 0, middle, scratch);
    free(scratch), free(w);
    return y;
}

static void check_layer(const bert_kernels *kernels, size_t t, size_t n, size_t k) {
    test_layer layer = new_layer(t, n, k);
    for (int edges = 0; edges < 5; edges++) {
        const bert_epilogue epilogue = (bert_epilogue)((t + (size_t)edges) % 6);
        float *y = run_layer(kernels, &layer, epilogue, edges);
        float *expected = run_layer(&bert_kernels_ref, &layer, epilogue, edges == 4 ? 2 : edges);
        CHECK(memcmp(y, expected, t * (n + GAP) * sizeof *y) == 0, "%s linear T %zu N %zu K %zu edges %d: other bits",
              kernels->name, t, n, k, edges);
        free(y), free(expected);
    }
    free_layer(&layer);
}

static double true_dot(const float *x, const float *w, size_t k, size_t ldw) {
    double sum = 0.0;
    for (size_t i = 0; i < k; i++) sum += (double)x[i] * w[i * ldw];
    return sum;
}

/* Root mean square of the error over that of the values, against double precision. */
static double layer_error(const bert_kernels *kernels, size_t t, size_t n, size_t k) {
    test_layer layer = new_layer(t, n, k);
    float *y = run_layer(kernels, &layer, BERT_EPILOGUE_NONE, 0);
    double errors = 0.0, values = 0.0;
    for (size_t i = 0; i < t; i++)
        for (size_t j = 0; j < n; j++) {
            const double truth = true_dot(layer.x + i * layer.ldx, layer.w + j * k, k, 1);
            errors += (y[i * (n + GAP) + j] - truth) * (y[i * (n + GAP) + j] - truth);
            values += truth * truth;
        }
    free(y), free_layer(&layer);
    return sqrt(errors / values);
}

static void check_accuracy(const bert_kernels *kernels, size_t k, double bound) {
    const double error = layer_error(kernels, 32, 64, k);
    CHECK(error <= bound, "%s linear: rms error %.3g at K %zu", kernels->name, error, k);
}

/* Every row is in one block, and no block has more rows than scratch is made for. */
static void check_blocks(const bert_kernels *kernels) {
    for (size_t t = 1; t <= 2000; t++) {
        const size_t most = bert_linear_scratch(kernels, &(bert_linear){.t = t}) / (kernels->panels * BERT_PANEL);
        const size_t blocks = bert_row_blocks(t);
        CHECK(bert_row_block_start(t, 0) == 0 && bert_row_block_start(t, blocks) == t, "T %zu: rows left out", t);
        for (size_t i = 0; i < blocks; i++) {
            const size_t from = bert_row_block_start(t, i), to = bert_row_block_start(t, i + 1);
            CHECK(from < to && to - from <= most, "T %zu: block %zu is [%zu, %zu) of at most %zu", t, i, from, to, most);
        }
    }
}

/* The edge alone gives what the whole layer gives. */
static void check_finish(const bert_kernels *kernels) {
    test_layer layer = new_layer(5, 37, 50);
    float *y = run_layer(kernels, &layer, BERT_EPILOGUE_NONE, 0), *expected;
    expected = run_layer(kernels, &layer, BERT_EPILOGUE_GELU_ERF, 3);
    const bert_linear linear = {.y = y, .ldy = 37 + GAP, .bias = layer.bias + 1, .residual = layer.residual + 1,
                                .ldr = 37 + GAP, .epilogue = BERT_EPILOGUE_GELU_ERF, .t = 5, .n = 37, .k = 50};
    bert_linear_finish(kernels, &linear, 0, 2);
    bert_linear_finish(kernels, &linear, 2, 5);
    CHECK(memcmp(y, expected, 5 * (37 + GAP) * sizeof *y) == 0, "%s: bert_linear_finish differs", kernels->name);
    free(y), free(expected), free_layer(&layer);
}

typedef struct test_head {
    size_t tq, tk, d;
    float scale;
    float *q, *k, *v; /* row strides d + 1 */
    float *scores, *weights, *context;
} test_head;

static test_head new_head(size_t tq, size_t tk, size_t d, float size) {
    test_head head = {.tq = tq, .tk = tk, .d = d, .scale = 0.3f};
    head.q = floats(tq * (d + 1)), head.k = floats(tk * (d + 1)), head.v = floats(tk * (d + 1));
    fill(head.q, tq * (d + 1), random_float);
    fill(head.k, tk * (d + 1), random_float);
    fill(head.v, tk * (d + 1), random_float);
    for (size_t i = 0; i < tq * (d + 1); i++) head.q[i] *= size;
    return head;
}

static void run_head(const bert_kernels *kernels, test_head *head, unsigned keep) {
    head->scores = guarded(head->tq, head->tk);
    head->weights = guarded(head->tq, head->tk);
    head->context = guarded(head->tq, head->d + GAP);
    bert_attend attend = {.q = head->q, .ldq = head->d + 1, .k = head->k, .ldk = head->d + 1, .v = head->v,
                          .ldv = head->d + 1, .context = head->context, .ldc = head->d + GAP, .scale = head->scale,
                          .steps = BERT_ATTEND_ALL, .tq = head->tq, .tk = head->tk, .d = head->d};
    if (keep & BERT_ATTEND_SCORES) attend.scores = head->scores;
    if (keep & BERT_ATTEND_WEIGHTS) attend.weights = head->weights;
    float *scratch = floats(bert_attend_scratch(&attend));
    if (keep == BERT_ATTEND_ALL) /* one step after another, over what was kept */
        for (unsigned step = BERT_ATTEND_SCORES; step < BERT_ATTEND_ALL; step *= 2) {
            attend.steps = step;
            bert_attend_run(kernels, &attend, scratch);
        }
    else
        bert_attend_run(kernels, &attend, scratch);
    free(scratch);
}

static void free_results(test_head *head) {
    free(head->scores), free(head->weights), free(head->context);
}

static void check_truth(const bert_kernels *kernels, const test_head *head) {
    double *weight = malloc(head->tk * sizeof *weight);
    for (size_t i = 0; i < head->tq; i++) {
        double sum = 0.0, context = 0.0;
        for (size_t j = 0; j < head->tk; j++) {
            const float *q = head->q + i * (head->d + 1), *k = head->k + j * (head->d + 1);
            weight[j] = exp((double)head->scale * true_dot(q, k, head->d, 1));
            sum += weight[j];
        }
        for (size_t j = 0; j < head->tk; j++) {
            CHECK(fabs(head->weights[i * head->tk + j] - weight[j] / sum) <= 1e-6, "%s attend: weight", kernels->name);
            context += weight[j] / sum * head->v[j * (head->d + 1)];
        }
        CHECK(fabs(head->context[i * (head->d + GAP)] - context) <= 1e-6, "%s attend: context", kernels->name);
    }
    free(weight);
}

static void check_head(const bert_kernels *kernels, size_t tq, size_t tk, size_t d, float size) {
    test_head head = new_head(tq, tk, d, size);
    if (d % 2) head.scale = -head.scale; /* both ways to scale */
    run_head(&bert_kernels_ref, &head, BERT_ATTEND_SCORES | BERT_ATTEND_WEIGHTS);
    const test_head expected = head;
    if (size <= 1.0f) check_truth(kernels, &head);
    for (unsigned keep = 0; keep <= BERT_ATTEND_ALL; keep++) {
        if (keep & BERT_ATTEND_CONTEXT && keep != BERT_ATTEND_ALL) continue;
        run_head(kernels, &head, keep);
        const size_t map = tq * tk * sizeof(float);
        CHECK(memcmp(head.context, expected.context, tq * (d + GAP) * sizeof(float)) == 0,
              "%s attend Tq %zu Tk %zu D %zu keep %u: other context", kernels->name, tq, tk, d, keep);
        CHECK(!(keep & BERT_ATTEND_SCORES) || memcmp(head.scores, expected.scores, map) == 0,
              "%s attend Tq %zu Tk %zu D %zu keep %u: other scores", kernels->name, tq, tk, d, keep);
        CHECK(!(keep & BERT_ATTEND_WEIGHTS) || memcmp(head.weights, expected.weights, map) == 0,
              "%s attend Tq %zu Tk %zu D %zu keep %u: other weights", kernels->name, tq, tk, d, keep);
        free_results(&head);
    }
    head = expected;
    free_results(&head);
    free(head.q), free(head.k), free(head.v);
}

static void check_packing(const bert_kernels *kernels) {
    for (size_t rows = 1; rows <= BERT_PANEL; rows++)
        for (size_t k = 1; k <= 40; k += 3) {
            float *w = floats(rows * k), *panel = floats(k * BERT_PANEL);
            fill(w, rows * k, random_edge);
            bert_pack_panel(kernels, panel, w, k, rows, k);
            for (size_t i = 0; i < k * BERT_PANEL; i++) {
                const float expected = i % BERT_PANEL < rows ? w[i % BERT_PANEL * k + i / BERT_PANEL] : 0.0f;
                CHECK(memcmp(&panel[i], &expected, sizeof expected) == 0, "%s pack: rows %zu K %zu", kernels->name,
                      rows, k);
            }
            free(w), free(panel);
        }
}

void check_products(const bert_kernels *kernels) {
    static const size_t widths[] = {1, 10, 16, 26, 40, 100, 312};
    static const size_t depths[] = {1, 7, 8, 40, 127, 128, 129, 257, 300, 384, 385, 769};
    random_seed(2);
    check_packing(kernels);
    check_blocks(kernels);
    for (size_t t = 1; t <= 40; t++) check_layer(kernels, t, widths[t % 7], depths[t % 12]);
    for (size_t k = 1; k <= 300; k += 23) check_layer(kernels, 3, 20, k);
    for (size_t t = 1; t <= 10; t++) /* every shape of tile, also one that goes on with its totals */
        for (size_t n = 16; n <= 144; n += 32) check_layer(kernels, t, n, 393);
    check_layer(kernels, 200, 50, 70);
    check_layer(kernels, 30, 24, 1700); /* several pieces of K */
    check_finish(kernels);
    check_accuracy(kernels, 384, 2.2e-7);
    check_accuracy(kernels, 3072, 2.5e-7);
    for (size_t t = 1; t <= 70; t += 3) check_head(kernels, t, t, 8 + t % 25, 1.0f);
    check_head(kernels, 1, 300, 64, 1.0f);
    check_head(kernels, 50, 129, 130, 1.0f);
    check_head(kernels, 20, 33, 32, 1e30f);
}

static uint64_t hash_floats(uint64_t hash, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        for (int byte = 0; byte < 4; byte++) hash = (hash ^ (bits >> 8 * byte & 0xff)) * 0x100000001b3u; /* FNV-1a */
    }
    return hash;
}

uint64_t hash_outputs(const bert_kernels *kernels) {
    uint64_t hash = 0xcbf29ce484222325u;
    random_seed(3);
    for (int epilogue = BERT_EPILOGUE_NONE; epilogue <= BERT_EPILOGUE_TANH; epilogue++) {
        test_layer layer = new_layer(13, 45, 300);
        float *y = run_layer(kernels, &layer, (bert_epilogue)epilogue, 3);
        hash = hash_floats(hash, y, layer.t * (layer.n + GAP));
        kernels->layer_norm(y, 300, layer.x, 300, layer.x + 300, layer.x + 600, 1e-12f, 1, 300);
        hash = hash_floats(hash, y, 300);
        y[0] = kernels->sum_squares(layer.x, 1000);
        hash = hash_floats(hash, y, 1);
        free(y), free_layer(&layer);
    }
    test_head head = new_head(37, 150, 40, 3.0f);
    run_head(kernels, &head, BERT_ATTEND_ALL);
    hash = hash_floats(hash, head.scores, head.tq * head.tk);
    hash = hash_floats(hash, head.weights, head.tq * head.tk);
    hash = hash_floats(hash, head.context, head.tq * (head.d + GAP));
    free_results(&head);
    free(head.q), free(head.k), free(head.v);
    return hash;
}
