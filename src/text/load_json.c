/* text/load_json.c: tokenizer.json, but for its components (load_components.c) and templates (load_template.c). */
#include "text/loader.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

bert_status bert_load_string(bert_loader *loader, bert_json value, const char *what, char **copy) {
    if (bert_json_kind_of(value) != BERT_JSON_STRING)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: %s is not a string", loader->file, what);
    char *text = bert_json_dup(value);
    if (text == NULL) return bert_fail(loader->err, BERT_NO_MEMORY, "%s: no memory for %s", loader->file, what);
    free(*copy);
    *copy = text;
    return BERT_OK;
}

bert_status bert_load_bool(bert_loader *loader, bert_json object, const char *name, bool *value) {
    bert_json member;
    int b;
    if (!bert_json_member(object, name, &member))
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: \"%s\" is missing", loader->file, name);
    if (!bert_json_bool(&b, member))
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: \"%s\" is neither true nor false", loader->file, name);
    *value = b;
    return BERT_OK;
}

bert_status bert_load_declare(bert_loader *loader, bert_declared token) {
    if (loader->added_n == loader->added_room) {
        const size_t room = 2 * loader->added_room + 16;
        bert_declared *more = realloc(loader->added, room * sizeof *more);
        if (more == NULL) {
            free(token.content);
            return bert_fail(loader->err, BERT_NO_MEMORY, "%s: no memory for added tokens", loader->file);
        }
        loader->added = more;
        loader->added_room = room;
    }
    loader->added[loader->added_n++] = token;
    return BERT_OK;
}

bert_status bert_load_declared(bert_loader *loader, bert_json object, bert_declared *token) {
    bert_json content;
    *token = (bert_declared){.id = -1};
    if (!bert_json_member(object, "content", &content))
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: an added token without content", loader->file);
    TRY(bert_load_bool(loader, object, "single_word", &token->single_word));
    TRY(bert_load_bool(loader, object, "lstrip", &token->lstrip));
    TRY(bert_load_bool(loader, object, "rstrip", &token->rstrip));
    TRY(bert_load_bool(loader, object, "normalized", &token->normalized));
    TRY(bert_load_string(loader, content, "an added token's content", &token->content));
    if (token->content[0] != '\0') return BERT_OK;
    free(token->content);
    token->content = NULL;
    return bert_fail(loader->err, BERT_BAD_FILE, "%s: an added token with empty content", loader->file);
}

static bert_status load_added(bert_loader *loader, bert_json list) {
    bert_json item, id;
    if (bert_json_kind_of(list) != BERT_JSON_ARRAY)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: added_tokens is not a list", loader->file);
    for (size_t place = 0; bert_json_next(list, &place, NULL, &item);) {
        bert_declared token;
        int64_t n;
        bool special = false;
        if (!bert_json_member(item, "id", &id) || !bert_json_integer(&n, id, 0, INT32_MAX - 1))
            return bert_fail(loader->err, BERT_BAD_FILE, "%s: an added token without an id in 0..2147483646",
                             loader->file);
        TRY(bert_load_bool(loader, item, "special", &special));
        TRY(bert_load_declared(loader, item, &token));
        token.id = (int32_t)n;
        token.special = special;
        TRY(bert_load_declare(loader, token));
    }
    return BERT_OK;
}

static bert_status bad_id(bert_loader *loader, bert_json token, bert_json id) {
    char name[64], value[64];
    bert_json_quote(name, sizeof name, token);
    bert_json_quote(value, sizeof value, id);
    return bert_fail(loader->err, BERT_BAD_FILE,
                     "%s: model.vocab: the id of %s is %s, expected an integer in 0..2147483646", loader->file, name,
                     value);
}

/* `bytes` has room for the longest spelling. */
static bert_status load_tokens(bert_loader *loader, bert_json vocab, char *bytes) {
    bert_json token, id;
    int64_t n;
    if (!bert_vocab_reserve(&loader->z->vocab, vocab.len / 16, vocab.len)) return bert_load_no_memory(loader);
    for (size_t place = 0; bert_json_next(vocab, &place, &token, &id);) {
        if (!bert_json_integer(&n, id, 0, INT32_MAX - 1)) return bad_id(loader, token, id);
        if (!bert_vocab_add(&loader->z->vocab, (int32_t)n, bytes, bert_json_string(bytes, token)))
            return bert_load_no_memory(loader);
    }
    return BERT_OK;
}

static bert_status load_vocab(bert_loader *loader, bert_json vocab) {
    if (bert_json_kind_of(vocab) != BERT_JSON_OBJECT)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: model.vocab is not an object", loader->file);
    char *bytes = malloc(vocab.len);
    const bert_status status = bytes != NULL ? load_tokens(loader, vocab, bytes) : bert_load_no_memory(loader);
    free(bytes);
    return status;
}

/* Models that go with tokenizers that are not read here, so that the message helps. */
static const char *goes_with(const char *type) {
    if (strcmp(type, "BPE") == 0) return "RoBERTa, GPT-2 and Llama models";
    if (strcmp(type, "Unigram") == 0) return "XLM-RoBERTa, ALBERT, T5 and multilingual E5 models";
    return "no model known here";
}

static bert_status model_type(bert_loader *loader, bert_json model) {
    bert_json type;
    char *name = NULL;
    if (!bert_json_member(model, "type", &type)) return BERT_OK; /* older files: WordPiece */
    TRY(bert_load_string(loader, type, "model.type", &name));
    bert_status status = BERT_OK;
    loader->z->word_level = strcmp(name, "WordLevel") == 0;
    if (!loader->z->word_level && strcmp(name, "WordPiece") != 0)
        status = bert_fail(loader->err, BERT_UNSUPPORTED,
                           "%s: model type \"%s\" (it belongs to %s); WordPiece and WordLevel are supported",
                           loader->file, name, goes_with(name));
    free(name);
    return status;
}

