/* number.h: integers as text, and a float as the shortest text that reads back to the same float. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum { NUMBER_ROOM = 24 };

/* Writes x as a JSON number (not NUL-terminated) and returns its length; "null" for what JSON has no number for. */
size_t number_print(char text[NUMBER_ROOM], float x);

/* The same for an integer. */
size_t number_print_integer(char text[NUMBER_ROOM], int64_t x);

#endif
