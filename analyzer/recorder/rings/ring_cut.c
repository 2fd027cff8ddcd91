#include "analyzer/recorder/rings/ring_cut.h"

#include "analyzer/recorder/rings/file_io.h"
#include "analyzer/util/heap.h"
#include "analyzer/util/ring_slots.h"
#include "analyzer/util/vec.h"
#include "analyzer/util/young_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_SLOTS 524288u /* of all cursors together: 16 MiB */

/* A chunk as it was when the cut began. While its state is not FREE only the recorder can make it another one. */
struct chunk {
	uint32_t index, ring, used, thread;
	uint64_t seq;
	uint8_t state;
};

/* The next slot of a ring, and what has been read ahead. */
struct cursor {
	uint32_t ring, thread;
	uint32_t chunk, end; /* in cut.chunks: [chunk, end) are left of this ring */
	uint64_t position;   /* of window[at] */
	uint32_t at, count;
	struct mt_event *window;
	bool whole;     /* the window is all there is of it: what is left of young blocks */
	uint64_t order; /* of window[at] */
	uint32_t cover; /* in cut.covers, + 1 */
};

struct cut {
	struct ring_cut_rings *rings;
	struct chunk *chunks; /* by ring, then seq */
	size_t chunk_count, chunk_room;
	struct cursor *cursors;
	size_t cursor_count, cursor_room;
	struct cursor **heap; /* earliest first */
	size_t heap_count, heap_room;
	struct mt_event *windows;
	uint32_t window_slots; /* of each cursor */
	struct mt_cover *covers;
	size_t cover_count, cover_room;
	uint64_t skipped; /* slots of full chunks that can't be read */
	struct young_rest young;
};

struct cut *ring_cut_new(void)
{
	struct cut *c = calloc(1, sizeof(*c));
	if (c)
		c->windows = malloc(WINDOW_SLOTS * sizeof(*c->windows));
	if (c && c->windows)
		return c;
	ring_cut_free(c);
	return NULL;
}

void ring_cut_free(struct cut *c)
{
	if (!c)
		return;
	free(c->chunks);
	free(c->cursors);
	free(c->heap);
	free(c->windows);
	free(c->covers);
	young_rest_fini(&c->young);
	free(c);
}

/* ---- chunks ---------------------------------------------------------------------------------------------- */

static bool is_plausible(const struct mt_chunk *h)
{
	return h->magic == MT_CHUNK_MAGIC && h->ring < MT_MAX_CHUNKS && h->seq < RING_MAX_SEQ && h->used &&
	       h->used <= MT_CHUNK_SLOTS;
}

/* The header is read twice. A thread that has just taken the chunk publishes used = 0 before it writes the rest and
 * the first slot after it; so if both looks agree on ring and seq, the first look's `used` belongs to them, or all
 * is as the last owner left it, and that is in the trace already. */
static bool read_chunk(const struct cut *c, uint32_t index, struct chunk *chunk)
{
	/* acquire: FULL comes after all of the chunk; pairs with the shim's close_chunk */
	uint8_t state = __atomic_load_n(&c->rings->states[index], __ATOMIC_ACQUIRE);
	struct mt_chunk first, again;
	if (state != MT_CHUNK_FILLING && state != MT_CHUNK_FULL)
		return false;
	if (!read_at(c->rings->fd, ring_chunk_offset(index), &first, sizeof(first)) || !is_plausible(&first))
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!read_at(c->rings->fd, ring_chunk_offset(index), &again, sizeof(again)) || !is_plausible(&again))
		return false;
	*chunk = (struct chunk){ .index = index,
				 .ring = first.ring,
				 .used = first.used,
				 .thread = first.thread,
				 .seq = first.seq,
				 .state = state };
	return first.ring == again.ring && first.seq == again.seq && first.used <= again.used;
}

static int compare_chunks(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;
	return ring_compare_chunks(x->ring, x->seq, y->ring, y->seq);
}

/* At least so many slots of a chunk that can't be read. One that was being filled may have had none, unless the file
 * ends before it. */
