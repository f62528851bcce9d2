/* number.h: a float as the shortest text that reads back to the same float. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stddef.h>

enum { NUMBER_ROOM = 24 };

/* Writes x as a JSON number (not NUL-terminated) and returns its length; "null" for what JSON has no number for. */
size_t number_print(char text[NUMBER_ROOM], float x);

#endif
