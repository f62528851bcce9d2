#include "engine.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "say.h"
#include "signals.h"

int engine_model_path(const settings *s, const char **path) {
    const char *from_environment = getenv("BERT_MODEL");
    *path = s->model ? s->model : from_environment;
    if (*path && **path) return 0;
    return say_usage("no model: give its folder with --model DIR or in $BERT_MODEL (scripts/fetch_model NAME gets one "
                     "from the hub)");
}

static int open_workers(engine *e, const settings *s, const bert_workers **workers) {
    bert_error err;
    *workers = NULL;
    if (s->threads == 1) return 0;
    if (bert_pool_open(&e->pool, s->threads > INT_MAX ? INT_MAX : (int)s->threads, &err)) return say_failure(&err);
    *workers = bert_pool_workers(e->pool);
    return 0;
}

static int check_isa(bert_isa isa) {
    static const char *const names[] = {"auto", "ref", "avx2", "avx512", "neon"};
    if (bert_isa_name(isa)) return 0;
    return say_error("--isa %s: this CPU, or this build, does not have it; auto is %s", names[isa],
                     bert_isa_name(BERT_ISA_AUTO));
}

static bert_status open_parts(engine *e, const char *path, int parts, const bert_pipeline_options *options,
                              bert_error *err) {
    bert_status opened = parts & ENGINE_PIPELINE ? bert_pipeline_open(&e->pipeline, path, options, err)
                                                 : bert_model_open(&e->own_model, path, options->model, err);
    if (opened) return opened;
    e->model = e->pipeline ? bert_pipeline_model(e->pipeline) : e->own_model;
    if (e->pipeline)
        e->tokenizer = bert_pipeline_tokenizer(e->pipeline);
    else if (!bert_tokenizer_open(&e->own_tokenizer, path, options->tokenizer, NULL))
        e->tokenizer = e->own_tokenizer;
    return BERT_OK;
}

/* What was warned of while opening; the attempt with the weights in the file warns of the same again. */
static void hold(void *held, const char *text) {
    buffer_add(held, text, strlen(text) + 1);
}

static void say_held(const buffer *held) {
    for (size_t at = 0; at < held->len; at += strlen(held->data + at) + 1) say_warning("%s", held->data + at);
}

/* Opens the folder, with or without the tokenizer. */
static int open_model(engine *e, const settings *s, int parts, const bert_workers *workers) {
    bert_error err;
    const char *path;
    buffer held = {0};
    const bert_notes notes = {&held, hold};
    TRY(engine_model_path(s, &path));
    bert_model_options model = BERT_MODEL_OPTIONS_INIT;
    model.notes = &notes;
    model.workers = workers;
    model.gemm = e->gemm.multiply ? &e->gemm : NULL;
    model.isa = (bert_isa)s->isa;
    model.strict = s->strict;
    model.max_memory = s->max_memory;
    bert_tokenizer_options tokenizer = BERT_TOKENIZER_OPTIONS_INIT;
    tokenizer.notes = &notes;
    tokenizer.strict = s->strict;
    tokenizer.tokenizer_json = s->tokenizer_json;
    bert_pipeline_options pipeline = BERT_PIPELINE_OPTIONS_INIT;
    pipeline.model = &model;
    pipeline.tokenizer = &tokenizer;
    bert_status opened = open_parts(e, path, parts, &pipeline, &err);
    if (opened == BERT_NO_MEMORY && s->max_memory && !e->gemm.multiply) {
        /* Too large for --max-mem: then they stay in the file, which is slower. */
        model.max_memory = 0;
        model.weights = BERT_WEIGHTS_FILE;
        e->weights_stay_in_file = 1;
        held.len = 0;
        opened = open_parts(e, path, parts, &pipeline, &err);
    }
    say_held(&held);
    buffer_close(&held);
    return opened ? say_failure(&err) : 0;
}

