/* text/loader.h: what the files of a tokenizer say, collected before the tokenizer is put together.
 *
 * Which file wins (RULES of transformers 5): for the BERT tokenizer classes tokenizer.json gives only the vocabulary
 * and the added tokens, everything else comes from tokenizer_config.json and its defaults; otherwise tokenizer.json is
 * taken as it stands. Differences are noted with the field that makes them. */
#ifndef BERT_TEXT_LOADER_H
#define BERT_TEXT_LOADER_H

#include "file/source.h"
#include "file/json.h"
#include "text/general.h"
#include "text/tokenizer.h"

/* An added token as a file declares it. Strings of the loader are malloc'd, NUL-terminated. */
typedef struct bert_declared {
    char *content;
    int32_t id; /* -1: the file gives none */
    bool special, single_word, lstrip, rstrip, normalized;
    bool named; /* only named as a special token: flags of a list, if it is in one, count */
} bert_declared;

/* A special token in a template of tokenizer.json, or a sequence (id NULL). */
typedef struct bert_declared_step {
    char *token;
    int32_t id, type;
    bool second;
} bert_declared_step;

typedef struct bert_declared_template {
    bert_declared_step *steps;
    size_t n, room;
} bert_declared_template;

typedef struct bert_loader {
    bert_tokenizer *z;
    bert_tokenizer_options options;
    bert_error *err;
    const char *file;       /* the one being read, for messages */
    const char *vocabulary; /* the one that the vocabulary is from */
    char *special[5];      /* by bert_special; NULL: not named */
    bert_declared *added;
    size_t added_n, added_room;
    char *prefix;          /* of pieces that continue a word */
    char *decoder_prefix;
    /* tokenizer.json */
    bool json;
    bert_general *general; /* its normalizers and pre-tokenizers */
    bert_declared_template single, pair;
    int32_t pad_id;        /* of its padding; -1: none */
    /* tokenizer_config.json and config.json */
    bool lists_added;      /* it lists the added tokens, so that older files do not count */
    bool bert_class;       /* the tokenizer's class is one of BERT's */
    bool class_known;
    bool named[5];         /* special tokens that it names; they become added tokens */
    bool lowercase, chinese;
    int strip_accents;     /* -1: null */
} bert_loader;

/* Each reads one file; `text` is its content. */
BERT_MUST_USE bert_status bert_load_json(bert_loader *loader, const char *text, size_t len);
BERT_MUST_USE bert_status bert_load_vocab(bert_loader *loader, const char *text, size_t len);
BERT_MUST_USE bert_status bert_load_config(bert_loader *loader, const char *text, size_t len);
BERT_MUST_USE bert_status bert_load_special_map(bert_loader *loader, const char *text, size_t len);
BERT_MUST_USE bert_status bert_load_added_json(bert_loader *loader, const char *text, size_t len);

/* Takes the class from config.json's model_type if tokenizer_config.json has none, as AutoTokenizer does. */
BERT_MUST_USE bert_status bert_load_model_type(bert_loader *loader, const char *text, size_t len);

/* The normalizer and pre_tokenizer members of tokenizer.json (load_components.c). */
BERT_MUST_USE bert_status bert_load_normalizer(bert_loader *loader, bert_json value);
BERT_MUST_USE bert_status bert_load_splitter(bert_loader *loader, bert_json value);
/* The post_processor member (load_template.c). */
BERT_MUST_USE bert_status bert_load_processor(bert_loader *loader, bert_json value);

/* Ids of the added tokens, and the sets they are searched in (load_added.c). */
BERT_MUST_USE bert_status bert_load_added(bert_loader *loader);

/* Tables, ids and templates from what was collected (assemble.c). */
BERT_MUST_USE bert_status bert_assemble(bert_loader *loader);

/* Fails with BERT_BAD_FILE, or notes a difference between files (an error if the caller is strict). */
BERT_MUST_USE bert_status bert_load_differs(bert_loader *loader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bert_status bert_load_no_memory(bert_loader *loader);

/* Puts the file's name in front of a message that was made where it was not known. */
bert_status bert_load_fault(const bert_loader *loader, const char *file, bert_status status);

BERT_MUST_USE bert_status bert_load_declare(bert_loader *loader, bert_declared token);
/* Drops what was declared so far. */
void bert_load_forget_added(bert_loader *loader);
/* Reads the five flags of an added token's object, and its content. */
BERT_MUST_USE bert_status bert_load_declared(bert_loader *loader, bert_json object, bert_declared *token);
/* A string member as a copy; `what` is for the message. */
BERT_MUST_USE bert_status bert_load_string(bert_loader *loader, bert_json value, const char *what, char **copy);
BERT_MUST_USE bert_status bert_load_bool(bert_loader *loader, bert_json object, const char *name, bool *value);

#endif
