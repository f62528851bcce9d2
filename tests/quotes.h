/* tests/quotes.h: JSON that can be read in C: ' stands for ". */
#ifndef BERT_TESTS_QUOTES_H
#define BERT_TESTS_QUOTES_H

static inline void double_quotes(char *json) {
    for (; *json != '\0'; json++)
        if (*json == '\'') *json = '"';
}

#endif
