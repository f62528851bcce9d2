/* embed.c: one text to one sentence vector.
 *
 *     cc -o embed embed.c $(pkg-config --cflags --libs bert)
 *     ./embed models/all-MiniLM-L6-v2 "A text."
 */
#include <bert/bert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "models/all-MiniLM-L6-v2";
    const char *words = argc > 2 ? argv[2] : "The quick brown fox jumps over the lazy dog.";
    bert_text text = {.a = words, .a_len = strlen(words)};
    bert_pipeline *pipeline = NULL;
    bert_session *session = NULL;
    float *vector = NULL; /* [dim] */
    bert_error err = {0};
    int done = 0;
    if (bert_pipeline_open(&pipeline, folder, NULL, &err) == BERT_OK &&
        bert_session_open(&session, bert_pipeline_model(pipeline), NULL, &err) == BERT_OK &&
        (vector = malloc(bert_pipeline_dim(pipeline, NULL) * sizeof *vector)) &&
        bert_embed(session, pipeline, vector, &text, 1, NULL, NULL, &err) == BERT_OK) {
        for (size_t i = 0; i < bert_pipeline_dim(pipeline, NULL); i++) printf("%.9g ", (double)vector[i]);
        printf("\n");
        done = 1;
    } else {
        fprintf(stderr, "embed: %s\n", err.code ? err.text : "out of memory");
    }
    free(vector);
    bert_session_close(&session);
    bert_pipeline_close(&pipeline);
    return done ? 0 : 1;
}
