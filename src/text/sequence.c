/* text/sequence.c: one text to tokens: added tokens are found first, what lies between them goes its own way. */
#include "text/encode.h"

#include "base/error.h"
#include "text/general.h"
#include "text/pattern.h"
#include "text/repair.h"

/* An added token that was found; what it matched is its spelling, unless that is its content. */
bool bert_sequence_hit(bert_tokens *t, const uint8_t *matched, size_t len, const bert_hit *hit, bert_span span) {
    if (!bert_tokens_reserve(t, 1)) return false;
    const bool odd = hit->token->normalized || hit->run || len != hit->token->len;
    if (odd && !bert_tokens_spell(t, t->out.n, matched, len, hit)) return false;
    bert_columns_push(&t->out, hit->token->id, span.start, span.end, t->next_word++);
    return true;
}

static bert_status segment(bert_call *call, const uint8_t *text, size_t begin, size_t end) {
    const bool literal = call->options.literal_specials != 0;
    if (begin >= end) return BERT_OK;
    if (call->tokenizer->general != NULL)
        return bert_general_segment(call->tokens, call->tokenizer, text, begin, end, literal, call->err);
    return bert_words(call->tokens, call->tokenizer, text, begin, end) ? BERT_OK : bert_call_no_memory(call);
}

static bert_status segments(bert_call *call, const uint8_t *text, size_t len) {
    bert_added_search search = {.set = &call->tokenizer->added.raw, .text = text, .len = len,
                                .literal = call->options.literal_specials != 0};
    bert_hit hit;
    size_t done = 0;
    call->tokens->next_word = 0;
    while (bert_added_next(&search, &hit)) {
        const bert_span span = {(uint32_t)hit.start, (uint32_t)hit.end};
        TRY(segment(call, text, done, hit.start));
        if (!bert_sequence_hit(call->tokens, text + hit.start, hit.end - hit.start, &hit, span))
            return bert_call_no_memory(call);
        done = hit.end;
    }
    return segment(call, text, done, len);
}

static void count_invalid(bert_tokens *t) {
    bert_text_parts *entry = &t->texts[t->texts_n - 1];
    if (t->patches.n == 0) return;
    if (entry->invalid == 0) entry->first_invalid = t->patches.at[0].raw;
    entry->invalid += t->patches.n;
}

/* What truncation leaves of a sequence is no more than max_length, wherever it cuts; one more shows that it is cut. */
static bert_keep needed(const bert_call *call) {
    const bert_tokenize_options *o = &call->options;
    const bool all = o->max_length == 0 || o->max_length == SIZE_MAX || o->overflow;
    return (bert_keep){call->tokens->out.n, all ? SIZE_MAX : o->max_length + 1, o->truncation_side == BERT_LEFT, 0};
}

/* Most languages have 3 bytes a token or more; what is reserved and not used costs no memory. Of a text that is cut,
 * half of what is reserved can be dropped whenever it is full. */
static size_t expected(const bert_keep *keep, size_t len) {
    const size_t whole = len / 3 + 16;
    return keep->most < whole / 2 ? 2 * keep->most + 16 : whole;
}

bert_status bert_sequence(bert_call *call, const char *text, size_t len) {
    bert_tokens *t = call->tokens;
    const uint8_t *valid = (const uint8_t *)(text != NULL ? text : "");
    const size_t from = t->out.n;
    if (len >= UINT32_MAX)
        return bert_fail(call->err, BERT_INVALID_ARGUMENT, "text %zu has %zu bytes; at most 4 GiB - 2 are possible",
                         call->text, len);
    t->keep = needed(call);
    t->work = bert_matches_work(len);
    if (!bert_repair(t, &valid, &len) ||
        !bert_columns_reserve(&t->out, &t->memory, expected(&t->keep, len), call->options.offsets_cp != 0))
        return bert_call_no_memory(call);
    TRY(segments(call, valid, len));
    bert_tokens_drop_rest(t);
    count_invalid(t);
    if (call->options.offsets_cp) bert_count_offsets(&t->out, from, valid);
    bert_repair_offsets(&t->out, from, &t->patches);
    return BERT_OK;
}
