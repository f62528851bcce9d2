#include "reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_study.h"
#include "lines.h"
#include "output/npy_header.h"
#include "say.h"
#include "sites.h"

/* Splits "3.f64.hidden_states.2": *text = 3 (-1: none), *of = 64 or 32 (0: neither); returns the rest. */
static const char *split_name(const char *name, long *text, int *of) {
    char *end;
    long n = strtol(name, &end, 10);
    *text = -1;
    *of = 0;
    if (end > name && *end == '.' && n >= 0) {
        *text = n;
        name = end + 1;
    }
    if (strncmp(name, "f64.", 4) == 0) *of = 64;
    if (strncmp(name, "f32.", 4) == 0) *of = 32;
    return *of ? name + 4 : name;
}

/* 1: a name of a site or study with the number of one of its layers behind it: "norms.2". */
static int has_layer(const char *name, const char *kind, size_t layers, int *layer) {
    size_t n = strlen(kind);
    char *end;
    if (strncmp(name, kind, n) != 0 || name[n] != '.' || name[n + 1] < '0' || name[n + 1] > '9') return 0;
    unsigned long l = strtoul(name + n + 1, &end, 10);
    *layer = (int)l;
    return !*end && l < layers;
}

static int find_study(const char *name, size_t layers, int *site, int *layer) {
    for (int i = 0; i < STUDIES; i++) {
        const int by_layer = i == STUDY_NORMS || i == STUDY_BLOCK_NORMS;
        *site = REFERENCE_STUDY + i;
        if (by_layer ? has_layer(name, study_names[i], layers, layer) : strcmp(name, study_names[i]) == 0) return 1;
    }
    return 0;
}

/* What the bare name means for this model; 0: nothing that we compute. */
static int find_site(const char *name, const bert_model_info *info, int *site, int *layer) {
    static const struct {
        const char *name;
        int site;
    } single[] = {
        {"pooler_output", BERT_SITE_POOLER}, {"embedding", REFERENCE_EMBEDDING}, {"embeddings", REFERENCE_EMBEDDING}};
    *layer = 0;
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        if (strcmp(name, single[i].name) != 0) continue;
        *site = single[i].site;
        return 1;
    }
    *site = BERT_SITE_HIDDEN_STATES;
    *layer = (int)info->layers;
    if (strcmp(name, "last_hidden_state") == 0) return 1;
    *layer = 0;
    for (const site_name *s = site_names; s->what; s++) {
        *site = (int)s->site;
        if (site_comes_once(s->site) ? strcmp(name, s->tensor) == 0
                                     : has_layer(name, s->tensor, site_layers(s->site, info), layer))
            return 1;
    }
    return find_study(name, info->layers, site, layer);
}

