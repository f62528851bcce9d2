#include "request.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

static int find_model(request *r) {
    const models *m = &r->x->of->models;
    bert_json name;
    if (m->n == 1) {
        r->model = &m->all[0];
        return 0;
    }
    if (!request_has(r, "model", &name) || bert_json_kind_of(name) != BERT_JSON_STRING)
        return exchange_fail(r->x, 422, "model: expected one of the names that /v1/models lists");
    char *text = need(name.len, 1);
    size_t n = bert_json_string(text, name);
    r->model = models_find(m, text, n);
    int status = 0;
    if (!r->model) status = exchange_fail(r->x, 404, "model: there is no %.*s here", n < 200 ? (int)n : 200, text);
    free(text);
    return status;
}

int request_open(request *r, exchange *x) {
    bert_error err;
    *r = (request){.x = x, .options = BERT_TOKENIZE_OPTIONS_INIT};
    if (bert_json_check(&r->root, x->body.data, x->body.len, &err)) return exchange_fail(x, 400, "%s", err.text);
    if (bert_json_kind_of(r->root) != BERT_JSON_OBJECT) return exchange_fail(x, 422, "expected a JSON object");
    TRY(find_model(r));
    r->options.max_length = r->model->embed.max_length;
    r->options.truncation = r->model->embed.truncation;
    r->options.truncation_side = r->model->embed.truncation_side;
    r->options.literal_specials = r->model->embed.literal_specials;
    return 0;
}

void request_close(request *r) {
    free(r->texts);
    free(r->bytes);
    free(r->query);
    free(r->ids);
    free(r->start);
}

int request_has(const request *r, const char *name, bert_json *value) {
    return bert_json_member(r->root, name, value) && bert_json_kind_of(*value) != BERT_JSON_NULL;
}

int request_bool(const request *r, const char *name, int *yes) {
    bert_json value;
    if (!request_has(r, name, &value)) return 0;
    bert_json_kind kind = bert_json_kind_of(value);
    if (kind != BERT_JSON_TRUE && kind != BERT_JSON_FALSE)
        return exchange_fail(r->x, 422, "%s: expected true or false", name);
    *yes = kind == BERT_JSON_TRUE;
    return 0;
}

static int is_string(bert_json value, const char *word) {
    size_t n = strlen(word);
    return value.len == n + 2 && value.at[0] == '"' && memcmp(value.at + 1, word, n) == 0;
}

int request_word(const request *r, const char *name, const char *usual, const char *other, int *is_other) {
    bert_json value;
    if (!request_has(r, name, &value)) return 0;
    *is_other = is_string(value, other);
    if (*is_other || is_string(value, usual)) return 0;
    return exchange_fail(r->x, 422, "%s: expected \"%s\" or \"%s\"", name, usual, other);
}

int request_truncation(request *r) {
    int truncate = 1, left = r->options.truncation_side == BERT_LEFT;
    TRY(request_bool(r, "truncate", &truncate));
    TRY(request_word(r, "truncation_direction", "Right", "Left", &left));
    if (!truncate) r->options.truncation = BERT_NO_TRUNCATION;
    r->options.truncation_side = left ? BERT_LEFT : BERT_RIGHT;
    return 0;
}

static size_t count(bert_json list) {
    size_t place = 0, n = 0;
    bert_json value;
    while (bert_json_next(list, &place, NULL, &value)) n++;
    return n;
}

static int check_count(const request *r, const char *name, size_t n) {
    if (n == 0) return exchange_fail(r->x, 422, "%s: the list is empty", name);
    if (n > r->x->of->most.texts)
        return exchange_fail(r->x, 413, "%s: at most %zu texts a request, found %zu", name, r->x->of->most.texts, n);
    return 0;
}

/* Decodes one string behind `used` bytes. */
static void add_text(request *r, bert_json string, size_t *used) {
    bert_text *t = &r->texts[r->n++];
    t->a = r->bytes + *used;
    t->a_len = bert_json_string(r->bytes + *used, string);
    *used += t->a_len;
}

