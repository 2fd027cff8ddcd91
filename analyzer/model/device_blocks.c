/* What of a device's memory is where: what events do. */
#include "analyzer/model/device_blocks.h"
#include "analyzer/model/host_pools.h"

#include "analyzer/util/vec.h"

/* ---- allocations ----------------------------------------------------------------------------------------- */

static bool is_class(unsigned class)
{
	return class > 0 && class < MT_CLASSES;
}

static int put_extent(struct share *s, const struct device_event *e, uint32_t site)
{
	s->seen.driver_pool = s->seen.driver_pool || e->ext.class == MT_CLASS_ASYNC;
	const struct extent x = { .start = e->slot->addr,
				  .end = device_end_of(e->slot->addr, e->slot->size),
				  .ns = e->ns,
				  .event = s->memory->model->device_events,
				  .site = site,
				  .ring = e->ring,
				  .bytes = e->slot->size };
	int error = extents_clear(s, x.start, x.end, e->ns);
	return error || x.end == x.start ? error : extent_put(s, &x, e->ns);
}

/* The number of the site to charge, BLOCK_NO_SITE for what is no new memory, or -MT_EMEMORY. */
static int64_t site_of(struct share *s, enum event_space space, const struct device_event *e)
{
	enum model_kind kind = space_kind(space);
	if (kind == MODEL_KINDS)
		return BLOCK_NO_SITE;
	return kind == MODEL_PINNED ? process_memory_site(s->memory, kind, e->slot, e->thread) : share_site(s, kind, e);
}

static void count_given(struct share *s, enum event_space space, uint32_t site, uint64_t bytes)
{
	enum model_kind kind = space_kind(space);
	if (kind == MODEL_PINNED)
		process_memory_count(s->memory, kind, site, bytes);
	else if (kind != MODEL_KINDS)
		share_count(s, kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY, site, bytes);
	s->given++;
}

static int alloc_physical(struct process_memory *memory, struct share *s, const struct device_event *e)
{
	struct physical *old = physical_find(memory, e->slot->addr);
	enum event_space space = s->seen.id ? SPACES : SPACE_PINNED;
	if (old) {
		device_count_up(memory, old->share, space, COUNT_MISSED, 1);
		physical_release(memory, old, e->ns);
	}
	int64_t site = site_of(s, space, e);
	if (site < 0)
		return (int)site;
	count_given(s, space, (uint32_t)site, e->slot->size);
	oom_given(s, e);
	int64_t i = physical_put(memory,
				 &(struct physical){ .handle = e->slot->addr,
						     .size = e->slot->size,
						     .ns = e->ns,
						     .event = memory->model->device_events,
						     .share = s,
						     .site = (uint32_t)site,
						     .thread = e->thread,
						     .ring = e->ring },
				 e->ns);
	return i < 0 ? (int)i : physical_hold(memory, e->slot->addr, (uint32_t)i);
}

/* A handle that was asked for again, of memory that is known: one more reference. 1 = so it is, 0 = it is another's
 * memory. */
static int retain(struct process_memory *memory, const struct device_event *e)
{
	struct process_devices *b = memory->devices;
	struct physical *p = physical_find(memory, e->slot->addr);
	if (p) {
		p->retained++;
		return 1;
	}
	for (size_t i = 0; i < b->physical_count; i++)
		if (b->physical[i].used && b->physical[i].released && b->physical[i].handle == e->slot->addr) {
			b->physical[i].released = false;
			int error = physical_hold(memory, e->slot->addr, (uint32_t)i);
			return error ? error : 1;
		}
	return 0;
}

static int alloc_block(struct process_memory *memory, struct share *s, enum event_space space,
		       const struct device_event *e)
{
	struct block *old = blocks_find(&s->space[space], e->slot->addr);
	enum model_kind kind = space_kind(space);
	if (old)
		device_end_block(s, space, old, e->ns);
	int64_t site = site_of(s, space, e);
	int error = site < 0 ? (int)site : space == SPACE_LINEAR ? put_extent(s, e, (uint32_t)site) : 0;
	if (!error && kind != MODEL_KINDS)
		error = process_memory_set_last(memory, kind, e->thread, e->slot->addr);
	if (error)
		return error;
	const struct block b = {
		.addr = e->slot->addr, .size = e->slot->size, .ns = e->ns, .site = (uint32_t)site, .thread = e->thread
	};
	if (kind == MODEL_POOL) {
		uint64_t newest;
		s->has_pool = true;
		s->seen.partly_seen |= b.addr >= MT_NOWHERE;
		error = extents_note_pool(s, e, &newest);
		if (!error)
			error = oom_served(s, e, newest);
	} else if (space == SPACE_LINEAR) {
		oom_given(s, e);
	}
	count_given(s, space, b.site, b.size);
	device_move_block(s, space, &b, 1, e->ns);
	return error ? error : blocks_put(&s->space[space], &b);
}

