/* base/fork.h: noticing that this process is a child, with the parent's memory but without its threads. */
#ifndef BERT_BASE_FORK_H
#define BERT_BASE_FORK_H

#include <stdbool.h>
#include <sys/types.h>

/* Where the kernel can wipe a page in the child, asking costs one load; elsewhere a system call. */
typedef struct bert_fork_mark {
    volatile char *page; /* 1 in this process, 0 in its children; NULL: compare pids */
    pid_t pid;
} bert_fork_mark;

void bert_fork_mark_open(bert_fork_mark *mark);
/* true in every process but the one that opened the mark. */
bool bert_fork_happened(const bert_fork_mark *mark);
void bert_fork_mark_close(bert_fork_mark *mark);

#endif
