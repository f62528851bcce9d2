/* bert verify: our results beside those in a file: how far apart they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_study.h"
#include "commands.h"
#include "engine.h"
#include "json_out.h"
#include "memory.h"
#include "output/writer.h"
#include "reference.h"
#include "results.h"
#include "say.h"
#include "sites.h"

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
    bert_tap *taps;
    float *last, *pooler; /* [T, H], [H] of the sequence, for the embedding */
    float *vector;        /* [dim] */
    float *memory;        /* [Tm, H] of --memory */
    size_t memory_rows;
    float *values;        /* of a view */
    double *theirs;
    /* the sequence that is being compared */
    const sequence *now;
    long text;
    size_t row, number;
    int status;
} job;

/* Adds the differences between n of our values and those of the file from `first` on. */
static int compare(job *j, target *t, const float *ours, size_t first, size_t n) {
    double *theirs = j->theirs = need_more(j->theirs, 2 * n, sizeof *theirs), *others = theirs + n;
    TRY(reference_read(&j->file, t, 0, first, theirs, n));
    if (t->other) TRY(reference_read(&j->file, t, 1, first, others, n));
    for (size_t i = 0; i < n; i++) {
        difference_add(&t->ours, (double)ours[i], theirs[i]);
        if (t->other) difference_add(&t->others, others[i], theirs[i]);
    }
    return 0;
}

static void add_shape(buffer *b, const size_t *dim, int rank) {
    buffer_byte(b, '[');
    for (int i = 0; i < rank; i++) buffer_print(b, i ? ", %zu" : "%zu", dim[i]);
    buffer_byte(b, ']');
}

/* `dim`: what it would be for one text. */
static int shape_differs(const job *j, const target *t, const size_t *dim, int rank) {
    buffer shape = {0};
    add_shape(&shape, t->dim, t->rank);
    buffer_text(&shape, ", that of one text is ");
    add_shape(&shape, dim, rank);
    buffer_byte(&shape, 0);
    int status = say_error("%s: %s: its shape is %s", j->file.path, t->name, shape.data);
    buffer_close(&shape);
    return status;
}

/* Row `row` of the tensor is compared. */
static int take_row(const job *j, target *t, size_t row) {
    if (row >= t->dim[0])
        return say_error("%s: %s: %zu rows, but there are more texts", j->file.path, t->name, t->dim[0]);
    t->rows++;
    return 0;
}

/* 1: dimension i of such a view counts tokens: the file's may be longer by padding. */
static int counts_tokens(const job *j, const bert_view *view, int i) {
    if (i == 2 && (view->site == BERT_SITE_CROSS_SCORES || view->site == BERT_SITE_CROSS_WEIGHTS)) return 1;
    return view->site != BERT_SITE_POOLER && (view->rank == 2 ? i == 0 : i > 0) && view->dim[i] == j->now->n;
}

/* One view, with the heads that the file has, against the row of the file's tensor that belongs to it. */
static int compare_view(job *j, target *t, const bert_view *view) {
    size_t dim[4], d[3] = {1, 1, 1}, n[3] = {1, 1, 1};
    const float *ours = j->values = need_more(j->values, site_floats(view), sizeof *j->values);
    int rank = site_copy(j->values, dim, view, j->file.heads), fits = t->rank == rank;
    for (int i = 1; i < rank && fits; i++) {
        fits = counts_tokens(j, view, i - 1) ? t->dim[i] >= dim[i] : t->dim[i] == dim[i];
        d[3 - rank + i] = t->dim[i];
        n[3 - rank + i] = dim[i];
    }
    if (!fits) return shape_differs(j, t, dim, rank);
    TRY(take_row(j, t, j->row));
    for (size_t a = 0; a < n[0]; a++)
        for (size_t i = 0; i < n[1]; i++, ours += n[2])
            TRY(compare(j, t, ours, ((j->row * d[0] + a) * d[1] + i) * d[2], n[2]));
    return 0;
}