static uint32_t slots_gone(const struct cut *c, uint32_t index)
{
	uint8_t state = __atomic_load_n(&c->rings->states[index], __ATOMIC_RELAXED);
	struct mt_chunk header;
	if (state == MT_CHUNK_FULL)
		return MT_CHUNK_SLOTS;
	return state == MT_CHUNK_FILLING && !read_at(c->rings->fd, ring_chunk_offset(index), &header, sizeof(header));
}

static int look_at_all(struct cut *c)
{
	c->chunk_count = 0;
	c->skipped = 0;
	for (uint32_t i = 0; i < c->rings->chunks; i++) {
		int e = vec_reserve(c->chunks, c->chunk_room, c->chunk_count + 1);
		if (e)
			return e;
		if (read_chunk(c, i, &c->chunks[c->chunk_count]))
			c->chunk_count++;
		else if (c->rings->ended)
			c->skipped += slots_gone(c, i);
	}
	if (c->chunk_count)
		qsort(c->chunks, c->chunk_count, sizeof(*c->chunks), compare_chunks);
	return 0;
}

static uint64_t chunk_start(const struct chunk *chunk)
{
	return ring_chunk_start(chunk->seq);
}

static uint64_t chunk_end(const struct chunk *chunk)
{
	return chunk_start(chunk) + chunk->used;
}

/* ---- cursors --------------------------------------------------------------------------------------------- */

/* Whether the slots of chunk `next` go on where the cursor is. The last slot of a chunk may be unused, as a mapping
 * needs two. */
static bool follows(const struct cut *c, const struct cursor *cursor, const struct chunk *next)
{
	uint64_t start = chunk_start(next);
	return c->rings->ended || start <= cursor->position || start - cursor->position <= 1;
}

/* Behind a chunk that was being filled when we looked nothing can be taken: it may have grown since. */
static bool next_chunk(struct cut *c, struct cursor *cursor)
{
	const struct chunk *left = &c->chunks[cursor->chunk++];
	if (cursor->chunk == cursor->end || (left->state == MT_CHUNK_FILLING && !c->rings->ended))
		return false;
	return follows(c, cursor, &c->chunks[cursor->chunk]);
}

/* Reads ahead. False at the end of what can be taken of this ring. */
static bool fill_window(struct cut *c, struct cursor *cursor)
{
	if (cursor->chunk == cursor->end)
		return false;
	while (chunk_end(&c->chunks[cursor->chunk]) <= cursor->position)
		if (!next_chunk(c, cursor)) {
			cursor->chunk = cursor->end;
			return false;
		}
	const struct chunk *chunk = &c->chunks[cursor->chunk];
	if (cursor->position < chunk_start(chunk))
		cursor->position = chunk_start(chunk);
	uint32_t slot = (uint32_t)(cursor->position - chunk_start(chunk)), left = chunk->used - slot;
	cursor->at = 0;
	cursor->count = left < c->window_slots ? left : c->window_slots;
	if (read_at(c->rings->fd, ring_slot_offset(chunk->index, slot), cursor->window,
		    cursor->count * sizeof(*cursor->window)))
		return true;
	c->skipped += left;
	cursor->count = 0;
	cursor->chunk = cursor->end;
	return false;
}

/* Makes the cursor's next slot available, if there is one within the horizon. */
static bool cursor_ready(struct cut *c, struct cursor *cursor)
{
	if (cursor->at == cursor->count && !fill_window(c, cursor))
		return false;
	cursor->order = ring_order(&cursor->window[cursor->at]);
	return c->rings->ended || cursor->window[cursor->at].ticks <= c->rings->horizon;
}

/* After a restart: who owned the ring in the middle of a chunk. */
static uint32_t owner_at(const struct cut *c, const struct chunk *chunk, uint64_t position)
{
	struct mt_event event;
	for (uint32_t slot = (uint32_t)(position - chunk_start(chunk)); slot-- > 0;)
		if (read_at(c->rings->fd, ring_slot_offset(chunk->index, slot), &event, sizeof(event)) &&
		    event.kind == MT_THREAD)
			return (uint32_t)event.addr;
	return chunk->thread;
}