static int is_input(const char *name) {
    static const char *const names[] = {"input_ids", "token_type_ids", "attention_mask", "encoder_hidden_states",
                                        "encoder_attention_mask"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return 1;
    return 0;
}

/* A tensor that is nothing of ours. A file can have any number of them, with names of any length. */
static void skip(reference *r, const char *name, const char *bare) {
    if (is_input(bare)) return;
    if (r->n_skipped < REFERENCE_NAMED) buffer_print(&r->skipped, r->n_skipped ? ", %.64s" : " %.64s", name);
    r->n_skipped++;
}

static target *find_target(reference *r, const char *name) {
    for (size_t i = 0; i < r->n_targets; i++)
        if (strcmp(r->targets[i].name, name) == 0) return &r->targets[i];
    return NULL;
}

static void take_tensor(reference *r, const bert_tensor_info *stored, const bert_model_info *info) {
    long text;
    int of, site, layer;
    const char *bare = split_name(stored->name, &text, &of);
    char name[sizeof r->targets->name];
    int n = text < 0 ? snprintf(name, sizeof name, "%s", bare) : snprintf(name, sizeof name, "%ld.%s", text, bare);
    if (n >= (int)sizeof name || !find_site(bare, info, &site, &layer)) {
        skip(r, stored->name, bare);
        return;
    }
    target *t = find_target(r, name);
    if (!t) {
        r->targets = need_more(r->targets, r->n_targets + 1, sizeof *r->targets);
        t = &r->targets[r->n_targets++];
        *t = (target){.text = text, .site = site, .layer = layer};
        strcpy(t->name, name);
    }
    /* Without an f64 one, what there is is the truth. */
    if (of != 32 || !t->truth) {
        if (t->truth && of == 64) t->other = t->truth;
        t->truth = stored;
    } else
        t->other = stored;
    t->rank = t->truth->rank;
    memcpy(t->dim, t->truth->shape, sizeof t->dim);
}

static int read_integers(const reference *r, const bert_tensor_info *stored, size_t first, int64_t *x, size_t n) {
    bert_error err;
    return bert_safetensors_read(r->file, stored, first * sizeof *x, x, n * sizeof *x, &err) ? say_failure(&err) : 0;
}

static const bert_tensor_info *find_integers(const reference *r, const char *prefix, const char *name,
                                             const bert_tensor_info *like) {
    buffer full = {0};
    buffer_print(&full, "%s%s", prefix, name);
    const bert_tensor_info *found = bert_safetensors_find(r->file, full.data);
    buffer_close(&full);
    /* Rows without bytes could be as many as the header likes. */
    if (!found || found->dtype != BERT_I64 || found->rank != 2 || found->shape[1] == 0) return NULL;
    return !like || (found->shape[0] == like->shape[0] && found->shape[1] == like->shape[1]) ? found : NULL;
}

static reference_input *add_input(reference *r, long text, size_t row) {
    r->inputs = need_more(r->inputs, r->n_inputs + 1, sizeof *r->inputs);
    reference_input *in = &r->inputs[r->n_inputs++];
    *in = (reference_input){.text = text, .row = row};
    return in;
}

/* How many of a mask's first n entries are on; the rest must be off. */
static int count_mask(const reference *r, const char *name, const int64_t *mask, size_t n, size_t *kept) {
    for (*kept = 0; *kept < n && mask[*kept];) (*kept)++;
    for (size_t i = *kept; i < n; i++)
        if (mask[i])
            return say_error("%s: %s has gaps or padding on the left, which is not compared", r->path, name);
    return 0;
}

static int count_memory(const reference *r, const bert_tensor_info *mask, size_t row, size_t rows, size_t *kept) {
    *kept = rows;
    if (!mask || row >= mask->shape[0] || mask->shape[1] != rows) return 0;
    int64_t *x = need(rows, sizeof *x);
    int status = read_integers(r, mask, row * rows, x, rows);
    if (!status) status = count_mask(r, "encoder_attention_mask", x, rows, kept);
    free(x);
    return status;
}

/* What a decoder looked at: row `row` of encoder_hidden_states [B, Tm, H], as far as encoder_attention_mask keeps
 * it. */
static int take_memory(const reference *r, const char *prefix, reference_input *in, size_t row) {
    buffer full = {0};
    bert_error err;
    buffer_print(&full, "%sencoder_hidden_states", prefix);
    const bert_tensor_info *states = bert_safetensors_find(r->file, full.data);
    buffer_close(&full);
    if (!states || states->rank != 3 || row >= states->shape[0]) return 0;
    const size_t rows = states->shape[1], width = states->shape[2];
    if (width != r->hidden)
        return say_error("%s: encoder_hidden_states has %zu columns, the model %zu", r->path, width, r->hidden);
    TRY(count_memory(r, find_integers(r, prefix, "encoder_attention_mask", NULL), row, rows, &in->memory_rows));
    if (in->memory_rows == 0) return 0;
    in->memory = need(in->memory_rows * width, sizeof *in->memory);
    if (bert_safetensors_read_f32(r->file, states, row * rows * width, in->memory, in->memory_rows * width, &err))
        return say_failure(&err);
    return 0;
}

/* Row `row` of input_ids [B, T]: the tokens that the mask keeps, which have to be the first ones. */
static int take_row(reference *r, const char *prefix, long text, const bert_tensor_info *ids, size_t row) {
    const bert_tensor_info *mask = find_integers(r, prefix, "attention_mask", ids);
    const bert_tensor_info *types = find_integers(r, prefix, "token_type_ids", ids);
    size_t width = ids->shape[1], n = 0;
    int64_t *x = need(3 * width, sizeof *x);
    memset(x, 0, 3 * width * sizeof *x);
    for (size_t i = 0; i < width; i++) x[width + i] = 1;
    reference_input *in = add_input(r, text, row);
    int status = read_integers(r, ids, row * width, x, width);
    if (!status && mask) status = read_integers(r, mask, row * width, x + width, width);
    if (!status && types) status = read_integers(r, types, row * width, x + 2 * width, width);
    if (!status) status = count_mask(r, "attention_mask", x + width, width, &n);
    in->ids = need(n, sizeof *in->ids);
    in->types = need(n, sizeof *in->types);
    in->n = n;
    for (size_t i = 0; i < n; i++) {
        in->ids[i] = x[i] < 0 || x[i] > INT32_MAX ? -1 : (int32_t)x[i];
        in->types[i] = x[2 * width + i] < 0 || x[2 * width + i] > INT32_MAX ? -1 : (int32_t)x[2 * width + i];
    }
    free(x);
    return status ? status : take_memory(r, prefix, in, row);
}

/* The inputs under one prefix: "" or "3."; *found = 0 if there are none. */
static int take_inputs(reference *r, const char *prefix, long text, int *found) {
    const bert_tensor_info *ids = find_integers(r, prefix, "input_ids", NULL);
    *found = 1;
    for (size_t row = 0; ids && row < ids->shape[0]; row++) TRY(take_row(r, prefix, text, ids, row));
    if (ids) return 0;
    buffer key = {0};
    buffer_print(&key, "%stext", prefix);
    const char *a = bert_safetensors_metadata(r->file, key.data);
    key.len = 0;
    buffer_print(&key, "%spair", prefix);
    const char *b = bert_safetensors_metadata(r->file, key.data);
    buffer_close(&key);
    *found = a != NULL;
    if (!a) return 0;
    reference_input *in = add_input(r, text, 0);
    in->a = need_copy(a);
    in->b = b ? need_copy(b) : NULL;
    return 0;
}

static char *copy_string(bert_json value) {
    char *text = need(value.len + 1, 1);
    text[bert_json_string(text, value)] = 0;
    return text;
}

/* Metadata `texts`: a JSON list of texts, or of lists of one or two of them. */
static int take_list(reference *r, const char *list) {
    bert_json root, item, part;
    bert_error err;
    size_t place = 0;
    if (bert_json_check(&root, list, strlen(list), &err)) return say_error("%s: metadata texts: %s", r->path, err.text);
    while (bert_json_kind_of(root) == BERT_JSON_ARRAY && bert_json_next(root, &place, NULL, &item)) {
        char *texts[2] = {NULL, NULL};
        size_t within = 0, n = 0;
        if (bert_json_kind_of(item) == BERT_JSON_STRING)
            texts[n++] = copy_string(item);
        else if (bert_json_kind_of(item) == BERT_JSON_ARRAY)
            while (n < 2 && bert_json_next(item, &within, NULL, &part) && bert_json_kind_of(part) == BERT_JSON_STRING)
                texts[n++] = copy_string(part);
        if (!n) return say_error("%s: metadata texts: expected a list of texts", r->path);
        reference_input *in = add_input(r, -1, r->n_inputs);
        in->a = texts[0];
        in->b = texts[1];
    }
    return 0;
}

static int take_all_inputs(reference *r) {
    int found;
    TRY(take_inputs(r, "", -1, &found));
    if (found) return 0;
    const char *list = bert_safetensors_metadata(r->file, "texts");
    if (list) return take_list(r, list);
    for (long n = 0; found || n == 0; n++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "%ld.", n);
        TRY(take_inputs(r, prefix, n, &found));
        if (!found) break;
    }
    return 0;
}

