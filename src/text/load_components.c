/* text/load_components.c: normalizers and pre-tokenizers of tokenizer.json; a Sequence is laid out flat. */
#include "text/loader.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

enum {
    MOST_COMPONENTS = 64, /* of a kind; each is a pass over the text */
    MOST_CONTENT = 4096   /* bytes of a pattern, and of what a normalizer puts in; usual are a few */
};

/* Components of other tokenizers, so that the message helps. */
static const char *goes_with(bert_json type) {
    static const char *const known[][2] = {
        {"ByteLevel", " (it belongs to RoBERTa and GPT-2 models)"},
        {"Metaspace", " (it belongs to XLM-RoBERTa, ALBERT and T5 models)"},
        {"Precompiled", " (it belongs to XLM-RoBERTa, ALBERT and T5 models)"},
        {"Nmt", " (it belongs to SentencePiece models)"},
        {"UnicodeScripts", " (it belongs to Unigram models)"},
        {"MecabPreTokenizer", " (it belongs to Japanese BERT models)"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (bert_json_equals(type, known[i][0])) return known[i][1];
    return "";
}

static bert_status unknown(bert_loader *loader, const char *what, bert_json type) {
    char name[64];
    return bert_fail(loader->err, BERT_UNSUPPORTED, "%s: %s %s%s is not supported", loader->file, what,
                     bert_json_quote(name, sizeof name, type), goes_with(type));
}

static bert_status type_of(bert_loader *loader, const char *what, bert_json value, bert_json *type) {
    if (bert_json_member(value, "type", type) && bert_json_kind_of(*type) == BERT_JSON_STRING) return BERT_OK;
    return bert_fail(loader->err, BERT_BAD_FILE, "%s: a %s without a type", loader->file, what);
}

static bert_status need(bert_loader *loader, bert_json value, const char *name, bert_json *member) {
    if (bert_json_member(value, name, member)) return BERT_OK;
    return bert_fail(loader->err, BERT_BAD_FILE, "%s: \"%s\" is missing in a component", loader->file, name);
}

/* A string member as a NUL-terminated copy in the tokenizer's memory. */
static bert_status copy_member(bert_loader *loader, bert_json value, const char *name, char **copy) {
    const bert_memory *memory = &loader->z->memory;
    bert_json member;
    char *text = NULL;
    TRY(need(loader, value, name, &member));
    TRY(bert_load_string(loader, member, name, &text));
    const size_t n = strlen(text);
    *copy = n <= MOST_CONTENT ? bert_memory_new(memory, n + 1, 1) : NULL;
    if (*copy != NULL) memcpy(*copy, text, n);
    free(text);
    if (n > MOST_CONTENT)
        return bert_fail(loader->err, BERT_UNSUPPORTED, "%s: %s has %zu bytes; at most %d are supported", loader->file,
                         name, n, MOST_CONTENT);
    return *copy != NULL ? BERT_OK : bert_fail(loader->err, BERT_NO_MEMORY, "%s: no memory for %s", loader->file, name);
}

/* {"String": "…"} or {"Regex": "…"} */
static bert_status load_pattern(bert_loader *loader, bert_json value, bert_pattern **pattern) {
    const bert_memory *memory = &loader->z->memory;
    bert_json member, body;
    char *text = NULL;
    TRY(need(loader, value, "pattern", &member));
    const bool literal = bert_json_member(member, "String", &body);
    if (!literal) TRY(need(loader, member, "Regex", &body));
    TRY(bert_load_string(loader, body, "a pattern", &text));
    const size_t n = strlen(text);
    if (n > MOST_CONTENT) {
        free(text);
        return bert_fail(loader->err, BERT_UNSUPPORTED, "%s: a pattern of %zu bytes; at most %d are supported",
                         loader->file, n, MOST_CONTENT);
    }
    const bert_status status = literal ? bert_pattern_open_literal(pattern, text, memory, loader->err)
                                       : bert_pattern_open_regex(pattern, text, memory, loader->err);
    free(text);
    return bert_load_fault(loader, loader->file, status);
}

static bert_status load_bert_normalizer(bert_loader *loader, bert_json value, bert_normalizer *options) {
    bert_json strip;
    TRY(bert_load_bool(loader, value, "clean_text", &options->clean_text));
    TRY(bert_load_bool(loader, value, "handle_chinese_chars", &options->handle_chinese_chars));
    TRY(bert_load_bool(loader, value, "lowercase", &options->lowercase));
    options->strip_accents = options->lowercase;
    if (!bert_json_member(value, "strip_accents", &strip) || bert_json_kind_of(strip) == BERT_JSON_NULL) return BERT_OK;
    return bert_load_bool(loader, value, "strip_accents", &options->strip_accents);
}

static bert_status load_normalizer_options(bert_loader *loader, bert_json value, bert_normalize *n) {
    switch (n->kind) {
    case BERT_NORMALIZE_BERT: return load_bert_normalizer(loader, value, &n->bert);
    case BERT_NORMALIZE_STRIP:
        TRY(bert_load_bool(loader, value, "strip_left", &n->left));
        return bert_load_bool(loader, value, "strip_right", &n->right);
    case BERT_NORMALIZE_PREPEND: return copy_member(loader, value, "prepend", &n->content);
    case BERT_NORMALIZE_REPLACE:
        TRY(load_pattern(loader, value, &n->pattern));
        return copy_member(loader, value, "content", &n->content);
    default: return BERT_OK;
    }
}

static bert_status one_normalizer(bert_loader *loader, bert_json value, bert_json type) {
    static const struct {
        const char *name;
        bert_normalize_kind kind;
    } known[] = {{"BertNormalizer", BERT_NORMALIZE_BERT}, {"NFC", BERT_NORMALIZE_NFC}, {"NFD", BERT_NORMALIZE_NFD},
                 {"NFKC", BERT_NORMALIZE_NFKC}, {"NFKD", BERT_NORMALIZE_NFKD}, {"Lowercase", BERT_NORMALIZE_LOWERCASE},
                 {"StripAccents", BERT_NORMALIZE_STRIP_ACCENTS}, {"Strip", BERT_NORMALIZE_STRIP},
                 {"Prepend", BERT_NORMALIZE_PREPEND}, {"Replace", BERT_NORMALIZE_REPLACE}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!bert_json_equals(type, known[i].name)) continue;
        if (loader->general->normalizers_n == MOST_COMPONENTS)
            return bert_fail(loader->err, BERT_UNSUPPORTED, "%s: more than %d normalizers", loader->file,
                             MOST_COMPONENTS);
        if (!bert_general_add_normalizer(loader->general, (bert_normalize){.kind = known[i].kind}))
            return bert_fail(loader->err, BERT_NO_MEMORY, "%s: no memory for normalizers", loader->file);
        return load_normalizer_options(loader, value,
                                       &loader->general->normalizers[loader->general->normalizers_n - 1]);
    }
    return unknown(loader, "normalizer", type);
}

static bert_status load_behavior(bert_loader *loader, bert_json value, bert_behavior *behavior) {
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!bert_json_equals(value, names[i])) continue;
        *behavior = (bert_behavior)i;
        return BERT_OK;
    }
    char quoted[64];
    return bert_fail(loader->err, BERT_BAD_FILE, "%s: behavior %s", loader->file,
                     bert_json_quote(quoted, sizeof quoted, value));
}

