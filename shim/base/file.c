#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "format/format.h"
#include "shim/base/file.h"
#include "shim/base/quiet.h"
#include "shim/base/sys.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Growing past RLIMIT_FSIZE would raise SIGXFSZ, which kills by default: ask first. */
static int exceeds_file_limit(uint64_t end)
{
	return end > mt_quiet_file_limit();
}

static int write_zeros(int fd, uint64_t offset, size_t bytes)
{
	static const char zeros[256 * 1024]; /* never touched: the kernel's zero page */

	while (bytes) {
		size_t n = bytes < sizeof(zeros) ? bytes : sizeof(zeros);
		long done =
			mt_sys_quiet() ? MT_SYS3(SYS_write, fd, zeros, n) : MT_SYS4(SYS_pwrite64, fd, zeros, n, offset);
		if (done <= 0 && done != -EINTR)
			return -1;
		offset += (uint64_t)(done > 0 ? done : 0);
		bytes -= (size_t)(done > 0 ? done : 0);
	}
	return 0;
}

/* A file system without fallocate has its blocks once the zeros are written, as far as it can promise. */
static int reserve(int fd, uint64_t offset, size_t bytes, enum mt_open how)
{
	long ret;

	if (exceeds_file_limit(offset + bytes))
		return -1;
	do
		ret = MT_SYS4(SYS_fallocate, fd, 0, offset, bytes);
	while (ret == -EINTR);
	if (mt_sys_failed(ret) && ret != -EOPNOTSUPP && ret != -ENOSYS)
		return -1;
	return how == MT_OPEN ? 0 : write_zeros(fd, offset, bytes);
}

int mt_file_fill(void *p, size_t bytes)
{
	return !mt_sys_failed(MT_SYS3(SYS_madvise, p, bytes, MADV_POPULATE_WRITE));
}

/* MAP_POPULATE only read-faults a shared mapping; the first store to each page would still fault. */
void mt_file_populate(void *p, size_t bytes)
{
	if (!mt_sys_failed(MT_SYS3(SYS_madvise, p, bytes, MADV_POPULATE_WRITE)))
		return;
	for (size_t at = 0; at < bytes; at += 4096)
		__atomic_fetch_add((char *)p + at, 0, __ATOMIC_RELAXED);
}

uint32_t mt_file_refused, mt_file_owner;

static void note_refusal(long error)
{
	uint32_t why = error == -EACCES || error == -EPERM || error == -ENOENT ? MT_LOSS_RIGHTS
		       : error == -EMFILE || error == -ENFILE                  ? MT_LOSS_FILES
		       : error == -ENOMEM                                      ? MT_LOSS_MEMORY
									       : MT_LOSS_DISK;

	__atomic_store_n(&mt_file_refused, why, __ATOMIC_RELAXED);
}

/* Only ever extends: ranges of a file are mapped in their order. */
static int extend_file(int fd, uint64_t end)
{
	return exceeds_file_limit(end) ? -1 : (int)MT_SYS2(SYS_ftruncate, fd, end);
}

int mt_file_is_owner(uint32_t uid)
{
	return !uid || uid == mt_file_owner || uid == (uint32_t)MT_SYS0(SYS_geteuid);
}

/* In a directory that others can write to it may be anybody's, or one of ours under another name. */
static int is_own_file(int fd, int made)
{
	struct stat st;

	if (!mt_quiet_fstat(fd, &st))
		return 0;
	if (made)
		mt_file_owner = st.st_uid; /* need not be who we are: the file system may map it */
	return S_ISREG(st.st_mode) && st.st_nlink <= 1 && mt_file_is_owner(st.st_uid);
}

/* Whether the descriptor is what it was opened as: its first number may have been another file's for a moment.
 * Where that can't be asked it is taken to be. */
static int is_file(int fd, const char *path)
{
	struct stat named, st;

	if (mt_sys_quiet())
		return 1;
	return !mt_sys_failed(MT_SYS4(SYS_newfstatat, AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW)) &&
	       mt_quiet_fstat(fd, &st) && st.st_dev == named.st_dev && st.st_ino == named.st_ino;
}

/* Neither follows a link nor waits for a FIFO's other end. */
static long open_file(const char *path, int flags)
{
	for (int tries = 0; tries < MT_SYS_TRIES; tries++) {
		long fd = mt_sys_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | flags);
		int same = mt_sys_failed(fd) || is_file((int)fd, path);

		if (mt_sys_failed(fd) || (same && is_own_file((int)fd, flags & O_EXCL)))
			return fd;
		MT_SYS1(SYS_close, fd);
		if (same)
			break;
		flags &= ~O_EXCL;
	}
	return -EPERM;
}

int mt_file_reserve(const char *path, uint64_t offset, size_t bytes)
{
	long fd;
	int ok;

	if (mt_sys_quiet() == MT_QUIET_USUAL)
		return 1; /* it was there at once: mt_file_first() */
	fd = open_file(path, 0);
	if (mt_sys_failed(fd)) {
		note_refusal(fd);
		return 0;
	}
	ok = reserve((int)fd, offset, bytes, MT_EXTEND) == 0;
	MT_SYS1(SYS_close, fd);
	return ok;
}

void *mt_file_map(const char *path, uint64_t offset, size_t bytes, size_t reserved, enum mt_open how)
{
	long fd = open_file(path, (how == MT_CREATE ? O_CREAT | O_EXCL : 0) |
					  (mt_sys_quiet() && how != MT_OPEN ? O_APPEND : 0)),
	     p = -1;

	if (mt_sys_failed(fd)) {
		note_refusal(fd);
		return NULL;
	}
	note_refusal(-ENOSPC); /* what may come now */
	if ((reserved == bytes || extend_file((int)fd, offset + bytes) == 0) &&
	    reserve((int)fd, offset, reserved, how) == 0)
		p = MT_SYS6(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	MT_SYS1(SYS_close, fd);
	if (!mt_sys_failed(p))
		return (void *)p;
	if (p != -1)
		note_refusal(p);
	if (how == MT_CREATE)
		MT_SYS3(SYS_unlinkat, AT_FDCWD, path, 0);
	return NULL;
}
