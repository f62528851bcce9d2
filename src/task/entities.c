/* task/entities.c: classes of tokens to entities, as transformers' TokenClassificationPipeline does it: scores, words,
 * groups of words, and what is left when "O" is taken out. */
#include <bert/extract.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/utf8.h"
#include "task/head.h"
#include "text/decode.h"
#include "text/tokens.h"

/* A token, or a word of several, on its way to an entity. */
typedef struct unit {
    size_t label;
    float score;
    size_t first, last; /* in the places */
} unit;

typedef struct finder {
    const bert_head *head;
    const bert_tokens *tokens;
    const bert_text *text;
    size_t i; /* the text's number */
    bert_entities_options options;
    const bert_place *places; /* [n]: tokens of the whole text */
    float *scores; /* [n, N] */
    unit *units;   /* [n_units] */
    size_t n, n_units;
} finder;

/* ---- Tokens. ---- */

static bert_encoding part_of(const bert_tokens *tokens, size_t i, const bert_place *place) {
    return bert_tokens_at(tokens, i, place->part);
}

static size_t characters(const char *text, size_t len) {
    const uint8_t *at = (const uint8_t *)text;
    size_t n = 0;
    while (len > 0) {
        const size_t valid = bert_utf8_valid(at, len);
        n += bert_utf8_count(at, valid);
        at += valid, len -= valid;
        if (len == 0) break;
        const size_t invalid = bert_utf8_invalid(at, len); /* one U+FFFD */
        n++;
        at += invalid, len -= invalid;
    }
    return n;
}

/* What a token counts as in a word: its vocabulary entry, or where that is [UNK] the text itself. */
static const char *spelling(const bert_tokenizer *z, int32_t id, bert_span span, const bert_text *text, size_t *len) {
    const char *token = id == bert_tokenizer_special(z, BERT_SPECIAL_UNK) ? NULL : bert_tokenizer_token(z, id, len);
    if (token) return token;
    *len = span.end - span.start;
    return text->a + span.start;
}

/* HF's rule: a token continues a word if it has another length than the text it stands for ("##ing" for "ing"). */
static bool continues(const finder *f, const bert_tokenizer *z, size_t k) {
    const bert_encoding part = part_of(f->tokens, f->i, &f->places[k]);
    const size_t t = f->places[k].token;
    const bert_span span = part.offsets[t];
    size_t len;
    const char *token = spelling(z, part.ids[t], span, f->text, &len);
    return characters(token, len) != characters(f->text->a + span.start, span.end - span.start);
}

static bool is_added(const finder *f, size_t k) {
    return part_of(f->tokens, f->i, &f->places[k]).special_tokens_mask[f->places[k].token] != 0;
}

/* scores [n, N]: each token's logits from the window that it is looked at in. */
static bert_status fill_scores(finder *f, const float *logits, bert_error *err) {
    const size_t labels = f->head->info.labels, parts = bert_tokens_parts(f->tokens, f->i);
    size_t *first = calloc(parts + 1, sizeof *first); /* rows of the parts */
    bert_status status = BERT_OK;
    if (!first) return bert_fail(err, BERT_NO_MEMORY, "no memory for %zu windows", parts);
    for (size_t p = 0; p < parts; p++) first[p + 1] = first[p] + bert_tokens_at(f->tokens, f->i, p).n;
    for (size_t k = 0; k < f->n && status == BERT_OK; k++) {
        const float *row = logits + (first[f->places[k].part] + f->places[k].token) * labels;
        status = bert_head_score(f->head, f->scores + k * labels, row, 1,
                                 f->options.raw ? BERT_SCORING_LOGITS : BERT_SCORING_SOFTMAX, err);
    }
    free(first);
    return status;
}

/* ---- Words. ---- */

