/* serve/server.h: the network side: one thread that accepts, reads and answers. */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "exchange.h"

typedef struct server server;

typedef struct listen_at {
    const char *host;
    size_t port;        /* 0: any */
    const char *socket; /* not NULL: a Unix socket instead */
} listen_at;

/* SIGINT, SIGTERM and SIGHUP wait until the server takes them. Threads that do not block them by themselves must be
 * started behind this call, or one of them gets the signal. */
void server_block_signals(void);

/* From here on SIGINT, SIGTERM and SIGHUP are the server's. */
int server_open(server **s, service *of, const listen_at *at);
/* Where clients find it: "http://127.0.0.1:8080" or "unix:PATH". */
const char *server_address(const server *s);
/* Serves until a signal comes, answers what has been taken, returns the exit status. A second signal ends the process
 * at once. */
int server_run(server *s);
void server_close(server **s);

#endif
