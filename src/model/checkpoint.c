#include "model/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "file/json.h"

static const char SINGLE[] = "model.safetensors";
static const char INDEX[] = "model.safetensors.index.json";
enum { INDEX_LIMIT = 16 << 20, MAX_SHARDS = 1000 };

/* Takes `name` over. */
static bert_status add_file(bert_checkpoint *c, const bert_folder *folder, char *name, bert_error *err) {
    bert_source *source = NULL;
    bert_safetensors **files = NULL;
    char **names = realloc(c->names, (c->n_files + 1) * sizeof *names);
    if (names) c->names = names;
    if (names) files = realloc(c->files, (c->n_files + 1) * sizeof *files);
    if (files) c->files = files;
    if (!files) {
        free(name);
        return bert_fail(err, BERT_NO_MEMORY, "no memory for the list of weight files");
    }
    c->names[c->n_files] = name;
    c->files[c->n_files++] = NULL;
    TRY(bert_folder_source(folder, name, &source, err));
    return bert_safetensors_open_source(&c->files[c->n_files - 1], source, err);
}

static bert_status open_single(bert_checkpoint *c, const bert_folder *folder, bert_error *err) {
    char *name = strdup(SINGLE);
    if (!name) return bert_fail(err, BERT_NO_MEMORY, "no memory to open %s", SINGLE);
    return add_file(c, folder, name, err);
}

static size_t file_number(const bert_checkpoint *c, const char *name) {
    size_t i = 0;
    while (i < c->n_files && strcmp(c->names[i], name) != 0) i++;
    return i;
}

/* A shard is a plain file of the folder: no name from inside a file may lead elsewhere. */
static bert_status shard_name(char **name, bert_json value, bert_error *err) {
    char quoted[80];
    const int is_string = bert_json_kind_of(value) == BERT_JSON_STRING;
    *name = bert_json_dup(value);
    if (is_string && !*name) return bert_fail(err, BERT_NO_MEMORY, "no memory to read %s", INDEX);
    if (*name && bert_plain_name(*name) && strcmp(*name, INDEX) != 0) return BERT_OK;
    free(*name);
    *name = NULL;
    return bert_fail(err, BERT_BAD_FILE, "%s: expected the plain name of a file in the model's folder, found %s", INDEX,
                     bert_json_quote(quoted, sizeof quoted, value));
}

/* One line of the weight map: opens its shard if it is new, and demands that the tensor is in it. */
static bert_status map_tensor(bert_checkpoint *c, const bert_folder *folder, bert_json key, bert_json value,
                              bert_error *err) {
    char *shard = NULL, *tensor = NULL, quoted[128];
    bert_status status = BERT_OK;
    TRY(shard_name(&shard, value, err));
    size_t number = file_number(c, shard);
    if (number < c->n_files) {
        free(shard);
    } else {
        if (number >= MAX_SHARDS) {
            free(shard);
            return bert_fail(err, BERT_UNSUPPORTED, "%s: more than %d shards", INDEX, MAX_SHARDS);
        }
        TRY(add_file(c, folder, shard, err));
    }
    if (!(tensor = bert_json_dup(key))) return bert_fail(err, BERT_NO_MEMORY, "no memory to read %s", INDEX);
    if (!bert_safetensors_find(c->files[number], tensor))
        status = bert_fail(err, BERT_BAD_FILE, "%s: expected tensor %s, which %s puts here, found no such tensor",
                           c->names[number], bert_quote(quoted, sizeof quoted, tensor, strlen(tensor)), INDEX);
    free(tensor);
    return status;
}

static bert_status open_shards(bert_checkpoint *c, const bert_folder *folder, const char *text, size_t len,
                               bert_error *err) {
    bert_json root, map, key, value;
    size_t place = 0, mapped = 0, stored = 0;
    TRY(bert_json_check_file(&root, text, len, INDEX, err));
    if (!bert_json_member(root, "weight_map", &map) || bert_json_kind_of(map) != BERT_JSON_OBJECT)
        return bert_fail(err, BERT_BAD_FILE, "%s: expected an object \"weight_map\" from tensor names to files", INDEX);
    while (bert_json_next(map, &place, &key, &value)) {
        TRY(map_tensor(c, folder, key, value, err));
        mapped++;
    }
    if (mapped == 0) return bert_fail(err, BERT_BAD_FILE, "%s: weight_map is empty", INDEX);
    for (size_t i = 0; i < c->n_files; i++) stored += bert_safetensors_count(c->files[i]);
    if (stored != mapped)
        return bert_fail(err, BERT_BAD_FILE, "%s: weight_map lists %zu tensors, the shards hold %zu", INDEX, mapped,
                         stored);
    return BERT_OK;
}

