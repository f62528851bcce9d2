/* bert verify: our results beside those in a file: how far apart they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "json_out.h"
#include "memory.h"
#include "say.h"
#include "verify_compare.h"

static const writer_kind *const formats[] = {&writer_text, &writer_json, NULL};

typedef struct job {
    const settings *s;
    engine engine;
    reference file;
    sink *out;
    bert_embed_options embed;
    input input;
    window window; /* its prompt is for the file's own texts too */
    buffer text_bytes; /* such a text behind the prompt */
    bert_tokens *tokens;
    sequence *sequences;
    size_t n_sequences;
    float *memory; /* [memory_rows, H] of --memory */
    size_t memory_rows;
    comparison comparison;
} job;

/* Inputs that the file holds itself. */
static int compare_own_inputs(job *j) {
    bert_tokenize_options options = engine_tokenize_options(&j->engine, j->s);
    for (size_t i = 0; i < j->file.n_inputs; i++) {
        const reference_input *in = &j->file.inputs[i];
        bert_error err;
        sequence q = {.n = in->n, .ids = in->ids, .types = in->types};
        if (!in->ids) {
            j->text_bytes.len = 0;
            if (j->window.prompt) buffer_text(&j->text_bytes, j->window.prompt);
            buffer_text(&j->text_bytes, in->a);
            buffer_byte(&j->text_bytes, 0);
            bert_text text = {j->text_bytes.data, j->text_bytes.len - 1, in->b, in->b ? strlen(in->b) : 0};
            if (bert_tokenize(&j->tokens, j->engine.tokenizer, &text, 1, &options, &err)) return say_failure(&err);
            bert_encoding x = bert_tokens_at(j->tokens, 0, 0);
            q = (sequence){.n = x.n, .ids = x.ids, .types = x.type_ids};
        }
        compared now = {&q, j->memory, j->memory_rows, in->text, in->row, i};
        if (in->memory) {
            now.memory = in->memory;
            now.memory_rows = in->memory_rows;
        }
        TRY(comparison_run(&j->comparison, &now));
    }
    return 0;
}

/* Inputs from the command line or stdin, one behind the other, as rows of the file's tensors. */
static int compare_given_inputs(job *j) {
    window *w = &j->window;
    w->in = &j->input;
    do {
        TRY(window_fill(w, WINDOW_PATIENT));
        TRY(sequences_make(&j->sequences, &j->n_sequences, w, &j->tokens, &j->engine, j->s));
        if (j->n_sequences != w->n) {
            for (size_t i = 0; i < w->n; i++)
                if (w->records[i].wrong[0]) (void)window_report(w, &w->records[i], NULL);
            return EXIT_COULD_NOT;
        }
        for (size_t i = 0; i < j->n_sequences; i++) {
            const size_t row = w->done + i;
            const compared now = {&j->sequences[i], j->memory, j->memory_rows, -1, row, row};
            TRY(comparison_run(&j->comparison, &now));
        }
    } while (!w->at_end);
    return 0;
}

static void print_text(buffer *b, const target *t) {
    buffer_print(b, "%-22s %10zu  ", t->name, t->ours.count);
    difference_print(b, &t->ours);
    if (t->other) {
        buffer_text(b, "   (HF's own: ");
        difference_print(b, &t->others);
        buffer_byte(b, ')');
    }
    buffer_byte(b, '\n');
}

static void print_json(buffer *b, const target *t) {
    buffer_text(b, b->len > 1 ? ",{" : "{");
    json_key(b, "name");
    json_text(b, t->name);
    buffer_print(b, ",\"count\":%zu", t->ours.count);
    difference_json(b, &t->ours, "");
    if (t->other) difference_json(b, &t->others, "hf_");
    buffer_byte(b, '}');
}

static int print_results(job *j, int as_json) {
    buffer b = {0};
    if (as_json) buffer_byte(&b, '[');
    for (size_t i = 0; i < j->file.n_targets; i++) (as_json ? print_json : print_text)(&b, &j->file.targets[i]);
    if (as_json) buffer_text(&b, "]\n");
    int status = sink_write(j->out, b.data, b.len);
    buffer_close(&b);
    return status ? status : sink_finish(&j->out);
}

/* Every tensor has been compared, as a whole. */
static int check_rows(const job *j) {
    for (size_t i = 0; i < j->file.n_targets; i++) {
        const target *t = &j->file.targets[i];
        if (!t->ours.count)
            return say_error("%s: %s: nothing was compared: it belongs to no input", j->file.path, t->name);
        if (t->rows < t->dim[0])
            return say_error("%s: %s: %zu rows, but only %zu text%s", j->file.path, t->name, t->dim[0], t->rows,
                             t->rows > 1 ? "s" : "");
    }
    return 0;
}

