#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "file/json.h"

/* No published encoder comes near these; they keep every later product of sizes far from overflow. */
enum { MAX_VOCAB = 1 << 24, MAX_WIDTH = 1 << 16, MAX_LAYERS = 1 << 10, MAX_POSITIONS = 1 << 20, MAX_TYPES = 1 << 10 };

typedef struct reader {
    bert_json object;
    const char *name;
    bert_error *err;
} reader;

static bert_status refuse(const reader *r, bert_status code, const char *key, const char *expected, bert_json found) {
    char quoted[64];
    return bert_fail(r->err, code, "%s: %s: expected %s, found %s", r->name, key, expected,
                     bert_json_quote(quoted, sizeof quoted, found));
}

static int find(const reader *r, const char *key, bert_json *value) {
    return bert_json_member(r->object, key, value);
}

static int is_null(bert_json value) {
    return bert_json_kind_of(value) == BERT_JSON_NULL;
}

static int is_empty_object(bert_json value) {
    size_t place = 0;
    bert_json key, member;
    return bert_json_kind_of(value) == BERT_JSON_OBJECT && !bert_json_next(value, &place, &key, &member);
}

/* An integer in [low, high]; `fallback` where the key is absent, or negative if there is no safe assumption. */
static bert_status read_size(const reader *r, const char *key, size_t *size, int64_t low, int64_t high,
                             int64_t fallback) {
    bert_json value;
    int64_t n = fallback;
    if (!find(r, key, &value)) {
        if (fallback < 0) return bert_fail(r->err, BERT_BAD_FILE, "%s: %s is missing", r->name, key);
    } else if (!bert_json_integer(&n, value, low, high)) {
        char expected[64];
        snprintf(expected, sizeof expected, "an integer from %lld to %lld", (long long)low, (long long)high);
        return refuse(r, BERT_BAD_FILE, key, expected, value);
    }
    *size = (size_t)n;
    return BERT_OK;
}

static bert_status read_flag(const reader *r, const char *key, int *flag) {
    bert_json value;
    *flag = 0;
    if (!find(r, key, &value) || is_null(value)) return BERT_OK;
    return bert_json_bool(flag, value) ? BERT_OK : refuse(r, BERT_BAD_FILE, key, "true or false", value);
}

/* A string that fits `room`; where the key is absent, the fallback. */
static bert_status read_string(const reader *r, const char *key, char *text, size_t room, const char *fallback) {
    bert_json value;
    snprintf(text, room, "%s", fallback);
    if (!find(r, key, &value)) return BERT_OK;
    if (bert_json_kind_of(value) != BERT_JSON_STRING) return refuse(r, BERT_BAD_FILE, key, "a string", value);
    if (value.len > room) return refuse(r, BERT_UNSUPPORTED, key, "a name that this library knows", value);
    text[bert_json_string(text, value)] = '\0';
    return BERT_OK;
}

static bert_status read_sizes(const reader *r, bert_config *c) {
    TRY(read_size(r, "vocab_size", &c->vocab, 1, MAX_VOCAB, -1));
    TRY(read_size(r, "hidden_size", &c->hidden, 1, MAX_WIDTH, -1));
    TRY(read_size(r, "num_hidden_layers", &c->layers, 1, MAX_LAYERS, -1));
    TRY(read_size(r, "num_attention_heads", &c->heads, 1, MAX_WIDTH, -1));
    TRY(read_size(r, "intermediate_size", &c->intermediate, 1, MAX_WIDTH, -1));
    TRY(read_size(r, "max_position_embeddings", &c->positions, 1, MAX_POSITIONS, -1));
    TRY(read_size(r, "type_vocab_size", &c->types, 1, MAX_TYPES, 2));
    if (c->hidden % c->heads != 0)
        return bert_fail(r->err, BERT_BAD_FILE, "%s: hidden_size %zu is not a multiple of num_attention_heads %zu",
                         r->name, c->hidden, c->heads);
    return BERT_OK;
}

/* Rounding to float can trap in a host that has traps on. */
static bool is_positive_float(double x) {
    const uint64_t host = bert_fpenv_enter();
    const float rounded = (float)x;
    const bool is = rounded > 0 && isfinite(rounded);
    bert_fpenv_leave(host);
    return is;
}

