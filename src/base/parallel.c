#include "base/parallel.h"

#include <stdatomic.h>

#include "base/fpenv.h"

/* More slots than this would only cost scratch memory: no pass has that many independent parts. */
enum { MAX_SLOTS = 256 };

typedef struct job {
    bert_parallel_body body;
    void *arg;
    size_t items;
    atomic_size_t next;
    atomic_int status; /* of the first failure; whoever sets it owns *err */
    bert_error *err;
} job;

int bert_parallel_width(const bert_workers *workers) {
    if (!workers || workers->width < 1) return 1;
    return workers->width < MAX_SLOTS ? workers->width : MAX_SLOTS;
}

static void keep_first(job *j, bert_status status, const bert_error *error) {
    int none = BERT_OK;
    if (atomic_compare_exchange_strong(&j->status, &none, (int)status) && j->err) *j->err = *error;
}

static void drain(void *arg, int slot) {
    job *j = arg;
    const uint64_t host = bert_fpenv_enter();
    while (atomic_load_explicit(&j->status, memory_order_relaxed) == BERT_OK) {
        const size_t item = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (item >= j->items) break;
        bert_error error;
        const bert_status status = j->body(j->arg, item, slot, &error);
        if (status != BERT_OK) keep_first(j, status, &error);
    }
    bert_fpenv_leave(host);
}

bert_status bert_parallel(const bert_workers *workers, size_t items, bert_parallel_body body, void *arg,
                          bert_error *err) {
    job j = {.body = body, .arg = arg, .items = items, .err = err};
    const int width = bert_parallel_width(workers);
    const int slots = items < (size_t)width ? (int)items : width;
    if (slots <= 1)
        drain(&j, 0);
    else
        workers->run(workers->user, slots, drain, &j);
    return (bert_status)atomic_load(&j.status);
}
