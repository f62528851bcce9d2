#include "file/dtype.h"

#include <string.h>

#include "base/fpenv.h"

/* Converted with memcpy and shifts as the file has them. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors are little-endian, and so must the host be");
_Static_assert(sizeof(size_t) == 8, "offsets in weights and products of 64-bit numbers want a 64-bit host");

static const struct {
    const char *name;
    unsigned bits;
} types[] = {
    [BERT_BOOL] = {"BOOL", 8},
    [BERT_F4] = {"F4", 4},
    [BERT_F6_E2M3] = {"F6_E2M3", 6},
    [BERT_F6_E3M2] = {"F6_E3M2", 6},
    [BERT_U8] = {"U8", 8},
    [BERT_I8] = {"I8", 8},
    [BERT_F8_E5M2] = {"F8_E5M2", 8},
    [BERT_F8_E4M3] = {"F8_E4M3", 8},
    [BERT_F8_E8M0] = {"F8_E8M0", 8},
    [BERT_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [BERT_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [BERT_I16] = {"I16", 16},
    [BERT_U16] = {"U16", 16},
    [BERT_F16] = {"F16", 16},
    [BERT_BF16] = {"BF16", 16},
    [BERT_I32] = {"I32", 32},
    [BERT_U32] = {"U32", 32},
    [BERT_F32] = {"F32", 32},
    [BERT_C64] = {"C64", 64},
    [BERT_F64] = {"F64", 64},
    [BERT_I64] = {"I64", 64},
    [BERT_U64] = {"U64", 64},
};
enum { TYPES = sizeof types / sizeof types[0] };

const char *bert_dtype_name(bert_dtype dtype) {
    return (unsigned)dtype < TYPES ? types[dtype].name : "?";
}

unsigned bert_dtype_bits(bert_dtype dtype) {
    return types[dtype].bits;
}

int bert_dtype_parse(bert_dtype *dtype, bert_json name) {
    for (int i = 0; i < TYPES; i++) {
        if (bert_json_equals(name, types[i].name)) {
            *dtype = (bert_dtype)i;
            return 1;
        }
    }
    return 0;
}

bool bert_dtype_is_float(bert_dtype dtype) {
    return dtype == BERT_F16 || dtype == BERT_BF16 || dtype == BERT_F32 || dtype == BERT_F64;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* All ones if the condition holds: selecting by mask keeps the loop free of branches, so that it becomes vectors. */
static uint32_t mask_of(bool condition) {
    return -(uint32_t)condition;
}

/* The 15 bits below the sign move up by 13: 10 bits of fraction become 23. The exponent's bias grows by 127 - 15; that
 * of infinity and NaN (31) by as much again, to 255. Subnormals m·2^-24 are had as (2^-14 + m·2^-24) - 2^-14, which
 * is exact and meets no float subnormal on the way. */
static uint32_t f16_bits(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t exponent = half & 0x7c00, moved = (uint32_t)(half & 0x7fff) << 13;
    const uint32_t rebias = (uint32_t)(127 - 15) << 23, smallest = (uint32_t)(127 - 14) << 23;
    const uint32_t subnormal = bits_of(float_of(moved + smallest) - float_of(smallest));
    const uint32_t normal = moved + rebias + (rebias & mask_of(exponent == 0x7c00));
    const uint32_t is_subnormal = mask_of(exponent == 0);
    return sign | (subnormal & is_subnormal) | (normal & ~is_subnormal);
}

static void from_f16(float *x, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        const uint32_t bits = f16_bits(half);
        memcpy(x + i, &bits, sizeof bits);
    }
}

static void from_bf16(float *x, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t high;
        memcpy(&high, bytes + 2 * i, sizeof high);
        const uint32_t bits = (uint32_t)high << 16;
        memcpy(x + i, &bits, sizeof bits);
    }
}

static void from_f64(float *x, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double d;
        memcpy(&d, bytes + 8 * i, sizeof d);
        x[i] = (float)d;
    }
}

void bert_dtype_to_f32(float *x, const void *bytes, bert_dtype dtype, size_t n) {
    const uint64_t host = bert_fpenv_enter();
    switch (dtype) {
    case BERT_F16: from_f16(x, bytes, n); break;
    case BERT_BF16: from_bf16(x, bytes, n); break;
    case BERT_F64: from_f64(x, bytes, n); break;
    case BERT_F32: memcpy(x, bytes, n * sizeof *x); break;
    default: break;
    }
    bert_fpenv_leave(host);
}
