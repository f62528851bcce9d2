/* serve/peers.h: the connections, where each of them stands, and until when it may stand there.
 *
 * libmicrohttpd has a limit for silence only, so a client that sends a byte now and then stays for ever. Here each
 * stage has a time of its own that counts from its beginning: to send a head, a body, to take the answer. And a head is
 * looked at by head_check while its bytes are still in the socket; libmicrohttpd is told that there is something to
 * read only when a whole and faultless one is there.
 */
#ifndef SERVE_PEERS_H
#define SERVE_PEERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/select.h>

#include "metrics.h"

typedef enum peer_stage {
    PEER_NONE,
    PEER_HEAD, /* nothing of a request has been read */
    PEER_BODY, /* a head was let through */
    PEER_WORK, /* the request is complete */
    PEER_SEND, /* the answer is on its way */
    PEER_GONE  /* shut down; libmicrohttpd has yet to notice */
} peer_stage;

typedef struct peer {
    peer_stage stage;
    int64_t since, until; /* CLOCK_MONOTONIC, ns; until 0: for ever */
    int64_t again;        /* a part of a head is there: when to look again */
    int64_t nap;
    size_t seen;          /* bytes of it */
    void *work;           /* whatever is being done in PEER_WORK; NULL: nobody waits for it any more */
    int last;             /* more is there than one request: no other is taken */
} peer;

/* By descriptor: select() has no room for more. */
typedef struct peers {
    peer at[FD_SETSIZE];
    int top; /* no descriptor is larger */
    size_t n;
    size_t body_most;
    int64_t head_time; /* ns */
    metrics *metrics;  /* where refusals are counted */
} peers;

void peers_add(peers *all, int fd);
void peers_remove(peers *all, int fd);
void peers_enter(peers *all, int fd, peer_stage stage);

/* Something can be read, and a head is expected. 1: a good one is there, for libmicrohttpd to read. */
int peers_look(peers *all, int fd);

/* Ends those whose time is up; returns when the next one's is (INT64_MAX: never). */
int64_t peers_expire(peers *all, int64_t now);

/* Ends the one that has been waiting for the longest time between requests; 0: there is none. */
int peers_evict(peers *all);
/* Ends all that are between requests; those whose next head is there already go on. */
void peers_dismiss(peers *all);

/* Answers and closes a connection that is none of these. */
void peers_turn_away(peers *all, int fd, int status, const char *why);

#endif
