#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "buffer.h"
#include "say.h"
#include "signals.h"

enum { SINK_BUFFER = 1 << 16 };

struct sink {
    int fd;
    char *name;      /* as the user called it */
    char *target;    /* the regular file it becomes; NULL: written as it is */
    char *temporary; /* what it is called until then */
    buffer *memory;  /* not NULL: the bytes go there, and fd is -1 */
    uint64_t flushed;
    size_t held; /* bytes in data */
    char data[SINK_BUFFER];
};

static sink *current; /* the one that is open, memory apart: the command writes to one place at a time */

static int cannot(const sink *out, const char *what) {
    /* Nobody reads any more, or stdout was closed before we began: no message. */
    if (errno == EPIPE || (errno == EBADF && out->fd == STDOUT_FILENO)) return EXIT_CLOSED_PIPE;
    return say_error("%s: cannot %s: %s", out->name, what, strerror(errno));
}

/* Opens the socket at `path` as a client. */
static int connect_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The file that `path` names once every link is followed; it need not exist yet. NULL and errno on failure. */
static char *follow_links(const char *path) {
    char *at = need(strlen(path) + 1, 1), link[PATH_MAX];
    strcpy(at, path);
    for (int hops = 0; hops < 40; hops++) {
        ssize_t n = readlink(at, link, sizeof link - 1);
        if (n < 0) return at; /* not a link: this is it */
        link[n] = 0;
        const char *slash = strrchr(at, '/');
        size_t folder = link[0] != '/' && slash ? (size_t)(slash - at) + 1 : 0;
        at = need_more(at, folder + (size_t)n + 1, 1);
        memcpy(at + folder, link, (size_t)n + 1);
    }
    free(at);
    errno = ELOOP;
    return NULL;
}

/* The permissions of the file that is replaced, or those of a new one. */
static mode_t permissions(const struct stat *before) {
    if (before) return before->st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int open_temporary(sink *out, const struct stat *before) {
    static const char name[] = ".bert-XXXXXX"; /* short, whatever the target is called */
    const char *slash = strrchr(out->target, '/');
    size_t folder = slash ? (size_t)(slash - out->target) + 1 : 0;
    out->temporary = need(folder + sizeof name, 1);
    memcpy(out->temporary, out->target, folder);
    memcpy(out->temporary + folder, name, sizeof name);
    out->fd = mkostemp(out->temporary, O_CLOEXEC);
    if (out->fd < 0) {
        free(out->temporary);
        out->temporary = NULL;
        return cannot(out, "create it");
    }
    signals_guard_file(out->temporary);
    if (fchmod(out->fd, permissions(before)) < 0) return cannot(out, "set its permissions");
    return 0;
}

/* The descriptor of ours that `path` is another name of; -1: none. */
static int own_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t n = strlen(folders[i]), digits = strncmp(path, folders[i], n) == 0 ? strspn(path + n, "0123456789") : 0;
        if (digits && digits < 10 && !path[n + digits]) return (int)strtol(path + n, NULL, 10);
    }
    return -1;
}

