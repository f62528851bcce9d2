/* fuzz/tiny_folder.h: a model of one layer, hidden size 4, with a head that scores pairs, in memory, and a pass over it. */
#ifndef BERT_FUZZ_TINY_FOLDER_H
#define BERT_FUZZ_TINY_FOLDER_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

enum { TINY_VOCAB = 12, TINY_HIDDEN = 4, TINY_INNER = 6, TINY_POSITIONS = 8, TINY_WEIGHTS = 8192 };

static const char tiny_config[] =
    "{\"model_type\":\"bert\",\"vocab_size\":12,\"hidden_size\":4,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
    "\"intermediate_size\":6,\"max_position_embeddings\":8,\"type_vocab_size\":2,\"hidden_act\":\"gelu\","
    "\"layer_norm_eps\":1e-12}";

static const char tiny_vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\nc\n.\n,\n";

/* A container that fits tiny_config, its values small and different. Returns its length. */
static inline size_t tiny_weights(unsigned char bytes[TINY_WEIGHTS]) {
    static const struct {
        const char *name;
        int rows, columns; /* columns 0: a vector */
    } tensors[] = {
        {"embeddings.word_embeddings.weight", 12, 4}, {"embeddings.position_embeddings.weight", 8, 4},
        {"embeddings.token_type_embeddings.weight", 2, 4}, {"embeddings.LayerNorm.weight", 4, 0},
        {"embeddings.LayerNorm.bias", 4, 0}, {"encoder.layer.0.attention.self.query.weight", 4, 4},
        {"encoder.layer.0.attention.self.query.bias", 4, 0}, {"encoder.layer.0.attention.self.key.weight", 4, 4},
        {"encoder.layer.0.attention.self.key.bias", 4, 0}, {"encoder.layer.0.attention.self.value.weight", 4, 4},
        {"encoder.layer.0.attention.self.value.bias", 4, 0}, {"encoder.layer.0.attention.output.dense.weight", 4, 4},
        {"encoder.layer.0.attention.output.dense.bias", 4, 0}, {"encoder.layer.0.attention.output.LayerNorm.weight", 4, 0},
        {"encoder.layer.0.attention.output.LayerNorm.bias", 4, 0}, {"encoder.layer.0.intermediate.dense.weight", 6, 4},
        {"encoder.layer.0.intermediate.dense.bias", 6, 0}, {"encoder.layer.0.output.dense.weight", 4, 6},
        {"encoder.layer.0.output.dense.bias", 4, 0}, {"encoder.layer.0.output.LayerNorm.weight", 4, 0},
        {"encoder.layer.0.output.LayerNorm.bias", 4, 0}, {"pooler.dense.weight", 4, 4}, {"pooler.dense.bias", 4, 0},
        {"classifier.weight", 1, 4}, {"classifier.bias", 1, 0}};
    char *header = (char *)bytes + 8, *p = header;
    size_t at = 0;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const size_t n = (size_t)tensors[i].rows * (size_t)(tensors[i].columns > 0 ? tensors[i].columns : 1) * 4;
        p += sprintf(p, "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[%d", i > 0 ? ',' : '{', tensors[i].name, tensors[i].rows);
        if (tensors[i].columns > 0) p += sprintf(p, ",%d", tensors[i].columns);
        p += sprintf(p, "],\"data_offsets\":[%zu,%zu]}", at, at + n);
        at += n;
    }
    *p++ = '}';
    const uint64_t length = (uint64_t)(p - header);
    memcpy(bytes, &length, 8);
    for (size_t i = 0; i < at / 4; i++, p += 4) {
        const float x = (float)(int)((i * 37) % 64) / 64 - 0.4f;
        memcpy(p, &x, 4);
    }
    return (size_t)(p - (char *)bytes);
}

static inline bert_status tiny_pass(const bert_model *model, float *hidden, size_t room) {
    static const int32_t ids[] = {2, 5, 1, 3, 0};
    static const size_t start[] = {0, 4, 5};
    const bert_batch batch = {sizeof batch, 2, start, ids, NULL};
    bert_session *session;
    bert_tap tap = BERT_TAP_INIT;
    bert_error err;
    tap.layer = (int32_t)bert_model_describe(model).layers;
    tap.dst = hidden, tap.dst_len = room;
    if (bert_session_open(&session, model, NULL, NULL) != BERT_OK) abort();
    const bert_status status = bert_run(session, &batch, &tap, 1, NULL, &err);
    bert_session_close(&session);
    for (size_t i = 0; status == BERT_OK && i < 5 * bert_model_describe(model).hidden; i++)
        if (!isfinite(hidden[i])) abort(); /* never served silently */
    return status;
}

/* Opens the files; what opens is run twice. */
static inline void tiny_run(const bert_file *files, size_t n) {
    bert_model *model;
    bert_error err = {BERT_OK, ""};
    if (bert_model_open_files(&model, files, n, NULL, &err) != BERT_OK) {
        if (model != NULL || strlen(err.text) < 10 || strchr(err.text, '\n') != NULL) abort();
        return;
    }
    const size_t room = 5 * bert_model_describe(model).hidden;
    float *once = malloc(room * sizeof *once), *again = malloc(room * sizeof *again);
    const bert_status status = tiny_pass(model, once, room);
    if (tiny_pass(model, again, room) != status) abort();
    if (status == BERT_OK && memcmp(once, again, room * sizeof *once) != 0) abort();
    free(once);
    free(again);
    bert_model_close(&model);
}

#endif
