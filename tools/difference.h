/* difference.h: how far numbers are from those that they should be. */
#ifndef DIFFERENCE_H
#define DIFFERENCE_H

#include "buffer.h"

typedef struct difference {
    size_t count;
    size_t not_finite; /* pairs infinitely far apart: a NaN, or an infinity that only one of the two is */
    double squares, largest; /* of the other pairs: the sum of squared and the largest absolute difference */
} difference;

void difference_add(difference *d, double x, double truth);

/* "rms 1.000e-07  largest 2.000e-06", and how many are not finite if there are any. */
void difference_print(buffer *b, const difference *d);

/* Members "rms", "largest" and "not_finite", with `before` in front of their names. */
void difference_json(buffer *b, const difference *d, const char *before);

#endif