/* 1: what stands at `path` is opened and written, not replaced (in /dev and /proc are links to anything). */
static int written_in_place(const char *path, const struct stat *now) {
    return !S_ISREG(now->st_mode) || strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

static int open_path(sink *out, const char *path) {
    struct stat now;
    int own = own_descriptor(path);
    if (own >= 0) {
        /* Opened anew, a file behind it would be written from its beginning, over what is there. */
        out->fd = fcntl(own, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        return out->fd < 0 ? cannot(out, "write it") : 0;
    }
    if (!*path) return say_usage("--output: expected the name of a file, found an empty one");
    int exists = stat(path, &now) == 0;
    if (!exists && errno != ENOENT) return cannot(out, "write it");
    if (exists && S_ISDIR(now.st_mode)) return say_error("%s: expected a file to write, found a folder", path);
    if (exists && written_in_place(path, &now)) {
        out->fd = S_ISSOCK(now.st_mode) ? connect_socket(path) : open(path, O_WRONLY | O_CLOEXEC);
        if (out->fd < 0) return errno == EINTR && signals_caught() ? signals_status() : cannot(out, "write it");
        return 0;
    }
    out->target = follow_links(path);
    if (!out->target) return cannot(out, "write it");
    return open_temporary(out, exists ? &now : NULL);
}

int sink_open(sink **out, const char *path) {
    sink *s = need(1, sizeof *s);
    memset(s, 0, offsetof(sink, data));
    int to_stdout = !path || strcmp(path, "-") == 0;
    s->name = need_copy(to_stdout ? "stdout" : path);
    s->fd = to_stdout ? STDOUT_FILENO : -1;
    current = s;
    *out = s;
    int status = to_stdout ? 0 : open_path(s, path);
    if (status) sink_abandon(out);
    return status;
}

sink *sink_open_memory(buffer *into) {
    sink *s = need(1, sizeof *s);
    memset(s, 0, offsetof(sink, data));
    s->name = need_copy("memory");
    s->fd = -1;
    s->memory = into;
    return s;
}

/* A descriptor that does not block (somebody else set it so) is waited for. */
static int wait_writable(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    return poll(&one, 1, -1) >= 0 || errno == EINTR;
}

static int write_all(sink *out, const char *bytes, size_t n) {
    if (out->memory) {
        buffer_add(out->memory, bytes, n);
        out->flushed += n;
        return 0;
    }
    while (n > 0) {
        ssize_t wrote = write(out->fd, bytes, n);
        if (wrote < 0 && (errno == EINTR || (errno == EAGAIN && wait_writable(out->fd)))) continue;
        if (wrote < 0) return cannot(out, "write");
        bytes += wrote;
        n -= (size_t)wrote;
        out->flushed += (uint64_t)wrote;
    }
    return 0;
}

int sink_flush(sink *out) {
    size_t n = out->held;
    out->held = 0;
    return write_all(out, out->data, n);
}

int sink_write(sink *out, const void *bytes, size_t n) {
    if (n > SINK_BUFFER - out->held) TRY(sink_flush(out));
    if (n >= SINK_BUFFER) return write_all(out, bytes, n);
    if (n) memcpy(out->data + out->held, bytes, n);
    out->held += n;
    return 0;
}

uint64_t sink_tell(const sink *out) {
    return out->flushed + out->held;
}

const char *sink_name(const sink *out) {
    return out->name;
}

int sink_is_terminal(const sink *out) {
    return isatty(out->fd);
}

/* So that the new name survives a power cut too; a file system that cannot is no reason to fail. */
static void sync_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
    free(folder);
}

static int put_in_place(sink *out) {
    if (fsync(out->fd) < 0) return cannot(out, "write");
    int fd = out->fd;
    out->fd = -1;
    if (close(fd) < 0) return cannot(out, "close");
    if (signals_caught()) return signals_status();
    if (rename(out->temporary, out->target) < 0) return cannot(out, "give the finished file its name");
    signals_guard_file(NULL);
    free(out->temporary);
    out->temporary = NULL;
    sync_folder(out->target);
    return 0;
}

int sink_finish(sink **out) {
    sink *s = *out;
    int status = sink_flush(s);
    if (!status && s->target) status = put_in_place(s);
    /* Network file systems report a full disk at close. */
    else if (!status && s->fd >= 0) {
        int closed = close(s->fd);
        if (closed < 0 && errno != EINTR) status = cannot(s, "close");
        s->fd = -1;
    }
    sink_abandon(out);
    return status;
}

void sink_abandon(sink **out) {
    sink *s = *out;
    if (!s) return;
    if (!s->target && s->fd >= 0) (void)sink_flush(s); /* complete results are not held back */
    if (s->fd >= 0 && s->fd != STDOUT_FILENO) close(s->fd);
    if (s->temporary) unlink(s->temporary);
    if (s->target) signals_guard_file(NULL);
    free(s->temporary);
    free(s->target);
    free(s->name);
    if (current == s) current = NULL;
    free(s);
    *out = NULL;
}

void sink_abandon_all(void) {
    if (current) sink_abandon(&current);
}
