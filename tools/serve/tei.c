/* The endpoints of text-embeddings-inference (https://huggingface.github.io/text-embeddings-inference/). */
#include <string.h>

#include "json_out.h"
#include "request.h"
#include "say.h"
#include "token_list.h"
#include "utf8.h"
#include "vectors.h"

static int begin_embed(request *r, exchange *x) {
    job *j;
    TRY(request_open(r, x));
    TRY(request_texts(r, "inputs", 1));
    TRY(request_truncation(r));
    TRY(vectors_job(r, &j));
    exchange_queue(x, j);
    return 0;
}

void tei_embed(exchange *x) {
    request r = {0};
    begin_embed(&r, x);
    request_close(&r);
}

void tei_embed_done(exchange *x) {
    const job *j = x->job;
    size_t shape[2] = {j->n, j->dim};
    if (j->failure.code) {
        exchange_fail_by(x, &j->failure);
        return;
    }
    json_floats(&x->answer, j->vectors, shape, 2);
    buffer_byte(&x->answer, '\n');
    exchange_answer(x, "application/json");
}

/* "text" is the part of the input that the token came from; special tokens have none and show their own spelling, and
 * so do those of the prompt, which is the first `before` bytes of what was tokenized. */
static void add_token(buffer *b, const bert_tokens *tokens, const bert_text *text, size_t before, size_t i, size_t k) {
    bert_encoding all = bert_tokens_at(tokens, i, 0);
    size_t start = all.offsets[k].start > before ? all.offsets[k].start - before : 0;
    buffer_print(b, "%s{\"id\":%d,\"text\":", k ? "," : "", all.ids[k]);
    if (all.special_tokens_mask[k] || (before && all.offsets[k].end <= before)) {
        token_list_add_one(b, tokens, i, 0, k);
        buffer_text(b, ",\"special\":true,\"start\":null,\"stop\":null}");
    } else {
        size_t stop = all.offsets[k].end - before;
        json_string(b, text->a + before + start, stop - start);
        buffer_print(b, ",\"special\":false,\"start\":%zu,\"stop\":%zu}", start, stop);
    }
}

/* The texts as they were sent: only a prompt that is asked for by name is put in front, the folder's default is not. */
static int tokenize(request *r, exchange *x) {
    int specials = 1;
    bert_json name;
    TRY(request_open(r, x));
    bert_embed_options options = r->model->embed;
    TRY(request_texts(r, "inputs", 0));
    TRY(request_bool(r, "add_special_tokens", &specials));
    if (request_has(r, "prompt_name", &name)) TRY(request_prompt(r, &options));
    size_t before = options.prompt ? strlen(options.prompt) : 0;
    r->options.no_special_tokens = !specials;
    r->options.max_length = 0;
    TRY(request_tokenize(r));
    for (size_t i = 0; i < r->n; i++) {
        size_t n = bert_tokens_at(r->model->tokens, i, 0).n;
        buffer_text(&x->answer, i ? ",[" : "[[");
        for (size_t k = 0; k < n; k++) add_token(&x->answer, r->model->tokens, &r->texts[i], before, i, k);
        buffer_byte(&x->answer, ']');
    }
    buffer_text(&x->answer, "]\n");
    exchange_answer(x, "application/json");
    return 0;
}

void tei_tokenize(exchange *x) {
    request r = {0};
    tokenize(&r, x);
    request_close(&r);
}

void tei_info(exchange *x) {
    const served *v = &x->of->models.all[0];
    const limits *most = &x->of->most;
    uint32_t version = bert_version();
    buffer *b = &x->answer;
    buffer_text(b, "{\"model_id\":");
    json_text(b, v->name);
    buffer_text(b, ",\"model_sha\":null,\"weights_hash\":");
    json_text(b, v->known.weights_hash);
    buffer_print(b, ",\"model_dtype\":\"float32\",\"model_type\":{\"embedding\":{\"pooling\":\"%s\"}}",
                 bert_pooling_name(v->pipeline.pooling));
    buffer_print(b, ",\"numerics\":%u,\"isa\":\"%s\",\"dimensions\":%zu", bert_numerics(),
                 bert_isa_name(v->engine.info.isa), v->pipeline.dim);
    buffer_print(b, ",\"max_concurrent_requests\":%zu,\"max_input_length\":%zu,\"max_batch_tokens\":%zu", most->queue,
                 v->embed.max_length, most->pass_tokens);
    buffer_print(b, ",\"max_batch_requests\":null,\"max_client_batch_size\":%zu,\"auto_truncate\":%s", most->texts,
                 v->embed.truncation == BERT_NO_TRUNCATION ? "false" : "true");
    buffer_print(b, ",\"tokenization_workers\":1,\"version\":\"%u.%u.%u\",\"sha\":null,\"docker_label\":null}\n",
                 version >> 16, version >> 8 & 0xFF, version & 0xFF);
    exchange_answer(x, "application/json");
}

void tei_health(exchange *x) {
    exchange_answer(x, "text/plain; charset=utf-8");
}
