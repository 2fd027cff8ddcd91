/* A file that nobody else sees, and that is gone with its last descriptor, however the command ends. */
#ifndef MT_UTIL_SYSTEM_UNNAMED_FILE_H
#define MT_UTIL_SYSTEM_UNNAMED_FILE_H

#include <stdio.h>

/* A descriptor for reading and writing, in TMPDIR, else /tmp; the caller closes it. < 0: -MT_EOUTPUT. */
int unnamed_file(void);

/* The same as a stream; NULL = -MT_EOUTPUT or -MT_EMEMORY was set, *e is it. */
FILE *unnamed_stream(int *e);

#endif
