/* text/tokenize.c: bert_tokenize: each text through its template, then padding. */
#include "text/encode.h"

#include <string.h>

#include "base/error.h"

bert_status bert_call_no_memory(const bert_call *call) {
    return bert_fail(call->err, BERT_NO_MEMORY, "text %zu: no memory for its tokens", call->text);
}

const bert_template *bert_call_template(const bert_call *call, bool pair) {
    return pair ? &call->tokenizer->pair : &call->tokenizer->single;
}

bert_status bert_begin_part(bert_call *call) {
    bert_tokens *t = call->tokens;
    void *parts = t->parts;
    if (!bert_memory_grow(&t->memory, &parts, &t->parts_room, t->parts_n + 1, sizeof *t->parts))
        return bert_call_no_memory(call);
    t->parts = parts;
    t->parts[t->parts_n++] = (bert_part){.start = t->out.n};
    t->texts[t->texts_n - 1].n++;
    return BERT_OK;
}

bert_status bert_add_special(bert_call *call, const bert_step *step) {
    bert_tokens *t = call->tokens;
    bert_columns *out = &t->out;
    if (call->options.no_special_tokens) return BERT_OK;
    if (!bert_columns_reserve(out, &t->memory, 1, t->code_points)) return bert_call_no_memory(call);
    const size_t at = out->n;
    bert_columns_push(out, step->id, 0, 0, -1);
    out->types[at] = step->type;
    out->special[at] = out->attention[at] = 1;
    if (t->code_points) out->offsets_cp[at] = (bert_span){0, 0};
    return BERT_OK;
}

void bert_mark_text(bert_call *call, size_t at, const bert_step *step, size_t first) {
    bert_columns *out = &call->tokens->out;
    bert_part *part = &call->tokens->parts[call->tokens->parts_n - 1];
    part->sequences[step->second] = (bert_stretch){at - part->start, first, out->n - at};
    for (size_t i = at; i < out->n; i++) out->types[i] = step->type;
    if (out->n > at) {
        memset(out->special + at, 0, out->n - at);
        memset(out->attention + at, 1, out->n - at);
    }
}

void bert_end_part(bert_call *call, size_t total, size_t kept) {
    bert_tokens *t = call->tokens;
    bert_part *part = &t->parts[t->parts_n - 1];
    part->n = t->out.n - part->start;
    part->truncated = total - kept;
    part->unknown = 0;
    const int32_t unk = call->tokenizer->unk;
    for (size_t i = part->start; i < t->out.n; i++) part->unknown += t->out.ids[i] == unk && !t->out.special[i];
}

/* The text as its template has it, whole. */
static bert_status write_whole(bert_call *call, const bert_template *template, const bert_text *text,
                               bert_whole *whole) {
    bert_columns *out = &call->tokens->out;
    TRY(bert_begin_part(call));
    for (size_t i = 0; i < template->n; i++) {
        const bert_step *step = &template->steps[i];
        if (step->id >= 0) {
            TRY(bert_add_special(call, step));
            continue;
        }
        const size_t at = out->n;
        TRY(bert_sequence(call, step->second ? text->b : text->a, step->second ? text->b_len : text->a_len));
        bert_mark_text(call, at, step, 0);
        whole->sequences[step->second] = (bert_slice){at, out->n - at};
        whole->total[step->second] = out->n - at + call->tokens->keep.dropped;
    }
    const size_t total = whole->total[0] + whole->total[1];
    bert_end_part(call, total, total);
    return BERT_OK;
}

static bert_status one_text(bert_call *call, const bert_text *text) {
    bert_tokens *t = call->tokens;
    const bool pair = text->b != NULL;
    const bert_template *template = bert_call_template(call, pair);
    bert_whole whole = {0};
    void *texts = t->texts;
    if (!bert_memory_grow(&t->memory, &texts, &t->texts_room, t->texts_n + 1, sizeof *t->texts))
        return bert_call_no_memory(call);
    t->texts = texts;
    t->texts[t->texts_n++] = (bert_text_parts){.first = t->parts_n};
    TRY(write_whole(call, template, text, &whole));
    return bert_truncate(call, template, pair, &whole);
}

static bert_status open_tokens(bert_tokens **tokens, const bert_tokenizer *tokenizer, bert_error *err) {
    if (*tokens == NULL) {
        *tokens = bert_memory_new(&tokenizer->memory, 1, sizeof **tokens);
        if (*tokens == NULL) return bert_fail(err, BERT_NO_MEMORY, "no memory for tokens");
        (*tokens)->memory = tokenizer->memory;
    }
    bert_tokens *t = *tokens;
    t->tokenizer = tokenizer;
    t->out.n = t->parts_n = t->texts_n = t->odd.n = t->spelled.n = 0;
    return BERT_OK;
}

/* Options as this version knows them: a caller built against an older header gives fewer. */
static bert_tokenize_options known_options(const bert_tokenize_options *given) {
    bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
    if (given != NULL) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    return options;
}

/* What a caller sets may be any number. */
static bert_status check_options(const bert_call *call) {
    const bert_tokenize_options *o = &call->options;
    const struct {
        const char *name;
        int value, most;
    } choices[] = {{"truncation", (int)o->truncation, BERT_NO_TRUNCATION}, {"padding", (int)o->padding, BERT_PAD_FIXED},
                   {"truncation_side", (int)o->truncation_side, BERT_LEFT},
                   {"padding_side", (int)o->padding_side, BERT_LEFT}};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].value < 0 || choices[i].value > choices[i].most)
            return bert_fail(call->err, BERT_INVALID_ARGUMENT, "%s %d: expected 0 to %d", choices[i].name,
                             choices[i].value, choices[i].most);
    return bert_truncate_check(call);
}

static bert_status check_text(const bert_call *call, const bert_text *text) {
    if ((text->a != NULL || text->a_len == 0) && (text->b != NULL || text->b_len == 0)) return BERT_OK;
    return bert_fail(call->err, BERT_INVALID_ARGUMENT, "text %zu: a length without bytes", call->text);
}

bert_status bert_tokenize(bert_tokens **tokens, const bert_tokenizer *tokenizer, const bert_text *texts, size_t n,
                          const bert_tokenize_options *options, bert_error *err) {
    bert_status status = open_tokens(tokens, tokenizer, err);
    if (status != BERT_OK) return status;
    bert_call call = {*tokens, tokenizer, known_options(options), 0, err};
    call.tokens->code_points = call.options.offsets_cp != 0;
    TRY_OR_DONE(check_options(&call));
    for (; call.text < n; call.text++) {
        TRY_OR_DONE(check_text(&call, &texts[call.text]));
        TRY_OR_DONE(one_text(&call, &texts[call.text]));
    }
    TRY_OR_DONE(bert_pad(&call));
done:
    if (status != BERT_OK) call.tokens->texts_n = 0;
    return status;
}
