/* input.h: the texts that the user gives: arguments, lines of stdin, JSON lines, or token ids from a file. */
#ifndef INPUT_H
#define INPUT_H

#include <bert/json.h>

#include "args.h"
#include "buffer.h"
#include "lines.h"

typedef struct record {
    size_t number;  /* of the line, or the argument, from 1 */
    bert_text text; /* unless ids were given */
    int32_t *ids;   /* [n_ids]; NULL: a text */
    size_t n_ids;
    bert_json id;                  /* the user's own, byte for byte; at NULL: none */
    size_t invalid, first_invalid; /* parts of the line that are not UTF-8; byte position of the first */
    char wrong[512];               /* not empty: this one cannot be used, and why */
    buffer bytes;                  /* owns what text and id point to */
} record;

void record_close(record *r);

typedef struct input {
    const settings *s;
    lines lines;
    size_t next; /* argument, or row of a npy file */
    int is_npy;
    size_t rows, columns; /* of the npy file */
    int id_bytes;         /* of one of its elements */
    int id_unsigned;
} input;

/* Looks which input the settings mean, and whether it is there. */
int input_open(input *in, const settings *s);

/* The next one; *got = 0 at the end. `r` is used again and again, and closed by the caller. */
int input_next(input *in, record *r, int *got);

/* 1: input_next would not wait. */
int input_ready(input *in);

/* "stdin: line 3" or "text 2": what to call the record in messages. */
void input_where(const input *in, const record *r, buffer *where);

/* How much has been read, of how much (0: not known), for the progress bar. */
void input_progress(const input *in, uint64_t *part, uint64_t *whole);
void input_close(input *in);

#endif
