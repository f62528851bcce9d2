/* Any bytes as the head of a request: what is taken ends where it says, holds nothing that a line could hide behind, and
 * is judged the same whatever follows; every part of it is a part. */
#include <stdlib.h>
#include <string.h>

#include "head.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const char *text = (const char *)bytes, *why;
    head h, again;
    int status = head_check(&h, text, size, &why);
    if (status == HEAD_PART || status >= 400) return 0;
    if (status != HEAD_GOOD || h.size > size || h.size < 4 || memcmp(text + h.size - 4, "\r\n\r\n", 4) != 0) abort();
    for (size_t i = 0; i < h.size; i++)
        if (text[i] == 0 || (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) || (text[i] == '\r' && text[i + 1] != '\n'))
            abort();
    for (size_t n = 0; n < h.size; n++)
        if (head_check(&again, text, n, &why) != HEAD_PART) abort();
    if (head_check(&again, text, h.size, &why) || again.size != h.size || again.length != h.length) abort();
    return 0;
}
