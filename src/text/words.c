/* text/words.c: BERT's normalizer, pre-tokenizer and WordPiece in one pass over the text.
 *
 * Most words are ASCII: their extent comes from one table, their lowercase from another, and they are looked up as
 * they are. As soon as a word has another character in it, it is put together one character at a time (bert_word). */
#include "base/utf8.h"
#include "text/ascii.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

typedef struct pass {
    bert_tokens *tokens;
    const bert_tokenizer *z;
    const uint8_t *text;
    size_t begin, end;
    bool failed;
} pass;

static void end_word(pass *p) {
    bert_word *word = &p->tokens->word;
    if (word->chars == 0) return;
    p->failed |= !bert_wordpiece(p->tokens, p->z);
    word->n = word->chars = 0;
}

/* Joins a character to the word. Behind max_chars nothing more is kept: the word is unknown. */
static void join(pass *p, uint32_t c, uint32_t start, uint32_t end) {
    bert_word *word = &p->tokens->word;
    if (word->chars++ == 0) word->first = start;
    word->last = end;
    if (word->chars > p->z->max_chars) return;
    if (word->n + 4 > word->room && !bert_word_reserve(word, &p->tokens->memory, word->n + 4)) {
        p->failed = true;
        return;
    }
    word->start[word->n] = start;
    word->n += bert_utf8_write(word->bytes + word->n, c);
    word->end[word->n - 1] = end;
}

/* A normalized character on its way through the pre-tokenizer. */
static void place(pass *p, uint32_t c, const bert_char *of, uint32_t start, uint32_t end) {
    if (of->flags & (BERT_CHAR_SPACE | BERT_CHAR_PUNCT)) {
        end_word(p);
        if (of->flags & BERT_CHAR_SPACE) return;
        join(p, c, start, end);
        end_word(p);
        return;
    }
    join(p, c, start, end);
}

static void lower_and_place(pass *p, uint32_t c, const bert_char *of, uint32_t start, uint32_t end) {
    uint32_t lower[2];
    if (!p->z->normalizer.lowercase || (of->lower == 0 && c != 0x130)) {
        place(p, c, of, start, end);
        return;
    }
    const unsigned n = bert_char_lower(lower, c, of);
    for (unsigned i = 0; i < n; i++) place(p, lower[i], bert_char_of(lower[i]), start, end);
}

/* Decomposes, drops marks, lowercases. Order does not show where no character that stays has a combining class. */
static void strip_and_place(pass *p, uint32_t c, const bert_char *of, uint32_t start, uint32_t end) {
    uint32_t nfd[BERT_NFD_MOST];
    const unsigned n = bert_char_nfd(nfd, c, of);
    if (n == 1 && nfd[0] == c) {
        if (!(of->flags & BERT_CHAR_MARK)) lower_and_place(p, c, of, start, end);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        const bert_char *part = bert_char_of(nfd[i]);
        if (!(part->flags & BERT_CHAR_MARK)) lower_and_place(p, nfd[i], part, start, end);
    }
}

/* A run of combining characters in which order shows; returns where it ends. */
static size_t ordered_run(pass *p, size_t at) {
    bert_tokens *t = p->tokens;
    const size_t behind = bert_order(t, p->z, p->text, p->begin, at, p->end);
    p->failed |= behind == 0;
    for (size_t i = 0; behind != 0 && i < t->cells.n; i++) {
        const bert_cell cell = t->cells.at[i];
        lower_and_place(p, cell.code, bert_char_of(cell.code), cell.start, cell.end);
    }
    return behind != 0 ? behind : p->end;
}

/* One character of the text at `at`; returns where the next one begins. */
static size_t one_character(pass *p, size_t at) {
    const bert_normalizer *options = &p->z->normalizer;
    uint32_t c;
    const size_t next = at + bert_utf8_read(&c, p->text + at);
    const bert_char *of = bert_char_of(c);
    if (options->clean_text && bert_cleaned_away(c, of)) return next;
    if (options->strip_accents && of->flags & BERT_CHAR_ORDERED) return ordered_run(p, at);
    const bool padded = options->handle_chinese_chars && of->flags & BERT_CHAR_CJK;
    if (padded) end_word(p);
    if (options->strip_accents) strip_and_place(p, c, of, (uint32_t)at, (uint32_t)next);
    else lower_and_place(p, c, of, (uint32_t)at, (uint32_t)next);
    if (padded) end_word(p);
    return next;
}

