/* base/cpu.h: what this processor and this process may use. */
#ifndef BERT_BASE_CPU_H
#define BERT_BASE_CPU_H

#include <stdbool.h>

typedef struct bert_cpu {
    bool avx2_fma; /* AVX2, FMA, and the OS saves ymm (XCR0) */
    bool avx512;   /* AVX-512 F, DQ, BW, VL, and the OS saves zmm and k */
    bool neon;
} bert_cpu;
bert_cpu bert_cpu_detect(void);

/* A short rest for a loop that waits for another thread. */
void bert_cpu_pause(void);

/* Threads worth starting: the affinity mask, cut by the cgroup CPU quota (v1 and v2, rounded up), at least 1.
 * `root` is "" except in tests, which lay out /proc and /sys below a folder of their own. */
int bert_cpu_threads(const char *root);

#endif
