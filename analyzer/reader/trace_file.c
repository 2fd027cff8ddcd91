/* PID-N.trace: finds the blocks, and reads one when it is needed. */
#include "analyzer/reader/image.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <inttypes.h>
#include <stdio.h>

/* What a header claims, before its checksum can be known. Bytes 0 = can't be a block. */
static uint64_t block_bytes(const struct mt_block *head)
{
	if (head->magic != MT_BLOCK_MAGIC || head->type < MT_BLOCK_EVENTS || head->type > MT_BLOCK_FOLDED ||
	    head->covers > CODEC_MAX_COVERS || head->payload_bytes > 1ull << 40)
		return 0;
	return sizeof(*head) + head->covers * sizeof(struct mt_cover) + head->payload_bytes;
}

static int check_header(struct image *im)
{
	struct trace *t = &im->trace;
	struct mt_trace_header head;
	int e = file_read(&t->file, 0, &head, sizeof(head));
	if (e)
		return e;
	if (memcmp(head.magic, MT_TRACE_MAGIC, sizeof(head.magic)) != 0)
		return error_set(MT_EMAGIC, t->file.path, 0, NULL);
	if (head.version != MT_VERSION)
		return error_set(MT_EVERSION, t->file.path, 8,
				 "was written by format version %" PRIu32 ", this reads %d", head.version, MT_VERSION);
	if (head.bytes != sizeof(head))
		return error_set(MT_EFORMAT, t->file.path, 12, "header is %" PRIu32 " bytes long", head.bytes);
	char name[32];
	snprintf(name, sizeof(name), "%" PRIu32 "-%" PRIu32, head.pid, head.image);
	if (strcmp(name, im->name) != 0)
		return error_set(MT_EFORMAT, t->file.path, 16, "belongs to %s", name);
	return 0;
}

static int add_block(struct trace *t, const struct mt_block *head, uint64_t offset, uint64_t bytes)
{
	struct trace_block b = { offset, bytes, head->type, head->last_ticks, (uint32_t)head->count };
	switch (head->type) {
	case MT_BLOCK_NODES:
		t->nodes = b;
		return 0;
	case MT_BLOCK_INFO:
		t->info = b;
		return 0;
	}
	int e = vec_reserve(t->blocks, t->room, t->count + 1);
	if (e)
		return e;
	t->blocks[t->count++] = b;
	t->slots += head->count;
	return 0;
}

/* The next place at or after `offset` where a whole, intact block lies; the file's size if there is none. */
static uint64_t find_block(struct image *im, uint64_t offset)
{
	struct trace *t = &im->trace;
	struct codec_buf buf = { 0 };
	char window[65536];
	const uint32_t magic = MT_BLOCK_MAGIC;
	uint64_t found = t->file.size;
	while (found == t->file.size && offset + sizeof(struct mt_block) <= t->file.size) {
		size_t n = t->file.size - offset < sizeof(window) ? t->file.size - offset : sizeof(window);
		if (file_read(&t->file, offset, window, n))
			break;
		char *at = memmem(window, n, &magic, sizeof(magic));
		if (!at) {
			offset += n - (sizeof(magic) - 1);
			continue;
		}
		offset += (uint64_t)(at - window);
		struct mt_block head;
		struct trace_block b = { .offset = offset };
		if (!file_read(&t->file, offset, &head, sizeof(head)) && (b.bytes = block_bytes(&head)) != 0 &&
		    b.bytes <= t->file.size - offset && !trace_read(im, &b, &buf, &head))
			found = offset;
		else
			offset++;
	}
	codec_buf_fini(&buf);
	return found;
}

/* The file ends within a block. While raw files are there that is what an interrupted write leaves: whatever the block
 * would have held is still in the ring. */
static int cut(struct image *im, uint64_t offset)
{
	struct trace *t = &im->trace;
	t->cut_at = offset;
	if (file_is_open(&im->info_file))
		return 0;
	error_set(MT_ECUT, t->file.path, (int64_t)t->file.size, "is cut off within the block that starts at %" PRIu64,
		  offset);
	return reader_damage(im->reader);
}

