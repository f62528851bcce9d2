/* The container: what it shows, how it reads, what it says when something is wrong. The corpus of bad files has a test
 * of its own (test_hostile_safetensors.c). */
#include "scratch.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>

#include <bert/safetensors.h>

#include "file/safetensors.h"

/* A container of this header and n bytes of data 0, 1, 2, …; `pad` more blanks than the header has. */
static size_t build(char *file, const char *header, size_t pad, size_t n) {
    const uint64_t length = strlen(header) + pad;
    memcpy(file, &length, 8);
    memcpy(file + 8, header, strlen(header));
    memset(file + 8 + strlen(header), ' ', pad);
    for (size_t i = 0; i < n; i++) file[8 + length + i] = (char)i;
    return 8 + (size_t)length + n;
}

static bert_status open_header(bert_safetensors **file, char *bytes, const char *header, size_t n, bert_error *err) {
    const bert_file memory = {"m.safetensors", bytes, build(bytes, header, 0, n)};
    return bert_safetensors_open_memory(file, &memory, err);
}

static const char sample[] =
    "{\"z\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[1,25]},"
    "\"__metadata__\":{\"format\":\"pt\",\"a\\u00e9\":\"x\\u0000y\",\"\":\"empty key\"},"
    "\"\\u0061\":{\"shape\":[],\"extra\":{\"shape\":[9]},\"dtype\":\"U8\",\"data_offsets\":[0,1]},"
    "\"Z\":{\"dtype\":\"I64\",\"shape\":[4,0],\"data_offsets\":[25,25]}}";

static void expect_sample(const bert_safetensors *file, uint64_t data) {
    static const char *const names[] = {"Z", "a", "z"};
    cr_assert_eq(bert_safetensors_count(file), 3u);
    for (size_t i = 0; i < 3; i++) {
        const bert_tensor_info *tensor = bert_safetensors_at(file, i);
        cr_expect_str_eq(tensor->name, names[i]);
        cr_expect_eq(bert_safetensors_find(file, names[i]), tensor);
    }
    cr_expect_null(bert_safetensors_at(file, 3));
    cr_expect_null(bert_safetensors_find(file, "b"));
    cr_expect_null(bert_safetensors_find(file, ""));
    cr_expect_null(bert_safetensors_find(file, "__metadata__"));
    const bert_tensor_info *a = bert_safetensors_find(file, "a"), *z = bert_safetensors_find(file, "z");
    cr_expect(a->dtype == BERT_U8 && a->rank == 0 && a->count == 1 && a->bytes == 1 && a->offset == data);
    cr_expect(z->dtype == BERT_F32 && z->rank == 2 && z->shape[0] == 2 && z->shape[1] == 3);
    cr_expect(z->count == 6 && z->bytes == 24 && z->offset == data + 1);
    cr_expect_eq(bert_safetensors_at(file, 0)->count, 0u);
    cr_expect_str_eq(bert_safetensors_metadata(file, "format"), "pt");
    cr_expect_str_eq(bert_safetensors_metadata(file, "a\xc3\xa9"), "x");
    cr_expect_str_eq(bert_safetensors_metadata(file, ""), "empty key");
    cr_expect_null(bert_safetensors_metadata(file, "Format"));
}

static void expect_bytes(const bert_safetensors *file) {
    const bert_tensor_info *z = bert_safetensors_find(file, "z");
    unsigned char bytes[24];
    bert_error err;
    cr_assert_eq(bert_safetensors_read(file, z, 3, bytes, 21, &err), BERT_OK, "%s", err.text);
    for (unsigned i = 0; i < 21; i++) cr_assert_eq(bytes[i], i + 4);
    cr_expect_eq(bert_safetensors_read(file, z, 24, bytes, 0, &err), BERT_OK);
    cr_expect_eq(bert_safetensors_read(file, z, 4, bytes, 21, &err), BERT_INVALID_ARGUMENT);
    cr_expect_eq(bert_safetensors_read(file, z, UINT64_MAX, bytes, 2, &err), BERT_INVALID_ARGUMENT);
    cr_expect(strstr(err.text, "tensor 'z'") != NULL, "%s", err.text);
    cr_expect_eq(bert_safetensors_unchanged(file, &err), BERT_OK);
}

