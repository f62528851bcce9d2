/* serve/front.h: front.html as an array, made by the build (scripts/embed_file.py). */
#ifndef SERVE_FRONT_H
#define SERVE_FRONT_H

#include <stddef.h>

extern const unsigned char front_page[];
extern const size_t front_page_size;

#endif
