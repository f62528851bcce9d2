#include "model/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum scope { MODEL, LAYER };
enum kind { VECTOR, TABLE, MATRIX }; /* TABLE: looked up by row, so never packed */

/* The one table: HF's name, the array it belongs to and its place in it, and its shape in shape letters. */
typedef struct weight {
    const char *name; /* in a layer: behind encoder.layer.N. */
    enum scope scope;
    enum kind kind;
    size_t field; /* offset of a bert_param in bert_weights or bert_layer */
    int part;
    char rows, cols; /* '1': a vector */
    bool optional;
    bool cross; /* only where layers have cross-attention */
} weight;

#define ROW(name, scope, kind, type, field, part, rows, cols, optional, cross) \
    {name, scope, kind, offsetof(type, field), part, rows, cols, optional, cross}
#define ONE(name, kind, field, rows, cols) ROW(name, MODEL, kind, bert_weights, field, 0, rows, cols, false, false)
#define OPT(name, kind, field, rows, cols) ROW(name, MODEL, kind, bert_weights, field, 0, rows, cols, true, false)
#define PER(name, kind, field, part, rows, cols) \
    ROW(name, LAYER, kind, bert_layer, field, part, rows, cols, false, false)
#define CRO(name, kind, field, part, rows, cols) \
    ROW(name, LAYER, kind, bert_layer, field, part, rows, cols, false, true)
static const weight WEIGHTS[] = {
    ONE("embeddings.word_embeddings.weight", TABLE, word, 'V', 'H'),
    ONE("embeddings.position_embeddings.weight", TABLE, position, 'P', 'H'),
    ONE("embeddings.token_type_embeddings.weight", TABLE, type, 'Y', 'H'),
    ONE("embeddings.LayerNorm.weight", VECTOR, gamma, 'H', '1'),
    ONE("embeddings.LayerNorm.bias", VECTOR, beta, 'H', '1'),
    PER("attention.self.query.weight", MATRIX, qkv, 0, 'H', 'H'),
    PER("attention.self.key.weight", MATRIX, qkv, 1, 'H', 'H'),
    PER("attention.self.value.weight", MATRIX, qkv, 2, 'H', 'H'),
    PER("attention.self.query.bias", VECTOR, qkv_bias, 0, 'H', '1'),
    PER("attention.self.key.bias", VECTOR, qkv_bias, 1, 'H', '1'),
    PER("attention.self.value.bias", VECTOR, qkv_bias, 2, 'H', '1'),
    PER("attention.output.dense.weight", MATRIX, out, 0, 'H', 'H'),
    PER("attention.output.dense.bias", VECTOR, out_bias, 0, 'H', '1'),
    PER("attention.output.LayerNorm.weight", VECTOR, out_gamma, 0, 'H', '1'),
    PER("attention.output.LayerNorm.bias", VECTOR, out_beta, 0, 'H', '1'),
    CRO("crossattention.self.query.weight", MATRIX, cross_query, 0, 'H', 'H'),
    CRO("crossattention.self.query.bias", VECTOR, cross_query_bias, 0, 'H', '1'),
    CRO("crossattention.self.key.weight", MATRIX, cross_kv, 0, 'H', 'H'),
    CRO("crossattention.self.value.weight", MATRIX, cross_kv, 1, 'H', 'H'),
    CRO("crossattention.self.key.bias", VECTOR, cross_kv_bias, 0, 'H', '1'),
    CRO("crossattention.self.value.bias", VECTOR, cross_kv_bias, 1, 'H', '1'),
    CRO("crossattention.output.dense.weight", MATRIX, cross_out, 0, 'H', 'H'),
    CRO("crossattention.output.dense.bias", VECTOR, cross_out_bias, 0, 'H', '1'),
    CRO("crossattention.output.LayerNorm.weight", VECTOR, cross_gamma, 0, 'H', '1'),
    CRO("crossattention.output.LayerNorm.bias", VECTOR, cross_beta, 0, 'H', '1'),
    PER("intermediate.dense.weight", MATRIX, up, 0, 'F', 'H'),
    PER("intermediate.dense.bias", VECTOR, up_bias, 0, 'F', '1'),
    PER("output.dense.weight", MATRIX, down, 0, 'H', 'F'),
    PER("output.dense.bias", VECTOR, down_bias, 0, 'H', '1'),
    PER("output.LayerNorm.weight", VECTOR, down_gamma, 0, 'H', '1'),
    PER("output.LayerNorm.bias", VECTOR, down_beta, 0, 'H', '1'),
    OPT("pooler.dense.weight", MATRIX, pooler, 'H', 'H'),
    OPT("pooler.dense.bias", VECTOR, pooler_bias, 'H', '1'),
};
enum { N_WEIGHTS = sizeof WEIGHTS / sizeof *WEIGHTS, NAME_ROOM = 96 };

static bert_param *param_of(const weight *w, bert_weights *weights, size_t layer) {
    char *base = w->scope == MODEL ? (char *)weights : (char *)&weights->layer[layer];
    return (bert_param *)(void *)(base + w->field);
}