static int reserve(struct process_memory *memory, const struct device_event *e)
{
	struct ranges *all = &memory->devices->reserved;
	uint64_t start = e->slot->addr, end = device_end_of(start, e->slot->size);
	for (const struct range *r; start < end && (r = ranges_overlap(all, start, end)) != NULL;)
		ranges_remove(all, r);
	return start < end ? ranges_put(all, &(struct range){ .start = start, .end = end, .ns = e->ns }) : 0;
}

int memory_alloc(struct process_memory *memory, const struct device_event *e)
{
	if (!is_class(e->ext.class))
		return 0;
	if (e->ext.class == MT_CLASS_RESERVED)
		return reserve(memory, e);
	if (e->ext.class == MT_CLASS_SEGMENT)
		return host_pool_grow(memory, e->slot->addr, e->slot->size, e->ns);
	if (process_never(memory->seen.process, e->slot->addr))
		return 0;
	if (e->ext.source == MT_ALLOC_BEFORE)
		memory->before = e->slot->node2;
	struct share *s = share_of(memory, e->ext.device);
	int known = s ? e->ext.class == MT_CLASS_ALIAS ? retain(memory, e) : 0 : -MT_EMEMORY;
	if (known)
		return known < 0 ? known : 0;
	return e->ext.class == MT_CLASS_PHYSICAL ? alloc_physical(memory, s, e)
						 : alloc_block(memory, s, space_of_class(e->ext.class), e);
}

/* A block of the pool, of which only now is known where it lies. */
static int place_block(struct process_memory *memory, const struct device_event *e)
{
	struct share *s = share_of(memory, e->ext.device);
	struct device_event at = *e;
	uint64_t newest;
	if (!s || share_show(s))
		return -MT_EMEMORY;
	at.ext.stream = 0;
	at.ext.capture = 0;
	int error = extents_note_pool(s, &at, &newest);
	const struct block *b = blocks_find(&s->space[SPACE_POOL], e->ext.stream);
	return error || !b || b->addr < MT_NOWHERE
		       ? error
		       : blocks_put(&s->places,
				    &(struct block){ .addr = b->addr, .size = b->size, .ns = e->slot->addr });
}

int memory_map(struct process_memory *memory, const struct device_event *e)
{
	if (e->ext.class == MT_CLASS_POOL)
		return place_block(memory, e);
	struct physical *p = physical_find(memory, e->ext.stream);
	uint64_t start = e->slot->addr, end = device_end_of(start, e->slot->size);
	if (!p || start == end)
		return 0; /* another process's memory, or a handle of before the recording */
	struct share *s = p->share;
	const struct range *r = reservation_at(memory, start);
	struct extent x = { .start = start,
			    .end = end,
			    .ns = p->ns,
			    .event = p->event,
			    .site = p->site,
			    .ring = p->ring,
			    .bytes = p->maps ? 0 : e->slot->size,
			    .physical = (uint32_t)(p - memory->devices->physical) + 1,
			    .pool = r && r->class,
			    .capture = r && r->file <= s->capture_count ? r->file : 0 };
	physical_count_maps(p, 1, e->ns); /* before what lies there goes, which may be a view of the same */
	int error = extents_clear(s, start, end, e->ns);
	return error ? error : extent_put(s, &x, e->ns);
}

/* ---- frees ----------------------------------------------------------------------------------------------- */

static struct share *share_known(const struct process_memory *memory, uint32_t id)
{
	return id < memory->devices->share_room ? memory->devices->shares[id] : NULL;
}

/* The block at `addr`: on the device that the event names, or on another. */
static struct block *find_block(const struct process_memory *memory, const struct device_event *e,
				enum event_space space, struct share **s)
{
	struct block *b = NULL;
	/* the framework says whose block it frees, unless it tells by mstx */
	bool anywhere = (space != SPACE_POOL && space != SPACE_WORKSPACE) || !e->ext.device;
	*s = share_known(memory, e->ext.device);
	if (*s && (b = blocks_find(&(*s)->space[space], e->slot->addr)) != NULL)
		return b;
	for (size_t i = 0; i < memory->devices->share_room && anywhere; i++)
		if (memory->devices->shares[i] &&
		    (b = blocks_find(&memory->devices->shares[i]->space[space], e->slot->addr)) != NULL) {
			*s = memory->devices->shares[i];
			return b;
		}
	return NULL;
}

