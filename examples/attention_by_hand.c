/* attention_by_hand.c: attention, step by step: first on four tokens small enough to check on paper, then on a head of
 * a real model, where the same function gives the model's own numbers.
 *
 *     cc -o attention_by_hand attention_by_hand.c $(pkg-config --cflags --libs bert)
 *     ./attention_by_hand [MODEL [TEXT [LAYER HEAD]]]
 */
#include <bert/bert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_rows(const char *what, const float *x, int rows, int cols) {
    printf("%s\n", what);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols; j++) printf("%8.4f", (double)x[i * cols + j]);
        printf("\n");
    }
}

/* Four tokens of two numbers. With W_Q = W_K = W_V = 1 they are their own queries, keys and values. */
static bert_status four_tokens(bert_error *err) {
    static const float x[4][2] = {{1, 0}, {0, 1}, {1, 1}, {.5f, 1}};
    float scores[4][4], weights[4][4], result[4][2];
    bert_attention a = BERT_ATTENTION_INIT;
    a.tq = a.tk = 4, a.d = 2;
    a.q = a.k = a.v = &x[0][0];
    a.scores = &scores[0][0], a.weights = &weights[0][0], a.result = &result[0][0];
    print_rows("four tokens x, each its own query, key and value", &x[0][0], 4, 2);
    a.scale = 1;
    bert_status status = bert_attention_run(&a, NULL, err);
    if (status != BERT_OK) return status;
    print_rows("scores = q . k", &scores[0][0], 4, 4);
    a.scale = 0; /* the usual one */
    status = bert_attention_run(&a, NULL, err);
    if (status != BERT_OK) return status;
    print_rows("scaled = scores / sqrt(2)", &scores[0][0], 4, 4);
    print_rows("weights = softmax of each row", &weights[0][0], 4, 4);
    print_rows("result = weights . v", &result[0][0], 4, 2);
    a.mask.causal = 1;
    status = bert_attention_run(&a, NULL, err);
    if (status != BERT_OK) return status;
    print_rows("weights where a token sees none behind it", &weights[0][0], 4, 4);
    print_rows("result", &result[0][0], 4, 2);
    return BERT_OK;
}

/* One head of a model: what it gave, and what bert_attention_run makes of its queries, keys and values. */
typedef struct head {
    const char *folder, *text;
    int layer, number;
    bert_pipeline *pipeline;
    bert_session *session;
    bert_tokens *tokens;
    bert_encoding e;
    size_t t, d;
    float *q, *k, *v, *context;     /* [T, D]: the model's */
    float *weights;                 /* [T, T] */
    float *dots, *scaled, *ours, *result, *causal; /* ours */
} head;

static bert_status open_head(head *h, bert_error *err) {
    bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
    const bert_text text = {.a = h->text, .a_len = strlen(h->text)};
    bert_status status = bert_pipeline_open(&h->pipeline, h->folder, NULL, err);
    if (status != BERT_OK) return status;
    const bert_model *model = bert_pipeline_model(h->pipeline);
    options.max_length = bert_model_describe(model).positions;
    status = bert_session_open(&h->session, model, NULL, err);
    if (status == BERT_OK)
        status = bert_tokenize(&h->tokens, bert_pipeline_tokenizer(h->pipeline), &text, 1, &options, err);
    if (status != BERT_OK) return status;
    h->e = bert_tokens_at(h->tokens, 0, 0);
    h->t = h->e.n;
    h->d = bert_model_describe(model).head_size;
    float **const rows[] = {&h->q, &h->k, &h->v, &h->context, &h->result};
    float **const maps[] = {&h->weights, &h->dots, &h->scaled, &h->ours, &h->causal};
    for (int i = 0; i < 5; i++) {
        *rows[i] = calloc(h->t * h->d, sizeof(float));
        *maps[i] = calloc(h->t * h->t, sizeof(float));
        if (!*rows[i] || !*maps[i]) return BERT_NO_MEMORY;
    }
    return BERT_OK;
}

