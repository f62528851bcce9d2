/* tests/kernels/main.c: the kernels against ref bit by bit, ref against double precision; and the benchmark.
 *
 *     kernels_test                     every check on every instruction set of this machine
 *     kernels_test --hash              the hash of ref's outputs: the same for every compiler and option
 *     kernels_test --all-floats NAME   exp, tanh, gelu_erf, gelu_tanh or silu on all 2^32 inputs: minutes
 *     kernels_test --bench [NAME]      linear, attend, rows or pack
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"

/* Of contract revision 1. Another value means other bits for everyone who stores vectors. */
static const uint64_t expected_hash = 0x1c400c9cc59c81cfu;

int failures;

void check_that(int condition, const char *file, int line, const char *format, ...) {
    if (condition) return;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    failures++;
}

static uint64_t random_state = 1;

void random_seed(uint64_t seed) {
    random_state = seed * 2 + 1;
}

uint32_t random_bits(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

float random_float(void) {
    return (float)((int32_t)random_bits() >> 8) * 0x1p-23f;
}

float random_edge(void) {
    static const float edges[] = {0.0f, -0.0f, 1.0f, -1.0f, 0x1p-149f, -0x1p-149f, 0x1p-126f, -0x1p-126f,
                                  FLT_MAX, -FLT_MAX, 75.0f, -75.0f, 0.625f, -0.625f, 88.0f, -88.0f};
    const uint32_t choice = random_bits() % 32;
    if (choice < 16) return edges[choice];
    uint32_t bits;
    do bits = random_bits(); while ((bits & 0x7f800000u) == 0x7f800000u);
    float x;
    memcpy(&x, &bits, sizeof x);
    return choice < 24 ? x : random_float() * 8.0f;
}

float *floats(size_t n) {
    void *p;
    if (posix_memalign(&p, 64, (n ? n : 1) * sizeof(float)) != 0) abort();
    return p;
}

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int check_all(void) {
    const bert_kernels *ref = bert_kernels_get(BERT_ISA_REF);
    const uint64_t hash = hash_outputs(ref);
    CHECK(hash == expected_hash, "ref: hash %016llx, expected %016llx", (unsigned long long)hash,
          (unsigned long long)expected_hash);
    for (int isa = BERT_ISA_REF; isa <= BERT_ISA_NEON; isa++) {
        const bert_kernels *kernels = bert_kernels_get((bert_isa)isa);
        if (!kernels) continue;
        CHECK(bert_kernels_isa(kernels) == (bert_isa)isa, "table %d calls itself %d", isa, bert_kernels_isa(kernels));
        check_functions(kernels);
        check_products(kernels);
        CHECK(hash_outputs(kernels) == hash, "%s: other bits than ref", kernels->name);
        printf("%s: %s\n", kernels->name, failures ? "FAILED" : "ok");
    }
    return failures > 0;
}

int main(int argc, char **argv) {
    if (argc == 1) return check_all();
    if (strcmp(argv[1], "--hash") == 0)
        return printf("%016llx\n", (unsigned long long)hash_outputs(bert_kernels_get(BERT_ISA_REF))) < 0;
    if (strcmp(argv[1], "--all-floats") == 0 && argc == 3) return all_floats(argv[2]);
    if (strcmp(argv[1], "--bench") == 0) {
        for (int isa = BERT_ISA_AVX2; isa <= BERT_ISA_NEON; isa++)
            if (bert_kernels_get((bert_isa)isa)) bench(bert_kernels_get((bert_isa)isa), argc > 2 ? argv[2] : "");
        return 0;
    }
    fprintf(stderr, "usage: %s [--hash | --all-floats NAME | --bench [NAME]]\n", argv[0]);
    return 2;
}
