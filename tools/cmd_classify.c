/* bert classify: the classes of a text or pair. */
#include <stdlib.h>

#include "commands.h"
#include "head_job.h"
#include "json_out.h"
#include "say.h"

enum { TOP = 5 };

typedef struct classes {
    size_t *order; /* [N] */
    float *scores; /* [N] */
} classes;

/* Best first; of equal ones the earlier. */
static void sort(size_t *order, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && x[i] > x[order[at - 1]]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

static int print(head_job *j, const record *r, size_t i) {
    classes *c = j->own;
    bert_error err;
    const size_t n = bert_head_describe(j->head).labels, top = j->s->top_k ? j->s->top_k : TOP;
    const float *logits = j->logits + j->first * n;
    (void)r, (void)i;
    c->order = need_more(c->order, n, sizeof *c->order);
    c->scores = need_more(c->scores, n, sizeof *c->scores);
    sort(c->order, logits, n); /* scores rise with logits, but may be equal where these are not */
    if (bert_head_score(j->head, c->scores, logits, 1, j->s->raw ? BERT_SCORING_LOGITS : BERT_SCORING_AUTO, &err))
        return say_failure(&err);
    json_key(&j->line, "labels");
    for (size_t k = 0; k < n && k < top; k++) {
        buffer_text(&j->line, k ? ",{" : "[{");
        json_key(&j->line, "label");
        json_text(&j->line, bert_head_label(j->head, c->order[k]));
        json_key(&j->line, "score");
        json_float(&j->line, c->scores[c->order[k]]);
        buffer_byte(&j->line, '}');
    }
    buffer_byte(&j->line, ']');
    return 0;
}

static const head_task task = {.kind = BERT_HEAD_SEQUENCE, .run = head_run, .count = head_count_texts, .print = print};

static int run(const settings *s) {
    classes c = {0};
    const int status = head_job_run(s, &task, &c);
    free(c.order);
    free(c.scores);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"top-k", 0, OPTION_COUNT, AT(top_k), 1, "K", "so many classes at most; default: 5"},
    {"raw", 0, OPTION_FLAG, AT(raw), 1, NULL, "scores are logits, not probabilities"},
    {0}};
static const option *const options[] = {own_options,    options_model,    options_tokenizer_file,
                                        options_input,  options_tokens,   options_literal,
                                        options_output, options_progress, NULL};
const command command_classify = {
    "classify",
    "Classes of texts or pairs, best first, by the head of a sequence classifier. Format: jsonl.",
    "[--] [TEXT...]",
    "bert classify -m models/finbert \"Profits rose by a third.\"",
    options,
    run};
