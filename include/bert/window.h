/* bert/window.h: texts longer than the model takes, as overlapping windows: the parts that bert_tokenize keeps.
 *
 *     bert_tokenize_options o = BERT_TOKENIZE_OPTIONS_INIT;
 *     o.max_length = 256, o.stride = 64, o.overflow = BERT_OVERFLOW_WINDOWS;      (of 256 tokens that share 64)
 *     bert_tokenize(&tokens, tokenizer, &text, 1, &o, &err);
 *     run the parts 0 .. bert_tokens_parts(tokens, 0) - 1 as the texts of a batch, then
 *     bert_place *places = malloc(bert_windows_length(tokens, 0) * sizeof *places);
 *     bert_windows_place(places, tokens, 0);                  token t of the long text: row places[t].token of the
 *                                                             states of part places[t].part
 *
 * Any number of threads may look at a bert_tokens that nobody writes to.
 */
#ifndef BERT_WINDOW_H
#define BERT_WINDOW_H

#include <bert/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Token `token` of part `part`. */
typedef struct bert_place {
    size_t part, token;
} bert_place;

/* How many tokens text i would have without a limit: those of its sequences in all parts, shared ones counted once,
 * and those that the template adds. Padding is not counted. 0: there is no such text. */
BERT_API size_t bert_windows_length(const bert_tokens *tokens, size_t i);

/* places [bert_windows_length]: for each of these tokens, in their order, the window in which it has most context: the
 * nearer end of the window's stretch of its sequence is as far away as in no other window. Of windows that are equal in
 * this the earlier one in the text counts, then the earlier part (Devlin et al. 2018 so choose between the windows of a
 * paragraph for questions: "max context"). An added token goes with the token before it, those in front with the
 * first. The parts must be those of bert_tokenize with overflow, or whole texts. */
BERT_API void bert_windows_place(bert_place *places, const bert_tokens *tokens, size_t i);

#ifdef __cplusplus
}
#endif
#endif
