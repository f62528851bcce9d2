/* bert inspect: what is in a model's folder, what is missing, and what will be assumed. */
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "engine.h"
#include "inspect_file.h"
#include "json_out.h"
#include "output/writer.h"
#include "say.h"
#include "utf8.h"

static const writer_kind *const formats[] = {&writer_text, &writer_json, NULL};

typedef struct job {
    const settings *s;
    bert_pipeline *pipeline; /* NULL: there is no tokenizer */
    bert_model *own_model;
    const bert_model *model;
    bert_model_info info;
    char hash[33];
    int as_json;
    size_t n_warnings;
    buffer warnings; /* NUL-terminated lines */
    buffer out;
} job;

/* Which subcommand works with which head. */
static const struct {
    bert_head_kind kind;
    const char *name;
} heads[] = {{BERT_HEAD_WORDS, "fill-mask"}, {BERT_HEAD_NEXT, "nsp"}, {BERT_HEAD_SEQUENCE, "classify"},
             {BERT_HEAD_SEQUENCE, "rerank"}, {BERT_HEAD_TOKENS, "ner"}, {BERT_HEAD_SPAN, "qa"}};
enum { HEADS = sizeof heads / sizeof *heads };

/* A classifier with one row is what rerank needs. */
static int is_reranker(const bert_model *model) {
    for (size_t i = 0; i < bert_model_tensor_count(model); i++) {
        const bert_tensor_info *t = bert_model_tensor_at(model, i).info;
        if (strcmp(t->name, "classifier.weight") == 0) return t->shape[0] == 1;
    }
    return 0;
}

static int has_head(const bert_model *model, size_t i) {
    return bert_model_has_head(model, heads[i].kind) && (strcmp(heads[i].name, "rerank") != 0 || is_reranker(model));
}

/* By the encoder or by a head. */
static int is_used(const job *j, const bert_model_tensor *t) {
    for (size_t i = 0; !t->used && i < HEADS; i++)
        if (bert_model_head_uses(j->model, heads[i].kind, t->info->name)) return 1;
    return t->used;
}

static void keep_note(void *user, const char *text) {
    job *j = user;
    buffer_add(&j->warnings, text, strlen(text) + 1);
    j->n_warnings++;
}

/* A folder without a tokenizer is still a model. */
static int open_model(job *j, const char *path, const bert_notes *notes) {
    bert_error err, no_tokenizer;
    bert_model_options model = BERT_MODEL_OPTIONS_INIT;
    model.notes = notes;
    model.strict = j->s->strict;
    model.max_memory = j->s->max_memory;
    bert_tokenizer_options tokenizer = BERT_TOKENIZER_OPTIONS_INIT;
    tokenizer.notes = notes;
    tokenizer.strict = j->s->strict;
    tokenizer.tokenizer_json = j->s->tokenizer_json;
    bert_pipeline_options pipeline = {sizeof pipeline, &model, &tokenizer};
    bert_status opened = bert_pipeline_open(&j->pipeline, path, &pipeline, &no_tokenizer);
    if (opened == BERT_OK)
        j->model = bert_pipeline_model(j->pipeline);
    else if (opened != BERT_NOT_FOUND)
        return say_failure(&no_tokenizer);
    else {
        j->warnings.len = j->n_warnings = 0;
        if (bert_model_open(&j->own_model, path, &model, &err)) return say_failure(&err);
        j->model = j->own_model;
        keep_note(j, no_tokenizer.text);
    }
    j->info = bert_model_describe(j->model);
    return 0;
}

static int read_weights(job *j) {
    bert_error err;
    const char *name = NULL;
    if (bert_model_hash(j->model, j->hash, &err)) return say_failure(&err);
    if (bert_model_check_finite(j->model, &name, &err)) return say_failure(&err);
    if (!name) return 0;
    buffer note = {0};
    buffer_print(&note, "%s has values that are NaN or infinite", name);
    keep_note(j, note.data);
    buffer_close(&note);
    return 0;
}

