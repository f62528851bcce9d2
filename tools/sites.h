/* sites.h: the kinds of tensors that a pass can give, under the names that users and files know. */
#ifndef SITES_H
#define SITES_H

#include "engine.h"
#include "output/writer.h"

typedef struct site_name {
    const char *what;   /* as --what calls it */
    const char *tensor; /* as files do, before the layer's number */
    bert_site site;
} site_name;

/* Places in the table. The last two are not for --what: they come with scores and weights. */
enum { SITE_WEIGHTS, SITE_SCORES, SITE_QUERY, SITE_KEY, SITE_CROSS = 18, SITE_CROSS_SCORES, SITES };

/* Ended by what NULL. */
extern const site_name site_names[SITES + 1];

/* How many layers the site has: L+1 for hidden states, 1 for what comes once (the embeddings' parts), else L. */
size_t site_layers(bert_site site, const bert_model_info *info);
/* Such a site's tensor has no number. */
int site_comes_once(bert_site site);
/* Its views are [A, …]. */
int site_has_heads(bert_site site);

/* Copies the view into x, contiguous, with only the heads that are wanted (NULL: all) where it has heads, and fills
 * the shape with a batch of one in front. Returns the rank. x has room for the whole view. */
int site_copy(float *x, size_t dim[4], const bert_view *view, const char *heads);

/* Floats of a whole view. */
size_t site_floats(const bert_view *view);

#endif
