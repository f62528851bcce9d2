/* base/pool.c: a fork-join pool. One job at a time; its tasks are handed out by a counter.
 *
 * A job is published by storing its fields and then the number of its tasks in `open`. Whoever takes `open` down from
 * above 0 owns one task; only an owner may read the fields, and they stay as they are until `unfinished` has come down
 * to 0, which needs every owner. A worker that was late for one job and takes from the counter of the next thus simply
 * owns a task of the next.
 */
#include <bert/base.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/size.h"

/* Some 20 to 100 µs: longer than the serial steps between two jobs of a pass, shorter than anyone minds. */
enum { SPINS = 2000, MAX_THREADS = 1024, STACK_BYTES = 1 << 20 };

struct bert_pool {
    bert_workers workers; /* what callers get; its user is this pool */
    bert_fork_mark mark;  /* of the process whose threads these are */
    int spins;
    pthread_mutex_t turn; /* held for a whole job: concurrent run() calls queue up here */

    void (*task)(void *arg, int i);
    void *arg;
    int n;
    _Alignas(64) atomic_int open; /* tasks that nobody has taken */
    _Alignas(64) atomic_int unfinished;

    _Alignas(64) pthread_mutex_t sleep; /* guards nothing but falling asleep and waking up */
    pthread_cond_t work, done;
    atomic_int sleepers, caller_sleeps, closing;

    int started; /* threads to join */
    pthread_t thread[];
};

static void finish_one(bert_pool *pool) {
    if (atomic_fetch_sub(&pool->unfinished, 1) > 1) return;
    if (!atomic_load(&pool->caller_sleeps)) return;
    pthread_mutex_lock(&pool->sleep);
    pthread_cond_signal(&pool->done);
    pthread_mutex_unlock(&pool->sleep);
}

static void take_tasks(bert_pool *pool) {
    while (atomic_load(&pool->open) > 0) {
        const int left = atomic_fetch_sub(&pool->open, 1);
        if (left <= 0) return;
        pool->task(pool->arg, pool->n - left);
        finish_one(pool);
    }
}

static int has_work(bert_pool *pool) {
    return atomic_load(&pool->open) > 0 || atomic_load(&pool->closing);
}

static void wait_for_work(bert_pool *pool) {
    for (int i = 0; i < pool->spins; i++) {
        if (has_work(pool)) return;
        bert_cpu_pause();
    }
    pthread_mutex_lock(&pool->sleep);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!has_work(pool)) pthread_cond_wait(&pool->work, &pool->sleep);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->sleep);
}

static void *worker(void *arg) {
    bert_pool *pool = arg;
    while (!atomic_load(&pool->closing)) {
        take_tasks(pool);
        wait_for_work(pool);
    }
    return NULL;
}

/* Sequentially consistent on both sides: either the sleeper sees the new value, or we see the sleeper. */
static void wake(bert_pool *pool, int at_most) {
    const int sleepers = atomic_load(&pool->sleepers);
    if (sleepers == 0) return;
    pthread_mutex_lock(&pool->sleep);
    if (at_most >= sleepers) {
        pthread_cond_broadcast(&pool->work);
    } else {
        for (int i = 0; i < at_most; i++) pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->sleep);
}

static void wait_for_end(bert_pool *pool) {
    for (int i = 0; i < pool->spins; i++) {
        if (atomic_load(&pool->unfinished) == 0) return;
        bert_cpu_pause();
    }
    pthread_mutex_lock(&pool->sleep);
    atomic_store(&pool->caller_sleeps, 1);
    while (atomic_load(&pool->unfinished) > 0) pthread_cond_wait(&pool->done, &pool->sleep);
    atomic_store(&pool->caller_sleeps, 0);
    pthread_mutex_unlock(&pool->sleep);
}

static void run_shared(bert_pool *pool, int n, void (*task)(void *arg, int i), void *arg) {
    pthread_mutex_lock(&pool->turn);
    pool->task = task;
    pool->arg = arg;
    pool->n = n;
    atomic_store(&pool->unfinished, n);
    atomic_store(&pool->open, n);
    wake(pool, n - 1);
    take_tasks(pool);
    wait_for_end(pool);
    pthread_mutex_unlock(&pool->turn);
}

/* After fork() the child has this memory but none of the threads; the caller's own thread is always there. */
static void run(void *user, int n, void (*task)(void *arg, int i), void *arg) {
    bert_pool *pool = user;
    if (n > 1 && pool->workers.width > 1 && !bert_fork_happened(&pool->mark)) {
        run_shared(pool, n, task, arg);
        return;
    }
    for (int i = 0; i < n; i++) task(arg, i);
}

/* Signals are for the host's threads: workers are born with all of them blocked. */
static int start_workers(bert_pool *pool) {
    sigset_t all, before;
    pthread_attr_t attributes;
    int failed = pthread_attr_init(&attributes);
    if (failed) return failed;
    failed = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!failed && pool->started < pool->workers.width - 1) {
        failed = pthread_create(&pool->thread[pool->started], &attributes, worker, pool);
        if (!failed) pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed;
}

static bert_pool *new_pool(int threads, int allowed) {
    const size_t align = _Alignof(bert_pool);
    const size_t bytes = bert_round_up(sizeof(bert_pool) + (size_t)threads * sizeof(pthread_t), align);
    bert_pool *pool = aligned_alloc(align, bytes);
    if (pool == NULL) return NULL;
    memset(pool, 0, bytes);
    pool->workers = (bert_workers){.user = pool, .width = threads, .run = run};
    bert_fork_mark_open(&pool->mark);
    pool->spins = threads <= allowed ? SPINS : 0; /* with fewer CPUs, spinning keeps others from working */
    pthread_mutex_init(&pool->turn, NULL);
    pthread_mutex_init(&pool->sleep, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    return pool;
}

bert_status bert_pool_open(bert_pool **pool, int threads, bert_error *err) {
    *pool = NULL;
    const int allowed = bert_cpu_threads("");
    if (threads == 0) threads = allowed < MAX_THREADS ? allowed : MAX_THREADS;
    if (threads < 0 || threads > MAX_THREADS) {
        return bert_fail(err, BERT_INVALID_ARGUMENT, "pool: %d threads, expected 0 to %d", threads, MAX_THREADS);
    }
    bert_pool *p = new_pool(threads, allowed);
    if (p == NULL) return bert_fail(err, BERT_NO_MEMORY, "pool: no memory for %d threads", threads);
    const int failed = start_workers(p);
    if (failed) {
        const int started = p->started + 1; /* the calling thread is one of them */
        bert_pool_close(&p);
        return bert_fail(err, BERT_NO_MEMORY, "pool: %d of %d threads, then: %s", started, threads, strerror(failed));
    }
    *pool = p;
    return BERT_OK;
}

const bert_workers *bert_pool_workers(const bert_pool *pool) {
    return &pool->workers;
}

/* In a child after fork() there is nobody to wake or join, and what the locks were doing is unknown. */
void bert_pool_close(bert_pool **pool) {
    if (pool == NULL || *pool == NULL) return;
    bert_pool *p = *pool;
    *pool = NULL;
    if (!bert_fork_happened(&p->mark)) {
        pthread_mutex_lock(&p->sleep);
        atomic_store(&p->closing, 1);
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->sleep);
        for (int i = 0; i < p->started; i++) pthread_join(p->thread[i], NULL);
        pthread_cond_destroy(&p->done);
        pthread_cond_destroy(&p->work);
        pthread_mutex_destroy(&p->sleep);
        pthread_mutex_destroy(&p->turn);
    }
    bert_fork_mark_close(&p->mark);
    free(p);
}
