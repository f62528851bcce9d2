/* text/assemble.c: a tokenizer from what its files said: which file wins, ids of added tokens, templates. */
#include "text/loader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const char *const usual_names[5] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
static const char *const role_names[5] = {"unknown", "classification", "separator", "padding", "mask"};

bert_status bert_load_differs(bert_loader *loader, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return bert_warn(loader->options.notes, loader->options.strict, loader->err, "%s", text);
}

bert_status bert_load_no_memory(bert_loader *loader) {
    return bert_fail(loader->err, BERT_NO_MEMORY, "no memory for the tokenizer");
}

bert_status bert_load_fault(const bert_loader *loader, const char *file, bert_status status) {
    if (status == BERT_OK || status == BERT_NO_MEMORY || loader->err == NULL) return status;
    return bert_fail(loader->err, status, "%s: %s", file, loader->err->text);
}

/* The one BertNormalizer of tokenizer.json, NULL if it has other components. */
static const bert_normalizer *json_normalizer(const bert_loader *loader) {
    const bert_general *g = loader->general;
    return g->normalizers_n == 1 && g->normalizers[0].kind == BERT_NORMALIZE_BERT ? &g->normalizers[0].bert : NULL;
}

static bool json_splits_like_bert(const bert_loader *loader) {
    const bert_general *g = loader->general;
    return g->splitters_n == 1 && g->splitters[0].kind == BERT_SPLIT_BERT;
}

static const char *word(bool b) {
    return b ? "true" : "false";
}

static bert_status field_differs(bert_loader *loader, const char *field, bool config, bool json) {
    if (config == json) return BERT_OK;
    return bert_load_differs(
        loader,
        "tokenizer_config.json and tokenizer.json disagree on %s: %s is used (as transformers does "
        "for this tokenizer class), not %s",
        field, word(config), word(json));
}

/* tokenizer_config.json wins; what it changes is said. */
static bert_status note_differences(bert_loader *loader) {
    const bert_normalizer *json = json_normalizer(loader), *config = &loader->z->normalizer;
    if (json == NULL || !json_splits_like_bert(loader) || loader->z->word_level)
        TRY(bert_load_differs(loader,
                              "tokenizer.json has a normalizer, pre_tokenizer or model that is not BERT's; they are "
                              "not used, as in transformers for this tokenizer class"));
    if (json != NULL) {
        TRY(field_differs(loader, "do_lower_case", config->lowercase, json->lowercase));
        TRY(field_differs(loader, "strip_accents", config->strip_accents, json->strip_accents));
        TRY(field_differs(loader, "tokenize_chinese_chars", config->handle_chinese_chars, json->handle_chinese_chars));
        TRY(field_differs(loader, "clean_text", config->clean_text, json->clean_text));
    }
    if (!loader->z->word_level && loader->z->max_chars != 100)
        TRY(bert_load_differs(loader, "tokenizer.json's max_input_chars_per_word %zu is not used, but 100, as in "
                                      "transformers for this tokenizer class", loader->z->max_chars));
    return BERT_OK;
}

/* The BERT classes: everything but the vocabulary from the configuration and its defaults. */
static bert_status use_bert_rules(bert_loader *loader) {
    bert_tokenizer *z = loader->z;
    const bool strip = loader->strip_accents < 0 ? loader->lowercase : loader->strip_accents != 0;
    z->normalizer = (bert_normalizer){true, loader->chinese, strip, loader->lowercase};
    if (loader->json) TRY(note_differences(loader));
    z->word_level = false;
    z->max_chars = 100;
    for (int i = 0; i < 5; i++) {
        if (loader->special[i] != NULL && (loader->named[i] || !loader->json)) continue;
        free(loader->special[i]);
        loader->special[i] = strdup(usual_names[i]);
        if (loader->special[i] == NULL) return bert_load_no_memory(loader);
    }
    free(loader->prefix);
    free(loader->decoder_prefix);
    loader->prefix = strdup("##");
    loader->decoder_prefix = strdup("##");
    return loader->prefix != NULL && loader->decoder_prefix != NULL ? BERT_OK : bert_load_no_memory(loader);
}

/* tokenizer.json as it stands: the one-pass path if it is all BERT's. */
static void use_json(bert_loader *loader) {
    bert_tokenizer *z = loader->z;
    const bert_normalizer *normalizer = json_normalizer(loader);
    if (normalizer != NULL) z->normalizer = *normalizer;
    if (normalizer != NULL && json_splits_like_bert(loader) && !z->word_level) return;
    z->general = loader->general;
    loader->general = NULL;
}

/* Lower-casing before anything else. In BERT's normalizer it may as well come behind the other steps: for every
 * character and both settings of strip_accents that gives the same text. */
