/* window.h: a stretch of the input that is worked on at once: memory stays bounded however long the stream is. */
#ifndef WINDOW_H
#define WINDOW_H

#include <bert/tokenizer.h>

#include "input.h"
#include "output/sink.h"

typedef struct window {
    input *in;
    record *records; /* [n], in order of the input */
    size_t n, room;
    bert_text *texts; /* [n_texts]: of those that can be used, in order */
    size_t *places;   /* [n_texts]: their places in records */
    size_t n_texts;
    const char *prompt; /* stands before each text when it is tokenized; NULL: nothing */
    bert_text *prompted; /* [n_texts] of the texts at hand, */
    buffer prompt_bytes; /* and what they point to */
    int at_end;       /* the input has nothing more */
    size_t most;      /* records in this window */
    double filled;    /* when it was full, in seconds of clock_seconds */
    size_t done;      /* records of earlier windows */
    size_t truncated; /* of all texts so far */
    int failed;       /* some record could not be used */
    buffer where;
} window;

enum { WINDOW_ALL, WINDOW_STREAM, WINDOW_PATIENT };
/* Reads the next records. WINDOW_STREAM: until a limit, or until the next one is not there yet; WINDOW_PATIENT: waits
 * for that; WINDOW_ALL: to the end of the input. */
int window_fill(window *w, int how);

/* Gathers the texts of the records that can be used. */
void window_gather(window *w);

/* Tokenizes them. A text that cannot be (by the options) becomes a record with its own error, the others are left. */
int window_tokenize(window *w, bert_tokens **tokens, const bert_tokenizer *tokenizer,
                    const bert_tokenize_options *options);
/* The same judgement without the tokens; *found: how many texts were taken out. */
int window_screen(window *w, const bert_tokenizer *tokenizer, const bert_tokenize_options *options, size_t *found);

/* 1: an error that belongs to one text and leaves the others alone. */
int window_concerns_text(bert_status status);

/* Warns of what happened to a text; with --strict that makes it a record that cannot be used. */
void window_note(window *w, record *r, size_t truncated, size_t limit);

/* A record that cannot be used: says so, and does what --on-error says. `out` NULL: the format cannot hold errors. */
int window_report(window *w, const record *r, sink *out);

/* How many texts were truncated, in words; then the exit status for lines that could not be used. */
int window_finish(window *w);
void window_close(window *w);

#endif
