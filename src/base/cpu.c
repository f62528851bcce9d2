/* base/cpu.c: what the processor can do, and what the operating system lets it. */
#include "base/cpu.h"

#if defined(__x86_64__)
/* The compiler's runtime has asked the processor once, when it was loaded, and the operating system which registers it
 * saves (XCR0). CPUID itself leaves a virtual machine: 30 µs each time, ten times as long as attention over four tokens
 * takes. */
bert_cpu bert_cpu_detect(void) {
    __builtin_cpu_init();
    const bool avx2_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return (bert_cpu){
        .avx2_fma = avx2_fma,
        .avx512 = avx2_fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"),
    };
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
