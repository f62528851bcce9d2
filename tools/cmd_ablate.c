/* bert ablate: what changes when a token is masked or removed, or a head silenced, beside what attention says. */
#include <math.h>
#include <stdlib.h>

#include "commands.h"
#include "engine.h"
#include "json_out.h"
#include "output/page_code.h"
#include "output/page_parts.h"
#include "results.h"
#include "say.h"
#include "token_list.h"

static const writer_kind *const formats[] = {&writer_json, &writer_html, NULL};
static const char *const said_names[BERT_SAID] = {"received", "rollout", "norm"};

typedef struct job {
    const settings *s;
    const writer_kind *kind;
    engine engine;
    bert_mlm *mlm; /* NULL: the model has no such head */
    input input;
    window window;
    bert_tokens *tokens;
    sequence *sequences;
    size_t n_sequences;
    bert_ablation *found;
    sink *out;
    buffer json;
} job;

/* ---- The JSON. What has no meaning is null. ---- */

static void add_number(buffer *b, double x) {
    if (isnan(x))
        buffer_text(b, "null");
    else
        json_float(b, (float)x);
}

/* x [n] as a list, or [rows, n] as lists of it. */
static void add_list(buffer *b, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        buffer_byte(b, i ? ',' : '[');
        add_number(b, (double)x[i]);
    }
    buffer_byte(b, ']');
}

static void add_lists(buffer *b, const float *x, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++) {
        buffer_byte(b, i ? ',' : '[');
        add_list(b, x + i * n, n);
    }
    buffer_byte(b, ']');
}

static void add_member(buffer *b, const char *name, double x) {
    json_key(b, name);
    add_number(b, x);
}

static void add_effect(buffer *b, const char *name, const bert_effects *e, size_t i, size_t tokens) {
    json_key(b, name);
    buffer_byte(b, '{');
    add_member(b, "embedding", (double)e->embedding[i]);
    if (e->log_prob) add_member(b, "log_prob", (double)e->log_prob[i]);
    json_key(b, "tokens");
    add_list(b, e->tokens + i * tokens, tokens);
    buffer_byte(b, '}');
}

static void add_token(buffer *b, const bert_ablation *a, size_t i) {
    buffer_print(b, "{\"index\":%zu", i);
    add_effect(b, "masked", &a->masked, i, a->tokens);
    add_effect(b, "removed", &a->removed, i, a->tokens);
    json_key(b, "attention");
    buffer_byte(b, '{');
    for (int k = 0; k < BERT_SAID; k++) add_member(b, said_names[k], (double)a->said[k][i]);
    buffer_text(b, "}}");
}

static void add_heads(buffer *b, const bert_ablation *a) {
    json_key(b, "head_effects");
    add_lists(b, a->silenced.embedding, a->layers, a->heads);
    if (a->silenced.log_prob) {
        json_key(b, "head_log_probs");
        add_lists(b, a->silenced.log_prob, a->layers, a->heads);
    }
    json_key(b, "head_token_effects");
    for (size_t l = 0; l < a->layers; l++) {
        buffer_byte(b, l ? ',' : '[');
        add_lists(b, a->silenced.tokens + l * a->heads * a->tokens, a->heads, a->tokens);
    }
    buffer_byte(b, ']');
}

static void add_ranks(buffer *b, const char *name, const double rho[BERT_SAID]) {
    json_key(b, name);
    buffer_byte(b, '{');
    for (int k = 0; k < BERT_SAID; k++) add_member(b, said_names[k], rho[k]);
    buffer_byte(b, '}');
}

static void add_text(buffer *b, const bert_text *text) {
    json_key(b, "text");
    json_string(b, text->a, text->a_len);
    if (!text->b) return;
    json_key(b, "pair");
    json_string(b, text->b, text->b_len);
}

static void add_found(job *j, const sequence *q, const bert_encoding *tokens) {
    const bert_ablation *a = j->found;
    buffer *b = &j->json;
    size_t shown = 0;
    buffer_byte(b, '{');
    json_given(b, "id", q->from->id.at, q->from->id.len);
    add_text(b, &q->from->text);
    json_key(b, "tokens");
    token_list_add(b, j->tokens, q->text, 0);
    buffer_print(b, ",\"silence\":\"%s\",\"token_effects\":[", j->s->silence ? "uniform" : "zero");
    for (size_t i = 0; i < a->tokens; i++) {
        if (tokens->special_tokens_mask[i]) continue;
        if (shown++) buffer_byte(b, ',');
        add_token(b, a, i);
    }
    buffer_byte(b, ']');
    add_heads(b, a);
    json_key(b, "rank_correlation");
    buffer_byte(b, '{');
    add_ranks(b, "masked", a->masked_rank);
    add_ranks(b, "removed", a->removed_rank);
    buffer_text(b, "}}");
}

