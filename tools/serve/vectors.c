#include "vectors.h"

#include "say.h"

static int take_options(const request *r, bert_embed_options *o) {
    bert_json value;
    int64_t dim, most = (int64_t)r->model->pipeline.dim;
    TRY(request_bool(r, "normalize", &o->normalize));
    if (!request_has(r, "dimensions", &value)) return 0;
    if (!bert_json_integer(&dim, value, 1, most))
        return exchange_fail(r->x, 422, "dimensions: expected a whole number from 1 to %lld", (long long)most);
    o->dim = (size_t)dim;
    return 0;
}

int vectors_job(request *r, job **j) {
    bert_embed_options options = r->model->embed;
    TRY(take_options(r, &options));
    TRY(request_prompt(r, &options));
    TRY(request_job(r, j));
    (*j)->embed = options;
    (*j)->dim = bert_pipeline_dim(r->model->engine.pipeline, &options);
    (*j)->vectors = need((*j)->n * (*j)->dim, sizeof(float));
    return 0;
}
