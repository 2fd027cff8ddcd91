/* A file of a trace, read by position only: nothing is mapped, so a file that shrinks or a disk that fails is an error
 * and never a signal. Errors name the file and the offset. */
#ifndef MT_READER_FILES_FILE_H
#define MT_READER_FILES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct file {
	int fd;         /* -1 = not open */
	uint64_t size;  /* when it was opened or last refreshed */
	uint64_t disk;  /* bytes that it took on disk at that time: fewer than `size` where the file is sparse */
	uint64_t inode; /* at that time */
	uint64_t base;  /* offset of a member in its packed file; 0 = the file is no member */
	bool packed;    /* a member of a packed file, which never changes */
	bool own_only;  /* links are not followed, and a file of a foreign user counts as missing */
	uid_t owner;    /* with own_only: files may be this user's, ours or root's */
	char *path;     /* owned; set even if the file is not there */
};

/* Opens `name` in `dir`, which may be a packed trace or a folder in one (packed.h). Returns 0, also where there is no
 * such file (then fd is -1), or an error: not a regular file, not readable. file_close() in either case. */
int file_open(struct file *f, const char *dir, const char *name);

/* The same in a directory that other users can write to: sets own_only, so that only files of `owner`, of ours and of
 * root are opened, and no links. */
int file_open_own(struct file *f, const char *dir, const char *name, uid_t owner);

void file_close(struct file *f); /* frees the path too; FILE_CLOSED is fine */
static inline bool file_is_open(const struct file *f)
{
	return f->fd >= 0;
}

/* Suspending closes the descriptor, resuming opens the path again: a trace of thousands of processes then needs few
 * descriptors at a time. Resuming a file that is gone by then is an error. */
void file_suspend(struct file *f);
int file_resume(struct file *f);

/* Reads size, disk and inode again, since files of a running process grow. 0 or an error. */
int file_refresh(struct file *f);

struct stat;
/* Bytes that an open file takes on disk; its size where the file system doesn't tell. */
uint64_t file_disk_bytes(int fd, const struct stat *st);

/* Reads all n bytes, or returns an error: -MT_ECUT where the file ends before, with the offset; -MT_EEMPTY for an empty
 * file; -MT_EIO. */
int file_read(const struct file *f, uint64_t offset, void *to, size_t n);

#define FILE_CLOSED ((struct file){ .fd = -1 })

#endif