static void add_config(job *j) {
    const bert_model_info *info = &j->info;
    buffer *b = &j->out;
    const struct {
        const char *name;
        size_t value;
    } sizes[] = {{"vocab_size", info->vocab},
                 {"hidden_size", info->hidden},
                 {"num_hidden_layers", info->layers},
                 {"num_attention_heads", info->heads},
                 {"intermediate_size", info->intermediate},
                 {"max_position_embeddings", info->positions},
                 {"type_vocab_size", info->types}};
    json_key(b, "config");
    buffer_byte(b, '{');
    json_key(b, "model_type");
    json_text(b, info->model_type);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        json_key(b, sizes[i].name);
        buffer_print(b, "%zu", sizes[i].value);
    }
    json_key(b, "hidden_act");
    json_text(b, info->hidden_act);
    json_key(b, "layer_norm_eps");
    json_double(b, info->layer_norm_eps);
    json_key(b, "pad_token_id");
    buffer_print(b, "%d", info->pad_token_id);
    json_key(b, "is_decoder");
    buffer_text(b, info->is_decoder ? "true}" : "false}");
}

static void add_tensors(job *j) {
    buffer *b = &j->out;
    json_key(b, "tensors");
    buffer_byte(b, '[');
    for (size_t i = 0; i < bert_model_tensor_count(j->model); i++) {
        bert_model_tensor t = bert_model_tensor_at(j->model, i);
        if (i) buffer_byte(b, ',');
        inspect_tensor_json(b, t.info);
        json_key(b, "file");
        json_text(b, t.file);
        json_key(b, "used");
        buffer_text(b, is_used(j, &t) ? "true}" : "false}");
    }
    buffer_byte(b, ']');
}

static void add_item(buffer *b, const char *text) {
    if (b->data[b->len - 1] != '[') buffer_byte(b, ',');
    json_text(b, text);
}

static void add_lists(job *j) {
    buffer *b = &j->out;
    json_key(b, "missing");
    buffer_byte(b, '[');
    for (size_t i = 0; bert_model_missing(j->model, i); i++) add_item(b, bert_model_missing(j->model, i));
    buffer_byte(b, ']');
    json_key(b, "unused");
    buffer_byte(b, '[');
    for (size_t i = 0; i < bert_model_tensor_count(j->model); i++) {
        bert_model_tensor t = bert_model_tensor_at(j->model, i);
        if (!is_used(j, &t)) add_item(b, t.info->name);
    }
    buffer_byte(b, ']');
    json_key(b, "heads");
    buffer_byte(b, '[');
    for (size_t i = 0; i < HEADS; i++)
        if (has_head(j->model, i)) add_item(b, heads[i].name);
    buffer_byte(b, ']');
}

/* "mean", or of several vectors one behind the other "mean+max". */
static void pooling_names(buffer *b, const bert_pipeline_info *p) {
    for (size_t i = 0; i < p->n_poolings; i++) buffer_print(b, i ? "+%s" : "%s", bert_pooling_name(p->poolings[i]));
}

static void add_prompts(buffer *b, const bert_pipeline *pipeline, const bert_pipeline_info *p) {
    json_key(b, "prompts");
    buffer_byte(b, '[');
    for (size_t i = 0; i < p->n_prompts; i++) add_item(b, bert_pipeline_prompt_name(pipeline, i));
    buffer_byte(b, ']');
    json_key(b, "default_prompt");
    if (p->default_prompt) json_text(b, p->default_prompt);
    else buffer_text(b, "null");
}

static void add_pooling(buffer *b, const bert_pipeline_info *p) {
    json_key(b, "pooling");
    buffer_byte(b, '"');
    pooling_names(b, p);
    buffer_byte(b, '"');
    json_key(b, "dense");
    buffer_print(b, "%zu", p->n_dense);
    json_key(b, "pooling_from");
    json_text(b, p->pooling_assumed ? "nothing in the folder" : "1_Pooling");
    json_key(b, "normalize");
    buffer_text(b, p->normalize ? "true" : "false");
    json_key(b, "dim");
    buffer_print(b, "%zu", p->dim);
}

