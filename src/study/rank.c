#include <math.h>
#include <stdlib.h>

#include <bert/study.h>

#include "base/error.h"
#include "base/fpenv.h"

typedef struct ranked {
    float value;
    size_t place;
} ranked;

static int by_value(const void *a, const void *b) {
    const float x = ((const ranked *)a)->value, y = ((const ranked *)b)->value;
    return (x > y) - (x < y);
}

/* rank [n] of x [n], from 0; equal values get the mean of the ranks that they take. */
static void rank_values(double *rank, ranked *order, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) order[i] = (ranked){x[i], i};
    qsort(order, n, sizeof *order, by_value);
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && order[end].value <= order[first].value;) end++;
        for (size_t i = first; i < end; i++) rank[order[i].place] = (double)(first + end - 1) / 2;
    }
}

/* Pearson's correlation of x and y, whose mean is (n − 1)/2, as ranks have it. */
static double correlate(const double *x, const double *y, size_t n) {
    const double mean = ((double)n - 1) / 2;
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        xy += (x[i] - mean) * (y[i] - mean);
        xx += (x[i] - mean) * (x[i] - mean);
        yy += (y[i] - mean) * (y[i] - mean);
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : (double)NAN;
}

bert_status bert_rank_correlation(double *rho, const float *x, const float *y, size_t n, bert_error *err) {
    double *ranks = calloc(2 * n + 1, sizeof *ranks);
    ranked *order = calloc(n + 1, sizeof *order);
    bert_status status = BERT_OK;
    if (ranks && order) {
        const uint64_t host = bert_fpenv_enter();
        rank_values(ranks, order, x, n);
        rank_values(ranks + n, order, y, n);
        *rho = correlate(ranks, ranks + n, n);
        bert_fpenv_leave(host);
    } else {
        status = bert_fail(err, BERT_NO_MEMORY, "no memory to rank %zu values", n);
    }
    free(ranks);
    free(order);
    return status;
}
