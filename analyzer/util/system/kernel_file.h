/* Small files of the kernel's, in /proc and /sys. */
#ifndef MT_UTIL_SYSTEM_KERNEL_FILE_H
#define MT_UTIL_SYSTEM_KERNEL_FILE_H

#include <stddef.h>

/* Opened for reading, or -1 with errno. With MEMTRACE_PROC_ROOT set a file of that name below it comes first: that is
 * how tests show the sampler machines they don't have. */
int kernel_open(const char *path);

/* The whole file as text into buf; bytes, or -1. */
long kernel_read(const char *path, char *buf, size_t size);

#endif
