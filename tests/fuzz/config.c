/* Any bytes as config.json beside weights that fit the usual one: refused with one line that names the file, or the
 * model runs, and a second time with the same bits. */
#include <stdlib.h>
#include <string.h>

#include "tiny_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned char weights[TINY_WEIGHTS];
    static size_t n;
    if (n == 0) n = tiny_weights(weights);
    const bert_file files[] = {{"config.json", data, size}, {"model.safetensors", weights, n}};
    tiny_run(files, 2);
    return 0;
}
