/* tests/cost.h: processor time and memory that a piece of a test takes. */
#ifndef BERT_TESTS_COST_H
#define BERT_TESTS_COST_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct cost {
    double seconds; /* of processor time */
    double mib;     /* above what was resident at the beginning */
} cost;

/* MiB from a line of /proc/self/status, 0 if there is none. */
static inline double cost_memory(const char *name) {
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0) kib = strtod(line + strlen(name), NULL);
    if (file != NULL) fclose(file);
    return kib / 1024;
}

static inline double cost_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline cost cost_begin(void) {
    const int fd = open("/proc/self/clear_refs", O_WRONLY);
    if (fd >= 0) {
        cr_expect_eq(write(fd, "5", 1), 1); /* the peak is what is resident now */
        close(fd);
    }
    return (cost){cost_seconds(), cost_memory("VmHWM:")};
}

/* Sanitizers and valgrind ($BERT_TEST_MODE) take time and memory of their own: there nothing is judged. Keeps the
 * larger figures in *worst. */
static inline void cost_end(cost before, const char *what, cost most, cost *worst) {
    const cost took = {cost_seconds() - before.seconds, cost_memory("VmHWM:") - before.mib};
    if (took.seconds > worst->seconds) worst->seconds = took.seconds;
    if (took.mib > worst->mib) worst->mib = took.mib;
    if (getenv("BERT_TEST_MODE") != NULL) return;
    cr_expect_lt(took.seconds, most.seconds, "%s took %.3f s", what, took.seconds);
    cr_expect_lt(took.mib, most.mib, "%s took %.1f MiB", what, took.mib);
}

/* For scripts/reliability, which reads what the tests print. */
static inline void cost_print(const char *what, cost worst) {
    fprintf(stderr, "figure: %s: at most %.1f ms, %.1f MiB\n", what, 1e3 * worst.seconds, worst.mib);
}

/* What RULES.md's G2 allows one bad file. */
static const cost cost_of_a_file = {0.1, 32};

#endif
