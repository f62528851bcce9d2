#include "say.h"

#include <stdarg.h>
#include <stdio.h>

#include "progress.h"
#include "signals.h"

static void say(const char *before, const char *format, va_list words) {
    progress_clear();
    fprintf(stderr, "bert: %s", before);
    vfprintf(stderr, format, words);
    fputc('\n', stderr);
}

int say_error(const char *format, ...) {
    va_list words;
    va_start(words, format);
    say("", format, words);
    va_end(words);
    return EXIT_COULD_NOT;
}

int say_usage(const char *format, ...) {
    va_list words;
    va_start(words, format);
    say("", format, words);
    va_end(words);
    return EXIT_USAGE;
}

void say_warning(const char *format, ...) {
    va_list words;
    va_start(words, format);
    say("warning: ", format, words);
    va_end(words);
}

int say_failure(const bert_error *err) {
    if (signals_caught()) return signals_status();
    return say_error("%s", err->text);
}

static void note(void *user, const char *text) {
    (void)user;
    say_warning("%s", text);
}

const bert_notes say_notes = {NULL, note};
