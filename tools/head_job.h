/* head_job.h: what the subcommands of task heads have in common: texts in, an object of JSON for each of them out. */
#ifndef HEAD_JOB_H
#define HEAD_JOB_H

#include "engine.h"
#include "window.h"

typedef struct head_job head_job;

/* One subcommand. Its functions are called in this order; those that may be NULL say so. */
typedef struct head_task {
    bert_head_kind kind;
    /* The model is open; head_job_open has set what can be overruled. NULL: nothing to do. */
    int (*fit)(head_job *j);
    /* A record has come; what it cannot be used for goes into its `wrong`. NULL: all can. */
    void (*take)(head_job *j, record *r);
    /* The window is tokenized: computes the results of all its texts. */
    int (*run)(head_job *j);
    /* How many results text i has: j->first is the sum of those before it. */
    size_t (*count)(const head_job *j, size_t i);
    /* Appends text i's members to the object in j->line. */
    int (*print)(head_job *j, const record *r, size_t i);
    /* The input has ended. NULL: nothing to do. */
    int (*finish)(head_job *j);
} head_task;

struct head_job {
    const settings *s;
    const head_task *task;
    void *own; /* the subcommand's */
    engine engine;
    bert_head *head; /* NULL: its kind is BERT_HEAD_WORDS */
    bert_mlm *mlm;   /* not NULL then */
    input input;
    window window;
    bert_tokens *tokens; /* of the window */
    bert_tokenize_options tokenize;
    sink *out;
    buffer line; /* the object at hand; empty after print: nothing is written for it */
    float *logits;
    size_t first;
};

/* Runs the subcommand as s says and returns the exit status. */
int head_job_run(const settings *s, const head_task *task, void *own);

/* For head_task: */
void head_take_single(head_job *j, record *r); /* not a pair */
void head_take_pair(head_job *j, record *r);   /* only a pair */
int head_run(head_job *j);                     /* j->logits of all texts, bert_head_run_tokens */
size_t head_count_texts(const head_job *j, size_t i);  /* 1 */
size_t head_count_tokens(const head_job *j, size_t i); /* those of its parts */
/* Windows of `length` tokens that share `stride`, instead of cutting. */
int head_fit_windows(head_job *j, size_t length, size_t stride);

#endif
