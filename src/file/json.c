/* file/json.c: views of JSON that has been checked. Nothing here looks for faults: json_check.c has been before. */
#include "file/json.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/utf8.h"

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bert_json_kind bert_json_kind_of(bert_json value) {
    switch (value.at[0]) {
    case 'n': return BERT_JSON_NULL;
    case 'f': return BERT_JSON_FALSE;
    case 't': return BERT_JSON_TRUE;
    case '"': return BERT_JSON_STRING;
    case '[': return BERT_JSON_ARRAY;
    case '{': return BERT_JSON_OBJECT;
    default: return BERT_JSON_NUMBER;
    }
}

/* Behind the string that begins at `at`. */
static const char *string_end(const char *at) {
    for (at++; *at != '"'; at++) {
        if (*at == '\\') at++;
    }
    return at + 1;
}

/* Behind the value that begins at `at`. A number or word at the very end of the text ends at `end`. */
static const char *value_end(const char *at, const char *end) {
    if (*at == '"') return string_end(at);
    if (*at != '[' && *at != '{') {
        while (at < end && !is_space(*at) && *at != ',' && *at != ']' && *at != '}') at++;
        return at;
    }
    for (size_t depth = 0;;) {
        if (*at == '"') {
            at = string_end(at);
            continue;
        }
        if (*at == '[' || *at == '{') depth++;
        if (*at == ']' || *at == '}') depth--;
        at++;
        if (depth == 0) return at;
    }
}

static bert_json take(const char **at, const char *end) {
    const bert_json value = {*at, (size_t)(value_end(*at, end) - *at)};
    *at += value.len;
    return value;
}

static const char *skip(const char *at, const char *end) {
    while (at < end && (is_space(*at) || *at == ',' || *at == ':')) at++;
    return at;
}

int bert_json_next(bert_json container, size_t *place, bert_json *key, bert_json *value) {
    if (container.at[0] != '[' && container.at[0] != '{') return 0;
    const char *end = container.at + container.len - 1; /* at the closing bracket */
    const char *at = skip(container.at + (*place > 0 ? *place : 1), end);
    if (at >= end) return 0;
    if (container.at[0] == '{') {
        const bert_json name = take(&at, end);
        if (key != NULL) *key = name;
        at = skip(at, end);
    }
    *value = take(&at, end);
    *place = (size_t)(at - container.at);
    return 1;
}

int bert_json_member(bert_json object, const char *name, bert_json *value) {
    bert_json key, found;
    if (object.at[0] != '{') return 0;
    for (size_t place = 0; bert_json_next(object, &place, &key, &found);) {
        if (bert_json_equals(key, name)) {
            *value = found;
            return 1;
        }
    }
    return 0;
}

size_t bert_json_count(bert_json container) {
    size_t n = 0;
    bert_json value;
    for (size_t place = 0; bert_json_next(container, &place, NULL, &value);) n++;
    return n;
}

static uint32_t hex4(const char *digits) {
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) {
        const char c = digits[i];
        code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
}

static size_t unescape_code(const char **at, char bytes[4]) {
    uint32_t code = hex4(*at);
    *at += 4;
    if (code >= 0xd800 && code < 0xdc00) { /* the other half follows as \uDC00..\uDFFF */
        code = 0x10000 + ((code - 0xd800) << 10) + (hex4(*at + 2) - 0xdc00);
        *at += 6;
    }
    return bert_utf8_write((uint8_t *)bytes, code);
}

/* The bytes behind the first of a character that is written as it stands. */
static size_t plain_tail(const char **at, char bytes[4]) {
    size_t n = 1;
    while (((unsigned char)**at & 0xc0) == 0x80) bytes[n++] = *(*at)++;
    return n;
}

size_t bert_json_character(const char **at, char bytes[4]) {
    const char c = *(*at)++;
    if (c == '"') return 0;
    bytes[0] = c;
    if ((unsigned char)c >= 0x80) return plain_tail(at, bytes);
    if (c != '\\') return 1;
    switch (*(*at)++) {
    case 'b': bytes[0] = '\b'; return 1;
    case 'f': bytes[0] = '\f'; return 1;
    case 'n': bytes[0] = '\n'; return 1;
    case 'r': bytes[0] = '\r'; return 1;
    case 't': bytes[0] = '\t'; return 1;
    case 'u': return unescape_code(at, bytes);
    default: bytes[0] = (*at)[-1]; return 1; /* a quote, a backslash or a slash */
    }
}

size_t bert_json_string(char *text, bert_json value) {
    if (value.at[0] != '"') return 0;
    size_t n = 0, step;
    char bytes[4];
    for (const char *at = value.at + 1; (step = bert_json_character(&at, bytes)) > 0; n += step) {
        memcpy(text + n, bytes, step);
    }
    return n;
}

char *bert_json_dup(bert_json value) {
    if (value.at[0] != '"') return NULL;
    char *text = malloc(value.len);
    if (text != NULL) text[bert_json_string(text, value)] = '\0';
    return text;
}

int bert_json_equals(bert_json value, const char *text) {
    if (value.at[0] != '"') return 0;
    size_t step;
    char bytes[4];
    for (const char *at = value.at + 1; (step = bert_json_character(&at, bytes)) > 0; text += step) {
        if (strncmp(text, bytes, step) != 0 || bytes[0] == '\0') return 0;
    }
    return *text == '\0';
}

const char *bert_json_quote(char *text, size_t room, bert_json value) {
    if (value.at[0] != '"') return bert_quote(text, room, value.at, value.len);
    text[0] = '"';
    bert_quote(text + 1, room - 2, value.at + 1, value.len - 2);
    return strcat(text, "\"");
}

int bert_json_bool(int *b, bert_json value) {
    if (value.at[0] != 't' && value.at[0] != 'f') return 0;
    *b = value.at[0] == 't';
    return 1;
}

int bert_json_integer(int64_t *n, bert_json value, int64_t low, int64_t high) {
    const bool negative = value.at[0] == '-';
    int64_t number = 0;
    for (size_t i = negative; i < value.len; i++) {
        const int digit = value.at[i] - '0';
        if (digit < 0 || digit > 9) return 0;
        if (__builtin_mul_overflow(number, 10, &number)) return 0;
        if (__builtin_add_overflow(number, negative ? -digit : digit, &number)) return 0;
    }
    if (negative && number == 0) return 0; /* -0 is a floating-point value */
    if (number < low || number > high) return 0;
    *n = number;
    return 1;
}

/* strtod in the C locale, and rounding to nearest whatever the host has set. */
static double nearest_double(const char *digits) {
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const uint64_t host = bert_fpenv_enter();
    const double x = c != (locale_t)0 ? strtod_l(digits, NULL, c) : strtod(digits, NULL);
    bert_fpenv_leave(host);
    if (c != (locale_t)0) freelocale(c);
    return x;
}

int bert_json_number(double *x, bert_json value) {
    if (bert_json_kind_of(value) != BERT_JSON_NUMBER) return 0;
    char small[64]; /* the value need not be followed by anything that stops strtod */
    char *digits = value.len < sizeof small ? small : malloc(value.len + 1);
    if (digits == NULL) return 0;
    memcpy(digits, value.at, value.len);
    digits[value.len] = '\0';
    *x = nearest_double(digits);
    if (digits != small) free(digits);
    return 1;
}