Test(safetensors, from_disk_and_from_memory_at_any_alignment) {
    scratch s;
    scratch_open(&s);
    for (size_t pad = 0; pad < 9; pad++) {
        char bytes[1024];
        const size_t n = build(bytes, sample, pad, 25), data = 8 + sizeof sample - 1 + pad;
        const bert_file memory = {"memory", bytes, n};
        bert_safetensors *file;
        bert_error err;
        cr_assert_eq(bert_safetensors_open_memory(&file, &memory, &err), BERT_OK, "%s", err.text);
        expect_sample(file, data);
        expect_bytes(file);
        bert_safetensors_close(&file);
        cr_expect_null(file);
        cr_assert_eq(bert_safetensors_open(&file, scratch_write(&s, "f", bytes, n), &err), BERT_OK, "%s", err.text);
        expect_sample(file, data);
        expect_bytes(file);
        bert_safetensors_close(&file);
        bert_safetensors_close(&file);
    }
    scratch_close(&s);
}

Test(safetensors, nothing_in_it) {
    char bytes[64];
    bert_safetensors *file;
    cr_assert_eq(open_header(&file, bytes, "{}", 0, NULL), BERT_OK);
    cr_expect_eq(bert_safetensors_count(file), 0u);
    cr_expect_null(bert_safetensors_find(file, "a"));
    cr_expect_null(bert_safetensors_metadata(file, "a"));
    bert_safetensors_close(&file);
}

/* Longer than one block of the conversion, read in pieces that cut the blocks in odd places. */
Test(safetensors, read_as_f32) {
    enum { N = 20011 };
    static const struct {
        const char *dtype;
        size_t width;
    } types[] = {{"F16", 2}, {"BF16", 2}, {"F32", 4}, {"F64", 8}};
    static char bytes[N * 8 + 256];
    static float x[N];
    for (size_t t = 0; t < 4; t++) {
        char header[128];
        snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[0,%zu]}}",
                 types[t].dtype, N, N * types[t].width);
        const size_t n = build(bytes, header, t, N * types[t].width), data = n - N * types[t].width;
        for (size_t i = 0; i < N; i++) { /* i mod 256 is a value that every type holds */
            const double d = (double)(i % 256);
            const float f = (float)d;
            uint32_t bits;
            memcpy(&bits, &f, 4);
            const uint16_t high = (uint16_t)(bits >> 16);
            const uint16_t half = (uint16_t)(i % 256 == 0 ? 0 : (bits - (112u << 23)) >> 13);
            const void *from[] = {&half, &high, &f, &d};
            memcpy(bytes + data + i * types[t].width, from[t], types[t].width);
        }
        const bert_file memory = {"memory", bytes, n};
        bert_safetensors *file;
        bert_error err;
        cr_assert_eq(bert_safetensors_open_memory(&file, &memory, &err), BERT_OK, "%s", err.text);
        const bert_tensor_info *w = bert_safetensors_at(file, 0);
        for (size_t first = 0, some = 1; first < N; first += some, some = some * 3 + 1) {
            if (some > N - first) some = N - first;
            cr_assert_eq(bert_safetensors_read_f32(file, w, first, x, some, &err), BERT_OK, "%s", err.text);
            for (size_t i = 0; i < some; i++) cr_assert_eq(x[i], (float)((first + i) % 256));
        }
        cr_expect_eq(bert_safetensors_read_f32(file, w, N, x, 0, &err), BERT_OK);
        cr_expect_eq(bert_safetensors_read_f32(file, w, N, x, 1, &err), BERT_INVALID_ARGUMENT);
        cr_expect_eq(bert_safetensors_read_f32(file, w, N + 1, x, 0, &err), BERT_INVALID_ARGUMENT);
        cr_expect_eq(bert_safetensors_read_f32(file, w, 1, x, SIZE_MAX, &err), BERT_INVALID_ARGUMENT);
        bert_safetensors_close(&file);
    }
}

