/* memtrace --version: which build this is, what it reads, and what it was built with. */
#ifndef MT_HELP_VERSION_H
#define MT_HELP_VERSION_H

/* Prints it. The first line is "memtrace VERSION", which scripts may rely upon. */
void version_print(void);

#endif
