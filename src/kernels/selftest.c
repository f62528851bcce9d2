/* kernels/selftest.c: the arithmetic that the contract stands on, tried on this machine when a model is opened. */
#include <float.h>
#include <math.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "kernels/kernels.h"

/* Each is 1 where this machine does what IEEE 754 says. volatile: the machine answers, not the compiler. */

static int fma_rounds_once(void) {
    volatile float a = 1.0f + 0x1p-12f, c = -(1.0f + 0x1p-11f);
    return fmaf(a, a, c) == 0x1p-24f;
}

static int rounds_to_nearest_even(void) {
    volatile float one = 1.0f, half = 0x1p-24f, odd = 1.0f + 0x1p-23f;
    return one + half == 1.0f && odd + half == 1.0f + 0x1p-22f && -one - half == -1.0f;
}

static int keeps_subnormals(void) {
    volatile float least = FLT_MIN, half = 0.5f, tiny = 0x1p-149f, two = 2.0f;
    return least * half == 0x1p-127f && tiny * two == 0x1p-148f;
}

bert_status bert_kernels_selftest(bert_error *err) {
    static const struct { const char *name; int (*holds)(void); } TESTS[] = {
        {"a fused multiply-add that rounds once", fma_rounds_once},
        {"rounding to nearest, ties to even", rounds_to_nearest_even},
        {"subnormal numbers", keeps_subnormals},
    };
    const char *missing = NULL;
    const uint64_t host = bert_fpenv_enter();
    for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS && !missing; i++)
        if (!TESTS[i].holds()) missing = TESTS[i].name;
    bert_fpenv_leave(host);
    if (!missing) return BERT_OK;
    return bert_fail(err, BERT_UNSUPPORTED, "this machine's floating point lacks %s, which results depend on", missing);
}