/* What a run will do that one may want to know: pooling, length, casing. */
static void add_assumed(job *j) {
    buffer *b = &j->out;
    json_key(b, "assumed");
    buffer_byte(b, '{');
    if (j->pipeline) {
        bert_pipeline_info p = bert_pipeline_describe(j->pipeline);
        bert_tokenizer_said said = bert_tokenizer_file_lengths(bert_pipeline_tokenizer(j->pipeline));
        if (!j->info.is_decoder) add_pooling(b, &p);
        add_prompts(b, j->pipeline, &p);
        json_key(b, "max_length");
        buffer_print(b, "%zu", p.max_length);
        json_key(b, "lowercase");
        buffer_text(b, bert_tokenizer_lowercases(bert_pipeline_tokenizer(j->pipeline)) ? "true" : "false");
        json_key(b, "tokenizer_vocab_size");
        buffer_print(b, "%zu", bert_tokenizer_vocab_size(bert_pipeline_tokenizer(j->pipeline)));
        json_key(b, "tokenizer_files_say");
        buffer_print(b, "{\"truncation_max_length\":%zu,\"padding_length\":%zu,\"model_max_length\":%zu}",
                     said.truncation_max_length, said.padding_length, said.model_max_length);
    }
    buffer_byte(b, '}');
}

static void print_json(job *j) {
    buffer *b = &j->out;
    buffer_byte(b, '{');
    add_config(j);
    add_tensors(j);
    json_key(b, "parameters");
    buffer_print(b, "%zu", j->info.parameters);
    add_lists(j);
    add_assumed(j);
    json_key(b, "weights_hash");
    json_text(b, j->hash);
    json_key(b, "warnings");
    buffer_byte(b, '[');
    for (size_t at = 0; at < j->warnings.len; at += strlen(j->warnings.data + at) + 1)
        add_item(b, j->warnings.data + at);
    buffer_text(b, "]}\n");
}

static void print_tensors(job *j) {
    buffer *b = &j->out;
    size_t n = bert_model_tensor_count(j->model);
    buffer_print(b, "\n%zu tensors (* not used)\n", n);
    for (size_t i = 0; i < n; i++) {
        bert_model_tensor t = bert_model_tensor_at(j->model, i);
        buffer_text(b, is_used(j, &t) ? "  " : "* ");
        inspect_tensor_text(b, t.info);
        buffer_text(b, "  ");
        utf8_add_printable(b, t.file, strlen(t.file));
        buffer_byte(b, '\n');
    }
    for (size_t i = 0; bert_model_missing(j->model, i); i++)
        buffer_print(b, "missing  %s\n", bert_model_missing(j->model, i));
}

static void print_vectors(buffer *b, const bert_pipeline_info *p) {
    buffer_text(b, "vectors     ");
    pooling_names(b, p);
    if (p->pooling_assumed) buffer_text(b, " (assumed: the folder has no 1_Pooling)");
    if (p->n_dense) buffer_print(b, ", %zu Dense", p->n_dense);
    buffer_print(b, ", %s, %zu numbers\n", p->normalize ? "normalized" : "not normalized", p->dim);
}

static void print_prompts(buffer *b, const bert_pipeline *pipeline, const bert_pipeline_info *p) {
    if (p->n_prompts) buffer_text(b, "prompts     ");
    for (size_t i = 0; i < p->n_prompts; i++) {
        const char *name = bert_pipeline_prompt_name(pipeline, i);
        if (i) buffer_text(b, ", ");
        utf8_add_printable(b, name, strlen(name));
        if (p->default_prompt && strcmp(name, p->default_prompt) == 0) buffer_text(b, " (default)");
    }
    if (p->n_prompts) buffer_byte(b, '\n');
}

static void print_assumed(job *j) {
    buffer *b = &j->out;
    if (!j->pipeline) return;
    bert_pipeline_info p = bert_pipeline_describe(j->pipeline);
    const bert_tokenizer *tokenizer = bert_pipeline_tokenizer(j->pipeline);
    bert_tokenizer_said said = bert_tokenizer_file_lengths(tokenizer);
    if (j->info.is_decoder)
        buffer_text(b,
                    "decoder     causal, no sentence vectors; only `bert attention` and `bert verify` run decoders\n");
    else
        print_vectors(b, &p);
    print_prompts(b, j->pipeline, &p);
    buffer_print(b, "length      at most %zu tokens, longer texts are cut\n", p.max_length);
    if (said.truncation_max_length)
        buffer_print(b, "            (tokenizer.json says %zu, which is not applied)\n", said.truncation_max_length);
    buffer_print(b, "tokenizer   %s, %zu entries\n", bert_tokenizer_lowercases(tokenizer) ? "lowercases" : "cased",
                 bert_tokenizer_vocab_size(tokenizer));
}

