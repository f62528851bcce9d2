/* bert encode: texts to sentence vectors, token vectors and the states between the layers. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "encode_pass.h"
#include "encode_windows.h"
#include "engine.h"
#include "results.h"
#include "say.h"

static const writer_kind *const formats[] = {&writer_jsonl, &writer_npy,  &writer_npz, &writer_safetensors,
                                             &writer_f32,   &writer_text, NULL};

typedef struct job {
    const settings *s;
    const writer_kind *kind;
    facts known;
    encode_wants wants;
    engine engine;
    bert_embed_options embed;
    input input;
    window window;
    sink *out;
    writer *writer;
    float *vectors; /* [n, dim] of the window */
    bert_embed_info *infos;
    bert_tokens *tokens;
    sequence *sequences;
    encode_pass pass;
    encode_windows windows;
} job;

static int read_what(encode_wants *wants, const char *list) {
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {{"embedding", WANT_EMBEDDING},
                 {"last_hidden_state", WANT_LAST},
                 {"hidden_states", WANT_HIDDEN},
                 {"pooler_output", WANT_POOLER}};
    for (const char *at = list ? list : "embedding";; at++) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < 4 && (strlen(names[i].name) != n || memcmp(names[i].name, at, n) != 0)) i++;
        if (i == 4)
            return say_usage("--what %s: expected some of embedding,last_hidden_state,hidden_states,pooler_output",
                             list);
        wants->what |= names[i].bit;
        at += n;
        if (!*at) return 0;
    }
}

static int read_padding(job *j) {
    const settings *s = j->s;
    if (!s->padding) return 0;
    if (j->kind != &writer_npy || !(j->wants.what & (WANT_LAST | WANT_HIDDEN)))
        return say_usage("--padding is for --format npy with --what last_hidden_state or hidden_states");
    TRY(args_padding(s->padding, &j->known.pad_length));
    j->known.pad = j->known.pad_length ? PAD_FIXED : PAD_LONGEST;
    return 0;
}

/* What can be known before the model is there. */
static int read_settings(job *j) {
    const settings *s = j->s;
    TRY(engine_check_window(s));
    TRY(writer_choose(&j->kind, formats, s->format, s->output));
    TRY(read_what(&j->wants, s->what));
    unsigned what = j->wants.what;
    if (j->kind->can & WRITES_ONE_TENSOR && what & (what - 1))
        return say_usage("%s holds one kind of tensor, --what %s asks for several: use npz, safetensors or jsonl",
                         j->kind->name, s->what);
    if (s->layers && !(what & WANT_HIDDEN)) return say_usage("--layers needs --what hidden_states");
    if (s->on_error == ON_ERROR_NULL && j->kind != &writer_jsonl)
        return say_usage("--on-error null needs --format jsonl");
    TRY(read_padding(j));
    j->embed = (bert_embed_options)BERT_EMBED_OPTIONS_INIT;
    j->embed.pooling = (bert_pooling)s->pooling;
    j->embed.normalize = s->normalize;
    j->embed.dim = s->dim;
    j->embed.truncation = (bert_truncation)s->truncation;
    j->embed.truncation_side = (bert_side)s->truncation_side;
    j->embed.literal_specials = s->literal_specials;
    j->embed.window = s->window;
    j->embed.stride = s->stride == NO_STRIDE ? 0 : s->stride;
    return engine_read_prompt(&j->embed, s);
}

/* What stands before each text; that also judges the other options of a vector. */
static int find_prompt(job *j) {
    bert_error err;
    if (!j->engine.pipeline) return 0;
    if (bert_pipeline_prompt(j->engine.pipeline, &j->window.prompt, &j->embed, &err)) return say_failure(&err);
    if (bert_pipeline_describe(j->engine.pipeline).n_prompts) j->known.prompt = j->window.prompt;
    return 0;
}

