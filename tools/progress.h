/* progress.h: the progress bar on stderr, shown when stderr is a terminal and the work takes longer than a second. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdint.h>

/* force: also where stderr is no terminal, and from the start; quiet: never. */
void progress_open(int force, int quiet);

/* `texts` are done; `part` of `whole` (bytes or texts) has been read, whole 0: not known. Draws at most ten times a
 * second. The first call starts the clock. */
void progress_show(uint64_t texts, uint64_t part, uint64_t whole);

/* Takes the bar away, so that something else can be written. */
void progress_clear(void);

#endif