static void print_heads(job *j) {
    int n = 0;
    for (size_t i = 0; i < HEADS; i++)
        if (has_head(j->model, i)) buffer_print(&j->out, n++ ? ", %s" : "heads       %s", heads[i].name);
    if (n) buffer_byte(&j->out, '\n');
}

static void print_text(job *j) {
    const bert_model_info *info = &j->info;
    buffer *b = &j->out;
    buffer_print(b, "model       %s, %zu layers, hidden size %zu, %zu heads of %zu, intermediate size %zu, %s\n",
                 info->model_type, info->layers, info->hidden, info->heads, info->head_size, info->intermediate,
                 info->hidden_act);
    buffer_print(b, "tables      %zu tokens, %zu positions, %zu types; LayerNorm eps %g\n", info->vocab,
                 info->positions, info->types, info->layer_norm_eps);
    buffer_print(b, "parameters  %zu\nweights     %s\n", info->parameters, j->hash);
    print_assumed(j);
    print_heads(j);
    print_tensors(j);
    for (size_t at = 0; at < j->warnings.len; at += strlen(j->warnings.data + at) + 1)
        buffer_print(b, "warning  %s\n", j->warnings.data + at);
}

static int inspect(job *j, const char *path, const bert_notes *notes) {
    struct stat now;
    if (stat(path, &now) == 0 && !S_ISDIR(now.st_mode)) {
        TRY(inspect_file(&j->out, j->s, path, j->as_json, notes));
        for (size_t at = 0; at < j->warnings.len; at += strlen(j->warnings.data + at) + 1)
            say_warning("%s: %s", path, j->warnings.data + at);
        return 0;
    }
    if (j->s->as) return say_usage("--as needs one file, found the folder %s", path);
    TRY(open_model(j, path, notes));
    TRY(read_weights(j));
    (j->as_json ? print_json : print_text)(j);
    return 0;
}

static int work(job *j) {
    const settings *s = j->s;
    const char *path;
    const writer_kind *kind;
    sink *out;
    bert_notes notes = {j, keep_note};
    TRY(writer_choose(&kind, formats, s->format, s->output));
    j->as_json = kind == &writer_json;
    if (s->n_texts > 1) return say_usage("inspect takes one folder or file, found %zu", s->n_texts);
    if (s->n_texts)
        path = s->texts[0];
    else
        TRY(engine_model_path(s, &path));
    TRY(sink_open(&out, s->output));
    int status = inspect(j, path, &notes);
    if (!status) status = sink_write(out, j->out.data, j->out.len);
    if (!status) return sink_finish(&out);
    sink_abandon(&out);
    return status;
}

static int run(const settings *s) {
    job j = {.s = s};
    int status = work(&j);
    bert_pipeline_close(&j.pipeline);
    bert_model_close(&j.own_model);
    buffer_close(&j.warnings);
    buffer_close(&j.out);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"model", 'm', OPTION_TEXT, AT(model), 0, "PATH",
     "the model's folder, or one of its files; without it $BERT_MODEL"},
    {"as", 0, OPTION_TEXT, AT(as), 0, "KIND",
     "the file is one of safetensors, tokenizer, config, index, vocab; else its content decides"},
    {"strict", 0, OPTION_FLAG, AT(strict), 1, NULL, "warnings are errors"},
    {"max-mem", 0, OPTION_SIZE, AT(max_memory), 0, "SIZE", "fail rather than use more for weights"},
    {0}};
static const option *const options[] = {own_options, options_tokenizer_file, options_output, NULL};
const command command_inspect = {
    "inspect",
    "What a model's folder holds, what is missing or not used, what will be assumed; or whether one file is sound. "
    "Formats: text, json.",
    "[PATH]",
    "bert inspect models/all-MiniLM-L6-v2",
    options,
    run};
