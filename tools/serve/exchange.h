/* serve/exchange.h: one request and what is answered. Knows nothing of connections. */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H

#include "buffer.h"
#include "metrics.h"
#include "queue.h"

typedef struct service {
    limits most;
    models models;
    queue *queue;
    metrics *metrics;
    char *key; /* what clients must know; NULL: nothing */
    size_t connections; /* that are open */
    size_t looks; /* requests for attention that are not answered yet */
} service;

struct route;

typedef struct exchange {
    service *of;
    const struct route *route; /* NULL: no such path */
    buffer body;
    buffer allowed; /* methods, where the request had another */
    job *job; /* has been given to the queue; NULL: none */
    int status; /* of the answer; 0: there is none yet */
    const char *type;
    buffer answer;
    size_t tokens, truncated_texts, truncated_tokens;
    int is_look;             /* counted in of->looks */
    int base64, raw_scores, return_text; /* what the request said about its answer */
    int64_t began_ns, tokenized_ns;
    void *connection; /* the server's, */
    int descriptor;   /* and its socket */
} exchange;

typedef struct route {
    const char *method, *path;
    /* Reads the request; fills the answer, or gives a job to the queue. */
    void (*begin)(exchange *x);
    /* The job is done: fills the answer. NULL: there never is one. */
    void (*end)(exchange *x);
    int open_to_all; /* no key is asked for */
} route;

/* Sets *found, which is NULL, to what a request asks for. 0: there is one; else the status to answer with: 404, or 405
 * with the methods that it has in `allowed`. */
int route_find(const route **found, const char *method, const char *path, buffer *allowed);
size_t route_count(void);
const route *route_at(size_t i);

/* The answer is an error: JSON as clients of that path expect it. Returns `status`. */
int exchange_fail(exchange *x, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for what the library said: 413, 422, 500 or 503. */
int exchange_fail_by(exchange *x, const bert_error *err);
/* The answer is what has been put into x->answer. */
void exchange_answer(exchange *x, const char *type);
/* Gives the job to the queue, or answers 429. */
void exchange_queue(exchange *x, job *j);
void exchange_close(exchange **x);

/* The endpoints. */
void openai_embeddings(exchange *x);
void openai_embeddings_done(exchange *x);
void openai_models(exchange *x);
void tei_embed(exchange *x);
void tei_embed_done(exchange *x);
void rerank_begin(exchange *x);
void rerank_done(exchange *x);
void tei_tokenize(exchange *x);
void tei_info(exchange *x);
void tei_health(exchange *x);
void attention_begin(exchange *x);
void attention_done(exchange *x);
void page_front(exchange *x);
void page_begin(exchange *x);
void metrics_begin(exchange *x);

#endif
