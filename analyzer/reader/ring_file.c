/* PID-N.ring: takes stock of the chunks that hold events, at one moment. */
#include "analyzer/reader/image.h"
#include "analyzer/util/error.h"
#include "analyzer/util/ring_slots.h"
#include "analyzer/util/vec.h"
#include "analyzer/util/event_check.h"

#include <inttypes.h>

static int bad_chunk(const struct raw *raw, uint32_t index, size_t field, const char *what, uint64_t value)
{
	return error_set(MT_EFORMAT, raw->file.path, (int64_t)(ring_chunk_offset(index) + field),
			 "chunk has %s %" PRIu64, what, value);
}

static int check_chunk(const struct raw *raw, uint32_t index, const struct mt_chunk *c)
{
	if (c->magic != MT_CHUNK_MAGIC)
		return bad_chunk(raw, index, 0, "the wrong magic number", c->magic);
	if (c->ring >= MT_MAX_CHUNKS)
		return bad_chunk(raw, index, offsetof(struct mt_chunk, ring), "ring", c->ring);
	if (c->seq >= RING_MAX_SEQ)
		return bad_chunk(raw, index, offsetof(struct mt_chunk, seq), "sequence number", c->seq);
	if (c->used > MT_CHUNK_SLOTS)
		return bad_chunk(raw, index, offsetof(struct mt_chunk, used), "too many used slots:", c->used);
	if (c->thread >= EVENT_MAX_THREADS)
		return bad_chunk(raw, index, offsetof(struct mt_chunk, thread), "thread", c->thread);
	return 0;
}

/* Copies the slots, then looks whether the chunk is still the one it was: if the recorder gave it back in between, its
 * events are in the trace, which is read later. */
static int copy_chunk(struct raw *raw, struct raw_chunk *c, bool *gone)
{
	struct mt_chunk again;
	size_t bytes = c->used * sizeof(struct mt_event);
	c->copy = malloc(bytes);
	if (!c->copy)
		return error_set(MT_EMEMORY, raw->file.path, ERROR_NO_OFFSET, NULL);
	int e = file_read(&raw->file, ring_slot_offset(c->index, 0), c->copy, bytes);
	if (!e)
		e = file_read(&raw->file, ring_chunk_offset(c->index), &again, sizeof(again));
	*gone = e || again.seq != c->seq || again.ring != c->ring || again.used < c->used;
	if (*gone) {
		free(c->copy);
		c->copy = NULL;
	}
	return e;
}

static void see_last(struct raw *raw, const struct raw_chunk *c)
{
	struct mt_event last[2];
	uint32_t n = c->used > 1 ? 2 : 1;
	if (file_read(&raw->file, ring_slot_offset(c->index, c->used - n), last, n * sizeof(*last)))
		return;
	const struct mt_event *e = &last[last[n - 1].kind == MT_EXT ? 0 : n - 1];
	if (e->kind != MT_EXT && e->ticks > raw->last_ticks)
		raw->last_ticks = e->ticks;
}

/* Slots of a chunk that the file ends in: what is whole is kept. */
static int clip(struct image *im, struct raw_chunk *c)
{
	struct raw *raw = &im->raw;
	if (ring_slot_offset(c->index, c->used) <= raw->file.size)
		return 0;
	error_set(MT_ECUT, raw->file.path, (int64_t)raw->file.size, "is cut off within chunk %" PRIu32, c->index);
	uint64_t start = ring_slot_offset(c->index, 0);
	uint32_t whole = raw->file.size > start ? (uint32_t)((raw->file.size - start) / sizeof(struct mt_event)) : 0;
	im->process.skipped_slots += c->used - whole;
	c->used = whole;
	return reader_damage(im->reader);
}

static int add_chunk(struct image *im, const struct raw_chunk *c)
{
	struct raw *raw = &im->raw;
	int e = vec_reserve(raw->chunks, raw->room, raw->count + 1);
	if (e)
		return e;
	raw->chunks[raw->count++] = *c;
	raw->slots += c->used;
	see_last(raw, c);
	return 0;
}

