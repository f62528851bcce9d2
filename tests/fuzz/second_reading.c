/* The rules, as SECURITY.md states them:
 *   8 bytes little-endian n <= 16 MiB, then n bytes of JSON (RFC 8259, UTF-8, depth 64, no name twice in an object), then
 *   the data. The JSON is an object; `__metadata__` is null or an object of strings; every other member is an object with
 *   dtype, shape (at most 8 integers) and data_offsets [begin, end], integers being digits up to 2^53. Names have no NUL.
 *   end - begin is shape x dtype in whole bytes, computed without overflow wherever a 0 stands in the shape; sorted by
 *   (begin, end) the tensors cover the data without hole or overlap. */
#include "second_reading.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 wide;
typedef struct node {
    char kind; /* { [ " 0 (a number) t (true, false) n (null) */
    char *text; /* of strings and numbers */
    size_t len;
    struct node *key, *first, *next;
} node;

typedef struct reader {
    const unsigned char *at, *end;
    bool bad;
} reader;

static void drop(node *n) {
    while (n != NULL) {
        node *next = n->next;
        drop(n->key);
        drop(n->first);
        free(n->text);
        free(n);
        n = next;
    }
}

static void blank(reader *r) {
    while (r->at < r->end && memchr(" \t\n\r", *r->at, 4) != NULL) r->at++;
}

static bool take(reader *r, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static node *fresh(char kind, size_t room) {
    node *n = calloc(1, sizeof *n);
    if (n == NULL || (n->text = malloc(room + 1)) == NULL) abort();
    n->kind = kind;
    return n;
}

static void put(node *n, unsigned code) {
    unsigned char *to = (unsigned char *)n->text + n->len;
    const unsigned last = 0x80 | (code & 63), middle = 0x80 | (code >> 6 & 63), third = 0x80 | (code >> 12 & 63);
    if (code < 0x80) to[0] = (unsigned char)code, n->len += 1;
    else if (code < 0x800) to[0] = (unsigned char)(0xc0 | code >> 6), to[1] = (unsigned char)last, n->len += 2;
    else if (code < 0x10000)
        to[0] = (unsigned char)(0xe0 | code >> 12), to[1] = (unsigned char)middle, to[2] = (unsigned char)last, n->len += 3;
    else
        to[0] = (unsigned char)(0xf0 | code >> 18), to[1] = (unsigned char)third, to[2] = (unsigned char)middle,
        to[3] = (unsigned char)last, n->len += 4;
}

/* Four hexadecimal digits, or more than any code has. */
static unsigned four(reader *r) {
    char digits[5] = {0};
    for (int i = 0; i < 4; i++, r->at++) {
        if (r->at >= r->end || *r->at == 0 || strchr("0123456789abcdefABCDEF", *r->at) == NULL) return 0x1000000;
        digits[i] = (char)*r->at;
    }
    return (unsigned)strtoul(digits, NULL, 16);
}

static unsigned escaped(reader *r) {
    static const char letters[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    if (r->at >= r->end || *r->at == 0) return 0x1000000;
    const unsigned char letter = *r->at++;
    const char *found = strchr(letters, letter);
    if (found != NULL) return (unsigned char)codes[found - letters];
    if (letter != 'u') return 0x1000000;
    const unsigned high = four(r);
    if (high < 0xd800 || high > 0xdfff) return high;
    const unsigned low = high < 0xdc00 && take(r, "\\u") ? four(r) : 0;
    return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff) : 0x1000000;
}

/* One UTF-8 character, from its lead byte: the code decides whether it was the shortest form. */
static unsigned encoded(reader *r) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned code = *r->at++;
    const int n = code < 0x80 ? 1 : code >> 5 == 6 ? 2 : code >> 4 == 14 ? 3 : code >> 3 == 30 ? 4 : 0;
    if (n == 0) return 0x1000000;
    if (n > 1) code &= 0x7fu >> n;
    for (int i = 1; i < n; i++) {
        if (r->at >= r->end || *r->at >> 6 != 2) return 0x1000000;
        code = code << 6 | (*r->at++ & 63);
    }
    return code < least[n] || (code >= 0xd800 && code <= 0xdfff) ? 0x1000000 : code;
}

static node *string(reader *r) {
    node *n = fresh('"', (size_t)(r->end - r->at));
    while (!r->bad && r->at < r->end && *r->at != '"') {
        const bool escape = *r->at == '\\';
        if (*r->at < 0x20) r->bad = true;
        if (escape) r->at++;
        const unsigned code = escape ? escaped(r) : encoded(r);
        if (code > 0x10ffff) r->bad = true;
        else put(n, code);
    }
    r->bad = r->bad || !take(r, "\"");
    return n;
}

static bool digits(reader *r) {
    const unsigned char *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
    return r->at > from;
}

static node *number(reader *r) {
    const unsigned char *from = r->at;
    take(r, "-");
    if (!take(r, "0") && !digits(r)) r->bad = true;
    if (take(r, ".") && !digits(r)) r->bad = true;
    if (take(r, "e") || take(r, "E")) {
        if (!take(r, "+")) take(r, "-");
        if (!digits(r)) r->bad = true;
    }
    node *n = fresh('0', (size_t)(r->at - from));
    memcpy(n->text, from, n->len = (size_t)(r->at - from));
    n->text[n->len] = 0;
    return n;
}

static bool same(const node *n, const char *text, size_t len) {
    return n->len == len && memcmp(n->text, text, len) == 0;
}

static node *value(reader *r, int depth);

