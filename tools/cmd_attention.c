/* bert attention: what happens inside each layer and head for one text or pair. */
#include <stdlib.h>
#include <string.h>

#include "attention_lens.h"
#include "attention_study.h"
#include "attention_view.h"
#include "commands.h"
#include "engine.h"
#include "memory.h"
#include "results.h"
#include "say.h"
#include "sites.h"

static const writer_kind *const formats[] = {&writer_json, &writer_npz, &writer_safetensors, &writer_bertviz,
                                            &writer_html, NULL};

enum { TOP = 5 };
enum { SMALL_PAGE = 5800000 }; /* bytes of data: 8 MB with base64 and the page itself */

typedef struct job {
    const settings *s;
    const writer_kind *kind;
    facts known;
    int wanted[SITES];          /* by place in site_names */
    int wanted_studies[STUDIES]; /* in study_names */
    int wants_lens;
    lens lens;
    engine engine;
    float *memory; /* [Tm, H]: what a decoder attends to */
    size_t memory_start[2];
    char *heads;      /* [A]: those that are kept */
    char *layers;     /* [L] */
    buffer head_list, layer_list; /* the same as JSON, when not all */
    input input;
    window window;
    bert_tokens *tokens;
    sequence *sequences; /* [n_sequences] */
    size_t n_sequences;
    bert_tap *taps;
    size_t n_taps;
    sink *out;
    writer *writer;
    buffer token_list, name;
    float *values; /* the tensor that is being written */
    int status;    /* of the writer, while the pass runs */
} job;

static int read_page(job *j) {
    const settings *s = j->s;
    if (j->kind != &writer_html && (s->view || s->keep || s->min_weight > 0))
        return say_usage("--view, --keep and --min-weight are for the page (-o FILE.html), found the format %s",
                         j->kind->name);
    return 0;
}

static int no_such_what(const char *list) {
    buffer names = {0};
    for (int i = 0; i < SITE_CROSS; i++) buffer_print(&names, "%s,", site_names[i].what);
    for (int i = 0; i < STUDIES; i++) buffer_print(&names, i ? ",%s" : "%s", study_names[i]);
    buffer_text(&names, ",logit_lens");
    int status = say_usage("--what %s: expected some of %.*s", list, (int)names.len, names.data);
    buffer_close(&names);
    return status;
}

static int is_word(const char *at, size_t n, const char *word) {
    return strlen(word) == n && memcmp(word, at, n) == 0;
}

static int read_what(job *j) {
    const char *list = j->s->what ? j->s->what : "weights";
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, ",");
        int found = is_word(at, n, "logit_lens");
        j->wants_lens |= found;
        for (int i = 0; i < SITE_CROSS; i++)
            if (is_word(at, n, site_names[i].what)) j->wanted[i] = found = 1;
        for (int i = 0; i < STUDIES; i++)
            if (is_word(at, n, study_names[i])) j->wanted_studies[i] = found = 1;
        if (!found) return no_such_what(list);
        at += n;
        if (!*at) return 0;
    }
}

/* --compare counts over all of the model and many texts. */
static int read_compare(const settings *s) {
    static const writer_kind *const json_only[] = {&writer_json, NULL};
    const writer_kind *kind;
    if (s->n_texts || s->ids) return say_usage("--compare FILE takes the place of TEXT and --ids");
    if (s->layers || s->heads || s->memory || s->window || s->top_k)
        return say_usage("--compare takes no --layers, --heads, --memory, --window or --top-k");
    if (s->view || s->keep || s->min_weight > 0)
        return say_usage("--view, --keep and --min-weight are for the page, which --compare does not write");
    return writer_choose(&kind, json_only, s->format, s->output);
}

/* weights, with or without query and key together: what a page can show. */
static int page_can_show(const job *j) {
    int others = j->wants_lens;
    for (int i = 0; i < SITES; i++)
        others |= j->wanted[i] && i != SITE_WEIGHTS && i != SITE_QUERY && i != SITE_KEY;
    for (int i = 0; i < STUDIES; i++) others |= j->wanted_studies[i];
    return j->wanted[SITE_WEIGHTS] && j->wanted[SITE_QUERY] == j->wanted[SITE_KEY] && !others;
}