Test(safetensors, other_types_are_not_numbers_to_us) {
    static const char *const types[] = {"BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char bytes[256], header[128];
        float x;
        bert_safetensors *file;
        bert_error err;
        snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,1]}}", types[i]);
        cr_assert_eq(open_header(&file, bytes, header, 1, &err), BERT_OK, "%s", err.text);
        cr_expect_eq(bert_safetensors_read_f32(file, bert_safetensors_at(file, 0), 0, &x, 1, &err), BERT_UNSUPPORTED);
        cr_expect(strstr(err.text, "m.safetensors: tensor 'w': dtype ") && strstr(err.text, types[i]), "%s", err.text);
        bert_safetensors_close(&file);
    }
}

/* What, where, expected and found. */
Test(safetensors, messages) {
    static const struct {
        const char *header, *message;
    } rows[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,12]}}",
         "tensor 'a': F32 [2, 2] takes 16 bytes, data_offsets hold 12"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[4,20]}}",
         "tensor 'a': a hole before it: begins at byte 4 of the data, the one before it ends at 0"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[0,9]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,16]}}",
         "tensor 'b': overlaps another: begins at byte 8 of the data, the one before it ends at 9"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[17],\"data_offsets\":[0,17]}}",
         "tensor 'a': ends at byte 17 of the data, the file has 16 (truncated?)"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[15],\"data_offsets\":[0,15]}}", "1 bytes behind the last tensor"},
        {"{\"it's\\n\":{\"dtype\":\"Q4\",\"shape\":[16],\"data_offsets\":[0,16]}}",
         "tensor 'it\\x27s\\x0a': unknown dtype 'Q4'"},
        {"{\"a\":{\"shape\":[16],\"data_offsets\":[0,16]}}", "tensor 'a': no dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[16]}}", "tensor 'a': no data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,16]}}",
         "tensor 'a': shape: expected integers in 0..2^53, found '-1'"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,16],\"data_offsets\":[0,16]}}",
         "tensor 'a': shape: 9 dimensions, at most 8 are supported"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0,4294967296,4294967296],\"data_offsets\":[0,0]}}",
         "tensor 'a': U8 [0, 4294967296, 4294967296] is not a whole number of bytes below 2^61"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[16,0]}}",
         "tensor 'a': data_offsets: expected [begin, end] with begin <= end, found '[16,0]'"},
        {"{\"a\":[\"U8\",[16],[0,16]]}", "tensor 'a': expected an object, found '[\\x22U8\\x22,[16],[0,16]]'"},
        {"{\"a\\u0000b\":{}}", "the name 'a\\x00b' contains NUL"},
        {"{\"__metadata__\":{\"k\":1}}", "__metadata__: the value of 'k' is not a string"},
        {"{\"__metadata__\":[]}", "__metadata__: expected an object of strings"},
        {"[]", "the header is not a JSON object"},
        {"{\"a\":\n1,}", "line 2, column 3: expected a key in quotes, found '}'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bytes[512], expected[256];
        bert_safetensors *file;
        bert_error err = {0};
        cr_expect_eq(open_header(&file, bytes, rows[i].header, 16, &err), BERT_BAD_FILE, "%s", rows[i].header);
        cr_expect_null(file);
        snprintf(expected, sizeof expected, "m.safetensors: %s", rows[i].message);
        cr_expect_str_eq(err.text, expected);
    }
}

/* A header may have 16 MiB and no byte more, blanks included. */
Test(safetensors, header_as_long_as_it_may_be) {
    enum { MOST = 16 << 20, DATA = 16 };
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]}}";
    char *bytes = malloc(8 + MOST + 1 + DATA);
    for (uint64_t length = MOST; length <= MOST + 1; length++) {
        const bert_file memory = {"m.safetensors", bytes, 8 + (size_t)length + DATA};
        bert_safetensors *file;
        bert_error err = {0};
        memset(bytes, ' ', memory.len);
        memcpy(bytes, &length, 8);
        memcpy(bytes + 8, header, sizeof header - 1);
        cr_expect_eq(bert_safetensors_open_memory(&file, &memory, &err), length == MOST ? BERT_OK : BERT_BAD_FILE, "%s", err.text);
        if (length == MOST)
            cr_expect(bert_safetensors_count(file) == 1 && bert_safetensors_find(file, "a")->offset == 8 + MOST);
        else
            cr_expect_str_eq(err.text, "m.safetensors: a header of 16777217 bytes, the limit is 16777216");
        bert_safetensors_close(&file);
    }
    free(bytes);
}

