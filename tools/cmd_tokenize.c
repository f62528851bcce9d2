/* bert tokenize: ids, tokens and offsets. */
#include <string.h>

#include <bert/bert.h>

#include "commands.h"
#include "engine.h"
#include "json_out.h"
#include "output/writer.h"
#include "say.h"
#include "token_list.h"
#include "window.h"

enum { SPILL = 1 << 16 };

typedef enum { AS_JSONL, AS_IDS, AS_TEXT } shape;

typedef struct job {
    const settings *s;
    bert_tokenizer *tokenizer;
    bert_tokenize_options options;
    shape shape;
    bert_tokens *tokens;
    window window;
    input input;
    sink *out;
    buffer line;
} job;

/* A text of megabytes has an answer of many more, which leaves as it grows. json_key looks at the byte before. */
static int spill(job *j) {
    buffer *b = &j->line;
    if (b->len < SPILL) return 0;
    TRY(sink_write(j->out, b->data, b->len - 1));
    b->data[0] = b->data[b->len - 1];
    b->len = 1;
    return 0;
}

/* Text i's part that is written, and token k of it. */
typedef struct place {
    const job *j;
    bert_encoding e;
    size_t i, part, k;
} place;

static void add_id(buffer *b, const place *at) {
    json_integer(b, at->e.ids[at->k]);
}

static void add_token(buffer *b, const place *at) {
    token_list_add_one(b, at->j->tokens, at->i, at->part, at->k);
}

static void add_type(buffer *b, const place *at) {
    json_integer(b, at->e.type_ids[at->k]);
}

static void add_attention(buffer *b, const place *at) {
    json_integer(b, at->e.attention_mask[at->k]);
}

static void add_special(buffer *b, const place *at) {
    json_integer(b, at->e.special_tokens_mask[at->k]);
}

static void add_offset(buffer *b, const place *at) {
    bert_span span = at->j->options.offsets_cp ? at->e.offsets_cp[at->k] : at->e.offsets[at->k];
    buffer_byte(b, '[');
    json_integer(b, span.start);
    buffer_byte(b, ',');
    json_integer(b, span.end);
    buffer_byte(b, ']');
}

/* The members that a text and each of its overflow parts have. */
static int add_part(job *j, size_t i, size_t part) {
    static const struct {
        const char *name;
        void (*add)(buffer *b, const place *at);
    } lists[] = {{"ids", add_id},
                 {"tokens", add_token},
                 {"type_ids", add_type},
                 {"attention_mask", add_attention},
                 {"special_tokens_mask", add_special},
                 {"offsets", add_offset}};
    buffer *b = &j->line;
    place at = {j, bert_tokens_at(j->tokens, i, part), i, part, 0};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        json_key(b, lists[k].name);
        buffer_byte(b, '[');
        for (at.k = 0; at.k < at.e.n; at.k++) {
            if (at.k) buffer_byte(b, ',');
            lists[k].add(b, &at);
            TRY(spill(j));
        }
        buffer_byte(b, ']');
    }
    return 0;
}

static int add_overflow(job *j, size_t i) {
    buffer *b = &j->line;
    json_key(b, "overflowing");
    buffer_byte(b, '[');
    for (size_t part = 1; part < bert_tokens_parts(j->tokens, i); part++) {
        buffer_text(b, part > 1 ? ",{" : "{");
        TRY(add_part(j, i, part));
        buffer_byte(b, '}');
    }
    buffer_byte(b, ']');
    return 0;
}

static int add_json(job *j, const record *r, size_t i) {
    buffer_byte(&j->line, '{');
    json_given(&j->line, "id", r->id.at, r->id.len);
    TRY(add_part(j, i, 0));
    if (j->options.overflow) TRY(add_overflow(j, i));
    buffer_byte(&j->line, '}');
    return 0;
}

/* Ids or tokens with spaces between them. */
static int add_words(job *j, size_t i) {
    bert_encoding e = bert_tokens_at(j->tokens, i, 0);
    for (size_t k = 0; k < e.n; k++) {
        if (k) buffer_byte(&j->line, ' ');
        if (j->shape == AS_IDS) {
            json_integer(&j->line, e.ids[k]);
        } else {
            size_t length;
            const char *token = bert_tokens_spelling(j->tokens, i, 0, k, &length);
            buffer_add(&j->line, token, length);
        }
        TRY(spill(j));
    }
    return 0;
}

static int write_text(job *j, record *r, size_t i) {
    size_t truncated = bert_tokens_at(j->tokens, i, 0).truncated;
    window_note(&j->window, r, j->options.overflow ? 0 : truncated, j->options.max_length);
    if (r->wrong[0]) return window_report(&j->window, r, j->out);
    j->line.len = 0;
    TRY(j->shape == AS_JSONL ? add_json(j, r, i) : add_words(j, i));
    buffer_byte(&j->line, '\n');
    return sink_write(j->out, j->line.data, j->line.len);
}

static int write_window(job *j) {
    window *w = &j->window;
    TRY(window_tokenize(w, &j->tokens, j->tokenizer, &j->options));
    for (size_t k = 0, i = 0; k < w->n; k++) {
        record *r = &w->records[k];
        if (r->wrong[0])
            TRY(window_report(w, r, j->out));
        else
            TRY(write_text(j, r, i++));
    }
    return sink_flush(j->out);
}

