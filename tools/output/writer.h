/* output/writer.h: results in the formats that other programs read, one table row a format.
 *
 *     writer_open(&w, kind, sink, &facts);
 *     for each text:  writer_begin(w, &about);  for each tensor: writer_tensor(w, &t);  writer_end(w);
 *     writer_finish(w); writer_close(&w);
 *
 * Names and shapes are those of Hugging Face's outputs: hidden_states.3 [1, T, H], attentions.0 [1, A, T, T].
 */
#ifndef WRITER_H
#define WRITER_H

#include <bert/base.h>

#include "buffer.h"
#include "sink.h"

/* TENSOR_JSON is text: metadata where a format knows numbers only. */
typedef enum { TENSOR_F32, TENSOR_I64, TENSOR_JSON } tensor_type;

typedef struct tensor {
    const char *name; /* "hidden_states.3" */
    tensor_type type;
    int rank;
    size_t dim[4]; /* the first is 1: one text, unless `whole`; of JSON its bytes */
    const void *data;
    int whole; /* 1: no batch of one in front */
} tensor;

size_t tensor_count(const tensor *t); /* elements */
size_t tensor_bytes(const tensor *t);

/* What is known of one text besides its tensors. Everything is borrowed until writer_end. */
typedef struct about {
    const char *id; /* JSON as the user wrote it; NULL: none */
    size_t id_len;
    const bert_text *text; /* NULL: ids were given */
    const char *tokens;    /* JSON list of the tokens; NULL: not known, or not asked for */
    size_t n_tokens;       /* T */
    size_t truncated;      /* tokens that were cut off */
    size_t windows;        /* that it was read in; 0 or 1: it is whole */
    long second_begins;    /* index of the first token of the second text; -1: no pair */
} about;

/* What is known of all texts together. */
typedef struct facts {
    int several;       /* 1: names get "{n}." in front */
    int pad;           /* PAD_*: rows behind the last token (npy) */
    size_t pad_length; /* for PAD_FIXED */
    size_t embedding;  /* H of the one `embedding [N, H]`; 0: it was not asked for */
    int rank;          /* of the one kind of tensor, and its last dimension: for a npy file without any text */
    size_t width;
    char numerics[16]; /* revision of the arithmetic */
    char weights_hash[33];
    const char *heads; /* JSON list of the heads that were kept; NULL: all */
    const char *layers; /* likewise, where a tensor has a row for each of them */
    const char *prompt; /* what stood before each text; NULL: the model has no prompts */
    const char *model; /* for the page: the folder's name, */
    size_t keep;       /* how many weights of a row (0: all) */
    double min_weight; /* of at least this size, */
    const char *view;  /* and how it opens; NULL: its own choice */
} facts;
enum { PAD_NONE, PAD_LONGEST, PAD_FIXED };

typedef struct writer writer;

typedef struct writer_kind {
    const char *name, *ending; /* "npz", ".npz" */
    unsigned can;              /* WRITES_* */
    size_t state;              /* bytes of its own */
    int (*begin)(writer *w, const about *text);
    int (*tensor)(writer *w, const tensor *t);
    int (*end)(writer *w, const about *text);
    int (*finish)(writer *w);
    void (*close)(writer *w);
} writer_kind;

enum {
    WRITES_ONE_TENSOR = 1, /* a single tensor for each text */
    WRITES_IDS = 2,        /* input_ids, token_type_ids and attention_mask too */
    WRITES_STREAM = 4,     /* each text is complete when it has ended */
    WRITES_BINARY = 8,     /* not for terminals */
    WRITES_TOKENS = 16,    /* about.tokens is wanted */
    WRITES_METADATA = 32   /* numerics and weights_hash are wanted */
};

struct writer {
    const writer_kind *kind;
    sink *out;
    facts known;
    const about *text; /* the one between begin and end */
    size_t texts;      /* ended so far: the number of the one that is being written */
    buffer scratch;
    void *state;
};

extern const writer_kind writer_jsonl, writer_json, writer_npy, writer_npz, writer_safetensors, writer_f32, writer_text,
    writer_bertviz, writer_html;

int writer_open(writer **w, const writer_kind *kind, sink *out, const facts *known);
int writer_begin(writer *w, const about *text);
int writer_tensor(writer *w, const tensor *t);
int writer_end(writer *w);
int writer_finish(writer *w);
void writer_close(writer **w);

/* Appends the tensor's name, with "{n}." where there are several texts. */
void writer_name(writer *w, buffer *name, const char *tensor);
/* Calls add(w, key, s, n) with that name as key. */
int writer_add_text(writer *w, const char *name, const char *s, size_t n,
                    int (*add)(writer *w, const char *key, const char *s, size_t n));
/* The metadata of the current text, as far as it is known: calls add(w, key, text, len) for tokens, text, pair. */
int writer_metadata(writer *w, const about *text, int (*add)(writer *w, const char *key, const char *s, size_t n));
/* Likewise for numerics, weights_hash, prompt, heads and layers. */
int writer_global_metadata(writer *w, int (*add)(writer *w, const char *key, const char *s, size_t n));

/* The ending of the file's name with its dot; NULL: none, or there is no file. */
const char *writer_ending(const char *path);

/* Picks the format: `name` if not NULL, else by the ending of `path`, else the first of the list (NULL-terminated).
 * Says what there is if it is none of them. */
int writer_choose(const writer_kind **kind, const writer_kind *const *list, const char *name, const char *path);

#endif
