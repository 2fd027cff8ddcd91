/* A file of a trace, read by position only: nothing is mapped, so a file that shrinks or a disk that fails is an error
 * and never a signal. Errors name the file and the offset. */
#ifndef MT_READER_FILE_H
#define MT_READER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct file {
	int fd;         /* -1 = not open */
	uint64_t size;  /* when it was opened or last refreshed */
	uint64_t disk;  /* bytes of it that are there then: a sparse file has less than its size */
	uint64_t inode; /* then */
	uint64_t base;  /* of a member of a packed file: where it begins; else 0 */
	bool packed;    /* it is one: as it is, for good */
	bool own_only;  /* no link is followed, and another user's file is as if it were not there */
	uid_t owner;    /* then: the user, beside us and root */
	char *path;     /* owned; set even if the file is not there */
};

/* `dir` may be a packed trace, or a folder in it (packed.h). 0, also when there is no such file (then fd is -1), or an error: not a regular file, not readable. */
int file_open(struct file *f, const char *dir, const char *name);

/* The same of a directory that others can write to: only what belongs to `owner`, to us or to root, links not followed.
 * */
int file_open_own(struct file *f, const char *dir, const char *name, uid_t owner);

void file_close(struct file *f); /* keeps nothing; {0} with fd -1 is fine */
static inline bool file_is_open(const struct file *f)
{
	return f->fd >= 0;
}

/* Gives the descriptor back and takes one again, so that a trace of thousands of processes needs few at a time. A file
 * that is gone by then is an error. */
void file_suspend(struct file *f);
int file_resume(struct file *f);

/* Looks at the size again: files of a running process grow. */
int file_refresh(struct file *f);

struct stat;
/* How many bytes of it are on disk; where the file system doesn't say, its size. */
uint64_t file_disk_bytes(int fd, const struct stat *st);

/* All n bytes or an error; MT_ECUT names the place where the file ends. */
int file_read(const struct file *f, uint64_t offset, void *to, size_t n);

#define FILE_CLOSED ((struct file){ .fd = -1 })

#endif