/* An option that would change nothing is a mistake. */
static int read_choices(const job *j) {
    const settings *s = j->s;
    const char *what = s->what ? s->what : "weights";
    if (s->top_k && !j->wants_lens) return say_usage("--top-k needs --what logit_lens, found %s", what);
    if (s->heads && !study_chooses_heads(j->wanted, j->wanted_studies))
        return say_usage("--heads %s: nothing of --what %s is of single heads", s->heads, what);
    if (s->layers && !j->wants_lens && !study_chooses_layers(j->wanted, j->wanted_studies))
        return say_usage("--layers %s: nothing of --what %s is of single layers", s->layers, what);
    return 0;
}

static int read_settings(job *j) {
    const settings *s = j->s;
    TRY(engine_check_window(s));
    if (s->compare) return read_compare(s);
    TRY(writer_choose(&j->kind, formats, s->format, s->output));
    TRY(read_what(j));
    TRY(read_choices(j));
    TRY(read_page(j));
    if (j->kind == &writer_html && !page_can_show(j))
        return say_usage("the page shows weights, or weights,query,key, found --what %s", s->what);
    if (j->kind == &writer_bertviz && s->what && strcmp(s->what, "weights") != 0)
        return say_usage("bertviz shows weights, found --what %s", s->what);
    if (s->n_texts > 1 && j->kind != &writer_html)
        return say_usage("attention takes one text (or a pair: --pair TEXT_B), found %zu", s->n_texts);
    return 0;
}

/* --memory, and that cross_attentions are written beside the weights where the format has a place for them. */
static int read_memory(job *j) {
    const settings *s = j->s;
    const bert_model_info *info = &j->engine.info;
    if (!s->memory) return 0;
    if (!info->cross_attention)
        return say_error("--memory %s: the model has no cross-attention (add_cross_attention in config.json)",
                         s->memory);
    TRY(memory_read(&j->memory, &j->memory_start[1], s->memory, info->hidden));
    j->engine.run.memory = j->memory;
    j->engine.run.memory_start = j->memory_start;
    j->wanted[SITE_CROSS_SCORES] = j->wanted[SITE_SCORES];
    j->wanted[SITE_CROSS] = j->wanted[SITE_WEIGHTS] && j->kind != &writer_html && j->kind != &writer_bertviz;
    return 0;
}

/* The heads that were asked for, and their list for the file. */
static int read_heads(job *j) {
    size_t n = j->engine.info.heads;
    j->heads = need(n, 1);
    TRY(args_indices(j->heads, n, j->s->heads, "heads"));
    j->known.heads = results_choice(&j->head_list, j->heads, n);
    return 0;
}

/* Likewise the layers of studies; what has a tensor for each layer has their numbers in its names. */
static int read_layers(job *j) {
    size_t n = j->engine.info.layers;
    int studied = 0;
    for (int i = 0; i < STUDIES; i++) studied |= j->wanted_studies[i];
    j->layers = need(n, 1);
    TRY(args_indices(j->layers, n, studied ? j->s->layers : NULL, "layers"));
    if (study_has_rows(j->wanted_studies)) j->known.layers = results_choice(&j->layer_list, j->layers, n);
    return 0;
}

static int write_view(void *user, const bert_view *view) {
    job *j = user;
    tensor t = {.type = TENSOR_F32};
    const site_name *site = site_names;
    while (site->site != (bert_site)view->site) site++;
    j->name.len = 0;
    buffer_text(&j->name, site->tensor);
    if (!site_comes_once(site->site)) buffer_print(&j->name, ".%d", view->layer);
    buffer_byte(&j->name, 0);
    j->values = need_more(j->values, site_floats(view), sizeof *j->values);
    t.name = j->name.data;
    t.rank = site_copy(j->values, t.dim, view, j->heads);
    t.data = j->values;
    j->status = writer_tensor(j->writer, &t);
    return j->status;
}

static int write_lens(void *user, const bert_view *view) {
    job *j = user;
    j->status = lens_write(&j->lens, j->writer, view);
    return j->status;
}

/* A tap on each layer of the site that --layers keeps. */
static int add_taps(job *j, bert_site site, int (*got)(void *, const bert_view *)) {
    size_t layers = site_layers(site, &j->engine.info);
    char *keep = need(layers, 1);
    int status = args_indices(keep, layers, site_comes_once(site) ? NULL : j->s->layers, "layers");
    for (size_t l = 0; l < layers && !status; l++) {
        if (!keep[l]) continue;
        bert_tap *tap = &j->taps[j->n_taps++];
        *tap = (bert_tap)BERT_TAP_INIT;
        tap->site = (int32_t)site;
        tap->layer = (int32_t)l;
        tap->got = got;
        tap->user = j;
    }
    free(keep);
    return status;
}

