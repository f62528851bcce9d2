/* A container from structured fields, so that the interesting ones come often: numbers near the edges of their range,
 * offsets that nearly fit, names that nearly clash. What comes out is judged like any bytes: both readings agree, and what
 * is accepted can be read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/safetensors.h>

#include "second_reading.h"

enum { TEXT_ROOM = 8192, TENSORS = 6 };

/* What the fuzzer decides, a byte at a time; 0 behind the end. */
typedef struct choices {
    const uint8_t *at, *end;
} choices;

static unsigned pick(choices *c, unsigned n) {
    return c->at < c->end ? *c->at++ % n : 0;
}

static void add(char *text, const char *more) {
    const size_t n = strlen(text);
    snprintf(text + n, TEXT_ROOM - n, "%s", more);
}

static void add_number(char *text, choices *c, unsigned long long fitting) {
    static const char *const edges[] = {"0", "1", "-1", "-0", "01", "1.0", "1e0", "9007199254740992", "9007199254740993",
                                        "4294967296", "2147483648", "18446744073709551615", "18446744073709551616",
                                        "2305843009213693952", "null", "\"4\"", "true", "[4]"};
    char number[32];
    const unsigned which = pick(c, 64);
    snprintf(number, sizeof number, "%llu", fitting + (which == 63) - (which == 62 && fitting > 0));
    add(text, which < sizeof edges / sizeof *edges ? edges[which] : number);
}

/* Returns the bytes that it takes if nothing was bent. */
static unsigned long long add_shape(char *text, choices *c, unsigned bytes) {
    const unsigned rank = pick(c, 16) == 15 ? 9 : pick(c, 4);
    unsigned long long product = bytes;
    for (unsigned i = 0; i < rank; i++) {
        const unsigned dim = pick(c, 4);
        product *= dim;
        if (i > 0) add(text, ",");
        add_number(text, c, dim);
    }
    return product;
}

static unsigned long long add_tensor(char *text, choices *c, unsigned long long begin) {
    static const char *const names[] = {"a", "b", "c", "d", "\\u0061", "e", "f\\u0000", "", "__metadata__", "\xc3\xa9", "A"};
    static const struct {
        const char *name;
        unsigned bytes;
    } dtypes[] = {{"\"F32\"", 4}, {"\"F16\"", 2}, {"\"U8\"", 1}, {"\"I64\"", 8}, {"\"F4\"", 1}, {"\"F6_E2M3\"", 1},
                  {"\"f32\"", 4}, {"\"F\\u00332\"", 4}, {"4", 4}, {"\"F32\\u0000\"", 4}};
    const unsigned dtype = pick(c, 4) ? pick(c, 4) : pick(c, sizeof dtypes / sizeof *dtypes);
    add(text, "\"");
    add(text, names[pick(c, sizeof names / sizeof *names)]);
    add(text, "\":{\"dtype\":");
    add(text, dtypes[dtype].name);
    add(text, ",\"shape\":[");
    const unsigned long long end = begin + add_shape(text, c, dtypes[dtype].bytes);
    add(text, "],\"data_offsets\":[");
    add_number(text, c, begin);
    add(text, ",");
    add_number(text, c, end);
    add(text, pick(c, 32) == 31 ? ",1]" : "]");
    if (pick(c, 16) == 15) add(text, ",\"extra\":{\"shape\":[1,[2,{}]]}");
    if (pick(c, 32) == 31) add(text, ",\"shape\":[]");
    add(text, "}");
    return end;
}

static unsigned long long add_header(char *text, choices *c) {
    static const char *const between[] = {",", ",", ",", ",", " , ", ",,", "", ",\"__metadata__\":{\"k\":\"v\"},",
                                          ",\"__metadata__\":null,", ",\"__metadata__\":{\"k\":1},", "\n,\t", ";"};
    static const char *const endings[] = {"", "", " ", "\n\t\r ", "}", "x", "\xef\xbb\xbf", "\xff", "{}"};
    unsigned long long end = 0;
    const unsigned n = pick(c, TENSORS);
    add(text, pick(c, 32) == 31 ? " {" : "{");
    for (unsigned i = 0; i < n; i++) {
        if (i > 0) add(text, between[pick(c, sizeof between / sizeof *between)]);
        end = add_tensor(text, c, end);
    }
    add(text, "}");
    add(text, endings[pick(c, sizeof endings / sizeof *endings)]);
    return end;
}

static void judge(const unsigned char *bytes, size_t size) {
    const bert_file memory = {"fuzz", bytes, size};
    bert_safetensors *file;
    bert_error err = {BERT_OK, "accepted"};
    const bool accepted = bert_safetensors_open_memory(&file, &memory, &err) == BERT_OK;
    if (accepted != second_reading_accepts(bytes, size)) {
        fprintf(stderr, "the library: %s\n%.*s\n", err.text, (int)(size - 8), (const char *)bytes + 8);
        abort();
    }
    for (size_t i = 0; accepted && i < bert_safetensors_count(file); i++) {
        const bert_tensor_info *t = bert_safetensors_at(file, i);
        float x[4];
        if (t->offset > size || t->bytes > size - t->offset || bert_safetensors_find(file, t->name) != t) abort();
        const bert_status status = bert_safetensors_read_f32(file, t, 0, x, t->count < 4 ? t->count : 4, NULL);
        if (status != BERT_OK && status != BERT_UNSUPPORTED) abort();
    }
    bert_safetensors_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    choices c = {data, data + size};
    char text[TEXT_ROOM] = "";
    const unsigned long long end = add_header(text, &c);
    if (end > 1 << 20) return 0;
    const uint64_t n = strlen(text);
    const size_t whole = 8 + (size_t)n + (size_t)end, cut = pick(&c, 16) == 15;
    unsigned char *bytes = calloc(1, whole);
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, text, (size_t)n);
    judge(bytes, whole - cut);
    free(bytes);
    return 0;
}
