/* text/truncate.c: cutting a text or a pair to max_length, with the parts that overflow, as HF's truncation does it:
 * before special tokens are counted in, each sequence in windows of n tokens that share `stride` with the next. */
#include "text/encode.h"

#include <string.h>

#include "base/error.h"

/* Parts of a pair of which both texts are cut. HF has no limit: two texts of 1.5 KB may have millions there. */
enum { PAIR_PARTS = 4096 };

/* A sequence and the windows it is cut into. */
typedef struct windows {
    size_t len; /* tokens that are there: all, or more than n */
    size_t n;   /* tokens of a window */
    size_t count;
    size_t step;
    bool from_right;
} windows;

bert_status bert_truncate_check(const bert_call *call) {
    const bert_tokenize_options *o = &call->options;
    const size_t added = call->tokenizer->single.added;
    if (o->max_length == 0 || o->truncation == BERT_NO_TRUNCATION || o->max_length < added) return BERT_OK;
    if (o->stride <= o->max_length - added) return BERT_OK;
    return bert_fail(call->err, BERT_INVALID_ARGUMENT,
                     "stride %zu: max_length %zu leaves only %zu tokens beside the special ones", o->stride,
                     o->max_length, o->max_length - added);
}

/* longest_first for a pair: n[0], n[1] tokens stay of len[0], len[1]; `room` is for both. */
static void share(size_t n[2], const size_t len[2], size_t room) {
    const size_t shorter = len[0] <= len[1] ? 0 : 1;
    size_t small = len[shorter], large = small > room ? small : room - small;
    if (large < small) large = small;
    if (small + large > room) {
        small = room / 2;
        large = small + room % 2;
    }
    n[shorter] = small;
    n[1 - shorter] = large;
}

static bert_status cut_one(const bert_call *call, size_t n[2], size_t which, size_t cut) {
    if (n[which] <= cut)
        return bert_fail(call->err, BERT_TOO_LONG,
                         "text %zu: %zu tokens too many, but the %s sequence, which is to be cut, has only %zu",
                         call->text, cut, which == 0 ? "first" : "second", n[which]);
    n[which] -= cut;
    return BERT_OK;
}

/* How many tokens stay of each sequence; n holds how many there are. */
static bert_status divide(const bert_call *call, size_t n[2], bool pair, size_t room) {
    const size_t len[2] = {n[0], n[1]}, cut = len[0] + len[1] - room;
    if (room == 0) {
        n[0] = n[1] = 0;
        return BERT_OK;
    }
    switch (call->options.truncation) {
    case BERT_ONLY_FIRST: return cut_one(call, n, 0, cut);
    case BERT_ONLY_SECOND:
        if (!pair)
            return bert_fail(call->err, BERT_INVALID_ARGUMENT,
                             "text %zu: only the second sequence may be cut, but there is none", call->text);
        return cut_one(call, n, 1, cut);
    default:
        if (pair) share(n, len, room);
        else n[0] = room;
        return BERT_OK;
    }
}

/* A sequence of which nothing stays would overflow as one window, of any length. */
static bert_status check_windows(const bert_call *call, const size_t n[2], const size_t len[2]) {
    if (call->options.overflow != BERT_OVERFLOW_WINDOWS || (!len[0] == !n[0] && !len[1] == !n[1])) return BERT_OK;
    return bert_fail(call->err, BERT_INVALID_ARGUMENT, "text %zu: max_length %zu has %s", call->text,
                     call->options.max_length, n[0] + n[1] ? "no room for both texts" : "room for special tokens only");
}

static bert_status plan(windows *w, const bert_call *call, size_t len, size_t n) {
    const size_t stride = call->options.stride;
    *w = (windows){len, n, 1, 0, call->options.truncation_side == BERT_LEFT};
    if (n >= len) return BERT_OK;
    if (n == 0) { /* nothing is kept, and the overflow is all of it */
        w->count = 2;
        return BERT_OK;
    }
    if (stride >= n)
        return bert_fail(call->err, BERT_INVALID_ARGUMENT,
                         "text %zu: stride %zu, but only %zu tokens of a sequence stay", call->text, stride, n);
    w->step = n - stride;
    w->count = 1 + (len - n + w->step - 1) / w->step;
    return BERT_OK;
}

static bert_slice window(const windows *w, size_t i) {
    if (w->n == 0) return (bert_slice){0, i == 0 ? 0 : w->len};
    const size_t skip = i * w->step, left = w->len - skip;
    const size_t n = left < w->n ? left : w->n;
    return (bert_slice){w->from_right ? left - n : skip, n};
}

/* Takes the text's tokens out of the results; slices then count from the columns in tokens->kept. */
static bert_status take_out(bert_call *call, bert_slice sequences[2]) {
    bert_tokens *t = call->tokens;
    bert_columns *kept = &t->kept, *out = &t->out;
    const bert_part part = t->parts[--t->parts_n];
    kept->n = t->kept_odd.n = 0;
    if (!bert_columns_reserve(kept, &t->memory, part.n, t->code_points)) return bert_call_no_memory(call);
    memcpy(kept->ids, out->ids + part.start, part.n * sizeof *out->ids);
    memcpy(kept->words, out->words + part.start, part.n * sizeof *out->words);
    memcpy(kept->offsets, out->offsets + part.start, part.n * sizeof *out->offsets);
    if (t->code_points) memcpy(kept->offsets_cp, out->offsets_cp + part.start, part.n * sizeof *out->offsets_cp);
    const size_t first_odd = bert_spellings_find(&t->odd, part.start);
    for (size_t i = first_odd; i < t->odd.n; i++) {
        bert_spelling odd = t->odd.at[i];
        odd.token -= part.start;
        if (!bert_spellings_add(&t->kept_odd, &t->memory, odd)) return bert_call_no_memory(call);
    }
    t->odd.n = first_odd;
    out->n = part.start;
    t->texts[t->texts_n - 1].n = 0;
    for (int i = 0; i < 2; i++) sequences[i].at -= sequences[i].n > 0 ? part.start : sequences[i].at;
    return BERT_OK;
}

