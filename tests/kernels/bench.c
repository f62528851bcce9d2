/* tests/kernels/bench.c: what the kernels reach on this machine, as GFLOP/s and as a share of the FMA peak that is
 * measured in the same run. Weights are cold: calls rotate over as much memory as a whole model has, because warm
 * ones hide what prefetching is worth. The best of many calls is printed, and the median, which shows the noise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

enum { MAX_TIMES = 4096, WARM_UP = 2 };

typedef struct call_times {
    double times[MAX_TIMES];
    size_t n;
} call_times;

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Calls body(arg, i) for i = 0, 1, … until `duration` is over, at least 8 times. */
static void measure(call_times *timing, double duration, void (*body)(void *arg, size_t i), void *arg) {
    for (size_t i = 0; i < WARM_UP; i++) body(arg, i);
    const double end = seconds() + duration;
    double now = seconds();
    for (timing->n = 0; timing->n < MAX_TIMES && (timing->n < 8 || now < end); timing->n++) {
        const double start = now;
        body(arg, timing->n + WARM_UP);
        now = seconds();
        timing->times[timing->n] = now - start;
    }
    qsort(timing->times, timing->n, sizeof timing->times[0], by_size);
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

typedef struct linear_bench {
    const bert_kernels *kernels;
    bert_linear linear;
    float *weights, *scratch;
    size_t copies;
} linear_bench;

static void one_linear(void *arg, size_t i) {
    linear_bench *bench = arg;
    bench->linear.w = bench->weights + i % bench->copies * bench->linear.n * bench->linear.k;
    bert_linear_run(bench->kernels, &bench->linear, 0, bert_panels(bench->linear.n), bench->scratch);
}

enum { ROUNDS = 12, N_T = 11, N_SHAPES = 8, MAX_T = 512 };
static const size_t ts[N_T] = {1, 2, 4, 8, 12, 16, 32, 56, 128, 256, MAX_T};
static const size_t shapes[N_SHAPES][2] = {{2304, 768}, {768, 768}, {3072, 768}, {768, 3072},
                                           {1152, 384}, {384, 384}, {1536, 384}, {384, 1536}};
enum { BERT_ROOM = 85u << 20, MINILM_ROOM = 11u << 20 }; /* floats: what bert-base and all-MiniLM-L6-v2 have */

static float *new_weights(void) {
    float *weights = NULL;
    const size_t bytes = BERT_ROOM * sizeof *weights;
    if (posix_memalign((void **)&weights, 2u << 20, bytes) != 0) abort();
    (void)madvise(weights, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < BERT_ROOM; i++) weights[i] = 0x1p-6f;
    return weights;
}

/* The best GFLOP/s of a few milliseconds of calls. */
static double linear_speed(const bert_kernels *kernels, size_t shape, size_t t, const float *x, float *y,
                           float *weights) {
    static call_times timing;
    const size_t n = shapes[shape][0], k = shapes[shape][1];
    linear_bench bench = {.kernels = kernels, .weights = weights};
    bench.copies = (shape < 4 ? BERT_ROOM : MINILM_ROOM) / (n * k);
    bench.linear = (bert_linear){.y = y, .ldy = n, .x = x, .ldx = k, .bias = x, .t = t, .n = n, .k = k};
    bench.scratch = floats(bert_linear_scratch(kernels, &bench.linear));
    measure(&timing, 0.01, one_linear, &bench);
    free(bench.scratch);
    return 2e-9 * (double)(t * n * k) / timing.times[0];
}

/* Rounds over the whole table, because a busy neighbour slows minutes, not calls. */
static void bench_linear(const bert_kernels *kernels) {
    static double best[N_SHAPES][N_T];
    float *weights = new_weights(), *x = floats(MAX_T * 3072), *y = floats(MAX_T * 3072);
    double peak = fma_peak(kernels);
    for (size_t i = 0; i < MAX_T * 3072; i++) x[i] = random_float();
    memset(best, 0, sizeof best);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < N_SHAPES; i++)
            for (size_t j = 0; j < N_T; j++)
                best[i][j] = larger(best[i][j], linear_speed(kernels, i, ts[j], x, y, weights));
        peak = larger(peak, fma_peak(kernels));
    }
    printf("linear, best GFLOP/s and share of the peak (%.0f)\n N,   K | T:", peak);
    for (size_t j = 0; j < N_T; j++) printf(" %zu%s", ts[j], j + 1 < N_T ? " |" : "\n");
    for (size_t i = 0; i < N_SHAPES; i++) {
        printf("%4zu,%4zu", shapes[i][0], shapes[i][1]);
        for (size_t j = 0; j < N_T; j++) printf(" | %3.0f %2.0f%%", best[i][j], 100 * best[i][j] / peak);
        printf("\n");
    }
    free(weights), free(x), free(y);
}

typedef struct attend_bench {
    const bert_kernels *kernels;
    bert_attend attend;
    float *scratch;
    size_t heads;
} attend_bench;

static void one_attend(void *arg, size_t i) {
    attend_bench *bench = arg;
    (void)i;
    bert_attend attend = bench->attend;
    for (size_t head = 0; head < bench->heads; head++) {
        bert_attend_run(bench->kernels, &attend, bench->scratch);
        attend.q += attend.d, attend.k += attend.d, attend.v += attend.d, attend.context += attend.d;
    }
}

