#include "inspect_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "json_out.h"
#include "lines.h"
#include "say.h"
#include "utf8.h"

typedef enum { KIND_SAFETENSORS, KIND_TOKENIZER, KIND_CONFIG, KIND_INDEX, KIND_VOCAB } kind;
static const char *const kind_names[] = {"safetensors", "tokenizer", "config", "index", "vocab"};

/* Text files of models are far smaller; a limit keeps a wrong file from filling the memory. */
enum { TEXT_LIMIT = 256 << 20 };

void inspect_tensor_json(buffer *b, const bert_tensor_info *tensor) {
    buffer_byte(b, '{');
    json_key(b, "name");
    json_text(b, tensor->name);
    json_key(b, "dtype");
    json_text(b, bert_dtype_name(tensor->dtype));
    json_key(b, "shape");
    buffer_byte(b, '[');
    for (int i = 0; i < tensor->rank; i++) buffer_print(b, i ? ",%zu" : "%zu", tensor->shape[i]);
    buffer_byte(b, ']');
}

void inspect_tensor_text(buffer *b, const bert_tensor_info *tensor) {
    size_t begin = b->len;
    json_text(b, tensor->name); /* quoted: a file may call its tensors anything */
    while (b->len - begin < 66) buffer_byte(b, ' ');
    buffer_print(b, " %-5s [", bert_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank; i++) buffer_print(b, i ? ", %zu" : "%zu", tensor->shape[i]);
    buffer_byte(b, ']');
}

/* What the library says of a file from memory begins with the name that it has in a folder; here it has its own. */
static int say_of_file(const char *path, const char *name, const bert_error *err) {
    size_t n = strlen(name);
    const char *text = err->text;
    if (strncmp(text, name, n) == 0 && text[n] == ':') text += n + 1 + (text[n + 1] == ' ');
    return say_error("%s: %s", path, text);
}

static int check_safetensors(buffer *out, const char *path, int as_json) {
    bert_safetensors *file;
    bert_error err;
    if (bert_safetensors_open(&file, path, &err)) return say_failure(&err);
    size_t n = bert_safetensors_count(file);
    if (as_json)
        buffer_text(out, "{\"kind\":\"safetensors\",\"tensors\":[");
    else {
        utf8_add_printable(out, path, strlen(path));
        buffer_print(out, ": safetensors, %zu tensors\n", n);
    }
    for (size_t i = 0; i < n; i++) {
        if (as_json && i) buffer_byte(out, ',');
        (as_json ? inspect_tensor_json : inspect_tensor_text)(out, bert_safetensors_at(file, i));
        buffer_byte(out, as_json ? '}' : '\n');
    }
    if (as_json) buffer_text(out, "]}\n");
    bert_safetensors_close(&file);
    return 0;
}

static int check_tokenizer(const bert_file *text, const char *path, const settings *s, const bert_notes *notes) {
    bert_tokenizer *tokenizer;
    bert_error err;
    bert_tokenizer_options options = BERT_TOKENIZER_OPTIONS_INIT;
    options.notes = notes;
    options.strict = s->strict;
    options.tokenizer_json = s->tokenizer_json;
    if (bert_tokenizer_open_files(&tokenizer, text, 1, &options, &err)) return say_of_file(path, text->name, &err);
    bert_tokenizer_close(&tokenizer);
    return 0;
}

/* A folder that holds nothing but this config opens as far as its weights, which are not there. */
static int check_config(const bert_file *text, const char *path, const settings *s, const bert_notes *notes) {
    bert_model *model;
    bert_error err;
    bert_model_options options = BERT_MODEL_OPTIONS_INIT;
    options.notes = notes;
    options.strict = s->strict;
    bert_status opened = bert_model_open_files(&model, text, 1, &options, &err);
    if (!opened) bert_model_close(&model);
    return opened && opened != BERT_NOT_FOUND ? say_of_file(path, text->name, &err) : 0;
}

/* As the library has it: nothing that could lead out of the folder. */
static int is_plain(const char *name, size_t n) {
    if (n == 0 || (n <= 2 && memcmp(name, "..", n) == 0)) return 0;
    return !memchr(name, '/', n) && !memchr(name, '\\', n) && !memchr(name, 0, n);
}

