#include "peers.h"

#include <sys/socket.h>
#include <unistd.h>

#include "bounds.h"
#include "head.h"
#include "json_out.h"

#define FIRST_NAP 1000000
#define LONGEST_NAP 250000000

/* In head times, which count from connecting, or from the first byte, to the end of the head. */
enum {
    IDLE_TIMES = 3, /* between requests */
    BODY_TIMES = 3, /* from the head to the end of the body */
    SEND_TIMES = 12 /* from the answer to its last byte */
};

void peers_add(peers *all, int fd) {
    int64_t now = now_ns();
    all->at[fd] = (peer){.stage = PEER_HEAD, .since = now, .until = now + all->head_time};
    if (fd > all->top) all->top = fd;
    all->n++;
}

void peers_remove(peers *all, int fd) {
    all->n -= all->at[fd].stage != PEER_NONE;
    all->at[fd] = (peer){0};
}

void peers_enter(peers *all, int fd, peer_stage stage) {
    static const int64_t times[] = {[PEER_HEAD] = IDLE_TIMES, [PEER_BODY] = BODY_TIMES, [PEER_SEND] = SEND_TIMES,
                                    [PEER_GONE] = 0};
    peer *p = &all->at[fd];
    if (p->stage == PEER_GONE) return;
    int64_t now = now_ns(), time = times[stage] * all->head_time;
    *p = (peer){.stage = stage, .since = now, .until = time ? now + time : 0, .last = p->last};
}

static const char *phrase(int status) {
    switch (status) {
    case 400: return "Bad Request";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Error";
    }
}

static void say(peers *all, int fd, int status, const char *why) {
    buffer body = {0}, answer = {0};
    buffer_text(&body, "{\"error\":");
    json_text(&body, why);
    buffer_print(&body, ",\"error_type\":\"%s\"}\n", status == 503 ? "Overloaded" : "Validation");
    buffer_print(&answer, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\n", status,
                 phrase(status));
    buffer_print(&answer, "%sContent-Length: %zu\r\n\r\n", status == 503 ? "Retry-After: 1\r\n" : "", body.len);
    buffer_add(&answer, body.data, body.len);
    (void)!send(fd, answer.data, answer.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    metrics_refused(all->metrics, status);
    buffer_close(&body);
    buffer_close(&answer);
}

/* What has come and will not be read is thrown away: closing a socket that holds unread bytes takes our answer back. */
static void hang_up(int fd) {
    char waste[4096];
    for (int i = 0; i < 32 && recv(fd, waste, sizeof waste, MSG_DONTWAIT) > 0; i++) continue;
    shutdown(fd, SHUT_RDWR);
}

static void end(peers *all, int fd) {
    hang_up(fd);
    peers_enter(all, fd, PEER_GONE);
}

void peers_turn_away(peers *all, int fd, int status, const char *why) {
    say(all, fd, status, why);
    hang_up(fd);
    close(fd);
}

static void refuse(peers *all, int fd, int status, const char *why) {
    say(all, fd, status, why);
    end(all, fd);
}

/* A part of a head. Looked at again soon, then less often. */
static void doze(const peers *all, peer *p, size_t seen) {
    int64_t now = now_ns();
    if (!p->seen && now + all->head_time < p->until) p->until = now + all->head_time;
    p->nap = seen > p->seen || !p->nap ? FIRST_NAP : p->nap < LONGEST_NAP / 2 ? 2 * p->nap : LONGEST_NAP;
    p->again = now + p->nap;
    p->seen = seen;
}

int peers_look(peers *all, int fd) {
    char bytes[HEAD_MOST + 1];
    const char *why;
    head h;
    peer *p = &all->at[fd];
    ssize_t n = recv(fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0) return n == 0; /* the end: libmicrohttpd shall see it */
    int status = head_check(&h, bytes, (size_t)n, &why);
    if (status == HEAD_PART) {
        doze(all, p, (size_t)n);
        return 0;
    }
    if (status == HEAD_GOOD && h.length > all->body_most) {
        status = 413;
        why = "the body is larger than this server takes (bert serve --max-body)";
    }
    if (status != HEAD_GOOD) {
        refuse(all, fd, status, why);
        return 1;
    }
    p->last = !h.chunked && (uint64_t)n - h.size > h.length;
    peers_enter(all, fd, PEER_BODY);
    return 1;
}

static void time_out(peers *all, int fd) {
    const peer *p = &all->at[fd];
    if (p->stage == PEER_BODY || (p->stage == PEER_HEAD && p->seen))
        refuse(all, fd, 408, "the request took too long to come");
    else
        end(all, fd);
}

int64_t peers_expire(peers *all, int64_t now) {
    int64_t next = INT64_MAX;
    for (int fd = 0; fd <= all->top; fd++) {
        const peer *p = &all->at[fd];
        if (!p->until) continue;
        if (p->until <= now)
            time_out(all, fd);
        else if (p->until < next)
            next = p->until;
    }
    return next;
}

static int oldest(const peers *all) {
    int found = -1;
    for (int fd = 0; fd <= all->top; fd++)
        if (all->at[fd].stage == PEER_HEAD && (found < 0 || all->at[fd].since < all->at[found].since)) found = fd;
    return found;
}

int peers_evict(peers *all) {
    for (int fd; (fd = oldest(all)) >= 0;) {
        peers_look(all, fd); /* it may have asked for something since the last look */
        if (all->at[fd].stage != PEER_HEAD) continue;
        end(all, fd);
        return 1;
    }
    return 0;
}

void peers_dismiss(peers *all) {
    for (int fd = 0; fd <= all->top; fd++) {
        if (all->at[fd].stage == PEER_HEAD) peers_look(all, fd);
        if (all->at[fd].stage == PEER_HEAD) end(all, fd);
    }
}
