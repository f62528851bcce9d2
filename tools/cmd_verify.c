/* bert verify: our results beside those in a file: how far apart they are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "engine.h"
#include "json_out.h"
#include "memory.h"
#include "output/sink.h"
#include "reference.h"
#include "results.h"
#include "say.h"
#include "sites.h"

typedef struct job {
    const settings *s;
    engine engine;
    reference file;
    sink *out;
    input input;
    window window;
    bert_tokens *tokens;
    sequence *sequences;
    size_t n_sequences;
    bert_tap *taps;
    float *last, *pooler; /* [T, H], [H] of the sequence, for the embedding */
    float *vector;        /* [dim] */
    float *memory;        /* [Tm, H] of --memory */
    size_t memory_rows;
    double *theirs;
    /* the sequence that is being compared */
    const sequence *now;
    long text;
    size_t row, number;
    int status;
} job;

/* Adds the differences between n of our values and those of the file. */
static int compare(job *j, target *t, const float *ours, size_t first, size_t n, size_t step) {
    double *theirs = j->theirs = need_more(j->theirs, 2 * n, sizeof *theirs), *others = theirs + n;
    TRY(reference_read(&j->file, t, 0, first, theirs, n));
    if (t->other) TRY(reference_read(&j->file, t, 1, first, others, n));
    for (size_t i = 0; i < n; i++) {
        double apart = fabs((double)ours[i * step] - theirs[i]), other = t->other ? fabs(others[i] - theirs[i]) : 0;
        t->sum += apart * apart;
        t->other_sum += other * other;
        if (!(apart <= t->largest)) t->largest = apart; /* NaN is the largest */
        if (!(other <= t->other_largest)) t->other_largest = other;
    }
    t->count += n;
    return 0;
}

static int shape_differs(const job *j, const target *t, const bert_view *view) {
    return say_error("%s: %s%s: its shape does not fit this model and text, which give %zu values of rank %d",
                     j->file.path, t->text >= 0 ? "a text's " : "", t->name, site_floats(view), view->rank);
}

