/* bert/extract.h: what is found in a text: entities, and answers to questions.
 *
 *     bert_tokenize(&tokens, tokenizer, &text, 1, &options, &err);      with BERT_OVERFLOW_WINDOWS: also longer
 *     bert_head_open(&head, model, BERT_HEAD_TOKENS, &err);
 *     float *logits = malloc(bert_head_size(head, tokens) * sizeof *logits);
 *     bert_head_run_tokens(session, head, logits, tokens, 0, NULL, &err);
 *     bert_windows_place(places, tokens, 0);                            places, found [bert_windows_length(tokens, 0)]
 *     bert_entities(found, &n, head, logits, tokens, 0, places, &text, NULL, &err);
 *
 * The rules are those of transformers' TokenClassificationPipeline, and of the extractive branch of its
 * DocumentQuestionAnsweringPipeline. All functions are pure; any thread.
 */
#ifndef BERT_EXTRACT_H
#define BERT_EXTRACT_H

#include <bert/heads.h>
#include <bert/window.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How tokens become entities. A word is a token and those behind it that continue it. */
typedef enum bert_aggregation {
    BERT_AGGREGATION_NONE,    /* each token by itself */
    BERT_AGGREGATION_SIMPLE,  /* neighbours of one kind together; B- begins a new one */
    BERT_AGGREGATION_FIRST,   /* the same with words, each with the class of its first token, */
    BERT_AGGREGATION_AVERAGE, /* … the best class of its tokens' mean scores, */
    BERT_AGGREGATION_MAX      /* … the class of its surest token */
} bert_aggregation;

typedef struct bert_entities_options {
    size_t size;
    bert_aggregation aggregation;
    int raw; /* 1: scores are logits, and so is what is averaged and compared */
} bert_entities_options;
#define BERT_ENTITIES_OPTIONS_INIT {sizeof(bert_entities_options), BERT_AGGREGATION_NONE, 0}

typedef struct bert_entity {
    const char *label;   /* the head's; of aggregated ones what is behind B- or I- */
    float score;         /* probability; of several words or tokens the mean */
    uint32_t start, end; /* bytes of the text, as given */
    size_t first, last;  /* its tokens, as numbers of their places */
} bert_entity;

/* entities [bert_windows_length(tokens, i)] gets those of text i of `tokens`, in order, without those of class "O".
 * `text` is the text that was tokenized, not a pair. logits [Σ parts T, N]: its parts' logits from a head of kind
 * TOKENS, one behind the other. `places` are those of bert_windows_place: of windows that overlap a token has the
 * logits of the one where it has most context. BERT_INVALID_ARGUMENT: another kind of head, no text i, a pair, no such
 * aggregation; BERT_NO_MEMORY. */
BERT_API BERT_MUST_USE bert_status bert_entities(bert_entity *entities, size_t *n, const bert_head *head,
                                                 const float *logits, const bert_tokens *tokens, size_t i,
                                                 const bert_place *places, const bert_text *text,
                                                 const bert_entities_options *options, bert_error *err);
/* The entity as its tokens spell it, pieces joined. Writes at most `room` bytes (no NUL), returns the bytes that the
 * whole needs. */
BERT_API size_t bert_entity_word(char *word, size_t room, const bert_tokens *tokens, size_t i, const bert_place *places,
                                 const bert_text *text, const bert_entity *entity);

typedef struct bert_answers_options {
    size_t size;
    size_t top;        /* at most so many answers */
    size_t max_tokens; /* of an answer, before it is widened to whole words */
    int null_answer;   /* 1: that the context has no answer is an answer too */
    int raw;           /* 1: the score is start logit + end logit (Devlin et al. 2018), not the product of
                          probabilities, which are each window's own */
} bert_answers_options;
#define BERT_ANSWERS_OPTIONS_INIT {sizeof(bert_answers_options), 1, 15, 0, 0}

typedef struct bert_answer {
    float score;
    uint32_t start, end; /* bytes of the context; start = end: there is no answer */
} bert_answer;

/* answers [options.top] gets the best spans of the context, different ones, best first. Text i of `tokens` is the pair
 * of question and context, its parts windows over the context (BERT_ONLY_SECOND, BERT_OVERFLOW_WINDOWS); logits
 * [Σ parts T, 2] are those of a head of kind SPAN. *n is 0 if the context has no token, unless null_answer asks for
 * that. BERT_INVALID_ARGUMENT: another kind of head, no text i, top or max_tokens 0; BERT_NO_MEMORY. */
BERT_API BERT_MUST_USE bert_status bert_answers(bert_answer *answers, size_t *n, const bert_head *head,
                                                const float *logits, const bert_tokens *tokens, size_t i,
                                                const bert_answers_options *options, bert_error *err);

#ifdef __cplusplus
}
#endif
#endif
