#include "analyzer/reader/merge_rings.h"

#include "analyzer/util/error.h"
#include "analyzer/util/heap.h"
#include "analyzer/util/ring_slots.h"
#include "analyzer/util/vec.h"
#include "analyzer/util/young_file.h"

#include <inttypes.h>

enum { WINDOW = 256 };

/* The place in one ring. */
struct cursor {
	uint32_t ring;
	size_t chunk, end;        /* in raw.chunks: [chunk, end) are this ring's */
	uint64_t position;        /* in the ring, of the next slot to load; gaps show by it */
	uint32_t at, count;       /* in the window */
	struct young_ring *young; /* what it is of: the rest of a ring's young blocks; NULL = of chunks */
	struct mt_event window[WINDOW];
	uint64_t positions[WINDOW]; /* of these slots */
};

struct merge {
	struct image *image;
	struct slot_limits limits;
	struct cursor **heap; /* those with something in their window, earliest first */
	size_t heap_count;
	struct cursor **cursors;
	size_t count, room;
	uint32_t *first_thread; /* by ring */
	size_t rings;
	const uint64_t *covered; /* while it is set up */
	size_t covered_count;
	struct young_rest young;
};

/* ---- loading --------------------------------------------------------------------------------------------- */

static int read_slots(struct merge *m, const struct raw_chunk *c, uint32_t slot, struct mt_event *to, uint32_t n)
{
	if (c->copy) {
		memcpy(to, c->copy + slot, n * sizeof(*to));
		return 0;
	}
	return file_read(&m->image->raw.file, ring_slot_offset(c->index, slot), to, n * sizeof(*to));
}

/* Drops what can't be; in strict mode the first such slot is an error. */
static int check_window(struct merge *m, struct cursor *c, const struct raw_chunk *chunk, uint32_t first)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct mt_event *s = &c->window[i], *next = i + 1 < c->count ? s + 1 : NULL;
		const char *problem = slot_problem(s, next, &m->limits);
		if (problem) {
			error_set(MT_EFORMAT, m->image->raw.file.path,
				  (int64_t)ring_slot_offset(chunk->index, first + i), "event has %s", problem);
			int e = reader_damage(m->image->reader);
			if (e)
				return e;
			m->image->process.skipped_slots++;
			continue;
		}
		for (int pair = mt_has_ext(s->kind); pair >= 0; pair--, kept++) {
			c->window[kept] = c->window[i];
			c->positions[kept] = c->positions[i];
			i += pair;
		}
	}
	c->count = kept;
	return 0;
}

/* Of a running process the youngest events are left for the next time: those of other threads may be missing. */
static void cut_at_horizon(struct merge *m, struct cursor *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (c->window[i].kind != MT_EXT && c->window[i].ticks > m->image->raw.horizon) {
			c->count = i;
			c->chunk = c->end;
			return;
		}
}

/* A hole in a ring: of a running process it means that what follows is younger than our look at the chunks; else
 * something is missing. Returns 1 to go on, 0 to end this ring, or an error. */
static int cross_gap(struct merge *m, struct cursor *c, const struct raw_chunk *chunk, uint64_t start)
{
	if (m->image->process.state == PROCESS_RUNNING || m->image->session->recorder)
		return 0;
	m->image->process.skipped_slots += start - c->position;
	error_set(MT_EFORMAT, m->image->raw.file.path, (int64_t)ring_slot_offset(chunk->index, 0),
		  "events %" PRIu64 " to %" PRIu64 " of ring %" PRIu32 " are missing", c->position, start, c->ring);
	int e = reader_damage(m->image->reader);
	return e ? e : 1;
}

/* Of what was left in a table, which is in memory. */
static int load_young(struct merge *m, struct cursor *c)
{
	uint64_t left = c->young->count - c->position;
	uint32_t n = left < WINDOW ? (uint32_t)left : WINDOW;
	memcpy(c->window, c->young->slots + c->position, n * sizeof(*c->window));
	if (n > 1 && n < left && mt_has_ext(c->window[n - 1].kind))
		n--;
	c->at = 0;
	c->count = n;
	for (uint32_t i = 0; i < n; i++)
		c->positions[i] = c->position + i;
	c->position += n;
	const struct raw_chunk none = { 0 };
	return check_window(m, c, &none, 0);
}

