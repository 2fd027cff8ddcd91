#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "shim/base/sys.h"

uint32_t mt_quiet = MT_QUIET_USUAL; /* until it is known: mt_quiet_meet */

void *mt_sys_pages(size_t bytes)
{
	long p = MT_SYS6(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return mt_sys_failed(p) ? NULL : (void *)p;
}

void mt_sys_unmap(void *p, size_t bytes)
{
	MT_SYS2(SYS_munmap, p, bytes);
}

#define HIGH_FD 960 /* below the usual limit of 1024, above what programs have */

/* Whether the number still is the file that was opened: the program may have closed it, and have opened its own there.
 * Where that can't be asked it is taken to be. */
static int is_still(long fd, const char *path)
{
	struct stat named, st;
	long unnamed = MT_SYS4(SYS_newfstatat, AT_FDCWD, path, &named, 0), unknown = MT_SYS2(SYS_fstat, fd, &st);

	if (mt_sys_failed(unnamed) || mt_sys_failed(unknown))
		return unknown != -EBADF; /* closed: the next moment it may be the program's */
	return st.st_dev == named.st_dev && st.st_ino == named.st_ino;
}

/* -EBADF: the program has closed the first number meanwhile. */
static long open_high(const char *path, int flags)
{
	long low = MT_SYS4(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600), high;

	if (mt_sys_failed(low))
		return low;
	high = MT_SYS3(SYS_fcntl, low, F_DUPFD_CLOEXEC, HIGH_FD);
	if (high == -EBADF)
		return high;
	if (mt_sys_failed(high))
		return low;
	if (is_still(low, path))
		MT_SYS1(SYS_close, low);
	return high;
}

long mt_sys_open(const char *path, int flags)
{
	long fd = -EBADF;

	for (int tries = 0; fd == -EBADF && tries < MT_SYS_TRIES; tries++)
		fd = open_high(path, tries ? flags & ~O_EXCL : flags);
	return fd;
}

long mt_sys_read_file(const char *path, char *buf, size_t size)
{
	long fd = mt_sys_open(path, O_RDONLY);
	size_t used = 0;
	long n;

	buf[0] = 0;
	if (mt_sys_failed(fd))
		return fd;
	while (used + 1 < size && (n = MT_SYS3(SYS_read, fd, buf + used, size - 1 - used)) > 0)
		used += (size_t)n;
	MT_SYS1(SYS_close, fd);
	buf[used] = 0;
	return (long)used;
}

void mt_sys_block_signals(uint64_t *old)
{
	uint64_t all = ~0ull;

	*old = 0;
	MT_SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &all, old, sizeof(all));
}

void mt_sys_restore_signals(const uint64_t *old)
{
	if (mt_sys_may(SYS_rt_sigprocmask))
		MT_SYS4(SYS_rt_sigprocmask, SIG_SETMASK, old, NULL, sizeof(*old));
}
