/* task/plan.c: what one call of bert_embed has to do: its options, the folder's modules, the prompt. */
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "model/model.h"
#include "task/pipeline.h"

static bert_embed_options options_or_default(const bert_embed_options *given) {
    bert_embed_options options = BERT_EMBED_OPTIONS_INIT;
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    return options;
}

static void choose_poolings(bert_embed_plan *plan, const bert_modules *m) {
    static const bert_pooling MEAN = BERT_POOLING_MEAN;
    plan->n_poolings = 1;
    if (plan->options.pooling != BERT_POOLING_AUTO) {
        plan->pooling = &plan->options.pooling;
    } else if (m->n_poolings > 0) {
        plan->pooling = m->pooling;
        plan->n_poolings = m->n_poolings;
    } else {
        plan->pooling = &MEAN;
    }
}

/* The widths between the modules, and what is left of the last. */
static bert_status choose_dim(bert_embed_plan *plan, const bert_modules *m, size_t hidden, bert_error *err) {
    const bert_embed_options *o = &plan->options;
    plan->width = plan->n_poolings * hidden;
    TRY(bert_modules_dim(&plan->full_dim, m, plan->width,
                         o->pooling == BERT_POOLING_AUTO ? BERT_BAD_FILE : BERT_INVALID_ARGUMENT, err));
    for (size_t i = 0; i < m->n_behind; i++)
        if (m->behind[i].linear.n > plan->width) plan->width = m->behind[i].linear.n;
    plan->dim = o->dim ? o->dim : plan->full_dim;
    if (plan->dim <= plan->full_dim) return BERT_OK;
    return bert_fail(err, BERT_INVALID_ARGUMENT, "dim %zu: the model's vectors have %zu values", o->dim,
                     plan->full_dim);
}

static bert_status choose_length(bert_embed_plan *plan, const bert_pipeline *pipeline, size_t positions,
                                 bert_error *err) {
    bert_embed_options *o = &plan->options;
    if (o->window > positions || o->max_length > positions)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "%s %zu: the model has %zu positions",
                         o->window > positions ? "window" : "max_length",
                         o->window > positions ? o->window : o->max_length, positions);
    if (o->window > 0) o->max_length = o->window;
    if (o->max_length == 0) o->max_length = pipeline->max_length;
    return BERT_OK;
}

/* How many tokens the prompt has alone, without a last special one: sentence-transformers leaves out as many. */
static bert_status count_prompt(bert_embed_plan *plan, const bert_tokenizer *tokenizer, bert_error *err) {
    const bert_text text = {plan->prompt, strlen(plan->prompt), NULL, 0};
    bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
    bert_tokens *tokens = NULL;
    options.max_length = plan->options.max_length;
    options.literal_specials = plan->options.literal_specials;
    const bert_status status = bert_tokenize(&tokens, tokenizer, &text, 1, &options, err);
    const bert_encoding prompt = bert_tokens_at(tokens, 0, 0);
    if (prompt.n > 0) plan->left_out = prompt.n - (prompt.special_tokens_mask[prompt.n - 1] != 0);
    bert_tokens_close(&tokens);
    return status;
}

/* Half a character at its end would join the text's first bytes, and what is invalid is counted as the text's. */
static bert_status check_prompt(const char *prompt, bert_error *err) {
    const size_t len = strlen(prompt), valid = bert_utf8_valid((const uint8_t *)prompt, len);
    if (valid == len) return BERT_OK;
    return bert_fail(err, BERT_INVALID_ARGUMENT, "the prompt is not valid UTF-8 at byte %zu", valid);
}

static bert_status choose_prompt(bert_embed_plan *plan, const bert_pipeline *pipeline, bert_error *err) {
    const bert_modules *m = &pipeline->modules;
    const bert_embed_options *o = &plan->options;
    plan->prompt = m->default_prompt ? m->default_prompt->text : "";
    if (o->prompt) plan->prompt = o->prompt;
    else if (o->prompt_name) TRY(bert_prompts_find(&plan->prompt, m, o->prompt_name, err));
    TRY(check_prompt(plan->prompt, err));
    plan->left_out = 0;
    return *plan->prompt && m->leave_out_prompt ? count_prompt(plan, pipeline->tokenizer, err) : BERT_OK;
}

bert_status bert_embed_plan_make(bert_embed_plan *plan, const bert_pipeline *pipeline,
                                 const bert_embed_options *given, bert_error *err) {
    const bert_model_info model = bert_model_describe(pipeline->model);
    if (model.is_decoder)
        return bert_fail(err, BERT_UNSUPPORTED, "config.json: is_decoder is true: a decoder gives no sentence vectors");
    plan->options = options_or_default(given);
    bert_embed_options *o = &plan->options;
    if (!bert_pooling_name(o->pooling)) return bert_fail(err, BERT_INVALID_ARGUMENT, "no pooling %d", (int)o->pooling);
    choose_poolings(plan, &pipeline->modules);
    plan->normalize = o->normalize < 0 ? pipeline->modules.normalize : o->normalize;
    plan->need_pooler = plan->pooling[0] == BERT_POOLING_POOLER;
    TRY(choose_dim(plan, &pipeline->modules, model.hidden, err));
    TRY(choose_length(plan, pipeline, model.positions, err));
    return choose_prompt(plan, pipeline, err);
}

size_t bert_pipeline_dim(const bert_pipeline *pipeline, const bert_embed_options *options) {
    bert_embed_plan plan;
    return bert_embed_plan_make(&plan, pipeline, options, NULL) == BERT_OK ? plan.dim : 0;
}

bert_status bert_pipeline_prompt(const bert_pipeline *pipeline, const char **text, const bert_embed_options *options,
                                 bert_error *err) {
    bert_embed_plan plan;
    *text = NULL;
    TRY(bert_embed_plan_make(&plan, pipeline, options, err));
    *text = plan.prompt;
    return BERT_OK;
}