static size_t best_of(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static unit of_token(const finder *f, size_t k) {
    const size_t labels = f->head->info.labels, label = best_of(f->scores + k * labels, labels);
    return (unit){label, f->scores[k * labels + label], k, k};
}

/* Takes the word's token k in. */
static void take_in(finder *f, unit *word, size_t k) {
    const size_t labels = f->head->info.labels;
    const unit token = of_token(f, k);
    if (f->options.aggregation == BERT_AGGREGATION_MAX && token.score > word->score) {
        word->label = token.label;
        word->score = token.score;
    }
    /* The sum of its tokens' scores stands at the word's first one until it is whole. */
    for (size_t j = 0; f->options.aggregation == BERT_AGGREGATION_AVERAGE && j < labels; j++)
        f->scores[word->first * labels + j] += f->scores[k * labels + j];
    word->last = k;
}

static void finish_average(finder *f, unit *word, size_t tokens) {
    const size_t labels = f->head->info.labels;
    float *sum = f->scores + word->first * labels;
    for (size_t j = 0; j < labels; j++) sum[j] /= (float)tokens;
    word->label = best_of(sum, labels);
    word->score = sum[word->label];
}

static void find_words(finder *f, const bert_tokenizer *z) {
    const bool whole_words = f->options.aggregation > BERT_AGGREGATION_SIMPLE;
    const bool averages = f->options.aggregation == BERT_AGGREGATION_AVERAGE;
    size_t tokens = 0; /* of the word at hand */
    for (size_t k = 0; k < f->n; k++) {
        if (is_added(f, k)) continue;
        if (whole_words && f->n_units > 0 && continues(f, z, k)) {
            take_in(f, &f->units[f->n_units - 1], k);
            tokens++;
            continue;
        }
        if (averages && f->n_units > 0) finish_average(f, &f->units[f->n_units - 1], tokens);
        f->units[f->n_units++] = of_token(f, k);
        tokens = 1;
    }
    if (averages && f->n_units > 0) finish_average(f, &f->units[f->n_units - 1], tokens);
}

/* ---- Groups. ---- */

/* "B-PER" is a beginning of kind "PER"; what has no such prefix continues. */
static const char *kind_of(const char *label, bool *begins) {
    *begins = strncmp(label, "B-", 2) == 0;
    return *begins || strncmp(label, "I-", 2) == 0 ? label + 2 : label;
}

static bool belongs(const bert_head *head, const unit *next, const unit *last) {
    bool begins, ignored;
    const char *kind = kind_of(bert_head_label(head, next->label), &begins);
    return !begins && strcmp(kind, kind_of(bert_head_label(head, last->label), &ignored)) == 0;
}

/* The entity of units [first, last], unless it is "O". */
static void add_entity(bert_entity *entities, size_t *n, const finder *f, size_t first, size_t last) {
    const char *label = bert_head_label(f->head, f->units[first].label), *dash = strchr(label, '-');
    const bert_place *a = &f->places[f->units[first].first], *b = &f->places[f->units[last].last];
    float sum = 0;
    if (f->options.aggregation != BERT_AGGREGATION_NONE && dash) label = dash + 1;
    if (strcmp(label, "O") == 0) return;
    for (size_t u = first; u <= last; u++) sum += f->units[u].score;
    entities[(*n)++] = (bert_entity){label, sum / (float)(last - first + 1),
                                     part_of(f->tokens, f->i, a).offsets[a->token].start,
                                     part_of(f->tokens, f->i, b).offsets[b->token].end, f->units[first].first,
                                     f->units[last].last};
}

static void group(bert_entity *entities, size_t *n, const finder *f) {
    for (size_t first = 0, next; first < f->n_units; first = next) {
        next = first + 1;
        while (f->options.aggregation != BERT_AGGREGATION_NONE && next < f->n_units &&
               belongs(f->head, &f->units[next], &f->units[next - 1]))
            next++;
        add_entity(entities, n, f, first, next - 1);
    }
}

/* ---- All of it. ---- */

static bert_status check(const finder *f, bert_error *err) {
    if (f->head->info.kind != BERT_HEAD_TOKENS)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "the head has no classes of tokens");
    if (f->i >= bert_tokens_count(f->tokens))
        return bert_fail(err, BERT_INVALID_ARGUMENT, "text %zu of %zu", f->i, bert_tokens_count(f->tokens));
    if (f->text->b) return bert_fail(err, BERT_INVALID_ARGUMENT, "entities are looked for in one text, not in a pair");
    if ((unsigned)f->options.aggregation > BERT_AGGREGATION_MAX)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "no aggregation %d", (int)f->options.aggregation);
    return BERT_OK;
}

static bert_status find(finder *f, bert_entity *entities, size_t *n, const float *logits, bert_error *err) {
    f->n = bert_windows_length(f->tokens, f->i);
    f->scores = calloc(f->n + 1, f->head->info.labels * sizeof *f->scores);
    f->units = calloc(f->n + 1, sizeof *f->units);
    if (!f->scores || !f->units)
        return bert_fail(err, BERT_NO_MEMORY, "no memory for the classes of %zu tokens", f->n);
    TRY(fill_scores(f, logits, err));
    const uint64_t host = bert_fpenv_enter();
    find_words(f, f->tokens->tokenizer);
    group(entities, n, f);
    bert_fpenv_leave(host);
    return BERT_OK;
}

bert_status bert_entities(bert_entity *entities, size_t *n, const bert_head *head, const float *logits,
                          const bert_tokens *tokens, size_t i, const bert_place *places, const bert_text *text,
                          const bert_entities_options *options, bert_error *err) {
    finder f = {head, tokens, text, i, BERT_ENTITIES_OPTIONS_INIT, .places = places};
    *n = 0;
    if (options) memcpy(&f.options, options, options->size < sizeof f.options ? options->size : sizeof f.options);
    TRY(check(&f, err));
    const bert_status status = find(&f, entities, n, logits, err);
    free(f.scores);
    free(f.units);
    return status;
}

size_t bert_entity_word(char *word, size_t room, const bert_tokens *tokens, size_t i, const bert_place *places,
                        const bert_text *text, const bert_entity *entity) {
    bert_decoder out = {.tokenizer = tokens->tokenizer, .clean_up = true, .text = word, .room = room};
    for (size_t k = entity->first; k <= entity->last; k++) {
        const bert_encoding part = part_of(tokens, i, &places[k]);
        size_t len;
        const char *token =
            spelling(out.tokenizer, part.ids[places[k].token], part.offsets[places[k].token], text, &len);
        bert_decode_token(&out, token, len);
    }
    return out.n;
}
