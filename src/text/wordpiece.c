/* text/wordpiece.c: a word to pieces, greedily: the longest vocabulary entry from the left, again and again (Schuster
 * and Nakajima 2012; as in BERT one place without an entry makes the whole word unknown). */
#include "base/utf8.h"
#include "text/tokenizer.h"

/* Length of the longest entry at text[0, n), 0 if there is none; *id is its id. Most lengths are not in the filter. */
static size_t longest(const bert_vocab *vocab, const bert_vocab_table *table, const uint8_t *text, size_t n,
                      int32_t *id) {
    uint64_t states[BERT_WORDPIECE_LONGEST / 8]; /* of the hash, in front of each block of 8 bytes */
    if (n > table->longest) {
        n = table->longest;
        while (n > 0 && !bert_utf8_begins(text[n])) n--;
    }
    states[0] = table->seed;
    for (size_t i = 0; i < bert_vocab_last(n) / 8; i++)
        states[i + 1] = bert_vocab_block(table, states[i], bert_load64(text + 8 * i));
    while (n > 0) {
        const size_t last = bert_vocab_last(n);
        const uint64_t head = bert_vocab_word(text, n);
        const uint64_t hash = bert_vocab_end(table, states[last / 8], bert_vocab_word(text + last, n - last), n);
        if (bert_vocab_may_have(table, hash) && (*id = bert_vocab_search(vocab, table, text, n, head, hash)) >= 0)
            return n;
        do n--;
        while (n > 0 && !bert_utf8_begins(text[n]));
    }
    return 0;
}

bool bert_wordpiece_split(bert_columns *out, const bert_vocab *vocab, const uint8_t *text, size_t n, int32_t word) {
    const bert_vocab_table *table = &vocab->first;
    const size_t before = out->n;
    for (size_t at = 0, len; at < n; at += len) {
        int32_t id = -1;
        len = longest(vocab, table, text + at, n - at, &id);
        if (len == 0) return out->n = before, false;
        bert_columns_push(out, id, (uint32_t)at, (uint32_t)(at + len), word);
        table = &vocab->rest;
    }
    return true;
}

bool bert_wordpiece(bert_tokens *tokens, const bert_tokenizer *z) {
    bert_word *word = &tokens->word;
    bert_columns *out = &tokens->out;
    const bool kept = word->chars <= z->max_chars;
    if (!bert_tokens_reserve(tokens, kept ? word->n + 1 : 1)) return false;
    const size_t before = out->n;
    const int32_t index = tokens->next_word++;
    bool known = false;
    if (z->word_level) {
        const int32_t id = bert_vocab_look(&z->vocab, &z->vocab.first, word->bytes, word->n);
        if (id >= 0) bert_columns_push(out, id, 0, (uint32_t)word->n, index);
        known = id >= 0;
    } else if (kept) {
        known = bert_wordpiece_split(out, &z->vocab, word->bytes, word->n, index);
    }
    if (!known) bert_columns_push(out, z->unk, word->first, word->last, index);
    for (size_t i = before; known && i < out->n; i++) {
        bert_span *span = &out->offsets[i];
        *span = (bert_span){word->start[span->start], word->end[span->end - 1]};
    }
    return true;
}
