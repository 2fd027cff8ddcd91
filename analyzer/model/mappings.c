/* The map kind: ranges that are mapped, replaced, cut into pieces, moved and unmapped. */
#include "analyzer/model/process_memory.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

/* ---- what is live ---------------------------------------------------------------------------------------- */

static void change_sum(struct model_map_sum *sum, int64_t bytes, int64_t blocks)
{
	sum->bytes += (uint64_t)bytes;
	sum->blocks += (uint64_t)blocks;
	if (sum->bytes > sum->peak_bytes)
		sum->peak_bytes = sum->bytes;
}

static void change(struct process_memory *memory, const struct range *r, int64_t bytes, int64_t blocks, uint64_t ns)
{
	if (r->inherited) {
		if (map_class_counts(r->class)) {
			memory->kind[MODEL_MAP].totals.inherited_bytes += (uint64_t)bytes;
			memory->kind[MODEL_MAP].totals.inherited_blocks += (uint64_t)blocks;
		}
		return;
	}
	change_sum(&memory->seen.map[r->class], bytes, blocks);
	change_sum(&memory->host->map[r->class], bytes, blocks);
	if (map_class_counts(r->class))
		process_memory_change(memory,
				      &(struct change){ MODEL_MAP, r->site, bytes, blocks, r->start, r->thread, r->ns },
				      ns);
}

/* ---- what one call gave ------------------------------------------------------------------------------------ */

#define FREE_PIECE (1u << 31)

/* What is unmapped in pieces is freed once, with the last of them. 0 = no memory: then nobody counts it. */
static uint32_t new_mapping(struct process_memory *memory)
{
	uint32_t number = memory->free_piece;
	if (number) {
		memory->free_piece = memory->pieces[number] & ~FREE_PIECE;
	} else {
		number = memory->piece_count + 1;
		if (number >= FREE_PIECE || vec_reserve(memory->pieces, memory->piece_room, number + 1ul))
			return 0;
		memory->piece_count = number;
	}
	memory->pieces[number] = 0;
	return number;
}

/* Nothing of it is left, and no unmapping of it can be undone: the number may be had again. */
static void drop_mapping(struct process_memory *memory, uint32_t number)
{
	if (!number || memory->pieces[number])
		return;
	memory->pieces[number] = FREE_PIECE | memory->free_piece;
	memory->free_piece = number;
}

static void count_pieces(struct process_memory *memory, uint32_t number, int64_t pieces)
{
	if (number)
		memory->pieces[number] += (uint32_t)pieces;
}

int maps_inherit(struct process_memory *memory, const struct process_memory *parent)
{
	int e = ranges_inherit(&memory->maps, &parent->maps);
	if (e || !parent->piece_count)
		return e;
	if (vec_reserve(memory->pieces, memory->piece_room, parent->piece_count + 1ul))
		return error_memory();
	memcpy(memory->pieces, parent->pieces, (parent->piece_count + 1ul) * sizeof(*memory->pieces));
	memory->piece_count = parent->piece_count;
	memory->free_piece = parent->free_piece;
	return 0;
}

static int add_range(struct process_memory *memory, const struct range *r, uint64_t ns)
{
	change(memory, r, (int64_t)(r->end - r->start), 1, ns);
	count_pieces(memory, r->mapping, 1);
	return ranges_put(&memory->maps, r);
}

/* ---- cutting --------------------------------------------------------------------------------------------- */

/* Takes [start, end) out of one range; what is left and right of it stays. Bytes and blocks change once, by the
 * difference, so that no peak is made on the way. */
static int cut_range(struct process_memory *memory, const struct range *r, uint64_t start, uint64_t end, uint64_t ns)
{
	const struct range whole = *r;
	struct range left = whole, right = whole;
	left.end = start > whole.start ? start : whole.start;
	right.start = end < whole.end ? end : whole.end;
	int64_t kept = (int64_t)(left.end - left.start + right.end - right.start);
	int64_t pieces = (left.end > left.start) + (right.end > right.start);
	change(memory, &whole, kept - (int64_t)(whole.end - whole.start), pieces - 1, ns);
	count_pieces(memory, whole.mapping, pieces - 1);
	memory->maps_gone += whole.mapping && !memory->pieces[whole.mapping];
	ranges_remove(&memory->maps, r);
	int e = left.end > left.start ? ranges_put(&memory->maps, &left) : 0;
	return e || right.end == right.start ? e : ranges_put(&memory->maps, &right);
}

