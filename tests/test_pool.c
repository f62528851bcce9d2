/* The pool: every task exactly once, from any number of callers, through sleep, fork and failure. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bert/base.h>

#include "sanitizers.h"

enum { MAX_TASKS = 1000 };

typedef struct tally {
    atomic_int times[MAX_TASKS];
    int plain[MAX_TASKS]; /* written by the task, read by the caller afterwards: the pool must order the two */
} tally;

static void count_task(void *arg, int i) {
    tally *t = arg;
    atomic_fetch_add(&t->times[i], 1);
    t->plain[i] = i + 1;
}

static int all_once(const bert_workers *workers, int n) {
    static _Thread_local tally t;
    memset(&t, 0, sizeof t);
    workers->run(workers->user, n, count_task, &t);
    for (int i = 0; i < MAX_TASKS; i++) {
        if (atomic_load(&t.times[i]) != (i < n) || t.plain[i] != (i < n ? i + 1 : 0)) return 0;
    }
    return 1;
}

static bert_pool *open_pool(int threads) {
    bert_pool *pool;
    bert_error err;
    cr_assert_eq(bert_pool_open(&pool, threads, &err), BERT_OK, "%s", err.text);
    return pool;
}

static void rest(long us) {
    const struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

Test(pool, every_task_once_for_any_width) {
    for (int threads = 1; threads <= 9; threads++) {
        bert_pool *pool = open_pool(threads);
        const bert_workers *workers = bert_pool_workers(pool);
        cr_expect_eq(workers->width, threads);
        for (int n = 0; n <= 40; n++) cr_assert(all_once(workers, n), "%d threads, %d tasks", threads, n);
        cr_expect(all_once(workers, MAX_TASKS));
        bert_pool_close(&pool);
        cr_expect_null(pool);
        bert_pool_close(&pool);
    }
}

Test(pool, wakes_up_after_sleeping) {
    bert_pool *pool = open_pool(3);
    for (int i = 0; i < 60; i++) {
        rest(i % 3 == 0 ? 5000 : 60); /* asleep for certain; and about to fall asleep */
        cr_assert(all_once(bert_pool_workers(pool), 7));
    }
    bert_pool_close(&pool);
}

static void wait_for_all(void *arg, int i) {
    atomic_int *here = arg;
    (void)i;
    atomic_fetch_add(here, 1);
    while (atomic_load(here) < 4) rest(50);
}

Test(pool, tasks_run_at_the_same_time, .timeout = 60) {
    bert_pool *pool = open_pool(4);
    const bert_workers *workers = bert_pool_workers(pool);
    for (int round = 0; round < 5; round++) {
        atomic_int here = 0;
        workers->run(workers->user, 4, wait_for_all, &here); /* would never end if fewer than 4 threads took part */
        rest(3000);
    }
    bert_pool_close(&pool);
}

static void *call_often(void *arg) {
    for (int i = 0; i < 2000; i++) {
        if (!all_once(arg, 1 + i % 13)) return arg;
    }
    return NULL;
}

Test(pool, callers_queue_up) {
    bert_pool *pool = open_pool(3);
    pthread_t caller[4];
    for (int i = 0; i < 4; i++) pthread_create(&caller[i], NULL, call_often, (void *)bert_pool_workers(pool));
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(caller[i], &failed);
        cr_expect_null(failed);
    }
    bert_pool_close(&pool);
}

Test(pool, threads_asked_for) {
    bert_pool *pool;
    bert_error err;
    cr_expect_eq(bert_pool_open(&pool, -1, &err), BERT_INVALID_ARGUMENT);
    cr_expect_eq(bert_pool_open(&pool, 1025, &err), BERT_INVALID_ARGUMENT);
    cr_expect_str_eq(err.text, "pool: 1025 threads, expected 0 to 1024");
    cr_expect_null(pool);
    pool = open_pool(0);
    cr_expect_geq(bert_pool_workers(pool)->width, 1);
    cr_expect_leq(bert_pool_workers(pool)->width, (int)sysconf(_SC_NPROCESSORS_ONLN));
    bert_pool_close(&pool);
}

static void note_signals(void *arg, int i) {
    sigset_t blocked;
    (void)i;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGUSR1) || !sigismember(&blocked, SIGINT)) atomic_fetch_add((atomic_int *)arg, 1);
    rest(300);
}

Test(pool, workers_block_signals_and_the_caller_does_not) {
    bert_pool *pool = open_pool(4);
    const bert_workers *workers = bert_pool_workers(pool);
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    cr_expect_not(sigismember(&mine, SIGUSR1), "opening the pool left signals blocked");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL); /* so that only the workers' own masks can be found open */
    atomic_int open_masks = 0;
    workers->run(workers->user, 64, note_signals, &open_masks);
    pthread_sigmask(SIG_SETMASK, &mine, NULL);
    cr_expect_eq(atomic_load(&open_masks), 0);
    bert_pool_close(&pool);
}

static int open_own_pool(void) {
    bert_pool *pool;
    if (bert_pool_open(&pool, 3, NULL) != BERT_OK) return 0;
    const int ok = all_once(bert_pool_workers(pool), 50);
    bert_pool_close(&pool);
    return ok;
}

/* Ends with 0 if a child of this process, and a child of that, can compute with the pool, close it, and open another. */
static int child(bert_pool *pool, int generations) {
    const pid_t pid = fork();
    if (pid == 0) {
        int ok = all_once(bert_pool_workers(pool), 50);
        if (generations > 1) ok = ok && child(pool, generations - 1) == 0;
        bert_pool_close(&pool);
        /* QEMU 7 falls over threads that begin in a child of a process with threads. */
        if (getenv("BERT_TEST_EMULATED") == NULL) ok = ok && open_own_pool();
        _exit(!ok);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}

Test(pool, a_child_works_alone, .timeout = 60) {
    if (BERT_TEST_TSAN) cr_skip_test("ThreadSanitizer allows no threads after a fork with threads");
    bert_pool *pool = open_pool(4);
    const bert_workers *workers = bert_pool_workers(pool);
    atomic_int here = 0;
    /* All have begun: a thread that is still beginning holds AddressSanitizer's allocator, in the child for ever. */
    workers->run(workers->user, 4, wait_for_all, &here);
    cr_assert(all_once(workers, 50));
    cr_expect_eq(child(pool, 2), 0);
    cr_expect(all_once(workers, 50), "the parent goes on with its threads");
    bert_pool_close(&pool);
}
