/* A file that is written beside its place and renamed into it when it is whole: who reads it sees the old one or the
 * new one. What is no regular file (a pipe, a device, a link) is written as it is; what stdout is, behind its rest. */
#ifndef MT_UTIL_SYSTEM_NEW_FILE_H
#define MT_UTIL_SYSTEM_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct new_file {
	FILE *file;
	const char *path; /* borrowed */
	char *temporary;  /* NULL: the file itself */
};

/* 0 or -MT_EOUTPUT; -MT_EMEMORY. */
int new_file_open(struct new_file *n, const char *path);

/* Renamed into place if `whole` and all was written, else taken away. Returns 0 or -MT_EOUTPUT. */
int new_file_close(struct new_file *n, bool whole);

#endif
