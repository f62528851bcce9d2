#include "encoder/taps.h"

#include <string.h>

#include "base/error.h"
#include "base/size.h"

enum shape { ROWS /* [T, H] */, WIDE /* [T, F] */, HEADS /* [A, T, D] */, RESULTS /* [A, T, H] */, MAPS /* [A, T, T] */,
             CROSS_MAPS /* [A, T, Tm] */, VECTOR /* [H] */ };
enum times { ONCE, EACH /* layer */, STATES /* L + 1: hidden states count the embeddings */ };

/* What the sites are like. `rest`: the last layer has to be run to its end. */
static const struct site {
    const char *name;
    enum shape shape;
    enum times times;
    bool rest;
} SITES[] = {
    [BERT_SITE_HIDDEN_STATES] = {"hidden_states", ROWS, STATES, true},
    [BERT_SITE_QUERY] = {"query", HEADS, EACH, false},
    [BERT_SITE_KEY] = {"key", HEADS, EACH, false},
    [BERT_SITE_VALUE] = {"value", HEADS, EACH, false},
    [BERT_SITE_SCORES] = {"scores", MAPS, EACH, false},
    [BERT_SITE_WEIGHTS] = {"weights", MAPS, EACH, false},
    [BERT_SITE_CONTEXT] = {"context", HEADS, EACH, false},
    [BERT_SITE_POOLER] = {"pooler", VECTOR, ONCE, true},
    [BERT_SITE_WORD] = {"word", ROWS, ONCE, false},
    [BERT_SITE_POSITION] = {"position", ROWS, ONCE, false},
    [BERT_SITE_TYPE] = {"type", ROWS, ONCE, false},
    [BERT_SITE_VALUE_OUTPUT] = {"value_output", RESULTS, EACH, false},
    [BERT_SITE_HEAD_OUTPUT] = {"head_output", RESULTS, EACH, true},
    [BERT_SITE_ATTENTION_OUTPUT] = {"attention_output", ROWS, EACH, true},
    [BERT_SITE_ATTENTION_SUM] = {"attention_sum", ROWS, EACH, true},
    [BERT_SITE_FFN_PRE] = {"ffn_pre", WIDE, EACH, true},
    [BERT_SITE_FFN_POST] = {"ffn_post", WIDE, EACH, true},
    [BERT_SITE_FFN_OUTPUT] = {"ffn_output", ROWS, EACH, true},
    [BERT_SITE_FFN_SUM] = {"ffn_sum", ROWS, EACH, true},
    [BERT_SITE_CROSS_SCORES] = {"cross_scores", CROSS_MAPS, EACH, true},
    [BERT_SITE_CROSS_WEIGHTS] = {"cross_weights", CROSS_MAPS, EACH, true},
};
enum { N_SITES = sizeof SITES / sizeof *SITES };

/* What the sizes of a pass's results come from. */
typedef struct extent {
    const bert_config *config;
    const bert_batch *batch;
    const size_t *memory_start; /* [n+1]; NULL: no memory */
} extent;

static extent extent_of(const bert_pass *pass) {
    return (extent){pass->session->config, pass->batch, pass->options.memory ? pass->options.memory_start : NULL};
}

static bool is_map(int32_t site) { return SITES[site].shape == MAPS || SITES[site].shape == CROSS_MAPS; }

static bool has_heads(int32_t site) {
    return SITES[site].shape == HEADS || SITES[site].shape == RESULTS || is_map(site);
}

static bool comes_once(int32_t site) { return SITES[site].times == ONCE; }

static size_t site_layers(const bert_config *c, int32_t site) {
    return comes_once(site) ? 1 : SITES[site].times == STATES ? c->layers + 1 : c->layers;
}

static bool tap_wants(const bert_tap *tap, bert_site site, size_t layer) {
    return tap->site == (int32_t)site && (tap->layer < 0 || comes_once(tap->site) || (size_t)tap->layer == layer);
}

static size_t tokens_of(const extent *e, size_t text) { return e->batch->start[text + 1] - e->batch->start[text]; }

/* Values of a token: a row of the site's array. */
static size_t row_floats(const extent *e, int32_t site, size_t text) {
    switch (SITES[site].shape) {
    case WIDE: return e->config->intermediate;
    case HEADS: return e->config->hidden / e->config->heads;
    case MAPS: return tokens_of(e, text);
    case CROSS_MAPS: return e->memory_start ? e->memory_start[text + 1] - e->memory_start[text] : 0;
    default: return e->config->hidden;
    }
}

