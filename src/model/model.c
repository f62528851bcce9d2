#include "model/model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "file/dtype.h"
#include "file/json.h"

enum { CONFIG_LIMIT = 4 << 20, BLOCK = 1 << 16 };

struct bert_model {
    bert_config config;
    bert_checkpoint checkpoint;
    bert_weights weights;
    const bert_kernels *kernels;
    bert_memory memory;
    bert_workers workers;
    bert_gemm gemm;
    bool has_workers, has_gemm;
    size_t max_memory;
    bert_weights_from from;
    char *text[BERT_MODEL_TEXTS]; /* of the folder's files, for heads; NULL: not there */
    size_t text_len[BERT_MODEL_TEXTS];
    pthread_mutex_t lock; /* guards packing */
    atomic_bool packed;
    atomic_bool was_used; /* a first pass has begun */
    atomic_size_t owners;
};

bert_model_options bert_model_options_or_default(const bert_model_options *given) {
    bert_model_options options = BERT_MODEL_OPTIONS_INIT;
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    return options;
}

/* ---- Opening. ---- */

static const char *const TEXT_NAMES[] = {"config.json", "config_sentence_transformers.json"};

static bert_status read_text(bert_model *m, const bert_folder *folder, bert_model_text which, bert_error *err) {
    return bert_folder_text(folder, TEXT_NAMES[which], CONFIG_LIMIT, &m->text[which], &m->text_len[which], err);
}

static bert_status read_config(bert_model *m, const bert_folder *folder, bert_error *err) {
    if (!bert_folder_has(folder, "config.json") && bert_folder_has(folder, "bert_config.json"))
        return bert_fail(err, BERT_UNSUPPORTED,
                         "%s: expected config.json, found bert_config.json (the layout before Hugging Face)",
                         folder->dir ? folder->dir : "model");
    TRY(read_text(m, folder, BERT_TEXT_CONFIG, err));
    TRY(bert_config_parse(&m->config, m->text[BERT_TEXT_CONFIG], m->text_len[BERT_TEXT_CONFIG], "config.json", err));
    return bert_folder_has(folder, TEXT_NAMES[BERT_TEXT_SENTENCE]) ? read_text(m, folder, BERT_TEXT_SENTENCE, err)
                                                                   : BERT_OK;
}

static bert_status take_options(bert_model *m, const bert_model_options *o, bert_error *err) {
    TRY(bert_kernels_selftest(err));
    m->kernels = bert_kernels_get(o->isa);
    if (!m->kernels)
        return bert_fail(err, BERT_UNSUPPORTED, "the instruction set asked for is not available on this processor");
    m->memory = bert_memory_or_default(o->memory);
    m->has_workers = o->workers != NULL;
    if (o->workers) m->workers = *o->workers;
    m->has_gemm = o->gemm != NULL;
    if (o->gemm) m->gemm = *o->gemm;
    m->max_memory = o->max_memory;
    m->from = o->gemm ? BERT_WEIGHTS_PACKED : o->weights;
    return BERT_OK;
}

static bert_status check_memory_limit(bert_model *m, bert_error *err) {
    if (m->max_memory == 0 || m->from == BERT_WEIGHTS_FILE) return BERT_OK;
    size_t needed;
    TRY(bert_weights_bytes(&m->weights, &needed, err));
    if (needed <= m->max_memory) return BERT_OK;
    return bert_fail(err, BERT_NO_MEMORY, "the weights take %zu bytes, the limit given is %zu", needed,
                     m->max_memory);
}

static bert_status open_parts(bert_model *m, const bert_folder *folder, const bert_model_options *o, bert_error *err) {
    TRY(take_options(m, o, err));
    TRY(read_config(m, folder, err));
    TRY(bert_checkpoint_open(&m->checkpoint, folder, err));
    TRY(bert_weights_bind(&m->weights, &m->config, &m->checkpoint, !m->has_gemm, o, err));
    TRY(check_memory_limit(m, err));
    TRY(bert_weights_load_vectors(&m->weights, &m->memory, err));
    return bert_checkpoint_unchanged(&m->checkpoint, err);
}

