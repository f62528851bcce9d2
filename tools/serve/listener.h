/* serve/listener.h: the socket at which clients knock. */
#ifndef SERVE_LISTENER_H
#define SERVE_LISTENER_H

#include "buffer.h"

enum { LISTENER_BACKLOG = 1024 }; /* connections that may wait to be accepted */

/* Binds and listens, does not block; *address is what clients are told. */
int listener_open_tcp(int *fd, buffer *address, const char *host, size_t port);
/* A socket file that nobody listens at any more is replaced. */
int listener_open_unix(int *fd, buffer *address, const char *path);

#endif
