/* input_ids.h: --ids FILE: token ids as a npy file ([T], or [N, T]) or as JSON lists, one a line. */
#ifndef INPUT_IDS_H
#define INPUT_IDS_H

#include "input.h"

int input_open_ids(input *in);
int input_next_ids(input *in, record *r, int *got);

/* 1: the line that was just read is longer than --max-line; the record says so (input.c). */
int input_cut(const input *in, record *r);

#endif
