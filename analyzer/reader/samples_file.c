/* Reads DIR/samples: an index of its blocks, and cursors over the items in them. A part of samples.c. */
#include "analyzer/reader/samples_internal.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <inttypes.h>
#include <zlib.h>

#define MAX_RAW (1ull << 53) /* of a figure: what is more makes no sense in any unit */

/* ---- blocks ---------------------------------------------------------------------------------------------- */

static uint64_t merged_ns(const struct samples_source *src, uint64_t mono_ns)
{
	return clock_ns(src->clock, clock_ticks_at(src->clock, mono_ns));
}

/* The whole block with its header, checked; allocated. */
static int read_block(const struct samples_source *src, uint64_t offset, struct mt_samples_block *head, uint8_t **out)
{
	const char *path = src->file.path;
	int e = file_read(&src->file, offset, head, sizeof(*head));
	if (e)
		return e;
	if (head->magic != MT_SAMPLES_BLOCK_MAGIC)
		return error_set(MT_EFORMAT, path, (int64_t)offset, "no block begins here");
	if (head->plain_bytes > MT_SAMPLES_MAX_PLAIN || head->first_ns > head->last_ns)
		return error_set(MT_EFORMAT, path, (int64_t)offset, "a block's header makes no sense");
	if (head->stored_bytes > src->file.size - offset - sizeof(*head))
		return error_set(MT_ECUT, path, (int64_t)offset, NULL);
	uint8_t *block = malloc(sizeof(*head) + head->stored_bytes + 1);
	if (!block)
		return error_set(MT_EMEMORY, path, ERROR_NO_OFFSET, NULL);
	struct mt_samples_block zero = *head;
	zero.crc = 0;
	memcpy(block, &zero, sizeof(zero));
	e = file_read(&src->file, offset + sizeof(*head), block + sizeof(*head), head->stored_bytes);
	if (!e && (uint32_t)crc32(0, block, (uInt)(sizeof(*head) + head->stored_bytes)) != head->crc)
		e = error_set(MT_ECHECKSUM, path, (int64_t)offset, NULL);
	if (e)
		free(block);
	else
		*out = block;
	return e;
}

static int index_block(struct samples_source *src)
{
	uint64_t offset = src->next;
	struct mt_samples_block head;
	int e = file_read(&src->file, offset, &head, sizeof(head));
	if (!e && head.magic != MT_SAMPLES_BLOCK_MAGIC)
		e = error_set(MT_EFORMAT, src->file.path, (int64_t)offset, "no block begins here");
	if (!e)
		e = vec_reserve(src->blocks, src->room, src->count + 1);
	if (!e) {
		src->blocks[src->count++] = (struct block_place){ .offset = offset,
								  .part = head.part,
								  .last_ns = merged_ns(src, head.last_ns) };
		src->next = offset + sizeof(head) + head.stored_bytes;
	}
	return e;
}

/* The recorder may be writing its last block, or was killed in the middle of it. */
static bool is_unfinished(const struct samples_source *src)
{
	struct mt_samples_block head;
	uint64_t left = src->file.size - src->next;
	return left < sizeof(head) || (!file_read(&src->file, src->next, &head, sizeof(head)) &&
				       head.magic == MT_SAMPLES_BLOCK_MAGIC && head.stored_bytes > left - sizeof(head));
}

static int check_head(const struct samples_source *src)
{
	struct mt_samples_header head;
	int e = file_read(&src->file, 0, &head, sizeof(head));
	if (e)
		return e;
	if (memcmp(head.magic, MT_SAMPLES_MAGIC, sizeof(head.magic)) != 0)
		return error_set(MT_EMAGIC, src->file.path, 0, NULL);
	if (head.version != MT_VERSION)
		return error_set(MT_EVERSION, src->file.path, 8, NULL);
	if (head.bytes != sizeof(head))
		return error_set(MT_EFORMAT, src->file.path, 12, "header is %" PRIu32 " bytes long", head.bytes);
	return 0;
}

int samples_index(struct samples_source *src, bool *cut)
{
	int e = src->next ? 0 : check_head(src);
	src->next = src->next ? src->next : sizeof(struct mt_samples_header);
	while (!e && src->next < src->file.size && !(*cut = is_unfinished(src)))
		e = index_block(src);
	return e;
}