/* A npy file holds one tensor: vectors [N, H'] or token vectors [N, T, H]. */
static int open_npy(reference *r, lines *l) {
    npy_header h;
    const char *bytes;
    TRY(lines_peek(l, NPY_HEADER_MOST));
    const char *wrong = npy_header_read(&h, l->data + l->begin, l->end - l->begin);
    if (!wrong && (h.kind != 'f' || h.size != 4 || h.rank < 2 || h.rank > 3))
        wrong = "expected float32 of shape [N, H] or [N, T, H]";
    if (wrong) return say_error("%s: not outputs to compare with: %s", r->path, wrong);
    l->begin += h.length;
    TRY(lines_bytes(l, &bytes, h.count * sizeof(float)));
    if (!bytes) return say_error("%s: expected %zu numbers, found the end of the file before", r->path, h.count);
    r->array = need(h.count, sizeof *r->array);
    memcpy(r->array, bytes, h.count * sizeof *r->array);
    r->targets = need(1, sizeof *r->targets);
    r->n_targets = 1;
    target *t = r->targets;
    *t = (target){.text = -1, .site = h.rank == 2 ? REFERENCE_EMBEDDING : BERT_SITE_HIDDEN_STATES, .rank = h.rank};
    strcpy(t->name, h.rank == 2 ? "embedding" : "last_hidden_state");
    memcpy(t->dim, h.dim, sizeof t->dim);
    return 0;
}

