/* attention_view.h: --view: how the page of attention opens. */
#ifndef ATTENTION_VIEW_H
#define ATTENTION_VIEW_H

#include <bert/model.h>

/* What stands behind # in the page's address: a view, then pairs that it knows, of layers and heads that there are. */
int view_check(const char *view, const bert_model_info *info);

#endif
