/* file/folder.c: small files as one text, and folders on disk or in memory. */
#include "file/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

/* The size is what the file had at open; a file that shrinks or grows meanwhile is BERT_CHANGED. */
static bert_status read_all(char **text, size_t *len, const bert_source *source, size_t limit, bert_error *err) {
    const char *name = bert_source_name(source);
    const uint64_t size = bert_source_size(source);
    if (size > limit) {
        return bert_fail(err, BERT_BAD_FILE, "%s: %llu bytes, the limit is %zu", name, (unsigned long long)size, limit);
    }
    char *bytes = malloc((size_t)size + 1);
    if (bytes == NULL) return bert_fail(err, BERT_NO_MEMORY, "%s: no memory for its %zu bytes", name, (size_t)size);
    bert_status status = bert_source_read(source, 0, bytes, (size_t)size, err);
    if (status == BERT_OK) status = bert_source_unchanged(source, err);
    if (status != BERT_OK) {
        free(bytes);
        return status;
    }
    bytes[size] = '\0';
    *text = bytes;
    *len = (size_t)size;
    return BERT_OK;
}

bert_status bert_read_text(char **text, size_t *len, const char *path, size_t limit, bert_error *err) {
    bert_source *source;
    TRY(bert_source_open(&source, path, err));
    const bert_status status = read_all(text, len, source, limit, err);
    bert_source_close(&source);
    return status;
}

int bert_plain_name(const char *name) {
    return name[0] != '\0' && strpbrk(name, "/\\") == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static const bert_file *find(const bert_folder *folder, const char *name) {
    for (size_t i = 0; i < folder->n; i++) {
        if (strcmp(folder->files[i].name, name) == 0) return &folder->files[i];
    }
    return NULL;
}

static char *join(const char *dir, const char *name) {
    const size_t room = strlen(dir) + strlen(name) + 2;
    char *path = malloc(room);
    if (path != NULL) snprintf(path, room, "%s/%s", dir, name);
    return path;
}

int bert_folder_has(const bert_folder *folder, const char *name) {
    if (!bert_plain_name(name)) return 0;
    if (folder->dir == NULL) return find(folder, name) != NULL;
    char path[PATH_MAX];
    struct stat is;
    /* What is there but cannot be looked at (no permission, a name too long, a link whose file is gone) must not pass
     * for absent: opening it will say what is wrong. So the link is asked, not what it leads to. */
    if (snprintf(path, sizeof path, "%s/%s", folder->dir, name) >= (int)sizeof path) return 1;
    return lstat(path, &is) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bert_status bert_folder_source(const bert_folder *folder, const char *name, bert_source **source, bert_error *err) {
    *source = NULL;
    if (!bert_plain_name(name)) {
        char quoted[128];
        bert_quote(quoted, sizeof quoted, name, strlen(name));
        return bert_fail(err, BERT_BAD_FILE, "'%s': not the plain name of a file in the model's folder", quoted);
    }
    if (folder->dir == NULL) {
        const bert_file *file = find(folder, name);
        if (file == NULL) return bert_fail(err, BERT_NOT_FOUND, "%s: not among the files given from memory", name);
        return bert_source_open_memory(source, file, err);
    }
    char *path = join(folder->dir, name);
    if (path == NULL) return bert_fail(err, BERT_NO_MEMORY, "%s: no memory for its path", name);
    const bert_status status = bert_source_open(source, path, err);
    free(path);
    return status;
}

bert_status bert_folder_text(const bert_folder *folder, const char *name, size_t limit, char **text, size_t *len,
                             bert_error *err) {
    bert_source *source;
    TRY(bert_folder_source(folder, name, &source, err));
    const bert_status status = read_all(text, len, source, limit, err);
    bert_source_close(&source);
    return status;
}
