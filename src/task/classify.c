/* task/classify.c: texts and pairs to the scores of a head over the pooler. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "task/head.h"
#include "task/pipeline.h"

/* Texts that are tokenized together. */
enum { WINDOW = 256 };

static bert_status make_options(bert_score_options *options, const bert_score_options *given,
                                const bert_pipeline *pipeline, bert_error *err) {
    const size_t positions = bert_model_describe(pipeline->model).positions;
    *options = (bert_score_options)BERT_SCORE_OPTIONS_INIT;
    if (given) memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    if (options->max_length > positions)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "max_length %zu: the model has %zu positions",
                         options->max_length, positions);
    if (options->max_length == 0) options->max_length = pipeline->max_length;
    return BERT_OK;
}

static bert_tokenize_options tokenize_options(const bert_score_options *o) {
    bert_tokenize_options t = BERT_TOKENIZE_OPTIONS_INIT;
    t.max_length = o->max_length;
    t.truncation = o->truncation;
    t.truncation_side = o->truncation_side;
    t.literal_specials = o->literal_specials;
    return t;
}

/* One window of texts, scored; *tokens is scratch that the next window uses again. */
static bert_status score_window(bert_tokens **tokens, bert_session *session, const bert_pipeline *pipeline,
                                const bert_head *head, float *scores, const bert_text *texts, size_t n,
                                const bert_score_options *o, bert_embed_info *infos, bert_error *err) {
    const bert_tokenize_options t = tokenize_options(o);
    TRY(bert_tokenize(tokens, pipeline->tokenizer, texts, n, &t, err));
    for (size_t i = 0; infos && i < n; i++) {
        const bert_encoding x = bert_tokens_at(*tokens, i, 0);
        infos[i] = (bert_embed_info){x.n, x.truncated, x.unknown, x.invalid_utf8, x.first_invalid, 1};
    }
    TRY(bert_head_run_tokens(session, head, scores, *tokens, o->pass_tokens, o->run, err));
    return bert_head_score(head, scores, scores, n, o->scoring, err);
}

static bert_status check_classify(const bert_session *session, const bert_pipeline *pipeline, const bert_head *head,
                                  bert_error *err) {
    if (head->info.kind != BERT_HEAD_SEQUENCE && head->info.kind != BERT_HEAD_NEXT)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "the head has no scores of whole texts");
    TRY(bert_head_check_session(session, head->model, err));
    if (pipeline->model == head->model) return BERT_OK;
    return bert_fail(err, BERT_INVALID_ARGUMENT, "the pipeline is of another model than the head's");
}

static bert_status check_pairs(const bert_head *head, const bert_text *texts, size_t n, bert_error *err) {
    for (size_t i = 0; head->info.kind == BERT_HEAD_NEXT && i < n; i++)
        if (!texts[i].b) return bert_fail(err, BERT_INVALID_ARGUMENT, "text %zu: expected a pair of texts", i);
    return BERT_OK;
}

bert_status bert_classify(bert_session *session, const bert_pipeline *pipeline, const bert_head *head, float *scores,
                          const bert_text *texts, size_t n, const bert_score_options *given, bert_embed_info *infos,
                          bert_error *err) {
    bert_score_options options;
    bert_tokens *tokens = NULL;
    bert_status status = BERT_OK;
    TRY(check_classify(session, pipeline, head, err));
    TRY(check_pairs(head, texts, n, err));
    TRY(make_options(&options, given, pipeline, err));
    for (size_t first = 0; first < n && status == BERT_OK; first += WINDOW) {
        const size_t count = n - first < WINDOW ? n - first : WINDOW;
        status = score_window(&tokens, session, pipeline, head, scores + first * head->info.labels, texts + first,
                              count, &options, infos ? infos + first : NULL, err);
    }
    bert_tokens_close(&tokens);
    return status;
}

static bert_status check_rerank(const bert_head *head, bert_score_options *options, bert_error *err) {
    if (head->info.kind != BERT_HEAD_SEQUENCE || head->info.labels != 1)
        return bert_fail(err, BERT_UNSUPPORTED, "reranking needs a head with one score, this one has %zu classes",
                         head->info.labels);
    if (options->scoring == BERT_SCORING_AUTO) options->scoring = head->info.rerank;
    if (options->scoring != BERT_SCORING_AUTO) return BERT_OK;
    return bert_fail(err, BERT_UNSUPPORTED, "config.json: activation_fn %s is not known here; its logits can be had",
                     head->unknown);
}

/* In the pair a document without an address becomes "", which says that there is a second text. */
static bert_status check_document(const bert_text *document, size_t i, bert_error *err) {
    if (document->b) return bert_fail(err, BERT_INVALID_ARGUMENT, "text %zu: a document is no pair", i);
    if (document->a || document->a_len == 0) return BERT_OK;
    return bert_fail(err, BERT_INVALID_ARGUMENT, "text %zu: a length without bytes", i);
}

/* The query behind its prompt, freed by the caller. */
static bert_status put_prompt(bert_text **query, const bert_pipeline *pipeline, const bert_text *given,
                              const bert_score_options *options, bert_error *err) {
    bert_embed_options o = BERT_EMBED_OPTIONS_INIT;
    const char *prompt;
    o.prompt_name = options->prompt_name;
    o.prompt = options->prompt;
    TRY(bert_pipeline_prompt(pipeline, &prompt, &o, err));
    return bert_prompts_put(query, prompt, given, 1, err);
}

bert_status bert_rerank(bert_session *session, const bert_pipeline *pipeline, const bert_head *head, float *scores,
                        const char *query, size_t query_len, const bert_text *documents, size_t n,
                        const bert_score_options *given, bert_embed_info *infos, bert_error *err) {
    const bert_text alone = {query, query_len, NULL, 0};
    bert_text *prompted = NULL, *pairs = NULL;
    bert_score_options options;
    bert_status status;
    TRY(make_options(&options, given, pipeline, err));
    TRY(check_rerank(head, &options, err));
    TRY(put_prompt(&prompted, pipeline, &alone, &options, err));
    const bert_text *first = prompted ? prompted : &alone;
    if (!(pairs = calloc(n ? n : 1, sizeof *pairs))) {
        status = bert_fail(err, BERT_NO_MEMORY, "no memory for %zu pairs", n);
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        TRY_OR_DONE(check_document(&documents[i], i, err));
        pairs[i] = (bert_text){first->a, first->a_len, documents[i].a ? documents[i].a : "", documents[i].a_len};
    }
    TRY_OR_DONE(bert_classify(session, pipeline, head, scores, pairs, n, &options, infos, err));
    for (size_t i = 0; prompted && infos && i < n; i++)
        if (infos[i].invalid_utf8 > 0)
            infos[i].first_invalid = bert_prompts_first_invalid(&alone, infos[i].first_invalid);
done:
    free(prompted);
    free(pairs);
    return status;
}
