/* bert/model.h: a BERT encoder as Hugging Face publishes it: config.json and safetensors, opened as they are. */
#ifndef BERT_MODEL_H
#define BERT_MODEL_H

#include <bert/safetensors.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bert_model bert_model; /* immutable; any number of threads; kept alive by its sessions */

/* The kernels' instruction set. BERT_ISA_AUTO takes the best that this CPU and build have; all give the same bits. */
typedef enum bert_isa { BERT_ISA_AUTO, BERT_ISA_REF, BERT_ISA_AVX2, BERT_ISA_AVX512, BERT_ISA_NEON } bert_isa;
/* "ref", "avx2", …; for BERT_ISA_AUTO the name of what it stands for here. NULL if not available here. */
BERT_API const char *bert_isa_name(bert_isa isa);

/* A matrix product from outside, used instead of our kernels for all linear layers: y[T,N] = x[T,K] · w[N,K]ᵀ, row
 * strides ldy, ldx, ldw in elements. Called on the thread that called bert_run. Results through it are outside the
 * same-bits promise. */
typedef struct bert_gemm {
    void *user;
    const char *name;
    void (*multiply)(void *user, float *y, size_t ldy, const float *x, size_t ldx, const float *w, size_t ldw,
                     size_t t, size_t n, size_t k);
} bert_gemm;

/* Where a pass takes the matrices from. Results are the same bits. AUTO: the first pass reads them from the file block
 * by block, which is what one text costs least with; the second packs them into memory for all that follow. */
typedef enum bert_weights_from { BERT_WEIGHTS_AUTO, BERT_WEIGHTS_PACKED, BERT_WEIGHTS_FILE } bert_weights_from;

typedef struct bert_model_options {
    size_t size;
    const bert_memory *memory;   /* NULL: the C library's */
    const bert_notes *notes;     /* NULL: warnings are dropped */
    const bert_workers *workers; /* used while weights are packed, which may be in a pass: what they stand for must
                                    outlive the model; NULL: the calling thread alone */
    const bert_gemm *gemm;       /* NULL: our own kernels; kept by value, its name and user must outlive the model */
    bert_isa isa;
    int strict;                  /* 1: what would be a warning is an error */
    size_t max_memory;           /* bytes that packed weights may take; 0: no limit. Not for BERT_WEIGHTS_FILE */
    bert_weights_from weights;   /* BERT_WEIGHTS_AUTO; with a GEMM hook always packed */
} bert_model_options;
#define BERT_MODEL_OPTIONS_INIT \
    {sizeof(bert_model_options), NULL, NULL, NULL, NULL, BERT_ISA_AUTO, 0, 0, BERT_WEIGHTS_AUTO}

/* Opens a folder that holds config.json and model.safetensors (or model.safetensors.index.json and its shards).
 * Decoders (is_decoder) open too; what they need to run is said at bert_run.
 * Every tensor is checked against the configuration before the call returns; matrices are read when they are
 * first used. Errors: BERT_NOT_FOUND, BERT_IO, BERT_BAD_FILE, BERT_UNSUPPORTED, BERT_NO_MEMORY. */
BERT_API BERT_MUST_USE bert_status bert_model_open(bert_model **model, const char *dir,
                                                   const bert_model_options *options, bert_error *err);
/* The same from memory: files named as in a folder. The bytes must outlive the model. */
BERT_API BERT_MUST_USE bert_status bert_model_open_files(bert_model **model, const bert_file *files, size_t n,
                                                         const bert_model_options *options, bert_error *err);
/* Sessions that are still open keep the model alive. */
BERT_API void bert_model_close(bert_model **model);

/* Reads and packs all weights now instead of in a pass: for services, before threads or forks start. Does nothing
 * under BERT_WEIGHTS_FILE. */
BERT_API BERT_MUST_USE bert_status bert_model_prepare(const bert_model *model, bert_error *err);

typedef enum bert_activation {
    BERT_GELU_ERF, /* gelu: x·Φ(x) with erf (Hendrycks & Gimpel 2016, arXiv 1606.08415) */
    BERT_GELU_TANH, /* gelu_new, gelu_pytorch_tanh, gelu_fast: the tanh form of the same paper */
    BERT_RELU,
    BERT_SILU
} bert_activation;

typedef struct bert_model_info {
    size_t vocab, hidden, layers, heads, head_size, intermediate, positions, types;
    double layer_norm_eps;
    bert_activation activation;
    const char *hidden_act; /* as config.json spells it */
    const char *model_type;
    int32_t pad_token_id;
    int has_pooler;
    int is_decoder, cross_attention;
    size_t parameters;      /* elements of the tensors that are used */
    bert_isa isa;           /* what runs here */
    const char *gemm;       /* "native", or the hook's name */
} bert_model_info;
BERT_API bert_model_info bert_model_describe(const bert_model *model);

/* Every tensor of the files. `used` 0: nothing here needs it (a task head, position_ids, an unknown name). */
typedef struct bert_model_tensor {
    const bert_tensor_info *info;
    const char *file;
    int used;
} bert_model_tensor;
BERT_API size_t bert_model_tensor_count(const bert_model *model);
/* From 0; behind the last one `info` and `file` are NULL. */
BERT_API bert_model_tensor bert_model_tensor_at(const bert_model *model, size_t i);
/* HF name of the i-th part that is absent though the configuration could have it (the pooler), NULL behind the last. */
BERT_API const char *bert_model_missing(const bert_model *model, size_t i);

/* Names the first tensor that has a NaN or infinite value (*name NULL if none): reads all weights, also those of
 * heads. */
BERT_API BERT_MUST_USE bert_status bert_model_check_finite(const bert_model *model, const char **name, bert_error *err);

/* Identity of the weights in use as hexadecimal digits: XXH3-128 over name and float32 values of each, in the
 * order of the table in docs; the same for any sharding, prefix or spelling of names. Reads all weights. */
BERT_API BERT_MUST_USE bert_status bert_model_hash(const bert_model *model, char hex[33], bert_error *err);

#ifdef __cplusplus
}
#endif
#endif