/* The index of a sharded model names plain files in its own folder. */
static int check_index(const bert_file *text, const char *path) {
    bert_json root, map, tensor, shard;
    bert_error err;
    size_t place = 0;
    if (bert_json_check(&root, text->data, text->len, &err)) return say_of_file(path, text->name, &err);
    if (!bert_json_member(root, "weight_map", &map) || bert_json_kind_of(map) != BERT_JSON_OBJECT)
        return say_error("%s: expected an object \"weight_map\"", path);
    while (bert_json_next(map, &place, &tensor, &shard)) {
        buffer name = {0};
        int is_text = bert_json_kind_of(shard) == BERT_JSON_STRING;
        size_t n = is_text ? bert_json_string(buffer_reserve(&name, shard.len + 1), shard) : 0;
        int plain = is_plain(name.data, n);
        buffer_close(&name);
        if (!plain)
            return say_error("%s: weight_map: expected a plain file name for %.*s, found %.*s", path,
                             (int)(tensor.len < 80 ? tensor.len : 80), tensor.at,
                             (int)(shard.len < 80 ? shard.len : 80), shard.at);
    }
    return 0;
}

static int check_text(const char *path, kind is, const bert_file *text, const settings *s, const bert_notes *notes) {
    bert_file file = *text;
    static const char *const names[] = {NULL, "tokenizer.json", "config.json", "model.safetensors.index.json",
                                        "vocab.txt"};
    file.name = names[is];
    if (is == KIND_CONFIG) return check_config(&file, path, s, notes);
    if (is == KIND_INDEX) return check_index(&file, path);
    return check_tokenizer(&file, path, s, notes);
}

/* Only regular files: a FIFO would be waited for, a device may never end. */
static int open_regular(const char *path, lines *l) {
    struct stat now;
    if (stat(path, &now) < 0) return say_error("%s: cannot open: %s", path, strerror(errno));
    if (!S_ISREG(now.st_mode)) return say_error("%s: expected a folder or a regular file", path);
    return lines_open(l, path);
}

static kind kind_of_json(const char *text, size_t n) {
    bert_json root, value;
    if (bert_json_check(&root, text, n, NULL)) return KIND_CONFIG;
    if (bert_json_member(root, "model", &value)) return KIND_TOKENIZER;
    return bert_json_member(root, "weight_map", &value) ? KIND_INDEX : KIND_CONFIG;
}

/* 1: these bytes cannot begin a text. */
static int is_binary(const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x80 || (c < 0x20 && c != '\t' && c != '\n' && c != '\r')) return 1;
    }
    return 0;
}

/* By content: 8 bytes of length and `{`, or JSON with these members, or lines. */
static int find_kind(lines *l, kind *is) {
    TRY(lines_peek(l, 9));
    const char *data = l->data + l->begin;
    size_t n = l->end - l->begin, blank = 0;
    while (blank < n && strchr(" \t\r\n", data[blank]) && data[blank]) blank++;
    *is = KIND_VOCAB;
    if (n >= 9 && data[8] == '{' && is_binary(data, 8))
        *is = KIND_SAFETENSORS;
    else if (blank < n && data[blank] == '{') {
        TRY(lines_peek(l, TEXT_LIMIT));
        *is = kind_of_json(l->data + l->begin, l->end - l->begin);
    }
    return 0;
}

static int forced_kind(const char *name, kind *is) {
    for (*is = KIND_SAFETENSORS; *is <= KIND_VOCAB; ++*is)
        if (strcmp(name, kind_names[*is]) == 0) return 0;
    return say_usage("--as %s: expected one of safetensors, tokenizer, config, index, vocab", name);
}

static int check_file(buffer *out, const settings *s, const char *path, int as_json, const bert_notes *notes,
                      lines *l) {
    kind is;
    TRY(s->as ? forced_kind(s->as, &is) : find_kind(l, &is));
    if (is == KIND_SAFETENSORS) return check_safetensors(out, path, as_json);
    TRY(lines_peek(l, TEXT_LIMIT));
    if (l->end - l->begin >= TEXT_LIMIT)
        return say_error("%s: expected a text file of at most %d MB", path, TEXT_LIMIT >> 20);
    bert_file text = {.data = l->data + l->begin, .len = l->end - l->begin};
    TRY(check_text(path, is, &text, s, notes));
    if (as_json) {
        buffer_print(out, "{\"kind\":\"%s\"}\n", kind_names[is]);
        return 0;
    }
    utf8_add_printable(out, path, strlen(path));
    buffer_print(out, ": %s, fine\n", kind_names[is]);
    return 0;
}

int inspect_file(buffer *out, const settings *s, const char *path, int as_json, const bert_notes *notes) {
    lines l = {.fd = -1};
    TRY(open_regular(path, &l));
    int status = check_file(out, s, path, as_json, notes, &l);
    lines_close(&l);
    return status;
}
