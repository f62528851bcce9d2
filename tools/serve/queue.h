/* serve/queue.h: jobs wait here for the one thread that runs models. Texts of many requests go through a model
 * together, up to a budget of tokens a pass; each gets the bits that it would get alone.
 *
 * A pass takes texts in the order in which requests came. A request that does not fit goes on behind all others, so a
 * long list delays a short one by one pass only. Whoever comes while a pass runs is in the next one; when fewer have
 * come than were just answered, the next waits a little (wait_ms) for those who are about to ask again.
 */
#ifndef SERVE_QUEUE_H
#define SERVE_QUEUE_H

#include "job.h"

typedef struct queue queue;

/* What passes there were so far. */
typedef struct pass_counts {
    size_t passes, jobs, texts, tokens;
    int64_t busy_ns;
} pass_counts;

/* `wake`: an eventfd that is written when jobs are done. */
int queue_open(queue **q, const limits *most, int wake);
/* 0: the queue is full, and the job still the caller's. */
int queue_put(queue *q, job *j);
/* Nobody waits for this one any more: what is not done of it will not be. */
void queue_cancel(queue *q, job *j);
/* All that are done, first come first (linked by next); NULL: none. */
job *queue_take(queue *q);
size_t queue_waiting(queue *q);
pass_counts queue_counts(queue *q);
/* Finishes what is queued. */
void queue_close(queue **q);

#endif
