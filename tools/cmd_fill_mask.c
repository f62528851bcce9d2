/* bert fill-mask: the likeliest words for each [MASK]. */
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "head_job.h"
#include "json_out.h"
#include "say.h"

enum { TOP = 5 };

typedef struct words {
    int32_t mask;  /* its id */
    size_t top;
    int32_t *ids;  /* [masks of the window, top] */
    float *scores; /* likewise */
} words;

static int fit(head_job *j) {
    words *w = j->own;
    w->mask = bert_tokenizer_special(j->engine.tokenizer, BERT_SPECIAL_MASK);
    w->top = j->s->top_k ? j->s->top_k : TOP;
    if (w->top > j->engine.info.vocab) w->top = j->engine.info.vocab;
    return w->mask < 0 ? say_error("the tokenizer has no [MASK]") : 0;
}

static size_t count(const head_job *j, size_t i) {
    const words *w = j->own;
    const bert_encoding text = bert_tokens_at(j->tokens, i, 0);
    size_t n = 0;
    for (size_t k = 0; k < text.n; k++) n += text.ids[k] == w->mask;
    return n;
}

static int fill(head_job *j) {
    words *w = j->own;
    bert_error err;
    const size_t n = bert_mlm_count(j->tokens, w->mask);
    for (size_t i = 0; i < j->window.n_texts; i++) {
        record *r = &j->window.records[j->window.places[i]];
        if (count(j, i) || r->wrong[0]) continue;
        snprintf(r->wrong, sizeof r->wrong, "expected a [MASK] in the text, found none%s",
                 bert_tokens_at(j->tokens, i, 0).truncated ? " in the part that was not cut off" : "");
    }
    w->ids = need_more(w->ids, n * w->top, sizeof *w->ids);
    w->scores = need_more(w->scores, n * w->top, sizeof *w->scores);
    if (n && bert_mlm_fill(j->engine.session, j->mlm, w->ids, w->scores, j->tokens, w->mask, w->top, j->s->raw, 0,
                           &j->engine.run, &err))
        return say_failure(&err);
    return 0;
}

static void print_mask(head_job *j, size_t position, size_t mask) {
    const words *w = j->own;
    buffer_print(&j->line, "{\"position\":%zu,\"top\":[", position);
    for (size_t k = mask * w->top; k < (mask + 1) * w->top; k++) {
        size_t len = 0;
        const char *token = bert_tokenizer_token(j->engine.tokenizer, w->ids[k], &len);
        buffer_print(&j->line, "%s{\"id\":%d", k == mask * w->top ? "" : ",", w->ids[k]);
        json_key(&j->line, "token");
        if (token) json_string(&j->line, token, len);
        else buffer_text(&j->line, "null"); /* the table has more rows than the tokenizer */
        json_key(&j->line, "score");
        json_float(&j->line, w->scores[k]);
        buffer_byte(&j->line, '}');
    }
    buffer_text(&j->line, "]}");
}

static int print(head_job *j, const record *r, size_t i) {
    const words *w = j->own;
    const bert_encoding text = bert_tokens_at(j->tokens, i, 0);
    size_t mask = j->first;
    json_key(&j->line, "text");
    json_string(&j->line, r->text.a, r->text.a_len);
    if (r->text.b) {
        json_key(&j->line, "pair");
        json_string(&j->line, r->text.b, r->text.b_len);
    }
    json_key(&j->line, "masks");
    for (size_t k = 0; k < text.n; k++) {
        if (text.ids[k] != w->mask) continue;
        buffer_byte(&j->line, mask == j->first ? '[' : ',');
        print_mask(j, k, mask++);
    }
    buffer_byte(&j->line, ']');
    return 0;
}

static const head_task task = {.kind = BERT_HEAD_WORDS, .fit = fit, .run = fill, .count = count, .print = print};

static int run(const settings *s) {
    words w = {0};
    const int status = head_job_run(s, &task, &w);
    free(w.ids);
    free(w.scores);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"top-k", 0, OPTION_COUNT, AT(top_k), 1, "K", "so many words for each mask; default: 5"},
    {"raw", 0, OPTION_FLAG, AT(raw), 1, NULL, "scores are logits, not probabilities"},
    {0}};
static const option *const options[] = {own_options,      options_model,  options_tokenizer_file, options_input,
                                        options_tokens,   options_output, options_progress,       NULL};
const command command_fill_mask = {
    "fill-mask",
    "The likeliest words for each [MASK] of a text or pair. Format: jsonl.",
    "[--] [TEXT...]",
    "bert fill-mask -m models/bert-base-uncased \"The capital of France is [MASK].\"",
    options,
    run};