static bert_status lowercase_first(bert_loader *loader) {
    bert_general *g = loader->z->general;
    if (g == NULL) {
        loader->z->normalizer.lowercase = true;
        return BERT_OK;
    }
    if (!bert_general_add_normalizer(g, (bert_normalize){0})) return bert_load_no_memory(loader);
    memmove(g->normalizers + 1, g->normalizers, (g->normalizers_n - 1) * sizeof *g->normalizers);
    g->normalizers[0] = (bert_normalize){.kind = BERT_NORMALIZE_LOWERCASE};
    return BERT_OK;
}

/* Id of a token: added tokens come before the vocabulary. */
static int32_t id_of(const bert_tokenizer *z, const char *token) {
    return bert_tokenizer_id(z, token, strlen(token));
}

static bool in_vocab(const bert_loader *loader, const char *token) {
    return bert_vocab_id(&loader->z->vocab, token, strlen(token)) >= 0;
}

static bool listed_with_id(const bert_loader *loader, const char *token) {
    for (size_t i = 0; i < loader->added_n; i++)
        if (loader->added[i].id >= 0 && strcmp(loader->added[i].content, token) == 0) return true;
    return false;
}

static bert_status missing(bert_loader *loader, bert_special which) {
    char quoted[64];
    const char *name = loader->special[which];
    return bert_fail(loader->err, BERT_BAD_FILE, "%s: the %s token \"%s\" is not in the vocabulary", loader->vocabulary,
                     role_names[which], bert_quote(quoted, sizeof quoted, name, strlen(name)));
}

/* BERT's five special tokens are added tokens, whether a file lists them as such or not. One that is nowhere HF would
 * append behind the embedding table; here it is missing, but for the mask, which encoding can do without. */
static bert_status declare_specials(bert_loader *loader) {
    for (int i = 0; i < 5; i++) {
        const char *name = loader->special[i];
        if (!in_vocab(loader, name) && !listed_with_id(loader, name)) {
            if (i == BERT_SPECIAL_MASK) continue;
            return missing(loader, (bert_special)i);
        }
        bert_declared token = {.content = strdup(name), .id = -1, .special = true, .named = true};
        if (token.content == NULL) return bert_load_no_memory(loader);
        TRY(bert_load_declare(loader, token));
    }
    return BERT_OK;
}

static bert_status find_specials(bert_loader *loader) {
    bert_tokenizer *z = loader->z;
    if (!in_vocab(loader, loader->special[BERT_SPECIAL_UNK])) return missing(loader, BERT_SPECIAL_UNK);
    for (int i = 0; i < 5; i++)
        z->special[i] = id_of(z, loader->special[i] != NULL ? loader->special[i] : usual_names[i]);
    z->unk = bert_vocab_id(&z->vocab, loader->special[BERT_SPECIAL_UNK], strlen(loader->special[BERT_SPECIAL_UNK]));
    return BERT_OK;
}

static bert_status check_padding(bert_loader *loader) {
    const int32_t pad = loader->z->special[BERT_SPECIAL_PAD];
    if (loader->pad_id < 0 || loader->pad_id == pad) return BERT_OK;
    return bert_fail(loader->err, BERT_BAD_FILE, "tokenizer.json: padding has id %d, but its token has %d",
                     (int)loader->pad_id, (int)pad);
}

static bert_status open_template(bert_loader *loader, bert_template *to, const bert_step *steps, size_t n) {
    to->steps = bert_memory_new(&loader->z->memory, n, sizeof *to->steps);
    if (to->steps == NULL) return bert_load_no_memory(loader);
    to->n = n;
    for (size_t i = 0; i < n; i++) {
        to->steps[i] = steps[i];
        to->added += steps[i].id >= 0;
    }
    return BERT_OK;
}

static bert_status bert_templates(bert_loader *loader) {
    const int32_t cls = loader->z->special[BERT_SPECIAL_CLS], sep = loader->z->special[BERT_SPECIAL_SEP];
    const bert_step steps[] = {{cls, 0, false}, {-1, 0, false}, {sep, 0, false}, {-1, 1, true}, {sep, 1, false}};
    TRY(open_template(loader, &loader->z->single, steps, 3));
    return open_template(loader, &loader->z->pair, steps, 5);
}