static void free_block(struct process_memory *memory, struct share *s, struct block *b, struct device_undo *u,
		       uint64_t ns)
{
	enum model_kind kind = space_kind(u->space);
	u->known = true;
	u->share = s;
	u->block = *b;
	u->temporary = kind != MODEL_KINDS && !u->not_temporary && b->thread < memory->last_room[kind] &&
		       memory->last[kind][b->thread] == b->addr;
	device_count_up(memory, s, u->space, COUNT_FREES, 1);
	if (u->temporary) {
		device_count_up(memory, s, u->space, COUNT_TEMPORARY, 1);
		site_table_temporary(&memory->sites, b->site, 1);
	}
	device_move_block(s, u->space, b, -1, ns);
	blocks_remove(&s->space[u->space], b);
}

/* The extent of a linear allocation, kept for the undo. */
static int free_extent(struct share *s, struct device_undo *u, uint64_t ns)
{
	struct extent *x = extent_at(s, u->addr, u->addr + 1);
	if (!x || x->physical || x->start != u->addr)
		return 0;
	int e = vec_reserve(u->gone, u->gone_room, 1ul);
	if (e)
		return e;
	u->gone[u->gone_count++] = (struct gone){ .share = s, .extent = *x };
	extent_remove(s, x, ns);
	return 0;
}

static int free_unknown(struct process_memory *memory, struct share *s, struct device_undo *u)
{
	if (devices_free_inherited(memory, u->space, u->addr)) {
		u->inherited = true;
		memory->seen.inherited_device_frees++;
	} else {
		u->share = s;
		device_count_up(memory, s, u->space, COUNT_UNKNOWN, 1);
	}
	return 0;
}

static int free_physical(struct process_memory *memory, const struct device_event *e, struct device_undo *u)
{
	struct physical *p = physical_find(memory, u->addr);
	if (!p) { /* it may be a handle of another process's memory */
		struct block *b = find_block(memory, e, SPACE_ALIAS, &u->share);
		if (!b)
			return free_unknown(memory, share_known(memory, e->ext.device), u);
		u->space = SPACE_ALIAS;
		free_block(memory, u->share, b, u, e->ns);
		return 0;
	}
	int error = vec_reserve(u->gone, u->gone_room, 1ul);
	if (error)
		return error;
	u->gone[u->gone_count++] = (struct gone){ .share = p->share, .physical = *p };
	u->known = p->retained == 0;
	u->reference = !u->known;
	u->share = p->share;
	u->space = physical_space(p);
	if (u->reference) {
		p->retained--;
		return 0;
	}
	device_count_up(memory, p->share, u->space, COUNT_FREES, 1);
	physical_release(memory, p, e->ns);
	return 0;
}

static int unreserve(struct process_memory *memory, const struct device_event *e, struct device_undo *u)
{
	const struct range *r = reservation_at(memory, e->slot->addr);
	if (!r || r->start != e->slot->addr)
		return 0;
	u->known = true;
	u->reservation = *r;
	ranges_remove(&memory->devices->reserved, r);
	return 0;
}

/* Where else a function of that kind frees: cudaFree() and its like also end what was mapped of somebody else's memory,
 * and HIP has one function for what is pinned and what is of a device. SPACES = nowhere. */
static enum event_space other_space(const struct share *s, enum event_space space, unsigned k)
{
	const bool hip = s && s->device->seen.backend == MT_BACKEND_HIP;
	if (k == 0 && (space == SPACE_LINEAR || space == SPACE_ARRAY))
		return SPACE_ALIAS;
	if (k == 1 && hip && (space == SPACE_LINEAR || space == SPACE_PINNED))
		return space == SPACE_LINEAR ? SPACE_PINNED : SPACE_LINEAR;
	return SPACES;
}

