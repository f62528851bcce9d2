/* Many threads on one model, models opened and closed beside them, two models in one process: the bits of each alone.
 * scripts/check tsan runs this under ThreadSanitizer with a thousand rounds ($BERT_TEST_ROUNDS). */
#include <criterion/criterion.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

enum { THREADS = 8, ROOM = 128, TEXTS = 3 };

static const bert_text texts[TEXTS] = {{"the cat sat on the mat", 22, NULL, 0}, {"a", 1, "b c", 3}, {"", 0, NULL, 0}};
static const char *const names[] = {"tiny-bert", "tiny-bert-gelu-new", "tiny-bert-sharded", "tiny-bert-f16"};
enum { NAMES = sizeof names / sizeof *names };
static float alone[NAMES][TEXTS * ROOM]; /* what one thread gives by itself */

static int rounds(int usual) {
    const char *asked = getenv("BERT_TEST_ROUNDS");
    return asked != NULL ? atoi(asked) : usual;
}

static bert_pipeline *open_pipeline(size_t which) {
    char path[PATH_MAX];
    bert_pipeline *pipeline;
    bert_error err = {BERT_OK, ""};
    snprintf(path, sizeof path, "%s/models/%s", getenv("BERT_TEST_DATA"), names[which]);
    const bert_status status = bert_pipeline_open(&pipeline, path, NULL, &err);
    cr_assert_eq(status, BERT_OK, "%s", err.text);
    return pipeline;
}

typedef struct worker {
    const bert_pipeline *pipeline; /* NULL: opens its own each round */
    size_t which;
    int rounds, differ;
} worker;

/* Encodes with a new session every eighth round; counts the rounds whose bits are not those of the model alone. */
static void *encode(void *arg) {
    worker *w = arg;
    bert_session *session = NULL;
    for (int round = 0; round < w->rounds; round++) {
        float vectors[TEXTS * ROOM];
        if (round % 8 == 0) bert_session_close(&session);
        bert_status status = BERT_OK;
        if (session == NULL) status = bert_session_open(&session, bert_pipeline_model(w->pipeline), NULL, NULL);
        if (status == BERT_OK) status = bert_embed(session, w->pipeline, vectors, texts, TEXTS, NULL, NULL, NULL);
        const size_t bytes = TEXTS * bert_pipeline_dim(w->pipeline, NULL) * sizeof *vectors;
        w->differ += status != BERT_OK || memcmp(vectors, alone[w->which], bytes) != 0;
    }
    bert_session_close(&session);
    return NULL;
}

static void *open_and_close(void *arg) {
    worker *w = arg;
    for (int round = 0; round < w->rounds; round++) {
        bert_pipeline *pipeline = open_pipeline(w->which);
        worker once = {pipeline, w->which, 1, 0};
        encode(&once);
        w->differ += once.differ;
        bert_pipeline_close(&pipeline);
    }
    return NULL;
}

static void run(void *(*const body[THREADS])(void *), worker workers[THREADS]) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) cr_assert_eq(pthread_create(&threads[i], NULL, body[i], &workers[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) cr_expect_eq(workers[i].differ, 0, "thread %d: %d rounds", i, workers[i].differ);
}

static void set_up(void) {
    for (size_t i = 0; i < NAMES; i++) {
        bert_pipeline *pipeline = open_pipeline(i);
        bert_session *session;
        cr_assert_leq(bert_pipeline_dim(pipeline, NULL), (size_t)ROOM);
        cr_assert_eq(bert_session_open(&session, bert_pipeline_model(pipeline), NULL, NULL), BERT_OK);
        cr_assert_eq(bert_embed(session, pipeline, alone[i], texts, TEXTS, NULL, NULL, NULL), BERT_OK);
        bert_session_close(&session);
        bert_pipeline_close(&pipeline);
    }
}
TestSuite(threads, .init = set_up);

Test(threads, one_model) {
    bert_pipeline *pipeline = open_pipeline(0);
    worker workers[THREADS];
    void *(*body[THREADS])(void *);
    for (int i = 0; i < THREADS; i++) body[i] = encode, workers[i] = (worker){pipeline, 0, rounds(50), 0};
    run(body, workers);
    bert_pipeline_close(&pipeline);
}

/* Two models that encode, and four threads that open and close models meanwhile. */
Test(threads, several_models) {
    bert_pipeline *pipelines[2] = {open_pipeline(1), open_pipeline(2)};
    worker workers[THREADS];
    void *(*body[THREADS])(void *);
    for (int i = 0; i < THREADS; i++) {
        const bool opens = i >= THREADS / 2;
        const size_t which = opens ? (size_t)i % NAMES : 1 + (size_t)i % 2;
        body[i] = opens ? open_and_close : encode;
        workers[i] = (worker){opens ? NULL : pipelines[which - 1], which, opens ? rounds(50) / 5 : rounds(50), 0};
    }
    run(body, workers);
    for (int i = 0; i < 2; i++) bert_pipeline_close(&pipelines[i]);
}