/* What doesn't fit is an earlier block's, or being written. */
int samples_add_open_block(struct samples_source *src)
{
	struct file file;
	struct mt_samples_open *head = &src->open, zero;
	uint8_t *plain = NULL;
	int e = file_open(&file, src->session->dir, "samples.open");
	if (e) {
		file_close(&file);
		return e;
	}
	bool whole = file_is_open(&file) && file.size >= sizeof(*head) && !file_read(&file, 0, head, sizeof(*head)) &&
		     !memcmp(head->magic, MT_SAMPLES_OPEN_MAGIC, sizeof(head->magic)) && head->offset == src->next &&
		     head->first_ns <= head->last_ns && head->plain_bytes &&
		     head->plain_bytes <= MT_SAMPLES_MAX_PLAIN && head->plain_bytes <= file.size - sizeof(*head) &&
		     (plain = malloc(head->plain_bytes)) && !file_read(&file, sizeof(*head), plain, head->plain_bytes);
	file_close(&file);
	zero = *head;
	zero.crc = 0;
	if (!whole ||
	    (uint32_t)crc32(crc32(0, plain, head->plain_bytes), (const uint8_t *)&zero, sizeof(zero)) != head->crc ||
	    vec_reserve(src->blocks, src->room, src->count + 1)) {
		free(plain);
		head->plain_bytes = 0;
		return 0;
	}
	src->open_plain = plain;
	src->blocks[src->count++] = (struct block_place){ .offset = head->offset,
							  .part = head->part,
							  .last_ns = merged_ns(src, head->last_ns) };
	return 0;
}

void samples_remove_open_block(struct samples_source *src)
{
	src->count -= src->open.plain_bytes != 0;
	free(src->open_plain);
	src->open_plain = NULL;
	src->open.plain_bytes = 0;
}

/* ---- items ----------------------------------------------------------------------------------------------- */

static int bad(const struct cursor *c, const char *what)
{
	return error_set(MT_EFORMAT, c->source->file.path, (int64_t)c->offset, "%s", what);
}

void cursor_fini(struct cursor *c)
{
	ZSTD_freeDCtx(c->zstd);
	free(c->plain);
	free(c->locals);
	free(c->text);
}

static int begin_stream(struct cursor *c, const struct mt_samples_block *head)
{
	if (!c->zstd && !(c->zstd = ZSTD_createDCtx()))
		return error_set(MT_EMEMORY, c->source->file.path, ERROR_NO_OFFSET, NULL);
	ZSTD_DCtx_reset(c->zstd, ZSTD_reset_session_and_parameters);
	ZSTD_DCtx_setParameter(c->zstd, ZSTD_d_windowLogMax, MT_SAMPLES_MAX_WINDOW);
	c->mono = head->first_ns;
	c->local_count = 0;
	c->part = 0;
	return 0;
}

static int unpack(struct cursor *c, const uint8_t *block, const struct mt_samples_block *head)
{
	ZSTD_inBuffer in = { block + sizeof(*head), head->stored_bytes, 0 };
	ZSTD_outBuffer out = { c->plain, head->plain_bytes, 0 };
	while (in.pos < in.size || out.pos < out.size) {
		size_t before = in.pos + out.pos, e = ZSTD_decompressStream(c->zstd, &out, &in);
		if (ZSTD_isError(e) || in.pos + out.pos == before)
			return bad(c, "a block can't be decompressed");
	}
	return 0;
}

static int next_head(struct cursor *c, struct mt_samples_block *head, uint8_t **block)
{
	const struct mt_samples_open *o = &c->source->open;
	if (!o->plain_bytes || c->next_block < c->source->count)
		return read_block(c->source, c->offset, head, block);
	*head = (struct mt_samples_block){
		.plain_bytes = o->plain_bytes, .first_ns = o->first_ns, .last_ns = o->last_ns, .part = o->part
	};
	return 0;
}

