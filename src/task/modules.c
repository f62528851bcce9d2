/* task/modules.c: what a sentence-transformers folder says: modules.json names the modules in order, each with a
 * folder of its own; sentence_bert_config.json has the length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "file/json.h"
#include "file/source.h"
#include "task/pipeline.h"

enum { LIMIT = 1 << 20, PATH_ROOM = 4096 };

typedef struct reader {
    const char *dir;
    size_t hidden;
    const bert_model_options *options;
    bert_modules *modules;
} reader;

/* The file as checked JSON; *found 0 and no error if it is not there. *text is freed by the caller. */
static bert_status read_json(const char *dir, const char *name, char **text, bert_json *root, int *found,
                             bert_error *err) {
    const bert_folder folder = {.dir = dir};
    size_t len;
    *text = NULL;
    *found = bert_folder_has(&folder, name);
    if (!*found) return BERT_OK;
    TRY(bert_folder_text(&folder, name, LIMIT, text, &len, err));
    return bert_json_check_file(root, *text, len, name, err);
}

/* ---- The pooling module, in the schema before and from sentence-transformers 5.4 on. ---- */

/* In the order in which sentence-transformers puts several vectors behind one another. */
static const struct { const char *key, *mode; bert_pooling pooling; } POOLINGS[] = {
    {"pooling_mode_cls_token", "cls", BERT_POOLING_CLS},
    {"pooling_mode_max_tokens", "max", BERT_POOLING_MAX},
    {"pooling_mode_mean_tokens", "mean", BERT_POOLING_MEAN},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", BERT_POOLING_MEAN_SQRT_LEN},
    {"pooling_mode_weightedmean_tokens", "weightedmean", BERT_POOLING_WEIGHTED_MEAN},
    {"pooling_mode_lasttoken", "lasttoken", BERT_POOLING_LAST_TOKEN},
};
enum { N_POOLINGS = sizeof POOLINGS / sizeof *POOLINGS };

static bert_status add_pooling(bert_modules *m, bert_pooling pooling, bert_error *err) {
    if (m->n_poolings == BERT_MAX_POOLINGS)
        return bert_fail(err, BERT_UNSUPPORTED, "1_Pooling/config.json: more than %d pooling modes", BERT_MAX_POOLINGS);
    m->pooling[m->n_poolings++] = pooling;
    return BERT_OK;
}

static bert_status add_mode(bert_modules *m, bert_json mode, bert_error *err) {
    char quoted[64];
    for (size_t i = 0; i < N_POOLINGS; i++)
        if (bert_json_equals(mode, POOLINGS[i].mode)) return add_pooling(m, POOLINGS[i].pooling, err);
    return bert_fail(err, BERT_UNSUPPORTED, "1_Pooling/config.json: pooling_mode %s is not known",
                     bert_quote(quoted, sizeof quoted, mode.at, mode.len));
}

static bert_status read_modes(bert_modules *m, bert_json modes, bert_error *err) {
    bert_json mode;
    size_t place = 0;
    if (bert_json_kind_of(modes) != BERT_JSON_ARRAY) return add_mode(m, modes, err);
    while (bert_json_next(modes, &place, NULL, &mode)) TRY(add_mode(m, mode, err));
    return BERT_OK;
}

static bert_status read_flags(bert_modules *m, bert_json root, bert_error *err) {
    bert_json value;
    for (size_t i = 0; i < N_POOLINGS; i++) {
        int on = 0;
        if (!bert_json_member(root, POOLINGS[i].key, &value)) continue;
        if (!bert_json_bool(&on, value))
            return bert_fail(err, BERT_BAD_FILE, "1_Pooling/config.json: %s: expected true or false", POOLINGS[i].key);
        if (on) TRY(add_pooling(m, POOLINGS[i].pooling, err));
    }
    return BERT_OK;
}

static bert_status parse_pooling(const reader *r, bert_json root, bert_error *err) {
    bert_json value;
    int64_t dim;
    const char *const DIMENSION[] = {"word_embedding_dimension", "embedding_dimension"};
    for (size_t i = 0; i < 2; i++)
        if (bert_json_member(root, DIMENSION[i], &value) &&
            !bert_json_integer(&dim, value, (int64_t)r->hidden, (int64_t)r->hidden))
            return bert_fail(err, BERT_BAD_FILE, "1_Pooling/config.json: %s: expected the model's hidden size %zu",
                             DIMENSION[i], r->hidden);
    if (bert_json_member(root, "pooling_mode", &value)) TRY(read_modes(r->modules, value, err));
    else TRY(read_flags(r->modules, root, err));
    if (r->modules->n_poolings > 0) return BERT_OK;
    return bert_fail(err, BERT_BAD_FILE, "1_Pooling/config.json: no pooling mode is set");
}

/* `sub` is the module's folder as modules.json names it. */
static bert_status read_pooling(const reader *r, const char *sub, bert_error *err) {
    char dir[PATH_ROOM], *text = NULL;
    bert_json root;
    int found;
    if (snprintf(dir, sizeof dir, "%s/%s", r->dir, sub) >= (int)sizeof dir)
        return bert_fail(err, BERT_BAD_FILE, "modules.json: a path of more than %d bytes", PATH_ROOM);
    bert_status status = read_json(dir, "config.json", &text, &root, &found, err);
    if (status == BERT_OK && !found)
        status = bert_fail(err, BERT_NOT_FOUND, "%s/config.json: modules.json names this folder, the file is not there",
                           sub);
    if (status == BERT_OK) status = parse_pooling(r, root, err);
    free(text);
    return status;
}