static int take_chunk(struct image *im, uint32_t index)
{
	struct raw *raw = &im->raw;
	struct mt_chunk head;
	int e = file_read(&raw->file, ring_chunk_offset(index), &head, sizeof(head));
	if (e)
		return reader_damage(im->reader);
	if (!head.used) /* just taken by a thread; the rest of the header may not be written yet */
		return 0;
	e = check_chunk(raw, index, &head);
	if (e)
		return reader_damage(im->reader);
	struct raw_chunk c = {
		.index = index, .ring = head.ring, .used = head.used, .thread = head.thread, .seq = head.seq
	};
	e = clip(im, &c);
	if (e || !c.used)
		return e;
	bool gone = false;
	if (im->session->recorder)
		e = copy_chunk(raw, &c, &gone);
	if (e)
		return reader_damage(im->reader);
	return gone ? 0 : add_chunk(im, &c);
}

static int compare_chunks(const void *a, const void *b)
{
	const struct raw_chunk *x = a, *y = b;
	return ring_compare_chunks(x->ring, x->seq, y->ring, y->seq);
}

static int check_twins(struct image *im)
{
	struct raw *raw = &im->raw;
	size_t kept = 0;
	for (size_t i = 0; i < raw->count; i++) {
		struct raw_chunk *c = &raw->chunks[i], *last = kept ? &raw->chunks[kept - 1] : NULL;
		if (last && last->ring == c->ring && last->seq == c->seq) {
			bad_chunk(raw, c->index, offsetof(struct mt_chunk, seq), "another one's sequence number",
				  c->seq);
			int e = reader_damage(im->reader);
			if (e)
				return e;
			free(c->copy);
			c->copy = NULL;
			continue;
		}
		raw->chunks[kept++] = *c;
	}
	raw->count = kept;
	return 0;
}

/* The state bytes of all chunks as of one moment. Without an info file every chunk is looked at. */
static int read_states(struct image *im, uint8_t *states, uint32_t *chunks)
{
	if (im->info_known && file_is_open(&im->info_file)) {
		*chunks = im->info.chunks;
		return file_read(&im->info_file, MT_INFO_STATES, states, *chunks);
	}
	uint64_t n = im->raw.file.size / MT_CHUNK_BYTES + 1;
	*chunks = n < MT_MAX_CHUNKS ? (uint32_t)n : MT_MAX_CHUNKS;
	memset(states, MT_CHUNK_FULL, *chunks);
	return 0;
}

static int take_chunks(struct image *im, const uint8_t *states, uint32_t chunks)
{
	int e = 0;
	for (uint32_t i = 0; !e && i < chunks; i++) {
		if (states[i] == MT_CHUNK_FREE || (!im->info_known && ring_chunk_offset(i) >= im->raw.file.size))
			continue;
		if (states[i] > MT_CHUNK_FULL) {
			error_set(MT_EFORMAT, im->info_file.path, (int64_t)(MT_INFO_STATES + i),
				  "chunk state %u is none", states[i]);
			e = reader_damage(im->reader);
		}
		if (!e)
			e = take_chunk(im, i);
	}
	return e;
}

int raw_snapshot(struct image *im)
{
	struct raw *raw = &im->raw;
	if (!file_is_open(&raw->file))
		return 0;
	uint8_t *states = malloc(MT_MAX_CHUNKS);
	if (!states)
		return error_set(MT_EMEMORY, raw->file.path, ERROR_NO_OFFSET, NULL);
	uint32_t chunks = 0;
	int e = read_states(im, states, &chunks);
	e = e ? reader_damage(im->reader) : file_refresh(&raw->file);
	if (!e)
		e = take_chunks(im, states, chunks);
	free(states);
	if (!e && raw->count) {
		qsort(raw->chunks, raw->count, sizeof(*raw->chunks), compare_chunks);
		e = check_twins(im);
	}
	return e;
}
