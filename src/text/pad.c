/* text/pad.c: padding, after everything else and also of overflow parts. */
#include "text/encode.h"

#include <string.h>

#include "base/error.h"
#include "base/size.h"

/* Length that every part gets, at least. */
static bert_status target_length(const bert_call *call, size_t *target) {
    const bert_tokenize_options *o = &call->options;
    const bert_tokens *t = call->tokens;
    *target = o->padding == BERT_PAD_FIXED ? o->pad_length : 0;
    for (size_t i = 0; o->padding == BERT_PAD_LONGEST && i < t->texts_n; i++) {
        const size_t n = t->parts[t->texts[i].first].n;
        if (n > *target) *target = n;
    }
    const size_t step = o->pad_to_multiple;
    if (step > 0 && *target % step != 0 && !bert_size_add(target, *target, step - *target % step))
        return bert_fail(call->err, BERT_INVALID_ARGUMENT, "no length is a multiple of %zu tokens", step);
    return BERT_OK;
}

/* Tokens of all parts once each has at least `target`. */
static bool padded_total(const bert_tokens *t, size_t target, size_t *total) {
    *total = 0;
    for (size_t i = 0; i < t->parts_n; i++)
        if (!bert_size_add(total, *total, t->parts[i].n > target ? t->parts[i].n : target)) return false;
    return true;
}

static void move_tokens(bert_columns *c, size_t to, size_t from, size_t n, bool code_points) {
    memmove(c->ids + to, c->ids + from, n * sizeof *c->ids);
    memmove(c->words + to, c->words + from, n * sizeof *c->words);
    memmove(c->types + to, c->types + from, n * sizeof *c->types);
    memmove(c->offsets + to, c->offsets + from, n * sizeof *c->offsets);
    memmove(c->attention + to, c->attention + from, n);
    memmove(c->special + to, c->special + from, n);
    if (code_points) memmove(c->offsets_cp + to, c->offsets_cp + from, n * sizeof *c->offsets_cp);
}

static void fill(bert_columns *c, size_t at, size_t n, int32_t pad, bool code_points) {
    for (size_t i = at; i < at + n; i++) {
        c->ids[i] = pad;
        c->words[i] = -1;
        c->types[i] = 0;
        c->offsets[i] = (bert_span){0, 0};
        c->attention[i] = 0;
        c->special[i] = 1;
        if (code_points) c->offsets_cp[i] = (bert_span){0, 0};
    }
}

/* From the last part to the first, each moves to where it has room: never to a lower place. */
static void spread(bert_tokens *t, size_t target, size_t total, int32_t pad, bool left) {
    size_t end = total, odd = t->odd.n;
    for (size_t i = t->parts_n; i-- > 0;) {
        bert_part *part = &t->parts[i];
        const size_t missing = part->n < target ? target - part->n : 0;
        const size_t start = end - part->n - missing, tokens = left ? start + missing : start;
        move_tokens(&t->out, tokens, part->start, part->n, t->code_points);
        fill(&t->out, left ? start : start + part->n, missing, pad, t->code_points);
        while (odd > 0 && t->odd.at[odd - 1].token >= part->start) t->odd.at[--odd].token += tokens - part->start;
        for (int k = 0; k < 2; k++) part->sequences[k].at += tokens - start;
        part->start = start;
        part->n += missing;
        end = start;
    }
}

bert_status bert_pad(bert_call *call) {
    bert_tokens *t = call->tokens;
    size_t target, total;
    if (call->options.padding == BERT_PAD_NONE) return BERT_OK;
    TRY(target_length(call, &target));
    const int32_t pad = call->tokenizer->special[BERT_SPECIAL_PAD];
    if (pad < 0) return bert_fail(call->err, BERT_INVALID_ARGUMENT, "the tokenizer has no padding token");
    if (!padded_total(t, target, &total) ||
        !bert_columns_reserve(&t->out, &t->memory, total - t->out.n, t->code_points))
        return bert_fail(call->err, BERT_NO_MEMORY, "no memory to pad %zu parts to %zu tokens", t->parts_n, target);
    spread(t, target, total, pad, call->options.padding_side == BERT_LEFT);
    t->out.n = total;
    return BERT_OK;
}
