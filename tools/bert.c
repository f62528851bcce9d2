/* bert: which subcommand, and what the command says of itself. */
#include <string.h>

#include <bert/bert.h>

#include "buffer.h"
#include "commands.h"
#include "engine.h"
#include "output/sink.h"
#include "progress.h"
#include "say.h"
#include "signals.h"

static const command *const commands[] = {
    &command_encode,    &command_attention, &command_tokenize, &command_inspect, &command_verify,
    &command_ablate,    &command_fill_mask, &command_classify, &command_ner,     &command_qa,
    &command_rerank,    &command_nsp,       &command_serve,    &command_bench,   NULL};

static int print(const buffer *b) {
    sink *out;
    TRY(sink_open(&out, NULL));
    int status = sink_write(out, b->data, b->len);
    if (!status) return sink_finish(&out);
    sink_abandon(&out);
    return status;
}

static int print_help(void) {
    buffer b = {0};
    buffer_text(&b,
                "Usage: bert SUBCOMMAND [OPTIONS] [--] [TEXT...]\n\n"
                "Runs BERT-style encoders from the folders in which Hugging Face publishes them.\n\nSubcommands:\n");
    for (size_t i = 0; commands[i]; i++) buffer_print(&b, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    buffer_text(&b,
                "\nbert SUBCOMMAND --help lists the options of one; bert --version says what runs here.\n\nExample:\n"
                "  bert encode -m models/all-MiniLM-L6-v2 \"The quick brown fox jumps over the lazy dog.\"\n");
    int status = print(&b);
    buffer_close(&b);
    return status;
}

static int print_version(void) {
    buffer b = {0};
    uint32_t version = bert_version();
    buffer_print(&b, "bert %u.%u.%u (numerics %u, isa %s, openblas %s)\n", version >> 16, version >> 8 & 0xFF,
                 version & 0xFF, bert_numerics(), bert_isa_name(BERT_ISA_AUTO),
                 gemm_openblas_there() ? "available" : "not installed");
    int status = print(&b);
    buffer_close(&b);
    return status;
}

static int no_such_command(const char *name) {
    buffer names = {0};
    for (size_t i = 0; commands[i]; i++) buffer_print(&names, i ? ", %s" : "%s", commands[i]->name);
    int status = say_usage("no subcommand %s: there are %.*s", name, (int)names.len, names.data);
    buffer_close(&names);
    return status;
}

static int run_command(const command *c, int n, char **words) {
    settings s = settings_default;
    int helped;
    TRY(args_read(&s, c, n, words, &helped));
    if (helped) return 0;
    progress_open(s.progress, s.quiet);
    return c->run(&s);
}

int main(int n, char **words) {
    signals_open();
    const char *first = n > 1 ? words[1] : "";
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) return print_help();
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) return print_version();
    if (n < 2) return say_usage("expected a subcommand (bert --help lists them)");
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(first, commands[i]->name) == 0) return run_command(commands[i], n - 2, words + 2);
    return no_such_command(first);
}
