/* Floats as text: each reads back to the same float, and is not longer than it has to be. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

static void print(char text[NUMBER_ROOM + 1], float x) {
    text[number_print(text, x)] = '\0';
}

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Digits of the mantissa without leading and trailing zeros. */
static size_t digits(const char *text) {
    char all[NUMBER_ROOM + 1];
    size_t n = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (n || *text != '0')) all[n++] = *text;
    while (n && all[n - 1] == '0') n--;
    return n;
}

Test(number, spelling) {
    static const struct {
        float x;
        const char *text;
    } cases[] = {{0, "0"},
                 {-0.0f, "-0"},
                 {1, "1"},
                 {-2.5f, "-2.5"},
                 {0.1f, "0.1"},
                 {100, "100"},
                 {16777216, "16777216"},
                 {1e9f, "1e9"},
                 {0.00001f, "0.00001"},
                 {1e-6f, "1e-6"},
                 {1.5e-7f, "1.5e-7"},
                 {1e-45f, "1e-45"},
                 {1.17549435e-38f, "1.1754944e-38"},
                 {3.4028235e38f, "3.4028235e38"},
                 {INFINITY, "null"},
                 {NAN, "null"}};
    char text[NUMBER_ROOM + 1];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print(text, cases[i].x);
        cr_expect_str_eq(text, cases[i].text);
    }
}

Test(number, integers) {
    static const int64_t cases[] = {0, 7, -7, 10, 99, 100, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    char text[NUMBER_ROOM + 1], wanted[NUMBER_ROOM + 1];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text[number_print_integer(text, cases[i])] = '\0';
        snprintf(wanted, sizeof wanted, "%lld", (long long)cases[i]);
        cr_expect_str_eq(text, wanted);
    }
}

/* A prime step visits every exponent with many mantissas. */
Test(number, reads_back) {
    char text[NUMBER_ROOM + 1];
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 6007) {
        float x = from_bits((uint32_t)bits);
        if (!isfinite(x)) continue;
        print(text, x);
        float y = strtof(text, NULL);
        cr_assert(memcmp(&x, &y, sizeof x) == 0, "%s for %.9g", text, (double)x);
    }
}

/* Against printf with ever more digits. What is exactly halfway between two floats is not used: a few are longer. */
Test(number, is_short) {
    char text[NUMBER_ROOM + 1], other[40];
    size_t longer = 0, count = 0;
    for (uint64_t bits = 1; bits <= UINT32_MAX; bits += 100003, count++) {
        float x = from_bits((uint32_t)bits);
        int n = 1;
        if (!isfinite(x)) continue;
        do snprintf(other, sizeof other, "%.*e", n - 1, (double)x);
        while (strtof(other, NULL) != x && ++n < 9);
        print(text, x);
        longer += digits(text) > (size_t)n;
    }
    cr_assert_lt(longer * 200, count, "%zu of %zu are longer", longer, count);
}
