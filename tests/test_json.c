/* The strict reader: what it takes, what it refuses and where, and what the views make of it. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "file/json.h"

/* Checks a copy that ends where its allocation ends, so that a sanitizer sees any step behind it. */
static bert_status check(const char *text, size_t len, bert_error *err) {
    char *copy = malloc(len + (len == 0));
    bert_json root;
    memcpy(copy, text, len);
    const bert_status status = bert_json_check(&root, copy, len, err);
    free(copy);
    return status;
}

/* The root of a text that has to be good. */
static bert_json root_of(const char *text) {
    bert_json root;
    bert_error err;
    cr_assert_eq(bert_json_check(&root, text, strlen(text), &err), BERT_OK, "%s: %s", text, err.text);
    return root;
}

Test(json, accepted) {
    static const char *const texts[] = {
        "null", "true", " false\r\n\t", "0", "-0", "-0.5e+10", "1E-2", "123456789012345678901234567890", "\"\"", "[]",
        "{}", "[ ]", "{ }", "[1,2 , 3]", "{\"a\":{\"a\":1},\"b\":[{\"a\":2}]}", "{\"\":0}", "[[],{},\"\"]",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\\u0000\"", "\"\x7f\xc3\xa9\xf0\x9f\x98\x80\"",
        "{\"a\":1,\"A\":2,\"a\\u0000\":3,\"\\u0000a\":4}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bert_error err = {0};
        cr_expect_eq(check(texts[i], strlen(texts[i]), &err), BERT_OK, "%s: %s", texts[i], err.text);
    }
}

Test(json, refused_with_place_and_cause) {
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "JSON, byte 0 (line 1, column 1): expected a value, found the end"},
        {"  ", "JSON, byte 2 (line 1, column 3): expected a value, found the end"},
        {"\xef\xbb\xbf{}", "JSON, byte 0 (line 1, column 1): a byte-order mark"},
        {"nul", "JSON, byte 0 (line 1, column 1): expected a value, found 'n'"},
        {"nulls", "JSON, byte 4 (line 1, column 5): expected nothing behind the value, found 's'"},
        {"True", "JSON, byte 0 (line 1, column 1): expected a value, found 'T'"},
        {"NaN", "JSON, byte 0 (line 1, column 1): expected a value, found 'N'"},
        {"+1", "JSON, byte 0 (line 1, column 1): expected a value, found '+'"},
        {"01", "JSON, byte 0 (line 1, column 1): a number with a leading zero"},
        {"-00", "JSON, byte 1 (line 1, column 2): a number with a leading zero"},
        {"-", "JSON, byte 1 (line 1, column 2): expected a digit, found the end"},
        {"1.", "JSON, byte 2 (line 1, column 3): expected a digit, found the end"},
        {".5", "JSON, byte 0 (line 1, column 1): expected a value, found '.'"},
        {"1e", "JSON, byte 2 (line 1, column 3): expected a digit, found the end"},
        {"1e+", "JSON, byte 3 (line 1, column 4): expected a digit, found the end"},
        {"0x1", "JSON, byte 1 (line 1, column 2): expected nothing behind the value, found 'x'"},
        {"[1,]", "JSON, byte 3 (line 1, column 4): expected a value, found ']'"},
        {"[1 2]", "JSON, byte 3 (line 1, column 4): expected ',' or ']', found '2'"},
        {"[1}", "JSON, byte 2 (line 1, column 3): expected ',' or ']', found '}'"},
        {"{\"a\":1,}", "JSON, byte 7 (line 1, column 8): expected a key in quotes, found '}'"},
        {"{a:1}", "JSON, byte 1 (line 1, column 2): expected a key in quotes, found 'a'"},
        {"{'a':1}", "JSON, byte 1 (line 1, column 2): expected a key in quotes, found '\\x27'"},
        {"{\"a\" 1}", "JSON, byte 5 (line 1, column 6): expected ':', found '1'"},
        {"{\"a\":}", "JSON, byte 5 (line 1, column 6): expected a value, found '}'"},
        {"{\"a\":1", "JSON, byte 6 (line 1, column 7): expected ',' or '}', found the end"},
        {"[1]\n [2]", "JSON, byte 5 (line 2, column 2): expected nothing behind the value, found '['"},
        {"\"a", "JSON, byte 0 (line 1, column 1): a string without its closing quote"},
        {"\"a\\", "JSON, byte 2 (line 1, column 3): an escape that JSON does not have"},
        {"\"\\x41\"", "JSON, byte 1 (line 1, column 2): an escape that JSON does not have"},
        {"\"\\u12g4\"", "JSON, byte 1 (line 1, column 2): \\u without four hexadecimal digits"},
        {"\"\\u12", "JSON, byte 1 (line 1, column 2): \\u without four hexadecimal digits"},
        {"\"\\ud800\"", "JSON, byte 1 (line 1, column 2): half of a surrogate pair"},
        {"\"\\udc00\"", "JSON, byte 1 (line 1, column 2): half of a surrogate pair"},
        {"\"\\ud800\\ud800\"", "JSON, byte 1 (line 1, column 2): half of a surrogate pair"},
        {"\"\\ud800x\"", "JSON, byte 1 (line 1, column 2): half of a surrogate pair"},
        {"\"a\tb\"", "JSON, byte 2 (line 1, column 3): a control character in a string"},
        {"\"\xc3\xa9\xc3\"", "JSON, byte 3 (line 1, column 3): invalid UTF-8 in a string"},
        {"\"\xed\xa0\x80\"", "JSON, byte 1 (line 1, column 2): invalid UTF-8 in a string"},
        {"[\n\n 1,\f2]", "JSON, byte 6 (line 3, column 4): expected a value, found '\\x0c'"},
        {"{\"a\":1,\n\"a\":2}", "JSON, byte 8 (line 2, column 1): the key 'a' is there twice"},
        {"{\"b\":{\"x\":1,\"y\":2,\"\\u0078\":3}}", "JSON, byte 18 (line 1, column 19): the key 'x' is there twice"},
        {"{\"\\u00e9\":1,\"\xc3\xa9\":2}", "JSON, byte 12 (line 1, column 13): the key '\xc3\xa9' is there twice"},
        {"{\"\\u0000\":1,\"\\u0000\":2}", "JSON, byte 12 (line 1, column 13): the key '\\x00' is there twice"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bert_error err = {0};
        cr_expect_eq(check(rows[i].text, strlen(rows[i].text), &err), BERT_BAD_FILE, "%s", rows[i].text);
        cr_expect_str_eq(err.text, rows[i].message);
        cr_expect_eq(check(rows[i].text, strlen(rows[i].text), NULL), BERT_BAD_FILE);
    }
    bert_error err;
    cr_expect_eq(check("[1,\0002]", 6, &err), BERT_BAD_FILE, "NUL is not white space");
    cr_expect_eq(check("\"a\0b\"", 5, &err), BERT_BAD_FILE, "raw NUL in a string");
}