/* ---- The page: the same JSON between the parts of tools/page/ablate.html, and what it says of the model. ---- */

static int write_page(job *j) {
    facts known = {0};
    buffer page_facts = {0}, element = {0};
    TRY(engine_model_path(j->s, &known.model));
    TRY(results_facts(&known, &j->engine, j->kind));
    buffer_byte(&page_facts, '{');
    page_code_model(&page_facts, &known);
    json_key(&page_facts, "ablation");
    buffer_add(&page_facts, j->json.data, j->json.len);
    buffer_byte(&page_facts, '}');
    page_code_facts(&element, &page_facts);
    int status = sink_write(j->out, ablate_before_data, ablate_before_data_size);
    if (!status) status = sink_write(j->out, element.data, element.len);
    if (!status) status = sink_write(j->out, ablate_after_data, ablate_after_data_size);
    buffer_close(&page_facts);
    buffer_close(&element);
    return status;
}

static int write_found(job *j) {
    if (j->kind == &writer_html) return write_page(j);
    buffer_byte(&j->json, '\n');
    return sink_write(j->out, j->json.data, j->json.len);
}

/* ---- The work. ---- */

static int read_settings(job *j) {
    const settings *s = j->s;
    TRY(writer_choose(&j->kind, formats, s->format, s->output));
    return s->n_texts > 1 ? say_usage("ablate takes one text (or a pair: --pair TEXT_B), found %zu", s->n_texts) : 0;
}

static int read_text(job *j) {
    window *w = &j->window;
    w->in = &j->input;
    TRY(window_fill(w, WINDOW_PATIENT));
    if (w->n != 1) return say_error("%s: expected one text, found %s", j->input.lines.name, w->n ? "more" : "none");
    window_gather(w);
    if (w->n_texts) TRY(sequences_make(&j->sequences, &j->n_sequences, w, &j->tokens, &j->engine, j->s));
    if (w->records[0].wrong[0]) TRY(window_report(w, &w->records[0], NULL));
    return j->n_sequences ? 0 : EXIT_COULD_NOT;
}

static int open_head(job *j) {
    bert_error err;
    const bert_status opened = bert_mlm_open(&j->mlm, j->engine.model, &err);
    return opened && opened != BERT_NOT_FOUND ? say_failure(&err) : 0;
}

static int ablate(job *j) {
    const sequence *q = &j->sequences[0];
    const bert_encoding tokens = bert_tokens_at(j->tokens, q->text, 0);
    bert_ablate_options options = BERT_ABLATE_OPTIONS_INIT;
    bert_error err;
    options.silence = (bert_silence)j->s->silence;
    options.mlm = j->mlm;
    options.run = &j->engine.run;
    if (bert_ablate(&j->found, j->engine.session, j->engine.pipeline, &tokens, &options, &err))
        return say_failure(&err);
    add_found(j, q, &tokens);
    return write_found(j);
}

static int work(job *j) {
    const settings *s = j->s;
    TRY(read_settings(j));
    TRY(input_open(&j->input, s));
    TRY(sink_open(&j->out, s->output));
    TRY(engine_open(&j->engine, s, ENGINE_PIPELINE));
    TRY(open_head(j));
    TRY(read_text(j));
    TRY(ablate(j));
    return sink_finish(&j->out);
}

static int run(const settings *s) {
    job j = {.s = s};
    int status = work(&j);
    sink_abandon(&j.out);
    bert_ablation_close(&j.found);
    bert_mlm_close(&j.mlm);
    bert_tokens_close(&j.tokens);
    engine_close(&j.engine);
    window_close(&j.window);
    input_close(&j.input);
    buffer_close(&j.json);
    free(j.sequences);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"silence", 0, OPTION_CHOICE, AT(silence), 0, "zero|uniform",
     "what a silent head gives: nothing, or what looking at all tokens alike gives"},
    {0}};
static const option *const options[] = {own_options,    options_model,    options_tokenizer_file,
                                        options_input,  options_tokens,   options_literal,
                                        options_output, options_progress, NULL};
const command command_ablate = {
    "ablate",
    "What changes when a token is masked or removed, or a head silenced, beside what attention says. Formats: json, "
    "and html, a page that shows it.",
    "[--] [TEXT]",
    "bert ablate -m models/all-MiniLM-L6-v2 \"The quick brown fox jumps over the lazy dog.\"",
    options,
    run};
