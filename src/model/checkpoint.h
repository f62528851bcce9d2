/* model/checkpoint.h: the tensors of a model folder, whether they are in one file or in shards. */
#ifndef BERT_MODEL_CHECKPOINT_H
#define BERT_MODEL_CHECKPOINT_H

#include "file/safetensors.h"

typedef struct bert_stored {
    const bert_tensor_info *info;
    const bert_safetensors *file;
    const char *file_name;
    int used;
} bert_stored;

typedef struct bert_checkpoint {
    bert_safetensors **files; /* [n_files] */
    char **names;             /* [n_files], plain file names */
    size_t n_files;
    bert_stored *tensors; /* [n_tensors], in order of name */
    size_t n_tensors;
} bert_checkpoint;

/* Opens model.safetensors, else model.safetensors.index.json with its shards. Every name must be in the shard that
 * the index says, and nowhere else. A folder that only has weights of other kinds is told so. */
BERT_MUST_USE bert_status bert_checkpoint_open(bert_checkpoint *checkpoint, const bert_folder *folder,
                                               bert_error *err);
void bert_checkpoint_close(bert_checkpoint *checkpoint);

/* NULL if there is none. */
bert_stored *bert_checkpoint_find(const bert_checkpoint *checkpoint, const char *name);

/* BERT_CHANGED if any of the files is no longer what was opened. */
BERT_MUST_USE bert_status bert_checkpoint_unchanged(const bert_checkpoint *checkpoint, bert_error *err);

#endif
