/* html: one page that shows attention and needs nothing else. tools/page/ is the page; here its data are put in.
 *
 * The page is written as the tensors come: what stands before the data, then for each tensor
 *     <script type="text/plain" id="0.attentions.3">BASE64</script>        text 0, layer 3 (output/page_code.h)
 * which the page decodes only when that layer is looked at, then what is known of the texts as JSON, and the code.
 */
#include <string.h>

#include "json_out.h"
#include "page_code.h"
#include "page_parts.h"
#include "say.h"
#include "writer.h"

typedef struct html_state {
    buffer texts;  /* JSON list: what is known of each text */
    buffer layers; /* JSON list: of each layer of the text that is being written */
    buffer bytes, coded;
    size_t heads;
    int left_out; /* something that the page cannot show was given, and said to be */
} html_state;

static void add_key_string(buffer *b, const char *key, const char *s, size_t n) {
    json_key(b, key);
    json_string(b, s, n);
}

static int html_begin(writer *w, const about *text) {
    html_state *state = w->state;
    buffer *b = &state->texts;
    if (w->texts == 0) TRY(sink_write(w->out, page_before_data, page_before_data_size));
    buffer_text(b, w->texts ? ",{" : "{");
    if (text->text) add_key_string(b, "text", text->text->a, text->text->a_len);
    if (text->text && text->text->b) add_key_string(b, "pair", text->text->b, text->text->b_len);
    json_key(b, "tokens");
    if (text->tokens)
        buffer_text(b, text->tokens);
    else
        buffer_text(b, "null");
    buffer_print(b, ",\"count\":%zu,\"second\":%ld,\"truncated\":%zu", text->n_tokens, text->second_begins,
                 text->truncated);
    state->layers.len = 0;
    return 0;
}

/* Mean entropy and distance of each head of w [A, T, T], from the numbers before they are made small. */
static void add_statistics(buffer *b, const char *layer, const tensor *t) {
    size_t A = t->dim[1], T = t->dim[2];
    buffer distances = {0};
    buffer_print(b, "%s{\"layer\":%s,\"entropy\":[", b->len ? "," : "", layer);
    for (size_t a = 0; a < A; a++) {
        double entropy, distance;
        page_code_statistics((const float *)t->data + a * T * T, T, &entropy, &distance);
        buffer_print(b, a ? ",%.4f" : "%.4f", entropy);
        buffer_print(&distances, a ? ",%.4f" : "%.4f", distance);
    }
    buffer_text(b, "],\"distance\":[");
    buffer_add(b, distances.data, distances.len);
    buffer_text(b, "]}");
    buffer_close(&distances);
}

static int leave_out(html_state *state, const char *name) {
    if (!state->left_out) say_warning("the page does not show %.*s", (int)strcspn(name, "."), name);
    state->left_out = 1;
    return 0;
}

static int html_tensor(writer *w, const tensor *t) {
    html_state *state = w->state;
    const char *name = t->name;
    int weights = strncmp(name, "attentions.", 11) == 0;
    if (!weights && strncmp(name, "query.", 6) != 0 && strncmp(name, "key.", 4) != 0) return leave_out(state, name);
    size_t rows = t->dim[1] * t->dim[2], width = t->dim[3];
    state->bytes.len = state->coded.len = 0;
    state->heads = t->dim[1];
    if (weights) {
        const thinning thin = {w->known.keep, w->known.min_weight};
        if (width > UINT16_MAX) return say_error("the page shows at most %d tokens, found %zu", UINT16_MAX, width);
        page_code_weights(&state->bytes, t->data, rows, width, &thin);
        add_statistics(&state->layers, name + 11, t);
    } else {
        page_code_rows(&state->bytes, t->data, rows, width);
    }
    buffer_print(&state->coded, "<script type=\"text/plain\" id=\"%zu.%s\">", w->texts, name);
    page_code_base64(&state->coded, state->bytes.data, state->bytes.len);
    buffer_text(&state->coded, "</script>\n");
    return sink_write(w->out, state->coded.data, state->coded.len);
}

static int html_end(writer *w, const about *text) {
    html_state *state = w->state;
    (void)text;
    buffer_text(&state->texts, ",\"layers\":[");
    buffer_add(&state->texts, state->layers.data, state->layers.len);
    buffer_text(&state->texts, "]}");
    return 0;
}

static void add_facts(buffer *b, const writer *w) {
    const facts *known = &w->known;
    const html_state *state = w->state;
    buffer_byte(b, '{');
    page_code_model(b, known);
    if (known->view) add_key_string(b, "view", known->view, strlen(known->view));
    buffer_print(b, ",\"keep\":%zu,\"min_weight\":%.9g,\"heads\":", known->keep, known->min_weight);
    if (known->heads) {
        buffer_text(b, known->heads);
    } else {
        for (size_t a = 0; a < state->heads; a++) buffer_print(b, a ? ",%zu" : "[%zu", a);
        buffer_byte(b, ']');
    }
}

static int html_finish(writer *w) {
    html_state *state = w->state;
    buffer *b = &w->scratch, *out = &state->coded;
    b->len = out->len = 0;
    add_facts(b, w);
    buffer_text(b, ",\"texts\":[");
    buffer_add(b, state->texts.data, state->texts.len);
    buffer_text(b, "]}");
    page_code_facts(out, b);
    TRY(sink_write(w->out, out->data, out->len));
    return sink_write(w->out, page_after_data, page_after_data_size);
}

static void html_close(writer *w) {
    html_state *state = w->state;
    buffer_close(&state->texts);
    buffer_close(&state->layers);
    buffer_close(&state->bytes);
    buffer_close(&state->coded);
}

const writer_kind writer_html = {"html",
                                 ".html",
                                 WRITES_TOKENS | WRITES_METADATA,
                                 sizeof(html_state),
                                 html_begin,
                                 html_tensor,
                                 html_end,
                                 html_finish,
                                 html_close};
