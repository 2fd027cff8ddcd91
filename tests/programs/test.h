/* For the programs that run under the shim: memory and output that don't go through what is traced, so that a program
 * that counts its own allocations counts all of them. */
#ifndef MT_PROGRAM_H
#define MT_PROGRAM_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Pointers are compared and logged after realloc and free on purpose. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic ignored "-Wuse-after-free"
#endif

/* vsnprintf with integers and strings does not allocate. */
__attribute__((format(printf, 1, 2), unused)) static void say(const char *format, ...)
{
	char line[512];
	va_list list;
	va_start(list, format);
	int n = vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	if (n > 0 && write(1, line, n < (int)sizeof(line) ? n : (int)sizeof(line) - 1) < 0)
		_exit(99);
}

#define CHECK(cond) \
	do { if (!(cond)) say("FAILED %s:%d %s (errno %d)\n", __FILE__, __LINE__, #cond, errno); } while (0)

/* A mapping the hooks don't see: of a file that outlives us, or anonymous if path is NULL. */
__attribute__((unused)) static void *raw_map(const char *path, size_t bytes)
{
	int fd = -1;
	if (path) {
		fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || syscall(SYS_ftruncate, fd, bytes))
			_exit(98);
	}
	long p = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
			 path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0L);
	if (fd >= 0)
		syscall(SYS_close, fd);
	if (p < 0 && p > -4096)
		_exit(97);
	return (void *)p;
}

/* Keeps the compiler from removing an allocation or knowing where a pointer came from. */
__attribute__((unused)) static inline void *opaque(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

#endif
