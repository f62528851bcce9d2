#include "page_code.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json_out.h"

static unsigned char code_of(float w) {
    return w > 0 ? (unsigned char)lroundf(255 * sqrtf(fminf(w, 1))) : 0;
}

static void put_u16(buffer *b, size_t x) {
    buffer_byte(b, (char)(x & 0xFF));
    buffer_byte(b, (char)(x >> 8));
}

/* The lowest code that is kept when at most `keep` are, and how many of that very code are. */
static unsigned lowest_code(const unsigned char *codes, size_t T, size_t keep, size_t *of_lowest) {
    size_t count[256] = {0}, kept = 0;
    unsigned c = 255;
    for (size_t j = 0; j < T; j++) count[codes[j]]++;
    while (c > 1 && kept + count[c] <= keep) kept += count[c--];
    *of_lowest = keep - kept;
    return c;
}

static void add_thin_row(buffer *b, const float *w, const unsigned char *codes, size_t T, const thinning *thin) {
    size_t of_lowest, n = 0, head = b->len;
    unsigned lowest = lowest_code(codes, T, thin->keep && thin->keep < T ? thin->keep : T, &of_lowest);
    put_u16(b, 0);
    for (size_t j = 0; j < T; j++) {
        if (codes[j] < lowest || codes[j] == 0 || (double)w[j] < thin->min_weight) continue;
        if (codes[j] == lowest && of_lowest-- == 0) {
            of_lowest = 0;
            continue;
        }
        put_u16(b, j);
        buffer_byte(b, (char)codes[j]);
        n++;
    }
    b->data[head] = (char)(n & 0xFF);
    b->data[head + 1] = (char)(n >> 8);
}

void page_code_weights(buffer *b, const float *w, size_t rows, size_t T, const thinning *thin) {
    unsigned char *codes = need(T, 1);
    int dense = !thin->keep && thin->min_weight <= 0;
    for (size_t i = 0; i < rows; i++, w += T) {
        for (size_t j = 0; j < T; j++) codes[j] = code_of(w[j]);
        if (dense)
            buffer_add(b, codes, T);
        else
            add_thin_row(b, w, codes, T, thin);
    }
    free(codes);
}

void page_code_rows(buffer *b, const float *x, size_t rows, size_t D) {
    for (size_t i = 0; i < rows; i++, x += D) {
        float most = 0;
        for (size_t d = 0; d < D; d++) most = fmaxf(most, fabsf(x[d]));
        float scale = most > 0 ? most / 127 : 1;
        buffer_add(b, &scale, sizeof scale);
        for (size_t d = 0; d < D; d++) buffer_byte(b, (char)lrintf(x[d] / scale));
    }
}

static void add_text(buffer *b, const char *key, const char *s, size_t n) {
    json_key(b, key);
    json_string(b, s, n);
}

void page_code_model(buffer *b, const facts *known) {
    size_t end = strlen(known->model);
    while (end > 1 && known->model[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && known->model[begin - 1] != '/') begin--;
    add_text(b, "model", known->model + begin, end - begin);
    add_text(b, "numerics", known->numerics, strlen(known->numerics));
    add_text(b, "weights_hash", known->weights_hash, strlen(known->weights_hash));
}

/* `<` stands only inside strings in JSON, and without it nothing can end the element. */
void page_code_facts(buffer *b, const buffer *json) {
    buffer_text(b, "<script type=\"application/json\" id=\"facts\">");
    for (size_t i = 0; i < json->len; i++)
        if (json->data[i] == '<')
            buffer_text(b, "\\u003c");
        else
            buffer_byte(b, json->data[i]);
    buffer_text(b, "</script>\n");
}

void page_code_base64(buffer *b, const void *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = bytes;
    char *out = buffer_reserve(b, (n + 2) / 3 * 4), *first = out;
    for (; n > 0; at += 3) {
        size_t k = n < 3 ? n : 3;
        uint32_t three = (uint32_t)at[0] << 16 | (k > 1 ? (uint32_t)at[1] << 8 : 0) | (k > 2 ? at[2] : 0U);
        for (size_t i = 0; i < 4; i++) *out++ = i <= k ? digits[three >> (18 - 6 * i) & 63] : '=';
        n -= k;
    }
    b->len += (size_t)(out - first);
}

void page_code_statistics(const float *w, size_t T, double *entropy, double *distance) {
    double e = 0, d = 0;
    for (size_t i = 0; i < T; i++)
        for (size_t j = 0; j < T; j++) {
            double x = (double)w[i * T + j];
            if (x > 0) e -= x * log(x);
            d += x * (double)(i > j ? i - j : j - i);
        }
    *entropy = e / (double)T;
    *distance = d / (double)T;
}
