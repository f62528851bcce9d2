/* file/safetensors.h: what the library's other rooms need beyond <bert/safetensors.h>. */
#ifndef BERT_FILE_SAFETENSORS_H
#define BERT_FILE_SAFETENSORS_H

#include <bert/safetensors.h>

#include "file/source.h"

/* Takes the source over, also on failure. */
BERT_MUST_USE bert_status bert_safetensors_open_source(bert_safetensors **file, bert_source *source, bert_error *err);

#endif
