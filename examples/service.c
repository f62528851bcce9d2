/* service.c: a pool of worker threads of one's own over one model: the shape of a service.
 *
 *     cc -o service service.c $(pkg-config --cflags --libs bert)
 *     ./service models/all-MiniLM-L6-v2 4 < texts.txt
 *
 * The main thread reads requests (here: lines) and puts them into a queue; each of the workers has a session and takes
 * what comes next; answers are written in the order of the requests. A model and its tokenizer never change after they
 * are opened, so the workers share them without a lock. What one request does wrong is its own answer: the others go
 * on. A request has a deadline, and SIGINT or SIGTERM ends all that are running within milliseconds.
 */
#define _POSIX_C_SOURCE 200809L
#include <bert/bert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { QUEUE = 64, MAX_WORKERS = 64, SHOWN = 4 };
#define DEADLINE_NS (10 * INT64_C(1000000000))

typedef struct job {
    char *text;
    size_t len;
    int64_t deadline_ns; /* counted from the request, so waiting in the queue is part of it */
    float *vector;       /* [dim], stays with the place in the ring */
    bert_embed_info info;
    bert_status status;
    bert_error err;
    int done;
} job;

/* Jobs are numbered as they come; job i is in ring[i % QUEUE]. answered <= taken <= asked <= answered + QUEUE. */
typedef struct queue {
    const bert_pipeline *pipeline;
    size_t dim;
    pthread_mutex_t lock; /* for all below, but not for what is in a job that a worker has taken */
    pthread_cond_t work, answer;
    job ring[QUEUE];
    size_t asked, taken, answered;
    int closed;
} queue;

static volatile int stop; /* read by every pass, written by the signal handler */

static void on_signal(int number) {
    (void)number;
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* the clock that deadlines are read on */
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- A worker. ---- */

static job *take(queue *q) {
    job *j = NULL;
    pthread_mutex_lock(&q->lock);
    while (q->taken == q->asked && !q->closed) pthread_cond_wait(&q->work, &q->lock);
    if (q->taken < q->asked) j = &q->ring[q->taken++ % QUEUE];
    pthread_mutex_unlock(&q->lock);
    return j;
}

static void finish(queue *q, job *j) {
    pthread_mutex_lock(&q->lock);
    j->done = 1;
    pthread_cond_signal(&q->answer);
    pthread_mutex_unlock(&q->lock);
}

static void run(const queue *q, bert_session *session, job *j) {
    bert_run_options pass = BERT_RUN_OPTIONS_INIT;
    bert_embed_options options = BERT_EMBED_OPTIONS_INIT;
    bert_text text = {.a = j->text, .a_len = j->len};
    pass.stop = &stop;
    pass.deadline_ns = j->deadline_ns;
    options.run = &pass;
    j->status = bert_embed(session, q->pipeline, j->vector, &text, 1, &options, &j->info, &j->err);
}

/* After an error a session can be used again, so the worker goes on. */
static void *work(void *arg) {
    queue *q = arg;
    bert_session *session = NULL;
    bert_error err = {0};
    bert_status opened = bert_session_open(&session, bert_pipeline_model(q->pipeline), NULL, &err);
    for (job *j; (j = take(q)); finish(q, j)) {
        if (opened == BERT_OK) {
            run(q, session, j);
        } else {
            j->status = opened;
            j->err = err;
        }
    }
    bert_session_close(&session);
    return NULL;
}

/* ---- The main thread. ---- */

/* Writes the answers that are there, in order; waits for them where the queue is full, or `all`. How many failed. */
static size_t write_answers(queue *q, int all) {
    size_t failed = 0;
    pthread_mutex_lock(&q->lock);
    while (q->answered < q->asked) {
        job *j = &q->ring[q->answered % QUEUE];
        if (!j->done && !all && q->asked - q->answered < QUEUE) break;
        while (!j->done) pthread_cond_wait(&q->answer, &q->lock);
        size_t number = ++q->answered;
        pthread_mutex_unlock(&q->lock); /* the job is ours now; the workers need not wait for the terminal */
        if (j->status == BERT_OK) {
            printf("%zu tokens%s:", j->info.tokens, j->info.truncated ? ", cut" : "");
            for (size_t i = 0; i < q->dim && i < SHOWN; i++) printf(" %.9g", (double)j->vector[i]);
            printf(" …\n");
        } else {
            fprintf(stderr, "service: text %zu: %s\n", number, j->err.text);
            failed++;
        }
        free(j->text);
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    fflush(stdout);
    return failed;
}

static void ask(queue *q, char *text, size_t len) {
    pthread_mutex_lock(&q->lock);
    job *j = &q->ring[q->asked++ % QUEUE];
    j->text = text, j->len = len, j->done = 0;
    j->deadline_ns = now_ns() + DEADLINE_NS;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
}

/* Requests until the input ends or a signal comes: it interrupts getline. (One that comes just before getline waits for
 * the next line; a server waits in ppoll, which has no such gap.) How many failed. */
static size_t serve(queue *q) {
    size_t failed = 0;
    while (!stop) {
        char *line = NULL;
        size_t room = 0;
        ssize_t len = getline(&line, &room, stdin);
        if (len < 0) {
            free(line);
            break;
        }
        if (line[len - 1] == '\n') len--;
        ask(q, line, (size_t)len);
        failed += write_answers(q, 0);
    }
    return failed + write_answers(q, 1);
}

/* Workers block the signals, so that it is the main thread that they interrupt. How many started. */
static int start_workers(queue *q, pthread_t *workers, int wanted) {
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART */
    sigset_t ours, before;
    int n = 0;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    while (n < wanted && n < MAX_WORKERS && pthread_create(&workers[n], NULL, work, q) == 0) n++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n;
}

static void end_workers(queue *q, pthread_t *workers, int n) {
    pthread_mutex_lock(&q->lock);
    q->closed = 1;
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
    for (int i = 0; i < n; i++) pthread_join(workers[i], NULL);
}

/* The weights are read before there are workers: none of them does it in a pass while the others wait. */
static bert_status open_model(bert_pipeline **pipeline, const char *folder, bert_error *err) {
    bert_status status = bert_pipeline_open(pipeline, folder, NULL, err);
    return status ? status : bert_model_prepare(bert_pipeline_model(*pipeline), err);
}

int main(int argc, char **argv) {
    static queue q = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER,
                      .answer = PTHREAD_COND_INITIALIZER};
    pthread_t workers[MAX_WORKERS];
    bert_pipeline *pipeline = NULL;
    bert_error err = {.text = "no memory, or no threads"};
    int started = 0;
    if (open_model(&pipeline, argc > 1 ? argv[1] : "models/all-MiniLM-L6-v2", &err) == BERT_OK) {
        q.pipeline = pipeline;
        q.dim = bert_pipeline_dim(pipeline, NULL);
    }
    float *vectors = q.pipeline ? malloc(QUEUE * q.dim * sizeof *vectors) : NULL; /* [QUEUE, dim] */
    for (size_t i = 0; i < QUEUE && vectors; i++) q.ring[i].vector = vectors + i * q.dim;
    if (vectors) started = start_workers(&q, workers, argc > 2 ? atoi(argv[2]) : 4);
    if (!started) fprintf(stderr, "service: %s\n", err.text);
    size_t failed = started ? serve(&q) : 1;
    end_workers(&q, workers, started);
    free(vectors);
    bert_pipeline_close(&pipeline);
    return failed ? 1 : 0;
}
