/* attention/positions.c: sinusoidal positions. The library's own sine, because no two C libraries round alike. */
#include <math.h>

#include <bert/attention.h>

#include "base/error.h"
#include "base/fpenv.h"

/* base^(−2/H): the root of xⁿ = 1/base, n = H/2, by Newton's method from 1 downwards. It stops where rounding does. */
static double step_factor(double base, size_t n) {
    double x = 1.0;
    for (;;) {
        double power = 1.0; /* xⁿ⁻¹ */
        for (size_t i = 1; i < n; i++) power *= x;
        const double next = x - (power * x - 1.0 / base) / ((double)n * power);
        if (!(next < x)) return x;
        x = next;
    }
}

/* Taylor's series for |a| ≤ 1: the terms behind the last are below 1e-17. */
static double sine(double a) {
    double term = a, sum = a;
    for (int i = 2; i <= 18; i += 2) sum += term *= -a * a / (i * (i + 1.0));
    return sum;
}

static double cosine(double a) {
    double term = 1.0, sum = 1.0;
    for (int i = 1; i <= 19; i += 2) sum += term *= -a * a / (i * (i + 1.0));
    return sum;
}

/* Two columns: each token's angle is the one before turned by the same amount. */
static void turn(float *dst, size_t tokens, size_t hidden, double angle) {
    const double s = sine(angle), c = cosine(angle);
    double y = 0.0, x = 1.0;
    for (size_t t = 0; t < tokens; t++, dst += hidden) {
        dst[0] = (float)y;
        dst[1] = (float)x;
        const double next = y * c + x * s;
        x = x * c - y * s;
        y = next;
    }
}

bert_status bert_sinusoidal_positions(float *dst, size_t tokens, size_t hidden, double base, bert_error *err) {
    if (hidden == 0 || hidden % 2 != 0 || !(base > 1.0) || !isfinite(base))
        return bert_fail(err, BERT_INVALID_ARGUMENT,
                         "positions: expected an even number of columns and a base above 1, found %zu and %g", hidden,
                         base);
    const uint64_t host = bert_fpenv_enter();
    const double factor = step_factor(base, hidden / 2);
    double angle = 1.0;
    for (size_t i = 0; i < hidden; i += 2) {
        turn(dst + i, tokens, hidden, angle);
        angle *= factor;
    }
    bert_fpenv_leave(host);
    return BERT_OK;
}
