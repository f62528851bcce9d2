#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"
#include "signals.h"

enum { LINES_READ = 1 << 16, LINES_LONG = 1 << 20 };

int lines_open(lines *l, const char *path) {
    int is_stdin = strcmp(path, "-") == 0;
    *l = (lines){.fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), .name = is_stdin ? "stdin" : path};
    if (l->fd >= 0) return 0;
    return signals_caught() ? signals_status() : say_error("%s: cannot open: %s", path, strerror(errno));
}

/* A buffer that an unusually long line needed is not kept. */
static void make_room(lines *l) {
    if (l->begin == l->end && l->room > LINES_LONG) {
        free(l->data);
        l->data = NULL;
        l->begin = l->end = l->room = 0;
    }
    if (l->room - l->end >= LINES_READ) return;
    if (l->begin > 0) {
        memmove(l->data, l->data + l->begin, l->end - l->begin);
        l->end -= l->begin;
        l->begin = 0;
    }
    if (l->room - l->end >= LINES_READ) return;
    l->room = 2 * l->room + 2 * LINES_READ;
    l->data = need_more(l->data, l->room, 1);
}

/* Reads once more behind what is waiting. */
static int read_more(lines *l) {
    if (l->failed) return l->failed;
    make_room(l);
    for (;;) {
        signals_wait_readable(l->fd, 1);
        if (signals_caught()) return l->failed = signals_status();
        ssize_t got = read(l->fd, l->data + l->end, LINES_READ);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) return l->failed = say_error("%s: cannot read: %s", l->name, strerror(errno));
        l->ended = got == 0;
        l->end += (size_t)got;
        return 0;
    }
}

/* 1: the end of the first line that is waiting has been found, `searched` bytes behind its beginning. */
static int find_end(lines *l) {
    size_t waiting = l->end - l->begin;
    if (waiting == l->searched) return 0; /* also where nothing has been read yet */
    char *at = l->data + l->begin, *end = memchr(at + l->searched, '\n', waiting - l->searched);
    l->searched = end ? (size_t)(end - at) : waiting;
    return end != NULL;
}

static int too_long(const lines *l) {
    return l->most && l->searched > l->most;
}

static void take(lines *l, size_t n) {
    l->begin += n;
    l->taken += n;
    l->searched = 0;
}

static int skip_rest(lines *l) {
    int found;
    while (!(found = find_end(l)) && !l->ended) {
        take(l, l->searched);
        TRY(read_more(l));
    }
    take(l, l->searched + (size_t)found);
    l->cut = 0;
    return 0;
}

int lines_next(lines *l, const char **line, size_t *n) {
    int found;
    *line = NULL;
    if (l->cut) TRY(skip_rest(l));
    while (!(found = find_end(l)) && !l->ended && !too_long(l)) TRY(read_more(l));
    if (!found && !l->searched) return 0;
    l->cut = too_long(l);
    *line = l->data + l->begin;
    *n = l->cut ? l->most : l->searched;
    take(l, *n + (size_t)(found && !l->cut));
    if (found && !l->cut && *n && (*line)[*n - 1] == '\r') --*n;
    l->number++;
    return 0;
}

void lines_keep(lines *l, const char *line, size_t n, buffer *in) {
    size_t waiting = l->end - l->begin;
    in->len = 0;
    if (n < LINES_LONG || line != l->data) {
        buffer_add(in, line, n);
        return;
    }
    buffer next = {0};
    buffer_reserve(&next, waiting + LINES_READ);
    buffer_add(&next, l->data + l->begin, waiting);
    buffer_close(in);
    *in = (buffer){l->data, n, l->room};
    l->data = next.data;
    l->begin = 0;
    l->end = waiting;
    l->room = next.room;
}

int lines_peek(lines *l, size_t n) {
    while (l->end - l->begin < n && !l->ended) TRY(read_more(l));
    return 0;
}

int lines_bytes(lines *l, const char **bytes, size_t n) {
    TRY(lines_peek(l, n));
    *bytes = l->end - l->begin >= n ? l->data + l->begin : NULL;
    if (!*bytes) return 0;
    take(l, n);
    return 0;
}

int lines_ready(lines *l) {
    if (l->cut) return 0; /* that is to be told now, not when the rest has come */
    while (!find_end(l) && !l->ended && !too_long(l)) {
        if (!signals_wait_readable(l->fd, 0)) return 0;
        if (read_more(l)) return 1; /* lines_next has the status */
    }
    return 1;
}

uint64_t lines_size(const lines *l) {
    struct stat file;
    off_t at = lseek(l->fd, 0, SEEK_CUR);
    if (at < 0 || fstat(l->fd, &file) < 0 || !S_ISREG(file.st_mode)) return 0;
    uint64_t before = (uint64_t)at - (l->end - l->begin) - l->taken; /* what somebody else read of it */
    return (uint64_t)file.st_size > before ? (uint64_t)file.st_size - before : 0;
}

void lines_close(lines *l) {
    if (l->fd > STDERR_FILENO) close(l->fd);
    free(l->data);
    *l = (lines){0};
}
