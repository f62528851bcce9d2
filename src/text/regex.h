/* text/regex.h: regular expressions from tokenizer.json, rewritten for PCRE2. HF's engine there is Oniguruma with Ruby
 * syntax; only what both read alike, or what can be rewritten so that they do, is let through. */
#ifndef BERT_TEXT_REGEX_H
#define BERT_TEXT_REGEX_H

#include "text/tokens.h"

/* Appends to `to` what PCRE2 has to compile, with PCRE2_UTF, PCRE2_MULTILINE and LF as the newline. BERT_UNSUPPORTED
 * names what is refused. */
BERT_MUST_USE bert_status bert_regex_rewrite(bert_bytes *to, const bert_memory *memory, const char *pattern,
                                             bert_error *err);

#endif
