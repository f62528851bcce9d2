#include "progress.h"

#include <stdio.h>
#include <unistd.h>

#include "clock.h"

enum { CELLS = 30 };

static struct {
    int enabled, drawn, terminal;
    double start, wait, last; /* seconds */
} bar;

void progress_open(int force, int quiet) {
    bar.terminal = isatty(STDERR_FILENO);
    bar.enabled = !quiet && (force || bar.terminal);
    bar.wait = force ? 0 : 1;
}

/* "1:02:03" or "2:03". */
static void print_duration(double seconds) {
    unsigned long s = seconds < 1e9 ? (unsigned long)seconds : 999999999;
    if (s >= 3600)
        fprintf(stderr, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        fprintf(stderr, "%lu:%02lu", s / 60, s % 60);
}

static void draw(uint64_t texts, uint64_t part, uint64_t whole, double elapsed) {
    char cells[CELLS + 1];
    double done = whole ? (double)part / (double)whole : 0;
    if (done > 1) done = 1;
    for (int i = 0; i < CELLS; i++) cells[i] = (double)i < done * CELLS ? '#' : '.';
    cells[CELLS] = 0;
    fprintf(stderr, bar.terminal ? "\r\033[K" : "\r");
    if (whole) fprintf(stderr, "[%s] %3.0f %% ", cells, 100 * done);
    fprintf(stderr, "%llu texts, %.1f a second", (unsigned long long)texts, (double)texts / elapsed);
    if (done > 0 && done < 1) {
        fprintf(stderr, ", ");
        print_duration(elapsed * (1 - done) / done);
        fprintf(stderr, " left");
    }
    fflush(stderr);
    bar.drawn = 1;
}

void progress_show(uint64_t texts, uint64_t part, uint64_t whole) {
    if (!bar.enabled) return;
    double time = clock_seconds();
    if (bar.start <= 0) bar.start = time; /* what came before, such as opening the model, is no part of the rate */
    double elapsed = time - bar.start;
    if (elapsed < bar.wait || elapsed <= 0 || (bar.drawn && time - bar.last < 0.1)) return;
    bar.last = time;
    draw(texts, part, whole, elapsed);
}

void progress_clear(void) {
    if (!bar.drawn) return;
    fprintf(stderr, bar.terminal ? "\r\033[K" : "\n");
    bar.drawn = 0;
}
