/* bert/base.h: what every other header of libbert builds on: status, errors, texts, memory, workers.
 *
 * Conventions of all headers
 *   - Destination first, then inputs, options, and `bert_error *err` last (NULL: only the status is wanted).
 *   - Options structs begin with their size; pass NULL for the defaults, or start from the BERT_*_OPTIONS_INIT
 *     initialiser, so that a program built against an older header keeps working.
 *   - What is opened is closed by the matching `_close(&p)`, which accepts NULL and sets the pointer to NULL.
 *   - The library never prints, never exits, never reads the environment and keeps no global state.
 *   - Shape letters: B batch, T tokens, H hidden size, A attention heads, D head size (H = A·D), F intermediate
 *     size, V vocabulary, L layers. Arrays are row-major: [T, H] has H contiguous.
 */
#ifndef BERT_BASE_H
#define BERT_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BERT_API __attribute__((visibility("default")))
#define BERT_MUST_USE __attribute__((warn_unused_result))
#else
#define BERT_API
#define BERT_MUST_USE
#endif

#define BERT_VERSION_MAJOR 0
#define BERT_VERSION_MINOR 1
#define BERT_VERSION_PATCH 0

/* Version of the library at run time: major << 16 | minor << 8 | patch. Any thread. */
BERT_API uint32_t bert_version(void);

/* Revision of the arithmetic contract (docs/numerics.md). Equal revisions give equal bits, so whoever stores
 * vectors should store this number beside them. Any thread. */
BERT_API uint32_t bert_numerics(void);

typedef enum bert_status {
    BERT_OK = 0,
    BERT_INVALID_ARGUMENT, /* the caller broke a rule of the header */
    BERT_NO_MEMORY,        /* the allocator said no, or a limit given by the caller would be passed */
    BERT_NOT_FOUND,        /* a file or tensor that was asked for does not exist */
    BERT_IO,               /* the system could not read or write */
    BERT_BAD_FILE,         /* the content breaks its format or contradicts another file */
    BERT_UNSUPPORTED,      /* well-formed, but something this library does not do; the message names it */
    BERT_TOO_LONG,         /* more tokens than the model has positions, and truncation was not allowed */
    BERT_NOT_FINITE,       /* a result is NaN or infinite; the message names the first layer */
    BERT_CHANGED,          /* a model file changed while it was in use */
    BERT_STOPPED,          /* the stop flag was raised, or a callback returned nonzero */
    BERT_DEADLINE          /* the deadline passed */
} bert_status;

/* Filled by the function that failed: what, where, expected, found. `text` is one line without a newline,
 * NUL-terminated, valid UTF-8; bytes from files are escaped and cut. Owned by the caller. */
typedef struct bert_error {
    bert_status code;
    char text[508];
} bert_error;

/* One input: a text, or a pair of texts (b not NULL). UTF-8 with explicit lengths; NUL bytes are content;
 * invalid UTF-8 is read as U+FFFD and counted. The library never keeps these pointers. */
typedef struct bert_text {
    const char *a;
    size_t a_len;
    const char *b; /* NULL: no pair; "" with length 0 is an empty second text, which is a pair */
    size_t b_len;
} bert_text;

/* A file given from memory instead of a path, for example one built into the program. */
typedef struct bert_file {
    const char *name; /* as it would be called in the folder: "config.json", "model.safetensors", … */
    const void *data; /* kept by reference: must outlive what is opened from it */
    size_t len;
} bert_file;

/* The caller's allocator, for what is large in an encoder: packed weights, scratch memory of sessions, vocabularies,
 * tokens. What is small, the text of files while they are read, heads and Dense modules come from the C library's.
 * `get` returns memory aligned to `align` (a power of two) or NULL; `put` gets the same n back. Both may be called from
 * any thread that calls into the library. */
typedef struct bert_memory {
    void *user;
    void *(*get)(void *user, size_t n, size_t align);
    void (*put)(void *user, void *p, size_t n);
} bert_memory;

/* Where warnings go: a truncated text, files that disagree, tensors that are not used. One line, no newline.
 * Called on the thread that calls into the library, before that call returns. */
typedef struct bert_notes {
    void *user;
    void (*note)(void *user, const char *text);
} bert_notes;

/* The caller's threads. `run` calls task(arg, i) once for each i in 0..n-1, in any order, on up to `width`
 * threads, and returns when all are done. Results never depend on width or order. */
typedef struct bert_workers {
    void *user;
    int width;
    void (*run)(void *user, int n, void (*task)(void *arg, int i), void *arg);
} bert_workers;

/* A thread pool of our own, for callers that have none. `threads` counts the calling thread; 0 takes as many as
 * the affinity mask and the cgroup CPU quota allow. Workers block all signals, spin briefly, then sleep.
 * bert_pool_workers() may be handed to any number of sessions; their jobs then queue up one behind the other. A task
 * must not hand work to the pool that runs it.
 * Close it after the sessions. In a child after fork() it has no threads and the caller does all work itself: open a
 * new one there. */
typedef struct bert_pool bert_pool;
BERT_API BERT_MUST_USE bert_status bert_pool_open(bert_pool **pool, int threads, bert_error *err);
BERT_API const bert_workers *bert_pool_workers(const bert_pool *pool);
BERT_API void bert_pool_close(bert_pool **pool);

#ifdef __cplusplus
}
#endif
#endif
