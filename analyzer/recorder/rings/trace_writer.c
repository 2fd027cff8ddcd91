#include "analyzer/recorder/rings/trace_writer.h"

#include "analyzer/recorder/rings/file_io.h"
#include "analyzer/util/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed(const struct record_trace *t, int code)
{
	return error_errno(code, t->path, (int64_t)t->end);
}

static int start_file(struct record_trace *t, uint32_t pid, uint32_t image)
{
	struct mt_trace_header header = {
		.magic = MT_TRACE_MAGIC, .version = MT_VERSION, .bytes = sizeof(header), .pid = pid, .image = image
	};
	t->end = sizeof(header);
	if (ftruncate(t->fd, 0) || !write_at(t->fd, 0, &header, sizeof(header)))
		return failed(t, MT_EOUTPUT);
	return 0;
}

/* ---- an earlier recorder's file -------------------------------------------------------------------------- */

static bool is_intact(const struct record_trace *t, uint64_t offset, uint64_t bytes)
{
	struct mt_block header;
	size_t length;
	void *block = malloc(bytes);
	bool intact = block && read_at(t->fd, offset, block, bytes) && !codec_check(block, bytes, &header, &length);
	free(block);
	return intact;
}

static int show_block(struct record_trace *t, const struct mt_block *header, trace_writer_seen *seen, void *context)
{
	size_t bytes = header->covers * sizeof(struct mt_cover);
	struct mt_cover *covers = malloc(bytes + 1);
	if (!covers)
		return error_set(MT_EMEMORY, t->path, ERROR_NO_OFFSET, NULL);
	int e = 0;
	if (!read_at(t->fd, t->end + sizeof(*header), covers, bytes))
		e = failed(t, MT_EIO);
	else
		e = seen(context, header, covers);
	free(covers);
	return e;
}

/* Only the last block can be unfinished, so only its checksum is looked at. */
static int read_blocks(struct record_trace *t, uint64_t size, trace_writer_seen *seen, void *context)
{
	struct mt_block header;
	uint64_t bytes;
	int e = 0;
	t->end = sizeof(struct mt_trace_header);
	while (!e && !t->complete && t->end < size && (bytes = read_block_header(t->fd, t->end, size, &header)) != 0) {
		if (t->end + bytes == size && !is_intact(t, t->end, bytes))
			break;
		e = show_block(t, &header, seen, context);
		t->end += bytes;
		t->complete = header.type == MT_BLOCK_END;
		if (codec_holds_events(header.type))
			t->last_ticks = header.last_ticks;
	}
	if (!e && t->end < size && ftruncate(t->fd, (off_t)t->end))
		e = failed(t, MT_EOUTPUT);
	return e;
}

static int continue_file(struct record_trace *t, uint32_t pid, uint32_t image, trace_writer_seen *seen, void *context)
{
	struct mt_trace_header header;
	off_t size = lseek(t->fd, 0, SEEK_END);
	t->charged = size > 0 ? (uint64_t)size : 0;
	if (size < (off_t)sizeof(header))
		return start_file(t, pid, image);
	if (!read_at(t->fd, 0, &header, sizeof(header)))
		return failed(t, MT_EIO);
	if (memcmp(header.magic, MT_TRACE_MAGIC, sizeof(header.magic)) || header.version != MT_VERSION ||
	    header.pid != pid || header.image != image)
		return error_set(MT_EMAGIC, t->path, 0, NULL);
	return read_blocks(t, (uint64_t)size, seen, context);
}

/* ---- interface ------------------------------------------------------------------------------------------- */

int trace_writer_open(struct record_trace *t, const char *dir, const char *name, uint32_t pid, uint32_t image,
		      trace_writer_seen *seen, void *context)
{
	*t = (struct record_trace){ .fd = -1 };
	snprintf(t->path, sizeof(t->path), "%s/%s.trace", dir, name);
	t->fd = record_open(t->path, O_RDWR | O_CREAT | O_EXCL);
	int e;
	if (t->fd >= 0)
		e = start_file(t, pid, image);
	else if (errno == EEXIST && (t->fd = record_open(t->path, O_RDWR)) >= 0)
		e = continue_file(t, pid, image, seen, context);
	else
		e = failed(t, MT_EOUTPUT);
	if (e)
		trace_writer_close(t);
	return e;
}

void trace_writer_suspend(struct record_trace *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

int trace_writer_resume(struct record_trace *t)
{
	t->fd = record_open(t->path, O_RDWR);
	return t->fd < 0 ? failed(t, MT_EOUTPUT) : 0;
}

void trace_writer_close(struct record_trace *t)
{
	trace_writer_suspend(t);
	t->end = 0;
}

int trace_writer_append(struct record_trace *t, const struct codec_buf *block)
{
	if (!write_at(t->fd, t->end, block->data, block->size)) {
		int e = failed(t, MT_EOUTPUT);
		/* what was written of it is no block, and the reader would stop at it until the next try */
		if (ftruncate(t->fd, (off_t)t->end))
			return e;
		return e;
	}
	t->end += block->size;
	return 0;
}
