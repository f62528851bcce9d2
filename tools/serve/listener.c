#include "listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "say.h"

static int cannot(const char *where, const char *what) {
    return say_error("%s: cannot %s: %s", where, what, strerror(errno));
}

static int bind_first(const struct addrinfo *list, const char *where, int *fd) {
    int on = 1;
    *fd = socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0) return cannot(where, "open a socket");
    (void)setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(*fd, list->ai_addr, list->ai_addrlen) || listen(*fd, LISTENER_BACKLOG))
        return cannot(where, "listen there");
    return 0;
}

/* The address as it is now: port 0 has become one. */
static int describe(int fd, buffer *address) {
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getsockname(fd, (struct sockaddr *)&bound, &size) ||
        getnameinfo((struct sockaddr *)&bound, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV))
        return say_error("cannot say where the server listens");
    buffer_print(address, bound.ss_family == AF_INET6 ? "http://[%s]:%s" : "http://%s:%s", host, port);
    return 0;
}

int listener_open_tcp(int *fd, buffer *address, const char *host, size_t port) {
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *list = NULL;
    char number[8];
    *fd = -1;
    if (port > 65535) return say_usage("--port %zu: expected a number up to 65535", port);
    snprintf(number, sizeof number, "%u", (unsigned)port);
    int failed = getaddrinfo(host, number, &wanted, &list);
    if (failed) return say_error("--host %s: %s", host, gai_strerror(failed));
    int status = bind_first(list, host, fd);
    freeaddrinfo(list);
    return status ? status : describe(*fd, address);
}

/* 1: there is a socket file, and nobody answers there; somebody who is too busy to does not make us wait. */
static int is_stale(const struct sockaddr_un *name) {
    struct stat now;
    if (stat(name->sun_path, &now) || !S_ISSOCK(now.st_mode)) return 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int refused = fd >= 0 && connect(fd, (const struct sockaddr *)name, sizeof *name) && errno == ECONNREFUSED;
    if (fd >= 0) close(fd);
    return refused;
}

int listener_open_unix(int *fd, buffer *address, const char *path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    *fd = -1;
    if (!*path) return say_usage("--socket: expected the path of a socket, found an empty one"); /* Linux takes that */
    if (strlen(path) >= sizeof name.sun_path)
        return say_usage("--socket %s: at most %zu bytes", path, sizeof name.sun_path - 1);
    strcpy(name.sun_path, path);
    if (is_stale(&name)) unlink(path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0) return cannot(path, "open a socket");
    if (bind(*fd, (struct sockaddr *)&name, sizeof name)) {
        int status = cannot(path, "make the socket");
        close(*fd);
        *fd = -1; /* the file there is not ours */
        return status;
    }
    if (listen(*fd, LISTENER_BACKLOG)) return cannot(path, "listen there");
    buffer_print(address, "unix:%s", path);
    return 0;
}
