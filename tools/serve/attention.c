/* /attention: the tensors of `bert attention` for one text or pair; /page: the page that shows them, and / the page
 * that asks for texts. */
#include <stdlib.h>
#include <string.h>

#include "front.h"
#include "look.h"
#include "request.h"
#include "say.h"

enum { SMALL_PAGE = 5800000 }; /* bytes: 8 MB with base64 and the page itself, as `bert attention` has it */

/* A list of whole numbers; nothing or "all": all. */
static int take_choice(const request *r, const char *name, choice *c, size_t n) {
    bert_json value, item;
    size_t place = 0;
    int64_t wrong;
    if (!request_has(r, name, &value) || (value.len == 5 && memcmp(value.at, "\"all\"", 5) == 0)) return 0;
    if (bert_json_kind_of(value) != BERT_JSON_ARRAY)
        return exchange_fail(r->x, 422, "%s: expected a list of numbers, or \"all\"", name);
    c->at = need(value.len, sizeof *c->at);
    while (bert_json_next(value, &place, NULL, &item))
        if (!bert_json_integer(&c->at[c->n++], item, -10000, 10000))
            return exchange_fail(r->x, 422, "%s: expected whole numbers only", name);
    char *keep = need(n, 1);
    int good = choice_resolve(keep, n, c, &wrong);
    free(keep);
    if (good && c->n) return 0;
    if (!c->n) return exchange_fail(r->x, 422, "%s: the list is empty", name);
    return exchange_fail(r->x, 422, "%s: the model has 0 to %zu, found %lld", name, n - 1, (long long)wrong);
}

/* One of the names that `bert attention --what` knows, but for the logit lens. */
static int want(look *l, const char *name, size_t n) {
    for (int i = 0; i < SITE_CROSS; i++)
        if (strlen(site_names[i].what) == n && memcmp(site_names[i].what, name, n) == 0) return l->wanted[i] = 1;
    for (int i = 0; i < STUDIES; i++)
        if (strlen(study_names[i]) == n && memcmp(study_names[i], name, n) == 0) return l->studies[i] = 1;
    return 0;
}

/* Strings, or one with commas. */
static int take_what(const request *r, look *l) {
    bert_json value, item;
    size_t place = 0;
    int good = 1, names = 0;
    if (!request_has(r, "what", &value)) return !want(l, "weights", 7);
    if (bert_json_kind_of(value) == BERT_JSON_STRING) {
        for (const char *at = value.at + 1, *end = value.at + value.len - 1; at <= end && good; at++) {
            const char *comma = memchr(at, ',', (size_t)(end - at));
            size_t n = (size_t)((comma ? comma : end) - at);
            good = want(l, at, n);
            at += n;
        }
    } else {
        good = bert_json_kind_of(value) == BERT_JSON_ARRAY;
        for (; good && bert_json_next(value, &place, NULL, &item); names++)
            good = bert_json_kind_of(item) == BERT_JSON_STRING && want(l, item.at + 1, item.len - 2);
        good &= names > 0;
    }
    if (good) return 0;
    return exchange_fail(r->x, 422, "what: expected names of bert attention --what, without logit_lens, as "
                                    "[\"weights\",\"query\"]");
}

static int take_format(const request *r, look *l) {
    int safetensors = 0;
    TRY(request_word(r, "format", "json", "safetensors", &safetensors));
    l->kind = safetensors ? &writer_safetensors : &writer_json;
    return 0;
}

/* The tokenized texts as sequences; the look owns them from here on. */
static void take_texts(request *r, look *l) {
    l->n = r->n;
    l->bytes = r->bytes;
    r->bytes = NULL;
    l->tokens = r->model->tokens;
    r->model->tokens = NULL;
    l->known = r->model->known;
    l->records = need(l->n, sizeof *l->records);
    l->sequences = need(l->n, sizeof *l->sequences);
    for (size_t i = 0; i < l->n; i++) {
        bert_encoding t = bert_tokens_at(l->tokens, i, 0);
        l->records[i] = (record){.text = r->texts[i]};
        l->sequences[i] = (sequence){.from = &l->records[i], .n = t.n, .ids = t.ids, .types = t.type_ids,
                                     .truncated = t.truncated, .text = i};
    }
}

