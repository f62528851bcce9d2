#include "head.h"

#include <string.h>
#include <strings.h>

/* A stretch of the request. */
typedef struct span {
    const char *at;
    size_t n;
} span;

typedef struct scan {
    const char *at, *end;
    head *found;
    int minor; /* of HTTP/1.minor */
    int hosts, lengths, codings;
    const char *why;
} scan;

static int refuse(scan *s, int status, const char *why) {
    s->why = why;
    return status;
}

/* RFC 9110, section 5.6.2: tchar. */
static int is_token(char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static int is_value(char c) {
    unsigned char u = (unsigned char)c;
    return u == '\t' || (u >= ' ' && u != 0x7F);
}

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* CR LF, which is 0; HEAD_PART if the bytes end before that is known. */
static int take_line_end(scan *s) {
    if (s->at == s->end) return HEAD_PART;
    if (*s->at != '\r') return refuse(s, 400, "a character that may not be there, or a line without CR LF");
    if (s->end - s->at < 2) return HEAD_PART;
    if (s->at[1] != '\n') return refuse(s, 400, "CR without LF");
    s->at += 2;
    return 0;
}

static span take_while(scan *s, int (*belongs)(char)) {
    span found = {s->at, 0};
    while (s->at < s->end && belongs(*s->at)) s->at++;
    found.n = (size_t)(s->at - found.at);
    return found;
}

static int is_target(char c) {
    return c > ' ' && c < 0x7F;
}

static int take_method(scan *s) {
    enum { METHOD_MOST = 20 };
    span method = take_while(s, is_token);
    if (method.n > METHOD_MOST) return refuse(s, 501, "no such method");
    if (s->at == s->end) return HEAD_PART;
    if (!method.n || *s->at != ' ') return refuse(s, 400, "expected a method, as in: POST /embed HTTP/1.1");
    s->at++;
    return 0;
}

static int take_target(scan *s) {
    span target = take_while(s, is_target);
    if (target.n > HEAD_TARGET) return refuse(s, 414, "the request's target has more than 4096 bytes");
    if (s->at == s->end) return HEAD_PART;
    if (!target.n || *s->at != ' ')
        return refuse(s, 400, "expected a path and the version, as in: POST /embed HTTP/1.1");
    s->at++;
    return 0;
}

static int take_version(scan *s) {
    static const char form[] = "HTTP/1.1";
    size_t n = (size_t)(s->end - s->at), length = sizeof form - 1;
    for (size_t i = 0; i < length; i++) {
        if (i == n) return HEAD_PART;
        if (i == 5 || i == 7 ? !is_digit(s->at[i]) : s->at[i] != form[i]) return refuse(s, 400, "expected HTTP/1.1");
    }
    s->minor = s->at[7] - '0';
    if (s->at[5] != '1' || s->minor > 1) return refuse(s, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    s->at += length;
    return take_line_end(s);
}

static int is(span s, const char *word) {
    return s.n == strlen(word) && strncasecmp(s.at, word, s.n) == 0;
}

static int take_length(scan *s, span value) {
    if (s->lengths++) return refuse(s, 400, "Content-Length is there twice");
    for (size_t i = 0; i < value.n; i++)
        if (!is_digit(value.at[i])) return refuse(s, 400, "Content-Length is not a number");
    if (!value.n) return refuse(s, 400, "Content-Length is empty");
    for (size_t i = 0; i < value.n; i++) {
        if (s->found->length > (uint64_t)INT64_MAX / 10 - 1) return refuse(s, 413, "Content-Length is too large");
        s->found->length = s->found->length * 10 + (uint64_t)(value.at[i] - '0');
    }
    return 0;
}

/* The fields that say where the request ends, or whose it is. */
static int judge(scan *s, span name, span value) {
    if (is(name, "Host")) {
        s->hosts++;
    } else if (is(name, "Content-Length")) {
        return take_length(s, value);
    } else if (is(name, "Transfer-Encoding")) {
        if (s->codings++) return refuse(s, 400, "Transfer-Encoding is there twice");
        if (!is(value, "chunked")) return refuse(s, 501, "the only transfer coding known here is chunked");
        s->found->chunked = 1;
    } else if (is(name, "Expect") && !is(value, "100-continue")) {
        return refuse(s, 417, "the only expectation known here is 100-continue");
    }
    return 0;
}

static int take_field(scan *s) {
    span name = take_while(s, is_token);
    if (s->at == s->end) return HEAD_PART;
    if (!name.n || *s->at != ':')
        return refuse(s, 400, "a header field without name and colon, or with white space around the name");
    s->at++;
    span value = take_while(s, is_value);
    int status = take_line_end(s);
    if (status) return status;
    while (value.n && (*value.at == ' ' || *value.at == '\t')) value.at++, value.n--;
    while (value.n && (value.at[value.n - 1] == ' ' || value.at[value.n - 1] == '\t')) value.n--;
    return judge(s, name, value);
}

/* What the fields say together. */
static int judge_all(scan *s) {
    if (s->hosts > 1 || (s->hosts == 0 && s->minor == 1)) return refuse(s, 400, "expected one Host field");
    if (s->codings && s->lengths) return refuse(s, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (s->codings && s->minor == 0) return refuse(s, 400, "HTTP/1.0 has no Transfer-Encoding");
    return HEAD_GOOD;
}

static int take_head(scan *s) {
    int status = 0;
    /* Empty lines in front are left from an older request (RFC 9112, section 2.2). */
    for (int empty = 0; empty < 2 && s->at < s->end && *s->at == '\r'; empty++)
        if ((status = take_line_end(s))) return status;
    if ((status = take_method(s)) || (status = take_target(s)) || (status = take_version(s))) return status;
    for (int fields = 0; s->at < s->end && *s->at != '\r'; fields++) {
        if (fields == HEAD_FIELDS) return refuse(s, 431, "more than 100 header fields");
        if ((status = take_field(s))) return status;
    }
    if ((status = take_line_end(s))) return status;
    return judge_all(s);
}

int head_check(head *h, const char *bytes, size_t n, const char **why) {
    scan s = {.at = bytes, .end = bytes + (n < HEAD_MOST ? n : HEAD_MOST), .found = h};
    *h = (head){0};
    int status = take_head(&s);
    if (status == HEAD_PART && n >= HEAD_MOST) status = refuse(&s, 431, "the head of the request has more than 16 KiB");
    h->size = (size_t)(s.at - bytes);
    *why = s.why;
    return status;
}