/* Floats of one head of one text, or of the whole text where the site has no heads. */
static size_t unit_floats(const extent *e, int32_t site, size_t text) {
    return row_floats(e, site, text) * (SITES[site].shape == VECTOR ? 1 : tokens_of(e, text));
}

static size_t units(const bert_config *c, const bert_tap *tap) {
    return has_heads(tap->site) && tap->head < 0 ? c->heads : 1;
}

/* -1 is all n of them. */
static bool is_index(int32_t i, size_t n) {
    return i == -1 || (i >= 0 && (size_t)i < n);
}

static bool tap_fits(const bert_config *c, const bert_tap *tap) {
    return tap->site >= 0 && tap->site < N_SITES &&
           (comes_once(tap->site) || is_index(tap->layer, site_layers(c, tap->site))) &&
           (!has_heads(tap->site) || is_index(tap->head, c->heads));
}

/* Floats of all that the tap is given; false if they are more than a size can count. */
static bool tap_floats(size_t *floats, const extent *e, const bert_tap *tap) {
    const size_t layers = tap->layer < 0 ? site_layers(e->config, tap->site) : 1;
    size_t sum = 0, unit;
    for (size_t i = 0; i < e->batch->n; i++) {
        const size_t rows = SITES[tap->site].shape == VECTOR ? 1 : tokens_of(e, i);
        if (!bert_size_mul(&unit, rows, row_floats(e, tap->site, i)) || !bert_size_add(&sum, sum, unit)) return false;
    }
    return bert_size_mul(floats, sum, units(e->config, tap)) && bert_size_mul(floats, *floats, layers);
}

size_t bert_run_tap_size(const bert_model *model, const bert_batch *batch, const bert_tap *tap,
                         const bert_run_options *given) {
    const bert_run_options options = bert_run_options_or_default(given);
    const extent e = {bert_model_config(model), batch, options.memory ? options.memory_start : NULL};
    if (!tap_fits(e.config, tap) || (tap->site == BERT_SITE_POOLER && !bert_model_has_pooler(model)) ||
        (SITES[tap->site].shape == CROSS_MAPS && !e.config->cross_attention))
        return 0;
    size_t floats;
    return tap_floats(&floats, &e, tap) ? floats : 0;
}

size_t bert_tap_size(const bert_model *model, const bert_batch *batch, const bert_tap *tap) {
    return bert_run_tap_size(model, batch, tap, NULL);
}

/* ---- Planning. ---- */

/* A pass that starts in the middle never comes to it. A tap of all layers gets those from there on. */
static bool comes_before(const bert_pass *pass, const bert_tap *tap) {
    if (!pass->options.hidden || tap->site == BERT_SITE_POOLER) return false;
    return comes_once(tap->site) || (tap->layer >= 0 && tap->layer < pass->options.first_layer);
}

static bert_status check_tap(const bert_pass *pass, const bert_tap *tap, size_t number, bert_error *err) {
    const extent e = extent_of(pass);
    const bert_config *c = e.config;
    if (tap->size < sizeof *tap) return bert_fail(err, BERT_INVALID_ARGUMENT, "tap %zu: size is not set", number);
    if (!tap_fits(c, tap))
        return bert_fail(err, BERT_INVALID_ARGUMENT, "tap %zu: no site %d, layer %d, head %d in a model of %zu × %zu",
                         number, (int)tap->site, (int)tap->layer, (int)tap->head, c->layers, c->heads);
    if (comes_before(pass, tap))
        return bert_fail(err, BERT_INVALID_ARGUMENT, "tap %zu: %s of layer %d: the pass starts behind it, at layer %d",
                         number, SITES[tap->site].name, (int)tap->layer, (int)pass->options.first_layer);
    if (!tap->dst && !tap->got)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "tap %zu: neither dst nor got is given", number);
    if (tap->site == BERT_SITE_POOLER && !bert_model_has_pooler(pass->session->model))
        return bert_fail(err, BERT_NOT_FOUND,
                         "pooler_output: the model has no pooler (pooler.dense.weight is not in its files)");
    if (tap->edit && tap->site == BERT_SITE_VALUE_OUTPUT)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "tap %zu: %s takes no edits: edit value or head_output", number,
                         SITES[tap->site].name);
    if (SITES[tap->site].shape == CROSS_MAPS && !e.memory_start)
        return bert_fail(err, BERT_NOT_FOUND, "tap %zu: %s: the pass was given no memory to attend to", number,
                         SITES[tap->site].name);
    size_t needed = 0;
    if (tap->dst && !tap_floats(&needed, &e, tap))
        return bert_fail(err, BERT_INVALID_ARGUMENT, "tap %zu: %s of this batch does not fit the address space", number,
                         SITES[tap->site].name);
    if (tap->dst && tap->dst_len < needed)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "tap %zu: dst has room for %zu floats, %s needs %zu", number,
                         tap->dst_len, SITES[tap->site].name, needed);
    return BERT_OK;
}

