#include "args.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "output/sink.h"
#include "say.h"

enum { HELP_COLUMN = 31 };

const settings settings_default = {.normalize = -1,
                                   .stride = NO_STRIDE,
                                   .tolerance = 1e-4,
                                   .max_line = MAX_LINE,
                                   .serve = {.port = 8080, .max_wait = 2}};

static void *field_of(settings *s, const option *o) {
    return (char *)s + o->field;
}

static const option *find(const command *c, const char *name, size_t n, char letter) {
    for (const option *const *table = c->options; *table; table++)
        for (const option *o = *table; o->name; o++)
            if (letter ? o->letter == letter : strlen(o->name) == n && memcmp(o->name, name, n) == 0) return o;
    return NULL;
}

/* Decimal digits and nothing else; 0: not so, or too large. */
static int read_count(const char *text, size_t *n) {
    if (*text < '0' || *text > '9') return 0;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end || errno || value > SIZE_MAX / 2) return 0;
    *n = (size_t)value;
    return 1;
}

/* "2G", "512M", "1048576"; 0: not so, or as large as no count may be. */
static int read_size(const char *text, size_t *n) {
    static const char units[] = "KMGT";
    size_t length = strlen(text);
    char digits[24];
    const char *unit = length ? strchr(units, text[length - 1]) : NULL;
    if (!length || length >= sizeof digits) return 0;
    memcpy(digits, text, length + 1);
    int shift = 0;
    if (unit && *unit) {
        digits[length - 1] = 0;
        shift = 10 * (int)(unit - units + 1);
    }
    if (!read_count(digits, n) || *n == 0 || *n > (SIZE_MAX / 2 >> shift)) return 0;
    *n <<= shift;
    return 1;
}

static int read_real(const char *text, double *x) {
    char *end;
    *x = strtod(text, &end);
    return end != text && !*end && isfinite(*x) && *x >= 0;
}

static int read_choice(const char *text, const char *choices, int *chosen) {
    size_t n = strlen(text);
    for (int i = 0;; i++) {
        size_t length = strcspn(choices, "|");
        if (length == n && memcmp(choices, text, n) == 0) {
            *chosen = i;
            return 1;
        }
        if (!choices[length]) return 0;
        choices += length + 1;
    }
}

static int add_model(settings *s, const char *folder) {
    enum { MODELS_MOST = sizeof s->models / sizeof *s->models };
    if (s->n_models == MODELS_MOST) return say_usage("--model %s: at most %d models", folder, MODELS_MOST);
    s->model = s->models[s->n_models++] = folder;
    return 0;
}

static int set_value(settings *s, const option *o, const char *text) {
    void *field = field_of(s, o);
    switch (o->kind) {
    case OPTION_FLAG: break;
    case OPTION_TEXT: *(const char **)field = text; return 0;
    case OPTION_MODEL: return add_model(s, text);
    case OPTION_COUNT:
        if (read_count(text, field) && *(size_t *)field >= (size_t)o->value) return 0;
        return say_usage("--%s %s: expected a whole number from %d", o->name, text, o->value);
    case OPTION_SIZE:
        if (read_size(text, field)) return 0;
        return say_usage("--%s %s: expected a size such as 512M or 2G", o->name, text);
    case OPTION_REAL:
        if (read_real(text, field)) return 0;
        return say_usage("--%s %s: expected a number from 0", o->name, text);
    case OPTION_CHOICE:
        if (read_choice(text, o->argument, field)) return 0;
        return say_usage("--%s %s: expected one of %s", o->name, text, o->argument);
    }
    return 0;
}

typedef struct words {
    char **at, **end;
} words;

/* `value`: what stood in the same word (after = or after the letter); NULL: nothing. */
static int take_option(settings *s, const command *c, const option *o, const char *value, words *w) {
    if (o->kind == OPTION_FLAG) {
        if (value) return say_usage("--%s takes no value (bert %s --help)", o->name, c->name);
        *(int *)field_of(s, o) = o->value;
        return 0;
    }
    if (!value && w->at == w->end)
        return say_usage("--%s needs a value: %s (bert %s --help)", o->name, o->argument, c->name);
    return set_value(s, o, value ? value : *w->at++);
}

