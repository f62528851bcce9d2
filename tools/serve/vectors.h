/* serve/vectors.h: what the endpoints for sentence vectors share. */
#ifndef SERVE_VECTORS_H
#define SERVE_VECTORS_H

#include "request.h"

/* A job for vectors of the request's texts, with its "dimensions" and "normalize". */
int vectors_job(request *r, job **j);

#endif
