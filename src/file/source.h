/* file/source.h: bytes from a path or from memory, read with pread into our own memory, never mapped. */
#ifndef BERT_FILE_SOURCE_H
#define BERT_FILE_SOURCE_H

#include <bert/base.h>

typedef struct bert_source bert_source; /* immutable; any number of threads may read */

/* Only regular files (a symlink to one is fine); FIFOs, devices and folders are BERT_BAD_FILE by name, at once. */
BERT_MUST_USE bert_status bert_source_open(bert_source **source, const char *path, bert_error *err);
/* A view of the caller's bytes. */
BERT_MUST_USE bert_status bert_source_open_memory(bert_source **source, const bert_file *memory, bert_error *err);
void bert_source_close(bert_source **source);

const char *bert_source_name(const bert_source *source); /* path or name, for messages */
uint64_t bert_source_size(const bert_source *source);
/* Exactly n bytes from `at`; EINTR and short reads are handled; an early end is BERT_CHANGED. */
BERT_MUST_USE bert_status bert_source_read(const bert_source *source, uint64_t at, void *bytes, size_t n,
                                           bert_error *err);
/* BERT_CHANGED if size, mtime, ctime or inode are no longer what they were at open. */
BERT_MUST_USE bert_status bert_source_unchanged(const bert_source *source, bert_error *err);

/* A small file as one NUL-terminated block (the NUL is not counted): config.json, tokenizer.json, vocab.txt.
 * Larger than `limit`: BERT_BAD_FILE. *text is freed with free(). Missing: BERT_NOT_FOUND. */
BERT_MUST_USE bert_status bert_read_text(char **text, size_t *len, const char *path, size_t limit, bert_error *err);

/* A folder of model files, on disk or in memory: what model, tokenizer and pipeline open their files from. */
typedef struct bert_folder {
    const char *dir; /* NULL: memory */
    const bert_file *files;
    size_t n;
} bert_folder;
/* 1 if the name, which may come from a file (the shards of an index), cannot lead out of the folder. */
int bert_plain_name(const char *name);
/* 1 if there is a file of this plain name. */
int bert_folder_has(const bert_folder *folder, const char *name);
BERT_MUST_USE bert_status bert_folder_text(const bert_folder *folder, const char *name, size_t limit, char **text,
                                           size_t *len, bert_error *err);
BERT_MUST_USE bert_status bert_folder_source(const bert_folder *folder, const char *name, bert_source **source,
                                             bert_error *err);

#endif
