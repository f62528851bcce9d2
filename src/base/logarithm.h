/* base/logarithm.h: the natural logarithm in basic operations, so that it has the same bits on every machine. */
#ifndef BERT_BASE_LOGARITHM_H
#define BERT_BASE_LOGARITHM_H

#include <math.h>

/* ln x for normal x > 0: x = m·2ᵉ with m in [√½, √2), ln m = 2·artanh(s), s = (m − 1)/(m + 1). |s| < 0.172, so the
 * terms left out are below 1e-18; the result is within 2e-16 + 2e-16·|ln x|. */
static inline double natural_log(double x) {
    int e;
    double m = frexp(x, &e), series = 0;
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    const double s = (m - 1) / (m + 1), square = s * s;
    for (int k = 21; k >= 1; k -= 2) series = series * square + 1.0 / k;
    return e * 0.69314718055994531 + 2 * s * series;
}

#endif