/* Fills the window with what comes next and isn't covered. An empty window is the ring's end. */
static int load(struct merge *m, struct cursor *c)
{
	c->at = c->count = 0;
	while (!c->count && c->young && c->position < c->young->count) {
		int e = load_young(m, c);
		if (e)
			return e;
	}
	while (!c->count && c->chunk < c->end) {
		const struct raw_chunk *chunk = &m->image->raw.chunks[c->chunk];
		uint64_t start = ring_chunk_start(chunk->seq);
		if (c->position >= start + chunk->used) {
			c->chunk++;
			continue;
		}
		/* a mapping that did not fit leaves a chunk's last slot unused */
		if (start == c->position + 1)
			c->position = start;
		if (start > c->position) {
			int go = cross_gap(m, c, chunk, start);
			if (go <= 0) {
				c->chunk = c->end;
				return go;
			}
			c->position = start;
		}
		uint32_t first = (uint32_t)(c->position - start), n = chunk->used - first;
		if (n > WINDOW)
			n = WINDOW;
		int e = read_slots(m, chunk, first, c->window, n);
		if (!e && n > 1 && first + n < chunk->used && mt_has_ext(c->window[n - 1].kind))
			n--; /* its second slot comes along next time */
		if (e) {
			c->chunk = c->end;
			return reader_damage(m->image->reader);
		}
		c->count = n;
		for (uint32_t i = 0; i < n; i++)
			c->positions[i] = c->position + i;
		c->position += n;
		e = check_window(m, c, chunk, first);
		if (e)
			return e;
		cut_at_horizon(m, c);
	}
	return 0;
}

/* ---- order ----------------------------------------------------------------------------------------------- */

static bool before(const struct cursor *a, const struct cursor *b)
{
	uint64_t x = ring_order(&a->window[a->at]), y = ring_order(&b->window[b->at]);
	return x != y ? x < y : a->ring < b->ring;
}

HEAP(cursors, struct cursor, before)

static int advance(struct merge *m)
{
	struct cursor *c = m->heap[0];
	if (c->at == c->count) {
		int e = load(m, c);
		if (e)
			return e;
		if (!c->count)
			m->heap[0] = m->heap[--m->heap_count];
	}
	cursors_heap_moved(m->heap, m->heap_count);
	return 0;
}

int merge_rings_next(struct merge *m, struct mt_event *slots, uint32_t *rings, uint64_t *positions, size_t room,
		     size_t *count)
{
	size_t n = 0;
	int e = 0;
	while (!e && m->heap_count && n + 2 <= room) {
		struct cursor *c = m->heap[0];
		bool pair = mt_has_ext(c->window[c->at].kind);
		for (int i = 0; i <= pair; i++) {
			rings[n] = c->ring;
			positions[n] = c->positions[c->at];
			slots[n++] = c->window[c->at++];
		}
		e = advance(m);
	}
	*count = n;
	return e;
}

/* ---- setting up ------------------------------------------------------------------------------------------ */

static int add_cursor(struct merge *m, size_t chunk, size_t end, uint64_t position)
{
	int e = vec_reserve(m->cursors, m->room, m->count + 1);
	struct cursor *c = e ? NULL : calloc(1, sizeof(*c));
	if (!c)
		return error_set(MT_EMEMORY, m->image->raw.file.path, ERROR_NO_OFFSET, NULL);
	c->ring = m->image->raw.chunks[chunk].ring;
	c->chunk = chunk;
	c->end = end;
	c->position = position;
	m->cursors[m->count++] = c;
	return 0;
}

static int add_cursors(struct merge *m, const uint64_t *covered, size_t rings)
{
	const struct raw *raw = &m->image->raw;
	int e = 0;
	for (size_t i = 0, end; !e && i < raw->count; i = end) {
		uint32_t ring = raw->chunks[i].ring;
		for (end = i; end < raw->count && raw->chunks[end].ring == ring; end++)
			;
		e = add_cursor(m, i, end, ring < rings ? covered[ring] : 0);
	}
	return e;
}

