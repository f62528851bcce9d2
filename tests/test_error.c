/* Messages: one printable line of valid UTF-8, whatever goes into them; and the UTF-8 behind that. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

/* Byte by byte from the definition, as a check on the decoder: valid, and nothing that moves a terminal's cursor. */
static void expect_printable_line(const char *text) {
    const size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        uint32_t code;
        const size_t length = bert_utf8_decode(&code, (const uint8_t *)text + i, n - i);
        cr_expect(length > 0, "invalid UTF-8 at byte %zu of %s", i, text);
        cr_expect(code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0) && code != 0x2028 && code != 0x202e,
                  "U+%04X at byte %zu", (unsigned)code, i);
        i += length > 0 ? length : 1;
    }
}

Test(error, fail_fills_and_returns_the_code) {
    bert_error err;
    cr_expect_eq(bert_fail(&err, BERT_IO, "%s: %d", "a.bin", 7), BERT_IO);
    cr_expect_eq(err.code, BERT_IO);
    cr_expect_str_eq(err.text, "a.bin: 7");
    cr_expect_eq(bert_fail(NULL, BERT_CHANGED, "nobody reads %s", "this"), BERT_CHANGED);
}

Test(error, a_message_may_be_made_from_itself) {
    bert_error err;
    bert_fail(&err, BERT_BAD_FILE, "inner");
    bert_fail(&err, err.code, "outer: %s", err.text);
    cr_expect_str_eq(err.text, "outer: inner");
    cr_expect_eq(err.code, BERT_BAD_FILE);
}

Test(error, what_cannot_be_printed_is_escaped) {
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"a\nb", "a\\x0ab"},
        {"\x1b[2J", "\\x1b[2J"},
        {"del\x7f", "del\\x7f"},
        {"c1 \xc2\x9b", "c1 \\xc2\\x9b"},
        {"line \xe2\x80\xa8", "line \\xe2\\x80\\xa8"},
        {"bidi \xe2\x80\xae", "bidi \\xe2\\x80\\xae"}, {"\xd8\x9c", "\\xd8\\x9c"},
        {"bad \xff\xc3", "bad \\xff\\xc3"},
        {"surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80"},
        {"good \xc3\xa9 \xf0\x9f\x98\x80 'it' \"is\"", "good \xc3\xa9 \xf0\x9f\x98\x80 'it' \"is\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bert_error err;
        bert_fail(&err, BERT_IO, "%s", rows[i].from);
        cr_expect_str_eq(err.text, rows[i].to);
    }
}

Test(error, quote_also_escapes_quotes_and_nul) {
    char text[64];
    cr_expect_str_eq(bert_quote(text, sizeof text, "it's\0\"", 6), "it\\x27s\\x00\\x22");
    cr_expect_str_eq(bert_quote(text, sizeof text, "", 0), "");
    cr_expect_str_eq(bert_quote(text, sizeof text, "%s%n", 4), "%s%n");
}

/* Every room from 1 byte up: terminated inside it, whole characters, an ellipsis exactly where something is missing. */
Test(error, cut_at_a_character_with_an_ellipsis) {
    const char *long_text = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n\xff plain";
    char whole[64], text[64];
    bert_quote(whole, sizeof whole, long_text, strlen(long_text));
    for (size_t room = 1; room < sizeof text; room++) {
        memset(text, '#', sizeof text);
        bert_quote(text, room, long_text, strlen(long_text));
        cr_assert_leq(strlen(text) + 1, room);
        expect_printable_line(text);
        for (size_t i = room; i < sizeof text; i++) cr_assert_eq(text[i], '#', "room %zu, byte %zu", room, i);
        const size_t n = strlen(text);
        const int cut = n >= 3 && memcmp(text + n - 3, "…", 3) == 0;
        cr_expect_eq(cut, room < strlen(whole) + 1 && room > 3, "room %zu: %s", room, text);
        if (!cut && room > 3) cr_expect_str_eq(text, whole);
    }
    cr_expect_eq(bert_quote(text, 0, "x", 1), text);
}

Test(error, long_messages_are_cut) {
    char name[4000];
    for (size_t i = 0; i + 2 < sizeof name; i += 2) memcpy(name + i, "\xc3\xa9", 3);
    bert_error err;
    bert_fail(&err, BERT_NOT_FOUND, "x%s", name);
    const size_t n = strlen(err.text);
    cr_expect(n >= sizeof err.text - 4 && n < sizeof err.text, "%zu", n);
    expect_printable_line(err.text);
    cr_expect_str_eq(err.text + n - 3, "…");
}

static void keep_note(void *user, const char *text) {
    snprintf(user, 600, "%s", text);
}

Test(error, notes_go_to_the_callback) {
    char text[600] = "";
    const bert_notes notes = {text, keep_note}, none = {text, NULL};
    bert_note(&notes, "%s is ignored\n", "b.json");
    cr_expect_str_eq(text, "b.json is ignored\\x0a");
    bert_note(NULL, "nobody listens");
    bert_note(&none, "nor here");
    cr_expect_str_eq(text, "b.json is ignored\\x0a");
}

Test(error, warnings_are_errors_where_the_caller_is_strict) {
    char text[600] = "";
    bert_error err = {0};
    const bert_notes notes = {text, keep_note};
    cr_expect_eq(bert_warn(&notes, 0, &err, "%d tensors are not used", 3), BERT_OK);
    cr_expect_str_eq(text, "3 tensors are not used");
    cr_expect_eq(err.code, BERT_OK);
    text[0] = '\0';
    cr_expect_eq(bert_warn(&notes, 1, &err, "%d tensors are not used", 4), BERT_BAD_FILE);
    cr_expect_str_eq(err.text, "4 tensors are not used");
    cr_expect_str_eq(text, "");
}

Test(error, versions) {
    cr_expect_eq(bert_version(), 0u << 16 | 1u << 8 | 0u);
    cr_expect_eq(bert_numerics(), 1u);
}

Test(utf8, every_scalar_value_survives_the_way_out_and_back) {
    for (uint32_t code = 0; code < 0x110000; code++) {
        if (code == 0xd800) code = 0xe000;
        uint8_t bytes[4];
        uint32_t back;
        const size_t n = bert_utf8_write(bytes, code);
        cr_assert_eq(n, code < 0x80 ? 1u : code < 0x800 ? 2u : code < 0x10000 ? 3u : 4u);
        cr_assert_eq(bert_utf8_decode(&back, bytes, n), n);
        cr_assert_eq(back, code);
        for (size_t cut = 0; cut < n; cut++) cr_assert_eq(bert_utf8_decode(&back, bytes, cut), 0u);
    }
}

/* Of all sequences of three bytes, followed by one that continues, only those are taken that the encoder makes. */
Test(utf8, nothing_else_is_taken) {
    for (uint32_t i = 0; i < 1u << 24; i++) {
        const uint8_t bytes[4] = {(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i, 0x80};
        uint8_t again[4];
        uint32_t code;
        const size_t n = bert_utf8_decode(&code, bytes, 4);
        if (n == 0) continue;
        const int same = bert_utf8_write(again, code) == n && memcmp(again, bytes, n) == 0;
        if (!same || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) cr_assert_fail("%06x", (unsigned)i);
    }
}
