/* attention_compare.c: one sentence proves nothing: entropy and distance of every head over many texts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_study.h"
#include "json_out.h"
#include "say.h"

enum { MEASURES = 2 };
static const char *const measures[MEASURES] = {"distance", "entropy"};

/* Mean and sum of squared differences, value by value (Welford 1962): nothing is kept of the texts themselves. */
typedef struct moments {
    double *mean, *squares; /* [L, A] */
} moments;

typedef struct comparison {
    const engine *e;
    size_t heads; /* L·A */
    size_t texts, tokens;
    moments of[MEASURES];
    float *values[MEASURES]; /* [L, A] of one text */
    int wanted[MEASURES];
} comparison;

static int read_what(comparison *c, const char *list) {
    for (const char *at = list ? list : "distance,entropy";; at++) {
        size_t n = strcspn(at, ",");
        int i = 0;
        while (i < MEASURES && (strlen(measures[i]) != n || memcmp(measures[i], at, n) != 0)) i++;
        if (i == MEASURES) return say_usage("--what %s: --compare takes distance,entropy", list);
        c->wanted[i] = 1;
        at += n;
        if (!*at) return 0;
    }
}

static void add_values(moments *m, const float *x, size_t n, size_t texts) {
    for (size_t i = 0; i < n; i++) {
        double before = (double)x[i] - m->mean[i];
        m->mean[i] += before / (double)texts;
        m->squares[i] += before * ((double)x[i] - m->mean[i]);
    }
}

static int add_text(comparison *c, const sequence *q) {
    bert_study study = BERT_STUDY_INIT;
    bert_error err;
    study.distance = c->values[0];
    study.entropy = c->values[1];
    if (bert_study_run(c->e->session, &study, q->ids, q->types, q->n, &c->e->run, &err)) return say_failure(&err);
    c->texts++;
    c->tokens += q->n;
    for (int i = 0; i < MEASURES; i++) add_values(&c->of[i], c->values[i], c->heads, c->texts);
    return 0;
}

static int add_texts(comparison *c, window *w, const settings *s) {
    bert_tokens *tokens = NULL;
    sequence *sequences = NULL;
    size_t n, at = 0;
    int status = sequences_make(&sequences, &n, w, &tokens, c->e, s);
    for (size_t k = 0; k < w->n && !status; k++)
        status = w->records[k].wrong[0] ? window_report(w, &w->records[k], NULL) : add_text(c, &sequences[at++]);
    bert_tokens_close(&tokens);
    free(sequences);
    return status;
}

/* "mean":[[…A…] × L], "sd":[[…]]: the sample's standard deviation, null for a single text. */
static void print_measure(buffer *b, const comparison *c, int which) {
    const moments *m = &c->of[which];
    const size_t A = c->e->info.heads;
    json_key(b, measures[which]);
    for (int spread = 0; spread < 2; spread++) {
        buffer_text(b, spread ? ",\"sd\":[" : "{\"mean\":[");
        for (size_t i = 0; i < c->heads; i++) {
            double sd = c->texts > 1 ? sqrt(m->squares[i] / (double)(c->texts - 1)) : (double)NAN;
            buffer_text(b, i % A ? "," : i ? "],[" : "[");
            json_double(b, spread ? sd : m->mean[i]);
        }
        buffer_text(b, "]]");
    }
    buffer_byte(b, '}');
}

static int print_comparison(const comparison *c, sink *out) {
    buffer b = {0};
    buffer_print(&b, "{\"texts\":%zu,\"tokens\":%zu", c->texts, c->tokens);
    for (int i = 0; i < MEASURES; i++)
        if (c->wanted[i]) print_measure(&b, c, i);
    buffer_text(&b, "}\n");
    int status = sink_write(out, b.data, b.len);
    buffer_close(&b);
    return status;
}

static int compare(comparison *c, window *w, sink *out, const settings *s) {
    TRY(read_what(c, s->what));
    do {
        TRY(window_fill(w, WINDOW_PATIENT));
        TRY(add_texts(c, w, s));
    } while (!w->at_end);
    if (c->texts == 0) return say_error("%s: expected texts to compare, found none", w->in->lines.name);
    return print_comparison(c, out);
}

int study_compare(window *w, sink *out, const engine *e, const settings *s) {
    comparison c = {.e = e, .heads = e->info.layers * e->info.heads};
    double *work = need(2 * MEASURES * c.heads, sizeof *work);
    float *values = need(MEASURES * c.heads, sizeof *values);
    memset(work, 0, 2 * MEASURES * c.heads * sizeof *work);
    for (size_t i = 0; i < MEASURES; i++) {
        c.of[i] = (moments){work + 2 * i * c.heads, work + (2 * i + 1) * c.heads};
        c.values[i] = values + i * c.heads;
    }
    int status = compare(&c, w, out, s);
    free(work);
    free(values);
    return status;
}
