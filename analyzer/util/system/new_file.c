#include "analyzer/util/system/new_file.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int new_file_open(struct new_file *n, const char *path)
{
	struct stat st;
	bool plain = stat(path, &st) != 0 || S_ISREG(st.st_mode);
	*n = (struct new_file){ .path = path };
	if (plain) {
		n->temporary = output_format("%s.%ld.new", path, (long)getpid());
		if (!n->temporary)
			return error_memory();
	}
	n->file = fopen(n->temporary ? n->temporary : path, "we");
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