static bert_status open_index(bert_checkpoint *c, const bert_folder *folder, bert_error *err) {
    char *text = NULL;
    size_t len;
    TRY(bert_folder_text(folder, INDEX, INDEX_LIMIT, &text, &len, err));
    const bert_status status = open_shards(c, folder, text, len, err);
    free(text);
    return status;
}

static bert_status refuse_other_weights(const bert_folder *folder, bert_error *err) {
    static const char *const OTHER[] = {"pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5",
                                        "flax_model.msgpack", "bert_model.ckpt.index", "model.onnx"};
    for (size_t i = 0; i < sizeof OTHER / sizeof *OTHER; i++)
        if (bert_folder_has(folder, OTHER[i]))
            return bert_fail(err, BERT_UNSUPPORTED,
                             "%s: expected %s, found only %s: in Python, load the folder with transformers and call "
                             "save_pretrained, which writes safetensors",
                             folder->dir ? folder->dir : "model", SINGLE, OTHER[i]);
    return bert_fail(err, BERT_NOT_FOUND, "%s: expected %s or %s, found neither", folder->dir ? folder->dir : "model",
                     SINGLE, INDEX);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const bert_stored *)a)->info->name, ((const bert_stored *)b)->info->name);
}

static bert_status list_tensors(bert_checkpoint *c, bert_error *err) {
    size_t count = 0, n = 0;
    for (size_t i = 0; i < c->n_files; i++) count += bert_safetensors_count(c->files[i]);
    c->tensors = calloc(count ? count : 1, sizeof *c->tensors);
    if (!c->tensors) return bert_fail(err, BERT_NO_MEMORY, "no memory for a table of %zu tensors", count);
    for (size_t i = 0; i < c->n_files; i++)
        for (size_t k = 0; k < bert_safetensors_count(c->files[i]); k++)
            c->tensors[n++] = (bert_stored){bert_safetensors_at(c->files[i], k), c->files[i], c->names[i], 0};
    c->n_tensors = n;
    qsort(c->tensors, n, sizeof *c->tensors, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&c->tensors[i - 1], &c->tensors[i]) == 0)
            return bert_fail(err, BERT_BAD_FILE, "%s: tensor %s is also in %s", c->tensors[i].file_name,
                             c->tensors[i].info->name, c->tensors[i - 1].file_name);
    return BERT_OK;
}

bert_status bert_checkpoint_open(bert_checkpoint *checkpoint, const bert_folder *folder, bert_error *err) {
    bert_status status;
    memset(checkpoint, 0, sizeof *checkpoint);
    if (bert_folder_has(folder, SINGLE))
        status = open_single(checkpoint, folder, err);
    else if (bert_folder_has(folder, INDEX))
        status = open_index(checkpoint, folder, err);
    else
        status = refuse_other_weights(folder, err);
    if (status == BERT_OK) status = list_tensors(checkpoint, err);
    if (status != BERT_OK) bert_checkpoint_close(checkpoint);
    return status;
}

void bert_checkpoint_close(bert_checkpoint *checkpoint) {
    for (size_t i = 0; i < checkpoint->n_files; i++) {
        bert_safetensors_close(&checkpoint->files[i]);
        free(checkpoint->names[i]);
    }
    free(checkpoint->files);
    free(checkpoint->names);
    free(checkpoint->tensors);
    memset(checkpoint, 0, sizeof *checkpoint);
}

static int name_against(const void *name, const void *stored) {
    return strcmp(name, ((const bert_stored *)stored)->info->name);
}

bert_stored *bert_checkpoint_find(const bert_checkpoint *checkpoint, const char *name) {
    return bsearch(name, checkpoint->tensors, checkpoint->n_tensors, sizeof *checkpoint->tensors, name_against);
}

bert_status bert_checkpoint_unchanged(const bert_checkpoint *checkpoint, bert_error *err) {
    for (size_t i = 0; i < checkpoint->n_files; i++) TRY(bert_safetensors_unchanged(checkpoint->files[i], err));
    return BERT_OK;
}