static int make_taps(job *j) {
    j->taps = need((SITES + 1) * (j->engine.info.layers + 1), sizeof *j->taps);
    for (int i = 0; i < SITES; i++)
        if (j->wanted[i]) TRY(add_taps(j, site_names[i].site, write_view));
    if (!j->wants_lens) return 0;
    TRY(lens_open(&j->lens, &j->engine, j->s->top_k ? j->s->top_k : TOP));
    return add_taps(j, BERT_SITE_HIDDEN_STATES, write_lens);
}

/* The one text: more or fewer of them is an error. A page takes several. */
static int read_texts(job *j) {
    window *w = &j->window;
    int page = j->kind == &writer_html;
    w->in = &j->input;
    TRY(window_fill(w, page ? WINDOW_ALL : WINDOW_PATIENT));
    if (w->n == 0 || (w->n > 1 && !page))
        return say_error("%s: expected one text, found %s", j->input.lines.name, w->n ? "more" : "none");
    window_gather(w);
    if (w->n_texts) TRY(sequences_make(&j->sequences, &j->n_sequences, w, &j->tokens, &j->engine, j->s));
    for (size_t i = 0; i < w->n; i++)
        if (w->records[i].wrong[0]) TRY(window_report(w, &w->records[i], NULL));
    return 0;
}

static size_t kept(const char *keep, size_t n) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += keep[i] != 0;
    return found;
}

/* Without --what a page has queries and keys too, for its view of neurons, while that leaves it small. */
static int choose_for_page(job *j) {
    const bert_model_info *info = &j->engine.info;
    size_t bytes = 0;
    if (j->kind != &writer_html || j->s->what) return 0;
    char *layers = need(info->layers, 1);
    int status = args_indices(layers, info->layers, j->s->layers, "layers");
    size_t maps = kept(layers, info->layers) * kept(j->heads, info->heads);
    free(layers);
    TRY(status);
    for (size_t i = 0; i < j->n_sequences; i++) {
        size_t T = j->sequences[i].n;
        bytes += maps * T * (T + 2 * (info->head_size + sizeof(float)));
    }
    j->wanted[SITE_QUERY] = j->wanted[SITE_KEY] = bytes <= SMALL_PAGE;
    return 0;
}

/* --window: which window this is, where in the sequences it begins, and where in the text each of its tokens stands. */
static int write_window(job *j, const sequence *q) {
    buffer *b = &j->name;
    bert_encoding part = bert_tokens_at(j->tokens, q->text, q->part);
    if (!j->s->window || !(j->kind->can & WRITES_IDS)) return 0;
    b->len = 0;
    buffer_print(b, "{\"number\":%zu,\"of\":%zu,\"first\":[%zu,%zu]}", q->part, q->windows, part.sequences[0].first,
                 part.sequences[1].first);
    tensor t = {"window", TENSOR_JSON, 1, {b->len}, b->data, 1};
    TRY(writer_tensor(j->writer, &t));
    b->len = 0;
    for (size_t i = 0; i < part.n; i++)
        buffer_print(b, i ? ",[%u,%u]" : "[[%u,%u]", part.offsets[i].start, part.offsets[i].end);
    buffer_byte(b, ']');
    t = (tensor){"offsets", TENSOR_JSON, 1, {b->len}, b->data, 1};
    return writer_tensor(j->writer, &t);
}

static int run_text(job *j, const sequence *q) {
    size_t start[2] = {0, q->n};
    bert_batch batch = {sizeof batch, 1, start, q->ids, q->types};
    bert_error err;
    about text;
    TRY(results_begin(j->writer, &text, &j->token_list, q, j->tokens, &j->engine));
    TRY(write_window(j, q));
    bert_status ran = bert_run(j->engine.session, &batch, j->taps, j->n_taps, &j->engine.run, &err);
    if (j->status) return j->status;
    if (ran) return say_failure(&err);
    TRY(study_write(j->writer, &j->engine, q, j->wanted_studies, j->layers, j->heads));
    return writer_end(j->writer);
}

/* --compare: nothing of the single texts is written. */
static int compare(job *j) {
    j->window.in = &j->input;
    TRY(study_compare(&j->window, j->out, &j->engine, j->s));
    TRY(sink_finish(&j->out));
    return window_finish(&j->window);
}

