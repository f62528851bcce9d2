/* What this machine can do: multiply-adds on registers, and reads of memory. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"
#include "clock.h"

/* Chains of multiply-adds that do not wait for each other. One takes 4 cycles and a CPU has 2 units for them (4 of
 * NEON), so 8 (16) chains keep them busy; AVX2 has registers for 12. Each value moves towards c / (1 - m) = 1. */
#define EACH_12(DO, X)                                                                                                 \
    DO(0, X) DO(1, X) DO(2, X) DO(3, X) DO(4, X) DO(5, X) DO(6, X) DO(7, X) DO(8, X) DO(9, X) DO(10, X) DO(11, X)
#define EACH_16(DO, X) EACH_12(DO, X) DO(12, X) DO(13, X) DO(14, X) DO(15, X)
#define START(i, VECTOR) VECTOR a##i = c * (VECTOR_ONE(VECTOR) * (float)i);
#define VECTOR_ONE(VECTOR) ((VECTOR){0} + 1.0f)
#define STEP(i, FMA) a##i = FMA(a##i, m, c);
#define GATHER(i, FMA) sum = FMA(a##i, m, sum);
#define CHAINS(NAME, ATTRIBUTE, VECTOR, FMA, EACH)                                                                     \
    ATTRIBUTE static float NAME(size_t steps) {                                                                        \
        VECTOR m = VECTOR_ONE(VECTOR) * 0.999f, c = VECTOR_ONE(VECTOR) * 0.001f, sum = c;                              \
        EACH(START, VECTOR)                                                                                            \
        for (size_t step = 0; step < steps; step++) {                                                                  \
            EACH(STEP, FMA)                                                                                            \
        }                                                                                                              \
        EACH(GATHER, FMA)                                                                                              \
        return sum[0];                                                                                                 \
    }

typedef struct fma_probe {
    bert_isa isa;
    float (*chains)(size_t steps);
    double operations; /* of one step */
} fma_probe;

/* Worst first. */
#if defined(__x86_64__)
#include <immintrin.h>
CHAINS(chains_avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_fmadd_ps, EACH_12)
CHAINS(chains_avx512, __attribute__((target("avx512f"))), __m512, _mm512_fmadd_ps, EACH_16)
static const fma_probe probes[] = {{BERT_ISA_AVX2, chains_avx2, 12 * 8 * 2},
                                   {BERT_ISA_AVX512, chains_avx512, 16 * 16 * 2}};
#elif defined(__aarch64__)
#include <arm_neon.h>
#define NEON_FMA(a, b, c) vfmaq_f32(c, a, b)
CHAINS(chains_neon, , float32x4_t, NEON_FMA, EACH_16)
static const fma_probe probes[] = {{BERT_ISA_NEON, chains_neon, 16 * 4 * 2}};
#else
#define PLAIN_FMA(a, b, c) ((a) * (b) + (c))
typedef float four_floats __attribute__((vector_size(16)));
CHAINS(chains_plain, , four_floats, PLAIN_FMA, EACH_12)
static const fma_probe probes[] = {{BERT_ISA_REF, chains_plain, 12 * 4 * 2}};
#endif

static const fma_probe *find_probe(bert_isa isa) {
    const fma_probe *best = NULL;
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        if (probes[i].isa == isa) return &probes[i];
        if (bert_isa_name(probes[i].isa)) best = &probes[i];
    }
    return best;
}

/* Calls task(arg, i) on all threads at once and returns how long that took; *width is how many they are. */
static double time_all(const bert_workers *workers, void (*task)(void *arg, int i), void *arg, int *width) {
    *width = workers ? workers->width : 1;
    double start = clock_seconds();
    if (workers)
        workers->run(workers->user, *width, task, arg);
    else
        task(arg, 0);
    return clock_seconds() - start;
}

/* Some 2 ms a round: waking threads up counts little, and one round escapes whatever else runs here. */
enum { FMA_STEPS = 1 << 19 };
static const double fma_seconds = 0.3;

static void run_chains(void *arg, int i) {
    const fma_probe *probe = arg;
    volatile float kept = probe->chains(FMA_STEPS); /* or the compiler would see that nobody needs it */
    (void)kept;
    (void)i;
}

double bench_fma_peak(bert_isa isa, const bert_workers *workers) {
    const fma_probe *probe = find_probe(isa);
    double best = 0;
    if (!probe) return 0;
    fma_probe own = *probe;
    for (double end = clock_seconds() + fma_seconds; clock_seconds() < end;) {
        int width;
        double seconds = time_all(workers, run_chains, &own, &width);
        double rate = width * own.operations * FMA_STEPS / seconds;
        if (rate > best) best = rate;
    }
    return best;
}

enum { LINE = 64, PREFETCH_BYTES = 4096, READ_ROUNDS = 8 };

typedef uint64_t word_pair __attribute__((vector_size(16)));

typedef struct read_probe {
    const char *bytes;
    size_t n; /* of one thread, a multiple of LINE */
} read_probe;

static void read_part(void *arg, int i) {
    const read_probe *probe = arg;
    const char *at = probe->bytes + (size_t)i * probe->n, *end = at + probe->n;
    word_pair a = {0}, b = {0}, c = {0}, d = {0};
    for (; at < end; at += LINE) {
        const word_pair *pairs = (const word_pair *)(const void *)at;
        /* Behind the end at last, which is no harm: it is a hint, and no pointer is formed there. */
        __builtin_prefetch((const void *)((uintptr_t)at + PREFETCH_BYTES));
        a += pairs[0];
        b += pairs[1];
        c += pairs[2];
        d += pairs[3];
    }
    a += b + c + d;
    volatile uint64_t kept = a[0] + a[1];
    (void)kept;
}

double bench_read_rate(size_t n, const bert_workers *workers) {
    size_t width = workers ? (size_t)workers->width : 1;
    size_t part = n / width / LINE * LINE;
    double best = 0;
    char *bytes = part ? mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (bytes == MAP_FAILED) return 0;
    (void)madvise(bytes, n, MADV_HUGEPAGE);
    memset(bytes, 1, n); /* pages that were never written are all the same one */
    read_probe probe = {bytes, part};
    for (int round = 0; round < READ_ROUNDS; round++) {
        int threads;
        double rate = (double)(part * width) / time_all(workers, read_part, &probe, &threads);
        if (rate > best) best = rate;
    }
    munmap(bytes, n);
    return best;
}
