#include "attention_view.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

/* Values as forms with | between them. In a form L is the number of a layer, A of a head, # any; A* are several heads
 * with points between them. */
static const struct {
    const char *name, *forms;
} keys[] = {{"layer", "L"},
            {"head", "A"},
            {"heads", "all|none|A*"},
            {"token", "#|.#|#.#"},
            {"text", "#"},
            {"beside", "#"},
            {"filter", "all|aa|ab|ba|bb"},
            {"hide", "special|punctuation|special.punctuation"},
            {"words", "0|1"},
            {"sort", "number|entropy|distance"},
            {"min", "0.005|0.01|0.02|0.05|0.1|0.2"}, /* as page.html offers them */
            {"open", "L.A"},
            {"theme", "auto|light|dark"}};
enum { KEYS = sizeof keys / sizeof *keys };

/* The n bytes from `at` on, behind which there is a comma or the end, have this form. */
static int is_form(const char *at, size_t n, const char *form, const bert_model_info *info) {
    const char *end = at + n;
    for (; *form && *form != '|'; form++) {
        const size_t below = *form == 'L' ? info->layers : *form == 'A' ? info->heads : *form == '#' ? 1000000 : 0;
        char *rest;
        if (!below) {
            if (*at++ != *form) return 0;
            continue;
        }
        if (*at < '0' || *at > '9' || strtoull(at, &rest, 10) >= below) return 0;
        at = rest;
        if (form[1] != '*') continue;
        if (*at == '.') at++, form--; /* the same once more */
        else form++;
    }
    return at == end;
}

static int is_pair(const char *at, size_t n, const bert_model_info *info) {
    const char *equals = memchr(at, '=', n);
    const size_t name = equals ? (size_t)(equals - at) : n;
    int i = 0;
    while (i < KEYS && (strlen(keys[i].name) != name || memcmp(keys[i].name, at, name) != 0)) i++;
    if (!equals || i == KEYS) return 0;
    for (const char *form = keys[i].forms;; form++) {
        if (is_form(equals + 1, n - name - 1, form, info)) return 1;
        form += strcspn(form, "|");
        if (!*form) return 0;
    }
}

int view_check(const char *view, const bert_model_info *info) {
    static const char *const first[] = {"head", "model", "neuron", "map"};
    size_t n = strcspn(view, ",");
    int good = 0;
    for (int i = 0; i < 4; i++) good |= strlen(first[i]) == n && memcmp(first[i], view, n) == 0;
    for (const char *at = view + n; good && *at; at += n) {
        n = strcspn(++at, ",");
        good = is_pair(at, n, info);
        if (!good) return say_usage("--view %s: %.*s: expected pairs as in the page's address, of layers 0 to %zu and "
                                    "heads 0 to %zu: map,layer=0,head=0", view, (int)n, at, info->layers - 1,
                                    info->heads - 1);
    }
    return good ? 0 : say_usage("--view %s: expected head, model, neuron or map, then pairs as in the page's address: "
                                "map,layer=0,head=0", view);
}