/* Frees [start, end) and remembers in *saved (unless NULL) what lay there. Returns the number of ranges or an error. */
static int64_t cut(struct process_memory *memory, uint64_t start, uint64_t end, struct unmapping *saved, uint64_t ns)
{
	int64_t n = 0;
	for (const struct range *r; start < end && (r = ranges_overlap(&memory->maps, start, end)) != NULL; n++) {
		int e = saved ? vec_reserve(saved->ranges, saved->room, saved->count + 1) : 0;
		if (e)
			return e;
		if (saved)
			saved->ranges[saved->count++] = *r;
		const uint32_t mapping = r->mapping;
		e = cut_range(memory, r, start, end, ns);
		if (e)
			return e;
		if (!saved)
			drop_mapping(memory, mapping);
	}
	return n;
}

/* ---- temporaries ----------------------------------------------------------------------------------------- */

/* Unmapped whole, and its thread has mapped nothing since. */
static uint64_t temporaries(const struct process_memory *memory, const struct unmapping *u)
{
	uint64_t n = 0;
	for (size_t i = 0; i < u->count; i++) {
		const struct range *r = &u->ranges[i];
		if (!r->inherited && r->start >= u->start && r->end <= u->end &&
		    r->thread < memory->last_room[MODEL_MAP] && memory->last[MODEL_MAP][r->thread] == r->start)
			n++;
	}
	return n;
}

/* ---- events ---------------------------------------------------------------------------------------------- */

int maps_unmap(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint64_t ns)
{
	struct ring_state *state = process_memory_ring(memory, ring);
	struct model_totals *t = &memory->kind[MODEL_MAP].totals;
	if (!state)
		return -MT_EMEMORY;
	struct unmapping *u = &state->unmap;
	for (size_t i = 0; i < u->count; i++)
		drop_mapping(memory, u->ranges[i].mapping);
	u->start = s->addr;
	u->end = s->size ? map_end_of(s->addr, s->size) : ranges_until(&memory->maps, s->addr);
	u->pending = true;
	u->count = 0;
	u->gone = memory->maps_gone;
	int64_t n = cut(memory, u->start, u->end, u, ns);
	if (n < 0)
		return (int)n;
	u->gone = memory->maps_gone - u->gone;
	t->frees += u->gone;
	t->unknown_frees += n == 0;
	t->temporary += temporaries(memory, u);
	return 0;
}

int maps_undo(struct process_memory *memory, uint64_t addr, uint32_t ring, uint64_t ns)
{
	struct ring_state *state = process_memory_ring(memory, ring);
	struct model_totals *t = &memory->kind[MODEL_MAP].totals;
	if (!state)
		return -MT_EMEMORY;
	struct unmapping *u = &state->unmap;
	if (!u->pending || u->start != addr)
		return 0;
	t->frees -= u->gone;
	t->unknown_frees -= u->count == 0;
	t->temporary -= temporaries(memory, u);
	u->pending = false;
	for (size_t i = 0; i < u->count; i++) {
		/* the pieces that were left of it, then the whole again */
		for (const struct range *r;
		     (r = ranges_overlap(&memory->maps, u->ranges[i].start, u->ranges[i].end)) != NULL;) {
			change(memory, r, -(int64_t)(r->end - r->start), -1, ns);
			count_pieces(memory, r->mapping, -1);
			ranges_remove(&memory->maps, r);
		}
		int e = add_range(memory, &u->ranges[i], ns);
		if (e)
			return e;
	}
	return 1;
}

/* What the range at `old` was: just unmapped for the move by the same thread, or still there. */
static bool origin_of(const struct process_memory *memory, struct unmapping *u, const struct mt_ext_map *ext,
		      struct range *from)
{
	if (ext->flags & MT_MAP_KEPT) {
		const struct range *r = ranges_overlap(&memory->maps, ext->old, ext->old + 1);
		if (r)
			*from = *r;
		return r;
	}
	if (!u->pending || u->start != ext->old)
		return false;
	for (size_t i = 0; i < u->count; i++)
		if (u->ranges[i].start <= ext->old && ext->old < u->ranges[i].end) {
			*from = u->ranges[i];
			u->pending = false;
			return true;
		}
	return false;
}

/* A moved mapping keeps what it is, where and when it was made; a second view of one only what it is. */
static void describe(const struct process_memory *memory, struct unmapping *u, const struct mt_ext_map *ext,
		     struct range *r)
{
	struct range from;
	r->class = (uint8_t)map_class_of(ext);
	r->usable = (uint8_t)map_usable_class_of(ext);
	r->prot = (uint8_t)ext->prot;
	r->file = ext->file;
	if (!(ext->flags & MT_MAP_MOVED))
		return;
	if (!origin_of(memory, u, ext, &from)) {
		r->class = r->usable = MAP_ANON; /* of a mapping from before the recording began: the likeliest */
		return;
	}
	r->class = from.class;
	r->usable = from.usable;
	r->prot = from.prot;
	r->file = from.file;
	if (from.inherited || ext->flags & MT_MAP_KEPT)
		return;
	r->site = from.site;
	r->ns = from.ns;
}

