/* Any bytes as the body of a request. The first one says which endpoint it is for, and whether one model is served or two;
 * the rest is what a client has sent. Behind the network everything is the server's own: the queue with its thread, passes,
 * writers. Whatever came, the answer is what the endpoint promises, or a 4xx whose JSON says why, and it is no longer than
 * the server's limits say. */
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "exchange.h"
#include "second_reading.h"
#include "tiny_folder.h"

enum { ERROR_MOST = 8 << 10, ANSWER_MOST = 4 << 20, PATH_ROOM = 128 };

static const char *const paths[] = {"/",         "/v1/embeddings", "/embed", "/rerank",
                                    "/tokenize", "/attention",     "/page"};
enum { PATHS = sizeof paths / sizeof *paths };

/* What is served: one model, or two, among which a request has to choose. */
typedef struct served_tiny {
    service of;
    int wake;
} served_tiny;

/* ---- Once: the models. ---- */

static void write_file(const char *folder, const char *name, const void *bytes, size_t n) {
    char path[2 * PATH_ROOM];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, n, file) != n || fclose(file) != 0) abort();
}

static void remove_file(const char *folder, const char *name) {
    char path[2 * PATH_ROOM];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (unlink(path) != 0) abort();
}

static const char prompts[] = "{\"prompts\":{\"query\":\"a: \",\"\\u00e9\":\"b\"},\"default_prompt_name\":null}";

static void write_folder(const char *path) {
    unsigned char weights[TINY_WEIGHTS];
    if (mkdir(path, 0700) != 0) abort();
    write_file(path, "model.safetensors", weights, tiny_weights(weights));
    write_file(path, "config.json", tiny_config, sizeof tiny_config - 1);
    write_file(path, "vocab.txt", tiny_vocab, sizeof tiny_vocab - 1);
    write_file(path, "config_sentence_transformers.json", prompts, sizeof prompts - 1);
}

static void remove_folder(const char *path) {
    remove_file(path, "model.safetensors");
    remove_file(path, "config.json");
    remove_file(path, "vocab.txt");
    remove_file(path, "config_sentence_transformers.json");
    if (rmdir(path) != 0) abort();
}

/* Limits so low that inputs of a few kilobytes reach them. */
static void serve(served_tiny *s, char folders[][PATH_ROOM], size_t n) {
    settings words = settings_default;
    words.threads = 1;
    words.n_models = n;
    for (size_t i = 0; i < n; i++) words.models[i] = words.model = folders[i];
    s->of.most = (limits){.body = 1 << 20, .texts = 12, .tokens = 64, .queue = 1, .pass_tokens = 24, .answer = 1 << 16};
    s->of.metrics = metrics_open(route_count());
    s->wake = eventfd(0, EFD_CLOEXEC);
    if (s->wake < 0 || models_open(&s->of.models, &words) || queue_open(&s->of.queue, &s->of.most, s->wake)) abort();
}

static void open_all(served_tiny all[2]) {
    static char folders[2][PATH_ROOM]; /* models keep their names: "a" and "b" */
    char above[] = "/tmp/bert-fuzz-XXXXXX";
    size_t posts = 0;
    for (size_t i = 0; i < route_count(); i++) posts += strcmp(route_at(i)->method, "POST") == 0;
    if (posts != PATHS) abort(); /* a new endpoint belongs into the list above */
    if (mkdtemp(above) == NULL) abort();
    for (int i = 0; i < 2; i++) {
        snprintf(folders[i], sizeof folders[i], "%s/%c", above, 'a' + i);
        write_folder(folders[i]);
    }
    serve(&all[0], folders, 1);
    serve(&all[1], folders, 2);
    for (int i = 0; i < 2; i++) remove_folder(folders[i]);
    if (rmdir(above) != 0) abort();
}

/* ---- What must hold for every answer. ---- */

static void check(bool holds) {
    if (!holds) abort();
}

static bert_json parse(const exchange *x) {
    bert_json root;
    check(bert_json_check(&root, x->answer.data, x->answer.len, NULL) == BERT_OK);
    return root;
}

static void check_refusal(const exchange *x) {
    bert_json error, words;
    check(x->status == 400 || x->status == 404 || x->status == 413 || x->status == 422);
    check(strcmp(x->type, "application/json") == 0 && x->answer.len <= ERROR_MOST);
    check(bert_json_member(parse(x), "error", &error));
    if (strncmp(x->route->path, "/v1/", 4) == 0)
        check(bert_json_member(error, "message", &words));
    else
        words = error;
    check(bert_json_kind_of(words) == BERT_JSON_STRING && words.len > 10);
}

/* A list of lists, or of objects with the vector in "embedding": as many as the job had texts. */
static void check_vectors(const exchange *x) {
    bert_json all = parse(x), item;
    size_t place = 0, n = 0;
    if (bert_json_kind_of(all) == BERT_JSON_OBJECT) check(bert_json_member(all, "data", &all));
    while (bert_json_next(all, &place, NULL, &item)) n++;
    check(n == x->job->n && n > 0);
}

static void check_answer(const exchange *x) {
    const bool is_html = strncmp(x->type, "text/html", 9) == 0;
    const bool is_binary = strcmp(x->type, "application/octet-stream") == 0;
    check(x->answer.len <= ANSWER_MOST);
    if (x->job != NULL && x->job->look == NULL)
        check_vectors(x);
    else if (is_binary)
        check(second_reading_accepts((const unsigned char *)x->answer.data, x->answer.len));
    else if (is_html)
        check(bert_utf8_valid((const uint8_t *)x->answer.data, x->answer.len) == x->answer.len);
    else
        (void)parse(x);
}

/* ---- Each input. ---- */

static void ask(served_tiny *s, exchange *x) {
    eventfd_t count;
    const job *done = NULL;
    x->route->begin(x);
    if (x->status) return;
    while (done == NULL) {
        check(eventfd_read(s->wake, &count) == 0);
        done = queue_take(s->of.queue);
    }
    check(done == x->job && done->next == NULL);
    x->route->end(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static served_tiny all[2];
    if (all[0].of.queue == NULL) open_all(all);
    if (size == 0) return 0;
    served_tiny *s = &all[data[0] >> 6 & 1];
    exchange *x = need(1, sizeof *x);
    *x = (exchange){.of = &s->of};
    check(route_find(&x->route, "POST", paths[data[0] % 8 % PATHS], &x->allowed) == 0);
    if (size > 1) { /* ends where its allocation ends */
        x->body = (buffer){need(size - 1, 1), size - 1, size - 1};
        memcpy(x->body.data, data + 1, size - 1);
    }
    ask(s, x);
    if (x->status == 200)
        check_answer(x);
    else
        check_refusal(x);
    exchange_close(&x);
    check(s->of.looks == 0 && queue_waiting(s->of.queue) == 0);
    return 0;
}