static void canonical_name(char name[NAME_ROOM], const weight *w, size_t layer) {
    if (w->scope == MODEL)
        snprintf(name, NAME_ROOM, "%s", w->name);
    else
        snprintf(name, NAME_ROOM, "encoder.layer.%zu.%s", layer, w->name);
}

/* ---- The walk that binding, loading and hashing share: every entry of the table, layer by layer. ---- */

typedef bert_status (*step)(void *user, const weight *w, bert_param *param, const char *name, bert_error *err);

static bert_status walk(bert_weights *weights, step visit, void *user, bert_error *err) {
    char name[NAME_ROOM];
    size_t from = 0;
    while (from < N_WEIGHTS) { /* runs of entries with one scope: before, in, and behind the layers */
        size_t to = from;
        while (to < N_WEIGHTS && WEIGHTS[to].scope == WEIGHTS[from].scope) to++;
        const size_t rounds = WEIGHTS[from].scope == MODEL ? 1 : weights->layers;
        for (size_t layer = 0; layer < rounds; layer++)
            for (size_t i = from; i < to; i++) {
                if (WEIGHTS[i].cross && !weights->cross) continue;
                canonical_name(name, &WEIGHTS[i], layer);
                TRY(visit(user, &WEIGHTS[i], param_of(&WEIGHTS[i], weights, layer), name, err));
            }
        from = to;
    }
    return BERT_OK;
}

/* ---- Binding: names and shapes. ---- */

typedef struct binder {
    bert_weights *weights;
    const bert_config *config;
    bert_checkpoint *checkpoint;
    const char *prefix; /* "bert." or "" */
    bool panels;
} binder;

static size_t letter(const bert_config *c, char shape) {
    switch (shape) {
    case 'V': return c->vocab;
    case 'P': return c->positions;
    case 'Y': return c->types;
    case 'H': return c->hidden;
    case 'F': return c->intermediate;
    default: return 1;
    }
}

static bert_stored *find_spelt(const binder *b, const char *prefix, const char *name, const char *from,
                               const char *to) {
    char spelt[NAME_ROOM + 16];
    const char *at = strstr(name, from);
    if (!at) return NULL;
    snprintf(spelt, sizeof spelt, "%s%.*s%s%s", prefix, (int)(at - name), name, to, at + strlen(from));
    return bert_checkpoint_find(b->checkpoint, spelt);
}

/* TensorFlow-era checkpoints, bert-base-uncased's own among them, say gamma and beta. */
static bert_stored *find_either(const binder *b, const char *prefix, const char *name, bert_stored **other) {
    bert_stored *plain = find_spelt(b, prefix, name, "", "");
    bert_stored *old = find_spelt(b, prefix, name, "LayerNorm.weight", "LayerNorm.gamma");
    if (!old) old = find_spelt(b, prefix, name, "LayerNorm.bias", "LayerNorm.beta");
    if (plain && old) *other = old;
    return plain ? plain : old;
}

static bert_status find_tensor(const binder *b, const char *name, bert_stored **found, bert_error *err) {
    bert_stored *twin = NULL;
    const char *other_prefix = *b->prefix ? "" : "bert.";
    *found = find_either(b, b->prefix, name, &twin);
    if (*found && !twin) twin = find_either(b, other_prefix, name, &twin);
    if (*found && twin)
        return bert_fail(err, BERT_BAD_FILE, "%s: tensors %s and %s are both there: which one is meant?",
                         twin->file_name, (*found)->info->name, twin->info->name);
    return BERT_OK;
}

static bert_status check_tensor(const bert_stored *s, size_t rows, size_t cols, bool vector, bert_error *err) {
    const bert_tensor_info *t = s->info;
    const int rank = vector ? 1 : 2;
    if (t->dtype != BERT_F32 && t->dtype != BERT_F16 && t->dtype != BERT_BF16 && t->dtype != BERT_F64)
        return bert_fail(err, BERT_UNSUPPORTED, "%s: tensor %s: expected F32, F16, BF16 or F64, found %s", s->file_name,
                         t->name, bert_dtype_name(t->dtype));
    if (t->rank == rank && t->shape[0] == rows && (vector || t->shape[1] == cols)) return BERT_OK;
    char found[BERT_TENSOR_RANK * 24], expected[64];
    int at = 0;
    for (int i = 0; i < t->rank; i++)
        at += snprintf(found + at, sizeof found - (size_t)at, i ? ", %zu" : "%zu", t->shape[i]);
    found[at] = '\0';
    snprintf(expected, sizeof expected, vector ? "%zu" : "%zu, %zu", rows, cols);
    return bert_fail(err, BERT_BAD_FILE, "%s: tensor %s: expected shape [%s] from config.json, found [%s]",
                     s->file_name, t->name, expected, found);
}

