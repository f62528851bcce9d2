/* text/regex.c: see regex.h. */
#include "text/regex.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/unicode.h"

enum { LONGEST = 4096, LONGEST_REWRITTEN = 1 << 18, DEEPEST = 32 };

/* A repeat that falls short of its least number is work that nobody counts (pattern.c). */
enum { MOST_LEAST = 255 };

typedef struct rewriter {
    bert_bytes *to;
    const bert_memory *memory;
    const char *pattern, *at;
    bert_error *err;
    bool unbounded[DEEPEST + 1]; /* for each open group: something in it repeats without bound */
    int depth;
    bool last_unbounded; /* the item that was just read holds an unbounded repeat */
} rewriter;

static bert_status refuse(const rewriter *r, const char *what) {
    char quoted[128];
    return bert_fail(r->err, BERT_UNSUPPORTED, "regular expression \"%s\", byte %zu: %s",
                     bert_quote(quoted, sizeof quoted, r->pattern, strlen(r->pattern)), (size_t)(r->at - r->pattern),
                     what);
}

static bert_status put(rewriter *r, const void *bytes, size_t n) {
    if (r->to->n + n > LONGEST_REWRITTEN) return refuse(r, "too many character classes");
    if (bert_bytes_append(r->to, r->memory, bytes, n)) return BERT_OK;
    return bert_fail(r->err, BERT_NO_MEMORY, "no memory for a regular expression");
}

static bert_status put_text(rewriter *r, const char *text) {
    return put(r, text, strlen(text));
}

/* The ranges of a class (or of what is not in it), for use inside brackets, in HF's Unicode version, not PCRE2's. */
static bert_status put_class(rewriter *r, unsigned flag, bool negated) {
    for (uint32_t c = 0, end; c <= 0x10FFFF; c = end) {
        const bool in = !(bert_char_of(c)->flags & flag) == negated;
        end = c + 1;
        while (end <= 0x10FFFF && !(bert_char_of(end)->flags & flag) == !(bert_char_of(c)->flags & flag)) end++;
        char range[32];
        if (!in) continue;
        snprintf(range, sizeof range, "\\x{%X}-\\x{%X}", (unsigned)c, (unsigned)(end - 1));
        TRY(put_text(r, range));
    }
    return BERT_OK;
}

/* \s \S \d \D \w \W; *found false: none of them. */
static bert_status class_escape(rewriter *r, char letter, bool in_brackets, bool *found) {
    static const char letters[] = "sSdDwW";
    static const unsigned flags[] = {BERT_CHAR_SPACE, BERT_CHAR_REGEX_DIGIT, BERT_CHAR_REGEX_WORD};
    const char *which = letter != '\0' ? strchr(letters, letter) : NULL;
    *found = which != NULL;
    if (which == NULL) return BERT_OK;
    const size_t i = (size_t)(which - letters);
    if (!in_brackets) TRY(put_text(r, "["));
    TRY(put_class(r, flags[i / 2], i % 2 == 1));
    return in_brackets ? BERT_OK : put_text(r, "]");
}

static bool hex_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* \xHH (ASCII: beyond it Oniguruma means a byte), \x{H…}, \uHHHH. */
static bert_status hex_escape(rewriter *r, uint32_t *c) {
    const bool braces = r->at[0] == 'x' && r->at[1] == '{';
    const size_t most = braces ? 6 : r->at[0] == 'u' ? 4 : 2;
    const char *digit = r->at + (braces ? 2 : 1);
    size_t n = 0;
    *c = 0;
    for (; n < most && hex_digit(digit[n]); n++)
        *c = *c * 16 + (uint32_t)(digit[n] <= '9' ? digit[n] - '0' : (digit[n] | 32) - 'a' + 10);
    if (n == 0 || (!braces && n != most) || (braces && digit[n] != '}'))
        return refuse(r, "a \\x or \\u that is cut short");
    if ((r->at[0] == 'x' && !braces && *c > 0x7F) || *c > 0x10FFFF || (*c >= 0xD800 && *c < 0xE000))
        return refuse(r, "a \\x or \\u that is not a character");
    r->at = digit + n + (braces ? 1 : 0);
    return BERT_OK;
}

