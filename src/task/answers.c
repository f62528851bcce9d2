/* task/answers.c: where in a context the answer to a question stands: the spans with the best product of the
 * probabilities of start and end, over windows of the context (Devlin et al. 2018, arXiv 1810.04805, §4.2 and §4.3;
 * probabilities and windows as in transformers' pipelines). */
#include <bert/extract.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "task/head.h"
#include "text/tokens.h"

typedef struct chooser {
    const bert_head *head;
    bert_answers_options options;
    bert_answer *best; /* [n], of options.top, best first */
    size_t n;
    float null_score; /* the least of all windows */
    bool has_null;
    float *start, *end; /* [1 + T]: of [CLS], then of the window's context */
} chooser;

/* ---- One window. ---- */

/* Starts and ends of [CLS] and context as scores: probabilities among these tokens only, or logits. Without a [CLS] its
 * place is −∞ in effect: a probability of 0. */
static void score_window(chooser *c, const float *logits, const bert_encoding *part, bool has_cls) {
    const bert_stretch context = part->sequences[1];
    const size_t first = has_cls ? 0 : 1, n = context.n + 1 - first;
    for (size_t k = 0; k <= context.n; k++) {
        const size_t t = k == 0 ? 0 : context.at + k - 1;
        c->start[k] = logits[2 * t];
        c->end[k] = logits[2 * t + 1];
    }
    if (c->options.raw) return;
    if (!has_cls) c->start[0] = c->end[0] = 0;
    if (n == 0) return;
    bert_softmax(c->head->linear.kernels, c->start + first, c->start + first, n);
    bert_softmax(c->head->linear.kernels, c->end + first, c->end + first, n);
}

static float score_of(const chooser *c, size_t start, size_t end) {
    return c->options.raw ? c->start[start] + c->end[end] : c->start[start] * c->end[end];
}

/* Tokens k and l of the context [0, n), widened to whole words, as bytes. */
static bert_answer span_of(const bert_encoding *part, size_t k, size_t l, float score) {
    const bert_stretch context = part->sequences[1];
    const int32_t *words = part->words + context.at;
    while (k > 0 && words[k - 1] == words[k]) k--;
    while (l + 1 < context.n && words[l + 1] == words[l]) l++;
    const bert_span *offsets = part->offsets + context.at;
    return (bert_answer){score, offsets[k].start, offsets[l].end};
}

/* Keeps the answer if it is among the best; the same span counts once, with its best score. Of equal scores the one
 * that came first stays in front. */
static void offer(chooser *c, bert_answer answer) {
    size_t at = c->n, end = c->n;
    while (at > 0 && answer.score > c->best[at - 1].score) at--;
    for (size_t i = 0; i < c->n; i++) {
        if (c->best[i].start != answer.start || c->best[i].end != answer.end) continue;
        if (i < at) return;
        end = i; /* its worse twin goes */
    }
    if (end == c->n && c->n < c->options.top) c->n++;
    if (end == c->options.top) end--;
    if (at > end) return;
    memmove(c->best + at + 1, c->best + at, (end - at) * sizeof *c->best);
    c->best[at] = answer;
}

static void search_window(chooser *c, const float *logits, const bert_encoding *part, int32_t cls) {
    const size_t n = part->sequences[1].n, most = c->options.max_tokens;
    const bool has_cls = part->n > 0 && part->special_tokens_mask[0] && part->ids[0] == cls;
    if (part->n == 0) return; /* a template without added tokens, and no text */
    score_window(c, logits, part, has_cls);
    const float null_score = score_of(c, 0, 0);
    if (!c->has_null || null_score < c->null_score) c->null_score = null_score;
    c->has_null = true;
    for (size_t k = 0; k < n; k++)
        for (size_t l = k; l < n && l - k < most; l++) {
            const float score = score_of(c, k + 1, l + 1);
            if (c->n == c->options.top && !(score > c->best[c->n - 1].score)) continue;
            offer(c, span_of(part, k, l, score));
        }
}

/* ---- All windows. ---- */

static bert_status check(const chooser *c, const bert_tokens *tokens, size_t i, bert_error *err) {
    if (c->head->info.kind != BERT_HEAD_SPAN)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "the head has no starts and ends of answers");
    if (i >= bert_tokens_count(tokens))
        return bert_fail(err, BERT_INVALID_ARGUMENT, "text %zu of %zu", i, bert_tokens_count(tokens));
    if (c->options.top > 0 && c->options.max_tokens > 0) return BERT_OK;
    return bert_fail(err, BERT_INVALID_ARGUMENT, "expected at least one answer of at least one token");
}

static bert_status open_scratch(chooser *c, const bert_tokens *tokens, size_t i, bert_error *err) {
    size_t longest = 0;
    for (size_t p = 0; p < bert_tokens_parts(tokens, i); p++) {
        const size_t n = bert_tokens_at(tokens, i, p).sequences[1].n;
        if (n > longest) longest = n;
    }
    c->start = calloc(longest + 1, sizeof *c->start);
    c->end = calloc(longest + 1, sizeof *c->end);
    if (c->start && c->end) return BERT_OK;
    return bert_fail(err, BERT_NO_MEMORY, "no memory for an answer among %zu tokens", longest);
}

static void search(chooser *c, const float *logits, const bert_tokens *tokens, size_t i) {
    const int32_t cls = bert_tokenizer_special(tokens->tokenizer, BERT_SPECIAL_CLS);
    for (size_t p = 0; p < bert_tokens_parts(tokens, i); p++) {
        const bert_encoding part = bert_tokens_at(tokens, i, p);
        search_window(c, logits, &part, cls);
        logits += 2 * part.n;
    }
    if (c->options.null_answer && c->has_null) offer(c, (bert_answer){c->null_score, 0, 0});
}

bert_status bert_answers(bert_answer *answers, size_t *n, const bert_head *head, const float *logits,
                         const bert_tokens *tokens, size_t i, const bert_answers_options *options, bert_error *err) {
    chooser c = {.head = head, .options = BERT_ANSWERS_OPTIONS_INIT, .best = answers};
    bert_status status;
    *n = 0;
    if (options) memcpy(&c.options, options, options->size < sizeof c.options ? options->size : sizeof c.options);
    TRY(check(&c, tokens, i, err));
    TRY_OR_DONE(open_scratch(&c, tokens, i, err));
    const uint64_t host = bert_fpenv_enter();
    search(&c, logits, tokens, i);
    bert_fpenv_leave(host);
    *n = c.n;
done:
    free(c.start);
    free(c.end);
    return status;
}
