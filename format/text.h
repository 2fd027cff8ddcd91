/* The characters of text that others chose: names, paths, arguments. It may be no UTF-8, and may be meant to make a
 * terminal obey. For the shim and the analyzer; calls nothing. */
#ifndef MT_TEXT_H
#define MT_TEXT_H

#include <stdint.h>

#define MT_TEXT_INVALID UINT32_MAX

struct mt_character {
	uint32_t code;  /* Unicode's; MT_TEXT_INVALID for a byte that belongs to no character */
	unsigned bytes; /* 1 to 4 */
};

/* The character that a text begins with, which must not be empty. Overlong forms and surrogates are none. */
struct mt_character mt_text_character(const char *text);

/* Is it seen as itself and nothing else? Not so: bytes that are none, control characters (C0, DEL, C1), line and
 * paragraph separators, what changes the direction of writing, and what has no width but hides between others (joiners,
 * marks of order, tags). */
int mt_text_shows(uint32_t code);

/* Columns of a terminal that it takes: 0 (accents that join what is before them), 1, or 2 (most of China's, Japan's and
 * Korea's, pictures). What does not show takes one: something stands in its place. */
int mt_text_columns(uint32_t code);

/* Copies `text` with '?' for each character that does not show; what does not fit below `end` with a NUL is left out.
 * Returns the NUL. */
char *mt_text_clean(char *dst, char *end, const char *text);

#endif
