/* text/compose.h: compatibility decomposition and canonical composition, for the NFC, NFKC and NFKD normalizers of
 * tokenizers that are not BERT's own. */
#ifndef BERT_TEXT_COMPOSE_H
#define BERT_TEXT_COMPOSE_H

#include <stdbool.h>
#include <stdint.h>

#define BERT_NFKD_MOST 18 /* U+FDFA */

/* Full compatibility decomposition; returns the number of characters. */
unsigned bert_compat_decompose(uint32_t parts[BERT_NFKD_MOST], uint32_t c);

/* True if a and b compose to one character. */
bool bert_compose_pair(uint32_t *whole, uint32_t a, uint32_t b);

#endif
