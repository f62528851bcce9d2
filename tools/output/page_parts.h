/* output/page_parts.h: the files of tools/page/ as two pages, of attention and of ablation, around the place of their
 * data. The build makes the arrays (scripts/embed_page.py). */
#ifndef PAGE_PARTS_H
#define PAGE_PARTS_H

#include <stddef.h>

extern const unsigned char page_before_data[], page_after_data[];
extern const size_t page_before_data_size, page_after_data_size;
extern const unsigned char ablate_before_data[], ablate_after_data[];
extern const size_t ablate_before_data_size, ablate_after_data_size;

#endif
