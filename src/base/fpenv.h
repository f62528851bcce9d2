/* base/fpenv.h: the host's floating-point environment must not reach us, nor ours the host. */
#ifndef BERT_BASE_FPENV_H
#define BERT_BASE_FPENV_H

#include <stdint.h>

/* Sets round to nearest, no flush to zero, all exceptions masked; returns the word to give back to leave(). */
uint64_t bert_fpenv_enter(void);
/* Puts the host's word back, its exception flags as they were. */
void bert_fpenv_leave(uint64_t saved);

#endif
