#include <fcntl.h>
#include <string.h>

#include "shim/base/lines.h"
#include "shim/base/sys.h"

struct mt_lines mt_lines_open(const char *path, char *buffer, size_t size)
{
	long fd = mt_sys_open(path, O_RDONLY);

	return (struct mt_lines){ .fd = (int)fd, .buffer = buffer, .size = size };
}

static int fill(struct mt_lines *l)
{
	long n = l->fd < 0 ? 0 : MT_SYS3(SYS_read, l->fd, l->buffer, l->size);

	l->at = 0;
	l->used = n > 0 ? (size_t)n : 0;
	return n > 0;
}

int mt_lines_next(struct mt_lines *l, char *line, size_t size)
{
	size_t n = 0;
	int any = 0;
	char c = 0;

	while (c != '\n' && (l->at < l->used || fill(l))) {
		c = l->buffer[l->at++];
		any = 1;
		if (c != '\n' && n + 1 < size)
			line[n++] = c;
	}
	line[n] = 0;
	return any;
}

void mt_lines_close(struct mt_lines *l)
{
	if (l->fd >= 0)
		MT_SYS1(SYS_close, l->fd);
	l->fd = -1;
}

const char *mt_lines_value(const char *line, const char *name)
{
	for (; *name; line++, name++)
		if (*line != *name)
			return NULL;
	return line + strspn(line, " \t");
}

uint64_t mt_number(const char *text, const char **end, unsigned base)
{
	uint64_t value = 0;
	unsigned digit;

	for (text += strspn(text, " \t");; text++) {
		digit = *text >= '0' && *text <= '9'   ? (unsigned)(*text - '0')
			: *text >= 'a' && *text <= 'f' ? (unsigned)(*text - 'a' + 10)
						       : base;
		if (digit >= base)
			break;
		value = value * base + digit;
	}
	if (end)
		*end = text;
	return value;
}
