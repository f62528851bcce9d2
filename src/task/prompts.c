/* task/prompts.c: config_sentence_transformers.json: texts that a model wants in front of each text, by name. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "base/utf8.h"
#include "task/modules.h"

#define FILE_NAME "config_sentence_transformers.json"

/* NULL: there is none of this name. */
static const bert_prompt *find(const bert_modules *m, const char *name) {
    for (size_t i = 0; i < m->n_prompts; i++)
        if (strcmp(m->prompts[i].name, name) == 0) return &m->prompts[i];
    return NULL;
}

/* Names that sentence-transformers gives every model, with an empty prompt. */
static int is_usual(const char *name) { return strcmp(name, "query") == 0 || strcmp(name, "document") == 0; }

bert_status bert_prompts_find(const char **text, const bert_modules *m, const char *name, bert_error *err) {
    const bert_prompt *found = find(m, name);
    char list[256] = "", quoted[64];
    *text = found ? found->text : "";
    if (found || is_usual(name)) return BERT_OK;
    for (size_t i = 0; i < m->n_prompts; i++) {
        if (i) strncat(list, ", ", sizeof list - strlen(list) - 1);
        strncat(list, m->prompts[i].name, sizeof list - strlen(list) - 1);
    }
    return bert_fail(err, BERT_INVALID_ARGUMENT, "no prompt %s: " FILE_NAME " has %s",
                     bert_quote(quoted, sizeof quoted, name, strlen(name)), m->n_prompts ? list : "none");
}

static bert_status add(bert_modules *m, const bert_json *key, bert_json value, bert_error *err) {
    bert_prompt *p = &m->prompts[m->n_prompts];
    if (bert_json_kind_of(value) == BERT_JSON_NULL) return BERT_OK;
    if (bert_json_kind_of(value) != BERT_JSON_STRING)
        return bert_fail(err, BERT_BAD_FILE, FILE_NAME ": prompts: expected texts by name");
    m->n_prompts++;
    p->name = bert_json_dup(*key);
    p->text = bert_json_dup(value);
    return p->name && p->text ? BERT_OK : bert_fail(err, BERT_NO_MEMORY, "no memory for " FILE_NAME);
}

static bert_status read_prompts(bert_modules *m, bert_json prompts, bert_error *err) {
    bert_json key, value;
    size_t place = 0;
    if (bert_json_kind_of(prompts) != BERT_JSON_OBJECT)
        return bert_fail(err, BERT_BAD_FILE, FILE_NAME ": prompts: expected texts by name");
    m->n_prompts = 0;
    m->prompts = calloc(bert_json_count(prompts) + 1, sizeof *m->prompts);
    if (!m->prompts) return bert_fail(err, BERT_NO_MEMORY, "no memory for " FILE_NAME);
    while (bert_json_next(prompts, &place, &key, &value)) TRY(add(m, &key, value, err));
    return BERT_OK;
}

static bert_status read_default(bert_modules *m, bert_json value, bert_error *err) {
    char quoted[BERT_MODULE_QUOTE];
    if (bert_json_kind_of(value) == BERT_JSON_NULL) return BERT_OK;
    char *name = bert_json_dup(value);
    m->default_prompt = name ? find(m, name) : NULL;
    const int known = m->default_prompt || (name && is_usual(name));
    free(name);
    if (known) return BERT_OK;
    return bert_fail(err, BERT_BAD_FILE, FILE_NAME ": default_prompt_name: expected the name of a prompt, found %s",
                     bert_modules_quote(quoted, value));
}

bert_status bert_prompts_read(bert_modules *m, const char *dir, bert_error *err) {
    bert_json root, value;
    char *text = NULL;
    int found;
    bert_status status = bert_modules_json(dir, FILE_NAME, FILE_NAME, &text, &root, &found, err);
    if (status != BERT_OK || !found) goto done;
    if (bert_json_member(root, "prompts", &value) && bert_json_kind_of(value) != BERT_JSON_NULL)
        TRY_OR_DONE(read_prompts(m, value, err));
    if (bert_json_member(root, "default_prompt_name", &value)) TRY_OR_DONE(read_default(m, value, err));
done:
    free(text);
    return status;
}

bert_status bert_prompts_put(bert_text **put, const char *prompt, const bert_text *texts, size_t n, bert_error *err) {
    const size_t len = strlen(prompt);
    size_t bytes = 0;
    bool fits = bert_size_mul(&bytes, n, sizeof **put + len) && bert_size_add(&bytes, bytes, 1);
    free(*put);
    *put = NULL;
    if (len == 0) return BERT_OK;
    for (size_t i = 0; i < n; i++) fits = fits && bert_size_add(&bytes, bytes, texts[i].a_len);
    bert_text *all = fits ? malloc(bytes) : NULL;
    if (!all) return bert_fail(err, BERT_NO_MEMORY, "no memory for %zu texts with their prompt", n);
    char *at = (char *)(all + n);
    for (size_t i = 0; i < n; i++) {
        all[i] = texts[i];
        if (texts[i].a_len > 0 && !texts[i].a) continue; /* the tokenizer says that this is no text */
        all[i].a = at;
        all[i].a_len += len;
        memcpy(at, prompt, len);
        if (texts[i].a_len > 0) memcpy(at + len, texts[i].a, texts[i].a_len);
        at += all[i].a_len;
    }
    *put = all;
    return BERT_OK;
}

size_t bert_prompts_first_invalid(const bert_text *text, size_t found) {
    const size_t valid = bert_utf8_valid((const uint8_t *)text->a, text->a_len);
    return valid < text->a_len ? valid : found; /* in b, which has no prompt */
}
