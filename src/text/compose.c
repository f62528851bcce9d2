/* text/compose.c: the only file that includes utf8proc.h. utf8proc 2.8 has Unicode 15.0, HF's tokenizers have 9.0 here:
 * canonical compositions newer than that are left out (they are the ones that our own table does not decompose);
 * compatibility decompositions of characters that are newer than 9.0 are as in 15.0. */
#include "text/compose.h"

#include <utf8proc.h>

#include "text/unicode.h"

unsigned bert_compat_decompose(uint32_t parts[BERT_NFKD_MOST], uint32_t c) {
    utf8proc_int32_t found[BERT_NFKD_MOST];
    int boundary = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, found, BERT_NFKD_MOST,
                                                       UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &boundary);
    if (n < 1 || n > BERT_NFKD_MOST) return bert_char_nfd(parts, c, bert_char_of(c));
    for (utf8proc_ssize_t i = 0; i < n; i++) parts[i] = (uint32_t)found[i];
    return (unsigned)n;
}

bool bert_compose_pair(uint32_t *whole, uint32_t a, uint32_t b) {
    utf8proc_int32_t pair[2] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b};
    if (a < 0x80 && b < 0x80) return false;
    if (utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) != 1) return false;
    *whole = (uint32_t)pair[0];
    return bert_char_of(*whole)->nfd_len > 0 || bert_char_of(*whole)->flags & BERT_CHAR_HANGUL;
}