/* Eight bytes of the text at `at`, zeros behind its end. */
static uint64_t eight(const pass *p, size_t at) {
    uint64_t bytes = 0;
    if (p->end - at >= 8) memcpy(&bytes, p->text + at, 8);
    else memcpy(&bytes, p->text + at, p->end - at);
    return bytes;
}

/* Where the letters and digits end that begin at `at`. */
static size_t word_end(const pass *p, size_t at) {
    unsigned n = 8;
    while (n == 8 && at < p->end) {
        n = bert_ascii_word_length(eight(p, at));
        at += n;
    }
    return at;
}

/* Lowercases [at, behind) into the word's bytes. */
static void copy_lower(const pass *p, size_t at, size_t behind) {
    uint8_t *to = p->tokens->word.bytes;
    for (; at < behind; at += 8, to += 8) {
        const uint64_t bytes = eight(p, at), lower = p->z->normalizer.lowercase ? bert_ascii_lower(bytes) : bytes;
        memcpy(to, &lower, 8);
    }
}

/* A word that is not in the vocabulary as it is, or longer than 8 bytes. */
static void split_ascii(pass *p, size_t at, size_t behind) {
    bert_columns *out = &p->tokens->out;
    const size_t n = behind - at;
    const int32_t index = p->tokens->next_word++;
    const bool kept = n <= p->z->max_chars;
    if (!bert_tokens_reserve(p->tokens, kept ? n : 1) ||
        (kept && !bert_word_reserve(&p->tokens->word, &p->tokens->memory, n))) {
        p->failed = true;
        return;
    }
    const size_t before = out->n;
    if (kept) copy_lower(p, at, behind);
    if (!kept || !bert_wordpiece_split(out, &p->z->vocab, p->tokens->word.bytes, n, index))
        bert_columns_push(out, p->z->unk, 0, (uint32_t)n, index);
    for (size_t i = before; i < out->n; i++) {
        out->offsets[i].start += (uint32_t)at;
        out->offsets[i].end += (uint32_t)at;
    }
}

/* A word of ASCII letters and digits, or one punctuation character, at [at, behind). */
static void ascii_word(pass *p, size_t at, size_t behind) {
    bert_columns *out = &p->tokens->out;
    const size_t n = behind - at;
    if (n <= 8 && n <= p->z->max_chars && out->n < out->room) {
        const uint64_t bytes = eight(p, at), lower = p->z->normalizer.lowercase ? bert_ascii_lower(bytes) : bytes;
        const int32_t id = bert_vocab_short(&p->z->vocab.first, lower, n);
        if (id >= 0) {
            bert_columns_push(out, id, (uint32_t)at, (uint32_t)behind, p->tokens->next_word++);
            return;
        }
    }
    split_ascii(p, at, behind);
}

/* Words, punctuation and white space that are ASCII; stops where a word begins that is not, or something is removed. */
static size_t ascii_words(pass *p, size_t at) {
    const uint8_t *text = p->text;
    while (at < p->end && !p->failed) {
        const uint8_t class = bert_ascii_classes[text[at]];
        if (class == BERT_ASCII_SPACE) {
            at++;
            continue;
        }
        if (class == BERT_ASCII_OTHER) break;
        size_t behind = at + 1;
        if (class == BERT_ASCII_WORD) {
            behind = word_end(p, at);
            if (behind < p->end && bert_ascii_classes[text[behind]] == BERT_ASCII_OTHER) break;
        }
        ascii_word(p, at, behind);
        at = behind;
    }
    return at;
}

bool bert_words(bert_tokens *tokens, const bert_tokenizer *tokenizer, const uint8_t *text, size_t begin, size_t end) {
    pass p = {tokens, tokenizer, text, begin, end, false};
    for (size_t at = begin; at < end && !p.failed;) {
        if (tokens->word.chars == 0) at = ascii_words(&p, at);
        if (at < end && !p.failed) at = one_character(&p, at);
    }
    end_word(&p);
    tokens->word.n = tokens->word.chars = 0;
    return !p.failed;
}
