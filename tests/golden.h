/* tests/golden.h: reading golden files of JSON lines, and comparing arrays with what they hold. */
#ifndef BERT_TESTS_GOLDEN_H
#define BERT_TESTS_GOLDEN_H

#include <criterion/criterion.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/tokenizer.h>

#include "file/json.h"
#include "file/source.h"

static inline const char *golden_path(char path[PATH_MAX], const char *name) {
    snprintf(path, PATH_MAX, "%s/%s", getenv("BERT_TEST_DATA"), name);
    return path;
}

/* Calls `use` for each line of a file in tests/data; returns the number of lines. */
static inline int golden_lines(const char *name, void (*use)(bert_json row, void *arg), void *arg) {
    char path[PATH_MAX], *text = NULL;
    size_t len = 0;
    int rows = 0;
    bert_error err;
    cr_assert_eq(bert_read_text(&text, &len, golden_path(path, name), 64 << 20, &err), BERT_OK, "%s", err.text);
    for (char *line = text, *end; line < text + len; line = end + 1, rows++) {
        bert_json root;
        end = memchr(line, '\n', len - (size_t)(line - text));
        if (end == NULL) end = text + len;
        cr_assert_eq(bert_json_check(&root, line, (size_t)(end - line), &err), BERT_OK, "%s:%d: %s", name, rows + 1, err.text);
        use(root, arg);
    }
    free(text);
    return rows;
}

static inline bert_json golden_member(bert_json object, const char *name) {
    bert_json value = {"null", 4};
    (void)bert_json_member(object, name, &value);
    return value;
}

static inline bool golden_null(bert_json value) {
    return bert_json_kind_of(value) == BERT_JSON_NULL;
}

/* A member that is an integer, or `absent`. */
static inline int64_t golden_integer(bert_json object, const char *name, int64_t absent) {
    int64_t n = absent;
    (void)bert_json_integer(&n, golden_member(object, name), INT64_MIN, INT64_MAX);
    return n;
}

/* A string with its length, in memory of its own that ends where it does; NULL for null. */
static inline char *golden_string(bert_json value, size_t *len) {
    *len = 0;
    if (golden_null(value)) return NULL;
    char *room = malloc(value.len);
    *len = bert_json_string(room, value);
    char *text = malloc(*len + (*len == 0));
    memcpy(text, room, *len);
    free(room);
    return text;
}

/* Is the list `want` equal to n integers? `get` gives the i-th. */
static inline bool golden_integers(bert_json want, size_t n, int64_t (*get)(const void *array, size_t i), const void *array) {
    bert_json item;
    int64_t value;
    size_t place = 0, i = 0;
    for (; bert_json_next(want, &place, NULL, &item); i++)
        if (i >= n || !bert_json_integer(&value, item, INT64_MIN, INT64_MAX) || value != get(array, i)) return false;
    return i == n;
}

static inline int64_t golden_i32(const void *array, size_t i) {
    return ((const int32_t *)array)[i];
}

static inline int64_t golden_u8(const void *array, size_t i) {
    return ((const uint8_t *)array)[i];
}

/* Is `want` the list of pairs [start, end]? */
static inline bool golden_spans(bert_json want, size_t n, const bert_span *spans) {
    bert_json item;
    size_t place = 0, i = 0;
    for (; bert_json_next(want, &place, NULL, &item); i++) {
        const int32_t span[2] = {i < n ? (int32_t)spans[i].start : -1, i < n ? (int32_t)spans[i].end : -1};
        if (!golden_integers(item, 2, golden_i32, span)) return false;
    }
    return i == n;
}

/* Compares the arrays that `row` has with a part; names the first that differs, NULL: none. */
static inline const char *golden_differs(bert_json row, const bert_tokens *tokens, size_t text, size_t part) {
    const bert_encoding e = bert_tokens_at(tokens, text, part);
    const bert_json type_ids = golden_member(row, "type_ids");
    const bert_json offsets = golden_member(row, "offsets"), cp = golden_member(row, "offsets_cp");
    const bert_json mask = golden_member(row, "attention_mask"), words = golden_member(row, "words");
    const bert_json spelled = golden_member(row, "tokens");
    bert_json token;
    if (!golden_integers(golden_member(row, "ids"), e.n, golden_i32, e.ids)) return "ids";
    if (!golden_null(type_ids) && !golden_integers(type_ids, e.n, golden_i32, e.type_ids)) return "type_ids";
    if (!golden_integers(golden_member(row, "special_mask"), e.n, golden_u8, e.special_tokens_mask)) return "special_mask";
    if (!golden_null(mask) && !golden_integers(mask, e.n, golden_u8, e.attention_mask)) return "attention_mask";
    if (!golden_null(words) && !golden_integers(words, e.n, golden_i32, e.words)) return "words";
    if (!golden_null(offsets) && !golden_spans(offsets, e.n, e.offsets)) return "offsets";
    if (!golden_null(cp) && !golden_spans(cp, e.n, e.offsets_cp)) return "offsets_cp";
    size_t place = 0, i = 0;
    for (; !golden_null(spelled) && bert_json_next(spelled, &place, NULL, &token); i++) {
        size_t len, want_len;
        const char *have = bert_tokens_spelling(tokens, text, part, i, &len);
        char *want = golden_string(token, &want_len);
        const bool same = have != NULL && len == want_len && memcmp(have, want, len) == 0;
        free(want);
        if (!same) return "tokens";
    }
    return NULL;
}

#endif
