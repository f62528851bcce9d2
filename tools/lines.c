#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buffer.h"
#include "say.h"
#include "signals.h"

enum { LINES_READ = 1 << 16 };

int lines_open(lines *l, const char *path) {
    int is_stdin = strcmp(path, "-") == 0;
    *l = (lines){.fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), .name = is_stdin ? "stdin" : path};
    if (l->fd >= 0) return 0;
    return signals_caught() ? signals_status() : say_error("%s: cannot open: %s", path, strerror(errno));
}

/* Reads once more behind what is waiting. */
static int read_more(lines *l) {
    if (l->begin > 0 && l->room - l->end < LINES_READ) {
        memmove(l->data, l->data + l->begin, l->end - l->begin);
        l->end -= l->begin;
        l->begin = 0;
    }
    if (l->room - l->end < LINES_READ) {
        l->room = 2 * l->room + 2 * LINES_READ;
        l->data = need_more(l->data, l->room, 1);
    }
    for (;;) {
        signals_wait_readable(l->fd, 1);
        if (signals_caught()) return signals_status();
        ssize_t got = read(l->fd, l->data + l->end, LINES_READ);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) return say_error("%s: cannot read: %s", l->name, strerror(errno));
        l->ended = got == 0;
        l->end += (size_t)got;
        return 0;
    }
}

int lines_next(lines *l, const char **line, size_t *n) {
    size_t searched = 0;
    *line = NULL;
    for (;;) {
        char *at = l->data ? l->data + l->begin : NULL; /* nothing has been read yet */
        size_t waiting = l->end - l->begin;
        char *end = waiting > searched ? memchr(at + searched, '\n', waiting - searched) : NULL;
        if (end || (l->ended && waiting)) {
            *line = at;
            *n = end ? (size_t)(end - at) : waiting;
            l->begin += *n + (end != NULL);
            l->taken += *n + (end != NULL);
            if (end && *n && at[*n - 1] == '\r') --*n;
            l->number++;
            return 0;
        }
        if (l->ended) return 0;
        searched = waiting;
        TRY(read_more(l));
    }
}

int lines_peek(lines *l, size_t n) {
    while (l->end - l->begin < n && !l->ended) TRY(read_more(l));
    return 0;
}

int lines_bytes(lines *l, const char **bytes, size_t n) {
    TRY(lines_peek(l, n));
    *bytes = l->end - l->begin >= n ? l->data + l->begin : NULL;
    if (!*bytes) return 0;
    l->begin += n;
    l->taken += n;
    return 0;
}

int lines_ready(lines *l) {
    if (l->ended || memchr(l->data + l->begin, '\n', l->end - l->begin)) return 1;
    return signals_wait_readable(l->fd, 0);
}

uint64_t lines_size(const lines *l) {
    struct stat file;
    return fstat(l->fd, &file) == 0 && S_ISREG(file.st_mode) ? (uint64_t)file.st_size : 0;
}

void lines_close(lines *l) {
    if (l->fd > STDERR_FILENO) close(l->fd);
    free(l->data);
    *l = (lines){0};
}
