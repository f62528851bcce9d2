#include "respond.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int descriptor(struct MHD_Connection *c) {
    return MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/* The path of "http://host/path": both forms of a target mean the same (RFC 9112, section 3.2.2). */
static const char *path_of(const char *url) {
    if (strncmp(url, "http://", 7) != 0) return url;
    const char *slash = strchr(url + 7, '/');
    return slash ? slash : "/";
}

/* 1 if `given` is the key, blanks behind it apart; takes the same time however much of it is right. */
static int is_key(const char *key, const char *given) {
    size_t n = strlen(key), m = strlen(given);
    while (m && (given[m - 1] == ' ' || given[m - 1] == '\t')) m--;
    unsigned char differ = n != m;
    for (size_t i = 0; i < m; i++) differ |= (unsigned char)(given[i] ^ key[i % n]);
    return !differ;
}

static int is_allowed(const exchange *x, struct MHD_Connection *c) {
    static const char scheme[] = "Bearer ";
    if (!x->of->key || (x->route && x->route->open_to_all)) return 1;
    const char *given = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    return given && strncasecmp(given, scheme, sizeof scheme - 1) == 0 && is_key(x->of->key, given + sizeof scheme - 1);
}

static void add_number(struct MHD_Response *r, const char *name, uint64_t n) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    MHD_add_response_header(r, name, text);
}

/* What is known of the texts, and of the time that they took (milliseconds, as text-embeddings-inference has it). */
static void add_facts(struct MHD_Response *r, const exchange *x) {
    const job *j = x->job;
    int64_t now = now_ns();
    if (!x->tokens) return;
    add_number(r, "x-compute-tokens", x->tokens);
    add_number(r, "x-truncated-texts", x->truncated_texts);
    add_number(r, "x-truncated-tokens", x->truncated_tokens);
    add_number(r, "x-total-time", (uint64_t)(now - x->began_ns) / 1000000);
    if (!j) return;
    add_number(r, "x-queue-time", (uint64_t)(j->began_ns - j->queued_ns) / 1000000);
    add_number(r, "x-inference-time", (uint64_t)(j->ended_ns - j->began_ns) / 1000000);
}

static void count(const exchange *x) {
    size_t number = x->route ? (size_t)(x->route - route_at(0)) : route_count();
    size_t texts = x->job && x->status == 200 ? x->job->n : 0;
    metrics_count(x->of->metrics, number, x->status, now_ns() - x->began_ns, texts, texts ? x->tokens : 0,
                  texts ? x->truncated_texts : 0);
}

/* Sends the answer, which becomes libmicrohttpd's. */
static enum MHD_Result send_answer(const responder *to, exchange *x, struct MHD_Connection *c) {
    size_t n = x->answer.len;
    struct MHD_Response *r = MHD_create_response_from_buffer(n, x->answer.data, MHD_RESPMEM_MUST_FREE);
    if (!r) return MHD_NO;
    x->answer = (buffer){0};
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, x->type);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (x->status == 429 || x->status == 503) MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (x->status == 401) MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (x->status == 405) MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, x->allowed.data);
    if (to->draining || to->peers->at[x->descriptor].last)
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    add_facts(r, x);
    count(x);
    enum MHD_Result sent = MHD_queue_response(c, (unsigned)x->status, r);
    MHD_destroy_response(r);
    peers_enter(to->peers, x->descriptor, PEER_SEND);
    return sent;
}

/* The body is there. */
static enum MHD_Result begin(const responder *to, exchange *x, struct MHD_Connection *c, const char *url,
                             const char *method) {
    int wrong = route_find(&x->route, method, path_of(url), &x->allowed);
    if (to->draining)
        exchange_fail(x, 503, "the server is shutting down");
    else if (!is_allowed(x, c))
        exchange_fail(x, 401, "expected the header Authorization: Bearer KEY with this server's key");
    else if (x->body.len > x->of->most.body)
        exchange_fail(x, 413, "the body has more than %zu bytes", x->of->most.body);
    else if (wrong == 404)
        exchange_fail(x, 404, "there is nothing here (/ in a browser, /v1/embeddings, /embed, /attention, …)");
    else if (wrong)
        exchange_fail(x, 405, "expected the method %s", x->allowed.data);
    else
        x->route->begin(x);
    if (x->status) return send_answer(to, x, c);
    MHD_suspend_connection(c);
    peers_enter(to->peers, x->descriptor, PEER_WORK);
    to->peers->at[x->descriptor].work = x;
    return MHD_YES;
}

/* A body of unknown length that goes on behind the limit is read a little further, so that its client sees the answer,
 * then cut off. */
static enum MHD_Result take_body(exchange *x, const char *data, size_t *size) {
    size_t most = x->of->most.body;
    if (x->body.len + *size > 2 * most) return MHD_NO;
    if (x->body.len <= most) buffer_add(&x->body, data, *size);
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result open_exchange(const responder *to, struct MHD_Connection *c, void **place) {
    if (to->peers->at[descriptor(c)].stage != PEER_BODY) return MHD_NO; /* pipelined: its head was not looked at */
    exchange *x = need(1, sizeof *x);
    *x = (exchange){.of = to->of, .connection = c, .descriptor = descriptor(c), .began_ns = now_ns()};
    *place = x;
    return MHD_YES;
}

enum MHD_Result respond(void *cls, struct MHD_Connection *c, const char *url, const char *method, const char *version,
                        const char *data, size_t *size, void **place) {
    const responder *to = cls;
    exchange *x = *place;
    (void)version;
    if (!x) return open_exchange(to, c, place);
    if (*size) return take_body(x, data, size);
    if (!x->job) return begin(to, x, c, url, method);
    x->route->end(x);
    return send_answer(to, x, c);
}

void respond_completed(void *cls, struct MHD_Connection *c, void **place, enum MHD_RequestTerminationCode why) {
    const responder *to = cls;
    exchange *x = *place;
    (void)why;
    exchange_close(&x);
    *place = NULL;
    peers_enter(to->peers, descriptor(c), PEER_HEAD);
}

void respond_connection(void *cls, struct MHD_Connection *c, void **place, enum MHD_ConnectionNotificationCode what) {
    const responder *to = cls;
    (void)place;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) peers_remove(to->peers, descriptor(c));
    to->of->connections = to->peers->n;
}