static node *container(reader *r, int depth, bool object) {
    node *n = fresh(object ? '{' : '[', 0), **next = &n->first;
    const char *close = object ? "}" : "]";
    r->bad = r->bad || depth == 64;
    blank(r);
    if (take(r, close)) return n;
    do {
        node *key = NULL;
        blank(r);
        if (object && !r->bad) {
            if (take(r, "\"")) key = string(r);
            blank(r);
            r->bad = r->bad || key == NULL || !take(r, ":");
            for (const node *twin = n->first; !r->bad && twin != NULL; twin = twin->next)
                r->bad = same(twin->key, key->text, key->len);
        }
        blank(r);
        node *item = r->bad ? NULL : value(r, depth + 1);
        if (item == NULL) {
            drop(key);
            break;
        }
        item->key = key;
        *next = item;
        next = &item->next;
        blank(r);
    } while (!r->bad && take(r, ","));
    r->bad = r->bad || !take(r, close);
    return n;
}

static node *value(reader *r, int depth) {
    if (take(r, "{")) return container(r, depth, true);
    if (take(r, "[")) return container(r, depth, false);
    if (take(r, "\"")) return string(r);
    if (take(r, "true") || take(r, "false")) return fresh('t', 0);
    if (take(r, "null")) return fresh('n', 0);
    return number(r);
}

static const node *member(const node *object, const char *name) {
    for (const node *n = object->first; n != NULL; n = n->next)
        if (same(n->key, name, strlen(name))) return n;
    return NULL;
}

static bool integer(const node *n, wide *x) {
    if (n->kind != '0' || n->len > 16 || strspn(n->text, "0123456789") != n->len) return false;
    const unsigned long long y = strtoull(n->text, NULL, 10);
    *x = y;
    return y <= 1ull << 53;
}

static unsigned bits_of(const node *name) {
    static const struct {
        const char *names;
        unsigned bits;
    } rows[] = {{" F4 ", 4}, {" F6_E2M3 F6_E3M2 ", 6}, {" BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ ", 8},
                {" I16 U16 F16 BF16 ", 16}, {" I32 U32 F32 ", 32}, {" C64 F64 I64 U64 ", 64}};
    char word[32] = " ";
    if (name->kind != '"' || name->len == 0 || name->len > 20 || memchr(name->text, ' ', name->len)) return 0;
    memcpy(word + 1, name->text, name->len);
    word[1 + name->len] = ' ';
    if (strlen(word) != name->len + 2) return 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(rows[i].names, word) != NULL) return rows[i].bits;
    return 0;
}

typedef struct span {
    wide begin, end;
} span;

static bool sized(const node *shape, unsigned bits, wide bytes) {
    wide product = bits, dim, rank = 0;
    bool empty = false, whole = true;
    if (shape == NULL || shape->kind != '[') return false;
    /* count x bits stays below 2^64 with the zeros left out */
    for (const node *n = shape->first; n != NULL; n = n->next) {
        if (++rank > 8 || !integer(n, &dim)) return false;
        empty = empty || dim == 0;
        if (dim > 0) product *= dim;
        whole = whole && product >> 64 == 0;
        if (!whole) product = (wide)1 << 64;
    }
    return whole && (empty ? bytes == 0 : product % 8 == 0 && bytes == product / 8);
}

static bool tensor(const node *n, span *where) {
    if (memchr(n->key->text, 0, n->key->len) != NULL || n->kind != '{') return false;
    const node *dtype = member(n, "dtype"), *offsets = member(n, "data_offsets");
    const node *begin = offsets != NULL && offsets->kind == '[' ? offsets->first : NULL, *end = begin != NULL ? begin->next : NULL;
    const unsigned bits = dtype != NULL ? bits_of(dtype) : 0;
    if (bits == 0 || end == NULL || end->next != NULL || !integer(begin, &where->begin) || !integer(end, &where->end)) return false;
    return where->begin <= where->end && sized(member(n, "shape"), bits, where->end - where->begin);
}

static bool metadata(const node *n) {
    if (n->kind != '{') return n->kind == 'n';
    for (const node *m = n->first; m != NULL; m = m->next)
        if (m->kind != '"' || memchr(m->key->text, 0, m->key->len) != NULL) return false;
    return true;
}

static int in_order(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static bool whole(const node *root, wide data) {
    size_t n = 0, count = 0;
    wide at = 0;
    bool fine = root->kind == '{';
    for (const node *m = root->first; m != NULL; m = m->next) count++;
    span *spans = calloc(count + 1, sizeof *spans);
    if (spans == NULL) abort();
    for (const node *m = fine ? root->first : NULL; fine && m != NULL; m = m->next)
        fine = same(m->key, "__metadata__", 12) ? metadata(m) : tensor(m, &spans[n++]);
    qsort(spans, n, sizeof *spans, in_order);
    for (size_t i = 0; fine && i < n; at = spans[i++].end) fine = spans[i].begin == at;
    free(spans);
    return fine && at == data;
}

bool second_reading_accepts(const unsigned char *bytes, size_t size) {
    wide n = 0;
    if (size < 8) return false;
    for (int i = 7; i >= 0; i--) n = n << 8 | bytes[i];
    if (n > 16 << 20 || n > size - 8) return false;
    reader r = {bytes + 8, bytes + 8 + (size_t)n, false};
    blank(&r);
    node *root = value(&r, 0);
    blank(&r);
    const bool accepted = !r.bad && r.at == r.end && whole(root, size - 8 - n);
    drop(root);
    return accepted;
}
