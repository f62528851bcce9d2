/* tests/scratch.h: files that live as long as one test. */
#ifndef BERT_TESTS_SCRATCH_H
#define BERT_TESTS_SCRATCH_H

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct scratch {
    char dir[PATH_MAX / 4], path[PATH_MAX];
} scratch;

static inline void scratch_open(scratch *s) {
    const char *tmp = getenv("TMPDIR");
    snprintf(s->dir, sizeof s->dir, "%s/bert-test-XXXXXX", tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    cr_assert_not_null(mkdtemp(s->dir));
}

static inline const char *scratch_path(scratch *s, const char *name) {
    snprintf(s->path, sizeof s->path, "%s/%s", s->dir, name);
    return s->path;
}

/* Writes a file below the folder, making the folders on the way to it. */
static inline const char *scratch_write(scratch *s, const char *name, const void *bytes, size_t n) {
    scratch_path(s, name);
    for (char *p = s->path + strlen(s->dir) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        (void)mkdir(s->path, 0700);
    }
    FILE *file = fopen(s->path, "wb");
    cr_assert_not_null(file, "%s", s->path);
    cr_assert_eq(fwrite(bytes, 1, n, file), n);
    cr_assert_eq(fclose(file), 0);
    return s->path;
}

static inline void scratch_close(scratch *s) {
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf '%s'", s->dir);
    cr_assert_eq(system(command), 0);
}

#endif