/* ---- what changes in place ------------------------------------------------------------------------------- */

/* The part of a range in [start, end) becomes usable, by whom `by` says, or stops being so. */
static int turn(struct process_memory *memory, const struct range *r, const struct range *by, uint64_t ns)
{
	struct range part = *r;
	part.start = r->start > by->start ? r->start : by->start;
	part.end = r->end < by->end ? r->end : by->end;
	part.prot = by->prot;
	part.class = by->prot ? part.usable : MAP_RESERVED;
	part.mapping = by->mapping;
	const uint32_t before = r->mapping;
	if (by->prot) {
		part.site = by->site;
		part.thread = by->thread;
		part.ns = ns;
		part.inherited = false;
	}
	int e = cut_range(memory, r, part.start, part.end, ns);
	drop_mapping(memory, before);
	return e ? e : add_range(memory, &part, ns);
}

/* Only between usable and not: the rest of what a protection says is nothing to memory. Bytes that were turned, of
 * those that count, or an error. */
static int64_t turn_all(struct process_memory *memory, const struct range *by, uint64_t ns)
{
	uint64_t bytes = 0, at = by->start;
	for (const struct range *r; at < by->end && (r = ranges_overlap(&memory->maps, at, by->end)) != NULL;) {
		uint64_t from = r->start > at ? r->start : at;
		at = r->end < by->end ? r->end : by->end;
		if ((r->class == MAP_RESERVED) != (by->prot != 0))
			continue;
		bytes += map_class_counts(r->usable) ? at - from : 0;
		int e = turn(memory, r, by, ns);
		if (e)
			return e;
	}
	return (int64_t)bytes;
}

static int protect(struct process_memory *memory, struct range *by, uint64_t ns)
{
	const uint64_t gone = memory->maps_gone;
	by->mapping = by->prot ? new_mapping(memory) : 0;
	int64_t bytes = turn_all(memory, by, ns);
	if (bytes < 0)
		return (int)bytes;
	if (by->prot && bytes)
		process_memory_count(memory, MODEL_MAP, by->site, (uint64_t)bytes);
	else if (by->prot)
		drop_mapping(memory, by->mapping);
	else
		memory->kind[MODEL_MAP].totals.frees += memory->maps_gone - gone;
	return 0;
}

/* Of what is known to be mapped and usable. It may be touched again at any time, which nobody sees. */
static void give_back(struct process_memory *memory, uint64_t start, uint64_t end)
{
	for (const struct range *r; start < end && (r = ranges_overlap(&memory->maps, start, end)) != NULL;
	     start = r->end)
		if (map_class_counts(r->class))
			memory->seen.map_given_bytes +=
				(r->end < end ? r->end : end) - (r->start > start ? r->start : start);
}

int maps_map(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint32_t thread, uint64_t ns)
{
	struct mt_ext_map ext;
	memcpy(&ext, s + 1, sizeof(ext));
	struct ring_state *state = process_memory_ring(memory, ring);
	int64_t site = state ? process_memory_site(memory, MODEL_MAP, s, thread) : -MT_EMEMORY;
	if (site < 0)
		return (int)site;
	struct range r = { .start = s->addr,
			   .end = map_end_of(s->addr, s->size),
			   .ns = ns,
			   .site = (uint32_t)site,
			   .thread = thread };
	if (r.end == r.start)
		return 0;
	if (ext.flags & MT_MAP_GIVEN)
		return give_back(memory, r.start, r.end), 0;
	r.prot = (uint8_t)ext.prot;
	if (ext.flags & MT_MAP_PROTECT)
		return protect(memory, &r, ns);
	describe(memory, &state->unmap, &ext, &r);
	struct model_totals *t = &memory->kind[MODEL_MAP].totals;
	const uint64_t before = t->live_bytes;
	int64_t replaced = cut(memory, r.start, r.end, NULL, ns);
	if (replaced < 0)
		return (int)replaced;
	if (!(ext.flags & MT_MAP_FIXED)) {
		t->missed_frees += (uint64_t)replaced;
		t->missed_bytes += before - t->live_bytes;
	}
	process_memory_count(memory, MODEL_MAP, r.site, map_class_counts(r.class) ? r.end - r.start : 0);
	r.mapping = new_mapping(memory);
	int e = r.class == MAP_MEMFD ? shm_files_note(memory, &r) : 0;
	e = e ? e : process_memory_set_last(memory, MODEL_MAP, thread, r.start);
	return e ? e : add_range(memory, &r, ns);
}
