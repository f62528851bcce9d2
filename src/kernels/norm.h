/* kernels/norm.h: LayerNorm in plain C: what lanes.h does for rows of whole lanes, for rows of any length. Sixteen
 * lanes in double precision, so that a row's result is rounded once. The products before it decide the error of a
 * layer; this keeps the norm from adding to it.
 */
#ifndef BERT_KERNELS_NORM_H
#define BERT_KERNELS_NORM_H

#include <math.h>
#include <stddef.h>

enum { NORM_LANES = 16 };

static inline double norm_fold(double lane[NORM_LANES]) {
    for (size_t half = NORM_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

static inline double norm_mean(const float *x, size_t h) {
    double lane[NORM_LANES] = {0};
    for (size_t i = 0; i < h; i++) lane[i % NORM_LANES] += (double)x[i];
    return norm_fold(lane) / (double)h;
}

static inline double norm_variance(const float *x, double mean, size_t h) {
    double lane[NORM_LANES] = {0};
    for (size_t i = 0; i < h; i++) {
        const double d = (double)x[i] - mean;
        lane[i % NORM_LANES] += d * d;
    }
    return norm_fold(lane) / (double)h;
}

static inline void layer_norm_rows(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma,
                                   const float *beta, float eps, size_t rows, size_t h) {
    for (; rows > 0; rows--, x += ldx, y += ldy) {
        const double mean = norm_mean(x, h);
        const double scale = 1.0 / sqrt(norm_variance(x, mean, h) + (double)eps);
        for (size_t i = 0; i < h; i++)
            y[i] = (float)(((double)x[i] - mean) * scale * (double)gamma[i] + (double)beta[i]);
    }
}

#endif
