/* signals.h: SIGINT, SIGTERM, SIGHUP and SIGXCPU end the command in order, and within half a second whatever it is
 * doing.
 *
 * The handler raises the flag that bert_run polls. Should the command not have ended 400 ms later (a read of a large
 * file, a reader of our pipe that has gone to sleep), a timer removes the unfinished output file and ends the process.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

/* Takes them over (SIGHUP unless it is ignored, as under nohup), ignores SIGPIPE and SIGXFSZ (writes answer EPIPE and
 * EFBIG instead), and makes sure that descriptors 0, 1 and 2 are open, so that no file of ours becomes one of them. */
void signals_open(void);

/* The flag for bert_run_options.stop. */
const volatile int *signals_flag(void);
int signals_caught(void);
/* 128 and the signal's number: 130, 143, 129, 152. */
int signals_status(void);

/* The file to remove if the process has to end at once; NULL: none. At most 4095 bytes are kept. */
void signals_guard_file(const char *path);

/* Waits until fd can be read, for ever or (forever 0) not at all. 1: it can, or it is at its end; 0: not, or a signal
 * came. */
int signals_wait_readable(int fd, int forever);

#endif