static bert_status put_character(rewriter *r, uint32_t c) {
    char text[16];
    snprintf(text, sizeof text, "\\x{%X}", (unsigned)c);
    return put_text(r, text);
}

/* The character that an escape at r->at (behind the backslash) stands for. */
static bert_status literal_escape(rewriter *r, uint32_t *c) {
    static const char controls[] = "t\tn\nr\rf\fa\ae\033";
    if (*r->at == 'x' || *r->at == 'u') return hex_escape(r, c);
    if (*r->at != '\0' && strchr(".*+?()[]{}|^$\\/-#&~%!\",:;=@ ", *r->at) != NULL) {
        *c = (unsigned char)*r->at++;
        return BERT_OK;
    }
    for (size_t i = 0; controls[i] != '\0'; i += 2) {
        if (controls[i] != *r->at) continue;
        *c = (unsigned char)controls[i + 1];
        r->at++;
        return BERT_OK;
    }
    return refuse(r, "an escape that is not supported, or that PCRE2 and Oniguruma read differently");
}

/* One character of a bracket expression as itself. */
static bert_status bracket_character(rewriter *r, uint32_t *c) {
    if (*r->at == '[') return refuse(r, "a bracket inside a bracket expression");
    if (*r->at == '&' && r->at[1] == '&') return refuse(r, "&& inside a bracket expression");
    if (*r->at == '\\') {
        r->at++;
        return literal_escape(r, c);
    }
    if (*r->at == '\0') return refuse(r, "a bracket expression without end");
    r->at += bert_utf8_read(c, (const uint8_t *)r->at);
    return BERT_OK;
}

static bert_status bracket_item(rewriter *r) {
    bool class = false;
    uint32_t first, last;
    if (*r->at == '\\') TRY(class_escape(r, r->at[1], true, &class));
    if (class) {
        r->at += 2;
        return *r->at == '-' && r->at[1] != ']' ? refuse(r, "a range that begins with a class") : BERT_OK;
    }
    TRY(bracket_character(r, &first));
    TRY(put_character(r, first));
    if (*r->at != '-' || r->at[1] == ']') return BERT_OK;
    if (first == '-') return refuse(r, "a range that begins with -");
    r->at++;
    TRY(bracket_character(r, &last));
    if (last < first) return refuse(r, "a range that ends before it begins");
    TRY(put_text(r, "-"));
    return put_character(r, last);
}

static bert_status brackets(rewriter *r) {
    r->at++;
    const bool negated = *r->at == '^';
    r->at += negated;
    TRY(put_text(r, negated ? "[^" : "["));
    if (*r->at == ']') return refuse(r, "an empty bracket expression");
    while (*r->at != ']') TRY(bracket_item(r));
    r->at++;
    return put_text(r, "]");
}

/* (, (?:, (?=, (?!, (?<=, (?<!, (?>; every group is passed on as it is. */
static bert_status open_group(rewriter *r) {
    static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    size_t n = 1;
    if (r->at[1] == '?') {
        n = 0;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds && n == 0; i++)
            if (strncmp(r->at, kinds[i], strlen(kinds[i])) == 0) n = strlen(kinds[i]);
        if (n == 0) return refuse(r, "a kind of group that is not supported");
    }
    if (r->depth == DEEPEST) return refuse(r, "groups nested too deeply");
    r->unbounded[++r->depth] = false;
    TRY(put(r, r->at, n));
    r->at += n;
    return BERT_OK;
}

static bert_status close_group(rewriter *r) {
    if (r->depth == 0) return refuse(r, "a parenthesis that was not opened");
    r->last_unbounded = r->unbounded[r->depth--];
    r->at++;
    return put_text(r, ")");
}

