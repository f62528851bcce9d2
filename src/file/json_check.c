/* file/json_check.c: the strict checker: recursive descent over RFC 8259. Afterwards every view function may trust the
 * text. */
#include "file/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "file/json_keys.h"

enum { MAX_DEPTH = 64 };

typedef struct scan {
    const char *text, *at, *end;
    const char *name; /* NULL: not a file */
    bool allow_nul;
    int depth;
    bert_json_keys keys; /* of the open objects */
    bert_status status; /* of the fault; BERT_BAD_FILE but for lack of memory */
    bert_error *err;
} scan;

/* Lines end at LF; columns count characters, so that an editor goes to the same place. */
static void line_and_column(const scan *s, const char *at, size_t *line, size_t *column) {
    *line = *column = 1;
    for (const char *p = s->text; p < at; p++) {
        if (*p == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)*p & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

static bool fault(scan *s, const char *at, const char *what) {
    size_t line, column;
    line_and_column(s, at, &line, &column);
    s->status = BERT_BAD_FILE;
    if (s->name != NULL) {
        bert_fail(s->err, BERT_BAD_FILE, "%s: line %zu, column %zu: %s", s->name, line, column, what);
    } else {
        bert_fail(s->err, BERT_BAD_FILE, "JSON, byte %zu (line %zu, column %zu): %s", (size_t)(at - s->text), line,
                  column, what);
    }
    return false;
}

static bool no_memory(scan *s) {
    s->status = bert_fail(s->err, BERT_NO_MEMORY, "%s: no memory for its keys", s->name != NULL ? s->name : "JSON");
    return false;
}

static bool expected(scan *s, const char *what) {
    char found[24], message[96];
    if (s->at < s->end) {
        uint32_t code;
        const size_t n = bert_utf8_decode(&code, (const uint8_t *)s->at, (size_t)(s->end - s->at));
        bert_quote(found, sizeof found, s->at, n > 0 ? n : 1);
        snprintf(message, sizeof message, "expected %s, found '%s'", what, found);
    } else {
        snprintf(message, sizeof message, "expected %s, found the end", what);
    }
    return fault(s, s->at, message);
}

static char peek(const scan *s) {
    return s->at < s->end ? *s->at : '\0';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static void skip_space(scan *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t')) s->at++;
}

static bool check_word(scan *s, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0) return expected(s, "a value");
    s->at += n;
    return true;
}

static bool check_digits(scan *s) {
    if (!is_digit(peek(s))) return expected(s, "a digit");
    while (is_digit(peek(s))) s->at++;
    return true;
}

static bool check_number(scan *s) {
    if (peek(s) == '-') s->at++;
    const bool zero = peek(s) == '0';
    if (zero && s->at + 1 < s->end && is_digit(s->at[1])) return fault(s, s->at, "a number with a leading zero");
    if (!check_digits(s)) return false;
    if (peek(s) == '.') {
        s->at++;
        if (!check_digits(s)) return false;
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-') s->at++;
        return check_digits(s);
    }
    return true;
}

/* \uXXXX with *at at the backslash; -1 if it is not that. */
static long code_unit(const scan *s, const char *at) {
    if (s->end - at < 6 || at[0] != '\\' || at[1] != 'u') return -1;
    long code = 0;
    for (int i = 2; i < 6; i++) {
        const char c = at[i], lower = (char)(c | 0x20);
        if (is_digit(c)) {
            code = code * 16 + (c - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            code = code * 16 + (lower - 'a' + 10);
        } else {
            return -1;
        }
    }
    return code;
}

static bool check_code_escape(scan *s) {
    const long code = code_unit(s, s->at);
    if (code < 0) return fault(s, s->at, "\\u without four hexadecimal digits");
    if (code == 0 && !s->allow_nul) return fault(s, s->at, "\\u0000 in a string");
    size_t length = 6;
    if (code >= 0xd800 && code < 0xe000) {
        const long low = code_unit(s, s->at + 6);
        if (code >= 0xdc00 || low < 0xdc00 || low >= 0xe000) return fault(s, s->at, "half of a surrogate pair");
        length = 12;
    }
    s->at += length;
    return true;
}

static bool check_escape(scan *s) {
    const char c = s->at + 1 < s->end ? s->at[1] : '\0';
    if (c == 'u') return check_code_escape(s);
    if (c == '\0' || strchr("\"\\/bfnrt", c) == NULL) return fault(s, s->at, "an escape that JSON does not have");
    s->at += 2;
    return true;
}

static bool check_beyond_ascii(scan *s) {
    uint32_t code;
    const size_t n = bert_utf8_decode(&code, (const uint8_t *)s->at, (size_t)(s->end - s->at));
    if (n == 0) return fault(s, s->at, "invalid UTF-8 in a string");
    s->at += n;
    return true;
}

static bool check_string(scan *s) {
    const char *start = s->at++;
    while (s->at < s->end) {
        const unsigned char c = (unsigned char)*s->at;
        if (c == '"') {
            s->at++;
            return true;
        }
        if (c < 0x20) return fault(s, s->at, "a control character in a string");
        if (c == '\\') {
            if (!check_escape(s)) return false;
        } else if (c < 0x80) {
            s->at++;
        } else if (!check_beyond_ascii(s)) {
            return false;
        }
    }
    return fault(s, start, "a string without its closing quote");
}

static bool duplicate_fault(scan *s, const char *at) {
    char bytes[64], quoted[80], message[128];
    const char *p = at;
    size_t n = 0, step;
    while (n + 4 <= sizeof bytes && (step = bert_json_character(&p, bytes + n)) > 0) n += step;
    bert_quote(quoted, sizeof quoted, bytes, n);
    snprintf(message, sizeof message, "the key '%s' is there twice", quoted);
    return fault(s, at - 1, message);
}

static bool check_value(scan *s);

static bool check_member(scan *s) {
    if (peek(s) != '"') return expected(s, "a key in quotes");
    const char *at = s->at + 1;
    if (!check_string(s)) return false;
    if (!bert_json_keys_push(&s->keys, at)) return no_memory(s);
    skip_space(s);
    if (peek(s) != ':') return expected(s, "':'");
    s->at++;
    skip_space(s);
    return check_value(s);
}

/* An array or object, from its opening bracket on. */
static bool check_container(scan *s, bool (*check_item)(scan *), char close, const char *comma_or_close) {
    const size_t first_key = s->keys.n;
    if (s->depth == MAX_DEPTH) return fault(s, s->at, "nested more than 64 deep");
    s->depth++;
    s->at++;
    skip_space(s);
    if (peek(s) != close) {
        for (;;) {
            if (!check_item(s)) return false;
            skip_space(s);
            if (peek(s) != ',') break;
            s->at++;
            skip_space(s);
        }
        if (peek(s) != close) return expected(s, comma_or_close);
    }
    s->at++;
    s->depth--;
    const char *twin = bert_json_keys_pop(&s->keys, first_key);
    return twin == NULL || duplicate_fault(s, twin);
}

static bool check_value(scan *s) {
    switch (peek(s)) {
    case '{': return check_container(s, check_member, '}', "',' or '}'");
    case '[': return check_container(s, check_value, ']', "',' or ']'");
    case '"': return check_string(s);
    case 'n': return check_word(s, "null");
    case 't': return check_word(s, "true");
    case 'f': return check_word(s, "false");
    default: break;
    }
    if (peek(s) == '-' || is_digit(peek(s))) return check_number(s);
    return expected(s, "a value");
}

static bool check_document(scan *s, bert_json *root) {
    if (s->end - s->at >= 3 && memcmp(s->at, "\xef\xbb\xbf", 3) == 0) return fault(s, s->at, "a byte-order mark");
    skip_space(s);
    const char *start = s->at;
    if (!check_value(s)) return false;
    *root = (bert_json){start, (size_t)(s->at - start)};
    skip_space(s);
    return s->at == s->end || expected(s, "nothing behind the value");
}

bert_status bert_json_check_text(bert_json *root, const char *text, size_t len, const char *name, bool allow_nul,
                                 bert_error *err) {
    if (len == 0) text = ""; /* NULL would do for the caller, but not for arithmetic on pointers */
    scan s = {.text = text, .at = text, .end = text + len, .name = name, .allow_nul = allow_nul, .err = err};
    bert_json value;
    if (check_document(&s, &value)) *root = value;
    free(s.keys.at);
    return s.status;
}

bert_status bert_json_check(bert_json *root, const char *text, size_t len, bert_error *err) {
    return bert_json_check_text(root, text, len, NULL, true, err);
}

bert_status bert_json_check_file(bert_json *root, const char *text, size_t len, const char *name, bert_error *err) {
    return bert_json_check_text(root, text, len, name, false, err);
}
