#include "analyzer/reader/files/file.h"
#include "analyzer/reader/files/packed.h"

#include "analyzer/util/error.h"
#include "analyzer/util/system/file_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t file_disk_bytes(int fd, const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size, there = (uint64_t)st->st_blocks * 512;
	if (!there)
		return lseek(fd, 0, SEEK_DATA) < 0 ? 0 : size;
	return there < size ? there : size;
}

int file_refresh(struct file *f)
{
	struct stat st;
	if (f->packed)
		return 0;
	if (fstat(f->fd, &st))
		return error_errno(MT_EIO, f->path, ERROR_NO_OFFSET);
	if (!S_ISREG(st.st_mode))
		return error_set(MT_EFORMAT, f->path, ERROR_NO_OFFSET, "is not a regular file");
	f->size = (uint64_t)st.st_size;
	f->disk = file_disk_bytes(f->fd, &st);
	f->inode = (uint64_t)st.st_ino;
	return 0;
}

static bool is_own(const struct file *f)
{
	struct stat st;
	return !fstat(f->fd, &st) && S_ISREG(st.st_mode) && file_is_of(st.st_uid, f->owner);
}

/* What can't be a directory may be a packed trace. */
static int open_member(struct file *f)
{
	struct packed_member m;
	int e = packed_find(f->path, &m);
	errno = e < 0 ? EINVAL : ENOENT;
	if (e <= 0)
		return e ? e : error_errno(MT_EIO, f->path, ERROR_NO_OFFSET);
	f->fd = fcntl(m.fd, F_DUPFD_CLOEXEC, 3);
	if (f->fd < 0)
		return error_errno(MT_EIO, f->path, ERROR_NO_OFFSET);
	f->packed = true;
	f->base = m.offset;
	f->size = m.bytes;
	f->disk = m.disk;
	f->inode = m.offset;
	return 0;
}

static int open_path(struct file *f)
{
	/* O_NONBLOCK: opening a fifo must not wait for a writer */
	f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (f->own_only ? O_NOFOLLOW : 0));
	if (f->own_only && (f->fd < 0 ? errno == ELOOP : !is_own(f))) {
		file_suspend(f);
		errno = ENOENT;
	}
	if (f->fd < 0 && errno == ENOTDIR)
		return open_member(f);
	if (f->fd < 0)
		return error_errno(MT_EIO, f->path, ERROR_NO_OFFSET);
	int e = file_refresh(f);
	if (e)
		file_suspend(f);
	return e;
}

static int open_in(struct file *f, const char *dir, const char *name)
{
	if (asprintf(&f->path, "%s/%s", dir, name) < 0) {
		f->path = NULL;
		return error_set(MT_EMEMORY, dir, ERROR_NO_OFFSET, NULL);
	}
	errno = 0; /* open_path() need not set it */
	int e = open_path(f);
	return e && f->fd < 0 && errno == ENOENT ? 0 : e;
}

int file_open(struct file *f, const char *dir, const char *name)
{
	*f = FILE_CLOSED;
	return open_in(f, dir, name);
}

int file_open_own(struct file *f, const char *dir, const char *name, uid_t owner)
{
	*f = FILE_CLOSED;
	f->own_only = true;
	f->owner = owner;
	return open_in(f, dir, name);
}

void file_suspend(struct file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

int file_resume(struct file *f)
{
	return f->fd >= 0 ? 0 : open_path(f);
}

void file_close(struct file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	*f = FILE_CLOSED;
}

int file_read(const struct file *f, uint64_t offset, void *to, size_t n)
{
	char *at = to;
	while (n) {
		size_t most = n;
		if (f->packed)
			most = offset >= f->size ? 0 : f->size - offset < n ? f->size - offset : n;
		ssize_t got = pread(f->fd, at, most, (off_t)(f->base + offset));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_errno(MT_EIO, f->path, (int64_t)offset);
		if (!got)
			return error_set(offset ? MT_ECUT : MT_EEMPTY, f->path, (int64_t)offset,
					 offset ? "is cut off here, %zu bytes are missing" : "is empty", n);
		at += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}
