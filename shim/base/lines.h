/* Lines of a file of /proc, read with openat, read and close alone, in as little memory as the caller has. */
#ifndef MT_BASE_LINES_H
#define MT_BASE_LINES_H

#include <stddef.h>
#include <stdint.h>

struct mt_lines {
	int fd; /* negative: the file could not be opened */
	char *buffer;
	size_t size, used, at;
};

struct mt_lines mt_lines_open(const char *path, char *buffer, size_t size);

/* Copies the next line, without its newline and NUL-terminated; the part that doesn't fit is cut off. 0 at the end. */
int mt_lines_next(struct mt_lines *lines, char *line, size_t size);

void mt_lines_close(struct mt_lines *lines);

/* If the line begins with `name`: the rest behind it and blanks; else NULL. */
const char *mt_lines_value(const char *line, const char *name);

/* The number behind blanks at `text`, in base 10 or 16; 0 = there is none. *end, unless NULL, gets what is behind it.
 * Not strtoul(): glibc's headers since 2.38 make it __isoc23_strtoul, which older ones and musl do not have. */
uint64_t mt_number(const char *text, const char **end, unsigned base);

#endif
