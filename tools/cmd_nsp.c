/* bert nsp: whether the second text of a pair follows the first. */
#include "commands.h"
#include "head_job.h"
#include "json_out.h"
#include "say.h"

static int print(head_job *j, const record *r, size_t i) {
    bert_error err;
    float scores[2];
    (void)r, (void)i;
    if (bert_head_score(j->head, scores, j->logits + 2 * j->first, 1,
                        j->s->raw ? BERT_SCORING_LOGITS : BERT_SCORING_SOFTMAX, &err))
        return say_failure(&err);
    json_key(&j->line, "is_next");
    json_float(&j->line, scores[0]);
    if (!j->s->raw) return 0;
    json_key(&j->line, "is_not_next");
    json_float(&j->line, scores[1]);
    return 0;
}

static const head_task task = {
    .kind = BERT_HEAD_NEXT, .take = head_take_pair, .run = head_run, .count = head_count_texts, .print = print};

static int run(const settings *s) { return head_job_run(s, &task, NULL); }

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"raw", 0, OPTION_FLAG, AT(raw), 1, NULL, "the logits of both answers, not the probability"},
    {0}};
static const option *const options[] = {own_options,    options_model,    options_tokenizer_file,
                                        options_input,  options_tokens,   options_literal,
                                        options_output, options_progress, NULL};
const command command_nsp = {
    "nsp",
    "The probability that the second text of a pair follows the first (next sentence prediction). Format: jsonl.",
    "[--] [TEXT]",
    "bert nsp -m models/bert-base-uncased --pair \"It was cold.\" \"She took her coat.\"",
    options,
    run};
