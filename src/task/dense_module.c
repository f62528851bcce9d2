/* task/dense_module.c: sentence-transformers' Dense: a linear layer with an activation behind the pooling. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "file/safetensors.h"
#include "task/modules.h"

/* The classes of torch.nn that its config.json may name, by their last part. */
static const struct { const char *name; bert_epilogue epilogue; } ACTIVATIONS[] = {
    {"Tanh", BERT_EPILOGUE_TANH}, {"Identity", BERT_EPILOGUE_NONE}, {"ReLU", BERT_EPILOGUE_RELU},
    {"GELU", BERT_EPILOGUE_GELU_ERF}, {"SiLU", BERT_EPILOGUE_SILU},
};
enum { N_ACTIVATIONS = sizeof ACTIVATIONS / sizeof *ACTIVATIONS, MOST_FEATURES = 1 << 20 };

typedef struct source {
    const char *sub, *shown; /* the folder, and its config.json, in messages */
    const bert_safetensors *file;
    const bert_kernels *kernels;
} source;

/* Tanh where nothing is said; and where the class is not torch's own, which sentence-transformers does not run either
 * unless it is told to trust the folder. */
static bert_status read_activation(bert_module *m, bert_json root, const char *shown, const bert_model_options *options,
                                   bert_error *err) {
    bert_json value;
    char quoted[BERT_MODULE_QUOTE];
    m->activation = BERT_EPILOGUE_TANH;
    if (!bert_json_member(root, "activation_function", &value)) return BERT_OK;
    bert_modules_quote(quoted, value);
    if (bert_json_kind_of(value) != BERT_JSON_STRING || value.len < 2)
        return bert_fail(err, BERT_BAD_FILE, "%s: activation_function: expected a name, found %s", shown, quoted);
    const char *const name = value.at + 1;
    const size_t len = value.len - 2;
    if (len < 6 || memcmp(name, "torch.", 6) != 0)
        return bert_warn(options->notes, options->strict, err,
                         "%s: activation_function %s is not one of torch's: Tanh is used, as sentence-transformers "
                         "does",
                         shown, quoted);
    for (size_t i = 0; i < N_ACTIVATIONS; i++) {
        const size_t n = strlen(ACTIVATIONS[i].name);
        if (len <= n || name[len - n - 1] != '.' || memcmp(name + len - n, ACTIVATIONS[i].name, n) != 0) continue;
        m->activation = ACTIVATIONS[i].epilogue;
        return BERT_OK;
    }
    return bert_fail(err, BERT_UNSUPPORTED, "%s: activation_function %s is not known here", shown, quoted);
}

static bert_status read_features(size_t *n, bert_json root, const char *key, const char *shown, bert_error *err) {
    bert_json value;
    int64_t features;
    if (!bert_json_member(root, key, &value) || !bert_json_integer(&features, value, 1, MOST_FEATURES))
        return bert_fail(err, BERT_BAD_FILE, "%s: %s: expected 1 to %d", shown, key, MOST_FEATURES);
    *n = (size_t)features;
    return BERT_OK;
}

bert_status bert_module_place(bert_json root, const char *shown, bert_error *err) {
    static const char *const KEYS[] = {"module_input_name", "module_output_name"};
    bert_json value;
    char quoted[BERT_MODULE_QUOTE];
    for (size_t i = 0; i < 2; i++)
        if (bert_json_member(root, KEYS[i], &value) && bert_json_kind_of(value) != BERT_JSON_NULL &&
            !bert_json_equals(value, "sentence_embedding"))
            return bert_fail(err, BERT_UNSUPPORTED, "%s: %s %s: only sentence_embedding is known here", shown, KEYS[i],
                             bert_modules_quote(quoted, value));
    return BERT_OK;
}

/* W [n, k] and b [n]; `bias` NULL: it has none. */
static bert_status open_linear(bert_dense *dense, const source *s, const char *weight, const char *bias, size_t n,
                               size_t k, bert_error *err) {
    const bert_stored w = {bert_safetensors_find(s->file, weight), s->file, s->sub, 1};
    const bert_stored b = {bias ? bert_safetensors_find(s->file, bias) : NULL, s->file, s->sub, 1};
    return bert_dense_open_stored(dense, s->kernels, &w, weight, &b, bias, n, k, err);
}

static bert_status read_weights(bert_module *m, bert_json root, const source *s, bert_error *err) {
    size_t n = 0, k = 0;
    int bias = 1;
    TRY(read_features(&k, root, "in_features", s->shown, err));
    TRY(read_features(&n, root, "out_features", s->shown, err));
    TRY(bert_modules_bool(&bias, root, "bias", s->shown, err));
    TRY(bert_modules_bool(&m->residual, root, "use_residual", s->shown, err));
    TRY(open_linear(&m->linear, s, "linear.weight", bias ? "linear.bias" : NULL, n, k, err));
    return m->residual && n != k ? open_linear(&m->projection, s, "residual.weight", NULL, n, k, err) : BERT_OK;
}

bert_status bert_module_dense(bert_module *m, bert_json root, const char *dir, const char *sub,
                              const bert_kernels *kernels, const bert_model_options *options, bert_error *err) {
    char path[BERT_MODULE_PATH], shown[96];
    bert_safetensors *file = NULL;
    bert_status status;
    snprintf(shown, sizeof shown, "%.64s/config.json", sub);
    *m = (bert_module){0};
    snprintf(m->file_name, sizeof m->file_name, "%.64s/model.safetensors", sub);
    TRY(read_activation(m, root, shown, options, err));
    if (snprintf(path, sizeof path, "%s/model.safetensors", dir) >= (int)sizeof path)
        return bert_fail(err, BERT_BAD_FILE, "%s: a path of more than %d bytes", shown, BERT_MODULE_PATH);
    TRY(bert_safetensors_open(&file, path, err));
    const source s = {m->file_name, shown, file, kernels};
    status = read_weights(m, root, &s, err);
    bert_safetensors_close(&file);
    if (status != BERT_OK) bert_module_close(m);
    return status;
}

void bert_module_close(bert_module *m) {
    bert_dense_close(&m->linear);
    bert_dense_close(&m->projection);
}
