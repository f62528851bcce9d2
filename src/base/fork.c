#include "base/fork.h"

#include <sys/mman.h>
#include <unistd.h>

enum { NO_ADVICE = -1 }; /* every kernel refuses it */
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK NO_ADVICE
#endif

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Emulators answer 0 to any advice and do nothing: one that takes what does not exist is not believed. */
static bool wiped_on_fork(void *page) {
    return madvise(page, page_bytes(), NO_ADVICE) != 0 && madvise(page, page_bytes(), MADV_WIPEONFORK) == 0;
}

void bert_fork_mark_open(bert_fork_mark *mark) {
    *mark = (bert_fork_mark){.pid = getpid()};
    void *page = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    if (!wiped_on_fork(page)) {
        munmap(page, page_bytes());
        return;
    }
    mark->page = page;
    *mark->page = 1;
}

bool bert_fork_happened(const bert_fork_mark *mark) {
    return mark->page != NULL ? *mark->page == 0 : mark->pid != getpid();
}

void bert_fork_mark_close(bert_fork_mark *mark) {
    if (mark->page != NULL) munmap((void *)mark->page, page_bytes());
    mark->page = NULL;
}
