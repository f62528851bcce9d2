/* serve/respond.h: between libmicrohttpd and an exchange: its callbacks. */
#ifndef SERVE_RESPOND_H
#define SERVE_RESPOND_H

#include <microhttpd.h>

#include "exchange.h"
#include "peers.h"

typedef struct responder {
    service *of;
    peers *peers;
    int draining; /* no new requests are taken */
} responder;

/* Callbacks; `cls` is a responder. */
enum MHD_Result respond(void *cls, struct MHD_Connection *c, const char *url, const char *method, const char *version,
                        const char *data, size_t *size, void **place);
void respond_completed(void *cls, struct MHD_Connection *c, void **place, enum MHD_RequestTerminationCode why);
void respond_connection(void *cls, struct MHD_Connection *c, void **place, enum MHD_ConnectionNotificationCode what);

#endif