static void start_cursor(struct cut *c, struct cursor *cursor, uint32_t first, uint32_t end)
{
	struct ring_place *place = &c->rings->places[c->chunks[first].ring];
	while (first < end && chunk_end(&c->chunks[first]) <= place->position)
		first++;
	*cursor = (struct cursor){ .ring = c->chunks[end - 1].ring,
				   .chunk = first,
				   .end = end,
				   .position = place->position,
				   .thread = place->thread };
	if (first == end || !follows(c, cursor, &c->chunks[first])) {
		cursor->chunk = end;
		return;
	}
	const struct chunk *chunk = &c->chunks[first];
	if (cursor->position < chunk_start(chunk))
		cursor->thread = chunk->thread;
	else if (!place->known)
		cursor->thread = owner_at(c, chunk, cursor->position);
}

/* ---- what is left of young blocks ---- */

static uint64_t ring_end(void *context, uint32_t ring)
{
	const struct cut *c = context;
	uint64_t end = ring < c->rings->place_room ? c->rings->places[ring].position : 0;
	for (size_t i = 0; i < c->chunk_count; i++)
		if (c->chunks[i].ring == ring && chunk_end(&c->chunks[i]) > end)
			end = chunk_end(&c->chunks[i]);
	return end;
}

static int add_young(struct cut *c, struct young_ring *y)
{
	int e = vec_reserve(c->cursors, c->cursor_room, c->cursor_count + 1);
	if (!e)
		e = vec_reserve(c->rings->places, c->rings->place_room, y->ring + 1ul);
	uint64_t taken = e ? 0 : c->rings->places[y->ring].position;
	if (!e && taken < y->count)
		c->cursors[c->cursor_count++] = (struct cursor){ .ring = y->ring,
								 .thread = y->thread,
								 .position = taken,
								 .at = (uint32_t)taken,
								 .count = (uint32_t)y->count,
								 .window = y->slots,
								 .whole = true };
	return e;
}

static int add_all_young(struct cut *c)
{
	young_rest_fini(&c->young);
	if (!c->rings->young || !c->rings->ended)
		return 0;
	int e = young_rest_make(&c->young, c->rings->young, c->rings->young_bytes, c->rings->young_rings, UINT64_MAX,
				ring_end, c);
	for (size_t i = 0; !e && i < c->young.count; i++)
		e = add_young(c, &c->young.rings[i]);
	return e;
}

static int make_cursors(struct cut *c)
{
	c->cursor_count = 0;
	for (uint32_t first = 0, end; first < c->chunk_count; first = end) {
		uint32_t ring = c->chunks[first].ring;
		int e = vec_reserve(c->cursors, c->cursor_room, c->cursor_count + 1);
		if (!e)
			e = vec_reserve(c->rings->places, c->rings->place_room, ring + 1ul);
		if (e)
			return e;
		for (end = first; end < c->chunk_count && c->chunks[end].ring == ring; end++)
			;
		start_cursor(c, &c->cursors[c->cursor_count++], first, end);
	}
	int e = add_all_young(c);
	return e ? e : vec_reserve(c->heap, c->heap_room, c->cursor_count);
}

/* ---- heap ------------------------------------------------------------------------------------------------ */

static bool is_before(const struct cursor *a, const struct cursor *b)
{
	return a->order < b->order;
}

HEAP(cursors, struct cursor, is_before)

static void fill_heap(struct cut *c)
{
	c->window_slots = WINDOW_SLOTS / (uint32_t)(c->cursor_count ? c->cursor_count : 1);
	if (c->window_slots > MT_CHUNK_SLOTS)
		c->window_slots = MT_CHUNK_SLOTS;
	c->heap_count = 0;
	for (size_t i = 0; i < c->cursor_count; i++) {
		if (!c->cursors[i].whole)
			c->cursors[i].window = c->windows + i * c->window_slots;
		if (cursor_ready(c, &c->cursors[i]))
			c->heap[c->heap_count++] = &c->cursors[i];
	}
	cursors_heap_make(c->heap, c->heap_count);
}

/* ---- interface ------------------------------------------------------------------------------------------- */

int ring_cut_begin(struct cut *c, struct ring_cut_rings *r)
{
	c->rings = r;
	c->cover_count = 0;
	int e = look_at_all(c);
	if (!e)
		e = make_cursors(c);
	if (!e)
		fill_heap(c);
	return e;
}

