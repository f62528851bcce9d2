/* The options that several subcommands have. */
#include "args.h"

#define AT(field) offsetof(settings, field)

const option options_model[] = {
    {"model", 'm', OPTION_MODEL, AT(model), 0, "DIR", "the model's folder; without it $BERT_MODEL"},
    {"threads", 't', OPTION_COUNT, AT(threads), 1, "N", "threads to use; default: all that this process may"},
    {"isa", 0, OPTION_CHOICE, AT(isa), 0, "auto|ref|avx2|avx512|neon", "kernels; the result is the same"},
    {"gemm", 0, OPTION_CHOICE, AT(gemm), 0, "native|openblas",
     "who multiplies matrices; only native gives the same bits everywhere"},
    {"max-mem", 0, OPTION_SIZE, AT(max_memory), 0, "SIZE",
     "fail rather than use more for weights and scratch: 512M, 2G"},
    {"strict", 0, OPTION_FLAG, AT(strict), 1, NULL, "warnings are errors"},
    {0}};

const option options_tokenizer_file[] = {{"tokenizer-json", 0, OPTION_FLAG, AT(tokenizer_json), 1, NULL,
                                          "tokenizer.json as it stands, tokenizer_config.json is not read"},
                                         {0}};

const option options_input[] = {
    {"pair", 0, OPTION_TEXT, AT(pair), 0, "TEXT_B", "the second segment of the one TEXT"},
    {"no-pair", 0, OPTION_FLAG, AT(no_pair), 1, NULL,
     "a TAB in a line is text; else what follows it is the second segment"},
    {"jsonl", 0, OPTION_FLAG, AT(jsonl), 1, NULL, "lines are objects {\"text\":…, \"pair\":…, \"id\":…}"},
    {"on-error", 0, OPTION_CHOICE, AT(on_error), 0, "skip|fail|null",
     "what a bad line does; null writes its id and the error"},
    {"max-line", 0, OPTION_SIZE, AT(max_line), 0, "SIZE", "a line of more bytes is a bad one; default: 64M"},
    {0}};

const option options_tokens[] = {
    {"max-length", 0, OPTION_COUNT, AT(max_length), 1, "N", "cut texts to N tokens, [CLS] and [SEP] included"},
    {"truncation", 0, OPTION_CHOICE, AT(truncation), 0, "longest_first|only_first|only_second|error", "what is cut"},
    {"truncation-side", 0, OPTION_CHOICE, AT(truncation_side), 0, "right|left", "where it is cut"},
    {0}};

const option options_windows[] = {
    {"window", 0, OPTION_COUNT, AT(window), 1, "N",
     "read longer texts in overlapping windows of N tokens, [CLS] and [SEP] included, instead of cutting them"},
    {"stride", 0, OPTION_COUNT, AT(stride), 0, "M", "tokens that neighbouring windows share; default: 0"},
    {0}};

const option options_prompt[] = {
    {"prompt", 0, OPTION_TEXT, AT(prompt), 0, "NAME",
     "put this prompt of the model's before each text (rerank: the query); without it the model's default"},
    {"no-prompt", 0, OPTION_FLAG, AT(no_prompt), 1, NULL, "no prompt, not even the default"},
    {0}};

const option options_literal[] = {
    {"literal-specials", 0, OPTION_FLAG, AT(literal_specials), 1, NULL, "[MASK] and its like in a text are plain text"},
    {0}};

const option options_output[] = {
    {"output", 'o', OPTION_TEXT, AT(output), 0, "FILE", "write there instead of stdout; complete or not at all"},
    {"format", 0, OPTION_TEXT, AT(format), 0, "F", "format; without it FILE's ending decides"},
    {0}};

const option options_progress[] = {
    {"progress", 0, OPTION_FLAG, AT(progress), 1, NULL, "a progress bar even where stderr is no terminal"},
    {"quiet", 'q', OPTION_FLAG, AT(quiet), 1, NULL, "no progress bar"},
    {0}};