static int work(job *j) {
    const settings *s = j->s;
    TRY(read_settings(j));
    TRY(input_open(&j->input, s));
    TRY(sink_open(&j->out, s->output));
    TRY(engine_open(&j->engine, s, (s->ids ? ENGINE_MODEL : ENGINE_PIPELINE) | ENGINE_DECODERS));
    if (s->compare) return compare(j);
    if (s->view) TRY(view_check(s->view, &j->engine.info));
    TRY(engine_model_path(s, &j->known.model));
    j->known.keep = s->keep;
    j->known.min_weight = s->min_weight;
    j->known.view = s->view;
    TRY(read_memory(j));
    TRY(read_heads(j));
    TRY(read_layers(j));
    TRY(read_texts(j));
    if (j->n_sequences == 0) return EXIT_COULD_NOT;
    TRY(choose_for_page(j));
    TRY(make_taps(j));
    j->known.several = j->n_sequences > 1 && j->kind != &writer_html;
    TRY(results_facts(&j->known, &j->engine, j->kind));
    TRY(writer_open(&j->writer, j->kind, j->out, &j->known));
    for (size_t i = 0; i < j->n_sequences; i++) TRY(run_text(j, &j->sequences[i]));
    TRY(writer_finish(j->writer));
    TRY(sink_finish(&j->out));
    return j->window.failed ? EXIT_COULD_NOT : 0;
}

static int run(const settings *s) {
    job j = {.s = s};
    int status = work(&j);
    sink_abandon(&j.out);
    writer_close(&j.writer);
    bert_tokens_close(&j.tokens);
    engine_close(&j.engine);
    window_close(&j.window);
    input_close(&j.input);
    buffer_close(&j.head_list);
    buffer_close(&j.layer_list);
    buffer_close(&j.token_list);
    buffer_close(&j.name);
    free(j.sequences);
    free(j.taps);
    free(j.heads);
    free(j.layers);
    lens_close(&j.lens);
    free(j.memory);
    free(j.values);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"what", 0, OPTION_TEXT, AT(what), 0, "LIST",
     "weights (default), scores, query, key, value, context, hidden_states; word_embeddings, position_embeddings, "
     "type_embeddings; value_output, head_output (through W_O, by heads), attention_output, attention_sum (before "
     "LayerNorm), ffn_pre, ffn_post (activation), ffn_output, ffn_sum; rollout, norms, block_norms, distance, entropy "
     "(nats); logit_lens (words that each layer would say); page: weights,query,key"},
    {"top-k", 0, OPTION_COUNT, AT(top_k), 1, "K", "words a token of the logit lens; default 5"},
    {"compare", 0, OPTION_TEXT, AT(compare), 0, "FILE",
     "instead of a text: mean and spread of every head's distance and entropy over the texts of FILE (json)"},
    {"layers", 0, OPTION_TEXT, AT(layers), 0, "LIST", "0,5 or -1 or all (default)"},
    {"heads", 0, OPTION_TEXT, AT(heads), 0, "LIST", "0,3 or -1 or all (default)"},
    {"keep", 0, OPTION_COUNT, AT(keep), 1, "K", "page: only the K largest weights of each row"},
    {"min-weight", 0, OPTION_REAL, AT(min_weight), 0, "W", "page: only weights from W on"},
    {"view", 0, OPTION_TEXT, AT(view), 0, "VIEW",
     "page: how it opens: head, model, neuron or map; map,layer=3,head=5 (what stands behind # in its address)"},
    {"memory", 0, OPTION_TEXT, AT(memory), 0, "FILE.npy",
     "decoders: [Tm, H], the states that cross-attention looks at; adds cross_attentions to weights, cross_scores to "
     "scores"},
    {"ids", 0, OPTION_TEXT, AT(ids), 0, "FILE", "token ids instead of a text: npy, or a JSON list"},
    {0}};
static const option *const options[] = {own_options,    options_model,    options_tokenizer_file,
                                        options_input,  options_tokens,   options_windows, options_literal,
                                        options_output, options_progress, NULL};
const command command_attention = {
    "attention",
    "Attention maps, scores, queries, keys, values of every layer and head. Formats: json, npz, safetensors, bertviz, "
    "and html, a page that shows them and takes several texts.",
    "[--] [TEXT]",
    "bert attention -m models/all-MiniLM-L6-v2 -o page.html \"Where do I look?\"",
    options,
    run};
