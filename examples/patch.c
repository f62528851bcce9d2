/* patch.c: where in the layers does a model keep what it knows? Activations of a clean run are patched into a run whose
 * input is corrupted, and the log-probability of the masked word comes back (Meng et al. 2022, arXiv 2202.05262).
 *
 *     cc -o patch patch.c $(pkg-config --cflags --libs bert)
 *     ./patch models/bert-base-uncased "paris is the capital of [MASK]." "tokyo is the capital of [MASK]."
 *
 * Both texts must have the same number of tokens and one [MASK]. A tap with `edit` writes the clean hidden states of
 * one layer, either of the tokens that differ or of [MASK] itself, into the corrupted run.
 */
#include <bert/bert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct lab {
    bert_pipeline *pipeline;
    bert_session *session;
    bert_mlm *mlm;
    bert_tokens *tokens;
    bert_encoding clean, corrupted;
    size_t layers, hidden, vocab, mask; /* mask: where [MASK] is */
    float *states;                      /* [L+1, T, H]: of the clean run */
    float *last;                        /* [T, H]: of the run at hand */
    float *logits;                      /* [V] */
    int at_mask;                        /* what the patch replaces: [MASK], or the tokens that differ */
    bert_error err;
} lab;

/* Called with the hidden states of the layer that the tap names, before the next layer reads them. */
static int patch(void *user, const bert_view *view) {
    const lab *l = user;
    const float *from = l->states + (size_t)view->layer * l->clean.n * l->hidden;
    for (size_t i = 0; i < l->clean.n; i++)
        if (l->at_mask ? i == l->mask : l->clean.ids[i] != l->corrupted.ids[i])
            memcpy(view->data + i * view->step[0], from + i * l->hidden, l->hidden * sizeof *from);
    return 0;
}

static int run(lab *l, const bert_encoding *text, float *all, int patched_layer) {
    const size_t start[2] = {0, text->n};
    const bert_batch batch = {sizeof batch, 1, start, text->ids, text->type_ids};
    bert_tap taps[2] = {BERT_TAP_INIT, BERT_TAP_INIT}; /* hidden states, both */
    taps[0].layer = patched_layer;
    taps[0].got = patch;
    taps[0].user = l;
    taps[0].edit = 1;
    taps[1].layer = all ? -1 : (int)l->layers;
    taps[1].dst = all ? all : l->last;
    taps[1].dst_len = (all ? l->layers + 1 : 1) * text->n * l->hidden;
    if (patched_layer < 0) return bert_run(l->session, &batch, taps + 1, 1, NULL, &l->err) == BERT_OK;
    return bert_run(l->session, &batch, taps, 2, NULL, &l->err) == BERT_OK;
}

/* ln p(word) at [MASK]. */
static int log_prob(lab *l, const float *last, int32_t word, float *p) {
    return bert_mlm_log_probs(l->mlm, p, last + l->mask * l->hidden, &word, 1, NULL, &l->err) == BERT_OK;
}

static int best_word(lab *l, const float *last, int32_t *word) {
    if (bert_mlm_logits(l->mlm, l->logits, last + l->mask * l->hidden, 1, NULL, &l->err) != BERT_OK) return 0;
    *word = 0;
    for (size_t i = 1; i < l->vocab; i++)
        if (l->logits[i] > l->logits[*word]) *word = (int32_t)i;
    return 1;
}

static int open_lab(lab *l, const char *folder) {
    if (bert_pipeline_open(&l->pipeline, folder, NULL, &l->err) != BERT_OK ||
        bert_session_open(&l->session, bert_pipeline_model(l->pipeline), NULL, &l->err) != BERT_OK)
        return 0;
    return bert_mlm_open(&l->mlm, bert_pipeline_model(l->pipeline), &l->err) == BERT_OK;
}

static int read_texts(lab *l, const char *clean, const char *corrupted) {
    const bert_model_info model = bert_model_describe(bert_pipeline_model(l->pipeline));
    const bert_text texts[] = {{clean, strlen(clean), NULL, 0}, {corrupted, strlen(corrupted), NULL, 0}};
    const bert_tokenizer *tokenizer = bert_pipeline_tokenizer(l->pipeline);
    const int32_t mask = bert_tokenizer_special(tokenizer, BERT_SPECIAL_MASK);
    if (bert_tokenize(&l->tokens, tokenizer, texts, 2, NULL, &l->err) != BERT_OK) return 0;
    l->clean = bert_tokens_at(l->tokens, 0, 0);
    l->corrupted = bert_tokens_at(l->tokens, 1, 0);
    while (l->mask < l->clean.n && l->clean.ids[l->mask] != mask) l->mask++;
    if (l->clean.n != l->corrupted.n || l->mask == l->clean.n || l->corrupted.ids[l->mask] != mask) {
        snprintf(l->err.text, sizeof l->err.text, "expected two texts of equal length with [MASK] at the same place, "
                                                  "found %zu and %zu tokens", l->clean.n, l->corrupted.n);
        return 0;
    }
    l->layers = model.layers;
    l->hidden = model.hidden;
    l->vocab = model.vocab;
    l->states = malloc((model.layers + 1) * l->clean.n * model.hidden * sizeof *l->states);
    l->last = malloc(l->clean.n * model.hidden * sizeof *l->last);
    l->logits = malloc(model.vocab * sizeof *l->logits);
    return l->states && l->last && l->logits;
}

static int compare(lab *l) {
    int32_t word;
    float clean, corrupted, differing, masked;
    size_t length;
    if (!run(l, &l->clean, l->states, -1)) return 0;
    const float *last = l->states + l->layers * l->clean.n * l->hidden;
    if (!best_word(l, last, &word) || !log_prob(l, last, word, &clean)) return 0;
    if (!run(l, &l->corrupted, NULL, -1) || !log_prob(l, l->last, word, &corrupted)) return 0;
    const char *spelling = bert_tokenizer_token(bert_pipeline_tokenizer(l->pipeline), word, &length);
    printf("the word expected at [MASK]: %.*s\nln p(word)  clean %.4f  corrupted %.4f\n\n", (int)length, spelling,
           (double)clean, (double)corrupted);
    printf("clean states of       the tokens that differ      [MASK]\n");
    for (size_t layer = 0; layer <= l->layers; layer++) {
        l->at_mask = 0;
        if (!run(l, &l->corrupted, NULL, (int)layer) || !log_prob(l, l->last, word, &differing)) return 0;
        l->at_mask = 1;
        if (!run(l, &l->corrupted, NULL, (int)layer) || !log_prob(l, l->last, word, &masked)) return 0;
        printf("layer %2zu %35.4f %11.4f\n", layer, (double)differing, (double)masked);
    }
    return 1;
}

int main(int argc, char **argv) {
    lab l = {0};
    const int done = open_lab(&l, argc > 1 ? argv[1] : "models/bert-base-uncased") &&
                     read_texts(&l, argc > 2 ? argv[2] : "paris is the capital of [MASK].",
                                argc > 3 ? argv[3] : "tokyo is the capital of [MASK].") &&
                     compare(&l);
    if (!done) fprintf(stderr, "patch: %s\n", l.err.text[0] ? l.err.text : "out of memory");
    free(l.states);
    free(l.last);
    free(l.logits);
    bert_tokens_close(&l.tokens);
    bert_mlm_close(&l.mlm);
    bert_session_close(&l.session);
    bert_pipeline_close(&l.pipeline);
    return done ? 0 : 1;
}