int memory_free(struct process_memory *memory, const struct device_event *e)
{
	if (!is_class(e->ext.class) || e->ext.class == MT_CLASS_SEGMENT ||
	    process_never(memory->seen.process, e->slot->addr))
		return 0;
	struct device_undo *u = device_undo_of(memory, e);
	if (!u)
		return -MT_EMEMORY;
	if (e->ext.class == MT_CLASS_RESERVED)
		return unreserve(memory, e, u);
	if (e->ext.class == MT_CLASS_PHYSICAL)
		return free_physical(memory, e, u);
	struct share *s;
	struct block *b = find_block(memory, e, u->space, &s);
	const enum event_space space = u->space;
	for (unsigned k = 0; k < 2 && !b; k++) {
		const enum event_space other = other_space(s, space, k);
		if (other != SPACES && (b = find_block(memory, e, other, &s)) != NULL)
			u->space = other;
	}
	u->not_temporary = e->slot->size != 0;
	if (!b)
		return free_unknown(memory, s, u);
	int error = u->space == SPACE_LINEAR ? free_extent(s, u, e->ns) : 0;
	if (!error)
		free_block(memory, s, b, u, e->ns);
	return error;
}

int memory_unmap(struct process_memory *memory, const struct device_event *e)
{
	struct device_undo *u = device_undo_of(memory, e);
	uint64_t start = e->slot->addr, end = device_end_of(start, e->slot->size ? e->slot->size : 1);
	int error = u ? 0 : -MT_EMEMORY;
	if (u)
		u->unmapping = true;
	for (size_t i = 0; i < memory->devices->share_room && !error; i++) {
		struct share *s = memory->devices->shares[i];
		uint64_t at = start;
		for (const struct range *r;
		     s && !error && at < end && (r = ranges_overlap(&s->extents, at, end)) != NULL;) {
			at = r->end;
			if (s->extent[r->file].physical)
				error = extent_unmap(memory, s, &s->extent[r->file], u, e->ns);
		}
	}
	return error;
}

/* ---- ends ------------------------------------------------------------------------------------------------ */

static void end_space(struct share *s, enum event_space space, uint64_t ns)
{
	struct blocks *t = &s->space[space];
	for (size_t i = 0; t->entries && i <= t->mask; i++)
		if (t->entries[i].addr)
			device_move_block(s, space, &t->entries[i], -1, ns);
	blocks_fini(t);
}

static void end_linear_extents(struct share *s, uint64_t ns)
{
	for (size_t i = 0; i < s->extent_count; i++)
		if (s->extent[i].used && !s->extent[i].physical)
			extent_remove(s, &s->extent[i], ns);
}

static void end_physical(struct process_memory *memory, const struct share *s, uint64_t ns)
{
	for (size_t i = 0; i < s->extent_count; i++)
		if (s->extent[i].used && s->extent[i].physical)
			extent_unmap(memory, (struct share *)s, &((struct share *)s)->extent[i], NULL, ns);
	for (size_t i = 0; i < memory->devices->physical_count; i++)
		if (memory->devices->physical[i].used && memory->devices->physical[i].share == s)
			physical_release(memory, &memory->devices->physical[i], ns);
}

static void reset(struct process_memory *memory, struct share *s, unsigned class, uint64_t ns)
{
	for (int space = 0; space < SPACES; space++)
		if (!class || (class != MT_CLASS_PHYSICAL && class != MT_CLASS_RESERVED &&
			       space_of_class(class) == (enum event_space)space))
			end_space(s, space, ns);
	if (!class || space_of_class(class) == SPACE_LINEAR)
		end_linear_extents(s, ns);
	if (!class || class == MT_CLASS_PHYSICAL)
		end_physical(memory, s, ns);
}

int memory_reset(struct process_memory *memory, const struct device_event *e)
{
	uint64_t class = e->slot->addr;
	if (class >= MT_CLASSES)
		return 0;
	for (size_t i = 0; i < memory->devices->share_room; i++)
		if (memory->devices->shares[i] && (!e->ext.device || e->ext.device == i))
			reset(memory, memory->devices->shares[i], (unsigned)class, e->ns);
	return 0;
}

void memory_drop(struct share *s)
{
	for (int space = 0; space < SPACES; space++)
		blocks_fini(&s->space[space]);
	blocks_fini(&s->places);
	ranges_fini(&s->extents);
	free(s->extent);
	free(s->captures);
	s->extent = NULL;
	s->captures = NULL;
	s->extent_count = s->extent_room = s->capture_count = s->capture_room = 0;
	s->extent_free = s->last = 0;
}

void memory_fini(struct process_devices *b)
{
	free(b->physical);
	b->physical = NULL;
	b->physical_count = b->physical_room = 0;
	b->physical_free = 0;
	blocks_fini(&b->handles);
	ranges_fini(&b->reserved);
	inherited_blocks_fini(&b->inherited_blocks);
}
