/* file/source.c: one open file, or the caller's bytes, read at any position by any thread. */
#include "file/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

struct bert_source {
    char *name;
    int fd;            /* -1: memory */
    const char *bytes; /* memory only */
    uint64_t size;
    struct stat opened; /* what the file was at open */
};

/* A link whose file is gone (a cache that was cleared, a download that never ended) is not a file that is missing:
 * somebody put it there. */
static bert_status not_found(const char *path, bert_error *err) {
    struct stat is;
    if (lstat(path, &is) == 0 && S_ISLNK(is.st_mode))
        return bert_fail(err, BERT_BAD_FILE, "%s: a link to a file that does not exist", path);
    return bert_fail(err, BERT_NOT_FOUND, "%s: no such file", path);
}

static bert_status open_failed(const char *path, bert_error *err) {
    switch (errno) {
    case ENOENT:
    case ENOTDIR: return not_found(path, err);
    case ENXIO: return bert_fail(err, BERT_BAD_FILE, "%s: a socket or device, not a regular file", path);
    case ENOMEM: return bert_fail(err, BERT_NO_MEMORY, "%s: no memory to open it", path);
    default: return bert_fail(err, BERT_IO, "%s: cannot open: %s", path, strerror(errno));
    }
}

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "a special file";
}

/* O_NONBLOCK: opening a FIFO that nobody writes to must not hang. It changes nothing for regular files. */
static bert_status open_regular(int *fd, struct stat *is, const char *path, bert_error *err) {
    do {
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (*fd < 0 && errno == EINTR);
    if (*fd < 0) return open_failed(path, err);
    bert_status status = BERT_OK;
    if (fstat(*fd, is) != 0) {
        status = bert_fail(err, BERT_IO, "%s: cannot stat: %s", path, strerror(errno));
    } else if (!S_ISREG(is->st_mode)) {
        status = bert_fail(err, BERT_BAD_FILE, "%s: %s, not a regular file", path, kind_of(is->st_mode));
    }
    if (status != BERT_OK) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

/* NULL: no memory. */
static bert_source *new_source(const char *name) {
    bert_source *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->fd = -1;
    s->name = strdup(name);
    if (s->name != NULL) return s;
    free(s);
    return NULL;
}

bert_status bert_source_open(bert_source **source, const char *path, bert_error *err) {
    bert_source *s = *source = new_source(path);
    if (s == NULL) return bert_fail(err, BERT_NO_MEMORY, "%s: no memory to open it", path);
    const bert_status status = open_regular(&s->fd, &s->opened, path, err);
    if (status == BERT_OK) s->size = (uint64_t)s->opened.st_size;
    if (status != BERT_OK) bert_source_close(source);
    return status;
}

bert_status bert_source_open_memory(bert_source **source, const bert_file *memory, bert_error *err) {
    bert_source *s = *source = new_source(memory->name);
    if (s == NULL) return bert_fail(err, BERT_NO_MEMORY, "%s: no memory to open it", memory->name);
    s->bytes = memory->data;
    s->size = memory->len;
    return BERT_OK;
}

void bert_source_close(bert_source **source) {
    bert_source *s = *source;
    *source = NULL;
    if (s == NULL) return;
    if (s->fd >= 0) close(s->fd);
    free(s->name);
    free(s);
}

const char *bert_source_name(const bert_source *source) {
    return source->name;
}

uint64_t bert_source_size(const bert_source *source) {
    return source->size;
}

static bert_status read_file(const bert_source *s, uint64_t at, char *bytes, size_t n, bert_error *err) {
    while (n > 0) {
        const ssize_t got = pread(s->fd, bytes, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            return bert_fail(err, BERT_IO, "%s: cannot read %zu bytes at %llu: %s", s->name, n, (unsigned long long)at,
                             strerror(errno));
        }
        if (got == 0) {
            return bert_fail(err, BERT_CHANGED, "%s: was cut while open: %llu bytes when opened, ends at %llu", s->name,
                             (unsigned long long)s->size, (unsigned long long)at);
        }
        bytes += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return BERT_OK;
}

bert_status bert_source_read(const bert_source *source, uint64_t at, void *bytes, size_t n, bert_error *err) {
    if (at > source->size || n > source->size - at) {
        return bert_fail(err, BERT_INVALID_ARGUMENT, "%s: asked for %zu bytes at %llu, the file has %llu", source->name,
                         n, (unsigned long long)at, (unsigned long long)source->size);
    }
    if (source->fd >= 0) return read_file(source, at, bytes, n, err);
    if (n > 0) memcpy(bytes, source->bytes + at, n);
    return BERT_OK;
}

static bool same_time(struct timespec a, struct timespec b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* The open file is asked, not its path: ctime also moves when the path is unlinked or renamed over, and a host that
 * changes its working directory does no harm. */
bert_status bert_source_unchanged(const bert_source *source, bert_error *err) {
    if (source->fd < 0) return BERT_OK;
    struct stat now;
    if (fstat(source->fd, &now) != 0) {
        return bert_fail(err, BERT_IO, "%s: cannot stat: %s", source->name, strerror(errno));
    }
    const struct stat *then = &source->opened;
    if (now.st_size == then->st_size && now.st_ino == then->st_ino && now.st_dev == then->st_dev &&
        same_time(now.st_mtim, then->st_mtim) && same_time(now.st_ctim, then->st_ctim)) {
        return BERT_OK;
    }
    return bert_fail(err, BERT_CHANGED, "%s: changed while open: %lld bytes when opened, %lld bytes now", source->name,
                     (long long)then->st_size, (long long)now.st_size);
}
