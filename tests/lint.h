/* tests/lint.h: what the analyzers of `scripts/check lint` see in front of every file: that bert_fail never answers
 * BERT_OK, which they cannot know from its declaration. */
#include "base/error.h"

#define bert_fail(err, code, ...) ((void)bert_fail((err), (code), __VA_ARGS__), (code))
