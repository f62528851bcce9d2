#include "job.h"

#include <stdlib.h>

#include "buffer.h"
#include "look.h"

job *job_open(served *model, size_t n, size_t tokens) {
    job *j = need(1, sizeof *j);
    *j = (job){.model = model, .n = n, .embed = model->embed};
    j->start = need(n + 1, sizeof *j->start);
    j->ids = need(tokens, sizeof *j->ids);
    j->types = need(tokens, sizeof *j->types);
    j->start[0] = 0;
    return j;
}

void job_close(job **at) {
    job *j = *at;
    if (!j) return;
    look_close(&j->look);
    free(j->start);
    free(j->ids);
    free(j->types);
    free(j->vectors);
    free(j);
    *at = NULL;
}
