#include "analyzer/util/system/unnamed_file.h"

#include "analyzer/util/error.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

int unnamed_file(void)
{
	const char *folder = getenv("TMPDIR");
	char path[PATH_MAX];
	folder = folder && *folder == '/' ? folder : "/tmp";
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%s/memtrace-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd < 0 ? error_errno(MT_EOUTPUT, folder, ERROR_NO_OFFSET) : fd;
}

FILE *unnamed_stream(int *e)
{
	int fd = unnamed_file();
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");
	*e = file ? 0 : fd < 0 ? fd : error_memory();
	if (!file && fd >= 0)
		close(fd);
	return file;
}
