/* text/load_vocab.c: vocab.txt: one token a line, the id is the line's number from 0. As in HF white space at the end
 * of a line does not count; a blank line is a token like any other, and of equal lines the last one has the id. */
#include "text/loader.h"

#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/unicode.h"

static size_t trimmed(const char *line, size_t n) {
    while (n > 0) {
        uint32_t c;
        const size_t before = bert_utf8_before(&c, (const uint8_t *)line, n);
        if (!(bert_char_of(c)->flags & BERT_CHAR_SPACE)) break;
        n = before;
    }
    return n;
}

static bert_status check_text(bert_loader *loader, const char *text, size_t len) {
    const size_t valid = bert_utf8_valid((const uint8_t *)text, len);
    if (valid < len)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: byte %zu is not valid UTF-8", loader->file, valid);
    const char *nul = memchr(text, '\0', len);
    if (nul != NULL)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: byte %zu is NUL", loader->file, (size_t)(nul - text));
    return BERT_OK;
}

bert_status bert_load_vocab(bert_loader *loader, const char *text, size_t len) {
    const char *end = text + len;
    TRY(check_text(loader, text, len));
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        TRY(bert_load_differs(loader, "%s: a byte-order mark at its beginning was skipped", loader->file));
    }
    if (!bert_vocab_reserve(&loader->z->vocab, len / 8, len)) return bert_load_no_memory(loader);
    for (int32_t id = 0; text < end; id++) {
        const char *lf = memchr(text, '\n', (size_t)(end - text));
        const size_t n = (size_t)((lf != NULL ? lf : end) - text);
        if (!bert_vocab_add(&loader->z->vocab, id, text, trimmed(text, n)))
            return bert_fail(loader->err, BERT_NO_MEMORY, "%s: no memory for its tokens", loader->file);
        text += lf != NULL ? n + 1 : n;
    }
    return BERT_OK;
}
