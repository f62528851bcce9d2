/* text/load_added.c: ids and search sets of the added tokens. */
#include "text/loader.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int by_content(const void *a, const void *b) {
    const bert_declared *const *x = a, *const *y = b;
    const int order = strcmp((*x)->content, (*y)->content);
    return order ? order : (*x > *y) - (*x < *y);
}

static void absorb(bert_declared *kept, bert_declared *later) {
    char *content = kept->content;
    const int32_t id = kept->id >= 0 ? kept->id : later->id;
    free(later->content);
    later->content = NULL;
    if (!later->named || kept->named) *kept = *later;
    kept->content = content;
    kept->id = id;
}

/* Of equal contents the first place counts and the last flags that a list gave; the others are emptied. */
static bert_status merge_repeated(bert_loader *loader) {
    const size_t n = loader->added_n;
    bert_declared **sorted = malloc((n + 1) * sizeof *sorted);
    if (sorted == NULL) return bert_load_no_memory(loader);
    for (size_t i = 0; i < n; i++) sorted[i] = &loader->added[i];
    qsort(sorted, n, sizeof *sorted, by_content);
    for (size_t i = 0, first = 0; i < n; i++) {
        if (i == first || strcmp(sorted[i]->content, sorted[first]->content) != 0) {
            first = i;
            continue;
        }
        absorb(sorted[first], sorted[i]);
    }
    free(sorted);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (loader->added[i].content != NULL) loader->added[kept++] = loader->added[i];
    loader->added_n = kept;
    return BERT_OK;
}

/* The vocabulary's id, or the next free one behind it: ids in files are not what HF goes by. */
static bert_status give_id(bert_loader *loader, bert_declared *token, int32_t *next) {
    const bert_vocab *vocab = &loader->z->vocab;
    char name[64];
    const int32_t declared = token->id, known = bert_vocab_id(vocab, token->content, strlen(token->content));
    bert_quote(name, sizeof name, token->content, strlen(token->content));
    token->id = known;
    if (known >= 0 && declared >= 0 && declared != known)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: added token \"%s\" has id %d, but %d in the vocabulary",
                         loader->vocabulary, name, (int)declared, (int)known);
    if (known >= 0) return BERT_OK;
    if (bert_vocab_entry_of(vocab, *next) != NULL || *next == INT32_MAX)
        return bert_fail(loader->err, BERT_BAD_FILE, "%s: added token \"%s\" would get id %d, which another token has",
                         loader->vocabulary, name, (int)*next);
    token->id = (*next)++;
    if (declared < 0 || declared == token->id) return BERT_OK;
    return bert_load_differs(loader, "added token \"%s\" has id %d in the file; it gets %d, the next one behind the "
                                     "vocabulary, as in HF", name, (int)declared, (int)token->id);
}

static bert_status give_ids(bert_loader *loader) {
    bert_tokenizer *z = loader->z;
    size_t repeated;
    int32_t next = (int32_t)z->vocab.n;
    TRY(merge_repeated(loader));
    for (size_t i = 0; i < loader->added_n; i++) {
        bert_declared *token = &loader->added[i];
        TRY(give_id(loader, token, &next));
        if (!bert_vocab_add(&z->extra, token->id, token->content, strlen(token->content)))
            return bert_load_no_memory(loader);
    }
    return bert_vocab_build(&z->extra, "", 0, &repeated, loader->err);
}

static bert_status open_set(bert_loader *loader, bert_added_set *set, bool normalized) {
    size_t n = 0;
    for (size_t i = 0; i < loader->added_n; i++) n += loader->added[i].normalized == normalized;
    set->tokens = bert_memory_new(&loader->z->memory, n, sizeof *set->tokens);
    if (set->tokens == NULL) return bert_load_no_memory(loader);
    set->n = set->room = n;
    return BERT_OK;
}

static bert_status build_sets(bert_loader *loader) {
    bert_tokenizer *z = loader->z;
    bert_added_set *sets[2] = {&z->added.raw, &z->added.normalized};
    size_t n[2] = {0, 0};
    for (int k = 0; k < 2; k++) TRY(open_set(loader, sets[k], k == 1));
    for (size_t i = 0; i < loader->added_n; i++) {
        const bert_declared *d = &loader->added[i];
        const bert_vocab_entry *entry = bert_vocab_entry_of(&z->extra, d->id);
        sets[d->normalized]->tokens[n[d->normalized]++] =
            (bert_added_token){z->extra.bytes + entry->at, entry->len, d->id, d->special, d->single_word,
                               d->lstrip, d->rstrip, d->normalized};
    }
    return bert_added_set_build(&z->added.raw, loader->err);
}

/* Tokens that are searched in normalized text need the general path, and their own normalized form. */
static bert_status normalize_contents(bert_loader *loader) {
    bert_tokenizer *z = loader->z;
    if (z->added.normalized.n == 0) return BERT_OK;
    if (z->general == NULL) {
        z->general = bert_memory_new(&z->memory, 1, sizeof *z->general);
        if (z->general == NULL) return bert_load_no_memory(loader);
        z->general->memory = z->memory;
        const bert_normalize normalizer = {.kind = BERT_NORMALIZE_BERT, .bert = z->normalizer};
        if (!bert_general_add_normalizer(z->general, normalizer) ||
            !bert_general_add_splitter(z->general, (bert_splitter){.kind = BERT_SPLIT_BERT}))
            return bert_load_no_memory(loader);
    }
    return bert_general_normalize_added(z, loader->err);
}

bert_status bert_load_added(bert_loader *loader) {
    TRY(give_ids(loader));
    TRY(build_sets(loader));
    return normalize_contents(loader);
}
