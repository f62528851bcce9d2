/* serve/request.h: the JSON of a request, field by field. Functions that can fail return 0, or the status of the answer
 * that they have already filled. Fields that are not known are ignored. */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include <bert/json.h>

#include "exchange.h"

typedef struct request {
    exchange *x;
    bert_json root; /* points into the exchange's body */
    served *model;
    bert_text *texts; /* [n] */
    size_t n;
    char *bytes, *query; /* own what they point to */
    int32_t *ids;     /* not NULL: token ids came instead of texts, */
    size_t *start;    /* [n+1] */
    bert_tokenize_options options;
} request;

/* The body is a JSON object, and the model that it names is here. */
int request_open(request *r, exchange *x);
void request_close(request *r);

/* 1 if the field is there and not null. */
int request_has(const request *r, const char *name, bert_json *value);
int request_bool(const request *r, const char *name, int *yes);
/* Its value is the word `other` (*is_other = 1), or `usual`, or it is not there. */
int request_word(const request *r, const char *name, const char *usual, const char *other, int *is_other);

/* The field is a string, a list of strings, or (with_ids) a list of token ids or a list of such lists. */
int request_texts(request *r, const char *name, int with_ids);
/* The field is one string, appended as the second text of the only one. */
int request_pair(request *r, const char *name);
/* The field is one string; behind the prompt it becomes the first text of every pair, what was the text the second. */
int request_query(request *r, const char *name);
/* prompt_name, or the folder's default: put in front of each text, and into *o, with which they will be pooled. */
int request_prompt(request *r, bert_embed_options *o);
/* truncate, truncation_direction */
int request_truncation(request *r);

/* The texts as tokens, in the model's `tokens`, no more than a request may have; counts what was cut. */
int request_tokenize(request *r);
/* A job with the texts' tokens. */
int request_job(request *r, job **j);

#endif
