/* bits MODEL TEXTS.jsonl [NAME=VALUE]...: everything that the same-bits promise is about, as raw bytes on stdout, for
 * sha256sum: of each text all hidden states, all attention weights, and its sentence vector.
 *
 *     isa=ref|avx2|avx512|neon   threads=N   order=list|reverse|alone   maps=0|1   weights=packed|file
 *     shortest=N: only the N shortest texts (for slow builds: ref without fma, -O0, qemu)
 *
 * Whatever the arguments, the bytes are the same; tests/check_bits.py compares them with the committed sums.
 * `bits isas` lists the instruction sets that run here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bert/bert.h>

enum { MAX_TEXTS = 256 };

typedef struct arguments {
    bert_isa isa;
    int threads, reverse, alone, maps, from_file;
    size_t shortest;
} arguments;

static void check(bert_status status, const bert_error *err) {
    if (status == BERT_OK) return;
    fprintf(stderr, "bits: %s\n", err->text);
    exit(1);
}

static void *get(size_t n) {
    void *p = malloc(n ? n : 1);
    if (!p) exit(1);
    return p;
}

static arguments parse(int n, char **words) {
    arguments a = {.threads = 1};
    for (int i = 0; i < n; i++) {
        const char *value = strchr(words[i], '=');
        if (!value++) exit(2);
        for (bert_isa isa = BERT_ISA_REF; isa <= BERT_ISA_NEON; isa++)
            if (bert_isa_name(isa) && strcmp(value, bert_isa_name(isa)) == 0) a.isa = isa;
        if (strncmp(words[i], "threads=", 8) == 0) a.threads = atoi(value);
        if (strncmp(words[i], "shortest=", 9) == 0) a.shortest = (size_t)atoi(value);
        if (strncmp(words[i], "maps=", 5) == 0) a.maps = atoi(value);
        a.reverse |= strcmp(value, "reverse") == 0;
        a.alone |= strcmp(value, "alone") == 0;
        a.from_file |= strcmp(value, "file") == 0;
    }
    return a;
}

static char *read_string(bert_json object, const char *name, size_t *len) {
    bert_json value;
    if (!bert_json_member(object, name, &value)) return NULL;
    char *text = get(value.len);
    *len = bert_json_string(text, value);
    return text;
}

static size_t read_texts(const char *path, bert_text *texts) {
    FILE *file = fopen(path, "rb");
    char *line = NULL;
    size_t room = 0, n = 0;
    ssize_t len;
    if (!file) exit(1);
    while (n < MAX_TEXTS && (len = getline(&line, &room, file)) > 0) {
        bert_json root;
        bert_error err;
        check(bert_json_check(&root, line, (size_t)len, &err), &err);
        bert_text *t = &texts[n++];
        *t = (bert_text){NULL, 0, NULL, 0};
        t->a = read_string(root, "text", &t->a_len);
        t->b = read_string(root, "pair", &t->b_len);
    }
    free(line);
    fclose(file);
    return n;
}

static int by_length(const void *a, const void *b) {
    const bert_text *x = a, *y = b;
    const size_t m = x->a_len + x->b_len, n = y->a_len + y->b_len;
    if (m != n) return m < n ? -1 : 1;
    const int order = memcmp(x->a, y->a, x->a_len < y->a_len ? x->a_len : y->a_len);
    return order ? order : (x->a_len > y->a_len) - (x->a_len < y->a_len);
}

/* What one text gave, kept until all can be written in the order of the list. */
typedef struct outcome {
    size_t tokens;
    float *hidden, *maps;
} outcome;

typedef struct runner {
    const arguments *arguments;
    bert_session *session;
    size_t hidden, layers, heads;
    bert_tokens *tokens;
    outcome *outcomes;
    const size_t *order; /* of the batch that runs */
} runner;

static int take(void *user, const bert_view *v) {
    const runner *r = user;
    const outcome *o = &r->outcomes[r->order[v->text]];
    if (v->site == BERT_SITE_HIDDEN_STATES)
        memcpy(o->hidden + (size_t)v->layer * o->tokens * r->hidden, v->data, o->tokens * r->hidden * sizeof(float));
    else
        memcpy(o->maps + (size_t)v->layer * r->heads * o->tokens * o->tokens, v->data,
               r->heads * o->tokens * o->tokens * sizeof(float));
    return 0;
}

/* One pass over the texts in `order`; maps taken with it or alone. */
static void run(runner *r, const size_t *order, size_t n, int hidden, int maps) {
    size_t start[MAX_TEXTS + 1] = {0};
    bert_error err;
    for (size_t i = 0; i < n; i++) start[i + 1] = start[i] + bert_tokens_at(r->tokens, order[i], 0).n;
    int32_t *ids = get(start[n] * sizeof *ids), *types = get(start[n] * sizeof *types);
    for (size_t i = 0; i < n; i++) {
        const bert_encoding e = bert_tokens_at(r->tokens, order[i], 0);
        memcpy(ids + start[i], e.ids, e.n * sizeof *ids);
        memcpy(types + start[i], e.type_ids, e.n * sizeof *types);
    }
    bert_tap taps[2] = {BERT_TAP_INIT, BERT_TAP_INIT};
    size_t n_taps = 0;
    if (hidden) taps[n_taps++].site = BERT_SITE_HIDDEN_STATES;
    if (maps) taps[n_taps++].site = BERT_SITE_WEIGHTS;
    for (size_t i = 0; i < n_taps; i++) {
        taps[i].got = take;
        taps[i].user = r;
    }
    const bert_batch batch = {sizeof batch, n, start, ids, types};
    r->order = order;
    check(bert_run(r->session, &batch, taps, n_taps, NULL, &err), &err);
    free(ids);
    free(types);
}

