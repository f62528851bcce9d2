/* commands.h: the subcommands that there are. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "args.h"

extern const command command_encode, command_attention, command_tokenize, command_inspect, command_verify,
    command_bench, command_ablate, command_fill_mask, command_classify, command_ner, command_qa, command_rerank,
    command_nsp, command_serve;

#endif
