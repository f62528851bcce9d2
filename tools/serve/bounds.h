/* serve/bounds.h: what a client may ask for, and how requests are packed. */
#ifndef SERVE_BOUNDS_H
#define SERVE_BOUNDS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct limits {
    size_t body;        /* bytes of a request's body */
    size_t texts;       /* of a request */
    size_t tokens;      /* of a request */
    size_t queue;       /* requests that wait for the model */
    size_t connections;
    size_t pass_tokens; /* tokens of one pass */
    size_t wait_ms;     /* that a pass waits for more requests, at most */
    size_t answer;      /* bytes of an answer with attention */
    size_t head_s;      /* seconds for the head of a request; three times as many for its body, and between requests */
} limits;

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
