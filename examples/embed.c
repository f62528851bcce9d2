/* embed.c: one text to one sentence vector.
 *
 *     cc -o embed embed.c $(pkg-config --cflags --libs bert)
 *     ./embed models/all-MiniLM-L6-v2 "A text."
 */
#include <bert/bert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "models/all-MiniLM-L6-v2";
    const char *words = argc > 2 ? argv[2] : "The quick brown fox jumps over the lazy dog.";
    bert_text text = {.a = words, .a_len = strlen(words)};
    bert_pipeline *pipeline = NULL;
    bert_session *session = NULL;
    float *vector = NULL; /* [dim] */
    bert_error err;
    bert_status status = bert_pipeline_open(&pipeline, folder, NULL, &err);
    if (status == BERT_OK)
        status = bert_session_open(&session, bert_pipeline_model(pipeline), NULL, &err);
    size_t dim = status == BERT_OK ? bert_pipeline_dim(pipeline, NULL) : 0;
    if (status == BERT_OK && (vector = malloc(dim * sizeof *vector)))
        status = bert_embed(session, pipeline, vector, &text, 1, NULL, NULL, &err);
    for (size_t i = 0; i < dim && status == BERT_OK && vector; i++)
        printf("%.9g%c", (double)vector[i], i + 1 < dim ? ' ' : '\n');
    if (status != BERT_OK)
        fprintf(stderr, "embed: %s\n", err.text);
    free(vector);
    bert_session_close(&session);
    bert_pipeline_close(&pipeline);
    return status == BERT_OK && vector ? 0 : 1;
}