/* One view against the row of the file's tensor that belongs to it. The file's may be longer: padding. */
static int compare_view(job *j, target *t, const bert_view *view) {
    const size_t *dim = t->dim + 1, *have = view->dim, *step = view->step;
    int rank = view->rank;
    int fits = t->rank == rank + 1 && j->row < t->dim[0];
    for (int i = 0; i < rank && fits; i++) {
        int tokens = (view->site != BERT_SITE_POOLER) && (rank == 2 ? i == 0 : i > 0) && have[i] == j->now->n;
        tokens |= i == 2 && (view->site == BERT_SITE_CROSS_SCORES || view->site == BERT_SITE_CROSS_WEIGHTS);
        fits = tokens ? dim[i] >= have[i] : dim[i] == have[i];
    }
    if (!fits) return shape_differs(j, t, view);
    size_t d[3] = {1, 1, 1}, n[3] = {1, 1, 1}, s[3] = {0, 0, 0};
    for (int i = 0; i < rank; i++) {
        d[3 - rank + i] = dim[i];
        n[3 - rank + i] = have[i];
        s[3 - rank + i] = step[i];
    }
    size_t begin = j->row * d[0] * d[1] * d[2];
    for (size_t a = 0; a < n[0]; a++)
        for (size_t i = 0; i < n[1]; i++)
            TRY(compare(j, t, view->data + a * s[0] + i * s[1], begin + (a * d[1] + i) * d[2], n[2], s[2]));
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

static int compare_embedding(job *j, target *t) {
    bert_error err;
    bert_encoding tokens = {.n = j->now->n, .ids = j->now->ids, .type_ids = j->now->types};
    bert_embed_options options = BERT_EMBED_OPTIONS_INIT;
    size_t dim = bert_pipeline_dim(j->engine.pipeline, &options);
    j->vector = need_more(j->vector, dim, sizeof *j->vector);
    if (bert_pipeline_pool(j->engine.pipeline, j->vector, j->last, j->pooler, &tokens, &options, &err))
        return say_failure(&err);
    if (t->rank != 2 || t->dim[1] != dim || j->number >= t->dim[0])
        return say_error("%s: embedding: expected shape [%zu or more, %zu]", j->file.path, j->number + 1, dim);
    return compare(j, t, j->vector, j->number * dim, dim, 1);
}

static target *embedding_target(job *j) {
    for (size_t i = 0; i < j->file.n_targets; i++)
        if (j->file.targets[i].site == REFERENCE_EMBEDDING) return &j->file.targets[i];
    return NULL;
}

/* A tap for each site and layer that the file has for this text, and for what the embedding is made of. */
static size_t make_taps(job *j, int embeds) {
    const bert_model_info *info = &j->engine.info;
    size_t n = 0;
    j->taps = need_more(j->taps, j->file.n_targets + 2, sizeof *j->taps);
    for (size_t i = 0; i < j->file.n_targets; i++) {
        const target *t = &j->file.targets[i];
        int seen = t->site == REFERENCE_EMBEDDING || t->text != j->text;
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
    target *embedding = embedding_target(j);
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
            bert_text text = {in->a, strlen(in->a), in->b, in->b ? strlen(in->b) : 0};
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
    double n = t->count ? (double)t->count : 1;
    buffer prefix = {0};
    if (t->text >= 0) buffer_print(&prefix, "%ld.", t->text);
    buffer_byte(&prefix, 0);
    buffer_print(b, "%s%-22s %10zu  rms %.3e  largest %.3e", prefix.data, t->name, t->count, sqrt(t->sum / n),
                 t->largest);
    if (t->other) buffer_print(b, "   (HF's own: rms %.3e  largest %.3e)", sqrt(t->other_sum / n), t->other_largest);
    buffer_byte(b, '\n');
    buffer_close(&prefix);
}

static void print_json(buffer *b, const target *t) {
    double n = t->count ? (double)t->count : 1;
    buffer_text(b, b->len > 1 ? ",{" : "{");
    json_key(b, "name");
    if (t->text >= 0)
        buffer_print(b, "\"%ld.%s\"", t->text, t->name);
    else
        json_text(b, t->name);
    buffer_print(b, ",\"count\":%zu,\"rms\":", t->count);
    json_double(b, sqrt(t->sum / n));
    json_key(b, "largest");
    json_double(b, t->largest);
    if (t->other) {
        json_key(b, "hf_rms");
        json_double(b, sqrt(t->other_sum / n));
        json_key(b, "hf_largest");
        json_double(b, t->other_largest);
    }
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

static int judge(const job *j) {
    const target *worst = NULL;
    for (size_t i = 0; i < j->file.n_targets; i++) {
        const target *t = &j->file.targets[i];
        if (!t->count) return say_error("%s: %s: nothing was compared: it belongs to no input", j->file.path, t->name);
        if (!(t->largest <= j->s->tolerance) && (!worst || !(t->largest <= worst->largest))) worst = t;
    }
    if (!worst) return 0;
    return say_error("%s: %s differs by up to %.3g, more than --tolerance %g", j->file.path, worst->name,
                     worst->largest, j->s->tolerance);
}

static int work(job *j) {
    const settings *s = j->s;
    int as_json = s->format && strcmp(s->format, "json") == 0;
    if (s->format && !as_json && strcmp(s->format, "text") != 0)
        return say_usage("--format %s: expected text or json", s->format);
    if (!s->against) return say_usage("verify needs --against FILE: outputs as safetensors or npy");
    TRY(sink_open(&j->out, s->output));
    TRY(engine_open(&j->engine, s, ENGINE_PIPELINE | ENGINE_DECODERS));
    if (s->memory) TRY(memory_read(&j->memory, &j->memory_rows, s->memory, j->engine.info.hidden));
    TRY(reference_open(&j->file, s->against, &j->engine.info));
    if (j->file.n_inputs && !s->n_texts && !s->ids)
        TRY(compare_own_inputs(j));
    else {
        TRY(input_open(&j->input, s));
        TRY(compare_given_inputs(j));
    }
    TRY(print_results(j, as_json));
    return judge(j);
}

static int run(const settings *s) {
    job j = {.s = s, .text = -1};
    int status = work(&j);
    sink_abandon(&j.out);
    reference_close(&j.file);
    bert_tokens_close(&j.tokens);
    engine_close(&j.engine);
    window_close(&j.window);
    input_close(&j.input);
    free(j.sequences);
    free(j.taps);
    free(j.last);
    free(j.pooler);
    free(j.vector);
    free(j.memory);
    free(j.theirs);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"against", 0, OPTION_TEXT, AT(against), 0, "FILE",
     "safetensors (names f64.*, f32.* or plain) or npy ([N, H], [N, T, H])"},
    {"tolerance", 0, OPTION_REAL, AT(tolerance), 0, "X", "largest difference that is allowed; default 1e-4"},
    {"memory", 0, OPTION_TEXT, AT(memory), 0, "FILE.npy",
     "decoders: [Tm, H], what they look at where the file has no encoder_hidden_states"},
    {"ids", 0, OPTION_TEXT, AT(ids), 0, "FILE", "token ids instead of texts: npy, or JSON lists, one a line"},
    {0}};
static const option *const options[] = {own_options,    options_model,   options_tokenizer_file, options_input,
                                        options_tokens, options_literal, options_output,         NULL};
const command command_verify = {
    "verify",
    "Compares with outputs in a file; its input_ids or texts are used if it has them. Formats: text, json.",
    "[--] [TEXT...]",
    "bert verify -m models/all-MiniLM-L6-v2 --against maps.safetensors",
    options,
    run};
