/* /v1/embeddings and /v1/models (https://platform.openai.com/docs/api-reference/embeddings). */
#include "output/page_code.h"

#include "json_out.h"
#include "request.h"
#include "say.h"
#include "vectors.h"

static int begin(request *r, exchange *x) {
    job *j;
    TRY(request_open(r, x));
    TRY(request_texts(r, "input", 1));
    TRY(request_word(r, "encoding_format", "float", "base64", &x->base64));
    TRY(request_truncation(r));
    TRY(vectors_job(r, &j));
    exchange_queue(x, j);
    return 0;
}

void openai_embeddings(exchange *x) {
    request r = {0};
    begin(&r, x);
    request_close(&r);
}

void openai_embeddings_done(exchange *x) {
    const job *j = x->job;
    buffer *b = &x->answer;
    if (j->failure.code) {
        exchange_fail_by(x, &j->failure);
        return;
    }
    buffer_text(b, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < j->n; i++) {
        const float *vector = j->vectors + i * j->dim;
        buffer_print(b, "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", i ? "," : "", i);
        if (x->base64) {
            buffer_byte(b, '"');
            page_code_base64(b, vector, j->dim * sizeof *vector); /* little-endian, as all machines that we run on */
            buffer_byte(b, '"');
        } else {
            json_floats(b, vector, &j->dim, 1);
        }
        buffer_byte(b, '}');
    }
    buffer_text(b, "],\"model\":");
    json_text(b, j->model->name);
    buffer_print(b, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}}\n", x->tokens, x->tokens);
    exchange_answer(x, "application/json");
}

void openai_models(exchange *x) {
    const models *m = &x->of->models;
    buffer *b = &x->answer;
    buffer_text(b, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < m->n; i++) {
        buffer_text(b, i ? ",{\"id\":" : "{\"id\":");
        json_text(b, m->all[i].name);
        buffer_text(b, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"libbert\"}");
    }
    buffer_text(b, "]}\n");
    exchange_answer(x, "application/json");
}
