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

static bert_status settle_length(bert_pipeline *p, const bert_model_options *o, bert_error *err) {
    const size_t positions = bert_model_describe(p->model).positions, said = p->modules.max_seq_length;
    p->max_length = said && said < positions ? said : positions;
    if (said <= positions) return BERT_OK;
    return bert_warn(o->notes, o->strict, err,
                     "sentence_bert_config.json: max_seq_length %zu is more than the %zu positions of the model", said,
                     positions);
}

static bert_status check_lower_case(const bert_pipeline *p, bert_error *err) {
    if (!p->modules.do_lower_case || bert_tokenizer_lowercases(p->tokenizer)) return BERT_OK;
    return bert_fail(err, BERT_UNSUPPORTED,
                     "sentence_bert_config.json: do_lower_case is true, but the tokenizer keeps case: not done here");
}

static bert_status open_parts(bert_pipeline *p, const char *dir, const bert_pipeline_options *o, bert_error *err) {
    const bert_model_options model = bert_model_options_or_default(o->model);
    TRY(bert_model_open(&p->model, dir, &model, err));
    TRY(bert_tokenizer_open(&p->tokenizer, dir, o->tokenizer, err));
    TRY(check_vocabulary(p, err));
    TRY(bert_modules_read(&p->modules, dir, bert_model_describe(p->model).hidden, &model, err));
    TRY(check_lower_case(p, err));
    return settle_length(p, &model, err);
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
    bert_tokenizer_close(&p->tokenizer);
    bert_model_close(&p->model);
    free(p);
}

const bert_model *bert_pipeline_model(const bert_pipeline *pipeline) { return pipeline->model; }
const bert_tokenizer *bert_pipeline_tokenizer(const bert_pipeline *pipeline) { return pipeline->tokenizer; }

bert_pipeline_info bert_pipeline_describe(const bert_pipeline *pipeline) {
    const bert_modules *m = &pipeline->modules;
    return (bert_pipeline_info){
        .pooling = m->n_poolings ? m->pooling[0] : BERT_POOLING_MEAN,
        .pooling_assumed = m->n_poolings == 0,
        .normalize = m->normalize,
        .dim = bert_pipeline_dim(pipeline, NULL),
        .max_length = pipeline->max_length,
    };
}