/* Metadata `heads` or `layers`: the list of those of n that `bert attention` kept, ascending; *keep NULL: all. */
static int take_choice(char **keep, const reference *r, const char *name, size_t n) {
    const char *list = bert_safetensors_metadata(r->file, name);
    bert_json root, item;
    int64_t i = -1;
    size_t place = 0;
    if (!list || bert_json_check(&root, list, strlen(list), NULL) || bert_json_kind_of(root) != BERT_JSON_ARRAY)
        return 0; /* not ours */
    *keep = memset(need(n, 1), 0, n);
    while (bert_json_next(root, &place, NULL, &item)) {
        if (!bert_json_integer(&i, item, i + 1, (int64_t)n - 1))
            return say_error("%s: metadata %s: found %.100s, expected ascending numbers of the model's %zu", r->path,
                             name, list, n);
        (*keep)[i] = 1;
    }
    return 0;
}

static int open_safetensors(reference *r, const bert_model_info *info) {
    bert_error err;
    if (bert_safetensors_open(&r->file, r->path, &err)) return say_failure(&err);
    for (size_t i = 0; i < bert_safetensors_count(r->file); i++) take_tensor(r, bert_safetensors_at(r->file, i), info);
    if (!r->n_targets)
        return say_error("%s: expected outputs of a model (hidden_states.0, embedding, …), found none", r->path);
    r->prompt = bert_safetensors_metadata(r->file, "prompt");
    TRY(take_choice(&r->heads, r, "heads", info->heads));
    TRY(take_choice(&r->layers, r, "layers", info->layers));
    return take_all_inputs(r);
}

int reference_open(reference *r, const char *path, const bert_model_info *info) {
    *r = (reference){.path = path, .hidden = info->hidden};
    lines l;
    TRY(lines_open(&l, path));
    int status = lines_peek(&l, 6);
    int is_npy = !status && l.end >= 6 && memcmp(l.data, "\x93NUMPY", 6) == 0;
    if (is_npy) status = open_npy(r, &l);
    lines_close(&l);
    if (is_npy && !status) r->targets->layer = r->targets->rank == 3 ? (int)info->layers : 0;
    return status || is_npy ? status : open_safetensors(r, info);
}

int reference_read(const reference *r, const target *t, int other, size_t first, double *x, size_t n) {
    bert_error err;
    const bert_tensor_info *stored = other ? t->other : t->truth;
    if (r->array || stored->dtype != BERT_F64) {
        float *narrow = r->array ? r->array + first : need(n, sizeof *narrow);
        bert_status read = r->array ? BERT_OK : bert_safetensors_read_f32(r->file, stored, first, narrow, n, &err);
        for (size_t i = 0; i < n && !read; i++) x[i] = (double)narrow[i];
        if (!r->array) free(narrow);
        return read ? say_failure(&err) : 0;
    }
    return bert_safetensors_read(r->file, stored, first * sizeof *x, x, n * sizeof *x, &err) ? say_failure(&err) : 0;
}

target *reference_embedding(const reference *r) {
    for (size_t i = 0; i < r->n_targets; i++)
        if (r->targets[i].site == REFERENCE_EMBEDDING) return &r->targets[i];
    return NULL;
}

void reference_close(reference *r) {
    for (size_t i = 0; i < r->n_inputs; i++) {
        free(r->inputs[i].ids);
        free(r->inputs[i].types);
        free(r->inputs[i].a);
        free(r->inputs[i].b);
        free(r->inputs[i].memory);
    }
    free(r->inputs);
    free(r->targets);
    free(r->array);
    free(r->heads);
    free(r->layers);
    buffer_close(&r->skipped);
    bert_safetensors_close(&r->file);
}