/* Extends the ring's cover, or begins another one behind a hole. */
static int cover(struct cut *c, struct cursor *cursor)
{
	struct mt_cover *last = cursor->cover ? &c->covers[cursor->cover - 1] : NULL;
	if (!last || last->to != cursor->position) {
		int e = vec_reserve(c->covers, c->cover_room, c->cover_count + 1);
		if (e)
			return e;
		last = &c->covers[c->cover_count];
		*last = (struct mt_cover){ .ring = cursor->ring, .thread = cursor->thread, .from = cursor->position };
		cursor->cover = (uint32_t)++c->cover_count;
	}
	last->to = cursor->position + 1;
	return 0;
}

/* Takes the cursor's slot. */
static int take_slot(struct cut *c, struct cursor *cursor, struct mt_event *to)
{
	int e = cover(c, cursor);
	if (e)
		return e;
	*to = cursor->window[cursor->at++];
	cursor->position++;
	if (to->kind == MT_THREAD)
		cursor->thread = (uint32_t)to->addr;
	return 0;
}

/* A mapping's second slot lies in the same chunk, but perhaps not in the window. */
static bool has_extension(struct cut *c, struct cursor *cursor)
{
	const struct chunk *chunk = &c->chunks[cursor->chunk];
	if (cursor->whole)
		return cursor->at < cursor->count && cursor->window[cursor->at].kind == MT_EXT;
	if (cursor->position >= chunk_end(chunk) || (cursor->at == cursor->count && !fill_window(c, cursor)))
		return false;
	return cursor->window[cursor->at].kind == MT_EXT;
}

size_t ring_cut_next(struct cut *c, struct mt_event *slots, uint32_t *rings, size_t room)
{
	size_t n = 0;
	c->cover_count = 0;
	for (size_t i = 0; i < c->cursor_count; i++)
		c->cursors[i].cover = 0;
	while (c->heap_count && n + 2 <= room) {
		struct cursor *cursor = c->heap[0];
		if (take_slot(c, cursor, &slots[n]))
			break;
		rings[n++] = cursor->ring;
		if (mt_has_ext(slots[n - 1].kind) && has_extension(c, cursor)) {
			if (take_slot(c, cursor, &slots[n]))
				break;
			rings[n++] = cursor->ring;
		}
		if (!cursor_ready(c, cursor))
			c->heap[0] = c->heap[--c->heap_count];
		cursors_heap_moved(c->heap, c->heap_count);
	}
	return n;
}

uint64_t ring_cut_skipped(const struct cut *c)
{
	return c->skipped;
}

const struct mt_cover *ring_cut_covers(const struct cut *c, uint32_t *count)
{
	*count = (uint32_t)c->cover_count;
	return c->covers;
}

/* Nobody will use the chunk again. */
static void give_back(const struct cut *c, const struct chunk *chunk)
{
	if (c->rings->gives_back && fallocate(c->rings->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					      (off_t)ring_chunk_offset(chunk->index), MT_CHUNK_BYTES))
		return; /* then at the end */
}

static bool may_be_freed(const struct cut *c, const struct chunk *chunk)
{
	return chunk->state == MT_CHUNK_FULL || (chunk->state == MT_CHUNK_FILLING && c->rings->ended);
}

uint32_t ring_cut_commit(struct cut *c)
{
	uint32_t freed = 0;
	for (size_t i = 0; i < c->cursor_count; i++) {
		const struct cursor *cursor = &c->cursors[i];
		if (cursor->cover)
			c->rings->places[cursor->ring] = (struct ring_place){ cursor->position, cursor->thread, true };
	}
	for (size_t i = 0; i < c->chunk_count; i++) {
		struct chunk *chunk = &c->chunks[i];
		if (!may_be_freed(c, chunk) || chunk_end(chunk) > c->rings->places[chunk->ring].position)
			continue;
		/* release: we have read all we want of it; pairs with the acquire of the thread that takes it */
		__atomic_store_n(&c->rings->states[chunk->index], MT_CHUNK_FREE, __ATOMIC_RELEASE);
		chunk->state = MT_CHUNK_FREE;
		give_back(c, chunk);
		freed++;
	}
	return freed;
}
