/* task/modules.c: what a sentence-transformers folder says: modules.json names the modules in order, each with a
 * folder of its own; sentence_bert_config.json has the length. */
#include "task/modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "file/source.h"

enum { LIMIT = 1 << 20 };

typedef struct reader {
    const char *dir;
    size_t hidden;
    const bert_kernels *kernels;
    const bert_model_options *options;
    bert_modules *modules;
    size_t at; /* number of the module */
} reader;

bert_status bert_modules_json(const char *dir, const char *name, const char *shown, char **text, bert_json *root,
                              int *found, bert_error *err) {
    const bert_folder folder = {.dir = dir};
    size_t len;
    *text = NULL;
    *found = bert_folder_has(&folder, name);
    if (!*found) return BERT_OK;
    TRY(bert_folder_text(&folder, name, LIMIT, text, &len, err));
    return bert_json_check_file(root, *text, len, shown, err);
}

const char *bert_modules_quote(char room[BERT_MODULE_QUOTE], bert_json value) {
    const size_t quote = bert_json_kind_of(value) == BERT_JSON_STRING;
    return bert_quote(room, BERT_MODULE_QUOTE, value.at + quote, value.len - 2 * quote);
}

bert_status bert_modules_bool(int *value, bert_json root, const char *key, const char *shown, bert_error *err) {
    bert_json found;
    if (!bert_json_member(root, key, &found) || bert_json_kind_of(found) == BERT_JSON_NULL) return BERT_OK;
    if (bert_json_bool(value, found)) return BERT_OK;
    return bert_fail(err, BERT_BAD_FILE, "%s: %s: expected true or false", shown, key);
}

/* ---- modules.json. ---- */

/* "sentence_transformers.models.Pooling" and the longer paths since 5.4 end alike; a class of that name from elsewhere
 * is the folder's own code. */
static int is_module(const char *type, const char *name) {
    static const char LIBRARY[] = "sentence_transformers.";
    return strncmp(type, LIBRARY, sizeof LIBRARY - 1) == 0 && strcmp(strrchr(type, '.') + 1, name) == 0;
}

static int leads_out(const char *sub) {
    return strpbrk(sub, "/\\") != NULL || strcmp(sub, "..") == 0;
}

static bert_status join(char path[BERT_MODULE_PATH], const char *dir, const char *sub, bert_error *err) {
    if (snprintf(path, BERT_MODULE_PATH, *sub ? "%s/%s" : "%s", dir, sub) < BERT_MODULE_PATH) return BERT_OK;
    return bert_fail(err, BERT_BAD_FILE, "modules.json: a path of more than %d bytes", BERT_MODULE_PATH - 1);
}

/* What the entries are handed to: the module's class and its folder. */
typedef bert_status take_module(void *user, const char *type, const char *sub, bert_error *err);

static bert_status read_module(bert_json module, take_module *take, void *user, bert_error *err) {
    bert_json type, sub;
    char quoted[BERT_MODULE_QUOTE];
    if (!bert_json_member(module, "type", &type) || bert_json_kind_of(type) != BERT_JSON_STRING ||
        !bert_json_member(module, "path", &sub) || bert_json_kind_of(sub) != BERT_JSON_STRING)
        return bert_fail(err, BERT_BAD_FILE, "modules.json: expected modules with \"type\" and \"path\"");
    char *type_text = bert_json_dup(type), *sub_text = bert_json_dup(sub);
    bert_status status;
    if (!type_text || !sub_text)
        status = bert_fail(err, BERT_NO_MEMORY, "no memory for modules.json");
    else if (leads_out(sub_text))
        status = bert_fail(err, BERT_BAD_FILE, "modules.json: path: expected a folder of the model, found %s",
                           bert_modules_quote(quoted, sub));
    else
        status = take(user, type_text, sub_text, err);
    free(type_text);
    free(sub_text);
    return status;
}

static bert_status each_module(int *found, const char *dir, take_module *take, void *user, bert_error *err) {
    bert_json root, module;
    char *text = NULL;
    size_t place = 0;
    bert_status status;
    TRY_OR_DONE(bert_modules_json(dir, "modules.json", "modules.json", &text, &root, found, err));
    if (!*found) goto done;
    if (bert_json_kind_of(root) != BERT_JSON_ARRAY) {
        status = bert_fail(err, BERT_BAD_FILE, "modules.json: expected a list of modules");
        goto done;
    }
    while (bert_json_next(root, &place, NULL, &module)) TRY_OR_DONE(read_module(module, take, user, err));
done:
    free(text);
    return status;
}

typedef struct search {
    const char *dir;
    char *path;
} search;

static bert_status take_transformer(void *user, const char *type, const char *sub, bert_error *err) {
    const search *s = user;
    return is_module(type, "Transformer") ? join(s->path, s->dir, sub, err) : BERT_OK;
}

bert_status bert_modules_transformer(char path[BERT_MODULE_PATH], const char *dir, bert_error *err) {
    search s = {dir, path};
    int found;
    TRY(join(path, dir, "", err));
    return each_module(&found, dir, take_transformer, &s, err);
}

/* ---- What stands behind the transformer. ---- */

static bert_status add_behind(reader *r, bert_module module, bert_error *err) {
    bert_modules *m = r->modules;
    if (m->n_behind < BERT_MAX_MODULES) {
        m->behind[m->n_behind++] = module;
        return BERT_OK;
    }
    bert_module_close(&module);
    return bert_fail(err, BERT_UNSUPPORTED, "modules.json: more than %d modules", BERT_MAX_MODULES);
}