static int no_block(struct image *im, uint64_t *offset)
{
	struct trace *t = &im->trace;
	error_set(MT_EFORMAT, t->file.path, (int64_t)*offset, "no block starts here");
	int e = reader_damage(im->reader);
	if (!e)
		*offset = find_block(im, *offset + 1);
	return e;
}

/* The one block that is only a statement: believed if its checksum is right. */
static int take_end(struct image *im, uint64_t offset, uint64_t bytes)
{
	struct codec_buf buf = { 0 };
	struct mt_block head;
	const struct trace_block b = { .offset = offset, .bytes = bytes };
	int e = trace_read(im, &b, &buf, &head);
	codec_buf_fini(&buf);
	im->trace.end = !e;
	return e ? reader_damage(im->reader) : 0;
}

static int index_blocks(struct image *im)
{
	struct trace *t = &im->trace;
	uint64_t size = t->file.size;
	int e = 0;
	while (!e && t->next < size && !t->end) {
		struct mt_block head;
		if (size - t->next < sizeof(head))
			return cut(im, t->next);
		e = file_read(&t->file, t->next, &head, sizeof(head));
		if (e)
			return e;
		uint64_t bytes = block_bytes(&head);
		if (!bytes) {
			e = no_block(im, &t->next);
			continue;
		}
		if (bytes > size - t->next)
			return cut(im, t->next);
		e = head.type == MT_BLOCK_END ? take_end(im, t->next, bytes) : add_block(t, &head, t->next, bytes);
		t->next += bytes;
	}
	if (!e && t->next < size) {
		error_set(MT_EFORMAT, t->file.path, (int64_t)t->next, "something follows the last block");
		e = reader_damage(im->reader);
	}
	return e;
}

/* Without raw files the trace must be whole. */
static int check_complete(struct image *im)
{
	struct trace *t = &im->trace;
	if (t->end || t->cut_at || file_is_open(&im->info_file))
		return 0;
	error_set(MT_ECUT, t->file.path, (int64_t)t->file.size, "ends without its last block, and %s.info is missing",
		  im->name);
	return reader_damage(im->reader);
}

static void forget(struct trace *t)
{
	t->count = 0;
	t->slots = 0;
	t->nodes = t->info = (struct trace_block){ 0 };
	t->end = false;
	t->replaced = true;
	t->next = 0;
}

int trace_index(struct image *im)
{
	struct trace *t = &im->trace;
	if (!file_is_open(&t->file))
		return 0;
	int e = file_refresh(&t->file);
	if (e)
		return e;
	if (t->indexed && (t->inode != t->file.inode || t->file.size < t->next))
		forget(t);
	else if (t->indexed && (t->end || t->indexed_bytes == t->file.size))
		return 0;
	t->indexed = true;
	t->inode = t->file.inode;
	t->indexed_bytes = t->file.size;
	t->cut_at = 0;
	/* a recorder that was stopped between making the file and writing its header */
	if (t->file.size < sizeof(struct mt_trace_header) && file_is_open(&im->info_file)) {
		t->cut_at = t->file.size;
		return 0;
	}
	e = t->next ? 0 : check_header(im);
	if (e)
		return reader_damage(im->reader);
	t->next = t->next ? t->next : sizeof(struct mt_trace_header);
	e = index_blocks(im);
	return e ? e : check_complete(im);
}

static int codec_problem(const struct trace *t, uint64_t offset, int e)
{
	int code = e == -CODEC_ECRC   ? MT_ECHECKSUM
		   : e == -CODEC_ECUT ? MT_ECUT
		   : e == -CODEC_EMEM ? MT_EMEMORY
				      : MT_EFORMAT;
	return error_set(code, t->file.path, (int64_t)offset, "%s", codec_strerror(e));
}

int trace_read(const struct image *im, const struct trace_block *b, struct codec_buf *buf, struct mt_block *head)
{
	const struct trace *t = &im->trace;
	size_t bytes;
	if (codec_buf_reserve(buf, b->bytes))
		return error_set(MT_EMEMORY, t->file.path, (int64_t)b->offset, NULL);
	int e = file_read(&t->file, b->offset, buf->data, b->bytes);
	if (e)
		return e;
	buf->size = b->bytes;
	e = codec_check(buf->data, b->bytes, head, &bytes);
	return e ? codec_problem(t, b->offset, e) : 0;
}
