#include "analyzer/util/system/new_file.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* /dev/stdout is a link to whatever stdout is; opened anew it would begin at its start. */
static bool is_stdout(const char *path)
{
	struct stat there, out;
	return !stat(path, &there) && !fstat(STDOUT_FILENO, &out) && there.st_dev == out.st_dev &&
	       there.st_ino == out.st_ino;
}

static FILE *open_again(int fd)
{
	const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
	if (copy >= 0 && !file)
		close(copy);
	return file;
}

int new_file_open(struct new_file *n, const char *path)
{
	struct stat st;
	const bool out = is_stdout(path), plain = !out && (lstat(path, &st) != 0 || S_ISREG(st.st_mode));
	*n = (struct new_file){ .path = path };
	if (plain) {
		n->temporary = output_format("%s.%ld.new", path, (long)getpid());
		if (!n->temporary)
			return error_memory();
	}
	n->file = out ? open_again(STDOUT_FILENO) : fopen(n->temporary ? n->temporary : path, "we");
	if (n->file)
		return 0;
	int e = error_errno(MT_EOUTPUT, path, ERROR_NO_OFFSET);
	free(n->temporary);
	n->temporary = NULL;
	return e;
}

int new_file_close(struct new_file *n, bool whole)
{
	int e = 0;
	bool failed = ferror(n->file) != 0;
	if ((fclose(n->file) != 0 || failed) && whole)
		e = error_errno(MT_EOUTPUT, n->path, ERROR_NO_OFFSET);
	if (n->temporary && whole && e == 0 && rename(n->temporary, n->path) != 0)
		e = error_errno(MT_EOUTPUT, n->path, ERROR_NO_OFFSET);
	if (n->temporary && (!whole || e < 0))
		unlink(n->temporary);
	free(n->temporary);
	*n = (struct new_file){ 0 };
	return e;
}
