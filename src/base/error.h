/* base/error.h: making and passing on errors. The message is made where the fault is first known. */
#ifndef BERT_BASE_ERROR_H
#define BERT_BASE_ERROR_H

#include <bert/base.h>

/* Writes the message (cut to fit at a character boundary) and returns `code`: `return bert_fail(err, BERT_IO, …)`. */
bert_status bert_fail(bert_error *err, bert_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Bytes from outside, fit for a message: control characters, quotes and invalid UTF-8 as \xNN, cut with "…".
 * Writes at most `room` bytes including NUL, returns `text`. */
const char *bert_quote(char *text, size_t room, const char *bytes, size_t len);

/* Sends a line to the caller's note callback, if there is one. */
void bert_note(const bert_notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What callers may want to know, or not to accept: a note, or with `strict` the failure BERT_BAD_FILE. */
BERT_MUST_USE bert_status bert_warn(const bert_notes *notes, int strict, bert_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Passes a failure on. TRY returns at once; TRY_OR_DONE jumps to the function's one exit label with `status` set. */
#define TRY(call)                                  \
    do {                                           \
        const bert_status try_status_ = (call);    \
        if (try_status_ != BERT_OK) return try_status_; \
    } while (0)
#define TRY_OR_DONE(call)                          \
    do {                                           \
        status = (call);                           \
        if (status != BERT_OK) goto done;          \
    } while (0)

#endif
