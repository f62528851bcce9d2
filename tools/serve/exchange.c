#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_out.h"
#include "say.h"

static const route routes[] = {
    {"GET", "/", page_front, NULL, 1},
    {"POST", "/", tei_embed, tei_embed_done, 0}, /* where huggingface_hub's client sends it */
    {"GET", "/health", tei_health, NULL, 1},
    {"GET", "/info", tei_info, NULL, 0},
    {"GET", "/metrics", metrics_begin, NULL, 0},
    {"GET", "/v1/models", openai_models, NULL, 0},
    {"POST", "/v1/embeddings", openai_embeddings, openai_embeddings_done, 0},
    {"POST", "/embed", tei_embed, tei_embed_done, 0},
    {"POST", "/rerank", rerank_begin, rerank_done, 0},
    {"POST", "/tokenize", tei_tokenize, NULL, 0},
    {"POST", "/attention", attention_begin, attention_done, 0},
    {"POST", "/page", page_begin, attention_done, 0},
};
enum { ROUTES = sizeof routes / sizeof *routes };

size_t route_count(void) {
    return ROUTES;
}

const route *route_at(size_t i) {
    return &routes[i];
}

static int is_method(const route *r, const char *method) {
    return strcmp(r->method, method) == 0 || (strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0);
}

int route_find(const route **found, const char *method, const char *path, buffer *allowed) {
    for (size_t i = 0; i < ROUTES; i++) {
        if (strcmp(routes[i].path, path) != 0) continue;
        *found = &routes[i];
        if (is_method(*found, method)) return 0;
        buffer_print(allowed, allowed->len ? ", %s" : "%s", routes[i].method);
    }
    return *found ? 405 : 404;
}

/* https://platform.openai.com/docs/guides/error-codes, and text-embeddings-inference's ErrorResponse. */
int exchange_fail(exchange *x, int status, const char *format, ...) {
    char words[700];
    va_list values;
    va_start(values, format);
    vsnprintf(words, sizeof words, format, values);
    va_end(values);
    int openai = x->route && strncmp(x->route->path, "/v1/", 4) == 0;
    buffer *b = &x->answer;
    b->len = 0;
    if (openai) {
        buffer_text(b, "{\"error\":{\"message\":");
        json_text(b, words);
        buffer_print(b, ",\"type\":\"%s\",\"param\":null,\"code\":%d}}\n",
                     status < 500 ? "invalid_request_error" : "server_error", status);
    } else {
        buffer_text(b, "{\"error\":");
        json_text(b, words);
        buffer_print(b, ",\"error_type\":\"%s\"}\n",
                     status == 429 || status == 503 ? "Overloaded" : status < 500 ? "Validation" : "Backend");
    }
    x->type = "application/json";
    x->status = status;
    return status;
}

int exchange_fail_by(exchange *x, const bert_error *err) {
    switch (err->code) {
    case BERT_TOO_LONG: return exchange_fail(x, 413, "%s", err->text);
    case BERT_INVALID_ARGUMENT:
    case BERT_UNSUPPORTED: return exchange_fail(x, 422, "%s", err->text);
    case BERT_STOPPED: return exchange_fail(x, 499, "%s", err->text); /* as others call it; nobody reads this */
    case BERT_NO_MEMORY: return exchange_fail(x, 503, "%s", err->text);
    default: return exchange_fail(x, 500, "%s", err->text);
    }
}

void exchange_answer(exchange *x, const char *type) {
    x->status = 200;
    x->type = type;
}

void exchange_queue(exchange *x, job *j) {
    service *s = x->of;
    enum { LOOKS_MOST = 4 }; /* answers with attention are large, and slow readers keep them waiting */
    j->owner = x;
    if (j->look && s->looks >= LOOKS_MOST) {
        job_close(&j);
        exchange_fail(x, 429, "%d requests for attention are being answered: try again", LOOKS_MOST);
        return;
    }
    int is_look = j->look != NULL; /* once it is in the queue, the job is not ours to look at */
    if (queue_put(s->queue, j)) {
        x->job = j;
        x->is_look = is_look;
        s->looks += (size_t)is_look;
        return;
    }
    job_close(&j);
    exchange_fail(x, 429, "%zu requests are waiting: try again", s->most.queue);
}

static const char *path_of(size_t i) {
    return i < ROUTES ? routes[i].path : "other";
}

static void write_number(buffer *b, const char *name, const char *type, const char *help, double value) {
    buffer_print(b, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name, type, name, value);
}

void metrics_begin(exchange *x) {
    buffer *b = &x->answer;
    pass_counts all = queue_counts(x->of->queue);
    metrics_write(b, x->of->metrics, path_of);
    write_number(b, "bert_queue_waiting", "gauge", "Requests that wait for the model.",
                 (double)queue_waiting(x->of->queue));
    write_number(b, "bert_passes_total", "counter", "Passes through a model.", (double)all.passes);
    write_number(b, "bert_pass_requests_total", "counter", "Requests in them.", (double)all.jobs);
    write_number(b, "bert_pass_texts_total", "counter", "Texts in them.", (double)all.texts);
    write_number(b, "bert_pass_tokens_total", "counter", "Tokens in them.", (double)all.tokens);
    write_number(b, "bert_pass_seconds_total", "counter", "Time that they took.", (double)all.busy_ns * 1e-9);
    write_number(b, "bert_connections", "gauge", "Connections that are open.", (double)x->of->connections);
    exchange_answer(x, "text/plain; version=0.0.4; charset=utf-8");
}

void exchange_close(exchange **at) {
    exchange *x = *at;
    if (!x) return;
    x->of->looks -= (size_t)x->is_look;
    job_close(&x->job);
    buffer_close(&x->body);
    buffer_close(&x->allowed);
    buffer_close(&x->answer);
    free(x);
    *at = NULL;
}
