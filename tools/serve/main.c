/* bert-serve: what `bert serve` runs. A program of its own, so that no other subcommand waits for libmicrohttpd and the
 * dozen libraries behind it to be loaded. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "say.h"
#include "server.h"
#include "signals.h"

static size_t or_else(size_t given, size_t otherwise) {
    return given ? given : otherwise;
}

static limits read_limits(const settings *s) {
    return (limits){.body = or_else(s->serve.max_body, 1 << 20),
                    .texts = or_else(s->serve.max_texts, 256),
                    .tokens = or_else(s->serve.max_tokens, 1 << 17),
                    .queue = or_else(s->serve.max_queue, 64),
                    .connections = or_else(s->serve.max_connections, 256),
                    .pass_tokens = or_else(s->serve.pass_tokens, 1024),
                    .wait_ms = s->serve.max_wait,
                    .answer = or_else(s->serve.max_answer, 64 << 20),
                    .head_s = or_else(s->serve.timeout, 10)};
}

static int check(const settings *s) {
    if (s->n_texts) return say_usage("bert serve takes no TEXT, found %s", s->texts[0]);
    if (s->serve.max_connections > 900) return say_usage("--max-connections: at most 900");
    if (s->serve.timeout > 3600) return say_usage("--timeout: at most 3600 seconds");
    if (s->serve.max_wait > 1000) return say_usage("--max-wait: at most 1000 milliseconds");
    return 0;
}

/* The key is the file's first line. */
static int read_key(service *of, const char *path) {
    char line[1026];
    if (!path) return 0;
    FILE *f = fopen(path, "re");
    if (!f) return say_error("%s: cannot read it", path);
    size_t n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = 0;
    size_t length = strcspn(line, "\r\n");
    if (length == 0 || length > 1024 || memchr(line, 0, length))
        return say_error("%s: expected a key of 1 to 1024 bytes in its first line", path);
    of->key = strndup(line, length);
    return 0;
}

/* Scripts wait for this line. */
static int announce(const server *s) {
    printf("%s\n", server_address(s));
    return fflush(stdout) ? say_error("stdout: cannot write") : 0;
}

static int serve(const settings *s, service *of, server **made) {
    listen_at at = {s->serve.host ? s->serve.host : "127.0.0.1", s->serve.port, s->serve.socket};
    TRY(check(s));
    of->most = read_limits(s);
    TRY(read_key(of, s->serve.api_key_file));
    TRY(models_open(&of->models, s));
    of->metrics = metrics_open(route_count());
    TRY(server_open(made, of, &at));
    TRY(announce(*made));
    return server_run(*made);
}

static int run(const settings *s) {
    service of = {0};
    server *made = NULL;
    int status = serve(s, &of, &made);
    server_close(&made);
    models_close(&of.models);
    metrics_close(&of.metrics);
    free(of.key);
    return status;
}

#define AT(field) offsetof(settings, serve.field)
static const option own_options[] = {
    {"host", 0, OPTION_TEXT, AT(host), 0, "NAME", "address to listen at; default 127.0.0.1, this machine only"},
    {"port", 0, OPTION_COUNT, AT(port), 0, "N", "default 8080; 0: any that is free, the first line says which"},
    {"socket", 0, OPTION_TEXT, AT(socket), 0, "PATH", "a Unix socket instead"},
    {"api-key-file", 0, OPTION_TEXT, AT(api_key_file), 0, "FILE",
     "its first line is a key that clients must send: Authorization: Bearer KEY"},
    {"max-body", 0, OPTION_SIZE, AT(max_body), 0, "SIZE", "of a request; default 1M"},
    {"max-texts", 0, OPTION_COUNT, AT(max_texts), 1, "N", "of a request; default 256"},
    {"max-tokens", 0, OPTION_COUNT, AT(max_tokens), 1, "N", "of a request; default 131072"},
    {"max-answer", 0, OPTION_SIZE, AT(max_answer), 0, "SIZE", "of an answer with attention; default 64M"},
    {"max-queue", 0, OPTION_COUNT, AT(max_queue), 1, "N", "requests that wait; more are answered 429; default 64"},
    {"max-connections", 0, OPTION_COUNT, AT(max_connections), 1, "N", "default 256"},
    {"timeout", 0, OPTION_COUNT, AT(timeout), 1, "S",
     "seconds for the head of a request; three times as many for its body, and between requests; default 10"},
    {"pass-tokens", 0, OPTION_COUNT, AT(pass_tokens), 1, "N",
     "tokens that go through the model together; default 1024; never changes a result"},
    {"max-wait", 0, OPTION_COUNT, AT(max_wait), 0, "MS",
     "how long a pass may wait for requests that are about to come; default 2"},
    {0}};
static const option *const options[] = {own_options,    options_model,   options_tokenizer_file,
                                        options_tokens, options_literal, NULL};
static const command serve_command = {
    "serve",
    "Answers over HTTP: OpenAI's /v1/embeddings, text-embeddings-inference's /embed, /tokenize, /info, and /attention;\n"
    "/ in a browser shows attention. -m may be given several times. SIGTERM: answers what it has taken, then ends.",
    "",
    "bert serve -m models/all-MiniLM-L6-v2 --port 8080",
    options,
    run};

int main(int n, char **words) {
    settings s = settings_default;
    int helped;
    signals_open();
    TRY(args_read(&s, &serve_command, n - 1, words + 1, &helped));
    return helped ? 0 : run(&s);
}