static int take_strings(request *r, const char *name, bert_json list, size_t n) {
    size_t place = 0, used = 0;
    bert_json value;
    r->texts = need(n, sizeof *r->texts);
    memset(r->texts, 0, n * sizeof *r->texts);
    r->bytes = need(list.len, 1);
    while (bert_json_next(list, &place, NULL, &value)) {
        if (bert_json_kind_of(value) != BERT_JSON_STRING)
            return exchange_fail(r->x, 422, "%s: expected strings only, item %zu is none", name, r->n);
        add_text(r, value, &used);
    }
    return 0;
}

/* One list of ids as the tokens of text r->n; they stand for the whole input, special tokens included. */
static int take_ids(request *r, const char *name, bert_json list) {
    const engine *e = &r->model->engine;
    size_t place = 0, at = r->start[r->n], n = 0;
    bert_json value;
    int64_t id;
    while (bert_json_kind_of(list) == BERT_JSON_ARRAY && bert_json_next(list, &place, NULL, &value)) {
        if (!bert_json_integer(&id, value, 0, (int64_t)e->info.vocab - 1))
            return exchange_fail(r->x, 422, "%s: expected token ids from 0 to %zu, text %zu has another at place %zu",
                                 name, e->info.vocab - 1, r->n, n);
        if (n == r->model->embed.max_length)
            return exchange_fail(r->x, 413, "%s: text %zu has more than %zu token ids", name, r->n, n);
        r->ids[at + n++] = (int32_t)id;
    }
    if (n == 0) return exchange_fail(r->x, 422, "%s: text %zu is no list of token ids, or an empty one", name, r->n);
    r->start[++r->n] = at + n;
    return 0;
}

static int take_id_lists(request *r, const char *name, bert_json list, size_t n, int nested) {
    size_t place = 0;
    bert_json value;
    r->start = need(n + 1, sizeof *r->start);
    r->start[0] = 0;
    r->ids = need(list.len, sizeof *r->ids); /* an id takes two bytes of text */
    if (!nested) return take_ids(r, name, list);
    while (bert_json_next(list, &place, NULL, &value)) TRY(take_ids(r, name, value));
    return 0;
}

int request_texts(request *r, const char *name, int with_ids) {
    bert_json value, first;
    size_t place = 0, used = 0;
    if (!request_has(r, name, &value)) return exchange_fail(r->x, 422, "%s: missing", name);
    bert_json_kind kind = bert_json_kind_of(value);
    if (kind == BERT_JSON_STRING) {
        r->texts = need(1, sizeof *r->texts);
        *r->texts = (bert_text){0};
        r->bytes = need(value.len, 1);
        add_text(r, value, &used);
        return 0;
    }
    if (kind != BERT_JSON_ARRAY) return exchange_fail(r->x, 422, "%s: expected a string or a list", name);
    size_t n = count(value);
    bert_json_kind of = bert_json_next(value, &place, NULL, &first) ? bert_json_kind_of(first) : BERT_JSON_STRING;
    int is_ids = with_ids && of == BERT_JSON_NUMBER;
    TRY(check_count(r, name, is_ids ? 1 : n));
    if (is_ids || (with_ids && of == BERT_JSON_ARRAY)) return take_id_lists(r, name, value, n, !is_ids);
    return take_strings(r, name, value, n);
}

int request_pair(request *r, const char *name) {
    bert_json value;
    if (!request_has(r, name, &value)) return 0;
    if (bert_json_kind_of(value) != BERT_JSON_STRING || r->n != 1)
        return exchange_fail(r->x, 422, "%s: expected one string beside one text", name);
    size_t first = r->texts->a_len;
    r->bytes = need_more(r->bytes, first + value.len, 1);
    r->texts->a = r->bytes;
    r->texts->b = r->bytes + first;
    r->texts->b_len = bert_json_string(r->bytes + first, value);
    return 0;
}

/* The field as a C string, NULL if it is not there. Freed by the caller. */
static int take_name(const request *r, const char *name, char **text) {
    bert_json value;
    *text = NULL;
    if (!request_has(r, name, &value)) return 0;
    if (bert_json_kind_of(value) != BERT_JSON_STRING) return exchange_fail(r->x, 422, "%s: expected a string", name);
    *text = need(value.len, 1); /* the quotes leave room for the NUL */
    size_t n = bert_json_string(*text, value);
    (*text)[n] = 0;
    return strlen(*text) == n ? 0 : exchange_fail(r->x, 422, "%s: expected a name, found a NUL in it", name);
}

