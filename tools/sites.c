#include "sites.h"

#include <string.h>

const site_name site_names[SITES + 1] = {
    [SITE_WEIGHTS] = {"weights", "attentions", BERT_SITE_WEIGHTS},
    [SITE_SCORES] = {"scores", "scores", BERT_SITE_SCORES},
    [SITE_QUERY] = {"query", "query", BERT_SITE_QUERY},
    [SITE_KEY] = {"key", "key", BERT_SITE_KEY},
    {"value", "value", BERT_SITE_VALUE},
    {"context", "context", BERT_SITE_CONTEXT},
    {"hidden_states", "hidden_states", BERT_SITE_HIDDEN_STATES},
    {"word_embeddings", "word_embeddings", BERT_SITE_WORD},
    {"position_embeddings", "position_embeddings", BERT_SITE_POSITION},
    {"type_embeddings", "type_embeddings", BERT_SITE_TYPE},
    {"value_output", "value_output", BERT_SITE_VALUE_OUTPUT},
    {"head_output", "head_output", BERT_SITE_HEAD_OUTPUT},
    {"attention_output", "attention_output", BERT_SITE_ATTENTION_OUTPUT},
    {"attention_sum", "attention_sum", BERT_SITE_ATTENTION_SUM},
    {"ffn_pre", "ffn_pre", BERT_SITE_FFN_PRE},
    {"ffn_post", "ffn_post", BERT_SITE_FFN_POST},
    {"ffn_output", "ffn_output", BERT_SITE_FFN_OUTPUT},
    {"ffn_sum", "ffn_sum", BERT_SITE_FFN_SUM},
    [SITE_CROSS] = {"cross_weights", "cross_attentions", BERT_SITE_CROSS_WEIGHTS},
    [SITE_CROSS_SCORES] = {"cross_scores", "cross_scores", BERT_SITE_CROSS_SCORES},
    {0}};

int site_comes_once(bert_site site) {
    return site == BERT_SITE_WORD || site == BERT_SITE_POSITION || site == BERT_SITE_TYPE;
}

int site_has_heads(bert_site site) {
    return (site >= BERT_SITE_QUERY && site <= BERT_SITE_CONTEXT) || site == BERT_SITE_VALUE_OUTPUT ||
           site == BERT_SITE_HEAD_OUTPUT || site == BERT_SITE_CROSS_WEIGHTS || site == BERT_SITE_CROSS_SCORES;
}

size_t site_layers(bert_site site, const bert_model_info *info) {
    if (site_comes_once(site)) return 1;
    return site == BERT_SITE_HIDDEN_STATES ? info->layers + 1 : info->layers;
}

size_t site_floats(const bert_view *view) {
    size_t n = 1;
    for (int i = 0; i < view->rank; i++) n *= view->dim[i];
    return n;
}

/* rows [n0, n1] of a view of rank 1 to 3, written from x on; returns where it stopped. */
static float *copy_rows(float *x, const float *data, const size_t *dim, const size_t *step, int rank) {
    if (rank == 1 && step[0] == 1) {
        memcpy(x, data, dim[0] * sizeof *x);
        return x + dim[0];
    }
    for (size_t i = 0; i < dim[0]; i++) {
        if (rank == 1)
            *x++ = data[i * step[0]];
        else
            x = copy_rows(x, data + i * step[0], dim + 1, step + 1, rank - 1);
    }
    return x;
}

int site_copy(float *x, size_t dim[4], const bert_view *view, const char *heads) {
    dim[0] = 1;
    for (int i = 0; i < view->rank; i++) dim[i + 1] = view->dim[i];
    if (view->rank < 3) {
        copy_rows(x, view->data, view->dim, view->step, view->rank);
        return view->rank + 1;
    }
    dim[1] = 0;
    for (size_t a = 0; a < view->dim[0]; a++) {
        if (heads && !heads[a]) continue;
        x = copy_rows(x, view->data + a * view->step[0], view->dim + 1, view->step + 1, 2);
        dim[1]++;
    }
    return 4;
}
