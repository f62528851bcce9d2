#include "queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "buffer.h"
#include "look.h"
#include "pass.h"
#include "say.h"

/* Jobs in order. */
typedef struct list {
    job *first, **last;
    size_t n;
} list;

struct queue {
    limits most;
    int wake;
    pthread_t thread;
    int has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    list waiting, done; /* these and what follows: under the lock */
    size_t waiting_tokens;
    size_t expected;    /* jobs that may come soon: those that were in the last pass */
    int closing;
    pass_counts counts;
    pass pass; /* the thread's own from here on */
    size_t pass_jobs;
};

static void add(list *l, job *j) {
    j->next = NULL;
    *(l->first ? l->last : &l->first) = j;
    l->last = &j->next;
    l->n++;
}

static job *take_first(list *l) {
    job *j = l->first;
    l->first = j->next;
    l->n--;
    return j;
}

static size_t tokens_left(const job *j) {
    return j->start[j->n] - j->start[j->taken];
}

/* Those who were just answered are likely to ask again at once. */
static void wait_for_company(queue *q) {
    struct timespec until;
    int64_t t = now_ns() + (int64_t)q->most.wait_ms * 1000000;
    until.tv_sec = t / 1000000000;
    until.tv_nsec = t % 1000000000;
    while (!q->closing && q->waiting.n < q->expected && q->waiting_tokens < q->most.pass_tokens)
        if (pthread_cond_timedwait(&q->changed, &q->lock, &until)) return;
}

/* Texts of j as far as they fit; the first one of a pass always does. */
static void take_texts(queue *q, job *j) {
    pass *p = &q->pass;
    size_t before = tokens_left(j);
    if (!j->taken) j->began_ns = now_ns();
    while (j->taken < j->n) {
        size_t tokens = j->start[j->taken + 1] - j->start[j->taken];
        if (p->n && p->tokens + tokens > q->most.pass_tokens) break;
        pass_add(p, j, j->taken++);
    }
    q->waiting_tokens -= before - tokens_left(j);
    q->pass_jobs++;
}

static void finish(queue *q, job *j, int64_t now) {
    j->ended_ns = now;
    add(&q->done, j);
}

/* Hands back the jobs for which nobody waits. */
static void drop_cancelled(queue *q) {
    list all = q->waiting;
    q->waiting = (list){0};
    while (all.first) {
        job *j = take_first(&all);
        if (!j->cancelled) {
            add(&q->waiting, j);
            continue;
        }
        q->waiting_tokens -= tokens_left(j);
        j->failure = (bert_error){BERT_STOPPED, "the client has gone"};
        finish(q, j, now_ns());
        eventfd_write(q->wake, 1);
    }
}

/* The next pass: a job for attention alone, or texts of one model. Returns that job, or NULL. The pass may be empty. */
static job *choose(queue *q) {
    q->pass.n = q->pass.tokens = q->pass_jobs = 0;
    drop_cancelled(q);
    list all = q->waiting, later = {0};
    if (!all.first) return NULL;
    const job *first = all.first;
    q->waiting = (list){0};
    if (all.first->look) {
        job *j = take_first(&all);
        q->waiting_tokens -= tokens_left(j);
        j->began_ns = now_ns();
        q->waiting = all;
        return j;
    }
    while (all.first) {
        job *j = take_first(&all);
        int alike = j->model == first->model && j->ranks == first->ranks && !j->look;
        int fits = alike && q->pass.tokens < q->most.pass_tokens;
        if (fits) take_texts(q, j);
        if (j->taken == j->n) continue; /* the pass has it */
        add(fits && j->taken ? &later : &q->waiting, j);
    }
    while (later.first) add(&q->waiting, take_first(&later));
    return NULL;
}

/* Hands back the jobs that have all of their texts now. */
static void settle(queue *q, job *alone, int64_t began) {
    int64_t now = now_ns();
    const pass *p = &q->pass;
    if (alone) finish(q, alone, now);
    for (size_t i = 0; i < p->n; i++) {
        job *j = p->items[i].of;
        int last_of_job = i + 1 == p->n || p->items[i + 1].of != j;
        if (last_of_job && j->done == j->n) finish(q, j, now);
    }
    q->expected = q->pass_jobs;
    q->counts.passes++;
    q->counts.jobs += alone ? 1 : q->pass_jobs;
    q->counts.texts += alone ? alone->n : p->n;
    q->counts.tokens += alone ? alone->start[alone->n] : p->tokens;
    q->counts.busy_ns += now - began;
    eventfd_write(q->wake, 1);
}

static void *work(void *user) {
    queue *q = user;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->waiting.first && !q->closing) pthread_cond_wait(&q->changed, &q->lock);
        if (!q->waiting.first) break;
        wait_for_company(q);
        job *alone = choose(q);
        if (!alone && !q->pass.n) continue;
        pthread_mutex_unlock(&q->lock);
        int64_t began = now_ns();
        if (alone)
            look_run(alone);
        else
            pass_run(&q->pass);
        pthread_mutex_lock(&q->lock);
        settle(q, alone, began);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

int queue_open(queue **at, const limits *most, int wake) {
    queue *q = need(1, sizeof *q);
    pthread_condattr_t monotonic;
    *q = (queue){.most = *most, .wake = wake};
    *at = q;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int failed = pthread_create(&q->thread, NULL, work, q);
    q->has_thread = !failed;
    return failed ? say_error("cannot start a thread: %s", strerror(failed)) : 0;
}

int queue_put(queue *q, job *j) {
    pthread_mutex_lock(&q->lock);
    int room = q->waiting.n < q->most.queue;
    if (room) {
        j->queued_ns = now_ns();
        q->waiting_tokens += j->start[j->n];
        add(&q->waiting, j);
        pthread_cond_signal(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return room;
}

void queue_cancel(queue *q, job *j) {
    pthread_mutex_lock(&q->lock);
    j->cancelled = 1;
    pthread_mutex_unlock(&q->lock);
}

job *queue_take(queue *q) {
    pthread_mutex_lock(&q->lock);
    job *first = q->done.first;
    q->done = (list){0};
    pthread_mutex_unlock(&q->lock);
    return first;
}

size_t queue_waiting(queue *q) {
    pthread_mutex_lock(&q->lock);
    size_t n = q->waiting.n;
    pthread_mutex_unlock(&q->lock);
    return n;
}

pass_counts queue_counts(queue *q) {
    pthread_mutex_lock(&q->lock);
    pass_counts counts = q->counts;
    pthread_mutex_unlock(&q->lock);
    return counts;
}

void queue_close(queue **at) {
    queue *q = *at;
    if (!q) return;
    pthread_mutex_lock(&q->lock);
    q->closing = 1;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    if (q->has_thread) pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    pass_close(&q->pass);
    free(q);
    *at = NULL;
}
