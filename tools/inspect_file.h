/* inspect_file.h: checking one file of a model by itself. */
#ifndef INSPECT_FILE_H
#define INSPECT_FILE_H

#include <bert/bert.h>

#include "args.h"
#include "buffer.h"

/* Checks the file at `path`; adds what is to be said about it to `out`, as JSON or text. */
int inspect_file(buffer *out, const settings *s, const char *path, int as_json, const bert_notes *notes);

/* {"name":…,"dtype":…,"shape":[…] without its closing brace. */
void inspect_tensor_json(buffer *b, const bert_tensor_info *tensor);
/* name, type and shape as one line of text, without its end. */
void inspect_tensor_text(buffer *b, const bert_tensor_info *tensor);

#endif
