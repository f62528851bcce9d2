/* tests/sanitizers.h: what a test cannot do in a build with sanitizers, or under valgrind. */
#ifndef BERT_TESTS_SANITIZERS_H
#define BERT_TESTS_SANITIZERS_H

#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#define BERT_SANITIZER(clang_name, gcc_macro) __has_feature(clang_name)
#else
#define BERT_SANITIZER(clang_name, gcc_macro) (gcc_macro)
#endif
#ifndef __SANITIZE_ADDRESS__
#define __SANITIZE_ADDRESS__ 0
#endif
#ifndef __SANITIZE_THREAD__
#define __SANITIZE_THREAD__ 0
#endif

#define BERT_TEST_ASAN BERT_SANITIZER(address_sanitizer, __SANITIZE_ADDRESS__)
#define BERT_TEST_TSAN BERT_SANITIZER(thread_sanitizer, __SANITIZE_THREAD__)

/* There everything takes fifty times as long: what a test does by the million, it does by the ten thousand. */
static inline int under_valgrind(void) {
    const char *mode = getenv("BERT_TEST_MODE");
    return mode != NULL && strcmp(mode, "valgrind") == 0;
}

#endif