static bert_status load_delimiter(bert_loader *loader, bert_json value, uint32_t *delimiter) {
    char *text = NULL;
    bert_json member;
    TRY(need(loader, value, "delimiter", &member));
    TRY(bert_load_string(loader, member, "delimiter", &text));
    const size_t n = strlen(text);
    const bool one = n > 0 && bert_utf8_read(delimiter, (const uint8_t *)text) == n;
    free(text);
    if (one) return BERT_OK;
    return bert_fail(loader->err, BERT_BAD_FILE, "%s: delimiter is not one character", loader->file);
}

static bert_status load_splitter_options(bert_loader *loader, bert_json value, bert_splitter *s) {
    bert_json member;
    bool individual = false;
    switch (s->kind) {
    case BERT_SPLIT_PUNCTUATION:
        s->behavior = BERT_ISOLATED;
        return bert_json_member(value, "behavior", &member) ? load_behavior(loader, member, &s->behavior) : BERT_OK;
    case BERT_SPLIT_DIGITS:
        TRY(bert_load_bool(loader, value, "individual_digits", &individual));
        s->behavior = individual ? BERT_ISOLATED : BERT_CONTIGUOUS;
        return BERT_OK;
    case BERT_SPLIT_PATTERN:
        TRY(load_pattern(loader, value, &s->pattern));
        TRY(need(loader, value, "behavior", &member));
        TRY(load_behavior(loader, member, &s->behavior));
        return bert_load_bool(loader, value, "invert", &s->invert);
    case BERT_SPLIT_DELIMITER: return load_delimiter(loader, value, &s->delimiter);
    default: return BERT_OK;
    }
}