static int next_block(struct cursor *c)
{
	struct mt_samples_block head;
	uint8_t *block = NULL;
	c->offset = c->source->blocks[c->next_block++].offset;
	int e = next_head(c, &head, &block);
	if (e)
		return e;
	if (!head.part)
		e = begin_stream(c, &head);
	else if (head.part != c->part || !c->zstd)
		e = bad(c, "its stream has no such part");
	if (!e && head.last_ns < c->mono)
		e = bad(c, "time runs backwards");
	free(c->plain);
	c->plain = malloc(head.plain_bytes + 1ul);
	if (!e && !c->plain)
		e = error_set(MT_EMEMORY, c->source->file.path, ERROR_NO_OFFSET, NULL);
	if (!e && block)
		e = unpack(c, block, &head);
	else if (!e)
		memcpy(c->plain, c->source->open_plain, head.plain_bytes);
	if (!e)
		c->in = (struct varint_in){ c->plain, c->plain + head.plain_bytes, 0 };
	free(block);
	c->part++;
	c->last_mono = head.last_ns;
	return e;
}

static const char *take_text(struct cursor *c, char *to)
{
	uint64_t n = varint_get(&c->in);
	if (c->in.bad || n > 1000 || n > (uint64_t)(c->in.end - c->in.at) || memchr(c->in.at, 0, n)) {
		c->in.bad = 1;
		return "";
	}
	memcpy(to, c->in.at, n);
	to[n] = '\0';
	c->in.at += n;
	return to;
}

static int take_subject(struct cursor *c)
{
	uint64_t kind = varint_get(&c->in), key[3];
	if (!c->text && !(c->text = malloc(2048)))
		return error_memory();
	for (int i = 0; i < 3; i++)
		key[i] = varint_get(&c->in);
	const char *text = take_text(c, c->text), *text2 = take_text(c, c->text + 1024);
	if (c->in.bad || kind < MT_SUBJECT_MACHINE || kind >= MT_SUBJECTS || c->local_count == MT_SAMPLES_MAX_SUBJECTS)
		return bad(c, "a subject makes no sense");
	int e = vec_reserve_raw(c->locals, c->local_room, c->local_count + 1);
	if (e)
		return e;
	struct local *l = &c->locals[c->local_count++];
	memset(l, 0, sizeof(*l));
	return samples_entry_of(c->samples, c->source->host, kind, key, text, text2, c->make, &l->entry);
}

static int take_time(struct cursor *c)
{
	uint64_t us = varint_get(&c->in);
	if (c->in.bad || us > (c->last_mono - c->mono) / 1000)
		return bad(c, "a time makes no sense");
	c->mono += us * 1000;
	return 0;
}

static int take_figures(struct cursor *c)
{
	uint64_t number = varint_get(&c->in), fields = varint_get(&c->in);
	if (c->in.bad || number >= c->local_count)
		return bad(c, "figures of no subject");
	struct local *l = &c->locals[number];
	unsigned count = sample_kinds[l->entry->subject.kind].count;
	if (!fields || (count < 64 && fields >> count))
		return bad(c, "fields that don't exist");
	for (unsigned i = 0; i < count; i++)
		if (fields >> i & 1) {
			l->raw[i] += unzigzag(varint_get(&c->in));
			if (l->raw[i] >= MAX_RAW * (sample_kinds[l->entry->subject.kind].field[i].unit == 1 ? 512 : 1))
				return bad(c, "a figure makes no sense");
		}
	if (c->in.bad)
		return bad(c, "figures are not whole");
	c->entry = l->entry;
	c->fields = fields;
	c->raw = l->raw;
	c->gone = false;
	return 0;
}

static int take_gone(struct cursor *c)
{
	uint64_t number = varint_get(&c->in);
	if (c->in.bad || number >= c->local_count)
		return bad(c, "the end of no subject");
	c->entry = c->locals[number].entry;
	c->fields = 0;
	c->raw = c->locals[number].raw;
	c->gone = true;
	return 0;
}

static int take_item(struct cursor *c)
{
	switch (varint_get(&c->in)) {
	case MT_SAMPLES_SUBJECT:
		return take_subject(c);
	case MT_SAMPLES_TIME:
		return take_time(c);
	case MT_SAMPLES_FIGURES:
		return take_figures(c);
	case MT_SAMPLES_GONE:
		return take_gone(c);
	default:
		return bad(c, "an item of no known kind");
	}
}

int cursor_next(struct cursor *c)
{
	int e = 0;
	c->entry = NULL;
	while (!e && !c->entry) {
		if (c->in.at < c->in.end)
			e = take_item(c);
		else if (c->next_block < c->source->count)
			e = next_block(c);
		else
			return 0;
	}
	if (!e)
		c->ns = merged_ns(c->source, c->mono);
	return e;
}
