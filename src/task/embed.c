/* task/embed.c: any number of texts to vectors: windows of texts are tokenized, sorted by length, and packed into
 * passes of about equal work. The order of the results is that of the texts, their bits do not depend on any of it. */
#include <stdlib.h>

#include "base/error.h"
#include "task/passes.h"
#include "task/pipeline.h"

/* Texts that are tokenized and sorted together: enough for passes of equal lengths, little memory. */
enum { WINDOW = 512 };

typedef struct embedder {
    bert_session *session;
    const bert_pipeline *pipeline;
    bert_embed_plan plan;
    bert_tokens *tokens;
    bert_text *prompted;  /* the texts behind the prompt; NULL: there is none */
    size_t order[WINDOW]; /* [n_short]: texts of one pass each, by length */
    size_t n_short;
    const size_t *pass; /* texts of the pass that runs */
    float *scratch;     /* [2, width] */
    float *dst;         /* [window, dim] */
    bert_error *err;
    bert_status status; /* of the pooling, and what it says: a callback can only stop the pass */
    bert_error error;
} embedder;

static int ascending(const void *a, const void *b) {
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static int take_vector(void *user, const bert_view *view) {
    embedder *e = user;
    const size_t text = e->pass[view->text], tokens = bert_tokens_at(e->tokens, text, 0).n;
    const float *x = view->data, *last = x;
    if (view->site != BERT_SITE_POOLER) last += (tokens - 1) * view->dim[1];
    const bert_pool_input input = {x, tokens, x, last, x};
    e->status = bert_embed_plan_pool(&e->plan, e->pipeline, e->dst + text * e->plan.dim, e->scratch, &input, &e->error);
    return e->status != BERT_OK;
}

static bert_status run_pass(void *user, const bert_batch *batch, bert_error *err) {
    embedder *e = user;
    bert_tap tap = BERT_TAP_INIT;
    tap.site = e->plan.need_pooler ? BERT_SITE_POOLER : BERT_SITE_HIDDEN_STATES;
    tap.layer = (int32_t)bert_model_describe(e->pipeline->model).layers;
    tap.got = take_vector;
    tap.user = e;
    e->status = BERT_OK;
    const bert_status status = bert_run(e->session, batch, &tap, 1, e->plan.options.run, err);
    e->pass += batch->n;
    if (e->status == BERT_OK) return status;
    if (err) *err = e->error;
    return e->status;
}

/* What happened to text i, which is `text` as it was given. */
static bert_embed_info describe(const embedder *e, size_t i, const bert_text *text) {
    const bert_encoding first = bert_tokens_at(e->tokens, i, 0);
    const size_t parts = bert_tokens_parts(e->tokens, i);
    bert_embed_info info = {first.n, first.truncated, first.unknown, first.invalid_utf8, first.first_invalid, parts};
    if (e->prompted && info.invalid_utf8 > 0)
        info.first_invalid = bert_prompts_first_invalid(text, info.first_invalid);
    if (parts == 1) return info;
    info.tokens = bert_windows_length(e->tokens, i);
    info.truncated = 0;
    for (size_t part = 1; part < parts; part++) info.unknown += bert_tokens_at(e->tokens, i, part).unknown;
    return info;
}

static bert_status tokenize_window(embedder *e, const bert_text *texts, size_t n, bert_embed_info *infos) {
    const bert_embed_options *o = &e->plan.options;
    bert_tokenize_options t = BERT_TOKENIZE_OPTIONS_INIT;
    t.max_length = o->max_length;
    t.truncation = o->truncation;
    t.truncation_side = o->truncation_side;
    t.literal_specials = o->literal_specials;
    t.overflow = o->window > 0 ? BERT_OVERFLOW_WINDOWS : BERT_NO_OVERFLOW;
    t.stride = o->stride;
    TRY(bert_prompts_put(&e->prompted, e->plan.prompt, texts, n, e->err));
    TRY(bert_tokenize(&e->tokens, e->pipeline->tokenizer, e->prompted ? e->prompted : texts, n, &t, e->err));
    e->n_short = 0;
    for (size_t i = 0; i < n; i++) {
        if (infos) infos[i] = describe(e, i, &texts[i]);
        if (bert_tokens_parts(e->tokens, i) == 1)
            e->order[e->n_short++] = bert_tokens_at(e->tokens, i, 0).n * WINDOW + i; /* sorts by length, then number */
    }
    qsort(e->order, e->n_short, sizeof *e->order, ascending);
    for (size_t i = 0; i < e->n_short; i++) e->order[i] %= WINDOW;
    return BERT_OK;
}

/* Texts of several windows, each by itself. */
static bert_status run_long_texts(embedder *e, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (bert_tokens_parts(e->tokens, i) > 1)
            TRY(bert_embed_windows(e->session, e->pipeline, e->tokens, i, e->dst + i * e->plan.dim, NULL,
                                   &e->plan.options, e->err));
    return BERT_OK;
}

static bert_status embed(embedder *e, float *dst, const bert_text *texts, size_t n, bert_embed_info *infos) {
    if (bert_session_model(e->session) != e->pipeline->model)
        return bert_fail(e->err, BERT_INVALID_ARGUMENT, "the session is of another model than the pipeline's");
    for (size_t first = 0; first < n; first += WINDOW) {
        const size_t count = n - first < WINDOW ? n - first : WINDOW;
        e->dst = dst + first * e->plan.dim;
        TRY(tokenize_window(e, texts + first, count, infos ? infos + first : NULL));
        e->pass = e->order;
        TRY(bert_passes_run(e->tokens, e->order, e->n_short, e->plan.options.pass_tokens, run_pass, e, e->err));
        TRY(run_long_texts(e, count));
    }
    return BERT_OK;
}

bert_status bert_embed(bert_session *session, const bert_pipeline *pipeline, float *dst, const bert_text *texts,
                       size_t n, const bert_embed_options *options, bert_embed_info *infos, bert_error *err) {
    embedder *e = calloc(1, sizeof *e);
    bert_status status;
    if (!e) return bert_fail(err, BERT_NO_MEMORY, "no memory to embed texts");
    e->session = session;
    e->pipeline = pipeline;
    e->err = err;
    TRY_OR_DONE(bert_embed_plan_make(&e->plan, pipeline, options, err));
    e->scratch = malloc(2 * e->plan.width * sizeof *e->scratch);
    status = e->scratch ? embed(e, dst, texts, n, infos) : bert_fail(err, BERT_NO_MEMORY, "no memory to embed texts");
done:
    bert_tokens_close(&e->tokens);
    free(e->prompted);
    free(e->scratch);
    free(e);
    return status;
}
