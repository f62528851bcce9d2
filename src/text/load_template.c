/* text/load_template.c: the post-processor of tokenizer.json: where special tokens go. */
#include "text/loader.h"

#include <stdlib.h>

#include "base/error.h"

static bert_status add_step(bert_loader *loader, bert_declared_template *to, bert_declared_step step) {
    if (to->n == to->room) {
        const size_t room = 2 * to->room + 8;
        bert_declared_step *more = realloc(to->steps, room * sizeof *more);
        if (more == NULL) {
            free(step.token);
            return bert_fail(loader->err, BERT_NO_MEMORY, "%s: no memory for post_processor", loader->file);
        }
        to->steps = more;
        to->room = room;
    }
    to->steps[to->n++] = step;
    return BERT_OK;
}

static bert_status bad(bert_loader *loader, const char *what) {
    return bert_fail(loader->err, BERT_BAD_FILE, "%s: post_processor: %s", loader->file, what);
}

static bert_status add_special(bert_loader *loader, bert_declared_template *to, bert_json token, bert_json id,
                               int32_t type) {
    bert_declared_step step = {.type = type};
    int64_t n;
    if (!bert_json_integer(&n, id, 0, INT32_MAX - 1)) return bad(loader, "a special token's id is not an id");
    step.id = (int32_t)n;
    TRY(bert_load_string(loader, token, "post_processor: a special token", &step.token));
    return add_step(loader, to, step);
}

/* {"SpecialToken": {"id": "[CLS]", "type_id": 0}}: each token that `declared` lists for it. */
static bert_status special_piece(bert_loader *loader, bert_declared_template *to, bert_json name, int32_t type,
                                 bert_json declared) {
    bert_json entry, ids, tokens, id, token;
    char *key = NULL;
    TRY(bert_load_string(loader, name, "post_processor: a special token", &key));
    const int found = bert_json_member(declared, key, &entry);
    free(key);
    if (!found) return bad(loader, "the template names a token that special_tokens does not have");
    if (!bert_json_member(entry, "ids", &ids) || !bert_json_member(entry, "tokens", &tokens) ||
        bert_json_kind_of(ids) != BERT_JSON_ARRAY || bert_json_kind_of(tokens) != BERT_JSON_ARRAY ||
        bert_json_count(ids) != bert_json_count(tokens))
        return bad(loader, "special_tokens needs as many ids as tokens");
    for (size_t a = 0, b = 0; bert_json_next(ids, &a, NULL, &id);) {
        (void)bert_json_next(tokens, &b, NULL, &token);
        TRY(add_special(loader, to, token, id, type));
    }
    return BERT_OK;
}

static bert_status one_piece(bert_loader *loader, bert_declared_template *to, bert_json piece, bert_json declared) {
    bert_json body, id, type;
    int64_t n;
    const bool sequence = bert_json_member(piece, "Sequence", &body);
    if (!sequence && !bert_json_member(piece, "SpecialToken", &body))
        return bad(loader, "a piece that is neither Sequence nor SpecialToken");
    if (!bert_json_member(body, "id", &id) || !bert_json_member(body, "type_id", &type) ||
        !bert_json_integer(&n, type, 0, INT32_MAX))
        return bad(loader, "a piece without id and type_id");
    if (!sequence) return special_piece(loader, to, id, (int32_t)n, declared);
    if (!bert_json_equals(id, "A") && !bert_json_equals(id, "B"))
        return bad(loader, "a sequence that is neither A nor B");
    return add_step(loader, to, (bert_declared_step){NULL, -1, (int32_t)n, bert_json_equals(id, "B") != 0});
}

/* Each sequence must come exactly once: what HF makes of other templates is of no use to a model. */
static bert_status load_template(bert_loader *loader, bert_declared_template *to, bert_json pieces, bert_json declared,
                                 bool pair) {
    bert_json piece;
    size_t texts[2] = {0, 0};
    if (bert_json_kind_of(pieces) != BERT_JSON_ARRAY) return bad(loader, "a template is not a list");
    for (size_t place = 0; bert_json_next(pieces, &place, NULL, &piece);) TRY(one_piece(loader, to, piece, declared));
    for (size_t i = 0; i < to->n; i++)
        if (to->steps[i].token == NULL) texts[to->steps[i].second]++;
    if (texts[0] == 1 && texts[1] == (pair ? 1 : 0)) return BERT_OK;
    return bert_fail(loader->err, BERT_UNSUPPORTED,
                     "%s: post_processor: a template that does not have each sequence exactly once", loader->file);
}

static bert_status load_template_processing(bert_loader *loader, bert_json value) {
    bert_json single, pair, declared;
    if (!bert_json_member(value, "single", &single) || !bert_json_member(value, "pair", &pair) ||
        !bert_json_member(value, "special_tokens", &declared))
        return bad(loader, "single, pair or special_tokens is missing");
    TRY(load_template(loader, &loader->single, single, declared, false));
    return load_template(loader, &loader->pair, pair, declared, true);
}

/* BertProcessing's "cls" or "sep": ["[CLS]", 101]. */
static bert_status bert_token(bert_loader *loader, bert_json value, const char *key, bert_declared_template *to,
                              int32_t type) {
    bert_json list, token, id;
    size_t place = 0;
    if (!bert_json_member(value, key, &list) || bert_json_kind_of(list) != BERT_JSON_ARRAY ||
        bert_json_count(list) != 2)
        return bad(loader, "cls and sep are each a token and its id");
    (void)bert_json_next(list, &place, NULL, &token);
    (void)bert_json_next(list, &place, NULL, &id);
    return add_special(loader, to, token, id, type);
}

static bert_status load_bert_processing(bert_loader *loader, bert_json value) {
    bert_declared_template *single = &loader->single, *pair = &loader->pair;
    const bert_declared_step a = {NULL, -1, 0, false}, b = {NULL, -1, 1, true};
    TRY(bert_token(loader, value, "cls", single, 0));
    TRY(add_step(loader, single, a));
    TRY(bert_token(loader, value, "sep", single, 0));
    TRY(bert_token(loader, value, "cls", pair, 0));
    TRY(add_step(loader, pair, a));
    TRY(bert_token(loader, value, "sep", pair, 0));
    TRY(add_step(loader, pair, b));
    return bert_token(loader, value, "sep", pair, 1);
}

/* Without a post-processor there are only the sequences. */
static bert_status bare_templates(bert_loader *loader) {
    const bert_declared_step a = {NULL, -1, 0, false}, b = {NULL, -1, 1, true};
    TRY(add_step(loader, &loader->single, a));
    TRY(add_step(loader, &loader->pair, a));
    return add_step(loader, &loader->pair, b);
}

bert_status bert_load_processor(bert_loader *loader, bert_json value) {
    bert_json type;
    char name[64];
    if (bert_json_kind_of(value) == BERT_JSON_NULL) return bare_templates(loader);
    if (!bert_json_member(value, "type", &type)) return bad(loader, "it has no type");
    if (bert_json_equals(type, "TemplateProcessing")) return load_template_processing(loader, value);
    if (bert_json_equals(type, "BertProcessing")) return load_bert_processing(loader, value);
    const char *goes = bert_json_equals(type, "RobertaProcessing") ? " (it belongs to RoBERTa and MPNet models)" : "";
    return bert_fail(loader->err, BERT_UNSUPPORTED,
                     "%s: post_processor %s%s; TemplateProcessing and BertProcessing are supported", loader->file,
                     bert_json_quote(name, sizeof name, type), goes);
}