static int judge(const job *j) {
    const target *worst = NULL;
    for (size_t i = 0; i < j->file.n_targets; i++) {
        const target *t = &j->file.targets[i];
        if (t->ours.not_finite)
            return say_error("%s: %s differs: %zu values are NaN or infinite", j->file.path, t->name,
                             t->ours.not_finite);
        if (!worst || t->ours.largest > worst->ours.largest) worst = t;
    }
    if (!worst || worst->ours.largest <= j->s->tolerance) return 0;
    return say_error("%s: %s differs by up to %.3g, more than --tolerance %g", j->file.path, worst->name,
                     worst->ours.largest, j->s->tolerance);
}

/* As the options say, else the file; else the prompt that the folder has for embeddings, if those are compared: it has
 * none for other results. Where it leaves the prompt's tokens out of the pooling, input_ids are taken to begin with
 * it. */
static int choose_prompt(job *j) {
    bert_error err;
    j->embed.max_length = j->engine.max_length;
    j->embed.literal_specials = j->s->literal_specials;
    if (j->engine.info.is_decoder && !j->s->prompt) return 0;
    if (!j->embed.prompt_name && !j->embed.prompt) j->embed.prompt = j->file.prompt;
    if (!j->embed.prompt_name && !j->embed.prompt && !reference_embedding(&j->file)) return 0;
    if (bert_pipeline_prompt(j->engine.pipeline, &j->window.prompt, &j->embed, &err)) return say_failure(&err);
    return 0;
}

/* What the file has besides is not passed over in silence. */
static int tell_skipped(const job *j) {
    const reference *r = &j->file;
    char more[40] = "";
    if (!r->n_skipped) return 0;
    if (r->n_skipped > REFERENCE_NAMED) snprintf(more, sizeof more, " and %zu more", r->n_skipped - REFERENCE_NAMED);
    if (j->s->strict) return say_error("%s: verify does not compare%s%s", r->path, r->skipped.data, more);
    say_warning("%s: verify does not compare%s%s", r->path, r->skipped.data, more);
    return 0;
}

static int work(job *j) {
    const settings *s = j->s;
    const writer_kind *kind;
    TRY(writer_choose(&kind, formats, s->format, s->output));
    if (!s->against) return say_usage("verify needs --against FILE: outputs as safetensors or npy");
    TRY(engine_read_prompt(&j->embed, s));
    TRY(sink_open(&j->out, s->output));
    TRY(engine_open(&j->engine, s, ENGINE_PIPELINE | ENGINE_DECODERS));
    if (s->memory) TRY(memory_read(&j->memory, &j->memory_rows, s->memory, j->engine.info.hidden));
    TRY(reference_open(&j->file, s->against, &j->engine.info));
    TRY(tell_skipped(j));
    TRY(choose_prompt(j));
    if (j->file.n_inputs && !s->n_texts && !s->ids)
        TRY(compare_own_inputs(j));
    else {
        TRY(input_open(&j->input, s));
        TRY(compare_given_inputs(j));
    }
    TRY(print_results(j, kind == &writer_json));
    TRY(check_rows(j));
    return judge(j);
}

static int run(const settings *s) {
    job j = {.s = s, .embed = BERT_EMBED_OPTIONS_INIT};
    j.comparison = (comparison){.engine = &j.engine, .embed = &j.embed, .file = &j.file};
    int status = work(&j);
    sink_abandon(&j.out);
    reference_close(&j.file);
    bert_tokens_close(&j.tokens);
    engine_close(&j.engine);
    window_close(&j.window);
    buffer_close(&j.text_bytes);
    input_close(&j.input);
    free(j.sequences);
    free(j.memory);
    comparison_close(&j.comparison);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"against", 0, OPTION_TEXT, AT(against), 0, "FILE",
     "safetensors (names f64.*, f32.* or plain) or npy ([N, H], [N, T, H]); "
     "the prompt that it names is the default, or for embeddings the model's"},
    {"tolerance", 0, OPTION_REAL, AT(tolerance), 0, "X", "largest difference that is allowed; default 1e-4"},
    {"memory", 0, OPTION_TEXT, AT(memory), 0, "FILE.npy",
     "decoders: [Tm, H], what they look at where the file has no encoder_hidden_states"},
    {"ids", 0, OPTION_TEXT, AT(ids), 0, "FILE", "token ids instead of texts: npy, or JSON lists, one a line"},
    {0}};
static const option *const options[] = {own_options,    options_model,   options_tokenizer_file, options_input,
                                        options_tokens, options_prompt,  options_literal,        options_output, NULL};
const command command_verify = {
    "verify",
    "Compares with outputs in a file; its input_ids or texts are used if it has them. Formats: text, json.",
    "[--] [TEXT...]",
    "bert verify -m models/all-MiniLM-L6-v2 --against maps.safetensors",
    options,
    run};