/* At most four digits at *at; false: there are none. */
static bool count(const char **at, unsigned *n) {
    const char *from = *at;
    for (*n = 0; **at >= '0' && **at <= '9' && *at - from < 4; ++*at) *n = *n * 10 + (unsigned)(**at - '0');
    return *at > from;
}

/* {n}, {n,}, {n,m} at r->at; *len 0: not a quantifier. */
static void counted(const rewriter *r, size_t *len, unsigned *least, bool *repeats, bool *unbounded) {
    const char *at = r->at + 1;
    unsigned low, high;
    *len = 0;
    *unbounded = false;
    if (!count(&at, &low)) return;
    high = low;
    if (*at == ',') {
        at++;
        *unbounded = !count(&at, &high);
    }
    if (*at != '}' || (!*unbounded && high < low)) return;
    *least = low;
    *repeats = *unbounded || high > 1;
    *len = (size_t)(at + 1 - r->at);
}

/* The quantifier behind an item, if there is one. */
static bert_status quantifier(rewriter *r) {
    bool repeats = true, unbounded = true;
    unsigned least = 0;
    size_t n = 1;
    const bool braces = *r->at == '{';
    if (braces) counted(r, &n, &least, &repeats, &unbounded);
    else if (*r->at == '?') repeats = unbounded = false;
    else if (*r->at != '*' && *r->at != '+') n = 0;
    if (n == 0) return braces ? refuse(r, "a brace that is not a quantifier") : BERT_OK;
    if (least > MOST_LEAST) return refuse(r, "a repeat of at least 256");
    if (repeats && r->last_unbounded) return refuse(r, "a repeat inside a repeat, which can take exponential time");
    const bool exact = braces && memchr(r->at, ',', n) == NULL;
    if ((r->at[n] == '?' && !exact) || (r->at[n] == '+' && !braces)) n++;
    if (r->at[n] != '\0' && strchr("*+?{", r->at[n]) != NULL) return refuse(r, "a quantifier behind a quantifier");
    TRY(put(r, r->at, n));
    r->at += n;
    r->last_unbounded |= unbounded;
    return BERT_OK;
}

/* An item that may be repeated; *repeatable false: an anchor, an alternative, the beginning of a group. */
static bert_status item(rewriter *r, bool *repeatable) {
    bool class = false;
    uint32_t c;
    *repeatable = true;
    r->last_unbounded = false;
    switch (*r->at) {
    case '(': *repeatable = false; return open_group(r);
    case ')': return close_group(r);
    case '[': return brackets(r);
    case '.': r->at++; return put_text(r, ".");
    case '|': case '^': case '$': *repeatable = false; return put(r, r->at++, 1);
    case '*': case '+': case '?': return refuse(r, "a quantifier with nothing before it");
    case '{': case '}': case ']': return refuse(r, "a bracket that stands alone");
    case '\\':
        TRY(class_escape(r, r->at[1], false, &class));
        r->at += class ? 2 : 1;
        if (class) return BERT_OK;
        TRY(literal_escape(r, &c));
        return put_character(r, c);
    default:
        r->at += bert_utf8_read(&c, (const uint8_t *)r->at);
        return put_character(r, c);
    }
}

bert_status bert_regex_rewrite(bert_bytes *to, const bert_memory *memory, const char *pattern, bert_error *err) {
    rewriter r = {.to = to, .memory = memory, .pattern = pattern, .at = pattern, .err = err};
    if (strlen(pattern) > LONGEST) return refuse(&r, "longer than 4096 bytes");
    while (*r.at != '\0') {
        bool repeatable;
        TRY(item(&r, &repeatable));
        if (repeatable) TRY(quantifier(&r));
        r.unbounded[r.depth] |= r.last_unbounded;
    }
    if (r.depth > 0) return refuse(&r, "a parenthesis that is not closed");
    return BERT_OK;
}
