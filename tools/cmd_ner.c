/* bert ner: entities in texts. */
#include <stdlib.h>

#include "commands.h"
#include "head_job.h"
#include "json_out.h"
#include "say.h"

typedef struct entities {
    bert_place *places; /* of the text's tokens */
    bert_entity *found;
    buffer word;
} entities;

/* Half a window, in a small one less: each has to have a token of its own. */
static size_t usual_stride(const head_job *j, size_t length) {
    size_t added = bert_tokenizer_added(j->engine.tokenizer, 0), most = length > added ? length - added - 1 : 0;
    return length / 2 < most ? length / 2 : most;
}

static int fit(head_job *j) {
    const settings *s = j->s;
    if (!s->window) return 0;
    return head_fit_windows(j, s->window, s->stride == NO_STRIDE ? usual_stride(j, s->window) : s->stride);
}

static void print_entity(head_job *j, size_t i, const bert_text *text, const bert_entity *x) {
    entities *e = j->own;
    const size_t len = bert_entity_word(NULL, 0, j->tokens, i, e->places, text, x);
    char *word = buffer_reserve(&e->word, len);
    bert_entity_word(word, len, j->tokens, i, e->places, text, x);
    buffer_byte(&j->line, '{');
    json_key(&j->line, "label");
    json_text(&j->line, x->label);
    json_key(&j->line, "score");
    json_float(&j->line, x->score);
    buffer_print(&j->line, ",\"start\":%u,\"end\":%u", x->start, x->end);
    json_key(&j->line, "word");
    json_string(&j->line, word, len);
    buffer_byte(&j->line, '}');
}

static int print(head_job *j, const record *r, size_t i) {
    entities *e = j->own;
    bert_entities_options options = BERT_ENTITIES_OPTIONS_INIT;
    bert_error err;
    size_t n;
    const size_t tokens = bert_windows_length(j->tokens, i), labels = bert_head_describe(j->head).labels;
    options.aggregation = (bert_aggregation)j->s->aggregation;
    options.raw = j->s->raw;
    e->places = need_more(e->places, tokens, sizeof *e->places);
    e->found = need_more(e->found, tokens, sizeof *e->found);
    bert_windows_place(e->places, j->tokens, i);
    if (bert_entities(e->found, &n, j->head, j->logits + j->first * labels, j->tokens, i, e->places, &r->text, &options,
                      &err))
        return say_failure(&err);
    json_key(&j->line, "entities");
    buffer_byte(&j->line, '[');
    for (size_t k = 0; k < n; k++) {
        if (k) buffer_byte(&j->line, ',');
        print_entity(j, i, &r->text, &e->found[k]);
    }
    buffer_byte(&j->line, ']');
    return 0;
}

static const head_task task = {.kind = BERT_HEAD_TOKENS,
                               .fit = fit,
                               .take = head_take_single,
                               .run = head_run,
                               .count = head_count_tokens,
                               .print = print};

static int run(const settings *s) {
    entities e = {0};
    TRY(engine_check_window(s));
    const int status = head_job_run(s, &task, &e);
    free(e.places);
    free(e.found);
    buffer_close(&e.word);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"aggregation", 0, OPTION_CHOICE, AT(aggregation), 0, "none|simple|first|average|max",
     "how tokens become entities; from first on words stay whole"},
    {"window", 0, OPTION_COUNT, AT(window), 1, "N", "longer texts in windows of N tokens, instead of being cut"},
    {"stride", 0, OPTION_COUNT, AT(stride), 0, "M", "tokens that neighbouring windows share; default: half a window"},
    {"raw", 0, OPTION_FLAG, AT(raw), 1, NULL, "scores are logits, not probabilities"},
    {0}};
static const option *const options[] = {own_options,    options_model,    options_tokenizer_file,
                                        options_input,  options_tokens,   options_literal,
                                        options_output, options_progress, NULL};
const command command_ner = {
    "ner",
    "Entities in texts, with their bytes, by the head of a token classifier. Format: jsonl.",
    "[--] [TEXT...]",
    "bert ner -m models/bert-base-NER --aggregation simple \"Ada Lovelace lived in London.\"",
    options,
    run};