static int take_view(void *user, const bert_view *view) {
    job *j = user;
    for (size_t i = 0; i < j->file.n_targets && !j->status; i++) {
        target *t = &j->file.targets[i];
        int same =
            t->site == view->site && t->text == j->text && (t->layer == view->layer || view->site == BERT_SITE_POOLER);
        if (same) j->status = compare_view(j, t, view);
    }
    return j->status;
}

static size_t count(const char *keep, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) kept += !keep || keep[i];
    return kept;
}

/* x [L, A] against the file's, which has some of its layers and heads. */
static int compare_table(job *j, target *t, const float *x) {
    const size_t layers = j->engine.info.layers, heads = j->engine.info.heads;
    const char *keep_layers = j->file.layers, *keep_heads = j->file.heads;
    const size_t dim[2] = {count(keep_layers, layers), count(keep_heads, heads)};
    size_t at = 0;
    if (t->rank != 2 || t->dim[0] != dim[0] || t->dim[1] != dim[1]) return shape_differs(j, t, dim, 2);
    if (t->rows) return say_error("%s: %s is of one text, but there are more", j->file.path, t->name);
    for (size_t l = 0; l < layers; l++)
        for (size_t a = 0; a < heads; a++)
            if ((!keep_layers || keep_layers[l]) && (!keep_heads || keep_heads[a]))
                TRY(compare(j, t, &x[l * heads + a], at++, 1));
    t->rows = dim[0];
    return 0;
}

/* x: all that study `which` gives for the text. */
static int compare_study(job *j, target *t, int which, float *x) {
    const size_t T = j->now->n, layer = (size_t)t->layer;
    if (which == STUDY_DISTANCE || which == STUDY_ENTROPY) return compare_table(j, t, x);
    bert_view map = {.rank = 2, .dim = {T, T}, .step = {T, 1}, .data = x + layer * T * T};
    if (which != STUDY_NORMS) return compare_view(j, t, &map);
    const size_t heads = j->engine.info.heads;
    bert_view maps = {.rank = 3, .dim = {heads, T, T}, .step = {T * T, T, 1}, .data = x + layer * heads * T * T};
    return compare_view(j, t, &maps);
}

static int compare_studies(job *j, const bert_run_options *options) {
    int wanted[STUDIES] = {0};
    float *x[STUDIES] = {0};
    for (size_t i = 0; i < j->file.n_targets; i++) {
        const target *t = &j->file.targets[i];
        if (t->site >= REFERENCE_STUDY && t->text == j->text) wanted[t->site - REFERENCE_STUDY] = 1;
    }
    int status = study_run(x, wanted, &j->engine, j->now, options);
    for (size_t i = 0; i < j->file.n_targets && !status; i++) {
        target *t = &j->file.targets[i];
        const int which = t->site - REFERENCE_STUDY;
        if (which >= 0 && t->text == j->text) status = compare_study(j, t, which, x[which]);
    }
    for (int i = 0; i < STUDIES; i++) free(x[i]);
    return status;
}

static int compare_embedding(job *j, target *t) {
    bert_error err;
    bert_encoding tokens = {.n = j->now->n, .ids = j->now->ids, .type_ids = j->now->types};
    size_t dim = bert_pipeline_dim(j->engine.pipeline, &j->embed);
    j->vector = need_more(j->vector, dim, sizeof *j->vector);
    if (bert_pipeline_pool(j->engine.pipeline, j->vector, j->last, j->pooler, &tokens, &j->embed, &err))
        return say_failure(&err);
    if (t->rank != 2 || t->dim[1] != dim) return shape_differs(j, t, (size_t[]){1, dim}, 2);
    TRY(take_row(j, t, j->number));
    return compare(j, t, j->vector, j->number * dim, dim);
}

