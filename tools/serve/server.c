#include "server.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "listener.h"
#include "peers.h"
#include "respond.h"
#include "say.h"

#define DRAIN_NS ((int64_t)30 * 1000000000)
#define AT_ONCE 64 /* connections, before those that are there get their turn */
#define ACCEPT_PAUSE_NS ((int64_t)100 * 1000000) /* when there are no descriptors left */

struct server {
    service *of;
    responder responder;
    peers peers;
    struct MHD_Daemon *daemon;
    const char *socket; /* file to remove; NULL: none */
    buffer address;
    int listener, signals, wake;
    int64_t accept_again; /* not before, unless a connection ends; 0: at once */
    size_t accept_below;  /* connections that there were when no more could be taken */
    int64_t drain_until;
    fd_set read, write, other; /* what libmicrohttpd waits for, then what there is */
    int top;
};

/* ---- Beginning and end. ---- */

static int cannot(const char *what) {
    return say_error("cannot %s: %s", what, strerror(errno));
}

static sigset_t our_signals(void) {
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    return ours;
}

void server_block_signals(void) {
    sigset_t ours = our_signals();
    sigprocmask(SIG_BLOCK, &ours, NULL);
}

static int take_signals(server *s) {
    sigset_t ours = our_signals();
    server_block_signals();
    s->signals = signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC);
    return s->signals < 0 ? cannot("wait for signals") : 0;
}

static int start_daemon(server *s) {
    s->daemon = MHD_start_daemon(MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, respond,
                                 &s->responder, MHD_OPTION_NOTIFY_COMPLETED, respond_completed, &s->responder,
                                 MHD_OPTION_NOTIFY_CONNECTION, respond_connection, &s->responder,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 << 10), MHD_OPTION_STRICT_FOR_CLIENT,
                                 1, MHD_OPTION_END);
    return s->daemon ? 0 : say_error("libmicrohttpd does not start");
}

int server_open(server **at, service *of, const listen_at *where) {
    server *s = need(1, sizeof *s);
    memset(s, 0, sizeof *s);
    s->listener = s->signals = s->wake = -1;
    s->of = of;
    s->responder = (responder){of, &s->peers, 0};
    s->peers.body_most = of->most.body;
    s->peers.metrics = of->metrics;
    s->peers.head_time = (int64_t)of->most.head_s * 1000000000;
    *at = s;
    TRY(take_signals(s));
    s->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->wake < 0) return cannot("make an eventfd");
    TRY(queue_open(&of->queue, &of->most, s->wake));
    TRY(start_daemon(s));
    if (!where->socket) return listener_open_tcp(&s->listener, &s->address, where->host, where->port);
    int status = listener_open_unix(&s->listener, &s->address, where->socket);
    if (s->listener >= 0) s->socket = where->socket;
    return status;
}

const char *server_address(const server *s) {
    return s->address.data;
}

static void stop_listening(server *s) {
    if (s->listener < 0) return;
    if (s->socket) unlink(s->socket);
    close(s->listener);
    s->listener = -1;
}

void server_close(server **at) {
    server *s = *at;
    if (!s) return;
    stop_listening(s);
    if (s->daemon) MHD_stop_daemon(s->daemon);
    queue_close(&s->of->queue);
    if (s->wake >= 0) close(s->wake);
    if (s->signals >= 0) close(s->signals);
    buffer_close(&s->address);
    free(s);
    *at = NULL;
}

/* ---- New connections. ---- */

