/* args.h: the command line: one table of options a subcommand, from which it is read and --help is written. */
#ifndef ARGS_H
#define ARGS_H

#include <stddef.h>
#include <stdint.h>

/* Everything that options can say. Zero means not given, where no other default is stated in settings_default. */
typedef struct settings {
    /* model */
    const char *model;            /* the last one that was given */
    const char *models[16];       /* all of them, for those subcommands that take several */
    size_t n_models;
    size_t threads, max_memory;
    int isa, gemm, strict, tokenizer_json;
    /* input */
    const char *pair, *ids;
    int no_pair, jsonl, on_error;
    size_t max_line;
    /* tokens */
    size_t max_length, stride, pad_to_multiple;
    int truncation, truncation_side, literal_specials, no_special_tokens, padding_side, offset_unit;
    const char *padding; /* "longest" or a number */
    /* results */
    const char *what, *layers, *heads;
    const char *view; /* of the page of attention */
    const char *compare; /* file of texts */
    int silence;         /* bert_silence */
    int aggregation;     /* bert_aggregation */
    int raw, null_answer;
    size_t top_k; /* results of a head, words of the logit lens */
    size_t answer_length, window; /* tokens */
    const char *memory; /* npy [Tm, H]: what a decoder attends to */
    size_t keep;
    double min_weight;
    const char *prompt; /* its name */
    int no_prompt;
    int pooling, normalize;
    size_t dim;
    const char *as, *against;
    double tolerance;
    const char *shapes, *tokenizer;
    size_t repeat;
    int json;
    struct {
        const char *host, *socket, *api_key_file;
        size_t port, max_body, max_texts, max_tokens, max_answer, max_queue, max_connections, timeout;
        size_t pass_tokens, max_wait;
    } serve;
    /* output */
    const char *output, *format;
    int progress, quiet;
    /* what is left */
    char **texts;
    size_t n_texts;
} settings;

extern const settings settings_default;

enum { MAX_LINE = 64 << 20 };
enum { ON_ERROR_SKIP, ON_ERROR_FAIL, ON_ERROR_NULL };
enum { GEMM_NATIVE, GEMM_OPENBLAS };
#define NO_STRIDE SIZE_MAX /* none was given: 0 is a stride */

typedef enum {
    OPTION_FLAG,  /* int := value */
    OPTION_TEXT,  /* const char * */
    OPTION_MODEL, /* the same, and settings.models keeps all */
    OPTION_COUNT, /* size_t, at least value */
    OPTION_SIZE,  /* size_t bytes: 512M, 2G */
    OPTION_REAL,  /* double, at least 0 */
    OPTION_CHOICE /* int: which of the words in `argument`, which are separated by | */
} option_kind;

typedef struct option {
    const char *name; /* without --; NULL ends a table */
    char letter;      /* 0: none */
    option_kind kind;
    size_t field; /* offsetof(settings, …) */
    int value;
    const char *argument; /* as --help calls it */
    const char *help;
} option;

typedef struct command {
    const char *name, *summary, *arguments, *example;
    const option *const *options; /* tables, NULL-terminated */
    int (*run)(const settings *s);
} command;

/* Tables that several subcommands share (options.c). */
extern const option options_model[], options_tokenizer_file[], options_input[], options_tokens[], options_windows[],
    options_prompt[], options_literal[],
    options_output[], options_progress[];

/* Reads the words behind the subcommand's name. *helped = 1: --help was asked for and printed. */
int args_read(settings *s, const command *c, int n, char **words, int *helped);

/* "3,5" or "-1" as numbers in [0, n) in keep[n] (1: wanted); "all" or NULL: all. Negative numbers count from the end.
 * `name` is the option's. */
int args_indices(char *keep, size_t n, const char *list, const char *name);

/* "longest" or a number (*length; 0 for longest). */
int args_padding(const char *text, size_t *length);

#endif
