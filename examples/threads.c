/* threads.c: one model, eight threads, a session each: the same bits as one thread.
 *
 *     cc -o threads threads.c $(pkg-config --cflags --libs bert)
 *     ./threads models/all-MiniLM-L6-v2
 *
 * A model and its tokenizer never change after they are opened, so threads share them without a lock. A session is
 * scratch memory and belongs to one thread at a time.
 */
#include <bert/bert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define ROUNDS 4
#define TEXT(words)                                                                                                    \
    { words, sizeof(words) - 1, NULL, 0 }

static const bert_text texts[] = {
    TEXT("The quick brown fox jumps over the lazy dog."),
    TEXT("Short."),
    TEXT(""),
    TEXT("A longer sentence, which has a few more words than the others, so that the batch is uneven."),
};
enum { TEXTS = sizeof texts / sizeof *texts };

typedef struct job {
    const bert_pipeline *pipeline;
    float *vectors; /* [TEXTS, dim] */
    bert_status status;
    bert_error err;
} job;

static void *embed(void *arg) {
    job *j = arg;
    bert_session *session = NULL;
    j->status = bert_session_open(&session, bert_pipeline_model(j->pipeline), NULL, &j->err);
    for (int round = 0; round < ROUNDS && j->status == BERT_OK; round++)
        j->status = bert_embed(session, j->pipeline, j->vectors, texts, TEXTS, NULL, NULL, &j->err);
    bert_session_close(&session);
    return NULL;
}

/* Runs n jobs at the same time; how many of them failed or gave other bits than `expected` (NULL: not compared). */
static int run_jobs(job *jobs, int n, const float *expected, size_t bytes) {
    pthread_t threads[THREADS];
    int started = 0, bad = 0;
    while (started < n && pthread_create(&threads[started], NULL, embed, &jobs[started]) == 0) started++;
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < started; i++) {
        if (jobs[i].status != BERT_OK) fprintf(stderr, "threads: %s\n", jobs[i].err.text);
        bad += jobs[i].status != BERT_OK || (expected && memcmp(jobs[i].vectors, expected, bytes) != 0);
    }
    return bad + (n - started);
}

int main(int argc, char **argv) {
    bert_error err;
    bert_pipeline *pipeline = NULL;
    if (bert_pipeline_open(&pipeline, argc > 1 ? argv[1] : "models/all-MiniLM-L6-v2", NULL, &err) != BERT_OK) {
        fprintf(stderr, "threads: %s\n", err.text);
        return 1;
    }
    size_t count = TEXTS * bert_pipeline_dim(pipeline, NULL);
    float *vectors = calloc((THREADS + 1) * count, sizeof *vectors);
    job jobs[THREADS + 1];
    int bad = vectors ? 0 : THREADS;
    for (size_t i = 0; i <= THREADS && vectors; i++)
        jobs[i] = (job){.pipeline = pipeline, .vectors = vectors + i * count};
    if (vectors)
        bad = run_jobs(jobs, 1, NULL, 0) ? THREADS : run_jobs(jobs + 1, THREADS, vectors, count * sizeof *vectors);
    printf("%d of %d threads gave the same bits as one thread alone\n", THREADS - bad, THREADS);
    free(vectors);
    bert_pipeline_close(&pipeline);
    return bad ? 1 : 0;
}