static int choose_format(job *j, const settings *s) {
    static const char *const names[] = {"jsonl", "ids", "text"}, *const endings[] = {".jsonl", ".ids", ".txt"};
    const char *ending = writer_ending(s->output);
    if (!s->format && !ending) return 0;
    for (; j->shape <= AS_TEXT; j->shape++)
        if (s->format ? strcmp(s->format, names[j->shape]) == 0 : strcmp(ending, endings[j->shape]) == 0) return 0;
    return s->format ? say_usage("--format %s: expected one of jsonl, ids, text", s->format)
                     : say_usage("%s: the ending says no format: give --format jsonl, ids or text", s->output);
}

static int read_settings(job *j, const settings *s) {
    bert_tokenize_options *o = &j->options;
    TRY(choose_format(j, s));
    if (s->on_error == ON_ERROR_NULL && j->shape != AS_JSONL) return say_usage("--on-error null needs --format jsonl");
    if (s->stride != NO_STRIDE && !s->max_length) return say_usage("--stride needs --max-length");
    if (s->stride != NO_STRIDE && j->shape != AS_JSONL) return say_usage("--stride needs --format jsonl");
    *o = (bert_tokenize_options)BERT_TOKENIZE_OPTIONS_INIT;
    o->max_length = s->max_length;
    o->truncation = (bert_truncation)s->truncation;
    o->truncation_side = (bert_side)s->truncation_side;
    o->overflow = s->stride != NO_STRIDE ? BERT_OVERFLOW_PARTS : BERT_NO_OVERFLOW;
    o->stride = s->stride == NO_STRIDE ? 0 : s->stride;
    o->no_special_tokens = s->no_special_tokens;
    o->literal_specials = s->literal_specials;
    o->pad_to_multiple = s->pad_to_multiple;
    o->padding_side = (bert_side)s->padding_side;
    o->offsets_cp = s->offset_unit;
    if (s->padding) TRY(args_padding(s->padding, &o->pad_length));
    if (s->padding) o->padding = o->pad_length ? BERT_PAD_FIXED : BERT_PAD_LONGEST;
    if (s->pad_to_multiple && !s->padding) return say_usage("--pad-to-multiple needs --padding");
    return 0;
}

static int open_tokenizer(job *j) {
    const char *path;
    bert_error err;
    bert_tokenizer_options options = BERT_TOKENIZER_OPTIONS_INIT;
    options.notes = &say_notes;
    options.tokenizer_json = j->s->tokenizer_json;
    options.strict = j->s->strict;
    TRY(engine_model_path(j->s, &path));
    return bert_tokenizer_open(&j->tokenizer, path, &options, &err) ? say_failure(&err) : 0;
}

static int work(job *j) {
    TRY(read_settings(j, j->s));
    TRY(input_open(&j->input, j->s));
    TRY(sink_open(&j->out, j->s->output));
    TRY(open_tokenizer(j));
    j->window.in = &j->input;
    /* How long the longest is, is known at the end. */
    int how = j->options.padding == BERT_PAD_LONGEST ? WINDOW_ALL : WINDOW_STREAM;
    do {
        TRY(window_fill(&j->window, how));
        TRY(write_window(j));
    } while (!j->window.at_end);
    TRY(sink_finish(&j->out));
    return window_finish(&j->window);
}

static int run(const settings *s) {
    job j = {.s = s};
    int status = work(&j);
    sink_abandon(&j.out);
    bert_tokens_close(&j.tokens);
    bert_tokenizer_close(&j.tokenizer);
    window_close(&j.window);
    input_close(&j.input);
    buffer_close(&j.line);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"model", 'm', OPTION_TEXT, AT(model), 0, "PATH",
     "a model's folder, a tokenizer.json or a vocab.txt; without it $BERT_MODEL"},
    {"stride", 0, OPTION_COUNT, AT(stride), 0, "N",
     "with --max-length, jsonl: keep what was cut off as parts that share N tokens"},
    {"no-special-tokens", 0, OPTION_FLAG, AT(no_special_tokens), 1, NULL, "no [CLS] and [SEP]"},
    {"padding", 0, OPTION_TEXT, AT(padding), 0, "longest|N", "fill up to one length with [PAD]"},
    {"pad-to-multiple", 0, OPTION_COUNT, AT(pad_to_multiple), 1, "N", "the length is a multiple of N"},
    {"padding-side", 0, OPTION_CHOICE, AT(padding_side), 0, "right|left", "where it is filled up"},
    {"offset-unit", 0, OPTION_CHOICE, AT(offset_unit), 0, "byte|char", "what offsets count"},
    {"strict", 0, OPTION_FLAG, AT(strict), 1, NULL, "warnings are errors"},
    {0}};
static const option *const options[] = {own_options,     options_tokenizer_file, options_input,    options_tokens,
                                        options_literal, options_output,         options_progress, NULL};
const command command_tokenize = {
    "tokenize",       "Token ids, tokens and offsets of texts, as Hugging Face's fast tokenizer gives them.",
    "[--] [TEXT...]", "bert tokenize -m models/all-MiniLM-L6-v2 \"Hello, world!\"",
    options,          run};
