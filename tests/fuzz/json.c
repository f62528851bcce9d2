/* Any bytes as JSON: refused, or every view function is safe on every value, and each member is found by its name. */
#include <stdlib.h>
#include <string.h>

#include "file/json.h"

static void expect_member(bert_json object, bert_json key, bert_json value) {
    bert_json found;
    char *name = malloc(key.len);
    const size_t len = bert_json_string(name, key);
    name[len] = '\0';
    if (strlen(name) == len && (!bert_json_member(object, name, &found) || found.at != value.at)) abort();
    free(name);
}

static void walk(bert_json value) {
    int64_t n;
    double x;
    int b;
    char *text = malloc(value.len);
    if (bert_json_string(text, value) > value.len) abort();
    free(text);
    bert_json_integer(&n, value, INT64_MIN, INT64_MAX);
    bert_json_number(&x, value);
    bert_json_bool(&b, value);
    bert_json key, item;
    for (size_t place = 0; bert_json_next(value, &place, &key, &item);) {
        if (bert_json_kind_of(value) == BERT_JSON_OBJECT) expect_member(value, key, item);
        walk(item);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    bert_json root;
    if (bert_json_check(&root, (const char *)bytes, size, NULL) == BERT_OK) walk(root);
    return 0;
}
