#include "attention_lens.h"

#include <stdlib.h>

#include "say.h"
#include "signals.h"
#include "token_list.h"

enum { AT_ONCE = 32 }; /* tokens between two looks at whether we are to stop */

int lens_open(lens *l, const engine *e, size_t top) {
    bert_error err;
    l->engine = e;
    l->top = top;
    if (top > e->info.vocab) return say_error("--top-k %zu: the model has %zu words", top, e->info.vocab);
    return bert_mlm_open(&l->head, e->model, &err) ? say_failure(&err) : 0;
}

static int write_tensor(lens *l, writer *w, const char *what, int layer, tensor t) {
    l->name.len = 0;
    buffer_print(&l->name, "%s.%d", what, layer);
    buffer_byte(&l->name, 0);
    t.name = l->name.data;
    return writer_tensor(w, &t);
}

/* [T, K] words as T lists. */
static int write_words(lens *l, writer *w, int layer, size_t tokens) {
    if (!l->engine->tokenizer) return 0;
    l->words.len = 0;
    for (size_t i = 0; i < tokens; i++) {
        buffer_byte(&l->words, i ? ',' : '[');
        token_list_add_ids(&l->words, l->engine->tokenizer, l->ids + i * l->top, l->top);
    }
    buffer_byte(&l->words, ']');
    return write_tensor(l, w, "logit_lens_tokens", layer,
                        (tensor){.type = TENSOR_JSON, .rank = 1, .dim = {l->words.len}, .data = l->words.data});
}

int lens_write(lens *l, writer *w, const bert_view *states) {
    const size_t tokens = states->dim[0], n = tokens * l->top;
    const bert_workers *workers = l->engine->pool ? bert_pool_workers(l->engine->pool) : NULL;
    bert_error err;
    tensor t = {.rank = 3, .dim = {1, tokens, l->top}};
    l->ids = need_more(l->ids, n, sizeof *l->ids);
    l->wide = need_more(l->wide, n, sizeof *l->wide);
    l->log_probs = need_more(l->log_probs, n, sizeof *l->log_probs);
    for (size_t i = 0; i < tokens; i += AT_ONCE) {
        const size_t some = tokens - i < AT_ONCE ? tokens - i : AT_ONCE;
        if (signals_caught()) return signals_status();
        if (bert_mlm_top(l->head, l->ids + i * l->top, l->log_probs + i * l->top, states->data + i * states->step[0],
                         some, l->top, workers, &err))
            return say_failure(&err);
    }
    for (size_t i = 0; i < n; i++) l->wide[i] = l->ids[i];
    t.type = TENSOR_F32;
    t.data = l->log_probs;
    TRY(write_tensor(l, w, "logit_lens", states->layer, t));
    t.type = TENSOR_I64;
    t.data = l->wide;
    TRY(write_tensor(l, w, "logit_lens_ids", states->layer, t));
    return write_words(l, w, states->layer, tokens);
}

void lens_close(lens *l) {
    bert_mlm_close(&l->head);
    free(l->ids);
    free(l->wide);
    free(l->log_probs);
    buffer_close(&l->name);
    buffer_close(&l->words);
}
