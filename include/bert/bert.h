/* bert/bert.h: all of libbert. */
#ifndef BERT_BERT_H
#define BERT_BERT_H

#include <bert/base.h>
#include <bert/json.h>
#include <bert/safetensors.h>
#include <bert/tokenizer.h>
#include <bert/window.h>
#include <bert/model.h>
#include <bert/attention.h>
#include <bert/encoder.h>
#include <bert/embed.h>
#include <bert/heads.h>
#include <bert/extract.h>
#include <bert/study.h>

#endif
