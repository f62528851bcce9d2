/* base/error.c: messages that are always one printable line of valid UTF-8, whatever went into them. */
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Longest text before escaping; what does not fit is cut by vsnprintf, and then once more with "…" below. */
enum { MESSAGE_ROOM = 1024 };

static const char ellipsis[] = "…";

uint32_t bert_version(void) {
    return BERT_VERSION_MAJOR << 16 | BERT_VERSION_MINOR << 8 | BERT_VERSION_PATCH;
}

uint32_t bert_numerics(void) {
    return 1;
}

/* What may stand in a message as it is: no control characters (C0, DEL, C1), line separators, or marks that reorder
 * the line around them (Unicode's bidirectional controls). */
static bool is_printable(uint32_t code) {
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
    if (code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e)) return false;
    return !(code >= 0x2066 && code <= 0x2069) && code != 0xfeff;
}

static bool is_quote(uint32_t code) {
    return code == '"' || code == '\'';
}

/* One character of `bytes` as it goes into a message. Returns its length there; *used bytes of the input are done. */
static size_t escape(char piece[17], const char *bytes, size_t len, bool escape_quotes, size_t *used) {
    uint32_t code;
    *used = bert_utf8_decode(&code, (const uint8_t *)bytes, len);
    if (*used > 0 && is_printable(code) && !(escape_quotes && is_quote(code))) {
        memcpy(piece, bytes, *used);
        return *used;
    }
    if (*used == 0) *used = 1;
    for (size_t i = 0; i < *used; i++) {
        snprintf(piece + 4 * i, 5, "\\x%02x", (unsigned)(unsigned char)bytes[i]);
    }
    return 4 * *used;
}

static void sanitize(char *text, size_t room, const char *bytes, size_t len, bool escape_quotes) {
    size_t n = 0, cut = 0; /* cut: the last place where the ellipsis still fits behind the text */
    while (len > 0) {
        char piece[17];
        size_t used;
        const size_t length = escape(piece, bytes, len, escape_quotes, &used);
        if (n + length + 1 > room) {
            const size_t dots = room - 1 - cut < sizeof ellipsis - 1 ? 0 : sizeof ellipsis - 1;
            memcpy(text + cut, ellipsis, dots);
            n = cut + dots;
            break;
        }
        memcpy(text + n, piece, length);
        n += length;
        if (n + sizeof ellipsis <= room) cut = n;
        bytes += used;
        len -= used;
    }
    text[n] = '\0';
}

const char *bert_quote(char *text, size_t room, const char *bytes, size_t len) {
    if (room > 0) sanitize(text, room, bytes, len, true);
    return text;
}

/* Formats into a buffer of its own first, so that `args` may point into `text`. */
static void write_line(char *text, size_t room, const char *format, va_list args) {
    char message[MESSAGE_ROOM];
    const int n = vsnprintf(message, sizeof message, format, args);
    if (n < 0) message[0] = '\0';
    sanitize(text, room, message, strlen(message), false);
}

bert_status bert_fail(bert_error *err, bert_status code, const char *format, ...) {
    if (err == NULL) return code;
    va_list args;
    va_start(args, format);
    write_line(err->text, sizeof err->text, format, args);
    va_end(args);
    err->code = code;
    return code;
}

void bert_note(const bert_notes *notes, const char *format, ...) {
    if (notes == NULL || notes->note == NULL) return;
    char text[sizeof((bert_error *)0)->text];
    va_list args;
    va_start(args, format);
    write_line(text, sizeof text, format, args);
    va_end(args);
    notes->note(notes->user, text);
}

bert_status bert_warn(const bert_notes *notes, int strict, bert_error *err, const char *format, ...) {
    char text[sizeof((bert_error *)0)->text];
    va_list args;
    va_start(args, format);
    write_line(text, sizeof text, format, args);
    va_end(args);
    if (strict) return bert_fail(err, BERT_BAD_FILE, "%s", text);
    bert_note(notes, "%s", text);
    return BERT_OK;
}