/* ---- modules.json. ---- */

/* "sentence_transformers.models.Pooling" and the longer paths since 5.4 end alike. */
static int is_module(const char *type, const char *name) {
    const char *dot = strrchr(type, '.');
    return strcmp(dot ? dot + 1 : type, name) == 0;
}

static int leads_out(const char *sub) {
    return strpbrk(sub, "/\\") != NULL || strcmp(sub, "..") == 0;
}

static bert_status take_module(const reader *r, const char *type, const char *sub, bert_error *err) {
    char quoted[96];
    if (leads_out(sub))
        return bert_fail(err, BERT_BAD_FILE, "modules.json: path: expected a folder of the model, found %s",
                         bert_quote(quoted, sizeof quoted, sub, strlen(sub)));
    if (is_module(type, "Transformer")) return BERT_OK;
    if (is_module(type, "Pooling")) return read_pooling(r, sub, err);
    if (is_module(type, "Normalize")) {
        r->modules->normalize = 1;
        return BERT_OK;
    }
    return bert_fail(err, BERT_UNSUPPORTED, "modules.json: module %s is not known here",
                     bert_quote(quoted, sizeof quoted, type, strlen(type)));
}

static bert_status read_module(const reader *r, bert_json module, bert_error *err) {
    bert_json type, sub;
    if (!bert_json_member(module, "type", &type) || bert_json_kind_of(type) != BERT_JSON_STRING ||
        !bert_json_member(module, "path", &sub) || bert_json_kind_of(sub) != BERT_JSON_STRING)
        return bert_fail(err, BERT_BAD_FILE, "modules.json: expected modules with \"type\" and \"path\"");
    char *type_text = bert_json_dup(type), *sub_text = bert_json_dup(sub);
    const bert_status status = type_text && sub_text ? take_module(r, type_text, sub_text, err)
                                                     : bert_fail(err, BERT_NO_MEMORY, "no memory for modules.json");
    free(type_text);
    free(sub_text);
    return status;
}

static bert_status read_modules(const reader *r, bert_error *err) {
    bert_json root, module;
    char *text = NULL;
    size_t place = 0;
    int found;
    bert_status status;
    TRY_OR_DONE(read_json(r->dir, "modules.json", &text, &root, &found, err));
    if (!found) goto done;
    if (bert_json_kind_of(root) != BERT_JSON_ARRAY) {
        status = bert_fail(err, BERT_BAD_FILE, "modules.json: expected a list of modules");
        goto done;
    }
    while (bert_json_next(root, &place, NULL, &module)) TRY_OR_DONE(read_module(r, module, err));
done:
    free(text);
    return status;
}

/* ---- sentence_bert_config.json and the default prompt. ---- */

static bert_status parse_sentence_config(const reader *r, bert_json root, bert_error *err) {
    bert_json value;
    int64_t length = 0;
    if (bert_json_member(root, "max_seq_length", &value) && bert_json_kind_of(value) != BERT_JSON_NULL &&
        !bert_json_integer(&length, value, 1, INT32_MAX))
        return bert_fail(err, BERT_BAD_FILE, "sentence_bert_config.json: max_seq_length: expected a positive integer");
    r->modules->max_seq_length = (size_t)length;
    if (bert_json_member(root, "do_lower_case", &value) && bert_json_kind_of(value) != BERT_JSON_NULL &&
        !bert_json_bool(&r->modules->do_lower_case, value))
        return bert_fail(err, BERT_BAD_FILE, "sentence_bert_config.json: do_lower_case: expected true or false");
    return BERT_OK;
}

static bert_status read_sentence_config(const reader *r, bert_error *err) {
    char *text = NULL;
    bert_json root;
    int found;
    bert_status status = read_json(r->dir, "sentence_bert_config.json", &text, &root, &found, err);
    if (status == BERT_OK && found) status = parse_sentence_config(r, root, err);
    free(text);
    return status;
}

static bert_status warn_of_default_prompt(const reader *r, bert_error *err) {
    char *text = NULL, quoted[64];
    bert_json root, name;
    int found;
    bert_status status = read_json(r->dir, "config_sentence_transformers.json", &text, &root, &found, err);
    if (status == BERT_OK && found && bert_json_member(root, "default_prompt_name", &name) &&
        bert_json_kind_of(name) == BERT_JSON_STRING)
        status = bert_warn(r->options->notes, r->options->strict, err,
                           "config_sentence_transformers.json: the default prompt %s is not put in front of texts",
                           bert_quote(quoted, sizeof quoted, name.at, name.len));
    free(text);
    return status;
}

bert_status bert_modules_read(bert_modules *modules, const char *dir, size_t hidden, const bert_model_options *options,
                              bert_error *err) {
    const reader r = {dir, hidden, options, modules};
    memset(modules, 0, sizeof *modules);
    TRY(read_modules(&r, err));
    TRY(read_sentence_config(&r, err));
    return warn_of_default_prompt(&r, err);
}