Test(safetensors, other_formats_are_named) {
    static const struct {
        const char *bytes, *what;
    } rows[] = {{"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"},
                {"PK\3\4 and so on ..", "a ZIP archive"},
                {"GGUF............", "a GGUF file"},
                {"<!DOCTYPE html><html>", "a web page"},
                {"{\"a\":{\"dtype\":\"F32\"", "JSON without"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bert_file memory = {"f", rows[i].bytes, strlen(rows[i].bytes)};
        bert_safetensors *file;
        bert_error err;
        cr_expect_eq(bert_safetensors_open_memory(&file, &memory, &err), BERT_BAD_FILE);
        cr_expect(strncmp(err.text, "f: not safetensors, but ", 24) == 0 && strstr(err.text, rows[i].what), "%s",
                  err.text);
    }
}

Test(safetensors, every_cut_is_refused) {
    char bytes[1024];
    const size_t n = build(bytes, sample, 3, 25);
    for (size_t cut = 0; cut < n; cut++) {
        char *copy = malloc(cut + (cut == 0));
        memcpy(copy, bytes, cut);
        const bert_file memory = {"cut", copy, cut};
        bert_safetensors *file;
        cr_assert_eq(bert_safetensors_open_memory(&file, &memory, NULL), BERT_BAD_FILE, "cut at %zu", cut);
        free(copy);
    }
}

/* One byte changed, everywhere and in every way: refused, or open with every tensor inside the file. */
Test(safetensors, every_changed_byte_is_safe) {
    char bytes[1024];
    const size_t n = build(bytes, sample, 3, 25);
    for (size_t i = 0; i < n - 25; i++) {
        for (int value = 0; value < 256; value++) {
            const char before = bytes[i];
            bytes[i] = (char)value;
            const bert_file memory = {"changed", bytes, n};
            bert_safetensors *file;
            if (bert_safetensors_open_memory(&file, &memory, NULL) == BERT_OK) {
                for (size_t k = 0; k < bert_safetensors_count(file); k++) {
                    const bert_tensor_info *t = bert_safetensors_at(file, k);
                    cr_assert(t->offset <= n && t->bytes <= n - t->offset);
                    cr_assert_eq(bert_safetensors_find(file, t->name), t);
                }
                bert_safetensors_close(&file);
            }
            bytes[i] = before;
        }
    }
}

Test(safetensors, cut_while_open) {
    char bytes[1024];
    scratch s;
    scratch_open(&s);
    bert_safetensors *file;
    bert_error err;
    const size_t n = build(bytes, sample, 0, 25);
    cr_assert_eq(bert_safetensors_open(&file, scratch_write(&s, "f", bytes, n), &err), BERT_OK);
    const bert_tensor_info *z = bert_safetensors_find(file, "z");
    cr_assert_eq(truncate(s.path, (off_t)z->offset + 20), 0);
    float x[6];
    cr_expect_eq(bert_safetensors_read_f32(file, z, 0, x, 5, &err), BERT_OK);
    cr_expect_eq(bert_safetensors_read_f32(file, z, 0, x, 6, &err), BERT_CHANGED);
    cr_expect_eq(bert_safetensors_unchanged(file, &err), BERT_CHANGED);
    bert_safetensors_close(&file);
    scratch_close(&s);
}

static void *read_all(void *file) {
    for (int i = 0; i < 500; i++) {
        for (size_t k = 0; k < bert_safetensors_count(file); k++) {
            const bert_tensor_info *t = bert_safetensors_at(file, k);
            char bytes[32];
            if (bert_safetensors_find(file, t->name) != t) return file;
            if (bert_safetensors_read(file, t, 0, bytes, (size_t)t->bytes, NULL) != BERT_OK) return file;
        }
    }
    return NULL;
}

Test(safetensors, threads_share_it) {
    char bytes[1024];
    scratch s;
    scratch_open(&s);
    bert_safetensors *file;
    const size_t n = build(bytes, sample, 0, 25);
    cr_assert_eq(bert_safetensors_open(&file, scratch_write(&s, "f", bytes, n), NULL), BERT_OK);
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, read_all, file);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        cr_expect_null(failed);
    }
    bert_safetensors_close(&file);
    scratch_close(&s);
}