static void take_connection(server *s, int fd) {
    int on = 1;
    if (fd >= FD_SETSIZE || (s->peers.n >= s->of->most.connections && !peers_evict(&s->peers))) {
        peers_turn_away(&s->peers, fd, 503, "too many connections: try again");
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct sockaddr_in nobody = {.sin_family = AF_INET};
    peers_add(&s->peers, fd);
    if (MHD_add_connection(s->daemon, fd, (struct sockaddr *)&nobody, sizeof nobody) != MHD_YES)
        peers_remove(&s->peers, fd); /* closed it is already */
}

/* Those that have come, up to `most`. */
static void accept_some(server *s, int most) {
    for (int i = 0; i < most; i++) {
        int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take_connection(s, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno == EAGAIN) return;
        /* No descriptors or no memory: somebody has to go, and until then there is no point in asking again. */
        s->accept_again = now_ns() + ACCEPT_PAUSE_NS;
        s->accept_below = s->peers.n;
        peers_evict(&s->peers);
        return;
    }
}

/* ---- What the queue and signals bring. ---- */

static void deliver(server *s) {
    eventfd_t count;
    eventfd_read(s->wake, &count);
    for (job *j = queue_take(s->of->queue), *next; j; j = next) {
        const exchange *x = j->owner;
        next = j->next;
        s->peers.at[x->descriptor].work = NULL;
        MHD_resume_connection(x->connection);
    }
}

static void take_signal(server *s) {
    struct signalfd_siginfo what;
    if (read(s->signals, &what, sizeof what) != sizeof what) return;
    if (s->responder.draining) _exit(128 + (int)what.ssi_signo);
    s->responder.draining = 1;
    s->drain_until = now_ns() + DRAIN_NS;
    accept_some(s, LISTENER_BACKLOG); /* they may have sent a request: no close without a word */
    stop_listening(s);
}

/* ---- The loop. ---- */

typedef struct watch {
    struct pollfd at[FD_SETSIZE + 3];
    nfds_t n;
} watch;

static void watch_add(watch *w, int fd, short events) {
    w->at[w->n++] = (struct pollfd){.fd = fd, .events = events};
}

/* Everything that something may come from. A peer that has sent a part of a head is left in peace for a while; *next
 * is when that ends. */
static void watch_all(server *s, watch *w, int64_t now, int64_t *next) {
    w->n = 0;
    watch_add(w, s->signals, POLLIN);
    watch_add(w, s->wake, POLLIN);
    int pauses = s->accept_again > now && s->peers.n >= s->accept_below;
    if (pauses && s->accept_again < *next) *next = s->accept_again;
    watch_add(w, pauses ? -1 : s->listener, POLLIN);
    for (int fd = 0; fd <= s->peers.top || fd <= s->top; fd++) {
        const peer *p = &s->peers.at[fd];
        int rests = p->stage == PEER_HEAD && p->again > now;
        int reads = FD_ISSET(fd, &s->read) && !rests, writes = FD_ISSET(fd, &s->write);
        if (rests && p->again < *next) *next = p->again;
        short events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
        if (events || p->work) watch_add(w, fd, events); /* POLLHUP and POLLERR come unasked */
    }
}

/* The client has gone while its request was worked on. One that has only closed its sending side may still listen. */
static void forget(server *s, int fd) {
    const exchange *x = s->peers.at[fd].work;
    s->peers.at[fd].work = NULL;
    queue_cancel(s->of->queue, x->job);
}

/* Tells libmicrohttpd what can be read and written; heads only behind head_check. */
static void pass_on(server *s, const watch *w) {
    FD_ZERO(&s->read);
    FD_ZERO(&s->write);
    FD_ZERO(&s->other);
    for (nfds_t i = 3; i < w->n; i++) {
        int fd = w->at[i].fd;
        short found = w->at[i].revents;
        if (s->peers.at[fd].work && found & (POLLHUP | POLLERR)) forget(s, fd);
        int readable = w->at[i].events & POLLIN && found & (POLLIN | POLLHUP | POLLERR);
        if (readable && s->peers.at[fd].stage == PEER_HEAD) readable = peers_look(&s->peers, fd);
        if (readable) FD_SET(fd, &s->read);
        if (w->at[i].events & POLLOUT && found & (POLLOUT | POLLHUP | POLLERR)) FD_SET(fd, &s->write);
    }
}

static int milliseconds(int64_t now, int64_t next) {
    if (next == INT64_MAX) return -1;
    int64_t ms = (next - now + 999999) / 1000000;
    return ms < 0 ? 0 : ms > INT_MAX ? INT_MAX : (int)ms;
}

static int round_trip(server *s, watch *w) {
    if (s->responder.draining) peers_dismiss(&s->peers); /* again: an answer that is ending may not say "close" */
    int64_t now = now_ns(), next = peers_expire(&s->peers, now);
    MHD_UNSIGNED_LONG_LONG libmicrohttpd_ms;
    FD_ZERO(&s->read);
    FD_ZERO(&s->write);
    FD_ZERO(&s->other);
    s->top = 0;
    if (MHD_get_fdset2(s->daemon, &s->read, &s->write, &s->other, &s->top, FD_SETSIZE) != MHD_YES)
        return say_error("libmicrohttpd lost track of its connections");
    if (s->drain_until && s->drain_until < next) next = s->drain_until;
    watch_all(s, w, now, &next);
    int ms = milliseconds(now, next);
    if (MHD_get_timeout(s->daemon, &libmicrohttpd_ms) == MHD_YES && (ms < 0 || libmicrohttpd_ms < (unsigned)ms))
        ms = (int)libmicrohttpd_ms;
    if (poll(w->at, w->n, ms) < 0 && errno != EINTR) return cannot("wait for clients");
    if (w->at[0].revents) take_signal(s);
    if (w->at[1].revents) deliver(s);
    pass_on(s, w);
    if (MHD_run_from_select(s->daemon, &s->read, &s->write, &s->other) != MHD_YES)
        return say_error("libmicrohttpd does not run");
    if (w->at[2].revents && s->listener >= 0) accept_some(s, AT_ONCE);
    return 0;
}

int server_run(server *s) {
    watch *w = need(1, sizeof *w);
    int status = 0;
    while (!status && !(s->responder.draining && s->peers.n == 0)) {
        status = round_trip(s, w);
        if (!status && s->responder.draining && now_ns() > s->drain_until)
            status = say_error("%zu connections did not end within 30 seconds", s->peers.n);
    }
    free(w);
    if (!status) return 0;
    stop_listening(s);
    _exit(status); /* with requests under way libmicrohttpd cannot be stopped */
}
