/* task/head_config.c: config.json about heads: names of classes, what scores are made of, whose classifier it is. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "file/json.h"
#include "task/head.h"

static int is_there(bert_json object, const char *key, bert_json *value) {
    return bert_json_member(object, key, value) && bert_json_kind_of(*value) != BERT_JSON_NULL;
}

static bert_status refuse(const char *key, const char *expected, bert_json found, bert_error *err) {
    char quoted[64];
    return bert_fail(err, BERT_BAD_FILE, "config.json: %s: expected %s, found %s", key, expected,
                     bert_json_quote(quoted, sizeof quoted, found));
}

/* ---- Names of classes. ---- */

/* A key of id2label, "12", as a place below n; n if it is none. */
static size_t place_of(bert_json key, size_t n) {
    char digits[16];
    if (key.len > sizeof digits) return n;
    const size_t len = bert_json_string(digits, key);
    size_t place = 0;
    for (size_t i = 0; i < len && place < n; i++) {
        if (digits[i] < '0' || digits[i] > '9') return n;
        place = place * 10 + (size_t)(digits[i] - '0');
    }
    return len == 0 || place > n ? n : place;
}

static bert_status take_label(bert_labels *labels, bert_json key, bert_json value, bert_error *err) {
    char expected[64];
    const size_t place = place_of(key, labels->n);
    snprintf(expected, sizeof expected, "keys 0 to %zu, one for each row of classifier.weight", labels->n - 1);
    if (place == labels->n || labels->name[place]) return refuse("id2label", expected, key, err);
    if (bert_json_kind_of(value) != BERT_JSON_STRING) return refuse("id2label", "names of classes", value, err);
    labels->name[place] = bert_json_dup(value);
    return labels->name[place] ? BERT_OK : bert_fail(err, BERT_NO_MEMORY, "no memory for the names of classes");
}

static bert_status take_labels(bert_labels *labels, bert_json map, bert_error *err) {
    bert_json key, value;
    size_t place = 0;
    if (bert_json_kind_of(map) != BERT_JSON_OBJECT) return refuse("id2label", "an object", map, err);
    while (bert_json_next(map, &place, &key, &value)) TRY(take_label(labels, key, value, err));
    for (size_t i = 0; i < labels->n; i++)
        if (!labels->name[i])
            return bert_fail(err, BERT_BAD_FILE, "config.json: id2label: classifier.weight has %zu rows, found no name "
                             "for %zu", labels->n, i);
    return BERT_OK;
}

static bert_status number_labels(bert_labels *labels, bert_error *err) {
    enum { ROOM = 32 };
    for (size_t i = 0; i < labels->n; i++) {
        if (!(labels->name[i] = malloc(ROOM))) return bert_fail(err, BERT_NO_MEMORY, "no memory for names of classes");
        snprintf(labels->name[i], ROOM, "LABEL_%zu", i);
    }
    return BERT_OK;
}

bert_status bert_labels_read(bert_labels *labels, const bert_model *model, size_t n, bert_error *err) {
    bert_json root, map;
    TRY(bert_model_json(model, BERT_TEXT_CONFIG, &root, err));
    *labels = (bert_labels){calloc(n, sizeof *labels->name), n};
    if (!labels->name) return bert_fail(err, BERT_NO_MEMORY, "no memory for the names of %zu classes", n);
    return is_there(root, "id2label", &map) ? take_labels(labels, map, err) : number_labels(labels, err);
}

void bert_labels_close(bert_labels *labels) {
    for (size_t i = 0; labels->name && i < labels->n; i++) free(labels->name[i]);
    free(labels->name);
    *labels = (bert_labels){0};
}

/* ---- What scores are made of. ---- */

static bert_status read_problem(bert_head_info *info, bert_json root, bert_error *err) {
    bert_json type;
    info->classify = info->labels == 1 ? BERT_SCORING_SIGMOID : BERT_SCORING_SOFTMAX;
    if (!is_there(root, "problem_type", &type)) return BERT_OK;
    if (bert_json_equals(type, "regression")) info->classify = BERT_SCORING_LOGITS;
    else if (bert_json_equals(type, "multi_label_classification")) info->classify = BERT_SCORING_SIGMOID;
    else if (!bert_json_equals(type, "single_label_classification"))
        return refuse("problem_type", "regression, single_label_classification or multi_label_classification", type,
                      err);
    return BERT_OK;
}

/* The function by the name of its class in torch; AUTO if it is not known. */
static bert_scoring scoring_of(bert_json name) {
    static const struct { const char *name; bert_scoring scoring; } KNOWN[] = {
        {"torch.nn.modules.activation.Sigmoid", BERT_SCORING_SIGMOID}, {"torch.nn.Sigmoid", BERT_SCORING_SIGMOID},
        {"torch.nn.modules.linear.Identity", BERT_SCORING_LOGITS},     {"torch.nn.Identity", BERT_SCORING_LOGITS},
    };
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (bert_json_equals(name, KNOWN[i].name)) return KNOWN[i].scoring;
    return BERT_SCORING_AUTO;
}

/* Where sentence-transformers looks for the function, the newest place first. */
static int find_function(bert_json *name, const bert_json config, const bert_json sentence) {
    bert_json own;
    if (sentence.at && is_there(sentence, "activation_fn", name)) return 1;
    if (is_there(config, "sentence_transformers", &own) && bert_json_member(own, "activation_fn", name))
        return bert_json_kind_of(*name) != BERT_JSON_NULL;
    return is_there(config, "sbert_ce_default_activation_function", name);
}

bert_status bert_head_config_read(bert_head_info *info, char unknown[96], const bert_model *model, bert_error *err) {
    bert_json config, sentence, name;
    TRY(bert_model_json(model, BERT_TEXT_CONFIG, &config, err));
    TRY(bert_model_json(model, BERT_TEXT_SENTENCE, &sentence, err));
    TRY(read_problem(info, config, err));
    info->rerank = info->labels == 1 ? BERT_SCORING_SIGMOID : BERT_SCORING_LOGITS;
    if (!find_function(&name, config, sentence)) return BERT_OK;
    info->rerank = scoring_of(name);
    bert_json_quote(unknown, 96, name);
    return BERT_OK;
}

/* ---- Whose classifier. ---- */

static int ends_with(bert_json value, const char *end) {
    char text[128];
    if (bert_json_kind_of(value) != BERT_JSON_STRING || value.len > sizeof text) return 0;
    const size_t n = bert_json_string(text, value), m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}

bert_status bert_head_classifier_kind(bert_head_kind *kind, const bert_model *model, bert_error *err) {
    bert_json root, list, name;
    size_t place = 0;
    *kind = bert_model_has_pooler(model) ? BERT_HEAD_SEQUENCE : BERT_HEAD_TOKENS;
    TRY(bert_model_json(model, BERT_TEXT_CONFIG, &root, err));
    if (!is_there(root, "architectures", &list) || bert_json_kind_of(list) != BERT_JSON_ARRAY) return BERT_OK;
    while (bert_json_next(list, &place, NULL, &name)) {
        if (ends_with(name, "ForTokenClassification")) *kind = BERT_HEAD_TOKENS;
        if (ends_with(name, "ForSequenceClassification")) *kind = BERT_HEAD_SEQUENCE;
    }
    return BERT_OK;
}
