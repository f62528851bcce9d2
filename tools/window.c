#include "window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "json_out.h"
#include "progress.h"
#include "say.h"
#include "signals.h"

/* Enough to fill passes of any sensible size; beyond it only memory and delay grow. */
enum { WINDOW_TEXTS = 256, WINDOW_BYTES = 1 << 19 };

/* What is answered at once is also lost at once when a signal comes, and `head` waits for it: a second of work. */
enum { WINDOW_BEGINS = 16 };
#define WINDOW_SECONDS 1.0

/* So many truncated texts are named, the others only counted: a stream may have millions. */
enum { NAMED_TRUNCATED = 10 };

static record *next_room(window *w) {
    if (w->n == w->room) {
        size_t room = w->room ? 2 * w->room : 16;
        w->records = need_more(w->records, room, sizeof *w->records);
        w->texts = need_more(w->texts, room, sizeof *w->texts);
        w->places = need_more(w->places, room, sizeof *w->places);
        memset(w->records + w->room, 0, (room - w->room) * sizeof *w->records);
        w->room = room;
    }
    return &w->records[w->n];
}

static size_t weight(const record *r) {
    return r->text.a_len + r->text.b_len + r->n_ids * sizeof *r->ids;
}

/* As many as the last one had, or twice or half as many, by the time that it took. */
static void choose_size(window *w) {
    double took = clock_seconds() - w->filled;
    if (!w->most)
        w->most = WINDOW_BEGINS;
    else if (took < WINDOW_SECONDS / 2 && w->most < WINDOW_TEXTS)
        w->most *= 2;
    else if (took > WINDOW_SECONDS && w->most > WINDOW_BEGINS)
        w->most /= 2;
}

int window_fill(window *w, int how) {
    size_t bytes = 0;
    uint64_t part, whole;
    choose_size(w);
    w->done += w->n;
    w->n = 0;
    input_progress(w->in, &part, &whole);
    progress_show(w->done, part, whole); /* what has been read so far is done */
    for (;;) {
        if (signals_caught()) return signals_status();
        record *r = next_room(w);
        int got;
        TRY(input_next(w->in, r, &got));
        w->at_end = !got;
        if (!got) break;
        w->n++;
        bytes += weight(r);
        if (how == WINDOW_ALL) continue;
        if (w->n >= w->most || (w->n > 1 && bytes >= WINDOW_BYTES)) break;
        if (how == WINDOW_STREAM && (bytes >= WINDOW_BYTES || !input_ready(w->in))) break;
    }
    w->filled = clock_seconds();
    return 0;
}

void window_gather(window *w) {
    w->n_texts = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (w->records[i].wrong[0]) continue;
        w->texts[w->n_texts] = w->records[i].text;
        w->places[w->n_texts++] = i;
    }
}

/* Texts [first, first + n) as they are tokenized: behind the prompt. */
static const bert_text *with_prompt(window *w, size_t first, size_t n) {
    if (!w->prompt || !w->prompt[0]) return w->texts + first;
    size_t length = strlen(w->prompt), at = 0;
    w->prompted = need_more(w->prompted, n, sizeof *w->prompted);
    w->prompt_bytes.len = 0;
    for (size_t i = 0; i < n; i++) {
        buffer_add(&w->prompt_bytes, w->prompt, length);
        buffer_add(&w->prompt_bytes, w->texts[first + i].a, w->texts[first + i].a_len);
    }
    for (size_t i = 0; i < n; i++) {
        w->prompted[i] = w->texts[first + i];
        w->prompted[i].a = w->prompt_bytes.data + at;
        w->prompted[i].a_len += length;
        at += w->prompted[i].a_len;
    }
    return w->prompted;
}

/* BERT_UNSUPPORTED: a regular expression of the tokenizer takes too much work on this text. */
int window_concerns_text(bert_status status) {
    return status == BERT_TOO_LONG || status == BERT_INVALID_ARGUMENT || status == BERT_UNSUPPORTED;
}

