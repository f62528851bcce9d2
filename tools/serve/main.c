/* bert-serve: what `bert serve` runs (cmd_serve.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
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
    if (s->serve.socket && (s->serve.host || s->serve.port != settings_default.serve.port))
        return say_usage("--socket takes the place of --host and --port");
    if (s->serve.max_connections > 900) return say_usage("--max-connections: at most 900");
    if (s->serve.timeout > 3600) return say_usage("--timeout: at most 3600 seconds");
    if (s->serve.max_wait > 1000) return say_usage("--max-wait: at most 1000 milliseconds");
    return 0;
}

/* The key is the file's first line: what a header field can hold, without blanks at its ends. */
static int is_key(const char *line, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7F) return 0;
    return n > 0 && n <= 1024 && line[0] != ' ' && line[n - 1] != ' ';
}

static int read_key(service *of, const char *path) {
    char line[1026];
    if (!path) return 0;
    FILE *f = fopen(path, "re");
    if (!f) return say_error("%s: cannot read it", path);
    size_t n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = '\n'; /* the line may lack its end */
    size_t length = (size_t)((char *)memchr(line, '\n', sizeof line) - line);
    if (length > 0 && line[length - 1] == '\r') length--;
    if (!is_key(line, length))
        return say_error("%s: expected a key of 1 to 1024 printable bytes in its first line, no blank at its ends",
                         path);
    line[length] = 0;
    of->key = need_copy(line);
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
    if (s->gemm == GEMM_OPENBLAS) server_block_signals(); /* it starts threads when it is loaded */
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

int main(int n, char **words) {
    settings s = settings_default;
    int helped;
    signals_open();
    TRY(args_read(&s, &command_serve, n - 1, words + 1, &helped));
    return helped ? 0 : run(&s);
}