/* The first layer that this tap does not need. */
static size_t layers_for(const bert_config *c, const bert_tap *tap) {
    const size_t last = tap->layer < 0 ? site_layers(c, tap->site) - 1 : (size_t)tap->layer;
    if (comes_once(tap->site)) return tap->site == BERT_SITE_POOLER ? c->layers : 0;
    return SITES[tap->site].times == STATES ? last : last + 1;
}

/* What has to be run for this tap. */
static void plan_tap(bert_pass *pass, const bert_tap *tap) {
    const size_t layers = layers_for(pass->session->config, tap), by_head = tap->edit ? 2 : 1;
    const bool rest = SITES[tap->site].rest;
    if (tap->site == BERT_SITE_POOLER) pass->need_pooler = true;
    if (is_map(tap->site) && tap->got) pass->look_at_maps = true;
    if (is_map(tap->site) && tap->dst) pass->keep_maps = true;
    if (SITES[tap->site].shape == RESULTS && by_head > pass->by_head) pass->by_head = by_head;
    if (layers > pass->layers) pass->need_last_ffn = rest;
    else if (layers == pass->layers) pass->need_last_ffn |= rest;
    if (layers > pass->layers) pass->layers = layers;
}

bert_status bert_taps_plan(bert_pass *pass, bert_error *err) {
    for (size_t i = 0; i < pass->n_taps; i++) {
        TRY(check_tap(pass, &pass->taps[i], i, err));
        plan_tap(pass, &pass->taps[i]);
    }
    return BERT_OK;
}

/* ---- Handing out. ---- */

void bert_taps_place(bert_pass *pass) {
    const extent e = extent_of(pass);
    size_t *own = pass->b.map_start, *cross = pass->b.cross_start;
    if (!pass->keep_maps) return;
    own[0] = cross[0] = 0;
    for (size_t i = 0; i < pass->batch->n; i++) {
        own[i + 1] = own[i] + unit_floats(&e, BERT_SITE_WEIGHTS, i);
        cross[i + 1] = cross[i] + unit_floats(&e, BERT_SITE_CROSS_WEIGHTS, i);
    }
}

/* Floats of one head of texts [0, text) in one layer. */
static size_t floats_before(const bert_pass *pass, int32_t site, size_t text) {
    const extent e = extent_of(pass);
    switch (SITES[site].shape) {
    case MAPS: return pass->b.map_start[text];
    case CROSS_MAPS: return pass->b.cross_start[text];
    case VECTOR: return text * row_floats(&e, site, 0);
    default: return pass->batch->start[text] * row_floats(&e, site, 0);
    }
}

/* Where the tap's dst has this text of this layer. */
static float *place_of(const bert_pass *pass, const bert_tap *tap, size_t layer, size_t text) {
    const size_t each = units(pass->session->config, tap), before = tap->layer < 0 ? layer : 0;
    return tap->dst + each * (before * floats_before(pass, tap->site, pass->batch->n) +
                              floats_before(pass, tap->site, text));
}

static void copy_view(float *dst, const bert_view *v) {
    const size_t rows = v->rank > 1 ? v->dim[v->rank - 2] : 1, cols = v->dim[v->rank - 1];
    const size_t step = v->rank > 1 ? v->step[v->rank - 2] : 0, planes = v->rank > 2 ? v->dim[0] : 1;
    for (size_t p = 0; p < planes; p++)
        for (size_t r = 0; r < rows; r++, dst += cols)
            memcpy(dst, v->data + p * (v->rank > 2 ? v->step[0] : 0) + r * step, cols * sizeof *dst);
}