/* Passes of up to eight texts, or of one; maps with the hidden states, or in passes of their own. */
static void run_all(runner *r, size_t n) {
    size_t order[MAX_TEXTS];
    const size_t together = r->arguments->alone ? 1 : 8;
    for (size_t i = 0; i < n; i++) order[i] = r->arguments->reverse ? n - 1 - i : i;
    for (size_t i = 0; i < n; i += together) {
        const size_t count = n - i < together ? n - i : together;
        run(r, order + i, count, 1, r->arguments->maps);
        if (!r->arguments->maps) run(r, order + i, count, 0, 1);
    }
}

static void write_all(const runner *r, const float *vectors, size_t dim, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const outcome *o = &r->outcomes[i];
        fwrite(o->hidden, sizeof(float), (r->layers + 1) * o->tokens * r->hidden, stdout);
        fwrite(o->maps, sizeof(float), r->layers * r->heads * o->tokens * o->tokens, stdout);
        fwrite(vectors + i * dim, sizeof(float), dim, stdout);
    }
    if (fflush(stdout) != 0) exit(1);
}

static void make_room(runner *r, size_t n) {
    r->outcomes = get(n * sizeof *r->outcomes);
    for (size_t i = 0; i < n; i++) {
        const size_t t = bert_tokens_at(r->tokens, i, 0).n;
        r->outcomes[i].tokens = t;
        r->outcomes[i].hidden = get((r->layers + 1) * t * r->hidden * sizeof(float));
        r->outcomes[i].maps = get(r->layers * r->heads * t * t * sizeof(float));
    }
}

static void process(const arguments *a, const bert_pipeline *p, const bert_workers *workers, const bert_text *texts,
                    size_t n) {
    const bert_model_info info = bert_model_describe(bert_pipeline_model(p));
    const size_t dim = bert_pipeline_describe(p).dim;
    runner r = {.arguments = a, .hidden = info.hidden, .layers = info.layers, .heads = info.heads};
    bert_session_options options = BERT_SESSION_OPTIONS_INIT;
    bert_tokenize_options tokenize = BERT_TOKENIZE_OPTIONS_INIT;
    bert_error err;
    options.workers = workers;
    tokenize.max_length = info.positions;
    check(bert_session_open(&r.session, bert_pipeline_model(p), &options, &err), &err);
    check(bert_tokenize(&r.tokens, bert_pipeline_tokenizer(p), texts, n, &tokenize, &err), &err);
    make_room(&r, n);
    run_all(&r, n);
    float *vectors = get(n * dim * sizeof *vectors);
    for (size_t i = 0; a->alone && i < n; i++)
        check(bert_embed(r.session, p, vectors + i * dim, texts + i, 1, NULL, NULL, &err), &err);
    if (!a->alone) check(bert_embed(r.session, p, vectors, texts, n, NULL, NULL, &err), &err);
    write_all(&r, vectors, dim, n);
    for (size_t i = 0; i < n; i++) {
        free(r.outcomes[i].hidden);
        free(r.outcomes[i].maps);
    }
    free(r.outcomes);
    free(vectors);
    bert_tokens_close(&r.tokens);
    bert_session_close(&r.session);
}

static int print_isas(void) {
    for (bert_isa isa = BERT_ISA_REF; isa <= BERT_ISA_NEON; isa++)
        if (bert_isa_name(isa)) printf("%s ", bert_isa_name(isa));
    return puts("") == EOF;
}

int main(int argc, char **argv) {
    bert_text texts[MAX_TEXTS];
    bert_pool *pool = NULL;
    bert_pipeline *p;
    bert_error err;
    bert_model_options model = BERT_MODEL_OPTIONS_INIT;
    bert_pipeline_options options = BERT_PIPELINE_OPTIONS_INIT;
    if (argc == 2 && strcmp(argv[1], "isas") == 0) return print_isas();
    if (argc < 3) return 2;
    const arguments a = parse(argc - 3, argv + 3);
    size_t n = read_texts(argv[2], texts);
    if (a.threads > 1) check(bert_pool_open(&pool, a.threads, &err), &err);
    const bert_workers *workers = pool ? bert_pool_workers(pool) : NULL;
    model.isa = a.isa;
    model.workers = workers;
    model.weights = a.from_file ? BERT_WEIGHTS_FILE : BERT_WEIGHTS_PACKED;
    options.model = &model;
    check(bert_pipeline_open(&p, argv[1], &options, &err), &err);
    if (a.shortest) qsort(texts, n, sizeof *texts, by_length);
    process(&a, p, workers, texts, a.shortest && a.shortest < n ? a.shortest : n);
    for (size_t i = 0; i < n; i++) {
        free((void *)texts[i].a);
        free((void *)texts[i].b);
    }
    bert_pipeline_close(&p);
    bert_pool_close(&pool);
    return 0;
}
