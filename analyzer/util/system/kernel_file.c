#include "analyzer/util/system/kernel_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int kernel_open(const char *path)
{
	const char *root = getenv("MEMTRACE_PROC_ROOT");
	if (root && *root) {
		char other[1600];
		snprintf(other, sizeof(other), "%.500s%s", root, path);
		int fd = open(other, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 || errno != ENOENT)
			return fd;
	}
	return open(path, O_RDONLY | O_CLOEXEC);
}

long kernel_read(const char *path, char *buf, size_t size)
{
	int fd = kernel_open(path);
	size_t n = 0;
	ssize_t got = 0;
	while (fd >= 0 && n + 1 < size && (got = read(fd, buf + n, size - 1 - n)) > 0)
		n += (size_t)got;
	if (fd >= 0)
		close(fd);
	buf[n] = '\0';
	return fd < 0 || (got < 0 && !n) ? -1 : (long)n;
}
