#include "difference.h"

#include <math.h>
#include <stdio.h>

#include "json_out.h"

void difference_add(difference *d, double x, double truth) {
    double apart = x == truth ? 0 : fabs(x - truth); /* infinities can be equal, but have no distance */
    d->count++;
    if (!isfinite(apart)) {
        d->not_finite++;
        return;
    }
    d->squares += apart * apart;
    if (apart > d->largest) d->largest = apart;
}

static double rms(const difference *d) {
    size_t n = d->count - d->not_finite;
    return n ? sqrt(d->squares / (double)n) : 0;
}

void difference_print(buffer *b, const difference *d) {
    buffer_print(b, "rms %.3e  largest %.3e", rms(d), d->largest);
    if (d->not_finite) buffer_print(b, "  and %zu NaN or infinite", d->not_finite);
}

void difference_json(buffer *b, const difference *d, const char *before) {
    char key[32];
    snprintf(key, sizeof key, "%srms", before);
    json_key(b, key);
    json_double(b, rms(d));
    snprintf(key, sizeof key, "%slargest", before);
    json_key(b, key);
    json_double(b, d->largest);
    snprintf(key, sizeof key, "%snot_finite", before);
    json_key(b, key);
    buffer_print(b, "%zu", d->not_finite);
}