static bert_status read_eps(const reader *r, double *eps) {
    bert_json value;
    *eps = 1e-12;
    if (!find(r, "layer_norm_eps", &value)) return BERT_OK;
    if (!bert_json_number(eps, value) || !is_positive_float(*eps))
        return refuse(r, BERT_BAD_FILE, "layer_norm_eps", "a positive number that a float can hold", value);
    return BERT_OK;
}

static bert_status read_activation(const reader *r, bert_config *c) {
    static const struct { const char *name; bert_activation activation; } KNOWN[] = {
        {"gelu", BERT_GELU_ERF},  {"gelu_new", BERT_GELU_TANH}, {"gelu_pytorch_tanh", BERT_GELU_TANH},
        {"gelu_fast", BERT_GELU_TANH}, {"relu", BERT_RELU},     {"silu", BERT_SILU},
    };
    TRY(read_string(r, "hidden_act", c->hidden_act, sizeof c->hidden_act, "gelu"));
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        if (strcmp(c->hidden_act, KNOWN[i].name) != 0) continue;
        c->activation = KNOWN[i].activation;
        return BERT_OK;
    }
    char quoted[48];
    return bert_fail(
        r->err, BERT_UNSUPPORTED,
        "%s: hidden_act: expected gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, relu or silu, found \"%s\"", r->name,
        bert_quote(quoted, sizeof quoted, c->hidden_act, strlen(c->hidden_act)));
}

static bert_status read_pad(const reader *r, bert_config *c) {
    bert_json value;
    int64_t id = 0;
    if (find(r, "pad_token_id", &value) && !is_null(value) &&
        !bert_json_integer(&id, value, 0, (int64_t)c->vocab - 1))
        return refuse(r, BERT_BAD_FILE, "pad_token_id", "an id below vocab_size", value);
    c->pad_token_id = (int32_t)id;
    return BERT_OK;
}

/* What would change the arithmetic and is not done here is refused, never ignored. */
static bert_status refuse_other_arithmetic(const reader *r, bert_config *c) {
    char positions[32];
    bert_json value;
    TRY(read_string(r, "model_type", c->model_type, sizeof c->model_type, "bert"));
    if (strcmp(c->model_type, "bert") != 0) {
        find(r, "model_type", &value);
        return refuse(r, BERT_UNSUPPORTED, "model_type", "\"bert\"", value);
    }
    if (find(r, "position_embedding_type", &value) && !is_null(value)) {
        TRY(read_string(r, "position_embedding_type", positions, sizeof positions, "absolute"));
        if (strcmp(positions, "absolute") != 0)
            return refuse(r, BERT_UNSUPPORTED, "position_embedding_type", "\"absolute\"", value);
    }
    if (find(r, "quantization_config", &value) && !is_null(value))
        return refuse(r, BERT_UNSUPPORTED, "quantization_config", "none: quantised weights are not read", value);
    if (find(r, "pruned_heads", &value) && !is_null(value) && !is_empty_object(value))
        return refuse(r, BERT_UNSUPPORTED, "pruned_heads", "none", value);
    TRY(read_flag(r, "is_decoder", &c->is_decoder));
    TRY(read_flag(r, "add_cross_attention", &c->cross_attention));
    if (c->cross_attention && !c->is_decoder)
        return bert_fail(r->err, BERT_BAD_FILE, "%s: add_cross_attention is true but is_decoder is not", r->name);
    return BERT_OK;
}

bert_status bert_config_parse(bert_config *config, const char *text, size_t len, const char *name, bert_error *err) {
    reader r = {.name = name, .err = err};
    memset(config, 0, sizeof *config);
    TRY(bert_json_check_file(&r.object, text, len, name, err));
    if (bert_json_kind_of(r.object) != BERT_JSON_OBJECT)
        return refuse(&r, BERT_BAD_FILE, "the whole file", "a JSON object", r.object);
    TRY(refuse_other_arithmetic(&r, config));
    TRY(read_sizes(&r, config));
    TRY(read_eps(&r, &config->layer_norm_eps));
    TRY(read_activation(&r, config));
    return read_pad(&r, config);
}
