/* The command's own system calls and allocations fail, the n-th for every n, once and from then on: it ends by itself
 * with a status and a message, the output file is the old one or the whole new one, and nothing is left beside it.
 *
 * The command is linked into this program, behind functions that fail on demand (meson.build lists them), and runs in a
 * child for each fault. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../sanitizers.h"

int bert_main(int n, char **words); /* main of tools/bert.c */

enum kind { MEMORY, WRITE, FSYNC, RENAME, CLOSE, OPEN, CREATE, READ, STAT, KINDS };

static struct {
    enum kind kind;
    int at; /* the call that fails, from 1; 0: none */
    bool and_after, active;
    int error;
    bool tiny; /* reads and writes of one byte, interrupted before each */
} fault;
static _Atomic int *calls; /* [KINDS], shared with the child and counted in all of its threads */

static bool fails(enum kind kind) {
    if (!fault.active) return false;
    const int call = ++calls[kind];
    if (kind != fault.kind || fault.at == 0 || (fault.and_after ? call < fault.at : call != fault.at)) return false;
    errno = fault.error;
    return true;
}

/* The bytes that a call may move; 0: it is interrupted. */
static size_t allowed(size_t n) {
    static bool interrupted;
    if (!fault.active || !fault.tiny || n == 0) return n;
    interrupted = !interrupted;
    errno = EINTR;
    return interrupted ? 0 : 1;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **p, size_t align, size_t n);
char *__real_strdup(const char *text);
ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __real_read(int fd, void *bytes, size_t n);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __real_close(int fd);
int __real_open64(const char *path, int flags, ...);
int __real_mkostemp64(char *path, int flags);
int __real_fstat64(int fd, struct stat *is);
ssize_t __real_pread64(int fd, void *bytes, size_t n, off_t at);

void *__wrap_malloc(size_t n) { return fails(MEMORY) ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t count, size_t n) { return fails(MEMORY) ? NULL : __real_calloc(count, n); }
void *__wrap_realloc(void *p, size_t n) { return fails(MEMORY) ? NULL : __real_realloc(p, n); }
int __wrap_posix_memalign(void **p, size_t align, size_t n) {
    return fails(MEMORY) ? ENOMEM : __real_posix_memalign(p, align, n);
}
char *__wrap_strdup(const char *text) { return fails(MEMORY) ? NULL : __real_strdup(text); }

ssize_t __wrap_write(int fd, const void *bytes, size_t n) {
    if (fails(WRITE)) return -1;
    const size_t some = allowed(n);
    return some == 0 && n > 0 ? -1 : __real_write(fd, bytes, some);
}

ssize_t __wrap_read(int fd, void *bytes, size_t n) {
    if (fails(READ)) return -1;
    const size_t some = allowed(n);
    return some == 0 && n > 0 ? -1 : __real_read(fd, bytes, some);
}

ssize_t __wrap_pread64(int fd, void *bytes, size_t n, off_t at) {
    return fails(READ) ? -1 : __real_pread64(fd, bytes, n, at);
}

int __wrap_fsync(int fd) { return fails(FSYNC) ? -1 : __real_fsync(fd); }
int __wrap_rename(const char *from, const char *to) { return fails(RENAME) ? -1 : __real_rename(from, to); }
int __wrap_fstat64(int fd, struct stat *is) { return fails(STAT) ? -1 : __real_fstat64(fd, is); }
int __wrap_mkostemp64(char *path, int flags) { return fails(CREATE) ? -1 : __real_mkostemp64(path, flags); }

int __wrap_close(int fd) { /* a close that fails has closed */
    const bool failed = fails(CLOSE);
    const int error = errno, status = __real_close(fd);
    if (failed) errno = error;
    return failed ? -1 : status;
}

int __wrap_open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails(OPEN) ? -1 : __real_open64(path, flags, mode);
}

/* ---- A run of the command in a child. ---- */

static char folder[64], model[PATH_MAX];

static const char *path_of(const char *name) {
    static char path[2][PATH_MAX];
    static int which;
    which = !which;
    snprintf(path[which], PATH_MAX, "%s/%s", folder, name);
    return path[which];
}