/* What depends on the model. */
static int fit_model(job *j) {
    const bert_model_info *info = &j->engine.info;
    encode_wants *wants = &j->wants;
    size_t kept = 0;
    if (j->known.pad_length > info->positions)
        return say_error("--padding %zu: the model has %zu positions", j->known.pad_length, info->positions);
    j->embed.max_length = j->engine.max_length;
    j->embed.run = &j->engine.run;
    TRY(find_prompt(j));
    wants->layers = need(info->layers + 1, 1);
    memset(wants->layers, 0, info->layers + 1);
    if (wants->what & WANT_HIDDEN) TRY(args_indices(wants->layers, info->layers + 1, j->s->layers, "layers"));
    for (size_t l = 0; l <= info->layers; l++) kept += wants->layers[l] != 0;
    if (j->kind->can & WRITES_ONE_TENSOR && kept > 1)
        return say_usage("%s holds one kind of tensor: choose one layer with --layers, or use npz", j->kind->name);
    if (wants->what & WANT_EMBEDDING) wants->dim = bert_pipeline_dim(j->engine.pipeline, &j->embed);
    wants->pools_pooler = wants->what & WANT_EMBEDDING && encode_pools_pooler(j->engine.pipeline, &j->embed);
    if ((wants->what & WANT_POOLER || wants->pools_pooler) && !info->has_pooler)
        return say_error(
            "the model has no pooler (pooler.dense.weight is not in its files), so it has no pooler_output");
    j->known.embedding = wants->dim;
    j->known.rank = wants->what & (WANT_LAST | WANT_HIDDEN) ? 3 : 2;
    j->known.width = wants->dim ? wants->dim : info->hidden;
    return 0;
}

static int write_vector(job *j, record *r, const float *vector, const bert_embed_info *info) {
    window_note(&j->window, r, info->truncated, j->embed.max_length);
    if (r->wrong[0]) return window_report(&j->window, r, j->out);
    about text = {
        .id = r->id.at, .id_len = r->id.len, .text = &r->text, .n_tokens = info->tokens, .truncated = info->truncated,
        .windows = info->windows};
    tensor t = {"embedding", TENSOR_F32, 2, {1, j->wants.dim}, vector, 0};
    TRY(writer_begin(j->writer, &text));
    TRY(writer_tensor(j->writer, &t));
    return writer_end(j->writer);
}

/* Runs the window's texts; those that cannot be tokenized are found and left out. */
static int embed_texts(job *j) {
    window *w = &j->window;
    bert_error err;
    size_t found = 1;
    window_gather(w);
    j->vectors = need_more(j->vectors, w->n_texts * j->wants.dim, sizeof *j->vectors);
    j->infos = need_more(j->infos, w->n_texts, sizeof *j->infos);
    while (w->n_texts && bert_embed(j->engine.session, j->engine.pipeline, j->vectors, w->texts, w->n_texts, &j->embed,
                                    j->infos, &err)) {
        if (!window_concerns_text(err.code) || !found) return say_failure(&err);
        bert_tokenize_options options = engine_tokenize_options(&j->engine, j->s);
        TRY(window_screen(w, j->engine.tokenizer, &options, &found));
    }
    return 0;
}

/* The usual case: nothing but vectors. */
static int encode_vectors(job *j) {
    window *w = &j->window;
    TRY(embed_texts(j));
    for (size_t k = 0, i = 0; k < w->n; k++) {
        record *r = &w->records[k];
        if (r->wrong[0]) {
            TRY(window_report(w, r, j->out));
            continue;
        }
        TRY(write_vector(j, r, j->vectors + i * j->wants.dim, &j->infos[i]));
        i++;
    }
    return 0;
}

/* Everything else comes from one pass with taps. */
static int encode_tensors(job *j) {
    window *w = &j->window;
    size_t n, at = 0;
    TRY(sequences_make(&j->sequences, &n, w, &j->tokens, &j->engine, j->s));
    for (size_t k = 0; k < w->n; k++) {
        record *r = &w->records[k];
        if (r->wrong[0]) {
            TRY(window_report(w, r, j->out));
            continue;
        }
        if (at == j->pass.end) TRY(encode_pass_run(&j->pass, &j->engine, &j->wants, &j->embed, j->sequences, at, n));
        TRY(encode_pass_write(&j->pass, j->writer, &j->sequences[at], at, j->tokens));
        at++;
    }
    j->pass.end = 0;
    return 0;
}

