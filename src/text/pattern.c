/* text/pattern.c: the only file that includes pcre2.h. Regular expressions come from files, so every match has limits,
 * nothing is compiled to machine code, and any failure is an error rather than "no match". PCRE2's own limit counts
 * anew at each place where a match may begin, and not how far a repeat runs; so it calls us before every item, and we
 * count items and distances for the whole text. It would also check the rest of the text for every match, and search it
 * for a first character: the former is done once, here, the latter not at all. */
#include "text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/regex.h"

enum { MATCH_LIMIT = 100000, DEPTH_LIMIT = 10000, HEAP_LIMIT_KIB = 1024 };

struct bert_pattern {
    bert_memory memory;
    uint8_t *literal; /* NULL: a regular expression */
    size_t literal_len;
    pcre2_code *code;
    pcre2_match_context *limits;
};

static bert_status no_memory(bert_error *err) {
    return bert_fail(err, BERT_NO_MEMORY, "no memory for a pattern");
}

bert_status bert_pattern_open_literal(bert_pattern **pattern, const char *text, const bert_memory *memory,
                                      bert_error *err) {
    bert_pattern *p = *pattern = bert_memory_new(memory, 1, sizeof *p);
    if (p == NULL) return no_memory(err);
    p->memory = *memory;
    p->literal_len = strlen(text);
    p->literal = bert_memory_new(memory, p->literal_len + 1, 1);
    if (p->literal == NULL) return no_memory(err);
    memcpy(p->literal, text, p->literal_len);
    return BERT_OK;
}

static bert_status compile(bert_pattern *p, const bert_bytes *rewritten, const char *text, bert_error *err) {
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    int code = 0;
    PCRE2_SIZE at = 0;
    char quoted[128];
    if (context == NULL) return no_memory(err);
    (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    const uint32_t options = PCRE2_UTF | PCRE2_MULTILINE | PCRE2_AUTO_CALLOUT | PCRE2_NO_START_OPTIMIZE;
    p->code = pcre2_compile(rewritten->at, rewritten->n, options, &code, &at, context);
    pcre2_compile_context_free(context);
    p->limits = pcre2_match_context_create(NULL);
    if (p->code != NULL && p->limits != NULL) {
        (void)pcre2_set_match_limit(p->limits, MATCH_LIMIT);
        (void)pcre2_set_depth_limit(p->limits, DEPTH_LIMIT);
        (void)pcre2_set_heap_limit(p->limits, HEAP_LIMIT_KIB);
        return BERT_OK;
    }
    if (p->code != NULL) return no_memory(err);
    PCRE2_UCHAR why[128];
    (void)pcre2_get_error_message(code, why, sizeof why);
    return bert_fail(err, BERT_UNSUPPORTED, "regular expression \"%s\": %s",
                     bert_quote(quoted, sizeof quoted, text, strlen(text)), (const char *)why);
}

bert_status bert_pattern_open_regex(bert_pattern **pattern, const char *text, const bert_memory *memory,
                                    bert_error *err) {
    bert_bytes rewritten = {0};
    bert_pattern *p = *pattern = bert_memory_new(memory, 1, sizeof *p);
    if (p == NULL) return no_memory(err);
    p->memory = *memory;
    bert_status status = bert_regex_rewrite(&rewritten, memory, text, err);
    if (status == BERT_OK && !bert_bytes_append(&rewritten, memory, "", 1)) status = no_memory(err);
    if (status == BERT_OK) {
        rewritten.n--; /* the NUL only makes sure that there is a block to point to */
        status = compile(p, &rewritten, text, err);
        rewritten.n++;
    }
    bert_memory_free(memory, rewritten.at, rewritten.room, 1);
    return status;
}

void bert_pattern_close(bert_pattern **pattern) {
    if (pattern == NULL || *pattern == NULL) return;
    bert_pattern *p = *pattern;
    const bert_memory memory = p->memory;
    bert_memory_free(&memory, p->literal, p->literal_len + 1, 1);
    pcre2_code_free(p->code);
    pcre2_match_context_free(p->limits);
    bert_memory_free(&memory, p, 1, sizeof *p);
    *pattern = NULL;
}

static int charge(pcre2_callout_block *step, void *matches) {
    bert_matches *m = matches;
    const size_t at = step->current_position, cost = 1 + (at > m->reached ? at - m->reached : m->reached - at);
    m->reached = at;
    if (cost > *m->work) return PCRE2_ERROR_MATCHLIMIT;
    *m->work -= cost;
    return 0;
}

bert_status bert_matches_open(bert_matches *m, const bert_pattern *pattern, const uint8_t *text, size_t len,
                              size_t *work, bert_error *err) {
    *m = (bert_matches){.pattern = pattern, .text = text != NULL ? text : (const uint8_t *)"", .len = len,
                        .last_end = SIZE_MAX, .work = work};
    if (pattern->literal != NULL) return BERT_OK;
    if (bert_utf8_valid(m->text, len) < len) return bert_fail(err, BERT_INVALID_ARGUMENT, "not valid UTF-8");
    m->data = pcre2_match_data_create(1, NULL);
    m->limits = pcre2_match_context_copy(pattern->limits);
    if (m->data == NULL || m->limits == NULL) return no_memory(err);
    return pcre2_set_callout(m->limits, charge, m) == 0 ? BERT_OK : no_memory(err);
}

static bool find_literal(const bert_matches *m, size_t *start, size_t *end) {
    const bert_pattern *p = m->pattern;
    const uint8_t *found = p->literal_len == 0 ? m->text + m->at
                                               : memmem(m->text + m->at, m->len - m->at, p->literal, p->literal_len);
    if (found == NULL) return false;
    *start = (size_t)(found - m->text);
    *end = *start + p->literal_len;
    return true;
}

static bert_status find(const bert_matches *m, bool *found, size_t *start, size_t *end, bert_error *err) {
    if (m->pattern->literal != NULL) {
        *found = find_literal(m, start, end);
        return BERT_OK;
    }
    const int rc = pcre2_match(m->pattern->code, m->text, m->len, m->at, PCRE2_NO_UTF_CHECK, m->data,
                               m->limits);
    *found = rc >= 0;
    if (rc >= 0) {
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(m->data);
        *start = place[0];
        *end = place[1];
    }
    if (rc >= PCRE2_ERROR_NOMATCH) return BERT_OK;
    PCRE2_UCHAR why[128];
    (void)pcre2_get_error_message(rc, why, sizeof why);
    return bert_fail(err, BERT_UNSUPPORTED, "a regular expression of tokenizer.json cannot be matched: %s",
                     (const char *)why);
}

/* An empty match right behind the match before does not count: the search goes on one character later. */
bert_status bert_matches_next(bert_matches *m, bool *found, size_t *start, size_t *end, bert_error *err) {
    for (;;) {
        *found = false;
        if (m->at > m->len) return BERT_OK;
        TRY(find(m, found, start, end, err));
        if (!*found) return BERT_OK;
        if (*start != *end || *end != m->last_end) break;
        m->at++;
        while (m->at < m->len && !bert_utf8_begins(m->text[m->at])) m->at++;
    }
    m->at = m->last_end = *end;
    return BERT_OK;
}

void bert_matches_close(bert_matches *m) {
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->limits);
    m->data = m->limits = NULL;
}
