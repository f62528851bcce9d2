#include "number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How it works. A float has 24 bits, so the points halfway to its two neighbours are exact doubles, and every decimal
 * strictly between them reads back to the float. All three are scaled by a power of ten so that x has nine digits
 * before the point; then as many of them are dropped as the interval allows. Scaling costs at most two roundings
 * (2^-52 relative), the interval is at least 2^-25 wide on either side: decimals closer than 2^-50 to its ends are
 * not used (nor are those exactly halfway, though half of them would do: such numbers come out longer), and nine
 * digits always lie inside (their error is below 2^-27). */

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
                                1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27,
                                1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41,
                                1e42, 1e43, 1e44, 1e45, 1e46, 1e47, 1e48, 1e49, 1e50, 1e51, 1e52, 1e53, 1e54};

static double scale(double x, int power) {
    return power >= 0 ? x * powers[power] : x / powers[-power];
}

/* The power of ten that brings x > 0 into [1e8, 1e9). */
static int nine_digits(double x) {
    int binary;
    frexp(x, &binary);                                  /* x in [2^(binary-1), 2^binary) */
    int power = 8 - (int)floor((binary - 1) * 0.30103); /* log10(2); right or one too large */
    return scale(x, power) >= 1e9 ? power - 1 : power;
}

/* The float `steps` away from x > 0 in the order of floats, as a double; beyond the largest float: where the next one
 * would be. */
static double neighbour(float x, int steps) {
    uint32_t bits;
    float other;
    memcpy(&bits, &x, sizeof bits);
    bits += (uint32_t)steps;
    memcpy(&other, &bits, sizeof other);
    return isinf(other) ? 2.0 * x - neighbour(x, -steps) : other;
}

/* The shortest digits of x > 0: x ≈ digits × 10^*exponent. */
static uint32_t shortest(float x, int *exponent) {
    int power = nine_digits(x);
    double middle = scale(x, power);
    double low = scale((x + neighbour(x, -1)) / 2, power) * (1 + 0x1p-50);
    double high = scale((x + neighbour(x, 1)) / 2, power) * (1 - 0x1p-50);
    uint32_t digits = (uint32_t)(middle + 0.5);
    *exponent = -power;
    double wider = 1;
    for (int cut = 1; cut <= 9; cut++) {
        wider *= 10;
        uint32_t fewer = (uint32_t)(middle / wider + 0.5);
        if (fewer * wider <= low || fewer * wider >= high) break;
        digits = fewer;
        ++*exponent;
    }
    return digits;
}

static size_t print_digits(char *text, uint64_t n) {
    char reversed[20];
    size_t length = 0;
    do reversed[length++] = (char)('0' + n % 10);
    while (n /= 10);
    for (size_t i = 0; i < length; i++) text[i] = reversed[length - 1 - i];
    return length;
}

/* "d.ddde-7" */
static size_t print_scientific(char *text, const char *digits, size_t n, int exponent) {
    char *at = text;
    *at++ = digits[0];
    if (n > 1) {
        *at++ = '.';
        memcpy(at, digits + 1, n - 1);
        at += n - 1;
    }
    *at++ = 'e';
    if (exponent < 0) *at++ = '-';
    at += print_digits(at, (uint32_t)abs(exponent));
    return (size_t)(at - text);
}

/* Digits with the point behind the first `whole` of them (whole <= 0: behind zeros). */
static size_t print_plain(char *text, const char *digits, int n, int whole) {
    char *at = text;
    if (whole <= 0) {
        *at++ = '0';
        *at++ = '.';
        for (int i = whole; i < 0; i++) *at++ = '0';
    }
    for (int i = 0; i < n || i < whole; i++) {
        if (i > 0 && i == whole) *at++ = '.';
        *at++ = i < n ? digits[i] : '0';
    }
    return (size_t)(at - text);
}

size_t number_print(char text[NUMBER_ROOM], float x) {
    char digits[10], *at = text;
    if (!isfinite(x)) return (size_t)((char *)memcpy(text, "null", 4) - text) + 4;
    if (signbit(x)) *at++ = '-';
    if (x == 0) {
        *at++ = '0';
        return (size_t)(at - text);
    }
    int exponent;
    size_t n = print_digits(digits, shortest(fabsf(x), &exponent));
    int whole = (int)n + exponent; /* digits before the point */
    if (whole > -5 && whole <= 9)
        at += print_plain(at, digits, (int)n, whole);
    else
        at += print_scientific(at, digits, n, whole - 1);
    return (size_t)(at - text);
}

size_t number_print_integer(char text[NUMBER_ROOM], int64_t x) {
    if (x >= 0) return print_digits(text, (uint64_t)x);
    text[0] = '-';
    return 1 + print_digits(text + 1, -(uint64_t)x);
}
