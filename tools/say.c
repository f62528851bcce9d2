#include "say.h"

#include <stdarg.h>
#include <stdio.h>

#include "buffer.h"
#include "progress.h"
#include "signals.h"
#include "utf8.h"

/* One line and one write, whatever went into the words: names of files and arguments can hold anything. */
static void say(const char *before, const char *format, va_list values) {
    buffer words = {0}, line = {0};
    buffer_print_list(&words, format, values);
    buffer_print(&line, "bert: %s", before);
    utf8_add_printable(&line, words.data, words.len);
    buffer_byte(&line, '\n');
    progress_clear();
    fwrite(line.data, 1, line.len, stderr);
    buffer_close(&words);
    buffer_close(&line);
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
