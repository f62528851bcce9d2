/* bert qa: where in a context the answer to a question stands. */
#include <stdlib.h>

#include "commands.h"
#include "head_job.h"
#include "json_out.h"
#include "say.h"

/* As transformers' pipelines: windows that questions were trained on, and what these share. */
enum { WINDOW = 384, STRIDE = 128, ANSWER = 15 };

typedef struct answers {
    bert_answers_options options;
    size_t wanted;     /* as many as the user wants: a text may have fewer */
    bert_answer *best; /* [options.top] */
} answers;

static int fit(head_job *j) {
    const settings *s = j->s;
    answers *a = j->own;
    size_t length = s->window ? s->window : j->engine.max_length, stride = s->stride;
    if (!s->window && length > WINDOW) length = WINDOW;
    if (stride == NO_STRIDE) stride = length / 2 < STRIDE ? length / 2 : STRIDE;
    a->options = (bert_answers_options)BERT_ANSWERS_OPTIONS_INIT;
    a->wanted = s->top_k ? s->top_k : 1;
    a->options.max_tokens = s->answer_length ? s->answer_length : ANSWER;
    a->options.null_answer = s->null_answer;
    a->options.raw = s->raw;
    j->tokenize.truncation = BERT_ONLY_SECOND;
    j->tokenize.truncation_side = BERT_RIGHT;
    return head_fit_windows(j, length, stride);
}

static void print_answer(buffer *b, const bert_text *text, const bert_answer *x) {
    json_key(b, "answer");
    json_string(b, text->b + x->start, x->end - x->start);
    json_key(b, "score");
    json_float(b, x->score);
    buffer_print(b, ",\"start\":%u,\"end\":%u", x->start, x->end);
}

/* From each of its tokens an answer can reach as far as its window, and there may be the one that is none. */
static size_t most_answers(const head_job *j, size_t i) {
    const bert_answers_options *o = &((const answers *)j->own)->options;
    const size_t longest = o->max_tokens < j->tokenize.max_length ? o->max_tokens : j->tokenize.max_length;
    return head_count_tokens(j, i) * longest + 1;
}

static int print(head_job *j, const record *r, size_t i) {
    answers *a = j->own;
    bert_error err;
    const bert_answer none = {0, 0, 0};
    size_t n;
    const size_t most = most_answers(j, i);
    a->options.top = a->wanted < most ? a->wanted : most;
    a->best = need_more(a->best, a->options.top, sizeof *a->best);
    if (bert_answers(a->best, &n, j->head, j->logits + 2 * j->first, j->tokens, i, &a->options, &err))
        return say_failure(&err);
    print_answer(&j->line, &r->text, n ? &a->best[0] : &none);
    if (a->wanted == 1) return 0;
    json_key(&j->line, "answers");
    buffer_byte(&j->line, '[');
    for (size_t k = 0; k < n; k++) {
        buffer_text(&j->line, k ? ",{" : "{");
        print_answer(&j->line, &r->text, &a->best[k]);
        buffer_byte(&j->line, '}');
    }
    buffer_byte(&j->line, ']');
    return 0;
}

static const head_task task = {.kind = BERT_HEAD_SPAN,
                               .fit = fit,
                               .take = head_take_pair,
                               .run = head_run,
                               .count = head_count_tokens,
                               .print = print};

static int run(const settings *s) {
    answers a = {0};
    const int status = head_job_run(s, &task, &a);
    free(a.best);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"window", 0, OPTION_COUNT, AT(window), 1, "N",
     "tokens of a window, question included; default: the model's length, at most 384"},
    {"stride", 0, OPTION_COUNT, AT(stride), 0, "M",
     "tokens of the context that neighbouring windows share; default: half a window, at most 128"},
    {"top-k", 0, OPTION_COUNT, AT(top_k), 1, "K", "the K best answers, as a list \"answers\"; default: the best one"},
    {"max-answer-length", 0, OPTION_COUNT, AT(answer_length), 1, "N", "tokens of an answer; default: 15"},
    {"null-answer", 0, OPTION_FLAG, AT(null_answer), 1, NULL,
     "that there is no answer may be the answer: an empty one, with its score"},
    {"raw", 0, OPTION_FLAG, AT(raw), 1, NULL, "scores are sums of two logits, not products of two probabilities"},
    {0}};
static const option *const options[] = {own_options,     options_model,  options_tokenizer_file, options_input,
                                        options_literal, options_output, options_progress,       NULL};
const command command_qa = {
    "qa",
    "The answer to a question from a context, by the head for answers; long contexts in windows. Format: jsonl.",
    "[--] [QUESTION]",
    "bert qa -m models/bert-squad --pair \"Ada Lovelace lived in London.\" \"Where did Ada live?\"",
    options,
    run};