static bert_status json_template(bert_loader *loader, bert_template *to, const bert_declared_template *from) {
    bert_step *steps = calloc(from->n + 1, sizeof *steps);
    if (steps == NULL) return bert_load_no_memory(loader);
    bert_status status = BERT_OK;
    for (size_t i = 0; i < from->n && status == BERT_OK; i++) {
        const bert_declared_step *step = &from->steps[i];
        char name[64];
        steps[i] = (bert_step){step->id, step->type, step->second};
        if (step->token != NULL && id_of(loader->z, step->token) != step->id)
            status = bert_fail(loader->err, BERT_BAD_FILE,
                               "tokenizer.json: post_processor: token \"%s\" has id %d, but %d in the vocabulary",
                               bert_quote(name, sizeof name, step->token, strlen(step->token)), (int)step->id,
                               (int)id_of(loader->z, step->token));
    }
    if (status == BERT_OK) status = open_template(loader, to, steps, from->n);
    free(steps);
    return status;
}

/* tokenizer.json names no roles: the template's first special token is what a classifier reads, its last separates. */
static void roles_from_template(bert_tokenizer *z) {
    const bert_template *t = &z->single;
    for (size_t i = 0; i < t->n; i++) {
        if (t->steps[i].id < 0) continue;
        if (i == 0) z->special[BERT_SPECIAL_CLS] = t->steps[i].id;
        if (i > 0) z->special[BERT_SPECIAL_SEP] = t->steps[i].id;
    }
}

static size_t size_of(const bert_tokenizer *z) {
    int32_t most = z->vocab.n > 0 ? z->vocab.entries[z->vocab.n - 1].id : -1;
    if (z->extra.n > 0 && z->extra.entries[z->extra.n - 1].id > most) most = z->extra.entries[z->extra.n - 1].id;
    return (size_t)most + 1;
}

static bool lowercases(const bert_tokenizer *z) {
    bool lower = z->general == NULL && z->normalizer.lowercase;
    for (size_t i = 0; z->general != NULL && i < z->general->normalizers_n; i++) {
        const bert_normalize *n = &z->general->normalizers[i];
        lower |= n->kind == BERT_NORMALIZE_LOWERCASE || (n->kind == BERT_NORMALIZE_BERT && n->bert.lowercase);
    }
    return lower;
}

static bert_status keep_decoder(bert_loader *loader) {
    bert_tokenizer *z = loader->z;
    if (loader->decoder_prefix == NULL) return BERT_OK;
    z->decoder_room = strlen(loader->decoder_prefix) + 1;
    z->decoder_prefix = bert_memory_new(&z->memory, z->decoder_room, 1);
    if (z->decoder_prefix == NULL) return bert_load_no_memory(loader);
    memcpy(z->decoder_prefix, loader->decoder_prefix, z->decoder_room);
    return BERT_OK;
}

static bert_status build_vocab(bert_loader *loader) {
    bert_tokenizer *z = loader->z;
    const char *prefix = loader->prefix != NULL ? loader->prefix : "";
    size_t repeated;
    const bert_status status = bert_vocab_build(&z->vocab, prefix, strlen(prefix), &repeated, loader->err);
    TRY(bert_load_fault(loader, loader->vocabulary, status));
    if (repeated == 0) return BERT_OK;
    return bert_load_differs(loader, "%s: %zu tokens are there again; the last place counts", loader->vocabulary,
                             repeated);
}

static bert_status check_longest(const bert_loader *loader) {
    const bert_tokenizer *z = loader->z;
    const size_t first = z->vocab.first.longest, rest = z->vocab.rest.longest, longest = first > rest ? first : rest;
    const bool short_words = z->max_chars <= BERT_WORDPIECE_LONGEST / 4;
    if (z->word_level || short_words || longest <= BERT_WORDPIECE_LONGEST) return BERT_OK;
    return bert_fail(loader->err, BERT_UNSUPPORTED,
                     "%s: an entry of %zu bytes: at most %d are supported where words of up to %zu characters are "
                     "split", loader->vocabulary, longest, BERT_WORDPIECE_LONGEST, z->max_chars);
}

bert_status bert_assemble(bert_loader *loader) {
    bert_tokenizer *z = loader->z;
    const bool bert_rules = !loader->json || (loader->bert_class && !loader->options.tokenizer_json);
    if (bert_rules) TRY(use_bert_rules(loader));
    else use_json(loader);
    if (loader->options.lowercase) TRY(lowercase_first(loader));
    TRY(build_vocab(loader));
    TRY(check_longest(loader));
    if (bert_rules) TRY(declare_specials(loader));
    TRY(bert_load_added(loader));
    TRY(find_specials(loader));
    if (bert_rules) {
        TRY(bert_templates(loader));
    } else {
        TRY(check_padding(loader));
        TRY(json_template(loader, &z->single, &loader->single));
        TRY(json_template(loader, &z->pair, &loader->pair));
        roles_from_template(z);
    }
    z->size = size_of(z);
    z->lowercases = lowercases(z);
    return keep_decoder(loader);
}
