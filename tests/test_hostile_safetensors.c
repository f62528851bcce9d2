/* Every container of the hostile corpus, in one process: the verdict its row asks for, and for what is refused one
 * printable line that begins with the file's name. Rows are lines of data/hostile/manifest_safetensors.jsonl; those
 * called gen:NAME are too large to store and are written here. */
#include "scratch.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>

#include <bert/safetensors.h>

#include "file/json.h"
#include "cost.h"
#include "file/source.h"
#include "fuzz/second_reading.h"

/* Rows of strength `should` that are answered otherwise, and why. Nothing else may differ. */
static const struct {
    const char *file, *reason;
} otherwise[] = {
    {"st/json/leading_space.safetensors", "blanks before the header's brace: the reference reader takes them"},
    {"st/json/leading_newline.safetensors", "the same"},
    {"st/schema/extra_field.safetensors", "fields the format does not have are passed over, as the reference does"},
    {"st/schema/case_extra.safetensors", "the same; names of fields are compared exactly, so it is never the one used"},
    {"gen:header_100MB_exact", "our limit for a header is 16 MiB"},
};

enum { N_OTHERWISE = sizeof otherwise / sizeof otherwise[0], HEADER_ROOM = 45 << 20 };

static bool is_otherwise(const char *file) {
    for (size_t i = 0; i < N_OTHERWISE; i++) {
        if (strcmp(otherwise[i].file, file) == 0) return true;
    }
    return false;
}

typedef struct row {
    char *file, *expect, *strength;
} row;

static char *field(bert_json object, const char *name) {
    bert_json value;
    cr_assert(bert_json_member(object, name, &value), "no %s in a row", name);
    return bert_json_dup(value);
}

/* Calls `use` for each row of the manifest. */
static int for_each_row(const char *data, void (*use)(const row *, void *), void *arg) {
    char path[PATH_MAX], *text = NULL, *rest;
    size_t len;
    int rows = 0;
    bert_error err;
    snprintf(path, sizeof path, "%s/hostile/manifest_safetensors.jsonl", data);
    cr_assert_eq(bert_read_text(&text, &len, path, 1 << 20, &err), BERT_OK, "%s", err.text);
    rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && line[0] != '\0'; rows++) {
        bert_json root;
        cr_assert_eq(bert_json_check(&root, line, strlen(line), &err), BERT_OK, "%s", err.text);
        row r = {field(root, "file"), field(root, "expect"), field(root, "strength")};
        use(&r, arg);
        free(r.file);
        free(r.expect);
        free(r.strength);
    }
    free(text);
    return rows;
}

static bool expect_verdict(const row *r, const char *path) {
    bert_safetensors *file;
    bert_error err = {0};
    const bert_status status = bert_safetensors_open(&file, path, &err);
    const bool accept = strcmp(r->expect, "accept") == 0, must = strcmp(r->strength, "must") == 0;
    const bool as_asked = (status == BERT_OK) == accept;
    cr_expect_eq(as_asked, !is_otherwise(r->file), "%s: %s asked for, %s", r->file, r->expect,
                 status == BERT_OK ? "accepted" : err.text);
    cr_expect(as_asked || !must, "%s is a must", r->file);
    if (status != BERT_OK) {
        cr_expect_eq(status, BERT_BAD_FILE, "%s: status %d", r->file, status);
        cr_expect_eq(err.code, status);
        cr_expect(strncmp(err.text, path, strlen(path)) == 0, "%s does not name %s", err.text, path);
        for (const char *p = err.text; *p != '\0'; p++) {
            cr_expect((unsigned char)*p >= 0x80 || isprint((unsigned char)*p), "%s: a message of two lines", r->file);
        }
    }
    for (size_t i = 0; status == BERT_OK && i < bert_safetensors_count(file); i++) {
        const bert_tensor_info *t = bert_safetensors_at(file, i);
        cr_assert_eq(bert_safetensors_find(file, t->name), t);
    }
    bert_safetensors_close(&file);
    return status == BERT_OK;
}

/* A second reading of the rules, against which the library is fuzzed, says the same. */
static void expect_second_reading(const row *r, const char *path, bool accepted) {
    char *bytes = NULL;
    size_t size;
    cr_assert_eq(bert_read_text(&bytes, &size, path, 1 << 20, NULL), BERT_OK);
    cr_expect_eq(second_reading_accepts((const unsigned char *)bytes, size), accepted, "%s: %s", r->file, r->expect);
    free(bytes);
}

static cost worst;

