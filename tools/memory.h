/* memory.h: --memory FILE.npy: the states that a decoder's cross-attention looks at. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

/* Reads float32 or float64 of shape [Tm, hidden], or [1, Tm, hidden] as Hugging Face has it, into *states, which the
 * caller frees. */
int memory_read(float **states, size_t *rows, const char *path, size_t hidden);

#endif