Test(json, files_are_named_and_may_not_hold_nul) {
    const char *text = "{\"hidden_size\": 8,\n \"act\": \"ge\\u0000lu\"}";
    bert_json root;
    bert_error err;
    cr_expect_eq(bert_json_check(&root, text, strlen(text), &err), BERT_OK);
    cr_expect_eq(bert_json_check_file(&root, text, strlen(text), "config.json", &err), BERT_BAD_FILE);
    cr_expect_str_eq(err.text, "config.json: line 2, column 12: \\u0000 in a string");
}

Test(json, depth_at_most_64) {
    for (int kind = 0; kind < 2; kind++) {
        const char *open = kind ? "{\"k\":" : "[", *close = kind ? "}" : "]";
        for (int depth = 63; depth <= 66; depth++) {
            char text[1024] = "";
            for (int i = 0; i < depth; i++) strcat(text, open);
            strcat(text, "0");
            for (int i = 0; i < depth; i++) strcat(text, close);
            cr_expect_eq(check(text, strlen(text), NULL), depth <= 64 ? BERT_OK : BERT_BAD_FILE, "depth %d", depth);
        }
    }
    char *open = malloc(1000000);
    memset(open, '[', 1000000);
    cr_expect_eq(check(open, 1000000, NULL), BERT_BAD_FILE, "a million brackets must not take a million frames");
    free(open);
}