typedef enum kind { POOLING, NORMALIZE, DENSE } kind;

static bert_status parse_folder(reader *r, kind what, bert_json root, const char *dir, const char *sub,
                                const char *shown, bert_error *err) {
    bert_module module = {.normalize = 1};
    if (what == POOLING) return bert_pooling_read(r->modules, root, shown, r->hidden, err);
    TRY(bert_module_place(root, shown, err));
    if (what == DENSE) TRY(bert_module_dense(&module, root, dir, sub, r->kernels, r->options, err));
    return add_behind(r, module, err);
}

/* `sub` is the module's folder as modules.json names it. */
static bert_status read_folder(reader *r, kind what, const char *sub, bert_error *err) {
    char dir[BERT_MODULE_PATH], shown[96], *text = NULL;
    bert_json root;
    int found;
    snprintf(shown, sizeof shown, "%.64s/config.json", sub);
    TRY(join(dir, r->dir, sub, err));
    bert_status status = bert_modules_json(dir, "config.json", shown, &text, &root, &found, err);
    if (status == BERT_OK && !found && what == NORMALIZE) return add_behind(r, (bert_module){.normalize = 1}, err);
    if (status == BERT_OK && !found)
        status = bert_fail(err, BERT_NOT_FOUND, "%s: modules.json names this folder, the file is not there", shown);
    if (status == BERT_OK) status = parse_folder(r, what, root, dir, sub, shown, err);
    free(text);
    return status;
}

/* A transformer, a pooling, and then what works on the one vector, in any order. */
static bert_status take_any(void *user, const char *type, const char *sub, bert_error *err) {
    reader *r = user;
    char quoted[BERT_MODULE_QUOTE];
    const int is_first = r->at++ == 0, has_pooling = r->modules->n_poolings > 0;
    const int is_pooling = is_module(type, "Pooling");
    const int is_transformer = is_module(type, "Transformer"), normalizes = is_module(type, "Normalize");
    bert_quote(quoted, sizeof quoted, type, strlen(type));
    if (!is_transformer && !is_pooling && !normalizes && !is_module(type, "Dense") && !is_module(type, "Dropout"))
        return bert_fail(err, BERT_UNSUPPORTED, "modules.json: module %s is not known here", quoted);
    if (is_transformer != is_first || (!is_first && is_pooling == has_pooling))
        return bert_fail(err, BERT_UNSUPPORTED,
                         "modules.json: %s: expected Transformer, Pooling and then others, in this order", quoted);
    if (is_transformer || is_module(type, "Dropout")) return BERT_OK; /* dropout is for training */
    return read_folder(r, is_pooling ? POOLING : normalizes ? NORMALIZE : DENSE, sub, err);
}

bert_status bert_modules_dim(size_t *dim, const bert_modules *m, size_t n, bert_status code, bert_error *err) {
    *dim = n;
    for (size_t i = 0; i < m->n_behind; i++) {
        if (m->behind[i].normalize) continue;
        if (m->behind[i].linear.k != *dim)
            return bert_fail(err, code, "modules.json: a Dense module takes %zu values, what comes before it gives %zu",
                             m->behind[i].linear.k, *dim);
        *dim = m->behind[i].linear.n;
    }
    return BERT_OK;
}

/* ---- sentence_bert_config.json. ---- */

static bert_status parse_sentence_config(bert_modules *m, bert_json root, const char *name, bert_error *err) {
    bert_json value;
    int64_t length = 0;
    if (bert_json_member(root, "max_seq_length", &value) && bert_json_kind_of(value) != BERT_JSON_NULL &&
        !bert_json_integer(&length, value, 1, INT32_MAX))
        return bert_fail(err, BERT_BAD_FILE, "%s: max_seq_length: expected a positive integer", name);
    m->max_seq_length = (size_t)length;
    return bert_modules_bool(&m->do_lower_case, root, "do_lower_case", name, err);
}

static bert_status read_sentence_config(bert_modules *m, const char *dir, bert_error *err) {
    static const char NAME[] = "sentence_bert_config.json";
    char *text = NULL;
    bert_json root;
    int found;
    bert_status status = bert_modules_json(dir, NAME, NAME, &text, &root, &found, err);
    if (status == BERT_OK && found) status = parse_sentence_config(m, root, NAME, err);
    free(text);
    return status;
}

bert_status bert_modules_read(bert_modules *m, const char *dir, const char *transformer, size_t hidden,
                              const bert_kernels *kernels, const bert_model_options *options, bert_error *err) {
    reader r = {dir, hidden, kernels, options, m, 0};
    bert_status status;
    memset(m, 0, sizeof *m);
    TRY_OR_DONE(each_module(&m->listed, dir, take_any, &r, err));
    for (; m->n_behind > 0 && m->behind[m->n_behind - 1].normalize; m->n_behind--) m->normalize = 1;
    TRY_OR_DONE(read_sentence_config(m, transformer, err));
    TRY_OR_DONE(bert_prompts_read(m, dir, err));
done:
    if (status != BERT_OK) bert_modules_close(m);
    return status;
}

void bert_modules_close(bert_modules *m) {
    for (size_t i = 0; i < m->n_behind; i++) bert_module_close(&m->behind[i]);
    for (size_t i = 0; i < m->n_prompts; i++) {
        free(m->prompts[i].name);
        free(m->prompts[i].text);
    }
    free(m->prompts);
    memset(m, 0, sizeof *m);
}