static void set_up(void) {
    strcpy(folder, "/tmp/bert-faults-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(model, sizeof model, "%s/models/tiny-bert", getenv("BERT_TEST_DATA"));
    calls = mmap(NULL, KINDS * sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(calls != MAP_FAILED && mkdir(path_of("out"), 0700) == 0);
}

static void tear_down(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
}
TestSuite(command_faults, .init = set_up, .fini = tear_down, .timeout = 300);

static void put_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

/* The content of a file; NULL: there is none. */
static char *content(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    char *bytes = malloc(1 << 22);
    *len = fread(bytes, 1, 1 << 22, file);
    fclose(file);
    return bytes;
}

static void redirect(const char *path, int flags, int to) {
    const int fd = open(path, flags, 0600);
    if (fd < 0 || dup2(fd, to) < 0) _exit(99);
    close(fd);
}

/* What counts coverage allocates and writes when everything else has ended. */
static void no_more_faults(void) {
    fault.active = false;
}

static int run(char **words) {
    int n = 0, status;
    while (words[n] != NULL) n++;
    memset(calls, 0, KINDS * sizeof *calls);
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        redirect("/dev/null", O_RDONLY, STDIN_FILENO);
        redirect(path_of("stdout"), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
        redirect(path_of("stderr"), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
        atexit(no_more_faults);
        fault.active = true;
        exit(bert_main(n, words));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "signal %d, kind %d, call %d", WTERMSIG(status), fault.kind, fault.at);
    return WEXITSTATUS(status);
}

static int files_in(const char *path) {
    DIR *dir = opendir(path);
    int n = -2; /* . and .. */
    while (readdir(dir) != NULL) n++;
    closedir(dir);
    return n;
}

typedef struct result {
    char *bytes;
    size_t len;
} result;

static void check(int status, const char *out, const result *whole) {
    size_t len = 0, said = 0;
    char *found = content(out, &len), *words = content(path_of("stderr"), &said);
    const bool is_old = found != NULL && len == 3 && memcmp(found, "old", 3) == 0;
    const bool is_whole = found != NULL && len == whole->len && memcmp(found, whole->bytes, len) == 0;
    cr_expect(is_old || is_whole, "kind %d, call %d, errno %d: %zu bytes, neither old nor whole", fault.kind, fault.at,
              fault.error, len);
    cr_expect(status != 0 || is_whole, "kind %d, call %d: success, but the old file", fault.kind, fault.at);
    cr_expect(status == 0 || status == 1 || (status == 141 && fault.error == EPIPE), "kind %d, call %d: exit %d: %.*s",
              fault.kind, fault.at, status, (int)said, words);
    cr_expect(status != 1 || (said > 10 && memcmp(words, "bert: ", 6) == 0), "kind %d, call %d, errno %d: no message",
              fault.kind, fault.at, fault.error);
    cr_expect_eq(files_in(path_of("out")), 1, "kind %d, call %d: a temporary file is left", fault.kind, fault.at);
    free(found);
    free(words);
}

/* Fails the n-th call for n = 1, 2, … (allocations, of which there are many, ever further apart). */
static int fail_each(char **words, const char *out, const result *whole, enum kind kind, int error) {
    int step = 1, made = 0;
    for (int n = 1;; n += step) {
        bool reached = false;
        if (kind == MEMORY && getenv("BERT_TEST_LONG") == NULL) step = 1 + n / (under_valgrind() ? 2 : 8);
        for (int after = 0; after < 2; after++) {
            fault.kind = kind, fault.at = n, fault.and_after = after, fault.error = error;
            put_file(out, "old");
            check(run(words), out, whole);
            made += calls[kind] >= n;
            reached = reached || calls[kind] >= n;
        }
        if (!reached) return made;
    }
}

static void every_fault(char **words, const char *out) {
    static const struct {
        enum kind kind;
        int error;
    } faults[] = {{MEMORY, ENOMEM}, {WRITE, ENOSPC}, {WRITE, EPIPE}, {WRITE, EDQUOT}, {FSYNC, EIO}, {RENAME, EACCES},
                  {CLOSE, EIO}, {CREATE, EACCES}, {CREATE, EMFILE}, {OPEN, EMFILE}, {READ, EIO}, {STAT, EIO}};
    result whole = {NULL, 0};
    memset(&fault, 0, sizeof fault);
    cr_assert_eq(run(words), 0);
    whole.bytes = content(out, &whole.len);
    cr_assert(whole.bytes != NULL && whole.len > 100);
    for (int kind = 0; kind < KINDS; kind++) cr_assert_gt(calls[kind], kind == MEMORY ? 20 : 0, "kind %d: no call", kind);
    int made = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        made += fail_each(words, out, &whole, faults[i].kind, faults[i].error);
    fprintf(stderr, "figure: bert %s: %d faults\n", words[1], made);
    memset(&fault, 0, sizeof fault);
    fault.tiny = true;
    put_file(out, "old");
    check(run(words), out, &whole);
    cr_expect_eq(run(words), 0, "the next one works");
    free(whole.bytes);
}

Test(command_faults, encode) {
    char out[PATH_MAX];
    snprintf(out, sizeof out, "%s", path_of("out/v.jsonl"));
    every_fault((char *[]){"bert", "encode", "-m", model, "-t", "1", "-o", out, "the cat sat", NULL}, out);
}

Test(command_faults, attention) {
    char out[PATH_MAX];
    snprintf(out, sizeof out, "%s", path_of("out/maps.safetensors"));
    every_fault((char *[]){"bert", "attention", "-m", model, "-t", "2", "-o", out, "the cat", NULL}, out);
}

Test(command_faults, npz) {
    char out[PATH_MAX];
    snprintf(out, sizeof out, "%s", path_of("out/v.npz"));
    every_fault((char *[]){"bert", "encode", "-m", model, "-t", "1", "--what", "embedding,hidden_states", "-o", out, "a",
                           "b c", NULL}, out);
}

Test(command_faults, tokenize) {
    char out[PATH_MAX];
    snprintf(out, sizeof out, "%s", path_of("out/t.jsonl"));
    every_fault((char *[]){"bert", "tokenize", "-m", model, "-o", out, "the cat sat on the mat", "a", NULL}, out);
}

/* What only reads: with the n-th allocation failing it says so, or nothing is different. */
static void every_allocation(char **words) {
    size_t len = 0, said = 0;
    memset(&fault, 0, sizeof fault);
    const int status = run(words);
    char *whole = content(path_of("stdout"), &len);
    int made = 0;
    for (int n = 1; n == 1 || calls[MEMORY] >= n - 1; n++) {
        for (int after = 0; after < 2; after++, made++) {
            size_t found_len = 0;
            fault.kind = MEMORY, fault.at = n, fault.and_after = after, fault.error = ENOMEM;
            const int now = run(words);
            char *found = content(path_of("stdout"), &found_len), *message = content(path_of("stderr"), &said);
            cr_expect((now == 1 && said > 10 && memcmp(message, "bert: ", 6) == 0) ||
                      (now == status && found_len == len && memcmp(found, whole, len) == 0),
                      "allocation %d: exit %d, %d without the fault: %.*s", n, now, status, (int)said, message);
            free(found);
            free(message);
        }
    }
    fprintf(stderr, "figure: bert %s: %d faults\n", words[1], made);
    free(whole);
}

/* A text and what hidden_states.0 of it is said to be; verify finds that it is not. */
Test(command_faults, verify_without_memory) {
    static const char header[] = "{\"__metadata__\":{\"text\":\"the cat\",\"pair\":\"sat\"},\"hidden_states.0\":{\"dtype\":"
                                 "\"F32\",\"shape\":[1,8,40],\"data_offsets\":[0,1280]}}";
    char reference[PATH_MAX];
    snprintf(reference, sizeof reference, "%s", path_of("reference.safetensors"));
    FILE *file = fopen(reference, "wb");
    const uint64_t n = sizeof header - 1;
    cr_assert(fwrite(&n, sizeof n, 1, file) == 1 && fputs(header, file) >= 0);
    for (int i = 0; i < 1280; i++) fputc(0, file);
    fclose(file);
    every_allocation((char *[]){"bert", "verify", "-m", model, "--against", reference, NULL});
}
