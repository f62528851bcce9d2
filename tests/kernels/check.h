/* tests/kernels/check.h: shared by the kernel test and the kernel benchmark, which are one program. */
#ifndef BERT_TESTS_KERNELS_CHECK_H
#define BERT_TESTS_KERNELS_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/table.h"

/* A failed check says where and what, and the program goes on. */
extern int failures;
#define CHECK(condition, ...) check_that(condition, __FILE__, __LINE__, __VA_ARGS__)
void check_that(int condition, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Integers only until the last step, so the numbers are the same everywhere. */
uint32_t random_bits(void);
float random_float(void); /* uniform in [−1, 1) */
float random_edge(void);  /* any finite float: zeros, subnormals, largest, all exponents */
void random_seed(uint64_t seed);

/* n floats, 64-byte aligned, with no spare room behind: ASan sees every step too far. Never NULL. */
float *floats(size_t n);

double seconds(void);

void check_functions(const bert_kernels *kernels); /* functions.c: exp, tanh, activations, rows */
void check_products(const bert_kernels *kernels);  /* products.c: linear, attend, packing */
uint64_t hash_outputs(const bert_kernels *kernels); /* of a fixed set of inputs, in every operation */
int all_floats(const char *function);              /* every float through one function; bounds to stdout */
/* GFLOP/s of fused multiply-adds alone. */
double fma_peak(const bert_kernels *kernels);
void bench(const bert_kernels *kernels, const char *what);

#endif
