#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffer.h"
#include "say.h"
#include "signals.h"

enum { SPOOL_MEMORY = 1 << 24, SPOOL_FIRST = 1 << 16 };

static int cannot(const char *what) {
    return say_error("temporary file: cannot %s: %s", what, strerror(errno));
}

/* A file without a name, in $TMPDIR or where temporary files usually are. */
static int open_file(spool *s) {
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder) folder = "/tmp";
    buffer path = {0};
    buffer_print(&path, "%s/bert-XXXXXX", folder);
    buffer_byte(&path, 0);
    int fd = mkostemp(path.data, O_CLOEXEC);
    if (fd >= 0) unlink(path.data);
    int status =
        fd < 0 ? say_error("%s: cannot create a temporary file ($TMPDIR says where): %s", folder, strerror(errno)) : 0;
    buffer_close(&path);
    if (!status) s->fd = fd;
    return status;
}

static int write_file(spool *s, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t wrote = write(s->fd, bytes, n);
        if (wrote < 0 && errno == EINTR && !signals_caught()) continue;
        if (wrote < 0) return signals_caught() ? signals_status() : cannot("write");
        bytes += wrote;
        n -= (size_t)wrote;
        s->spilled += (uint64_t)wrote;
    }
    return 0;
}

static int spill(spool *s) {
    if (!s->fd) TRY(open_file(s));
    return write_file(s, s->held, (size_t)(s->size - s->spilled));
}

int spool_add(spool *s, const void *bytes, size_t n) {
    size_t held = (size_t)(s->size - s->spilled);
    if (n > SPOOL_MEMORY - held) {
        TRY(spill(s));
        held = 0;
    }
    if (n > SPOOL_MEMORY) {
        TRY(write_file(s, bytes, n));
        s->size += n;
        return 0;
    }
    if (held + n > s->room) {
        size_t room = s->room ? s->room : SPOOL_FIRST;
        while (room < held + n) room *= 2;
        s->held = need_more(s->held, room, 1);
        s->room = room;
    }
    if (n) memcpy(s->held + held, bytes, n);
    s->size += n;
    return 0;
}

/* What has been spilled, in pieces. */
static int read_file(spool *s, uint64_t at, uint64_t n, int (*use)(void *, const void *, size_t), void *user) {
    char piece[1 << 15];
    while (n > 0) {
        size_t want = n < sizeof piece ? (size_t)n : sizeof piece;
        ssize_t got = pread(s->fd, piece, want, (off_t)at);
        if (got < 0 && errno == EINTR && !signals_caught()) continue;
        if (got < 0) return signals_caught() ? signals_status() : cannot("read");
        if (got == 0) return say_error("temporary file: it has become shorter");
        TRY(use(user, piece, (size_t)got));
        at += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return 0;
}

int spool_read(spool *s, uint64_t at, uint64_t n, int (*use)(void *user, const void *bytes, size_t n), void *user) {
    uint64_t in_file = at >= s->spilled ? 0 : s->spilled - at < n ? s->spilled - at : n;
    TRY(read_file(s, at, in_file, use, user));
    if (n > in_file) TRY(use(user, s->held + (at + in_file - s->spilled), (size_t)(n - in_file)));
    return 0;
}

static int to_sink(void *user, const void *bytes, size_t n) {
    return sink_write(user, bytes, n);
}

int spool_copy(spool *s, uint64_t at, uint64_t n, sink *out) {
    return spool_read(s, at, n, to_sink, out);
}

void spool_close(spool *s) {
    if (s->fd) close(s->fd);
    free(s->held);
    *s = (spool){0};
}