/* A tap for each site and layer that the file has for this text, and for what the embedding is made of. */
static size_t make_taps(job *j, int embeds) {
    const bert_model_info *info = &j->engine.info;
    size_t n = 0;
    j->taps = need_more(j->taps, j->file.n_targets + 2, sizeof *j->taps);
    for (size_t i = 0; i < j->file.n_targets; i++) {
        const target *t = &j->file.targets[i];
        int seen = t->site >= REFERENCE_EMBEDDING || t->text != j->text;
        for (size_t k = 0; k < n && !seen; k++) seen = j->taps[k].site == t->site && j->taps[k].layer == t->layer;
        if (seen) continue;
        j->taps[n] = (bert_tap)BERT_TAP_INIT;
        j->taps[n].site = t->site;
        j->taps[n].layer = t->layer;
        j->taps[n].got = take_view;
        j->taps[n++].user = j;
    }
    if (!embeds) return n;
    j->last = need_more(j->last, j->now->n * info->hidden, sizeof *j->last);
    j->taps[n] = (bert_tap)BERT_TAP_INIT;
    j->taps[n].layer = (int32_t)info->layers;
    j->taps[n].dst = j->last;
    j->taps[n++].dst_len = j->now->n * info->hidden;
    if (bert_pipeline_describe(j->engine.pipeline).pooling != BERT_POOLING_POOLER) return n;
    j->pooler = need_more(j->pooler, info->hidden, sizeof *j->pooler);
    j->taps[n] = (bert_tap)BERT_TAP_INIT;
    j->taps[n].site = BERT_SITE_POOLER;
    j->taps[n].dst = j->pooler;
    j->taps[n].dst_len = info->hidden;
    return n + 1;
}

/* `memory` [rows, H]: what a decoder looks at; NULL: that of --memory, if there is one. */
static int compare_sequence(job *j, const sequence *q, const float *memory, size_t rows) {
    target *embedding = reference_embedding(&j->file);
    const size_t memory_start[2] = {0, memory ? rows : j->memory_rows};
    bert_run_options options = j->engine.run;
    bert_error err;
    size_t start[2] = {0, q->n};
    bert_batch batch = {sizeof batch, 1, start, q->ids, q->types};
    j->now = q;
    size_t n_taps = make_taps(j, embedding != NULL);
    options.memory = memory ? memory : j->memory;
    options.memory_start = memory_start;
    bert_status ran = bert_run(j->engine.session, &batch, j->taps, n_taps, &options, &err);
    int status = j->status;
    if (!status && ran) status = say_failure(&err);
    if (!status && embedding) status = compare_embedding(j, embedding);
    if (!status) status = compare_studies(j, &options);
    j->now = NULL;
    return status;
}

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
        j->text = in->text;
        j->row = in->row;
        j->number = i;
        TRY(compare_sequence(j, &q, in->memory, in->memory_rows));
    }
    return 0;
}

/* Inputs from the command line or stdin, one behind the other, as rows of the file's tensors. */
static int compare_given_inputs(job *j) {
    window *w = &j->window;
    w->in = &j->input;
    j->text = -1;
    do {
        TRY(window_fill(w, WINDOW_PATIENT));
        TRY(sequences_make(&j->sequences, &j->n_sequences, w, &j->tokens, &j->engine, j->s));
        if (j->n_sequences != w->n) {
            for (size_t i = 0; i < w->n; i++)
                if (w->records[i].wrong[0]) (void)window_report(w, &w->records[i], NULL);
            return EXIT_COULD_NOT;
        }
        for (size_t i = 0; i < j->n_sequences; i++) {
            j->row = j->number = w->done + i;
            TRY(compare_sequence(j, &j->sequences[i], NULL, 0));
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
    job j = {.s = s, .embed = BERT_EMBED_OPTIONS_INIT, .text = -1};
    int status = work(&j);
    sink_abandon(&j.out);
    reference_close(&j.file);
    bert_tokens_close(&j.tokens);
    engine_close(&j.engine);
    window_close(&j.window);
    buffer_close(&j.text_bytes);
    input_close(&j.input);
    free(j.sequences);
    free(j.taps);
    free(j.last);
    free(j.pooler);
    free(j.vector);
    free(j.memory);
    free(j.values);
    free(j.theirs);
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