static bert_status model_member(bert_loader *loader, bert_json model, const char *name, bert_json *value) {
    if (bert_json_member(model, name, value)) return BERT_OK;
    return bert_fail(loader->err, BERT_BAD_FILE, "%s: model.%s is missing", loader->file, name);
}

static bert_status load_model(bert_loader *loader, bert_json model) {
    bert_json value;
    int64_t n;
    if (bert_json_kind_of(model) != BERT_JSON_OBJECT)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: model is not an object", loader->file);
    TRY(model_type(loader, model));
    TRY(model_member(loader, model, "unk_token", &value));
    TRY(bert_load_string(loader, value, "model.unk_token", &loader->special[BERT_SPECIAL_UNK]));
    loader->z->max_chars = SIZE_MAX;
    if (!loader->z->word_level) {
        TRY(model_member(loader, model, "continuing_subword_prefix", &value));
        TRY(bert_load_string(loader, value, "model.continuing_subword_prefix", &loader->prefix));
        TRY(model_member(loader, model, "max_input_chars_per_word", &value));
        if (!bert_json_integer(&n, value, 0, INT64_MAX))
            return bert_fail(loader->err, BERT_BAD_FILE, "%s: model.max_input_chars_per_word is not a count",
                             loader->file);
        loader->z->max_chars = (size_t)n;
    }
    TRY(model_member(loader, model, "vocab", &value));
    return load_vocab(loader, value);
}

static bert_status load_truncation(bert_loader *loader, bert_json truncation) {
    bert_json value;
    int64_t n;
    if (bert_json_kind_of(truncation) == BERT_JSON_NULL) return BERT_OK;
    if (!bert_json_member(truncation, "max_length", &value) || !bert_json_integer(&n, value, 1, INT64_MAX))
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: truncation.max_length is not a number of tokens",
                         loader->file);
    loader->z->said.truncation_max_length = (size_t)n;
    return BERT_OK;
}

static bert_status load_padding(bert_loader *loader, bert_json padding) {
    bert_json value, fixed;
    int64_t n;
    if (bert_json_kind_of(padding) == BERT_JSON_NULL) return BERT_OK;
    if (!bert_json_member(padding, "pad_id", &value) || !bert_json_integer(&n, value, 0, INT32_MAX - 1))
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: padding.pad_id is not an id", loader->file);
    loader->pad_id = (int32_t)n;
    if (!bert_json_member(padding, "pad_token", &value))
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: padding.pad_token is missing", loader->file);
    TRY(bert_load_string(loader, value, "padding.pad_token", &loader->special[BERT_SPECIAL_PAD]));
    if (bert_json_member(padding, "strategy", &value) && bert_json_member(value, "Fixed", &fixed)) {
        if (!bert_json_integer(&n, fixed, 0, INT64_MAX))
            return bert_fail(loader->err, BERT_BAD_FILE, "%s: padding.strategy.Fixed is not a number of tokens",
                             loader->file);
        loader->z->said.padding_length = (size_t)n;
    }
    return BERT_OK;
}

static bert_status load_decoder(bert_loader *loader, bert_json decoder) {
    bert_json type, prefix;
    char name[64];
    if (bert_json_kind_of(decoder) == BERT_JSON_NULL) return BERT_OK;
    if (!bert_json_member(decoder, "type", &type))
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: decoder has no type", loader->file);
    if (!bert_json_equals(type, "WordPiece"))
        return bert_fail(loader->err, BERT_UNSUPPORTED, "%s: decoder %s; WordPiece or none is supported", loader->file,
                         bert_json_quote(name, sizeof name, type));
    if (!bert_json_member(decoder, "prefix", &prefix))
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: decoder.prefix is missing", loader->file);
    return bert_load_string(loader, prefix, "decoder.prefix", &loader->decoder_prefix);
}

static bert_status load_version(bert_loader *loader, bert_json version) {
    char text[64];
    if (bert_json_equals(version, "1.0")) return BERT_OK;
    return bert_fail(loader->err, BERT_UNSUPPORTED, "%s: version %s, expected \"1.0\"", loader->file,
                     bert_json_quote(text, sizeof text, version));
}

bert_status bert_load_json(bert_loader *loader, const char *text, size_t len) {
    static const struct {
        const char *name;
        bert_status (*load)(bert_loader *, bert_json);
    } members[] = {{"version", load_version},       {"truncation", load_truncation},
                   {"padding", load_padding},       {"added_tokens", load_added},
                   {"normalizer", bert_load_normalizer}, {"pre_tokenizer", bert_load_splitter},
                   {"post_processor", bert_load_processor}, {"decoder", load_decoder},
                   {"model", load_model}};
    enum { MEMBERS = sizeof members / sizeof *members };
    bert_json root, key, value;
    TRY(bert_json_check_file(&root, text, len, loader->file, loader->err));
    if (bert_json_kind_of(root) != BERT_JSON_OBJECT)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: not a tokenizer: no object", loader->file);
    for (size_t place = 0; bert_json_next(root, &place, &key, &value);) {
        size_t i = 0;
        while (i < MEMBERS && !bert_json_equals(key, members[i].name)) i++;
        char name[64];
        if (i == MEMBERS)
            return bert_fail(loader->err, BERT_BAD_FILE, "%s: unknown member %s", loader->file,
                             bert_json_quote(name, sizeof name, key));
        TRY(members[i].load(loader, value));
    }
    if (loader->special[BERT_SPECIAL_UNK] == NULL)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: not a tokenizer: it has no model", loader->file);
    loader->json = true;
    return loader->single.n > 0 ? BERT_OK : bert_load_processor(loader, (bert_json){"null", 4});
}
