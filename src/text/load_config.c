/* text/load_config.c: what stands beside the vocabulary: tokenizer_config.json, and in older folders
 * special_tokens_map.json and added_tokens.json. */
#include "text/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const char *const token_keys[5] = {"unk_token", "cls_token", "sep_token", "pad_token", "mask_token"};

static bert_status root_of(bert_loader *loader, const char *text, size_t len, bert_json *root) {
    TRY(bert_json_check_file(root, text, len, loader->file, loader->err));
    if (bert_json_kind_of(*root) == BERT_JSON_OBJECT) return BERT_OK;
    return bert_fail(loader->err, BERT_BAD_FILE, "%s: not an object", loader->file);
}

/* A special token is written as a string, or as an object with content and flags. */
static bert_status load_special(bert_loader *loader, bert_json value, const char *key, bert_declared *token) {
    *token = (bert_declared){.id = -1};
    if (bert_json_kind_of(value) == BERT_JSON_OBJECT) TRY(bert_load_declared(loader, value, token));
    else TRY(bert_load_string(loader, value, key, &token->content));
    token->special = token->named = true;
    return BERT_OK;
}

/* HF passes over a token of no characters, and gives it no id. */
static bert_status declare(bert_loader *loader, bert_declared token) {
    if (token.content[0] != '\0') return bert_load_declare(loader, token);
    free(token.content);
    return BERT_OK;
}

static bert_status load_named(bert_loader *loader, bert_json root) {
    bert_json value;
    for (int i = 0; i < 5; i++) {
        bert_declared token;
        if (!bert_json_member(root, token_keys[i], &value) || bert_json_kind_of(value) == BERT_JSON_NULL) continue;
        TRY(load_special(loader, value, token_keys[i], &token));
        free(loader->special[i]);
        loader->special[i] = strdup(token.content);
        loader->named[i] = true;
        TRY(declare(loader, token));
        if (loader->special[i] == NULL) return bert_fail(loader->err, BERT_NO_MEMORY, "%s: no memory", loader->file);
    }
    return BERT_OK;
}

static bert_status load_further(bert_loader *loader, bert_json root, const char *key) {
    bert_json list, item;
    if (!bert_json_member(root, key, &list) || bert_json_kind_of(list) != BERT_JSON_ARRAY) return BERT_OK;
    for (size_t place = 0; bert_json_next(list, &place, NULL, &item);) {
        bert_declared token;
        TRY(load_special(loader, item, key, &token));
        TRY(declare(loader, token));
    }
    return BERT_OK;
}

/* "added_tokens_decoder": {"100": {"content": "[UNK]", …}, …} */
static bert_status load_decoder_list(bert_loader *loader, bert_json list) {
    bert_json key, value;
    if (bert_json_kind_of(list) != BERT_JSON_OBJECT)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: added_tokens_decoder is not an object", loader->file);
    for (size_t place = 0; bert_json_next(list, &place, &key, &value);) {
        bert_declared token;
        bool special = false;
        char quoted[64];
        const bert_json digits = {key.at + 1, key.len - 2}; /* without its quotes: an integer */
        int64_t id;
        if (key.len < 3 || strspn(digits.at, "0123456789") != digits.len ||
            !bert_json_integer(&id, digits, 0, INT32_MAX - 1))
            return bert_fail(loader->err, BERT_BAD_FILE, "%s: added_tokens_decoder: %s is not an id", loader->file,
                             bert_json_quote(quoted, sizeof quoted, key));
        TRY(bert_load_bool(loader, value, "special", &special));
        TRY(bert_load_declared(loader, value, &token));
        token.id = (int32_t)id;
        token.special = special;
        TRY(bert_load_declare(loader, token));
    }
    return BERT_OK;
}

static bert_status load_option(bert_loader *loader, bert_json root, const char *key, bool *option) {
    bert_json value;
    return bert_json_member(root, key, &value) ? bert_load_bool(loader, root, key, option) : BERT_OK;
}

static bert_status load_strip_accents(bert_loader *loader, bert_json root) {
    bert_json value;
    loader->strip_accents = -1;
    if (!bert_json_member(root, "strip_accents", &value) || bert_json_kind_of(value) == BERT_JSON_NULL) return BERT_OK;
    bool strip = false;
    TRY(bert_load_bool(loader, root, "strip_accents", &strip));
    loader->strip_accents = strip;
    return BERT_OK;
}

