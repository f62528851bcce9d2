#include "base/fork.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK (-1) /* refused by every kernel */
#endif

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

void bert_fork_mark_open(bert_fork_mark *mark) {
    *mark = (bert_fork_mark){.pid = getpid()};
    void *page = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    if (madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) {
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