/* Queries, keys, values, weights and contexts of the one head, from one pass. */
static bert_status run_model(const head *h, bert_error *err) {
    const bert_site sites[5] = {BERT_SITE_QUERY, BERT_SITE_KEY, BERT_SITE_VALUE, BERT_SITE_CONTEXT, BERT_SITE_WEIGHTS};
    float *const dst[5] = {h->q, h->k, h->v, h->context, h->weights};
    const size_t start[2] = {0, h->t};
    const bert_batch batch = {.size = sizeof batch, .n = 1, .start = start, .ids = h->e.ids, .types = h->e.type_ids};
    bert_tap taps[5];
    for (int i = 0; i < 5; i++) {
        taps[i] = (bert_tap)BERT_TAP_INIT;
        taps[i].site = (int)sites[i];
        taps[i].layer = h->layer;
        taps[i].head = h->number;
        taps[i].dst = dst[i];
        taps[i].dst_len = h->t * (sites[i] == BERT_SITE_WEIGHTS ? h->t : h->d);
    }
    return bert_run(h->session, &batch, taps, 5, NULL, err);
}

static bert_status run_by_hand(const head *h, bert_error *err) {
    bert_attention a = BERT_ATTENTION_INIT;
    a.tq = a.tk = h->t, a.d = h->d;
    a.q = h->q, a.k = h->k, a.v = h->v, a.result = h->result;
    a.scale = 1, a.scores = h->dots;
    bert_status status = bert_attention_run(&a, NULL, err);
    if (status != BERT_OK) return status;
    a.mask.causal = 1, a.scale = 0, a.scores = h->scaled, a.weights = h->causal;
    status = bert_attention_run(&a, NULL, err);
    if (status != BERT_OK) return status;
    a.mask.causal = 0, a.weights = h->ours; /* last, so that h->result is that of the model */
    return bert_attention_run(&a, NULL, err);
}

/* The row of the last word, in front of [SEP]. */
static void print_head(const head *h) {
    const size_t i = h->t > 2 ? h->t - 2 : 0, row = i * h->t;
    size_t len;
    const char *token = bert_tokens_spelling(h->tokens, 0, 0, i, &len);
    printf("\nlayer %d, head %d: where \"%.*s\" looks\n", h->layer, h->number, (int)len, token);
    printf("%12s%10s%10s%10s%10s\n", "key", "q . k", "scaled", "weight", "causal");
    for (size_t j = 0; j < h->t; j++) {
        token = bert_tokens_spelling(h->tokens, 0, 0, j, &len);
        printf("%12.*s%10.4f%10.4f%10.4f%10.4f\n", (int)len, token, (double)h->dots[row + j],
               (double)h->scaled[row + j], (double)h->ours[row + j], (double)h->causal[row + j]);
    }
    printf("weights . v =");
    for (size_t c = 0; c < h->d && c < 5; c++) printf(" %.4f", (double)h->result[i * h->d + c]);
    printf(" … (%zu numbers)\n", h->d);
}

/* The model's numbers and ours, bit by bit. */
static int same_bits(const head *h) {
    return memcmp(h->weights, h->ours, h->t * h->t * sizeof(float)) == 0 &&
           memcmp(h->context, h->result, h->t * h->d * sizeof(float)) == 0;
}

static void close_head(head *h) {
    float *const arrays[] = {h->q,    h->k,      h->v,    h->context, h->weights,
                             h->dots, h->scaled, h->ours, h->result,  h->causal};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    bert_tokens_close(&h->tokens);
    bert_session_close(&h->session);
    bert_pipeline_close(&h->pipeline);
}

static int model_head(head *h, bert_error *err) {
    int same = 0;
    bert_status status = open_head(h, err);
    if (status == BERT_OK) status = run_model(h, err);
    if (status == BERT_OK) status = run_by_hand(h, err);
    if (status == BERT_OK) {
        print_head(h);
        same = same_bits(h);
        printf("%s the model's own weights and context, bit by bit\n", same ? "These are" : "These are NOT");
    }
    close_head(h);
    return same;
}

int main(int argc, char **argv) {
    bert_error err = {0};
    int done = four_tokens(&err) == BERT_OK;
    if (done && argc > 1) {
        head h = {.folder = argv[1],
                  .text = argc > 2 ? argv[2] : "The quick brown fox",
                  .layer = argc > 4 ? atoi(argv[3]) : 0,
                  .number = argc > 4 ? atoi(argv[4]) : 0};
        done = model_head(&h, &err);
    }
    if (err.code) fprintf(stderr, "attention_by_hand: %s\n", err.text);
    return done ? 0 : 1;
}
