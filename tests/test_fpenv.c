/* A host with strange floating-point settings: none of them reach us, and all of them are there again afterwards. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <float.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/fpenv.h"

/* Through memory, so that nothing is computed by the compiler. */
static volatile double tenth_parts[2] = {1.0, 10.0};
static volatile float tiny[2] = {FLT_MIN, 0.5f};
static volatile float zero = 0.0f, subnormal = 1e-45f;

/* What arithmetic gives under the default settings. */
static void expect_default(const char *where) {
    cr_expect_eq(tenth_parts[0] / tenth_parts[1], 0x1.999999999999ap-4, "%s: rounding", where);
    cr_expect_eq(-tenth_parts[0] / tenth_parts[1], -0x1.999999999999ap-4, "%s: rounding", where);
    cr_expect_gt(tiny[0] * tiny[1], zero, "%s: a subnormal result was flushed", where);
    cr_expect_gt(subnormal * 0x1p30f, zero, "%s: a subnormal input counts as zero", where);
    cr_expect_eq(strtod("0.1000000000000000055511151231257828", NULL), 0x1.999999999999ap-4, "%s: strtod", where);
}

static void inside(const char *where) {
    const uint64_t host = bert_fpenv_enter();
    expect_default(where);
    bert_fpenv_leave(host);
}

Test(fpenv, rounding_modes) {
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(fesetround(modes[i]), 0);
        inside("rounding mode");
        cr_expect_eq(fegetround(), modes[i]);
    }
    fesetround(FE_UPWARD);
    cr_expect_gt(1.0 + tiny[0], 1.0, "the test's own rounding mode was not set");
    fesetround(FE_TONEAREST);
}

Test(fpenv, exception_flags_are_the_hosts) {
    feclearexcept(FE_ALL_EXCEPT);
    const uint64_t host = bert_fpenv_enter();
    volatile double x = tenth_parts[0] / tenth_parts[1];
    x = tenth_parts[0] / (double)zero;
    (void)x;
    bert_fpenv_leave(host);
    cr_expect_eq(fetestexcept(FE_ALL_EXCEPT), 0, "our flags reached the host");
    feraiseexcept(FE_DIVBYZERO | FE_INEXACT);
    inside("flags raised");
    cr_expect_eq(fetestexcept(FE_ALL_EXCEPT), FE_DIVBYZERO | FE_INEXACT, "the host's flags were lost");
}

#if defined(__x86_64__)
#include <xmmintrin.h>

Test(fpenv, flush_to_zero_and_traps) {
    enum { FTZ = 0x8000, DAZ = 0x0040, MASKS = 0x1f80, TRAP_ALL = 0x0000, TOWARD_ZERO = 0x6000 };
    static const unsigned words[] = {MASKS | FTZ, MASKS | DAZ, MASKS | FTZ | DAZ | TOWARD_ZERO, TRAP_ALL,
                                     TRAP_ALL | FTZ | DAZ | TOWARD_ZERO};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const unsigned before = _mm_getcsr();
        _mm_setcsr(words[i]);
        const uint64_t host = bert_fpenv_enter();
        const float product = tiny[0] * tiny[1], grown = subnormal * 0x1p30f;
        const double third = tenth_parts[0] / tenth_parts[1];
        bert_fpenv_leave(host);
        const unsigned after = _mm_getcsr();
        _mm_setcsr(before);
        cr_expect_eq(after, words[i], "MXCSR %04x came back as %04x", words[i], after);
        cr_expect_gt(product, 0.0f);
        cr_expect_gt(grown, 0.0f);
        cr_expect_eq(third, 0x1.999999999999ap-4);
    }
}

Test(fpenv, calls_nest) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    const uint64_t outer = bert_fpenv_enter(), inner = bert_fpenv_enter();
    bert_fpenv_leave(inner);
    const float product = tiny[0] * tiny[1];
    bert_fpenv_leave(outer);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    cr_expect_gt(product, 0.0f);
    cr_expect_eq(after, before | 0x8040);
}
#endif