/* Classes that transformers 5 builds as a BertTokenizer, whatever tokenizer.json says. */
static bool is_bert_class(bert_json name) {
    static const char *const bases[] = {"Bert", "DistilBert", "Electra", "MobileBert", "SqueezeBert", "ConvBert",
                                        "LayoutLM", "Lxmert", "RetriBert", "DPRContextEncoder", "DPRQuestionEncoder",
                                        "DPRReader"};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        char slow[64], fast[64];
        snprintf(slow, sizeof slow, "%sTokenizer", bases[i]);
        snprintf(fast, sizeof fast, "%sTokenizerFast", bases[i]);
        if (bert_json_equals(name, slow) || bert_json_equals(name, fast)) return true;
    }
    return false;
}

static bool is_generic_class(bert_json name) {
    return bert_json_equals(name, "PreTrainedTokenizerFast") || bert_json_equals(name, "TokenizersBackend");
}

static bert_status load_class(bert_loader *loader, bert_json root) {
    bert_json name;
    char quoted[64];
    if (!bert_json_member(root, "tokenizer_class", &name) || bert_json_kind_of(name) == BERT_JSON_NULL) return BERT_OK;
    loader->class_known = true;
    loader->bert_class = is_bert_class(name);
    if (loader->bert_class || loader->json || is_generic_class(name)) return BERT_OK;
    return bert_fail(loader->err, BERT_UNSUPPORTED,
                     "%s: tokenizer_class %s; only BERT's WordPiece tokenizers are supported", loader->file,
                     bert_json_quote(quoted, sizeof quoted, name));
}

static void load_model_max_length(bert_loader *loader, bert_json root) {
    bert_json value;
    int64_t n;
    /* Absent limits are written as 1e30 or 10^19: not integers of a sane size. */
    if (bert_json_member(root, "model_max_length", &value) && bert_json_integer(&n, value, 1, INT32_MAX))
        loader->z->said.model_max_length = (size_t)n;
}

bert_status bert_load_config(bert_loader *loader, const char *text, size_t len) {
    bert_json root, list;
    TRY(root_of(loader, text, len, &root));
    load_model_max_length(loader, root);
    TRY(load_class(loader, root));
    TRY(load_option(loader, root, "do_lower_case", &loader->lowercase));
    TRY(load_option(loader, root, "tokenize_chinese_chars", &loader->chinese));
    TRY(load_strip_accents(loader, root));
    loader->lists_added = bert_json_member(root, "added_tokens_decoder", &list);
    if (loader->lists_added) {
        if (loader->bert_class) bert_load_forget_added(loader);
        TRY(load_decoder_list(loader, list));
    }
    TRY(load_named(loader, root));
    TRY(load_further(loader, root, "additional_special_tokens"));
    return load_further(loader, root, "extra_special_tokens");
}

bert_status bert_load_special_map(bert_loader *loader, const char *text, size_t len) {
    bert_json root;
    TRY(root_of(loader, text, len, &root));
    TRY(load_named(loader, root));
    return load_further(loader, root, "additional_special_tokens");
}

bert_status bert_load_added_json(bert_loader *loader, const char *text, size_t len) {
    bert_json root, key, value;
    TRY(root_of(loader, text, len, &root));
    for (size_t place = 0; bert_json_next(root, &place, &key, &value);) {
        bert_declared token = {.normalized = true};
        int64_t id;
        char quoted[64];
        if (!bert_json_integer(&id, value, 0, INT32_MAX - 1))
            return bert_fail(loader->err, BERT_BAD_FILE, "%s: the id of %s is not an id", loader->file,
                             bert_json_quote(quoted, sizeof quoted, key));
        TRY(bert_load_string(loader, key, "a token", &token.content));
        for (int i = 0; i < 5; i++) {
            const char *name = loader->special[i];
            if (name != NULL && strcmp(name, token.content) == 0) token.special = true, token.normalized = false;
        }
        token.id = (int32_t)id;
        TRY(declare(loader, token));
    }
    return BERT_OK;
}

bert_status bert_load_model_type(bert_loader *loader, const char *text, size_t len) {
    static const char *const types[] = {"bert", "distilbert", "electra", "mobilebert", "squeezebert", "convbert",
                                        "layoutlm", "retribert", "ernie", "megatron-bert", "nezha", "qdqbert",
                                        "visual_bert", "nomic_bert"};
    bert_json root, type;
    TRY(root_of(loader, text, len, &root));
    if (!bert_json_member(root, "model_type", &type)) return BERT_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) loader->bert_class |= bert_json_equals(type, types[i]);
    return BERT_OK;
}