/* The same with --window, one text after another. */
static int encode_long(job *j) {
    window *w = &j->window;
    bert_tokenize_options options = engine_tokenize_options(&j->engine, j->s);
    TRY(window_tokenize(w, &j->tokens, j->engine.tokenizer, &options));
    for (size_t k = 0, i = 0; k < w->n; k++) {
        record *r = &w->records[k];
        size_t text = i;
        if (!r->wrong[0]) {
            i++;
            window_note(w, r, 0, j->embed.window);
        }
        if (r->wrong[0])
            TRY(window_report(w, r, j->out));
        else
            TRY(encode_windows_write(&j->windows, j->writer, r, j->tokens, text, &j->engine, &j->wants, &j->embed));
    }
    return 0;
}

static int work(job *j) {
    const settings *s = j->s;
    TRY(read_settings(j));
    TRY(input_open(&j->input, s));
    TRY(sink_open(&j->out, s->output));
    TRY(engine_open(&j->engine, s, s->ids && !(j->wants.what & WANT_EMBEDDING) ? ENGINE_MODEL : ENGINE_PIPELINE));
    TRY(fit_model(j));
    TRY(results_facts(&j->known, &j->engine, j->kind));
    TRY(writer_open(&j->writer, j->kind, j->out, &j->known));
    j->window.in = &j->input;
    int vectors_only = j->wants.what == WANT_EMBEDDING && !s->ids && !(j->kind->can & WRITES_IDS);
    int how = j->kind->can & WRITES_STREAM ? WINDOW_STREAM : WINDOW_PATIENT;
    do {
        TRY(window_fill(&j->window, how));
        if (!j->window.done) j->writer->known.several = j->window.n > 1;
        TRY(vectors_only ? encode_vectors(j) : s->window ? encode_long(j) : encode_tensors(j));
        if (j->kind->can & WRITES_STREAM) TRY(sink_flush(j->out));
    } while (!j->window.at_end);
    TRY(writer_finish(j->writer));
    TRY(sink_finish(&j->out));
    return window_finish(&j->window);
}

static int run(const settings *s) {
    job j = {.s = s};
    int status = work(&j);
    sink_abandon(&j.out);
    writer_close(&j.writer);
    encode_pass_close(&j.pass);
    encode_windows_close(&j.windows);
    bert_tokens_close(&j.tokens);
    engine_close(&j.engine);
    window_close(&j.window);
    input_close(&j.input);
    free(j.sequences);
    free(j.vectors);
    free(j.infos);
    free(j.wants.layers);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"what", 0, OPTION_TEXT, AT(what), 0, "LIST",
     "embedding (default), last_hidden_state, hidden_states, pooler_output"},
    {"layers", 0, OPTION_TEXT, AT(layers), 0, "LIST",
     "of hidden_states: 0,6,12 (0: the embeddings), -1 or all (default)"},
    {"pooling", 0, OPTION_CHOICE, AT(pooling), 0, "auto|cls|mean|max|mean_sqrt_len|weightedmean|lasttoken|pooler",
     "how token vectors become one; auto: as the model's folder says, else mean"},
    {"normalize", 0, OPTION_FLAG, AT(normalize), 1, NULL, "vectors of length 1"},
    {"no-normalize", 0, OPTION_FLAG, AT(normalize), 0, NULL,
     "vectors as they are; without either, as the model's folder says"},
    {"dim", 0, OPTION_COUNT, AT(dim), 1, "N",
     "keep the first N values; vectors that are normalized are so after the cut"},
    {"padding", 0, OPTION_TEXT, AT(padding), 0, "longest|N", "npy of token vectors: fill up with rows of zeros"},
    {"ids", 0, OPTION_TEXT, AT(ids), 0, "FILE",
     "token ids instead of texts: npy ([T] or [N, T]), or JSON lists, one a line"},
    {0}};
static const option *const options[] = {own_options,    options_model,    options_tokenizer_file,
                                        options_input,  options_tokens,   options_windows, options_prompt,
                                        options_literal, options_output,  options_progress, NULL};
const command command_encode = {
    "encode",
    "Vectors of texts: one a text, or those of every token and layer. Formats: jsonl, npy, npz, safetensors, f32, "
    "text.",
    "[--] [TEXT...]",
    "bert encode -m models/all-MiniLM-L6-v2 \"The quick brown fox jumps over the lazy dog.\"",
    options,
    run};