/* Where the published slots of a ring end. */
static uint64_t ring_end(void *context, uint32_t ring)
{
	const struct merge *m = context;
	const struct raw *raw = &m->image->raw;
	uint64_t end = ring < m->covered_count ? m->covered[ring] : 0;
	for (size_t i = 0; i < raw->count; i++)
		if (raw->chunks[i].ring == ring && ring_chunk_start(raw->chunks[i].seq) + raw->chunks[i].used > end)
			end = ring_chunk_start(raw->chunks[i].seq) + raw->chunks[i].used;
	return end;
}

static int add_young(struct merge *m, struct young_ring *y)
{
	uint64_t taken = y->ring < m->covered_count ? m->covered[y->ring] : 0;
	if (taken >= y->count)
		return 0;
	int e = vec_reserve(m->cursors, m->room, m->count + 1);
	struct cursor *c = e ? NULL : calloc(1, sizeof(*c));
	if (!c)
		return error_set(MT_EMEMORY, m->image->raw.file.path, ERROR_NO_OFFSET, NULL);
	c->ring = y->ring;
	c->young = y;
	c->position = taken;
	m->cursors[m->count++] = c;
	return 0;
}

static int add_all_young(struct merge *m)
{
	struct image *im = m->image;
	void *file = NULL;
	size_t bytes = 0;
	bool follows = reader_is_following(im->reader) && im->raw.horizon != UINT64_MAX;
	int e = follows || !im->info_known ? 0 : image_young(im, &file, &bytes);
	if (!e && bytes)
		e = young_rest_make(&m->young, file, bytes, im->info.rings, im->raw.horizon, ring_end, m);
	if (file != im->young)
		free(file);
	for (size_t i = 0; !e && i < m->young.count; i++)
		e = add_young(m, &m->young.rings[i]);
	return e;
}

static int start(struct merge *m)
{
	m->heap = calloc(m->count + 1, sizeof(struct cursor *));
	m->rings = m->count ? m->cursors[m->count - 1]->ring + 1ul : 0;
	m->first_thread = malloc((m->rings + 1) * sizeof(*m->first_thread));
	if (!m->heap || !m->first_thread)
		return error_set(MT_EMEMORY, m->image->raw.file.path, ERROR_NO_OFFSET, NULL);
	memset(m->first_thread, 0xff, (m->rings + 1) * sizeof(*m->first_thread));
	for (size_t i = 0; i < m->count; i++) {
		struct cursor *c = m->cursors[i];
		int e = load(m, c);
		if (e)
			return e;
		if (!c->count)
			continue;
		/* the chunk of the first slot we take says who owns the ring there; a later owner announces itself */
		if (c->young)
			m->first_thread[c->ring] = c->young->thread;
		else if (c->chunk < c->end)
			m->first_thread[c->ring] = m->image->raw.chunks[c->chunk].thread;
		m->heap[m->heap_count++] = c;
	}
	cursors_heap_make(m->heap, m->heap_count);
	return 0;
}

int merge_rings_new(struct merge **out, struct image *im, const uint64_t *covered, size_t rings,
		    struct slot_limits limits)
{
	struct merge *m = calloc(1, sizeof(*m));
	*out = NULL;
	if (!m)
		return error_set(MT_EMEMORY, im->raw.file.path, ERROR_NO_OFFSET, NULL);
	m->image = im;
	m->limits = limits;
	m->covered = covered;
	m->covered_count = rings;
	int e = add_cursors(m, covered, rings);
	if (!e)
		e = add_all_young(m);
	if (!e)
		e = start(m);
	if (e)
		merge_rings_free(m);
	else
		*out = m;
	return e;
}

size_t merge_rings(const struct merge *m)
{
	return m->rings;
}

uint32_t merge_rings_first_thread(const struct merge *m, uint32_t ring)
{
	return ring < m->rings ? m->first_thread[ring] : UINT32_MAX;
}

void merge_rings_free(struct merge *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++)
		free(m->cursors[i]);
	free(m->cursors);
	free(m->heap);
	free(m->first_thread);
	young_rest_fini(&m->young);
	free(m);
}
