/* serve/metrics.h: what has happened so far, as Prometheus reads it
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). Used by the thread that reads requests only. */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include <stdint.h>

#include "buffer.h"

typedef struct metrics metrics;

metrics *metrics_open(size_t routes);
/* A request was answered. route: its number, `routes` for none; tokens and truncated: of its texts. */
void metrics_count(metrics *m, size_t route, int status, int64_t ns, size_t texts, size_t tokens, size_t truncated);
/* One was refused before its path was known. */
void metrics_refused(metrics *m, int status);
/* Requests by path and status, their time, texts and tokens. path(i) names a route. */
void metrics_write(buffer *b, const metrics *m, const char *(*path)(size_t i));
void metrics_close(metrics **m);

#endif
