/* Conversions to float32, every pattern of the 16-bit types, against arithmetic that knows no bits: sign, exponent and
 * fraction by division, the value by ldexp. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "file/dtype.h"

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* A 16-bit float with e bits of exponent, as a double. */
static double value_of(unsigned pattern, unsigned exponent_bits) {
    const unsigned fraction_size = 1u << (15 - exponent_bits), exponents = 1u << exponent_bits;
    const unsigned fraction = pattern % fraction_size, exponent = pattern / fraction_size % exponents;
    const int bias = (int)exponents / 2 - 1;
    const double sign = pattern >= 0x8000 ? -1.0 : 1.0;
    if (exponent == exponents - 1) return fraction ? (double)NAN : sign * HUGE_VAL;
    if (exponent == 0) return sign * ldexp((double)fraction / fraction_size, 1 - bias);
    return sign * ldexp(1.0 + (double)fraction / fraction_size, (int)exponent - bias);
}

static void all_patterns(bert_dtype dtype, unsigned exponent_bits) {
    static unsigned char bytes[2 * 65536 + 1];
    static float x[65536];
    for (unsigned i = 0; i < 65536; i++) {
        bytes[2 * i + 1] = (unsigned char)i; /* at an odd address, little-endian */
        bytes[2 * i + 2] = (unsigned char)(i >> 8);
    }
    bert_dtype_to_f32(x, bytes + 1, dtype, 65536);
    for (unsigned i = 0; i < 65536; i++) {
        const double expected = value_of(i, exponent_bits);
        if (isnan(expected)) {
            cr_assert(isnan(x[i]) && !signbit(x[i]) == (i < 0x8000), "%04x", i);
            const unsigned fraction = i % (1u << (15 - exponent_bits));
            cr_assert_eq(bits_of(x[i]) & 0x7fffff, fraction << (8 + exponent_bits), "%04x: the payload", i);
        } else {
            cr_assert((double)x[i] == expected && !signbit(x[i]) == (i < 0x8000), "%04x: %a, not %a", i, (double)x[i],
                      expected);
        }
    }
}

Test(dtype, f16_every_pattern) {
    all_patterns(BERT_F16, 5);
}

Test(dtype, bf16_every_pattern) {
    all_patterns(BERT_BF16, 8);
}

static void check_f64(const char *where) {
    static const struct {
        double from;
        float to;
    } rows[] = {
        {0.0, 0.0f},
        {-0.0, -0.0f},
        {1.0, 1.0f},
        {0x1.000001p0, 1.0f},                         /* a tie: to even, down */
        {0x1.000003p0, 0x1.000004p0f},                /* a tie: to even, up */
        {0x1.0000010000001p0, 0x1.000002p0f},         /* a little above the tie */
        {-0x1.0000010000001p0, -0x1.000002p0f},
        {FLT_MAX, FLT_MAX},
        {0x1.fffffefffffffp127, FLT_MAX},
        {0x1.ffffffp127, HUGE_VALF},                  /* a tie beyond the largest */
        {-1e300, -HUGE_VALF},
        {0x1p-126, 0x1p-126f},
        {0x1p-149, 0x1p-149f},
        {0x1.8p-149, 0x1p-148f},                      /* a tie among subnormals */
        {0x1p-150, 0.0f},
        {0x1.0000000000001p-150, 0x1p-149f},
        {-1e-320, -0.0f},
        {HUGE_VAL, HUGE_VALF},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bytes[9];
        float x;
        memcpy(bytes + 1, &rows[i].from, 8);
        bert_dtype_to_f32(&x, bytes + 1, BERT_F64, 1);
        cr_expect_eq(bits_of(x), bits_of(rows[i].to), "%s: %a gave %a", where, rows[i].from, (double)x);
    }
}

Test(dtype, f64_to_nearest_even_whatever_the_host_does) {
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < 4; i++) {
        fesetround(modes[i]);
        check_f64("rounding mode");
        all_patterns(BERT_F16, 5);
        fesetround(FE_TONEAREST);
    }
    float x;
    const double nan = (double)NAN;
    bert_dtype_to_f32(&x, &nan, BERT_F64, 1);
    cr_expect(isnan(x));
}

Test(dtype, f32_byte_for_byte) {
    static const unsigned char bytes[] = {0xee, 0x01, 0x00, 0x80, 0xff, 0x78, 0x56, 0x34, 0x12};
    float x[2];
    bert_dtype_to_f32(x, bytes + 1, BERT_F32, 2);
    cr_expect_eq(memcmp(x, bytes + 1, 8), 0);
}

/* What is no floating-point type is none to it either. */
Test(dtype, other_types_are_left_alone) {
    float x = 2;
    bert_dtype_to_f32(&x, "\1\0\0\0", BERT_I32, 1);
    cr_expect_eq(x, 2);
}

Test(dtype, names_and_widths) {
    static const struct {
        const char *name;
        unsigned bits;
    } rows[] = {{"BOOL", 8}, {"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8}, {"I8", 8}, {"F8_E5M2", 8},
                {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16}, {"U16", 16},
                {"F16", 16}, {"BF16", 16}, {"I32", 32}, {"U32", 32}, {"F32", 32}, {"C64", 64}, {"F64", 64}, {"I64", 64},
                {"U64", 64}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char quoted[32];
        bert_dtype dtype;
        const int n = snprintf(quoted, sizeof quoted, "\"%s\"", rows[i].name);
        cr_assert(bert_dtype_parse(&dtype, (bert_json){quoted, (size_t)n}), "%s", rows[i].name);
        cr_expect_str_eq(bert_dtype_name(dtype), rows[i].name);
        cr_expect_eq(bert_dtype_bits(dtype), rows[i].bits);
    }
    bert_dtype dtype = BERT_U64;
    static const char *const wrong[] = {"\"f32\"", "\"F32 \"", "\"\"", "\"F3\"", "\"F322\"", "\"F32\\u0000\"", "32"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_expect_not(bert_dtype_parse(&dtype, (bert_json){wrong[i], strlen(wrong[i])}), "%s", wrong[i]);
    }
    cr_expect_eq(dtype, BERT_U64);
    cr_expect_str_eq(bert_dtype_name((bert_dtype)99), "?");
}