/* {"KEY":0,…} with n keys made by `write`. */
static char *object_of(size_t n, int (*write)(char *text, size_t i), size_t *len) {
    char *text = malloc(n * 32 + 3);
    *len = 0;
    text[(*len)++] = '{';
    for (size_t i = 0; i < n; i++) {
        *len += (size_t)sprintf(text + *len, "%s\"", i > 0 ? "," : "");
        *len += (size_t)write(text + *len, i);
        *len += (size_t)sprintf(text + *len, "\":0");
    }
    text[(*len)++] = '}';
    return text;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum { MANY = 40000 };

static int numbered(char *text, size_t i) {
    return sprintf(text, "key%zu", i);
}

static int numbered_with_a_twin(char *text, size_t i) {
    return numbered(text, i == MANY - 1 ? MANY / 2 : i);
}

/* Keys whose FNV-1a hashes end in the same 10 bits crowd one place of any table that is indexed with them. */
static int crowded(char *text, size_t i) {
    static size_t next;
    if (i == 0) next = 0;
    for (;; next++) {
        uint64_t hash = 0xcbf29ce484222325u;
        const int n = sprintf(text, "%zx", next);
        for (int k = 0; k < n; k++) hash = (hash ^ (unsigned char)text[k]) * 0x100000001b3u;
        if ((hash & 1023) == 0) break;
    }
    next++;
    return (int)strlen(text);
}

static int crowded_with_a_twin(char *text, size_t i) {
    static char kept[32];
    const int n = crowded(text, i);
    if (i == 77) strcpy(kept, text);
    return i == 3000 ? sprintf(text, "%s", kept) : n;
}

Test(json, many_keys_take_linear_time) {
    static const struct {
        int (*write)(char *text, size_t i);
        size_t n;
        bert_status status;
    } rows[] = {{numbered, MANY, BERT_OK},
                {numbered_with_a_twin, MANY, BERT_BAD_FILE},
                {crowded, 4000, BERT_OK},
                {crowded_with_a_twin, 4000, BERT_BAD_FILE}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len;
        char *text = object_of(rows[i].n, rows[i].write, &len);
        bert_error err = {0};
        const double before = seconds();
        cr_expect_eq(check(text, len, &err), rows[i].status, "row %zu: %s", i, err.text);
        cr_expect_lt(seconds() - before, 3.0, "row %zu: %.2f s", i, seconds() - before); /* quadratic: minutes */
        free(text);
    }
}

/* Different keys of one FNV-1a hash: two that are known for it, and one whose hash is 0, where NULs behind it keep it. */
Test(json, keys_of_one_hash_are_told_apart) {
    static const char few[] = "{\"8yn0iYCKYHlIj4-BwPqk\":0,\"GReLUrM4wMqfg9yzV3KQ\":0,\"77kepQFQ8Kl\\u0000\":0,"
                              "\"77kepQFQ8Kl\":0,\"77kepQFQ8Kl\\u0000\\u0000\":0";
    char text[1024];
    bert_error err = {0};
    strcpy(text, few);
    cr_expect_eq(check(strcat(text, "}"), strlen(few) + 1, &err), BERT_OK, "%s", err.text);
    strcpy(text, few);
    for (int i = 0; i < 20; i++) sprintf(text + strlen(text), ",\"%d\":0", i);
    strcat(text, "}");
    cr_expect_eq(check(text, strlen(text), &err), BERT_OK, "%s", err.text);
    strcpy(text, few);
    strcat(text, ",\"GReLUrM4wMqfg9yzV3KQ\":1}");
    cr_expect_eq(check(text, strlen(text), &err), BERT_BAD_FILE);
    cr_expect_not_null(strstr(err.text, "the key 'GReLUrM4wMqfg9yzV3KQ' is there twice"), "%s", err.text);
}

/* Small objects are compared pair by pair, larger ones through a table: a twin at every place of both. */
Test(json, a_twin_is_found_wherever_it_stands) {
    for (int n = 2; n < 40; n++) {
        for (int first = 0; first < n; first++) {
            for (int second = first + 1; second < n; second++) {
                char text[1024] = "{", expected[64];
                for (int i = 0; i < n; i++) {
                    char member[32];
                    snprintf(member, sizeof member, "%s\"%03d\":0", i > 0 ? "," : "", i == second ? first : i);
                    strcat(text, member);
                }
                strcat(text, "}");
                bert_error err;
                cr_assert_eq(check(text, strlen(text), &err), BERT_BAD_FILE);
                snprintf(expected, sizeof expected, "JSON, byte %d ", 1 + 8 * second);
                cr_assert(strncmp(err.text, expected, strlen(expected)) == 0, "%s, not %s", err.text, expected);
            }
        }
    }
}

/* Walks everything below a value with every view function; returns how many values there were. */
static int walk(bert_json value) {
    char text[512];
    int64_t n;
    double x;
    int b, values = 1;
    bert_json key, item;
    cr_assert_leq(value.len, sizeof text);
    cr_assert_leq(bert_json_string(text, value), value.len);
    bert_json_integer(&n, value, INT64_MIN, INT64_MAX);
    bert_json_number(&x, value);
    bert_json_bool(&b, value);
    bert_json_member(value, "a", &item);
    for (size_t place = 0; bert_json_next(value, &place, &key, &item);) {
        if (value.at[0] == '{') cr_assert(bert_json_string(text, key) < sizeof text);
        values += walk(item);
    }
    return values;
}

static const char sample[] = "{\"a\" : [1, -2.5e3,\"x\\u00e9\\uD83D\\uDE00\\n\"], \"\xc3\xa9\":{\"t\":true,\"n\": null} ,"
                             "\"e\":[ ],\"o\":{},\"f\":false}\n";

/* Every prefix, and every text that differs in one byte: refused, or taken and then safe to walk. */
Test(json, damaged_texts) {
    const size_t len = sizeof sample - 1;
    char *text = malloc(len);
    bert_json root;
    for (size_t cut = 0; cut + 2 <= len; cut++) {
        cr_assert_eq(check(sample, cut, NULL), BERT_BAD_FILE, "cut at %zu", cut);
    }
    int taken = 0;
    for (size_t i = 0; i < len; i++) {
        for (int byte = 0; byte < 256; byte++) {
            memcpy(text, sample, len);
            text[i] = (char)byte;
            if (bert_json_check(&root, text, len, NULL) != BERT_OK) continue;
            cr_assert_geq(walk(root), 1);
            taken++;
        }
    }
    cr_expect_gt(taken, (int)len, "changes inside strings and numbers leave good texts");
    free(text);
}

Test(json, walking) {
    const bert_json root = root_of(sample);
    cr_expect_eq(walk(root), 11);
    static const char *const keys[] = {"a", "\xc3\xa9", "e", "o", "f"};
    static const bert_json_kind kinds[] = {BERT_JSON_ARRAY, BERT_JSON_OBJECT, BERT_JSON_ARRAY, BERT_JSON_OBJECT,
                                           BERT_JSON_FALSE};
    bert_json key, value;
    size_t i = 0;
    for (size_t place = 0; bert_json_next(root, &place, &key, &value); i++) {
        cr_expect(bert_json_equals(key, keys[i]));
        cr_expect_eq(bert_json_kind_of(value), kinds[i]);
    }
    cr_expect_eq(i, 5u);
    cr_expect_eq(bert_json_count(root), 5u);
    cr_assert(bert_json_member(root, "a", &value));
    cr_expect_eq(value.len, strlen("[1, -2.5e3,\"x\\u00e9\\uD83D\\uDE00\\n\"]"));
    cr_expect_eq(bert_json_count(value), 3u);
    cr_expect_not(bert_json_member(root, "b", &value));
    cr_expect_not(bert_json_member(value, "a", &value), "an array has no members");
    size_t place = 0;
    cr_expect_not(bert_json_next(root_of("12"), &place, &key, &value));
}

Test(json, strings) {
    const bert_json value = root_of("\"\\\"\\\\\\/\\b\\f\\n\\r\\t A\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\u0000z\"");
    static const char expected[] = "\"\\/\b\f\n\r\t AA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0z";
    char text[128];
    cr_assert_eq(bert_json_string(text, value), sizeof expected - 1);
    cr_expect_eq(memcmp(text, expected, sizeof expected - 1), 0);
    cr_expect_eq(bert_json_string(text, root_of("12")), 0u);
    char *copy = bert_json_dup(root_of("\"v\\u00e9\""));
    cr_expect_str_eq(copy, "v\xc3\xa9");
    free(copy);
    cr_expect_null(bert_json_dup(root_of("1")));
    cr_expect(bert_json_equals(root_of("\"\\u0061b\""), "ab"));
    cr_expect_not(bert_json_equals(root_of("\"ab\""), "abc"));
    cr_expect_not(bert_json_equals(root_of("\"abc\""), "ab"));
    cr_expect_not(bert_json_equals(root_of("\"\\u0000\""), ""));
    cr_expect_not(bert_json_equals(root_of("\"a\\u0000\""), "a"));
    cr_expect(bert_json_equals(root_of("\"\""), ""));
    cr_expect_not(bert_json_equals(root_of("null"), "null"));
}

Test(json, booleans) {
    int b = 7;
    cr_expect(bert_json_bool(&b, root_of("true")) && b == 1);
    cr_expect(bert_json_bool(&b, root_of("false")) && b == 0);
    b = 7;
    cr_expect(!bert_json_bool(&b, root_of("1")) && !bert_json_bool(&b, root_of("\"true\"")) && b == 7);
}

Test(json, integers_exactly) {
    static const struct {
        const char *text;
        int64_t n, low, high;
        int is;
    } rows[] = {
        {"0", 0, 0, 0, 1},
        {"-1", -1, -1, 0, 1},
        {"9007199254740993", 9007199254740993, 0, INT64_MAX, 1},
        {"9223372036854775807", INT64_MAX, INT64_MIN, INT64_MAX, 1},
        {"-9223372036854775808", INT64_MIN, INT64_MIN, INT64_MAX, 1},
        {"9223372036854775808", 0, INT64_MIN, INT64_MAX, 0},
        {"-9223372036854775809", 0, INT64_MIN, INT64_MAX, 0},
        {"18446744073709551617", 0, INT64_MIN, INT64_MAX, 0},
        {"100000000000000000000000000000000", 0, INT64_MIN, INT64_MAX, 0},
        {"5", 0, 6, 10, 0},
        {"11", 0, 6, 10, 0},
        {"-0", 0, INT64_MIN, INT64_MAX, 0},
        {"1.0", 0, INT64_MIN, INT64_MAX, 0},
        {"1e3", 0, INT64_MIN, INT64_MAX, 0},
        {"\"1\"", 0, INT64_MIN, INT64_MAX, 0},
        {"true", 0, INT64_MIN, INT64_MAX, 0},
        {"null", 0, INT64_MIN, INT64_MAX, 0},
        {"[]", 0, INT64_MIN, INT64_MAX, 0},
        {"{}", 0, INT64_MIN, INT64_MAX, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t n = 42;
        cr_expect_eq(bert_json_integer(&n, root_of(rows[i].text), rows[i].low, rows[i].high), rows[i].is, "%s",
                     rows[i].text);
        cr_expect_eq(n, rows[i].is ? rows[i].n : 42, "%s", rows[i].text);
    }
}

static void expect_numbers(const char *where) {
    static const struct {
        const char *text;
        double x;
    } rows[] = {
        {"0", 0.0},
        {"1e-12", 0x1.19799812dea11p-40},
        {"-2.5e3", -2500.0},
        {"0.1", 0x1.999999999999ap-4},
        {"9007199254740993", 9007199254740992.0},
        {"9007199254740995", 9007199254740996.0},
        {"1e23", 0x1.52d02c7e14af6p76},
        {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022},
        {"5e-324", 0x1p-1074},
        {"2e-324", 0.0},
        {"1.7976931348623157e308", DBL_MAX},
        {"1e400", HUGE_VAL},
        {"0.500000000000000166533453693773481063544750213623046875", 0x1.0000000000002p-1}, /* a tie, to even */
        {"0.50000000000000005551115123125782702118158340454101562500000000000000000", 0x1p-1}, /* a tie again */
        {"0.50000000000000005551115123125782702118158340454101562500000000000000001", 0x1.0000000000001p-1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double x = 42.0;
        cr_assert(bert_json_number(&x, root_of(rows[i].text)), "%s", rows[i].text);
        cr_expect_eq(x, rows[i].x, "%s: %s is %a, not %a", where, rows[i].text, x, rows[i].x);
    }
}

Test(json, numbers_whatever_the_host_does) {
    double x = 42.0;
    cr_expect_not(bert_json_number(&x, root_of("\"1\"")));
    cr_expect_not(bert_json_number(&x, root_of("[1]")));
    cr_expect_eq(x, 42.0);
    cr_expect(bert_json_number(&x, root_of("-0")) && x == 0.0 && signbit(x));
    expect_numbers("default");
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < 3; i++) {
        fesetround(modes[i]);
        expect_numbers("rounding mode");
        fesetround(FE_TONEAREST);
    }
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8", "ru_RU.UTF-8"};
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        if (setlocale(LC_NUMERIC, locales[i]) != NULL) expect_numbers(locales[i]);
    }
}
