/* base/fpenv.c: the control words that decide how floating-point instructions round, flush and trap.
 *
 * <fenv.h> is not used: it has no name for flush-to-zero, and fesetenv would also clear the host's flags.
 * The empty asm statements keep loads and stores of the caller on their side of the switch.
 */
#include "base/fpenv.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

/* MXCSR in the low half, the x87 control word above it: the C library's strtod and printf round as x87 is told to. */
enum { MXCSR_DEFAULT = 0x1f80, X87_DEFAULT = 0x037f };

static uint16_t x87_get(void) {
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    return word;
}

/* Loading the word is slow, and hosts hardly ever change it. */
static void x87_change(uint16_t from, uint16_t to) {
    if (from != to) __asm__ volatile("fldcw %0" : : "m"(to));
}

uint64_t bert_fpenv_enter(void) {
    const uint32_t mxcsr = _mm_getcsr();
    const uint16_t x87 = x87_get();
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(MXCSR_DEFAULT);
    x87_change(x87, X87_DEFAULT);
    __asm__ volatile("" ::: "memory");
    return (uint64_t)x87 << 32 | mxcsr;
}

void bert_fpenv_leave(uint64_t saved) {
    __asm__ volatile("" ::: "memory");
    _mm_setcsr((uint32_t)saved);
    x87_change(X87_DEFAULT, (uint16_t)(saved >> 32));
    __asm__ volatile("" ::: "memory");
}

#elif defined(__aarch64__)

/* FPCR (modes, traps) in the low half, FPSR (flags) in the high half. FPCR 0 is round to nearest, nothing flushed,
 * no alternative half precision, nothing trapped. */
uint64_t bert_fpenv_enter(void) {
    uint64_t fpcr, fpsr;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(fpcr), "=r"(fpsr) : : "memory");
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
    return fpsr << 32 | (fpcr & UINT32_MAX);
}

void bert_fpenv_leave(uint64_t saved) {
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(saved & UINT32_MAX), "r"(saved >> 32) : "memory");
}

#else
#error "bert_fpenv_enter: no floating-point environment known for this processor"
#endif
