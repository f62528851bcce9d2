/* tests/plain/criterion/criterion.h: stands in for Criterion where -Dplain_tests=true: under ThreadSanitizer, where
 * Criterion cannot start (it wants memory at an address that the sanitizer occupies), and under valgrind, which would
 * start anew for each test's process and find what Criterion's own libraries lose. The same tests, one after the other
 * in one process without time limits; a failed cr_assert ends the program. Messages must be string literals with printf
 * arguments. */
#ifndef BERT_TESTS_PLAIN_CRITERION_H
#define BERT_TESTS_PLAIN_CRITERION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plain_suite {
    const char *name;
    struct { void (*init)(void), (*fini)(void); double timeout; } around; /* each of its tests; timeout: Criterion's */
    struct plain_suite *next;
} plain_suite;

typedef struct plain_test {
    const char *suite;
    void (*body)(void);
    struct plain_test *next;
} plain_test;

static plain_suite *plain_suites;
static plain_test *plain_tests;
static int plain_failures;
static jmp_buf plain_skip;

#define TestSuite(suite, ...)                                                              \
    __attribute__((constructor)) static void suite##_register(void) {                      \
        static plain_suite around = {#suite, {__VA_ARGS__}, NULL};                         \
        around.next = plain_suites;                                                        \
        plain_suites = &around;                                                            \
    }

#define Test(suite, test_name, ...)                                                        \
    static void suite##_##test_name(void);                                                 \
    __attribute__((constructor)) static void suite##_##test_name##_register(void) {        \
        static plain_test test = {#suite, suite##_##test_name, NULL};                      \
        test.next = plain_tests;                                                           \
        plain_tests = &test;                                                               \
    }                                                                                      \
    static void suite##_##test_name(void)

__attribute__((format(printf, 5, 6), unused)) static void plain_check(int ok, const char *what,
                                                                       const char *file, int line, const char *format,
                                                                       ...) {
    if (ok) return;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: %s: ", file, line, what);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    plain_failures++;
}

#define PLAIN_CHECK(ok, what, ...) plain_check((ok), what, __FILE__, __LINE__, " " __VA_ARGS__)
#define PLAIN_MUST(ok, what, ...) ((ok) ? (void)0 : (PLAIN_CHECK(0, what, __VA_ARGS__), exit(1)))
#define cr_assert(c, ...) PLAIN_MUST(!!(c), #c, __VA_ARGS__)
#define cr_expect(c, ...) PLAIN_CHECK(!!(c), #c, __VA_ARGS__)
#define cr_assert_not(c, ...) PLAIN_MUST(!(c), "!" #c, __VA_ARGS__)
#define cr_expect_not(c, ...) PLAIN_CHECK(!(c), "!" #c, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) PLAIN_MUST((a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_expect_eq(a, b, ...) PLAIN_CHECK((a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) PLAIN_MUST((a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) PLAIN_CHECK((a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) PLAIN_MUST((a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...) PLAIN_CHECK((a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) PLAIN_MUST((a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...) PLAIN_CHECK((a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) PLAIN_MUST((a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) PLAIN_CHECK((a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) PLAIN_MUST((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) PLAIN_CHECK((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define PLAIN_NEAR(a, b, e) ((a) - (b) <= (e) && (b) - (a) <= (e))
#define cr_assert_float_eq(a, b, e, ...) PLAIN_MUST(PLAIN_NEAR(a, b, e), #a " is near " #b, __VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...) PLAIN_CHECK(PLAIN_NEAR(a, b, e), #a " is near " #b, __VA_ARGS__)
#define cr_assert_null(p, ...) PLAIN_MUST((p) == NULL, #p " == NULL", __VA_ARGS__)
#define cr_expect_null(p, ...) PLAIN_CHECK((p) == NULL, #p " == NULL", __VA_ARGS__)
#define cr_assert_not_null(p, ...) PLAIN_MUST((p) != NULL, #p " != NULL", __VA_ARGS__)
#define cr_expect_not_null(p, ...) PLAIN_CHECK((p) != NULL, #p " != NULL", __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) PLAIN_MUST(strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) PLAIN_CHECK(strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_fail(...) PLAIN_MUST(0, "failed", __VA_ARGS__)
#define cr_log_error(...) ((void)fprintf(stderr, __VA_ARGS__), (void)fputc('\n', stderr))
#define cr_skip_test(...) longjmp(plain_skip, 1)

/* 1: it was skipped. */
static int plain_body(void (*body)(void)) {
    if (setjmp(plain_skip)) return 1;
    body();
    return 0;
}

static int plain_run(const plain_test *test) {
    const plain_suite *suite = plain_suites;
    while (suite && strcmp(suite->name, test->suite) != 0) suite = suite->next;
    if (suite && suite->around.init) suite->around.init();
    const int skipped = plain_body(test->body);
    if (suite && suite->around.fini) suite->around.fini();
    return skipped;
}

int main(void) {
    int skipped = 0, ran = 0, failed = 0;
    for (const plain_test *test = plain_tests; test != NULL; test = test->next) {
        const int before = plain_failures;
        ran++;
        skipped += plain_run(test);
        failed += plain_failures > before;
    }
    printf("%d passed, %d failed, %d skipped\n", ran - skipped - failed, failed, skipped);
    return failed > 0;
}

#endif