static int take_long(settings *s, const command *c, const char *word, words *w) {
    const char *name = word + 2, *equals = strchr(name, '=');
    const option *o = find(c, name, equals ? (size_t)(equals - name) : strlen(name), 0);
    if (!o) return say_usage("bert %s has no option %s (bert %s --help lists them)", c->name, word, c->name);
    return take_option(s, c, o, equals ? equals + 1 : NULL, w);
}

static int take_short(settings *s, const command *c, const char *word, words *w) {
    for (const char *at = word + 1; *at; at++) {
        const option *o = find(c, NULL, 0, *at);
        if (!o) return say_usage("bert %s has no option -%c (bert %s --help lists them)", c->name, *at, c->name);
        const char *rest = o->kind != OPTION_FLAG && at[1] ? at + 1 : NULL;
        TRY(take_option(s, c, o, rest, w));
        if (o->kind != OPTION_FLAG) break;
    }
    return 0;
}

static void add_option(buffer *b, const option *o) {
    const char *argument = o->kind == OPTION_FLAG ? "" : o->argument;
    size_t begin = b->len;
    if (o->letter)
        buffer_print(b, "  -%c, --%s %s", o->letter, o->name, argument);
    else
        buffer_print(b, "      --%s %s", o->name, argument);
    if (b->len - begin > HELP_COLUMN - 1) {
        buffer_byte(b, '\n');
        begin = b->len;
    }
    while (b->len - begin < HELP_COLUMN) buffer_byte(b, ' ');
    buffer_print(b, "%s\n", o->help);
}

static int print_help(const command *c) {
    static const option help = {"help", 'h', OPTION_FLAG, 0, 0, NULL, "this text"};
    buffer b = {0};
    buffer_print(&b, "Usage: bert %s [OPTIONS] %s\n\n%s\n\nOptions:\n", c->name, c->arguments, c->summary);
    for (const option *const *table = c->options; *table; table++)
        for (const option *o = *table; o->name; o++) add_option(&b, o);
    add_option(&b, &help);
    buffer_print(&b, "\nExample:\n  %s\n", c->example);
    sink *out;
    int status = sink_open(&out, NULL);
    if (!status) status = sink_write(out, b.data, b.len);
    if (!status) status = sink_finish(&out);
    buffer_close(&b);
    return status;
}

int args_read(settings *s, const command *c, int n, char **all, int *helped) {
    words w = {all, all + n};
    char **texts = all; /* texts are gathered at the front of the array, in order */
    int options_end = 0;
    *helped = 0;
    while (w.at < w.end) {
        char *word = *w.at++;
        if (options_end || word[0] != '-' || !word[1])
            *texts++ = word;
        else if (strcmp(word, "--") == 0)
            options_end = 1;
        else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            *helped = 1;
            return print_help(c);
        } else
            TRY(word[1] == '-' ? take_long(s, c, word, &w) : take_short(s, c, word, &w));
    }
    s->texts = all;
    s->n_texts = (size_t)(texts - all);
    return 0;
}

int args_indices(char *keep, size_t n, const char *list, const char *name) {
    int all = !list || strcmp(list, "all") == 0;
    memset(keep, all, n);
    if (all) return 0;
    for (const char *at = list;; at++) {
        char *end;
        errno = 0;
        long i = strtol(at, &end, 10);
        if (end == at || (*end && *end != ','))
            return say_usage("--%s %s: expected numbers such as 0,3 or -1, or all", name, list);
        if (i < 0) i += (long)n;
        if (errno || i < 0 || (size_t)i >= n)
            return say_error("--%s %s: the model has %zu of them, 0 to %zu", name, list, n, n - 1);
        keep[i] = 1;
        if (!*end) return 0;
        at = end;
    }
}

int args_padding(const char *text, size_t *length) {
    *length = 0;
    if (strcmp(text, "longest") == 0) return 0;
    if (read_count(text, length) && *length > 0) return 0;
    return say_usage("--padding %s: expected longest or a number of tokens", text);
}
