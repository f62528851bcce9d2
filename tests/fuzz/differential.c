/* Any bytes as a container: the library's verdict and that of a second reading of the rules are the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <bert/safetensors.h>

#include "second_reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const bert_file memory = {"fuzz", bytes, size};
    bert_safetensors *file;
    bert_error err = {BERT_OK, "accepted"};
    const bool accepted = bert_safetensors_open_memory(&file, &memory, &err) == BERT_OK;
    bert_safetensors_close(&file);
    if (accepted != second_reading_accepts(bytes, size)) {
        fprintf(stderr, "the library: %s; the second reading: %s\n", err.text, accepted ? "refused" : "accepted");
        abort();
    }
    return 0;
}