static void destroy(bert_model *m) {
    bert_weights_close(&m->weights);
    bert_checkpoint_close(&m->checkpoint);
    for (int i = 0; i < BERT_MODEL_TEXTS; i++) free(m->text[i]);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static bert_status open_folder(bert_model **model, const bert_folder *folder, const bert_model_options *given,
                               bert_error *err) {
    const bert_model_options options = bert_model_options_or_default(given);
    bert_model *m = calloc(1, sizeof *m);
    *model = NULL;
    if (!m) return bert_fail(err, BERT_NO_MEMORY, "no memory to open a model");
    pthread_mutex_init(&m->lock, NULL);
    atomic_init(&m->owners, 1);
    const bert_status status = open_parts(m, folder, &options, err);
    if (status != BERT_OK) {
        destroy(m);
        return status;
    }
    *model = m;
    return BERT_OK;
}

bert_status bert_model_open(bert_model **model, const char *dir, const bert_model_options *options, bert_error *err) {
    return open_folder(model, &(bert_folder){.dir = dir}, options, err);
}

bert_status bert_model_open_files(bert_model **model, const bert_file *files, size_t n,
                                  const bert_model_options *options, bert_error *err) {
    return open_folder(model, &(bert_folder){.files = files, .n = n}, options, err);
}

/* ---- Owners. ---- */

void bert_model_retain(const bert_model *model) {
    atomic_fetch_add_explicit(&((bert_model *)model)->owners, 1, memory_order_relaxed);
}

void bert_model_release(const bert_model *model) {
    bert_model *m = (bert_model *)model;
    if (atomic_fetch_sub_explicit(&m->owners, 1, memory_order_acq_rel) == 1) destroy(m);
}

void bert_model_close(bert_model **model) {
    if (!model || !*model) return;
    bert_model_release(*model);
    *model = NULL;
}

/* ---- Weights. ---- */

static bert_status pack_locked(bert_model *m, bert_error *err) {
    if (atomic_load_explicit(&m->packed, memory_order_relaxed)) return BERT_OK;
    TRY(bert_weights_load_matrices(&m->weights, m->kernels, &m->memory, m->has_workers ? &m->workers : NULL, err));
    const bert_status status = bert_checkpoint_unchanged(&m->checkpoint, err);
    if (status == BERT_OK) atomic_store_explicit(&m->packed, true, memory_order_release);
    else bert_arena_close(&m->weights.matrices); /* the next pass tries again */
    return status;
}

static bert_status pack(bert_model *m, bert_error *err) {
    pthread_mutex_lock(&m->lock);
    const bert_status status = pack_locked(m, err);
    pthread_mutex_unlock(&m->lock);
    return status;
}

/* Packing costs about what one pass from the file costs more than a packed one, so the second pass is the time. */
static bool time_to_pack(bert_model *m) {
    if (m->from != BERT_WEIGHTS_AUTO) return m->from == BERT_WEIGHTS_PACKED;
    return atomic_exchange_explicit(&m->was_used, true, memory_order_relaxed);
}

bert_status bert_model_weights(const bert_model *model, const bert_weights **weights, bool *packed, bert_error *err) {
    bert_model *m = (bert_model *)model;
    *weights = &m->weights;
    *packed = atomic_load_explicit(&m->packed, memory_order_acquire);
    if (*packed || !time_to_pack(m)) return BERT_OK;
    *packed = true;
    return pack(m, err);
}

bert_status bert_model_unchanged(const bert_model *model, bert_error *err) {
    return bert_checkpoint_unchanged(&model->checkpoint, err);
}

bert_status bert_model_prepare(const bert_model *model, bert_error *err) {
    return model->from == BERT_WEIGHTS_FILE ? BERT_OK : pack((bert_model *)model, err);
}

/* ---- Description. ---- */

const bert_config *bert_model_config(const bert_model *model) { return &model->config; }
const bert_kernels *bert_model_kernels(const bert_model *model) { return model->kernels; }
const bert_gemm *bert_model_gemm(const bert_model *model) { return model->has_gemm ? &model->gemm : NULL; }
int bert_model_has_pooler(const bert_model *model) { return model->weights.pooler.parts > 0; }

bert_model_info bert_model_describe(const bert_model *model) {
    const bert_config *c = &model->config;
    return (bert_model_info){
        .vocab = c->vocab,
        .hidden = c->hidden,
        .layers = c->layers,
        .heads = c->heads,
        .head_size = c->hidden / c->heads,
        .intermediate = c->intermediate,
        .positions = c->positions,
        .types = c->types,
        .layer_norm_eps = c->layer_norm_eps,
        .activation = c->activation,
        .hidden_act = c->hidden_act,
        .model_type = c->model_type,
        .pad_token_id = c->pad_token_id,
        .has_pooler = bert_model_has_pooler(model),
        .is_decoder = c->is_decoder,
        .cross_attention = c->cross_attention,
        .parameters = model->weights.parameters,
        .isa = bert_kernels_isa(model->kernels),
        .gemm = model->has_gemm ? model->gemm.name : "native",
    };
}

const bert_stored *bert_model_find(const bert_model *model, const char *name) {
    return bert_checkpoint_find(&model->checkpoint, name);
}

bert_status bert_model_json(const bert_model *model, bert_model_text which, bert_json *root, bert_error *err) {
    *root = (bert_json){NULL, 0};
    if (!model->text[which]) return BERT_OK;
    return bert_json_check_file(root, model->text[which], model->text_len[which], TEXT_NAMES[which], err);
}

size_t bert_model_tensor_count(const bert_model *model) { return model->checkpoint.n_tensors; }

bert_model_tensor bert_model_tensor_at(const bert_model *model, size_t i) {
    if (i >= model->checkpoint.n_tensors) return (bert_model_tensor){NULL, NULL, 0};
    const bert_stored *s = &model->checkpoint.tensors[i];
    return (bert_model_tensor){s->info, s->file_name, s->used};
}

const char *bert_model_missing(const bert_model *model, size_t i) { return bert_weights_missing(&model->weights, i); }

/* ---- Reading all weights, block by block: the hash and the finite check. ---- */

typedef struct reading {
    const bert_kernels *kernels;
    XXH3_state_t *hash;     /* or NULL */
    const char *not_finite; /* name of the first tensor that is not */
    float block[BLOCK];
} reading;

/* A signalling NaN in a file must not trap in a host that has traps on. */
static int is_finite(const reading *r, size_t n) {
    const uint64_t host = bert_fpenv_enter();
    const int finite = bert_all_finite(r->kernels, r->block, n);
    bert_fpenv_leave(host);
    return finite;
}

static bert_status read_tensor(void *user, const char *name, const bert_stored *s, bert_error *err) {
    reading *r = user;
    if (r->not_finite) return BERT_OK;
    if (r->hash) XXH3_128bits_update(r->hash, name, strlen(name) + 1);
    for (size_t first = 0; first < s->info->count; first += BLOCK) {
        const size_t n = s->info->count - first < BLOCK ? s->info->count - first : BLOCK;
        TRY(bert_safetensors_read_f32(s->file, s->info, first, r->block, n, err));
        if (r->hash)
            XXH3_128bits_update(r->hash, r->block, n * sizeof *r->block);
        else if (!is_finite(r, n))
            r->not_finite = s->info->name;
    }
    return BERT_OK;
}

/* What the files have besides the encoder: heads. */
static bert_status read_others(const bert_model *model, reading *r, bert_error *err) {
    for (size_t i = 0; i < model->checkpoint.n_tensors; i++) {
        const bert_stored *s = &model->checkpoint.tensors[i];
        if (!s->used && bert_dtype_is_float(s->info->dtype)) TRY(read_tensor(r, s->info->name, s, err));
    }
    return BERT_OK;
}

/* The encoder's weights, which the hash is of; the check is also of the others. */
static bert_status read_all(const bert_model *model, reading *r, bert_error *err) {
    r->kernels = model->kernels;
    TRY(bert_weights_each(&model->weights, read_tensor, r, err));
    if (!r->hash) TRY(read_others(model, r, err));
    return bert_checkpoint_unchanged(&model->checkpoint, err);
}

bert_status bert_model_check_finite(const bert_model *model, const char **name, bert_error *err) {
    reading *r = calloc(1, sizeof *r);
    *name = NULL;
    if (!r) return bert_fail(err, BERT_NO_MEMORY, "no memory to read the weights");
    const bert_status status = read_all(model, r, err);
    *name = r->not_finite;
    free(r);
    return status;
}

bert_status bert_model_hash(const bert_model *model, char hex[33], bert_error *err) {
    bert_status status;
    reading *r = calloc(1, sizeof *r);
    if (r) r->hash = XXH3_createState();
    if (!r || !r->hash) {
        free(r);
        return bert_fail(err, BERT_NO_MEMORY, "no memory to hash the weights");
    }
    XXH3_128bits_reset(r->hash);
    TRY_OR_DONE(read_all(model, r, err));
    const XXH128_hash_t h = XXH3_128bits_digest(r->hash);
    snprintf(hex, 33, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
done:
    XXH3_freeState(r->hash);
    free(r);
    return status;
}
