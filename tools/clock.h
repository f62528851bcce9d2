/* clock.h: how long something takes. */
#ifndef CLOCK_H
#define CLOCK_H

#include <time.h>

/* Seconds of a clock that is never set. */
static inline double clock_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
