/* bert serve: starts bert-serve, which lies beside this program (serve/main.c is its beginning). It is a program of its
 * own so that no other subcommand waits for libmicrohttpd and the dozen libraries behind it to be loaded. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "buffer.h"
#include "commands.h"
#include "say.h"

static const char name[] = "bert-serve";

/* The words as they were given, behind the program's name. */
static char **words_for(const settings *s) {
    size_t n = 0;
    while (s->texts[n]) n++;
    char **words = need(n + 2, sizeof *words);
    words[0] = (char *)name;
    memcpy(words + 1, s->texts, (n + 1) * sizeof *words);
    return words;
}

static int run(const settings *s) {
    char path[4096];
    if (s->n_texts) return say_usage("bert serve takes no TEXT, found %s", s->texts[0]);
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof name);
    while (n > 0 && path[n - 1] != '/') n--;
    memcpy(path + (n > 0 ? n : 0), name, sizeof name);
    execv(path, words_for(s));
    return say_error("cannot run %s: %s (it is built where libmicrohttpd is installed)", path, strerror(errno));
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
const command command_serve = {
    "serve",
    "Answers over HTTP: OpenAI's /v1/embeddings, text-embeddings-inference's /embed, /rerank, /tokenize, /info, and "
    "/attention; / in a browser shows attention. SIGTERM: answers what it has taken, then ends.",
    "-m DIR [-m DIR...]",
    "bert serve -m models/all-MiniLM-L6-v2 --port 8080",
    options,
    run};