static bert_status one_splitter(bert_loader *loader, bert_json value, bert_json type) {
    static const struct {
        const char *name;
        bert_split_kind kind;
    } known[] = {{"BertPreTokenizer", BERT_SPLIT_BERT}, {"Whitespace", BERT_SPLIT_WORDS},
                 {"WhitespaceSplit", BERT_SPLIT_SPACES}, {"Punctuation", BERT_SPLIT_PUNCTUATION},
                 {"Digits", BERT_SPLIT_DIGITS}, {"Split", BERT_SPLIT_PATTERN},
                 {"CharDelimiterSplit", BERT_SPLIT_DELIMITER}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!bert_json_equals(type, known[i].name)) continue;
        if (loader->general->splitters_n == MOST_COMPONENTS)
            return bert_fail(loader->err, BERT_UNSUPPORTED, "%s: more than %d pre-tokenizers", loader->file,
                             MOST_COMPONENTS);
        if (!bert_general_add_splitter(loader->general, (bert_splitter){.kind = known[i].kind}))
            return bert_fail(loader->err, BERT_NO_MEMORY, "%s: no memory for pre-tokenizers", loader->file);
        return load_splitter_options(loader, value, &loader->general->splitters[loader->general->splitters_n - 1]);
    }
    return unknown(loader, "pre_tokenizer", type);
}

/* The list of a Sequence; recursion ends because the JSON is at most 64 deep. */
static bert_status load_sequence(bert_loader *loader, bert_json value, const char *key,
                                 bert_status (*load)(bert_loader *, bert_json)) {
    bert_json list, item;
    TRY(need(loader, value, key, &list));
    if (bert_json_kind_of(list) != BERT_JSON_ARRAY)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: \"%s\" is not a list", loader->file, key);
    for (size_t place = 0; bert_json_next(list, &place, NULL, &item);) TRY(load(loader, item));
    return BERT_OK;
}

bert_status bert_load_normalizer(bert_loader *loader, bert_json value) {
    bert_json type;
    if (bert_json_kind_of(value) == BERT_JSON_NULL) return BERT_OK;
    TRY(type_of(loader, "normalizer", value, &type));
    if (bert_json_equals(type, "Sequence")) return load_sequence(loader, value, "normalizers", bert_load_normalizer);
    return one_normalizer(loader, value, type);
}

bert_status bert_load_splitter(bert_loader *loader, bert_json value) {
    bert_json type;
    if (bert_json_kind_of(value) == BERT_JSON_NULL) return BERT_OK;
    TRY(type_of(loader, "pre_tokenizer", value, &type));
    if (bert_json_equals(type, "Sequence")) return load_sequence(loader, value, "pretokenizers", bert_load_splitter);
    return one_splitter(loader, value, type);
}
