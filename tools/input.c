#include "input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input_ids.h"
#include "say.h"
#include "utf8.h"

enum { RECORD_KEEPS = 1 << 16 };

void record_close(record *r) {
    free(r->ids);
    buffer_close(&r->bytes);
    *r = (record){0};
}

static int check_settings(const settings *s) {
    if (s->ids && (s->n_texts || s->jsonl || s->pair))
        return say_usage("--ids takes the place of TEXT, --pair and --jsonl");
    if (s->pair && s->n_texts != 1)
        return say_usage("--pair TEXT_B needs exactly one TEXT, found %zu (pairs on stdin: a TAB between the two)",
                         s->n_texts);
    if (s->jsonl && s->n_texts) return say_usage("--jsonl reads stdin, found a TEXT argument too");
    return 0;
}

int input_open(input *in, const settings *s) {
    *in = (input){.s = s, .lines = {.fd = STDIN_FILENO, .name = "stdin"}};
    TRY(check_settings(s));
    if (s->ids) TRY(input_open_ids(in));
    if (s->compare) TRY(lines_open(&in->lines, s->compare));
    in->lines.most = s->max_line;
    if (!s->n_texts && in->lines.fd == STDIN_FILENO && isatty(STDIN_FILENO))
        say_warning("reading texts from the terminal, one a line; Ctrl-D ends");
    return 0;
}

static void take_argument(input *in, record *r) {
    const char *pair = in->s->pair, *text = in->s->texts[in->next++];
    r->number = in->next;
    r->text = (bert_text){text, strlen(text), pair, pair ? strlen(pair) : 0};
    r->invalid = utf8_count_invalid(text, r->text.a_len, &r->first_invalid);
    size_t in_pair, first;
    if (!pair || !(in_pair = utf8_count_invalid(pair, r->text.b_len, &first))) return;
    if (!r->invalid) r->first_invalid = first;
    r->invalid += in_pair;
}

static void take_line(input *in, record *r, const char *line, size_t n) {
    lines_keep(&in->lines, line, n, &r->bytes);
    char *at = buffer_reserve(&r->bytes, 1) - n; /* a valid pointer also for an empty line */
    r->invalid = utf8_count_invalid(at, n, &r->first_invalid);
    char *tab = in->s->no_pair ? NULL : memchr(at, '\t', n);
    r->text = (bert_text){at, tab ? (size_t)(tab - at) : n, NULL, 0};
    if (!tab) return;
    r->text.b = tab + 1;
    r->text.b_len = n - (size_t)(tab + 1 - at);
}

/* A member that has to be a string: decoded over its own spelling, which is never shorter. */
static int take_string(record *r, bert_json value, const char *name, const char **s, size_t *n) {
    if (bert_json_kind_of(value) != BERT_JSON_STRING) {
        snprintf(r->wrong, sizeof r->wrong, "expected \"%s\" to be a string", name);
        return 0;
    }
    char *room = buffer_reserve(&r->bytes, value.len + 1); /* reserved before: does not move */
    *n = bert_json_string(room, value);
    *s = room;
    r->bytes.len += *n;
    return 1;
}

static void take_object(record *r, bert_json object) {
    bert_json text, pair;
    if (bert_json_kind_of(object) != BERT_JSON_OBJECT) {
        snprintf(r->wrong, sizeof r->wrong, "expected an object {\"text\": …}");
        return;
    }
    if (!bert_json_member(object, "id", &r->id)) r->id.at = NULL;
    if (!bert_json_member(object, "text", &text)) {
        snprintf(r->wrong, sizeof r->wrong, "expected a member \"text\"");
        return;
    }
    if (!take_string(r, text, "text", &r->text.a, &r->text.a_len)) return;
    if (bert_json_member(object, "pair", &pair) && bert_json_kind_of(pair) != BERT_JSON_NULL)
        take_string(r, pair, "pair", &r->text.b, &r->text.b_len);
}

/* What is not UTF-8 is mended first: it is no reason to lose the line. */
static void take_json(record *r, const char *line, size_t n) {
    bert_json root;
    bert_error err;
    r->invalid = utf8_count_invalid(line, n, &r->first_invalid);
    /* The line and, behind it, room for its strings, which are no longer than their spelling. */
    buffer_reserve(&r->bytes, 2 * (n + 3 * r->invalid) + 8);
    utf8_add_mended(&r->bytes, line, n);
    if (bert_json_check(&root, r->bytes.data, r->bytes.len, &err)) {
        snprintf(r->wrong, sizeof r->wrong, "expected a JSON object: %.400s", err.text);
        return;
    }
    take_object(r, root);
}

int input_cut(const input *in, record *r) {
    if (in->lines.cut) snprintf(r->wrong, sizeof r->wrong, "longer than %zu bytes (--max-line)", in->lines.most);
    return in->lines.cut;
}

/* Ready for the next record; the memory of an unusually long one is not kept, there are many records. */
static void reset(record *r) {
    free(r->ids);
    if (r->bytes.room > RECORD_KEEPS) buffer_close(&r->bytes);
    *r = (record){.bytes = r->bytes};
    r->bytes.len = 0;
}

int input_next(input *in, record *r, int *got) {
    const char *line = NULL;
    size_t n = 0;
    reset(r);
    if (in->s->ids) return input_next_ids(in, r, got);
    if (in->s->n_texts) {
        *got = in->next < in->s->n_texts;
        if (*got) take_argument(in, r);
        return 0;
    }
    TRY(lines_next(&in->lines, &line, &n));
    *got = line != NULL;
    if (!line) return 0;
    r->number = in->lines.number;
    if (input_cut(in, r)) return 0;
    if (in->s->jsonl)
        take_json(r, line, n);
    else
        take_line(in, r, line, n);
    return 0;
}

int input_ready(input *in) {
    return in->s->n_texts > 0 || in->is_npy || lines_ready(&in->lines);
}

void input_where(const input *in, const record *r, buffer *where) {
    where->len = 0;
    if (in->s->n_texts)
        buffer_print(where, "text %zu", r->number);
    else
        buffer_print(where, "%s: %s %zu", in->lines.name, in->is_npy ? "row" : "line", r->number);
    buffer_byte(where, 0);
}

void input_progress(const input *in, uint64_t *part, uint64_t *whole) {
    *part = in->s->n_texts ? in->next : in->lines.taken;
    *whole = in->s->n_texts ? in->s->n_texts : lines_size(&in->lines);
}

void input_close(input *in) {
    lines_close(&in->lines);
}
