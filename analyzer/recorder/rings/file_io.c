#include "analyzer/recorder/rings/file_io.h"

#include "format/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int record_open(const char *path, int flags)
{
	struct stat st;
	int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	errno = ENOENT;
	return -1;
}

bool read_at(int fd, uint64_t offset, void *to, size_t bytes)
{
	return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

bool write_at(int fd, uint64_t offset, const void *data, size_t bytes)
{
	const char *at = data;
	while (bytes) {
		ssize_t n = pwrite(fd, at, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return true;
}

uint64_t read_block_header(int fd, uint64_t offset, uint64_t size, struct mt_block *header)
{
	if (size - offset < sizeof(*header) || !read_at(fd, offset, header, sizeof(*header)) ||
	    header->magic != MT_BLOCK_MAGIC || header->covers > CODEC_MAX_COVERS)
		return 0;
	uint64_t left = size - offset - sizeof(*header), covers = header->covers * sizeof(struct mt_cover);
	return covers > left || header->payload_bytes > left - covers
		       ? 0
		       : sizeof(*header) + covers + header->payload_bytes;
}