static int check_size(const request *r, const look *l) {
    size_t bytes = look_bytes(l, &r->model->engine), most = r->x->of->most.answer;
    if (bytes <= most) return 0;
    return exchange_fail(r->x, 413,
                         "the answer would have about %zu MB, at most %zu are allowed: ask for fewer layers, heads or "
                         "texts%s", bytes >> 20, most >> 20, l->kind == &writer_json ? ", or for safetensors" : "");
}

static look *open_look(job **j, request *r) {
    look *l = need(1, sizeof *l);
    *l = (look){0};
    *j = job_open(r->model, 1, 1);
    (*j)->start[1] = 1;
    (*j)->look = l;
    return l;
}

/* How many layers there are to choose from: hidden states have one more, where they are all that is wanted. */
static size_t layers_of(const look *l, const bert_model_info *info) {
    size_t least = info->layers + 1;
    for (int i = 0; i < SITES; i++)
        if (l->wanted[i] && !site_comes_once(site_names[i].site) && site_layers(site_names[i].site, info) < least)
            least = info->layers;
    for (int i = 0; i < STUDIES; i++)
        if (l->studies[i]) least = info->layers;
    return least;
}

static int check_choices(const request *r, const look *l) {
    if (l->layers.at && !study_chooses_layers(l->wanted, l->studies))
        return exchange_fail(r->x, 422, "layers: nothing of what is asked for is of single layers");
    if (l->heads.at && !study_chooses_heads(l->wanted, l->studies))
        return exchange_fail(r->x, 422, "heads: nothing of what is asked for is of single heads");
    return 0;
}

static int read_attention(request *r, look *l) {
    const bert_model_info *info = &r->model->engine.info;
    bert_json value;
    TRY(take_format(r, l));
    TRY(take_what(r, l));
    TRY(request_texts(r, request_has(r, "text", &value) ? "text" : "inputs", 0));
    TRY(request_pair(r, "pair"));
    TRY(take_choice(r, "layers", &l->layers, layers_of(l, info)));
    TRY(take_choice(r, "heads", &l->heads, info->heads));
    TRY(check_choices(r, l));
    TRY(request_truncation(r));
    if (r->n != 1) return exchange_fail(r->x, 422, "expected one text (or a text and a pair), found %zu", r->n);
    TRY(request_tokenize(r));
    take_texts(r, l);
    return check_size(r, l);
}

/* Weights, and queries and keys while that leaves the page small. */
static int read_page(request *r, look *l) {
    l->kind = &writer_html;
    l->wanted[0] = l->wanted[2] = l->wanted[3] = 1;
    TRY(request_texts(r, "text", 0));
    TRY(request_pair(r, "pair"));
    TRY(request_tokenize(r));
    take_texts(r, l);
    l->wanted[2] = l->wanted[3] = look_bytes(l, &r->model->engine) <= SMALL_PAGE;
    return check_size(r, l);
}

static void begin(exchange *x, int (*read)(request *r, look *l)) {
    request r = {0};
    job *j = NULL;
    if (!request_open(&r, x) && !read(&r, open_look(&j, &r))) {
        j->start[1] = x->tokens; /* for the counts; the look has the ids */
        exchange_queue(x, j);
        j = NULL;
    }
    job_close(&j);
    request_close(&r);
}

void attention_begin(exchange *x) {
    begin(x, read_attention);
}

void page_begin(exchange *x) {
    begin(x, read_page);
}

void attention_done(exchange *x) {
    look *l = x->job->look;
    if (x->job->failure.code) {
        exchange_fail_by(x, &x->job->failure);
        return;
    }
    buffer_close(&x->answer);
    x->answer = l->answer;
    l->answer = (buffer){0};
    exchange_answer(x, l->kind == &writer_html          ? "text/html; charset=utf-8"
                       : l->kind == &writer_safetensors ? "application/octet-stream"
                                                        : "application/json");
}

void page_front(exchange *x) {
    buffer_add(&x->answer, front_page, front_page_size);
    exchange_answer(x, "text/html; charset=utf-8");
}
