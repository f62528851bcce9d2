#include "task/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/model.h"

static bert_status check_vocabulary(const bert_pipeline *p, bert_error *err) {
    const size_t tokens = bert_tokenizer_vocab_size(p->tokenizer), rows = bert_model_describe(p->model).vocab;
    if (tokens <= rows) return BERT_OK;
    return bert_fail(err, BERT_BAD_FILE,
                     "the tokenizer has ids up to %zu, the embedding table (vocab_size in config.json) only %zu rows",
                     tokens - 1, rows);
}

/* sentence_bert_config.json's; since sentence-transformers 6 that is left to the tokenizer's own limit. */
static bert_status settle_length(bert_pipeline *p, const bert_model_options *o, bert_error *err) {
    const size_t positions = bert_model_describe(p->model).positions;
    const size_t tokenizer = bert_tokenizer_file_lengths(p->tokenizer).model_max_length;
    const size_t said = p->modules.max_seq_length;
    p->max_length = positions;
    if (said > 0 && said < positions) p->max_length = said;
    if (said == 0 && p->modules.listed && tokenizer > 0 && tokenizer < positions) p->max_length = tokenizer;
    if (said <= positions) return BERT_OK;
    return bert_warn(o->notes, o->strict, err,
                     "sentence_bert_config.json: max_seq_length %zu is more than the %zu positions of the model", said,
                     positions);
}

static bert_status open_tokenizer(bert_pipeline *p, const char *dir, const bert_tokenizer_options *given,
                                  bert_error *err) {
    bert_tokenizer_options options = BERT_TOKENIZER_OPTIONS_INIT;
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    options.size = sizeof options;
    if (p->modules.do_lower_case) options.lowercase = 1;
    return bert_tokenizer_open(&p->tokenizer, dir, &options, err);
}

/* That the modules fit each other; a decoder has no sentence vectors. */
static bert_status check_modules(const bert_pipeline *p, bert_error *err) {
    bert_embed_plan plan;
    return bert_model_describe(p->model).is_decoder ? BERT_OK : bert_embed_plan_make(&plan, p, NULL, err);
}

static bert_status open_parts(bert_pipeline *p, const char *dir, const bert_pipeline_options *o, bert_error *err) {
    const bert_model_options model = bert_model_options_or_default(o->model);
    char path[BERT_MODULE_PATH];
    TRY(bert_modules_transformer(path, dir, err));
    TRY(bert_model_open(&p->model, path, &model, err));
    TRY(bert_modules_read(&p->modules, dir, path, bert_model_describe(p->model).hidden, bert_model_kernels(p->model),
                          &model, err));
    TRY(open_tokenizer(p, path, o->tokenizer, err));
    TRY(check_vocabulary(p, err));
    TRY(settle_length(p, &model, err));
    return check_modules(p, err);
}

bert_status bert_pipeline_open(bert_pipeline **pipeline, const char *dir, const bert_pipeline_options *given,
                               bert_error *err) {
    bert_pipeline_options options = BERT_PIPELINE_OPTIONS_INIT;
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    bert_pipeline *p = calloc(1, sizeof *p);
    *pipeline = p;
    if (!p) return bert_fail(err, BERT_NO_MEMORY, "no memory to open a pipeline");
    const bert_status status = open_parts(p, dir, &options, err);
    if (status != BERT_OK) bert_pipeline_close(pipeline);
    return status;
}

void bert_pipeline_close(bert_pipeline **pipeline) {
    if (!pipeline || !*pipeline) return;
    bert_pipeline *p = *pipeline;
    *pipeline = NULL;
    bert_modules_close(&p->modules);
    bert_tokenizer_close(&p->tokenizer);
    bert_model_close(&p->model);
    free(p);
}

const bert_model *bert_pipeline_model(const bert_pipeline *pipeline) { return pipeline->model; }
const bert_tokenizer *bert_pipeline_tokenizer(const bert_pipeline *pipeline) { return pipeline->tokenizer; }

bert_pipeline_info bert_pipeline_describe(const bert_pipeline *pipeline) {
    static const bert_pooling MEAN = BERT_POOLING_MEAN;
    const bert_modules *m = &pipeline->modules;
    bert_pipeline_info info = {
        .pooling = m->n_poolings ? m->pooling[0] : MEAN,
        .pooling_assumed = m->n_poolings == 0,
        .poolings = m->n_poolings ? m->pooling : &MEAN,
        .n_poolings = m->n_poolings ? m->n_poolings : 1,
        .normalize = m->normalize,
        .lowercases = m->do_lower_case,
        .dim = bert_pipeline_dim(pipeline, NULL),
        .max_length = pipeline->max_length,
        .n_prompts = m->n_prompts,
        .default_prompt = m->default_prompt ? m->default_prompt->name : NULL,
    };
    for (size_t i = 0; i < m->n_behind; i++) info.n_dense += !m->behind[i].normalize;
    return info;
}

const char *bert_pipeline_prompt_name(const bert_pipeline *pipeline, size_t i) {
    return i < pipeline->modules.n_prompts ? pipeline->modules.prompts[i].name : NULL;
}
