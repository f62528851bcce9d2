/* output/sink.h: where the data goes: stdout or a file, every error seen.
 *
 * A regular file is written under a temporary name in its own folder and gets its name when it is complete and on
 * disk. Devices, FIFOs and sockets are written as they are.
 */
#ifndef SINK_H
#define SINK_H

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

typedef struct sink sink;

/* path NULL or "-": stdout. */
int sink_open(sink **out, const char *path);

/* Into `into`, which outlives it. Any number of these may be open. */
sink *sink_open_memory(buffer *into);

int sink_write(sink *out, const void *bytes, size_t n);
/* What has been written so far leaves the process (a reader of the pipe sees it). */
int sink_flush(sink *out);
/* Bytes written so far. */
uint64_t sink_tell(const sink *out);
/* The file's name, or "stdout". */
const char *sink_name(const sink *out);
/* 1: a terminal. */
int sink_is_terminal(const sink *out);

/* Flushes and gives the file its name. The sink is gone afterwards, also on failure. */
int sink_finish(sink **out);
/* No file is left behind; what went to stdout, a device, FIFO or socket has gone. */
void sink_abandon(sink **out);
/* The same for the sink that is open, whoever holds it: for the way out of the process. */
void sink_abandon_all(void);

#endif
