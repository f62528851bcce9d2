/* base/cpu.c: what the processor can do, and what the operating system lets it. */
#include "base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdint.h>

/* Which register files the operating system saves when it switches threads. */
static uint32_t xcr0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

bert_cpu bert_cpu_detect(void) {
    enum { YMM = 0x6, ZMM = 0xe6 }; /* xmm, ymm; and with them k, the upper halves of zmm, zmm16..31 */
    bert_cpu cpu = {0};
    uint32_t a, b, c, d, b7, c7;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return cpu;
    if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d)) return cpu;
    const uint32_t saved = xcr0(), fma = bit_FMA | bit_F16C | bit_AVX;
    const uint32_t avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    cpu.avx2_fma = (saved & YMM) == YMM && (c & fma) == fma && (b7 & bit_AVX2);
    cpu.avx512 = cpu.avx2_fma && (saved & ZMM) == ZMM && (b7 & avx512) == avx512;
    return cpu;
}

void bert_cpu_pause(void) {
    __builtin_ia32_pause();
}

#elif defined(__aarch64__)

bert_cpu bert_cpu_detect(void) {
    return (bert_cpu){.neon = true}; /* part of the base architecture */
}

void bert_cpu_pause(void) {
    __asm__ volatile("isb"); /* waits about as long as x86's pause; `yield` does nothing on most cores */
}

#endif
