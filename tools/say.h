/* say.h: words for people, on stderr, each one printable line that begins with "bert: ".
 *
 * Exit statuses of the command: functions here and in the other files of this room that can fail
 * return 0 or one of these, and whoever returns it has already said why.
 */
#ifndef SAY_H
#define SAY_H

#include <bert/base.h>

enum { EXIT_DONE = 0, EXIT_COULD_NOT = 1, EXIT_USAGE = 2, EXIT_CLOSED_PIPE = 141 };

/* Returns the status of `call` from the calling function unless it is 0. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int try_status = (call);                                                                                       \
        if (try_status) return try_status;                                                                             \
    } while (0)

#define SAY_FORMAT(at) __attribute__((format(printf, at, at + 1)))

/* "bert: WORDS"; returns EXIT_COULD_NOT. */
int say_error(const char *format, ...) SAY_FORMAT(1);
/* "bert: WORDS"; returns EXIT_USAGE. */
int say_usage(const char *format, ...) SAY_FORMAT(1);
/* "bert: warning: WORDS". */
void say_warning(const char *format, ...) SAY_FORMAT(1);

/* What the library said; returns the exit status that belongs to it (nothing is said after a signal). */
int say_failure(const bert_error *err);

/* Warnings of the library. */
extern const bert_notes say_notes;

#endif