static void check_stored(const row *r, void *data) {
    char path[PATH_MAX];
    if (strncmp(r->file, "gen:", 4) == 0) return;
    snprintf(path, sizeof path, "%s/hostile/%s", (const char *)data, r->file);
    const cost before = cost_begin();
    const bool accepted = expect_verdict(r, path);
    cost_end(before, r->file, cost_of_a_file, &worst);
    expect_second_reading(r, path, accepted);
}

static const char *data_folder(void) {
    const char *data = getenv("BERT_TEST_DATA");
    cr_assert_not_null(data, "BERT_TEST_DATA is the folder tests/data");
    return data;
}

Test(hostile_safetensors, stored_files) {
    const char *data = data_folder();
    cr_expect_eq(for_each_row(data, check_stored, (void *)data), 393);
    cost_print("safetensors rows", worst);
}

/* Headers of the files that are made here. Each returns the header's length. */
static const char one[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}";

static size_t write_one(char *text) {
    return (size_t)sprintf(text, "%s", one);
}

static size_t write_many(char *text, size_t names) {
    char *p = text;
    *p++ = '{';
    for (size_t i = 0; i < 200000; i++) {
        p += sprintf(p, "%s\"t%zu\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i > 0 ? "," : "",
                     i % names);
    }
    *p++ = '}';
    return (size_t)(p - text);
}

static size_t write_all_different(char *text) {
    return write_many(text, 200000);
}

static size_t write_one_twice(char *text) {
    return write_many(text, 199999);
}

static size_t write_20_million_dims(char *text) {
    char *p = text + sprintf(text, "{\"a\":{\"dtype\":\"U8\",\"shape\":[0");
    for (size_t i = 1; i < 20000000; i++, p += 2) memcpy(p, ",0", 2);
    p += sprintf(p, "],\"data_offsets\":[0,0]}}");
    return (size_t)(p - text);
}

static size_t write_64_gb(char *text) {
    return (size_t)sprintf(text, "{\"a\":{\"dtype\":\"F32\",\"shape\":[131072,131072],"
                                 "\"data_offsets\":[0,68719476736]}}");
}

/* `length` 0: the header is as long as it is. The file is cut or stretched (sparsely) to 8 + length + data. */
static const struct {
    const char *name;
    size_t (*write)(char *text);
    uint64_t length, data;
} generated[] = {
    {"gen:header_100MB_exact", write_one, 100000000, 16},
    {"gen:header_100MB_plus_1", write_one, 100000001, 16},
    {"gen:tensors_200k", write_all_different, 0, 0},
    {"gen:tensors_200k_dup", write_one_twice, 0, 0},
    {"gen:shape_20M_dims", write_20_million_dims, 0, 0},
    {"gen:sparse_64GB", write_64_gb, 0, (uint64_t)64 << 30},
};

static void generate(const char *name, const char *path) {
    size_t i = 0;
    while (i < sizeof generated / sizeof generated[0] && strcmp(generated[i].name, name) != 0) i++;
    cr_assert_lt(i, sizeof generated / sizeof generated[0], "%s is not known here", name);
    char *text = malloc(HEADER_ROOM);
    const size_t n = generated[i].write(text);
    const uint64_t length = generated[i].length > 0 ? generated[i].length : n;
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(&length, 1, 8, file), 8u);
    cr_assert_eq(fwrite(text, 1, n, file), n);
    memset(text, ' ', HEADER_ROOM);
    for (uint64_t pad = length - n, some; pad > 0; pad -= some) {
        some = pad < HEADER_ROOM ? pad : HEADER_ROOM;
        cr_assert_eq(fwrite(text, 1, (size_t)some, file), some);
    }
    cr_assert_eq(fclose(file), 0);
    free(text);
    if (truncate(path, (off_t)(8 + length + generated[i].data)) != 0) cr_skip_test("no room for a sparse file");
}

static void check_generated(const row *r, void *arg) {
    scratch *s = arg;
    if (strncmp(r->file, "gen:", 4) != 0) return;
    generate(r->file, scratch_path(s, "big"));
    const bool many = strncmp(r->file, "gen:tensors", 11) == 0;
    const cost before = cost_begin();
    (void)expect_verdict(r, s->path);
    cost_end(before, r->file, (cost){2, many ? 256 : 10}, &worst);
}

Test(hostile_safetensors, files_made_here) {
    scratch s;
    scratch_open(&s);
    for_each_row(data_folder(), check_generated, &s);
    cost_print("safetensors made here", worst);
    scratch_close(&s);
}
