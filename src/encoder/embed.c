/* encoder/embed.c: token ids to the first hidden states: LayerNorm(word + type + position). */
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/size.h"
#include "encoder/session.h"
#include "encoder/taps.h"

enum { ITEM_ROWS = 16 };

/* In HF's order of addition, which decides the last bit. */
static void add_rows(float *y, const float *word, const float *type, const float *position, size_t h) {
    for (size_t i = 0; i < h; i++) y[i] = word[i] + type[i] + position[i];
}

/* Row `index` of a table: where it is in memory, or read into `scratch`. */
static bert_status row_of(const bert_pass *pass, const bert_param *table, size_t index, float *scratch,
                          const float **row, bert_error *err) {
    *row = scratch;
    if (!pass->packed) return bert_param_rows(table, index, 1, scratch, err);
    *row = table->data + index * table->cols;
    return BERT_OK;
}

/* Where somebody looks at the embeddings' parts, they stand in qkv, which is not in use yet: word, type, position, each
 * [T, H]. */
static bool parts_wanted(const bert_pass *pass) {
    return bert_taps_wanted(pass, BERT_SITE_WORD, 0) || bert_taps_wanted(pass, BERT_SITE_POSITION, 0) ||
           bert_taps_wanted(pass, BERT_SITE_TYPE, 0);
}

static bert_status embed_token(const bert_pass *pass, size_t token, size_t position, float *scratch, bert_error *err) {
    const bert_weights *w = pass->session->weights;
    const bert_batch *batch = pass->batch;
    const size_t h = pass->session->config->hidden;
    const float *row[3]; /* word, type, position */
    TRY(row_of(pass, &w->word, (size_t)batch->ids[token], scratch, &row[0], err));
    TRY(row_of(pass, &w->type, batch->types ? (size_t)batch->types[token] : 0, scratch + h, &row[1], err));
    TRY(row_of(pass, &w->position, position, scratch + 2 * h, &row[2], err));
    add_rows(pass->b.sum + token * h, row[0], row[1], row[2], h);
    if (!parts_wanted(pass)) return BERT_OK;
    for (size_t part = 0; part < 3; part++)
        memcpy(pass->b.qkv + (part * pass->tokens + token) * h, row[part], h * sizeof *row[part]);
    return BERT_OK;
}

static bert_status embed_item(void *arg, size_t item, int slot, bert_error *err) {
    const bert_pass *pass = arg;
    const bert_batch *batch = pass->batch;
    const size_t first = item * ITEM_ROWS;
    const size_t last = first + ITEM_ROWS < pass->tokens ? first + ITEM_ROWS : pass->tokens;
    size_t text = bert_run_at(batch->start, batch->n, first);
    for (size_t token = first; token < last; token++) {
        if (token == batch->start[text + 1]) text++;
        TRY(embed_token(pass, token, token - batch->start[text], bert_pass_scratch(pass, slot), err));
    }
    return BERT_OK;
}

/* Hands the parts out, and adds them again as they came back. */
static bert_status show_parts(bert_pass *pass, bert_error *err) {
    const size_t h = pass->session->config->hidden, step = pass->tokens * h;
    float *word = pass->b.qkv, *type = word + step, *position = type + step;
    TRY(bert_taps_emit(pass, BERT_SITE_WORD, 0, word, h, err));
    TRY(bert_taps_emit(pass, BERT_SITE_POSITION, 0, position, h, err));
    TRY(bert_taps_emit(pass, BERT_SITE_TYPE, 0, type, h, err));
    const uint64_t host = bert_fpenv_enter();
    add_rows(pass->b.sum, word, type, position, step);
    bert_fpenv_leave(host);
    return BERT_OK;
}

bert_status bert_pass_embed(bert_pass *pass, bert_error *err) {
    const bert_weights *w = pass->session->weights;
    TRY(bert_pass_parallel(pass, (pass->tokens + ITEM_ROWS - 1) / ITEM_ROWS, embed_item, pass, err));
    if (parts_wanted(pass)) TRY(show_parts(pass, err));
    return bert_pass_layer_norm(pass, pass->b.hidden, pass->b.sum, &w->gamma, &w->beta, 0, err);
}
