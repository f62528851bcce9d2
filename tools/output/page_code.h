/* output/page_code.h: numbers as the page of attention carries them: bytes, base64. tools/page/data.js reads them. */
#ifndef PAGE_CODE_H
#define PAGE_CODE_H

#include "output/writer.h"

/* Which weights of a row are kept: the `keep` largest (0: all) of at least `min_weight`. */
typedef struct thinning {
    size_t keep;
    double min_weight;
} thinning;

/* A weight is the byte c = round(255·√w): (c/255)² is within 1/255 of w, and small weights keep their size.
 * rows × T bytes; thinned, each row is instead u16 count, then count × { u16 column, u8 c }, little-endian. */
void page_code_weights(buffer *b, const float *w, size_t rows, size_t T, const thinning *thin);

/* Rows of D values: float32 scale, then D signed bytes v; the value is v·scale. */
void page_code_rows(buffer *b, const float *x, size_t rows, size_t D);

/* Members of a JSON object: the model's name, and revision and hash of what the numbers come from. */
void page_code_model(buffer *b, const facts *known);

/* JSON as the page's script element `facts`. */
void page_code_facts(buffer *b, const buffer *json);

void page_code_base64(buffer *b, const void *bytes, size_t n);

/* Of one head's map w [T, T], means over its rows: -Σ w ln w (nats), and Σ w·|i-j| (tokens). */
void page_code_statistics(const float *w, size_t T, double *entropy, double *distance);

#endif
