/* Every allocation and every system call fails once, and from then on, in the base and file rooms and on the whole way
 * from a folder to a vector: an error with a message, nothing left behind, and the next call works. The linker puts the functions below in front of those of the
 * C library (meson.build lists them). */
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <bert/bert.h>

#include "base/memory.h"
#include "file/json.h"
#include "file/source.h"

enum { MEMORY, OPEN, STAT, READ, THREAD, KINDS };

static struct {
    int calls[KINDS];   /* since the last reset */
    int fail_at[KINDS]; /* the call that fails, from 1; 0: none */
    bool and_after;     /* all later ones too */
    int error;          /* errno of calls that fail; 0 for READ: the end of the file comes early */
    bool tiny_reads;    /* one byte at a time, and interrupted before each */
    int blocks, files;  /* allocated and not freed, open and not closed */
} fault;

static void reset(void) {
    memset(&fault, 0, sizeof fault);
}

static bool fails(int kind) {
    const int call = ++fault.calls[kind], at = fault.fail_at[kind];
    if (at == 0 || (fault.and_after ? call < at : call != at)) return false;
    errno = kind == MEMORY ? ENOMEM : fault.error;
    return true;
}

static void *counted(void *p) {
    if (p != NULL) fault.blocks++;
    return p;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
int __real_posix_memalign(void **p, size_t align, size_t n);
char *__real_strdup(const char *text);
void __real_free(void *p);
int __real_open64(const char *path, int flags, ...);
int __real_close(int fd);
int __real_fstat64(int fd, struct stat *is);
ssize_t __real_pread64(int fd, void *bytes, size_t n, off_t at);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg);

void *__wrap_malloc(size_t n) {
    return fails(MEMORY) ? NULL : counted(__real_malloc(n));
}

void *__wrap_calloc(size_t count, size_t n) {
    return fails(MEMORY) ? NULL : counted(__real_calloc(count, n));
}

void *__wrap_realloc(void *p, size_t n) {
    if (fails(MEMORY)) return NULL;
    void *bigger = __real_realloc(p, n);
    return p == NULL ? counted(bigger) : bigger;
}

void *__wrap_aligned_alloc(size_t align, size_t n) {
    return fails(MEMORY) ? NULL : counted(__real_aligned_alloc(align, n));
}

int __wrap_posix_memalign(void **p, size_t align, size_t n) {
    if (fails(MEMORY)) return ENOMEM;
    const int failed = __real_posix_memalign(p, align, n);
    if (!failed) fault.blocks++;
    return failed;
}

char *__wrap_strdup(const char *text) {
    return fails(MEMORY) ? NULL : counted(__real_strdup(text));
}

void __wrap_free(void *p) {
    if (p != NULL) fault.blocks--;
    __real_free(p);
}

int __wrap_open64(const char *path, int flags, ...) {
    if (fails(OPEN)) return -1;
    const int fd = __real_open64(path, flags);
    if (fd >= 0) fault.files++;
    return fd;
}

int __wrap_close(int fd) {
    fault.files--;
    return __real_close(fd);
}

int __wrap_fstat64(int fd, struct stat *is) {
    return fails(STAT) ? -1 : __real_fstat64(fd, is);
}

ssize_t __wrap_pread64(int fd, void *bytes, size_t n, off_t at) {
    static bool interrupted;
    if (fails(READ)) return fault.error != 0 ? -1 : 0;
    if (!fault.tiny_reads) return __real_pread64(fd, bytes, n, at);
    interrupted = !interrupted;
    if (!interrupted) return __real_pread64(fd, bytes, 1, at);
    errno = EINTR;
    return -1;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg) {
    return fails(THREAD) ? EAGAIN : __real_pthread_create(thread, attributes, body, arg);
}

/* What is tried: each returns the status of its work, having undone it again. */
static scratch files;

static bert_status use_container(bert_error *err) {
    char path[PATH_MAX];
    bert_safetensors *file;
    float x[4] = {0};
    snprintf(path, sizeof path, "%s/c", files.dir);
    bert_status status = bert_safetensors_open(&file, path, err);
    if (status != BERT_OK) return status;
    status = bert_safetensors_read_f32(file, bert_safetensors_find(file, "a"), 0, x, 4, err);
    if (status == BERT_OK) status = bert_safetensors_unchanged(file, err);
    if (status == BERT_OK) cr_expect(x[0] == 1.0f && x[3] == 4.0f);
    bert_safetensors_close(&file);
    return status;
}

static bert_status use_text(bert_error *err) {
    char *text = NULL;
    size_t len;
    const bert_folder folder = {.dir = files.dir};
    bert_json root;
    bert_status status = bert_folder_text(&folder, "j.json", 1 << 20, &text, &len, err);
    if (status == BERT_OK) status = bert_json_check_file(&root, text, len, "j.json", err);
    __wrap_free(text); /* as the library would */
    return status;
}

static bert_status use_memory(bert_error *err) {
    bert_arena arena;
    const bert_memory memory = bert_memory_or_default(NULL);
    void *p = NULL;
    size_t count = 0;
    const int grown = bert_memory_grow(&memory, &p, &count, 10, 4) && bert_memory_grow(&memory, &p, &count, 100, 4);
    const int opened = bert_arena_open(&arena, NULL, 3 << 20);
    bert_arena_close(&arena);
    bert_memory_free(&memory, p, count, 4);
    snprintf(err->text, sizeof err->text, "callers make the message here");
    return grown && opened ? BERT_OK : BERT_NO_MEMORY;
}