static void bench_attend(const bert_kernels *kernels) {
    static const size_t heads[][2] = {{64, 8}, {64, 32}, {64, 128}, {64, 512},
                                      {32, 8}, {32, 32}, {32, 128}, {32, 512}};
    static call_times timing;
    printf("attention of a layer, 12 heads: best ms | GFLOP/s of both products over all, share of peak | median ms\n");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        const size_t d = heads[i][0], t = heads[i][1], h = 12 * d;
        float *qkv = floats(t * 3 * h), *context = floats(t * h);
        for (size_t j = 0; j < t * 3 * h; j++) qkv[j] = random_float();
        attend_bench bench = {.kernels = kernels, .heads = 12};
        bench.attend = (bert_attend){.q = qkv, .ldq = 3 * h, .k = qkv + h, .ldk = 3 * h, .v = qkv + 2 * h,
                                     .ldv = 3 * h, .context = context, .ldc = h, .scale = 0.125f,
                                     .steps = BERT_ATTEND_ALL, .tq = t, .tk = t, .d = d};
        bench.scratch = floats(bert_attend_scratch(&bench.attend));
        measure(&timing, 0.3, one_attend, &bench);
        const double best = timing.times[0], flops = 4e-9 * 12 * (double)(t * t * d) / best;
        printf("D %2zu T %3zu | %7.4f | %3.0f %2.0f%% | %7.4f\n", d, t, best * 1e3, flops,
               100 * flops / fma_peak(kernels), timing.times[timing.n / 2] * 1e3);
        free(qkv), free(context), free(bench.scratch);
    }
}

/* Row operations on [128, 768], the best of many, in ns per element. */
typedef struct row_bench {
    const bert_kernels *kernels;
    float *x, *y;
    int what; /* an epilogue, or one of the following */
} row_bench;
enum { ROWS = 128, COLS = 768, SOFTMAX = 100, LAYER_NORM, SCALE, SUM_SQUARES };

static void one_row_operation(void *arg, size_t i) {
    const row_bench *bench = arg;
    const bert_linear linear = {.y = bench->y, .ldy = COLS, .bias = bench->x, .epilogue = (bert_epilogue)bench->what,
                                .t = ROWS, .n = COLS};
    (void)i;
    if (bench->what < SOFTMAX) bench->kernels->finish(&linear, bench->x, COLS, 0, ROWS, 0, COLS);
    if (bench->what == SOFTMAX) bench->kernels->softmax(bench->y, COLS, bench->x, COLS, 1.0f, ROWS, COLS);
    if (bench->what == LAYER_NORM)
        bench->kernels->layer_norm(bench->y, COLS, bench->x, COLS, bench->x, bench->x, 1e-12f, ROWS, COLS);
    for (size_t row = 0; row < ROWS; row++) {
        const float *x = bench->x + row * COLS;
        float *y = bench->y + row * COLS;
        if (bench->what == SCALE) bench->kernels->scale(y, x, 0.125f, COLS);
        if (bench->what == SUM_SQUARES) *y = bench->kernels->sum_squares(x, COLS);
    }
}

static void bench_rows(const bert_kernels *kernels) {
    static const struct {
        const char *name;
        int what;
    } cases[] = {{"bias", BERT_EPILOGUE_NONE}, {"gelu", BERT_EPILOGUE_GELU_ERF}, {"gelu_tanh", BERT_EPILOGUE_GELU_TANH},
                 {"silu", BERT_EPILOGUE_SILU}, {"tanh", BERT_EPILOGUE_TANH}, {"softmax", SOFTMAX},
                 {"layer_norm", LAYER_NORM}, {"scale", SCALE}, {"sum_squares", SUM_SQUARES}};
    static call_times timing;
    row_bench bench = {.kernels = kernels, .x = floats(ROWS * COLS), .y = floats(ROWS * COLS)};
    for (size_t i = 0; i < ROWS * COLS; i++) bench.x[i] = random_float() * 4.0f;
    printf("rows of 768, ns per element:");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench.what = cases[i].what;
        measure(&timing, 0.1, one_row_operation, &bench);
        printf(" %s %.3f", cases[i].name, timing.times[0] / (ROWS * COLS) * 1e9);
    }
    printf("\n");
    free(bench.x), free(bench.y);
}

typedef struct pack_bench {
    const bert_kernels *kernels;
    float *w, *panels;
} pack_bench;
enum { PACK_ROWS = 1536, PACK_K = 768 };

static void one_pack(void *arg, size_t i) {
    const pack_bench *bench = arg;
    (void)i;
    for (size_t row = 0; row < PACK_ROWS; row += BERT_PANEL)
        bert_pack_panel(bench->kernels, bench->panels + row * PACK_K, bench->w + row * PACK_K, PACK_K, BERT_PANEL,
                        PACK_K);
}

static void bench_pack(const bert_kernels *kernels) {
    static call_times timing;
    pack_bench bench = {.kernels = kernels, .w = floats(PACK_ROWS * PACK_K), .panels = floats(PACK_ROWS * PACK_K)};
    for (size_t i = 0; i < PACK_ROWS * PACK_K; i++) bench.w[i] = random_float();
    measure(&timing, 0.3, one_pack, &bench);
    printf("packing: %.1f GB/s of weights\n", PACK_ROWS * PACK_K * sizeof(float) / timing.times[0] * 1e-9);
    free(bench.w), free(bench.panels);
}

void bench(const bert_kernels *kernels, const char *what) {
    static const struct {
        const char *name;
        void (*run)(const bert_kernels *kernels);
    } parts[] = {{"linear", bench_linear}, {"attend", bench_attend}, {"rows", bench_rows}, {"pack", bench_pack}};
    printf("%s: FMA peak %.1f GFLOP/s\n", kernels->name, fma_peak(kernels));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!*what || strcmp(what, parts[i].name) == 0) parts[i].run(kernels);
}
