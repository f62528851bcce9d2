/* bert rerank: documents in order of how well they answer a query. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "head_job.h"
#include "json_out.h"
#include "say.h"
#include "utf8.h"

/* One document, kept until all are there. */
typedef struct document {
    float logit;
    size_t index; /* among the records, from 0 */
    char *object; /* [len] without index and score, which go in at `place`, and without its end */
    size_t place, len;
} document;

typedef struct ranking {
    const char *query; /* in `asked` once the model is open: */
    buffer asked;      /* behind its prompt, and with a NUL */
    bert_scoring scoring;
    document *kept; /* [n] */
    size_t n, room;
} ranking;

/* As CrossEncoder: what stands before the texts of an embedding stands before the query here. */
static int put_prompt(const head_job *j, ranking *k) {
    bert_embed_options options = BERT_EMBED_OPTIONS_INIT;
    bert_error err;
    const char *prompt;
    TRY(engine_read_prompt(&options, j->s));
    if (bert_pipeline_prompt(j->engine.pipeline, &prompt, &options, &err)) return say_failure(&err);
    buffer_text(&k->asked, prompt);
    buffer_text(&k->asked, k->query);
    buffer_byte(&k->asked, 0);
    k->query = k->asked.data;
    return 0;
}

static int fit(head_job *j) {
    ranking *k = j->own;
    TRY(put_prompt(j, k));
    const bert_head_info info = bert_head_describe(j->head);
    if (info.labels != 1) return say_error("rerank needs a head with one score, this one has %zu classes", info.labels);
    k->scoring = j->s->raw ? BERT_SCORING_LOGITS : info.rerank;
    if (k->scoring != BERT_SCORING_AUTO) return 0;
    return say_error("the files name an activation_fn that is not known here; --raw gives the logits");
}

static void take(head_job *j, record *r) {
    const ranking *k = j->own;
    if (r->text.b) {
        snprintf(r->wrong, sizeof r->wrong, "expected a document, found a pair");
        return;
    }
    r->text = (bert_text){k->query, strlen(k->query), r->text.a, r->text.a_len};
}

/* Best first: by logits, since scores may be equal where these are not; of equal ones the earlier. */
static int in_order(const void *a, const void *b) {
    const document *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* With --top-k no more than twice as many are kept. */
static void drop_worst(ranking *k, size_t top) {
    if (!top || k->n < 2 * top) return;
    qsort(k->kept, k->n, sizeof *k->kept, in_order);
    while (k->n > top) free(k->kept[--k->n].object);
}

/* Keeps the object instead of writing it. */
static int keep(head_job *j, const record *r, size_t i) {
    ranking *k = j->own;
    const window *w = &j->window;
    document d = {j->logits[j->first], w->done + (size_t)(r - w->records), NULL, j->line.len, 0};
    (void)i;
    json_key(&j->line, "text");
    json_string(&j->line, r->text.b, r->text.b_len);
    if (k->n == k->room) {
        k->room = k->room ? 2 * k->room : 64;
        k->kept = need_more(k->kept, k->room, sizeof *k->kept);
    }
    d.len = j->line.len;
    d.object = need(d.len, 1);
    memcpy(d.object, j->line.data, d.len);
    k->kept[k->n++] = d;
    j->line.len = 0;
    drop_worst(k, j->s->top_k);
    return 0;
}

static int write_document(head_job *j, const document *d) {
    bert_error err;
    float score;
    const ranking *k = j->own;
    if (bert_head_score(j->head, &score, &d->logit, 1, k->scoring, &err)) return say_failure(&err);
    j->line.len = 0;
    buffer_add(&j->line, d->object, d->place);
    json_key(&j->line, "index");
    buffer_print(&j->line, "%zu", d->index);
    json_key(&j->line, "score");
    json_float(&j->line, score);
    if (d->object[d->place] != ',') buffer_byte(&j->line, ',');
    buffer_add(&j->line, d->object + d->place, d->len - d->place);
    buffer_text(&j->line, "}\n");
    return sink_write(j->out, j->line.data, j->line.len);
}

static int finish(head_job *j) {
    ranking *k = j->own;
    if (k->n) qsort(k->kept, k->n, sizeof *k->kept, in_order);
    for (size_t i = 0; i < k->n && (!j->s->top_k || i < j->s->top_k); i++) TRY(write_document(j, &k->kept[i]));
    return 0;
}

static const head_task task = {.kind = BERT_HEAD_SEQUENCE,
                               .fit = fit,
                               .take = take,
                               .run = head_run,
                               .count = head_count_texts,
                               .print = keep,
                               .finish = finish};

static int check_query(const settings *s, const char *query) {
    size_t first;
    if (!utf8_count_invalid(query, strlen(query), &first)) return 0;
    if (s->strict) return say_error("QUERY: not valid UTF-8 at byte %zu", first);
    say_warning("QUERY: not valid UTF-8 at byte %zu, read as U+FFFD", first);
    return 0;
}

/* The first TEXT is the query, the others are documents; without others they come from stdin. */
static int run(const settings *s) {
    ranking k = {0};
    settings documents = *s;
    if (!s->n_texts) return say_usage("rerank needs a QUERY, and documents on stdin or behind it");
    if (s->prompt && s->no_prompt) return say_usage("--prompt %s does not go with --no-prompt", s->prompt);
    k.query = s->texts[0];
    TRY(check_query(s, k.query));
    documents.texts++;
    documents.n_texts--;
    documents.no_pair = 1;
    const int status = head_job_run(&documents, &task, &k);
    for (size_t i = 0; i < k.n; i++) free(k.kept[i].object);
    free(k.kept);
    buffer_close(&k.asked);
    return status;
}

#define AT(field) offsetof(settings, field)
static const option own_options[] = {
    {"top-k", 0, OPTION_COUNT, AT(top_k), 1, "K", "only the K best; default: all"},
    {"raw", 0, OPTION_FLAG, AT(raw), 1, NULL, "scores are logits, whatever function the model's files name"},
    {"jsonl", 0, OPTION_FLAG, AT(jsonl), 1, NULL, "lines are objects {\"text\":…, \"id\":…}"},
    {"on-error", 0, OPTION_CHOICE, AT(on_error), 0, "skip|fail|null",
     "what a bad line does; null writes its id and the error"},
    {"max-line", 0, OPTION_SIZE, AT(max_line), 0, "SIZE", "a line of more bytes is a bad one; default: 64M"},
    {0}};
static const option *const options[] = {own_options,     options_model,  options_tokenizer_file, options_tokens,
                                        options_prompt,  options_literal, options_output,        options_progress,
                                        NULL};
const command command_rerank = {
    "rerank",
    "Documents, one a line, in order of how well they answer the query, by a cross-encoder. Format: jsonl.",
    "[--] QUERY [DOCUMENT...]",
    "bert rerank -m models/ms-marco-MiniLM-L-6-v2 \"how old are you\" < documents.txt",
    options,
    run};