static void put_in_front(request *r, const char *prompt) {
    size_t n = strlen(prompt), bytes = 0;
    for (size_t i = 0; i < r->n; i++) bytes += n + r->texts[i].a_len;
    char *all = need(bytes, 1), *at = all;
    for (size_t i = 0; i < r->n; i++) {
        bert_text *t = &r->texts[i];
        memcpy(at, prompt, n);
        memcpy(at + n, t->a, t->a_len);
        t->a = at;
        t->a_len += n;
        at += t->a_len;
    }
    free(r->bytes);
    r->bytes = all;
}

/* prompt_name, or the folder's default, into *o. */
static int find_prompt(const request *r, bert_embed_options *o) {
    bert_error err;
    char *name;
    int status = take_name(r, "prompt_name", &name);
    o->prompt_name = name;
    if (!status && bert_pipeline_prompt(r->model->engine.pipeline, &o->prompt, o, &err))
        status = exchange_fail_by(r->x, &err);
    o->prompt_name = NULL; /* the prompt itself is the pipeline's */
    free(name);
    return status;
}

int request_prompt(request *r, bert_embed_options *o) {
    TRY(find_prompt(r, o));
    if (r->ids)
        o->prompt = ""; /* ids stand for the whole input */
    else if (*o->prompt)
        put_in_front(r, o->prompt);
    return 0;
}

int request_query(request *r, const char *name) {
    bert_embed_options o = r->model->embed;
    bert_json value;
    if (!request_has(r, name, &value) || bert_json_kind_of(value) != BERT_JSON_STRING)
        return exchange_fail(r->x, 422, "%s: expected a string", name);
    TRY(find_prompt(r, &o));
    size_t before = strlen(o.prompt);
    r->query = need(before + value.len, 1);
    memcpy(r->query, o.prompt, before);
    size_t n = before + bert_json_string(r->query + before, value);
    for (size_t i = 0; i < r->n; i++) {
        bert_text *t = &r->texts[i];
        *t = (bert_text){.a = r->query, .a_len = n, .b = t->a, .b_len = t->a_len};
    }
    return 0;
}

static int check_tokens(exchange *x) {
    if (x->tokens <= x->of->most.tokens) return 0;
    return exchange_fail(x, 413, "at most %zu tokens a request, found %zu", x->of->most.tokens, x->tokens);
}

int request_tokenize(request *r) {
    bert_error err;
    exchange *x = r->x;
    if (bert_tokenize(&r->model->tokens, r->model->engine.tokenizer, r->texts, r->n, &r->options, &err))
        return exchange_fail_by(x, &err);
    for (size_t i = 0; i < r->n; i++) {
        bert_encoding text = bert_tokens_at(r->model->tokens, i, 0);
        x->tokens += text.n;
        x->truncated_texts += text.truncated > 0;
        x->truncated_tokens += text.truncated;
    }
    x->tokenized_ns = now_ns();
    return check_tokens(x);
}

static int count_ids(const request *r) {
    r->x->tokens = r->start[r->n];
    return check_tokens(r->x);
}

int request_job(request *r, job **made) {
    TRY(r->ids ? count_ids(r) : request_tokenize(r));
    job *j = job_open(r->model, r->n, r->x->tokens);
    for (size_t i = 0; i < r->n; i++) {
        size_t at = j->start[i];
        bert_encoding text;
        if (r->ids)
            text = (bert_encoding){.n = r->start[i + 1] - r->start[i], .ids = r->ids + r->start[i]};
        else
            text = bert_tokens_at(r->model->tokens, i, 0);
        memcpy(j->ids + at, text.ids, text.n * sizeof *j->ids);
        if (text.type_ids)
            memcpy(j->types + at, text.type_ids, text.n * sizeof *j->types);
        else
            memset(j->types + at, 0, text.n * sizeof *j->types);
        j->start[i + 1] = at + text.n;
    }
    *made = j;
    return 0;
}