static bert_status use_pool(bert_error *err) {
    bert_pool *pool;
    const bert_status status = bert_pool_open(&pool, 5, err);
    bert_pool_close(&pool);
    return status;
}

/* From a folder to a vector, by a caller who has workers: what is read at open, what is packed at the first pass, and
 * the pass. */
static bert_status use_pipeline(bert_error *err) {
    char path[PATH_MAX];
    bert_pipeline *pipeline = NULL;
    bert_session *session = NULL;
    bert_model_options model = BERT_MODEL_OPTIONS_INIT;
    bert_pipeline_options options = BERT_PIPELINE_OPTIONS_INIT;
    const bert_text text = {"the cat", 7, "a b", 3};
    float vector[40];
    model.weights = BERT_WEIGHTS_PACKED;
    options.model = &model;
    snprintf(path, sizeof path, "%s/models/tiny-bert", getenv("BERT_TEST_DATA"));
    bert_status status = bert_pipeline_open(&pipeline, path, &options, err);
    if (status == BERT_OK) status = bert_session_open(&session, bert_pipeline_model(pipeline), NULL, err);
    if (status == BERT_OK) status = bert_embed(session, pipeline, vector, &text, 1, NULL, NULL, err);
    bert_session_close(&session);
    bert_pipeline_close(&pipeline);
    return status;
}

static void set_up(void) {
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
                                 "\"__metadata__\":{\"k\":\"v\"}}      ";
    const uint64_t n = sizeof header - 1;
    const float data[4] = {1, 2, 3, 4};
    char bytes[256], *text = malloc(100000), *p = text;
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    memcpy(bytes + 8 + n, data, sizeof data);
    scratch_open(&files);
    scratch_write(&files, "c", bytes, 8 + n + sizeof data);
    p += sprintf(p, "{\"\":0");
    for (int i = 0; i < 3000; i++) p += sprintf(p, ",\"key%d\":[{\"a\":1}]", i);
    p += sprintf(p, "}");
    scratch_write(&files, "j.json", text, (size_t)(p - text));
    free(text);
    reset();
}

static const struct {
    const char *name;
    bert_status (*use)(bert_error *err);
} works[] = {{"container", use_container}, {"text", use_text}, {"memory", use_memory}, {"pool", use_pool},
             {"pipeline", use_pipeline}};

enum { N_WORKS = sizeof works / sizeof works[0] };
static const size_t read_files[] = {0, 1, 4}; /* those of them that read files */

/* Lets the n-th call of a kind fail for n = 1, 2, … until the work no longer gets there. */
static void fail_each(size_t w, int kind, int error, bool and_after, bert_status expected) {
    int failures = 0, n = 1;
    for (;; n++) {
        bert_error err = {0};
        reset();
        fault.fail_at[kind] = n;
        fault.and_after = and_after;
        fault.error = error;
        const bert_status status = works[w].use(&err);
        const bool got_there = fault.calls[kind] >= n;
        cr_assert(fault.blocks == 0 && fault.files == 0, "%s, kind %d, call %d: %d blocks, %d files left", works[w].name,
                  kind, n, fault.blocks, fault.files);
        cr_assert(status == BERT_OK || status == expected, "%s, kind %d, call %d: status %d, %s", works[w].name, kind,
                  n, status, err.text);
        cr_assert(status == BERT_OK || err.text[0] != '\0', "no message");
        failures += status != BERT_OK;
        if (!got_there) {
            cr_assert_eq(status, BERT_OK, "%s does not work without a fault: %s", works[w].name, err.text);
            break;
        }
    }
    reset();
    cr_assert(n == 1 || failures > 0, "%s, kind %d: %d calls, none of them mattered", works[w].name, kind, n - 1);
}

Test(faults, memory) {
    set_up();
    for (size_t w = 0; w < N_WORKS; w++) {
        fail_each(w, MEMORY, 0, false, BERT_NO_MEMORY);
        fail_each(w, MEMORY, 0, true, BERT_NO_MEMORY);
    }
    scratch_close(&files);
}

Test(faults, system_calls) {
    set_up();
    static const struct {
        int kind, error;
        bert_status status;
    } rows[] = {{OPEN, EMFILE, BERT_IO}, {OPEN, ENOMEM, BERT_NO_MEMORY}, {OPEN, ENOENT, BERT_NOT_FOUND},
                {STAT, EIO, BERT_IO},    {READ, EIO, BERT_IO},           {READ, 0, BERT_CHANGED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t k = 0; k < sizeof read_files / sizeof *read_files; k++) {
            fail_each(read_files[k], rows[i].kind, rows[i].error, false, rows[i].status);
            fail_each(read_files[k], rows[i].kind, rows[i].error, true, rows[i].status);
        }
    }
    scratch_close(&files);
}

Test(faults, interrupted_and_short_reads) {
    set_up();
    for (size_t w = 0; w < 2; w++) {
        bert_error err = {0};
        fault.tiny_reads = true;
        cr_expect_eq(works[w].use(&err), BERT_OK, "%s: %s", works[w].name, err.text);
        cr_expect_gt(fault.calls[READ], 100);
    }
    reset();
    scratch_close(&files);
}

Test(faults, threads_that_do_not_start) {
    set_up();
    fail_each(3, THREAD, 0, false, BERT_NO_MEMORY);
    scratch_close(&files);
}
