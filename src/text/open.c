/* text/open.c: opening a tokenizer: which files there are, and in which order they are read. */
#include "text/loader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

enum { LARGEST_FILE = 64 << 20 };

void bert_load_forget_added(bert_loader *loader) {
    for (size_t i = 0; i < loader->added_n; i++) free(loader->added[i].content);
    loader->added_n = 0;
}

static void free_declared(bert_declared_template *t) {
    for (size_t i = 0; i < t->n; i++) free(t->steps[i].token);
    free(t->steps);
}

static void loader_close(bert_loader *loader) {
    bert_load_forget_added(loader);
    free(loader->added);
    for (int i = 0; i < 5; i++) free(loader->special[i]);
    free(loader->prefix);
    free(loader->decoder_prefix);
    free_declared(&loader->single);
    free_declared(&loader->pair);
    if (loader->general != NULL) bert_general_free(loader->general);
}

static bert_status loader_open(bert_loader *loader, const bert_tokenizer_options *options, bert_error *err) {
    *loader = (bert_loader){.options = BERT_TOKENIZER_OPTIONS_INIT, .err = err, .pad_id = -1, .lowercase = true,
                            .chinese = true, .strip_accents = -1};
    if (options != NULL)
        memcpy(&loader->options, options, options->size < sizeof *options ? options->size : sizeof *options);
    const bert_memory memory = bert_memory_or_default(loader->options.memory);
    bert_tokenizer *z = bert_memory_new(&memory, 1, sizeof *z);
    if (z == NULL) return bert_load_no_memory(loader);
    z->memory = z->vocab.memory = z->extra.memory = memory;
    loader->z = z;
    loader->general = bert_memory_new(&memory, 1, sizeof *loader->general);
    if (loader->general == NULL) return bert_load_no_memory(loader);
    loader->general->memory = memory;
    return BERT_OK;
}

typedef bert_status (*load_function)(bert_loader *, const char *, size_t);

static bert_status read_file(bert_loader *loader, const bert_folder *folder, const char *name, load_function load) {
    char *text = NULL;
    size_t len = 0;
    TRY(bert_folder_text(folder, name, LARGEST_FILE, &text, &len, loader->err));
    loader->file = name;
    const bert_status status = load(loader, text, len);
    free(text);
    return status;
}

static bert_status read_if_there(bert_loader *loader, const bert_folder *folder, const char *name, load_function load) {
    return bert_folder_has(folder, name) ? read_file(loader, folder, name, load) : BERT_OK;
}

static bert_status read_vocabulary(bert_loader *loader, const bert_folder *folder) {
    const bool json = bert_folder_has(folder, "tokenizer.json");
    loader->vocabulary = json ? "tokenizer.json" : "vocab.txt";
    if (json) return read_file(loader, folder, loader->vocabulary, bert_load_json);
    if (!loader->options.tokenizer_json && bert_folder_has(folder, loader->vocabulary))
        return read_file(loader, folder, loader->vocabulary, bert_load_vocab);
    return bert_fail(loader->err, BERT_NOT_FOUND, "%s%sneither tokenizer.json nor vocab.txt%s",
                     folder->dir != NULL ? folder->dir : "", folder->dir != NULL ? ": " : "",
                     loader->options.tokenizer_json ? " may be read (tokenizer.json was asked for)" : "");
}

/* Older folders list added tokens in files of their own, newer ones in tokenizer_config.json. */
static bert_status read_folder(bert_loader *loader, const bert_folder *folder) {
    TRY(read_vocabulary(loader, folder));
    if (loader->json && loader->options.tokenizer_json) return BERT_OK;
    TRY(read_if_there(loader, folder, "tokenizer_config.json", bert_load_config));
    if (!loader->class_known) TRY(read_if_there(loader, folder, "config.json", bert_load_model_type));
    if (loader->lists_added) return BERT_OK;
    TRY(read_if_there(loader, folder, "special_tokens_map.json", bert_load_special_map));
    return read_if_there(loader, folder, "added_tokens.json", bert_load_added_json);
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A file given by itself: by its name's ending, else by how it begins. */
static bert_status read_alone(bert_loader *loader, const char *path) {
    char *text = NULL;
    size_t len = 0;
    TRY(bert_read_text(&text, &len, path, LARGEST_FILE, loader->err));
    loader->file = loader->vocabulary = path;
    const bool json = ends_with(path, ".json") || (!ends_with(path, ".txt") && text[strspn(text, " \t\r\n")] == '{');
    const bert_status status = json ? bert_load_json(loader, text, len) : bert_load_vocab(loader, text, len);
    free(text);
    return status;
}

static bert_status finish(bert_tokenizer **tokenizer, bert_loader *loader, bert_status status) {
    if (status == BERT_OK) status = bert_assemble(loader);
    *tokenizer = loader->z;
    if (status != BERT_OK) bert_tokenizer_close(tokenizer);
    loader_close(loader);
    return status;
}

bert_status bert_tokenizer_open(bert_tokenizer **tokenizer, const char *path, const bert_tokenizer_options *options,
                                bert_error *err) {
    bert_loader loader;
    struct stat is;
    bert_status status = loader_open(&loader, options, err);
    if (status == BERT_OK) {
        const bool folder = stat(path, &is) == 0 && S_ISDIR(is.st_mode);
        status = folder ? read_folder(&loader, &(bert_folder){.dir = path}) : read_alone(&loader, path);
    }
    return finish(tokenizer, &loader, status);
}

bert_status bert_tokenizer_open_files(bert_tokenizer **tokenizer, const bert_file *files, size_t n,
                                      const bert_tokenizer_options *options, bert_error *err) {
    bert_loader loader;
    bert_status status = loader_open(&loader, options, err);
    if (status == BERT_OK) status = read_folder(&loader, &(bert_folder){.files = files, .n = n});
    return finish(tokenizer, &loader, status);
}

static void template_free(bert_template *t, const bert_memory *memory) {
    bert_memory_free(memory, t->steps, t->n, sizeof *t->steps);
}

void bert_tokenizer_close(bert_tokenizer **tokenizer) {
    if (tokenizer == NULL || *tokenizer == NULL) return;
    bert_tokenizer *z = *tokenizer;
    const bert_memory memory = z->memory;
    bert_vocab_free(&z->vocab);
    bert_vocab_free(&z->extra);
    bert_memory_free(&memory, z->added.raw.tokens, z->added.raw.room, sizeof *z->added.raw.tokens);
    bert_memory_free(&memory, z->added.normalized.tokens, z->added.normalized.room, sizeof *z->added.raw.tokens);
    bert_memory_free(&memory, z->normalized_contents, z->normalized_room, 1);
    if (z->general != NULL) bert_general_free(z->general);
    template_free(&z->single, &memory);
    template_free(&z->pair, &memory);
    bert_memory_free(&memory, z->decoder_prefix, z->decoder_room, 1);
    bert_memory_free(&memory, z, 1, sizeof *z);
    *tokenizer = NULL;
}
