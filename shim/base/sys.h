/*
 * System calls made directly: libc's wrappers may be hooked (by us or by the target), set errno, and are
 * cancellation points. Each returns the result or -errno.
 *
 * A seccomp filter may kill the program for a call that it doesn't know. So every call of our own goes through
 * mt_sys(), which makes it only if it is known to be harmless and answers -ENOSYS else: what depends on it does
 * without.
 */
#ifndef MT_BASE_SYS_H
#define MT_BASE_SYS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "shim/arch/arch.h"

/* Which system calls of ours are harmless. A filter is never taken away, so the value only grows
 * once it is known. */
enum mt_quiet {
	MT_QUIET_NOT,   /* all */
	MT_QUIET_USUAL, /* a filter from before exec: those that the loader and libc have made by now, and write */
	MT_QUIET_WHOLE, /* a filter that was installed while we run: none; it is made for what is still to come */
};
extern uint32_t mt_quiet;

static inline uint32_t mt_sys_quiet(void)
{
	return __atomic_load_n(&mt_quiet, __ATOMIC_RELAXED);
}

/* With a constant number only a test of mt_quiet is left. */
static inline int mt_sys_may(long n)
{
	uint32_t quiet = mt_sys_quiet();

	if (__builtin_expect(quiet == MT_QUIET_NOT, 1) || n == SYS_exit_group)
		return 1;
	return quiet == MT_QUIET_USUAL && (n == SYS_openat || n == SYS_read || n == SYS_write || n == SYS_close ||
					   n == SYS_mmap || n == SYS_munmap || n == SYS_mprotect);
}

/* A call of our own; mt_arch_syscall is for what the program has asked for. */
static inline long mt_sys(long n, long a, long b, long c, long d, long e, long f)
{
	return mt_sys_may(n) ? mt_arch_syscall(n, a, b, c, d, e, f) : -ENOSYS;
}

#define MT_SYS0(n)                   mt_sys(n, 0, 0, 0, 0, 0, 0)
#define MT_SYS1(n, a)                mt_sys(n, (long)(a), 0, 0, 0, 0, 0)
#define MT_SYS2(n, a, b)             mt_sys(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define MT_SYS3(n, a, b, c)          mt_sys(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define MT_SYS4(n, a, b, c, d)       mt_sys(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define MT_SYS6(n, a, b, c, d, e, f) mt_sys(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline int mt_sys_failed(long ret)
{
	return (unsigned long)ret > -4096ul;
}

/* Anonymous private zeroed memory, or NULL. */
void *mt_sys_pages(size_t bytes);
void mt_sys_unmap(void *p, size_t bytes);

/* A descriptor for a moment, closed by SYS_close, or -errno. It has a number that open() gives to nobody: another
 * thread of the program may close numbers that it takes for its own, and open its next file there, which we would
 * read from or write to. Only where the limit of descriptors is low, or fcntl may not be called, is it the lowest
 * that is free. New files have mode 0600. */
long mt_sys_open(const char *path, int flags);

/* How often a file is opened again because another thread of the program closed its number meanwhile. */
#define MT_SYS_TRIES 16

/* Whole small file into buf, NUL-terminated; bytes read or -errno. */
long mt_sys_read_file(const char *path, char *buf, size_t size);

/* Blocks every signal for a slow path that holds the lock; the old mask goes to *old. */
void mt_sys_block_signals(uint64_t *old);
void mt_sys_restore_signals(const uint64_t *old);

#endif
