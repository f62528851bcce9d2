#include "head_job.h"

#include <stdio.h>
#include <stdlib.h>

#include "json_out.h"
#include "output/writer.h"
#include "say.h"

static const writer_kind *const formats[] = {&writer_jsonl, NULL};

void head_take_single(head_job *j, record *r) {
    (void)j;
    if (r->text.b)
        snprintf(r->wrong, sizeof r->wrong, "expected one text, found a pair (with --no-pair a TAB is text)");
}

void head_take_pair(head_job *j, record *r) {
    (void)j;
    if (!r->text.b) snprintf(r->wrong, sizeof r->wrong, "expected a pair (a TAB between the two), found one text");
}

size_t head_count_texts(const head_job *j, size_t i) {
    (void)j, (void)i;
    return 1;
}

size_t head_count_tokens(const head_job *j, size_t i) {
    size_t n = 0;
    for (size_t part = 0; part < bert_tokens_parts(j->tokens, i); part++) n += bert_tokens_at(j->tokens, i, part).n;
    return n;
}

int head_run(head_job *j) {
    bert_error err;
    j->logits = need_more(j->logits, bert_head_size(j->head, j->tokens), sizeof *j->logits);
    const bert_status status =
        bert_head_run_tokens(j->engine.session, j->head, j->logits, j->tokens, 0, &j->engine.run, &err);
    return status ? say_failure(&err) : 0;
}

int head_fit_windows(head_job *j, size_t length, size_t stride) {
    if (length > j->engine.info.positions)
        return say_error("--window %zu: the model has %zu positions", length, j->engine.info.positions);
    if (stride >= length) return say_usage("--stride %zu: expected less than the window's %zu tokens", stride, length);
    j->tokenize.max_length = length;
    j->tokenize.stride = stride;
    j->tokenize.overflow = BERT_OVERFLOW_WINDOWS;
    return 0;
}

static int open_head(head_job *j) {
    bert_error err;
    const char *path;
    TRY(engine_model_path(j->s, &path));
    const bert_status status = j->task->kind == BERT_HEAD_WORDS
                                   ? bert_mlm_open(&j->mlm, j->engine.model, &err)
                                   : bert_head_open(&j->head, j->engine.model, j->task->kind, &err);
    return status ? say_error("%s: %s", path, err.text) : 0;
}

static int write_object(head_job *j, const record *r, size_t i) {
    j->line.len = 0;
    buffer_byte(&j->line, '{');
    json_given(&j->line, "id", r->id.at, r->id.len);
    TRY(j->task->print(j, r, i));
    if (!j->line.len) return 0;
    buffer_text(&j->line, "}\n");
    return sink_write(j->out, j->line.data, j->line.len);
}

/* Before results are looked for: what was cut off may be why there are none. */
static void note_texts(head_job *j) {
    window *w = &j->window;
    for (size_t i = 0; i < w->n_texts; i++)
        window_note(w, &w->records[w->places[i]], j->tokenize.overflow ? 0 : bert_tokens_at(j->tokens, i, 0).truncated,
                    j->tokenize.max_length);
}

/* The window's records in their order, those that cannot be used among them. */
static int write_window(head_job *j) {
    window *w = &j->window;
    j->first = 0;
    for (size_t k = 0, i = 0; k < w->n; k++) {
        record *r = &w->records[k];
        const int is_text = i < w->n_texts && w->places[i] == k;
        TRY(r->wrong[0] ? window_report(w, r, j->out) : write_object(j, r, i));
        if (!is_text) continue;
        j->first += j->task->count(j, i);
        i++;
    }
    return 0;
}

static int work_on_window(head_job *j) {
    window *w = &j->window;
    TRY(window_fill(w, WINDOW_STREAM));
    for (size_t k = 0; j->task->take && k < w->n; k++)
        if (!w->records[k].wrong[0]) j->task->take(j, &w->records[k]);
    TRY(window_tokenize(w, &j->tokens, j->engine.tokenizer, &j->tokenize));
    note_texts(j);
    if (w->n_texts) TRY(j->task->run(j));
    TRY(write_window(j));
    return sink_flush(j->out);
}

static int work(head_job *j) {
    const settings *s = j->s;
    const writer_kind *kind;
    TRY(writer_choose(&kind, formats, s->format, s->output));
    TRY(input_open(&j->input, s));
    TRY(sink_open(&j->out, s->output));
    TRY(engine_open(&j->engine, s, ENGINE_PIPELINE));
    TRY(open_head(j));
    j->tokenize = engine_tokenize_options(&j->engine, s);
    if (j->task->fit) TRY(j->task->fit(j));
    j->window.in = &j->input;
    do TRY(work_on_window(j));
    while (!j->window.at_end);
    if (j->task->finish) TRY(j->task->finish(j));
    TRY(sink_finish(&j->out));
    return window_finish(&j->window);
}

int head_job_run(const settings *s, const head_task *task, void *own) {
    head_job j = {.s = s, .task = task, .own = own};
    const int status = work(&j);
    sink_abandon(&j.out);
    bert_head_close(&j.head);
    bert_mlm_close(&j.mlm);
    bert_tokens_close(&j.tokens);
    engine_close(&j.engine);
    window_close(&j.window);
    input_close(&j.input);
    buffer_close(&j.line);
    free(j.logits);
    return status;
}
