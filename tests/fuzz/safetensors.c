/* Any bytes as a container: refused with one line, or every tensor lies inside them and can be read. */
#include <stdlib.h>
#include <string.h>

#include <bert/safetensors.h>

static void read_some(const bert_safetensors *file, const bert_tensor_info *tensor, size_t size) {
    float x[64];
    bert_error err;
    const size_t n = tensor->count < 64 ? tensor->count : 64;
    if (tensor->offset > size || tensor->bytes > size - tensor->offset) abort();
    if (bert_safetensors_find(file, tensor->name) != tensor) abort();
    const bert_status status = bert_safetensors_read_f32(file, tensor, tensor->count - n, x, n, &err);
    if (status != BERT_OK && status != BERT_UNSUPPORTED) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const bert_file memory = {"fuzz", bytes, size};
    bert_safetensors *file;
    bert_error err = {0};
    if (bert_safetensors_open_memory(&file, &memory, &err) != BERT_OK) {
        if (file != NULL || err.text[0] == '\0' || strchr(err.text, '\n') != NULL) abort();
        return 0;
    }
    for (size_t i = 0; i < bert_safetensors_count(file); i++) read_some(file, bert_safetensors_at(file, i), size);
    bert_safetensors_close(&file);
    return 0;
}
