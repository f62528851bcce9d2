/* fuzz/second_reading.h: is this a safetensors container? Answered a second time, by code that shares nothing with the
 * library's: written from the format's rules alone, over a tree, with loops that may be quadratic. */
#ifndef BERT_FUZZ_SECOND_READING_H
#define BERT_FUZZ_SECOND_READING_H

#include <stdbool.h>
#include <stddef.h>

bool second_reading_accepts(const unsigned char *bytes, size_t size);

#endif