/* The library numbers the texts of a call ("text 0: …", "text 0 has …"); here each stands alone, in its own place. */
static const char *without_number(const char *text) {
    if (strncmp(text, "text 0", 6) != 0) return text;
    return text + 6 + strspn(text + 6, ": ");
}

int window_screen(window *w, const bert_tokenizer *tokenizer, const bert_tokenize_options *options, size_t *found) {
    bert_tokens *alone = NULL;
    bert_error err;
    int status = 0;
    *found = 0;
    for (size_t i = 0; i < w->n_texts && !status; i++) {
        bert_status answer = bert_tokenize(&alone, tokenizer, with_prompt(w, i, 1), 1, options, &err);
        if (!answer) continue;
        if (!window_concerns_text(answer)) status = say_failure(&err);
        record *r = &w->records[w->places[i]];
        snprintf(r->wrong, sizeof r->wrong, "%s", without_number(err.text));
        ++*found;
    }
    bert_tokens_close(&alone);
    window_gather(w);
    return status;
}

int window_tokenize(window *w, bert_tokens **tokens, const bert_tokenizer *tokenizer,
                    const bert_tokenize_options *options) {
    bert_error err;
    size_t found = 1;
    window_gather(w);
    while (w->n_texts && bert_tokenize(tokens, tokenizer, with_prompt(w, 0, w->n_texts), w->n_texts, options, &err)) {
        if (!window_concerns_text(err.code) || !found) return say_failure(&err);
        TRY(window_screen(w, tokenizer, options, &found));
    }
    return 0;
}

void window_note(window *w, record *r, size_t truncated, size_t limit) {
    char cut[128], broken[128];
    snprintf(cut, sizeof cut, "truncated to %zu tokens, %zu were cut off", limit, truncated);
    snprintf(broken, sizeof broken, "not valid UTF-8 at byte %zu%s, read as U+FFFD", r->first_invalid,
             r->invalid > 1 ? " and elsewhere" : "");
    if (w->in->s->strict && (r->invalid || truncated)) {
        snprintf(r->wrong, sizeof r->wrong, "%s", r->invalid ? broken : cut);
        return;
    }
    w->truncated += truncated > 0;
    input_where(w->in, r, &w->where);
    if (r->invalid) say_warning("%s: %s", w->where.data, broken);
    if (!truncated || w->truncated > NAMED_TRUNCATED) return;
    say_warning("%s: %s%s", w->where.data, cut, w->truncated == NAMED_TRUNCATED ? "; further ones are counted" : "");
}

static int write_error_object(const record *r, sink *out) {
    buffer b = {0};
    buffer_byte(&b, '{');
    json_given(&b, "id", r->id.at, r->id.len);
    json_key(&b, "error");
    json_text(&b, r->wrong);
    buffer_text(&b, "}\n");
    int status = sink_write(out, b.data, b.len);
    buffer_close(&b);
    return status;
}

int window_report(window *w, const record *r, sink *out) {
    int on_error = w->in->s->on_error;
    w->failed = 1;
    input_where(w->in, r, &w->where);
    say_error("%s: %s", w->where.data, r->wrong);
    if (on_error == ON_ERROR_FAIL) return EXIT_COULD_NOT;
    return on_error == ON_ERROR_NULL && out ? write_error_object(r, out) : 0;
}

int window_finish(window *w) {
    progress_clear();
    if (w->truncated > 1) say_warning("%zu texts were truncated", w->truncated);
    return w->failed ? EXIT_COULD_NOT : 0;
}

void window_close(window *w) {
    for (size_t i = 0; i < w->room; i++) record_close(&w->records[i]);
    free(w->records);
    free(w->texts);
    free(w->places);
    free(w->prompted);
    buffer_close(&w->prompt_bytes);
    buffer_close(&w->where);
}