static bert_status bind_one(void *user, const weight *w, bert_param *param, const char *name, bert_error *err) {
    binder *b = user;
    bert_stored *stored;
    const size_t rows = letter(b->config, w->rows), cols = letter(b->config, w->cols);
    TRY(find_tensor(b, name, &stored, err));
    if (!stored) {
        if (w->optional) return BERT_OK;
        return bert_fail(err, BERT_BAD_FILE, "%s: tensor %s%s is missing", b->checkpoint->names[0], b->prefix, name);
    }
    TRY(check_tensor(stored, rows, cols, w->kind == VECTOR, err));
    stored->used = 1;
    param->rows += rows;
    param->cols = cols;
    param->vector = w->kind == VECTOR;
    param->panels = w->kind == MATRIX && b->panels;
    param->part[param->parts++] = stored;
    b->weights->parameters += stored->info->count;
    return BERT_OK;
}

static bert_status choose_prefix(binder *b, bert_error *err) {
    const char *name = WEIGHTS[0].name;
    for (int i = 0; i < 2; i++) {
        b->prefix = i == 0 ? "" : "bert.";
        bert_stored *unused = NULL;
        if (find_either(b, b->prefix, name, &unused)) return BERT_OK;
    }
    const bert_checkpoint *c = b->checkpoint;
    return bert_fail(err, BERT_BAD_FILE, "%s: expected tensor %s or bert.%s, found neither among %zu (the first is %s)",
                     c->names[0], name, name, c->n_tensors, c->n_tensors ? c->tensors[0].info->name : "none");
}

/* A pooler is whole or absent. */
static bert_status check_pooler(const bert_weights *w, const bert_checkpoint *c, bert_error *err) {
    if (w->pooler.parts == w->pooler_bias.parts) return BERT_OK;
    return bert_fail(err, BERT_BAD_FILE, "%s: tensor pooler.dense.%s is missing, though pooler.dense.%s is there",
                     c->names[0], w->pooler.parts ? "bias" : "weight", w->pooler.parts ? "weight" : "bias");
}

static bert_status warn_of_deeper_layers(const binder *b, const bert_model_options *options, bert_error *err) {
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "%sencoder.layer.%zu.attention.self.query.weight", b->prefix, b->config->layers);
    if (!bert_checkpoint_find(b->checkpoint, name)) return BERT_OK;
    return bert_warn(options->notes, options->strict, err,
                     "%s: holds more layers than the %zu of config.json; the others are not used",
                     b->checkpoint->names[0], b->config->layers);
}

bert_status bert_weights_bind(bert_weights *weights, const bert_config *config, bert_checkpoint *checkpoint,
                              bool panels, const bert_model_options *options, bert_error *err) {
    binder b = {weights, config, checkpoint, "", panels};
    memset(weights, 0, sizeof *weights);
    weights->layers = config->layers;
    weights->cross = config->cross_attention;
    weights->layer = calloc(config->layers, sizeof *weights->layer);
    if (!weights->layer) return bert_fail(err, BERT_NO_MEMORY, "no memory for a table of %zu layers", config->layers);
    TRY(choose_prefix(&b, err));
    TRY(walk(weights, bind_one, &b, err));
    TRY(check_pooler(weights, checkpoint, err));
    return warn_of_deeper_layers(&b, options, err);
}

/* ---- Visiting: what the hash and the finite check need. ---- */

typedef struct visitor {
    bert_weights_visit visit;
    void *user;
} visitor;

static bert_status visit_one(void *user, const weight *w, bert_param *param, const char *name, bert_error *err) {
    const visitor *v = user;
    return w->part < param->parts ? v->visit(v->user, name, param->part[w->part], err) : BERT_OK;
}

bert_status bert_weights_each(const bert_weights *weights, bert_weights_visit visit, void *user, bert_error *err) {
    visitor v = {visit, user};
    return walk((bert_weights *)weights, visit_one, &v, err); /* the walk itself changes nothing */
}

typedef struct collector {
    bert_param **params; /* NULL: only count */
    size_t n;
} collector;

static bert_status collect_one(void *user, const weight *w, bert_param *param, const char *name, bert_error *err) {
    collector *c = user;
    (void)name, (void)err;
    if (w->part != 0 || param->parts == 0) return BERT_OK;
    if (c->params) c->params[c->n] = param;
    c->n++;
    return BERT_OK;
}

size_t bert_weights_params(bert_weights *weights, bert_param **params) {
    collector c = {params, 0};
    return walk(weights, collect_one, &c, NULL) == BERT_OK ? c.n : 0;
}

const char *bert_weights_missing(const bert_weights *weights, size_t i) {
    for (size_t k = 0; k < N_WEIGHTS; k++) {
        const weight *w = &WEIGHTS[k];
        if (w->optional && param_of(w, (bert_weights *)weights, 0)->parts == 0 && i-- == 0) return w->name;
    }
    return NULL;
}

void bert_weights_close(bert_weights *weights) {
    bert_arena_close(&weights->vectors);
    bert_arena_close(&weights->matrices);
    free(weights->layer);
    memset(weights, 0, sizeof *weights);
}