/* Appends tokens [from.at, from.at + from.n) of what was taken out. */
static bert_status put_back(bert_call *call, bert_slice from) {
    bert_tokens *t = call->tokens;
    bert_columns *out = &t->out;
    const bert_columns *kept = &t->kept;
    if (!bert_columns_reserve(out, &t->memory, from.n, false)) return bert_call_no_memory(call);
    memcpy(out->ids + out->n, kept->ids + from.at, from.n * sizeof *out->ids);
    memcpy(out->words + out->n, kept->words + from.at, from.n * sizeof *out->words);
    memcpy(out->offsets + out->n, kept->offsets + from.at, from.n * sizeof *out->offsets);
    if (t->code_points) memcpy(out->offsets_cp + out->n, kept->offsets_cp + from.at, from.n * sizeof *out->offsets_cp);
    for (size_t i = bert_spellings_find(&t->kept_odd, from.at); i < t->kept_odd.n; i++) {
        bert_spelling odd = t->kept_odd.at[i];
        if (odd.token >= from.at + from.n) break;
        odd.token += out->n - from.at;
        if (!bert_spellings_add(&t->odd, &t->memory, odd)) return bert_call_no_memory(call);
    }
    out->n += from.n;
    return BERT_OK;
}

/* What one part is made of: the sequences that were taken out, and a window of each. */
typedef struct cut {
    const bert_template *template;
    bert_slice sequences[2];
    windows windows[2];
    size_t total;     /* tokens of both */
    size_t before[2]; /* tokens of each that were dropped in front of those that are there */
} cut;

static bert_status write_part(bert_call *call, const cut *c, size_t first, size_t second) {
    const bert_slice a = window(&c->windows[0], first), b = window(&c->windows[1], second);
    TRY(bert_begin_part(call));
    for (size_t i = 0; i < c->template->n; i++) {
        const bert_step *step = &c->template->steps[i];
        if (step->id >= 0) {
            TRY(bert_add_special(call, step));
            continue;
        }
        const size_t at = call->tokens->out.n;
        bert_slice from = step->second ? b : a;
        const size_t begin = from.n > 0 ? from.at + c->before[step->second] : 0;
        from.at += c->sequences[step->second].at;
        TRY(put_back(call, from));
        bert_mark_text(call, at, step, begin);
    }
    bert_end_part(call, c->total, a.n + b.n);
    return BERT_OK;
}

/* Each window of one text goes with each of the other, so the parts of a pair grow with the square of its length. */
static bert_status check_parts(const bert_call *call, const cut *c) {
    const size_t a = c->windows[0].count, b = c->windows[1].count;
    if (!call->options.overflow || a == 1 || b == 1 || a <= PAIR_PARTS / b) return BERT_OK;
    return bert_fail(call->err, BERT_TOO_LONG,
                     "text %zu: a pair with overflow has %zu × %zu parts; at most %d are possible where both texts "
                     "are cut", call->text, a, b, PAIR_PARTS);
}

/* HF's order: each further part of the first sequence with every part of the second, then the first sequence's
 * beginning with the further parts of the second. */
static bert_status write_parts(bert_call *call, const cut *c) {
    TRY(write_part(call, c, 0, 0));
    if (!call->options.overflow) return BERT_OK;
    for (size_t i = 1; i < c->windows[0].count; i++)
        for (size_t k = 0; k < c->windows[1].count; k++) TRY(write_part(call, c, i, k));
    for (size_t k = 1; k < c->windows[1].count; k++) TRY(write_part(call, c, 0, k));
    return BERT_OK;
}

bert_status bert_truncate(bert_call *call, const bert_template *template, bool pair, const bert_whole *whole) {
    const size_t limit = call->options.max_length, added = call->options.no_special_tokens ? 0 : template->added;
    const bert_slice *sequences = whole->sequences;
    cut c = {template, {sequences[0], sequences[1]}, {{0}, {0}}, whole->total[0] + whole->total[1], {0, 0}};
    size_t n[2] = {whole->total[0], whole->total[1]};
    if (limit == 0 || c.total + added <= limit) return BERT_OK;
    if (call->options.truncation == BERT_NO_TRUNCATION)
        return bert_fail(call->err, BERT_TOO_LONG, "text %zu has %zu tokens; at most %zu are possible", call->text,
                         c.total + added, limit);
    if (limit < added)
        return bert_fail(call->err, BERT_INVALID_ARGUMENT, "max_length %zu is below the %zu special tokens", limit,
                         added);
    TRY(divide(call, n, pair, limit - added));
    TRY(check_windows(call, n, whole->total));
    for (int i = 0; i < 2; i++) {
        TRY(plan(&c.windows[i], call, c.sequences[i].n, n[i]));
        if (c.windows[i].from_right) c.before[i] = whole->total[i] - c.sequences[i].n;
    }
    TRY(check_parts(call, &c));
    TRY(take_out(call, c.sequences));
    return write_parts(call, &c);
}