/* A tap that named one head sees only that one. */
static bert_view narrowed(const bert_view *whole, const bert_tap *tap) {
    bert_view v = *whole;
    if (has_heads(tap->site) && tap->head >= 0) {
        v.data += (size_t)tap->head * v.step[0];
        v.dim[0] = 1;
    }
    return v;
}

static bert_status hand_out(const bert_pass *pass, bert_site site, size_t layer, const bert_view *whole,
                            bert_error *err) {
    for (size_t i = 0; i < pass->n_taps; i++) {
        const bert_tap *tap = &pass->taps[i];
        if (!tap_wants(tap, site, layer)) continue;
        const bert_view v = narrowed(whole, tap);
        if (tap->got && tap->got(tap->user, &v) != 0)
            return bert_fail(err, BERT_STOPPED, "stopped by the caller in layer %zu at %s", layer, SITES[site].name);
        if (tap->dst) copy_view(place_of(pass, tap, layer, (size_t)v.text), &v);
    }
    return BERT_OK;
}

bool bert_taps_wanted(const bert_pass *pass, bert_site site, size_t layer) {
    for (size_t i = 0; i < pass->n_taps; i++)
        if (tap_wants(&pass->taps[i], site, layer)) return true;
    return false;
}

bert_status bert_taps_emit(bert_pass *pass, bert_site site, size_t layer, float *data, size_t row, bert_error *err) {
    const extent e = extent_of(pass);
    if (!bert_taps_wanted(pass, site, layer)) return BERT_OK;
    for (size_t i = 0; i < pass->batch->n; i++) {
        const size_t first = pass->batch->start[i], t = tokens_of(&e, i), cols = row_floats(&e, (int32_t)site, i);
        bert_view v = {.site = (int32_t)site, .layer = (int32_t)layer, .text = (int32_t)i, .data = data + first * row};
        if (SITES[site].shape == VECTOR)
            v = (bert_view){v.site, v.layer, v.text, 1, {cols}, {1}, data + i * row};
        else if (has_heads(v.site))
            v = (bert_view){v.site, v.layer, v.text, 3, {e.config->heads, t, cols}, {cols, row, 1}, v.data};
        else
            v = (bert_view){v.site, v.layer, v.text, 2, {t, cols}, {row, 1}, v.data};
        TRY(hand_out(pass, site, layer, &v, err));
    }
    return BERT_OK;
}

bert_status bert_taps_emit_text(bert_pass *pass, bert_site site, size_t layer, size_t text, float *data,
                                bert_error *err) {
    const extent e = extent_of(pass);
    const size_t t = tokens_of(&e, text), cols = row_floats(&e, (int32_t)site, text);
    const bert_view v = {(int32_t)site, (int32_t)layer, (int32_t)text, 3,
                         {e.config->heads, t, cols}, {t * cols, cols, 1}, data};
    return hand_out(pass, site, layer, &v, err);
}

static float *map_place(const bert_pass *pass, const bert_tap *tap, size_t layer, size_t text, size_t head) {
    const extent e = extent_of(pass);
    return place_of(pass, tap, layer, text) + (tap->head < 0 ? head * unit_floats(&e, tap->site, text) : 0);
}

static bool keeps_map(const bert_tap *tap, bert_site site, size_t layer, size_t head) {
    return tap->dst && tap_wants(tap, site, layer) && (tap->head < 0 || (size_t)tap->head == head);
}

float *bert_taps_map(const bert_pass *pass, bert_site site, size_t layer, size_t text, size_t head) {
    for (size_t i = 0; i < pass->n_taps; i++)
        if (keeps_map(&pass->taps[i], site, layer, head)) return map_place(pass, &pass->taps[i], layer, text, head);
    return NULL;
}

void bert_taps_share_map(const bert_pass *pass, bert_site site, size_t layer, size_t text, size_t head,
                         const float *map) {
    const extent e = extent_of(pass);
    for (size_t i = 0; map && i < pass->n_taps; i++) {
        if (!keeps_map(&pass->taps[i], site, layer, head)) continue;
        float *place = map_place(pass, &pass->taps[i], layer, text, head);
        if (place != map) memcpy(place, map, unit_floats(&e, (int32_t)site, text) * sizeof *map);
    }
}
