#include "metrics.h"

#include <stdlib.h>
#include <string.h>

enum { STATUSES = 600, BOUNDS = 12 };

/* Seconds; the last bucket has no bound. */
static const double bounds[BOUNDS] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10};

typedef struct of_route {
    uint64_t answered[STATUSES];
    uint64_t buckets[BOUNDS + 1];
    double seconds;
} of_route;

struct metrics {
    size_t n; /* routes, and one for requests that have none */
    of_route *routes;
    uint64_t texts, tokens, truncated;
};

metrics *metrics_open(size_t routes) {
    metrics *m = need(1, sizeof *m);
    *m = (metrics){.n = routes + 1, .routes = need(routes + 1, sizeof *m->routes)};
    memset(m->routes, 0, m->n * sizeof *m->routes);
    return m;
}

void metrics_count(metrics *m, size_t route, int status, int64_t ns, size_t texts, size_t tokens, size_t truncated) {
    of_route *r = &m->routes[route];
    double seconds = (double)ns * 1e-9;
    size_t bucket = 0;
    while (bucket < BOUNDS && seconds > bounds[bucket]) bucket++;
    r->answered[status]++;
    r->buckets[bucket]++;
    r->seconds += seconds;
    m->texts += texts;
    m->tokens += tokens;
    m->truncated += truncated;
}

void metrics_refused(metrics *m, int status) {
    m->routes[m->n - 1].answered[status]++;
}

static void write_total(buffer *b, const char *name, const char *help, uint64_t n) {
    buffer_print(b, "# HELP %s %s\n# TYPE %s counter\n%s %llu\n", name, help, name, name, (unsigned long long)n);
}

static void write_times(buffer *b, const of_route *r, const char *path) {
    uint64_t n = 0;
    for (size_t i = 0; i < BOUNDS; i++) {
        n += r->buckets[i];
        buffer_print(b, "bert_request_seconds_bucket{path=\"%s\",le=\"%g\"} %llu\n", path, bounds[i],
                     (unsigned long long)n);
    }
    n += r->buckets[BOUNDS];
    buffer_print(b, "bert_request_seconds_bucket{path=\"%s\",le=\"+Inf\"} %llu\n", path, (unsigned long long)n);
    buffer_print(b, "bert_request_seconds_sum{path=\"%s\"} %.9f\n", path, r->seconds);
    buffer_print(b, "bert_request_seconds_count{path=\"%s\"} %llu\n", path, (unsigned long long)n);
}

static int was_asked(const of_route *r) {
    for (size_t i = 0; i <= BOUNDS; i++)
        if (r->buckets[i]) return 1;
    return 0;
}

void metrics_write(buffer *b, const metrics *m, const char *(*path)(size_t i)) {
    buffer_text(b, "# HELP bert_requests_total Requests that were answered.\n# TYPE bert_requests_total counter\n");
    for (size_t i = 0; i < m->n; i++)
        for (int status = 0; status < STATUSES; status++)
            if (m->routes[i].answered[status])
                buffer_print(b, "bert_requests_total{path=\"%s\",status=\"%d\"} %llu\n", path(i), status,
                             (unsigned long long)m->routes[i].answered[status]);
    buffer_text(b, "# HELP bert_request_seconds From the head of a request to its answer.\n"
                   "# TYPE bert_request_seconds histogram\n");
    for (size_t i = 0; i < m->n; i++)
        if (was_asked(&m->routes[i])) write_times(b, &m->routes[i], path(i));
    write_total(b, "bert_texts_total", "Texts that went through a model.", m->texts);
    write_total(b, "bert_tokens_total", "Their tokens.", m->tokens);
    write_total(b, "bert_truncated_texts_total", "Texts that were longer than the limit.", m->truncated);
}

void metrics_close(metrics **at) {
    if (!*at) return;
    free((*at)->routes);
    free(*at);
    *at = NULL;
}