/* What is left of --max-mem for the pass when the weights have theirs; 0: there is no limit. */
static size_t scratch_limit(const engine *e, const settings *s) {
    size_t weights = e->weights_stay_in_file ? 0 : e->info.parameters * sizeof(float);
    if (!s->max_memory) return 0;
    return s->max_memory > weights ? s->max_memory - weights : 1;
}

static int open_session(engine *e, const settings *s, const bert_workers *workers) {
    bert_error err;
    bert_session_options options = BERT_SESSION_OPTIONS_INIT;
    options.workers = workers;
    options.max_memory = scratch_limit(e, s);
    if (bert_session_open(&e->session, e->model, &options, &err)) return say_failure(&err);
    return 0;
}

static int set_length(engine *e, const settings *s) {
    e->max_length = e->pipeline ? bert_pipeline_describe(e->pipeline).max_length : e->info.positions;
    if (s->window) {
        if (s->window > e->info.positions)
            return say_error("--window %zu: the model has %zu positions", s->window, e->info.positions);
        e->max_length = s->window;
        return 0;
    }
    if (!s->max_length) return 0;
    if (s->max_length > e->info.positions)
        return say_error("--max-length %zu: the model has %zu positions", s->max_length, e->info.positions);
    e->max_length = s->max_length;
    return 0;
}

static int check_decoder(const engine *e, const settings *s, int parts) {
    const char *path;
    if (!e->info.is_decoder || parts & ENGINE_DECODERS) return 0;
    TRY(engine_model_path(s, &path));
    return say_error("%s/config.json: is_decoder is true: only `bert attention` and `bert verify` run decoders", path);
}

int engine_check_window(const settings *s) {
    if (s->stride != NO_STRIDE && !s->window) return say_usage("--stride needs --window");
    if (!s->window) return 0;
    if (s->max_length) return say_usage("--window takes the place of --max-length: nothing is cut");
    if (s->truncation == BERT_NO_TRUNCATION)
        return say_usage("--window takes the place of --truncation error: nothing is cut");
    return s->ids ? say_usage("--window is for texts, not for --ids") : 0;
}

int engine_read_prompt(bert_embed_options *options, const settings *s) {
    const int none = s->no_prompt || s->ids;
    if (s->prompt && none)
        return say_usage("--prompt %s: a prompt goes with texts, and not with --no-prompt", s->prompt);
    if (s->prompt) options->prompt_name = s->prompt;
    if (none) options->prompt = "";
    return 0;
}

int engine_open(engine *e, const settings *s, int parts) {
    const bert_workers *workers;
    *e = (engine){.run = BERT_RUN_OPTIONS_INIT};
    e->run.stop = signals_flag();
    TRY(check_isa((bert_isa)s->isa));
    TRY(open_workers(e, s, &workers));
    if (s->gemm == GEMM_OPENBLAS) TRY(gemm_openblas_open(&e->gemm, workers ? workers->width : 1));
    TRY(open_model(e, s, parts, workers));
    e->info = bert_model_describe(e->model);
    TRY(check_decoder(e, s, parts));
    TRY(open_session(e, s, workers));
    return set_length(e, s);
}

void engine_close(engine *e) {
    bert_session_close(&e->session);
    bert_pipeline_close(&e->pipeline);
    bert_model_close(&e->own_model);
    bert_tokenizer_close(&e->own_tokenizer);
    bert_pool_close(&e->pool);
}

bert_tokenize_options engine_tokenize_options(const engine *e, const settings *s) {
    bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
    options.max_length = e->max_length;
    options.truncation = (bert_truncation)s->truncation;
    options.truncation_side = (bert_side)s->truncation_side;
    options.literal_specials = s->literal_specials;
    options.overflow = s->window > 0 ? BERT_OVERFLOW_WINDOWS : BERT_NO_OVERFLOW;
    if (s->window && s->stride != NO_STRIDE) options.stride = s->stride;
    return options;
}
