/* All bytes of a read or a write, which may come or go in parts, and with signals between. */
#ifndef MT_UTIL_MEMORY_WHOLE_H
#define MT_UTIL_MEMORY_WHOLE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

/* False: errno says why. */
static inline bool whole_write(int fd, const void *from, size_t n)
{
	for (const char *at = from; n;) {
		const ssize_t did = write(fd, at, n);
		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return false;
		at += did;
		n -= (size_t)did;
	}
	return true;
}

/* False: there were fewer, or it can't be read. */
static inline bool whole_read(int fd, void *to, size_t n)
{
	for (char *at = to; n;) {
		const ssize_t got = read(fd, at, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

#endif
