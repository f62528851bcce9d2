/* study/heads.c: what one head's map looks like, in one number, and how much it moves. */
#include <bert/study.h>

#include "base/fpenv.h"
#include "base/logarithm.h"

void bert_head_entropy(float *entropy, const float *weights, size_t heads, size_t tq, size_t tk) {
    const uint64_t host = bert_fpenv_enter();
    for (size_t a = 0; a < heads; a++, weights += tq * tk) {
        double sum = 0;
        for (size_t i = 0; i < tq * tk; i++)
            if (weights[i] > 0) sum -= (double)weights[i] * natural_log((double)weights[i]);
        entropy[a] = (float)(sum / (double)tq);
    }
    bert_fpenv_leave(host);
}

void bert_head_distance(float *distance, const float *weights, size_t heads, size_t tq, size_t tk) {
    const uint64_t host = bert_fpenv_enter();
    for (size_t a = 0; a < heads; a++, weights += tq * tk) {
        double sum = 0;
        for (size_t i = 0; i < tq; i++)
            for (size_t j = 0; j < tk; j++) sum += (double)weights[i * tk + j] * (double)(i > j ? i - j : j - i);
        distance[a] = (float)(sum / (double)tq);
    }
    bert_fpenv_leave(host);
}

static double length_of(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* A weight is not negative, so it can be taken out of the norm. */
void bert_attention_norms(float *norms, const float *weights, const float *f, size_t heads, size_t tokens,
                          size_t hidden) {
    const uint64_t host = bert_fpenv_enter();
    for (size_t a = 0; a < heads; a++)
        for (size_t j = 0; j < tokens; j++) {
            const double length = length_of(f + (a * tokens + j) * hidden, hidden);
            for (size_t i = 0; i < tokens; i++) {
                const size_t at = (a * tokens + i) * tokens + j;
                norms[at] = (float)((double)weights[at] * length);
            }
        }
    bert_fpenv_leave(host);
}
