/* task/pooling_config.c: the Pooling module's config.json, in the schemas before and from sentence-transformers 5.4. */
#include "base/error.h"
#include "task/modules.h"

/* In the order in which sentence-transformers puts several vectors behind one another; the new schema has its own. */
static const struct { const char *key, *mode; bert_pooling pooling; } POOLINGS[] = {
    {"pooling_mode_cls_token", "cls", BERT_POOLING_CLS},
    {"pooling_mode_max_tokens", "max", BERT_POOLING_MAX},
    {"pooling_mode_mean_tokens", "mean", BERT_POOLING_MEAN},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", BERT_POOLING_MEAN_SQRT_LEN},
    {"pooling_mode_weightedmean_tokens", "weightedmean", BERT_POOLING_WEIGHTED_MEAN},
    {"pooling_mode_lasttoken", "lasttoken", BERT_POOLING_LAST_TOKEN},
};
enum { N_POOLINGS = sizeof POOLINGS / sizeof *POOLINGS };

static bert_status add_pooling(bert_modules *m, bert_pooling pooling, const char *shown, bert_error *err) {
    if (m->n_poolings == BERT_MAX_POOLINGS)
        return bert_fail(err, BERT_UNSUPPORTED, "%s: more than %d pooling modes", shown, BERT_MAX_POOLINGS);
    m->pooling[m->n_poolings++] = pooling;
    return BERT_OK;
}

static bert_status add_mode(bert_modules *m, bert_json mode, const char *shown, bert_error *err) {
    char quoted[BERT_MODULE_QUOTE];
    for (size_t i = 0; i < N_POOLINGS; i++)
        if (bert_json_equals(mode, POOLINGS[i].mode)) return add_pooling(m, POOLINGS[i].pooling, shown, err);
    return bert_fail(err, BERT_UNSUPPORTED, "%s: pooling_mode %s is not known", shown,
                     bert_modules_quote(quoted, mode));
}

static bert_status read_modes(bert_modules *m, bert_json modes, const char *shown, bert_error *err) {
    bert_json mode;
    size_t place = 0;
    if (bert_json_kind_of(modes) != BERT_JSON_ARRAY) return add_mode(m, modes, shown, err);
    while (bert_json_next(modes, &place, NULL, &mode)) TRY(add_mode(m, mode, shown, err));
    if (m->n_poolings > 0) return BERT_OK;
    return bert_fail(err, BERT_BAD_FILE, "%s: pooling_mode: expected at least one mode", shown);
}

static bert_status read_flags(bert_modules *m, bert_json root, const char *shown, bert_error *err) {
    for (size_t i = 0; i < N_POOLINGS; i++) {
        int on = 0;
        TRY(bert_modules_bool(&on, root, POOLINGS[i].key, shown, err));
        if (on) TRY(add_pooling(m, POOLINGS[i].pooling, shown, err));
    }
    return BERT_OK;
}

bert_status bert_pooling_read(bert_modules *m, bert_json root, const char *shown, size_t hidden, bert_error *err) {
    static const char *const DIMENSION[] = {"word_embedding_dimension", "embedding_dimension"};
    bert_json value;
    int64_t dim;
    int include_prompt = 1;
    for (size_t i = 0; i < 2; i++)
        if (bert_json_member(root, DIMENSION[i], &value) &&
            !bert_json_integer(&dim, value, (int64_t)hidden, (int64_t)hidden))
            return bert_fail(err, BERT_BAD_FILE, "%s: %s: expected the model's hidden size %zu", shown, DIMENSION[i],
                             hidden);
    if (bert_json_member(root, "pooling_mode", &value)) TRY(read_modes(m, value, shown, err));
    else TRY(read_flags(m, root, shown, err));
    if (m->n_poolings == 0) m->pooling[m->n_poolings++] = BERT_POOLING_MEAN; /* as sentence-transformers has it */
    TRY(bert_modules_bool(&include_prompt, root, "include_prompt", shown, err));
    m->leave_out_prompt = !include_prompt;
    return BERT_OK;
}
