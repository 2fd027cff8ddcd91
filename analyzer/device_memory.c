/* What of a device's memory is where: blocks, physical memory and its mappings, the pool's segments. */
#include "analyzer/devices.h"

#include "analyzer/vec.h"

/* ---- counts ---------------------------------------------------------------------------------------------- */

enum counter { COUNT_FREES, COUNT_MISSED, COUNT_UNKNOWN, COUNT_TEMPORARY };

static void bump(struct model_totals *t, enum counter c, uint64_t n)
{
	switch (c) {
	case COUNT_FREES:     t->frees += n; break;
	case COUNT_MISSED:    t->missed_frees += n; break;
	case COUNT_UNKNOWN:   t->unknown_frees += n; break;
	case COUNT_TEMPORARY: t->temporary += n; break;
	}
}

/* What a space's blocks are counted as; MODEL_KINDS = as nothing. */
static enum model_kind kind_of(enum device_space space)
{
	static const enum model_kind kinds[SPACES + 1] = {
		[SPACE_LINEAR] = MODEL_DEVICE, [SPACE_ARRAY] = MODEL_DEVICE, [SPACE_ALIAS] = MODEL_KINDS, [SPACE_PINNED] = MODEL_PINNED,
		[SPACE_REGISTERED] = MODEL_KINDS, [SPACE_POOL] = MODEL_POOL, [SPACE_WORKSPACE] = MODEL_POOL, [SPACES] = MODEL_DEVICE,
	};
	return kinds[space];
}

static void count(struct account *a, struct share *s, enum device_space space, enum counter c, uint64_t n)
{
	enum model_kind kind = kind_of(space);
	if (kind == MODEL_KINDS)
		return;
	bump(&a->kind[kind].totals, c, n);
	if (s && kind >= MODEL_HOST_KINDS)
		bump(&s->layer[kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY].totals, c, n);
}

static enum device_space space_of(unsigned class)
{
	static const uint8_t spaces[MT_CLASSES] = {
		[MT_CLASS_DEVICE] = SPACE_LINEAR, [MT_CLASS_MANAGED] = SPACE_LINEAR, [MT_CLASS_ASYNC] = SPACE_LINEAR,
		[MT_CLASS_ARRAY] = SPACE_ARRAY, [MT_CLASS_PHYSICAL] = SPACES, [MT_CLASS_RESERVED] = SPACES, [MT_CLASS_ALIAS] = SPACE_ALIAS,
		[MT_CLASS_PINNED] = SPACE_PINNED, [MT_CLASS_REGISTERED] = SPACE_REGISTERED, [MT_CLASS_POOL] = SPACE_POOL,
		[MT_CLASS_WORKSPACE] = SPACE_WORKSPACE,
	};
	return class < MT_CLASSES ? spaces[class] : SPACES;
}

static bool is_class(unsigned class) { return class > 0 && class < MT_CLASSES; }

/* ---- what is live ---------------------------------------------------------------------------------------- */

static void change_registered(struct account *a, int64_t bytes)
{
	a->seen.registered_bytes += (uint64_t)bytes;
	if (a->seen.registered_bytes > a->seen.registered_peak_bytes)
		a->seen.registered_peak_bytes = a->seen.registered_bytes;
}

/* A block begins to be live (delta 1) or ends (-1). */
static void move_block(struct share *s, enum device_space space, const struct block *b, int64_t delta, uint64_t ns)
{
	enum model_kind kind = kind_of(space);
	const struct change c = { kind, b->site, delta * (int64_t)b->size, delta, b->addr, b->thread };
	if (space == SPACE_REGISTERED)
		change_registered(s->account, c.bytes);
	if (kind == MODEL_PINNED)
		account_change(s->account, c, ns);
	else if (kind != MODEL_KINDS)
		share_change(s, kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY, c, ns);
}

/* ---- extents --------------------------------------------------------------------------------------------- */

static void change_reserved(struct share *s, const struct extent *x, int64_t delta, uint64_t ns)
{
	const struct change c = { MODEL_DEVICE, BLOCK_NO_SITE, delta * (int64_t)x->bytes, delta, x->start, 0 };
	if (x->pool)
		share_change(s, LAYER_RESERVED, c, ns);
	if (x->pool && delta > 0)
		share_count(s, LAYER_RESERVED, BLOCK_NO_SITE, x->bytes);
	if (x->pool && delta < 0)
		s->layer[LAYER_RESERVED].totals.frees++;
}

static int extent_put(struct share *s, const struct extent *x, uint64_t ns)
{
	uint32_t i = s->extent_free;
	if (!i) {
		int e = vec_reserve(s->extent, s->extent_room, s->extent_count + 1);
		if (e)
			return e;
		i = (uint32_t)++s->extent_count;
	} else {
		s->extent_free = s->extent[i - 1].physical;
	}
	s->extent[i - 1] = *x;
	s->extent[i - 1].used = true;
	change_reserved(s, x, 1, ns);
	return ranges_put(&s->extents, &(struct range){ .start = x->start, .end = x->end, .ns = x->ns, .site = x->site, .file = i - 1 });
}

static struct extent *extent_at(struct share *s, uint64_t start, uint64_t end)
{
	const struct range *r = ranges_overlap(&s->extents, start, end);
	return r ? &s->extent[r->file] : NULL;
}

static struct extent extent_remove(struct share *s, struct extent *x, uint64_t ns)
{
	const struct extent was = *x;
	ranges_remove(&s->extents, ranges_overlap(&s->extents, x->start, x->start + 1));
	change_reserved(s, &was, -1, ns);
	*x = (struct extent){ .physical = s->extent_free };
	s->extent_free = (uint32_t)(x - s->extent) + 1;
	return was;
}

static void make_segment(struct share *s, struct extent *x, uint64_t ns)
{
	if (x->pool)
		return;
	x->pool = s->account->sites.sites[x->site].segments = true;
	change_reserved(s, x, 1, ns);
}

/* Of memory that is mapped in one reserved range, all is the pool's if some of it is. */
static void make_segments(struct share *s, uint64_t start, uint64_t end, uint64_t ns)
{
	for (const struct range *r; start < end && (r = ranges_overlap(&s->extents, start, end)) != NULL; start = r->end)
		make_segment(s, &s->extent[r->file], ns);
}

static struct range *reservation_at(const struct account *a, uint64_t addr)
{
	return (struct range *)ranges_overlap(&a->devices->reserved, addr, addr + 1);
}

/* A block of the pool lies in [start, end). Returns when the newest memory in it that ring `ring` got was got; 0 = none. */
static uint64_t note_pool(struct share *s, uint64_t start, uint64_t end, uint32_t ring, uint64_t ns)
{
	uint64_t newest = 0;
	struct extent *x = s->last ? &s->extent[s->last - 1] : NULL;
	if (x && x->used && x->pool && x->start <= start && end <= x->end)
		return x->ring == ring ? x->event : 0;
	for (uint64_t at = start; at < end && (x = extent_at(s, at, end)) != NULL; at = x->end) {
		struct range *r = x->physical ? reservation_at(s->account, x->start) : NULL;
		if (r && !r->class) {
			r->class = 1;
			make_segments(s, r->start, r->end, ns);
		}
		make_segment(s, x, ns);
		newest = x->ring == ring && x->event > newest ? x->event : newest;
		s->last = (uint32_t)(x - s->extent) + 1;
	}
	return newest;
}

/* ---- physical memory ------------------------------------------------------------------------------------- */

static enum device_space space_of_physical(const struct physical *p) { return p->share->seen.id ? SPACES : SPACE_PINNED; }

static void charge(struct physical *p, int64_t delta, uint64_t ns)
{
	const struct block b = { .addr = p->handle, .size = p->size, .site = p->site, .thread = p->thread };
	move_block(p->share, space_of_physical(p), &b, delta, ns);
}

/* It is (1) or is no longer (-1) mapped nowhere. */
static void charge_unmapped(struct physical *p, int64_t delta, uint64_t ns)
{
	if (p->share->seen.id)
		share_change(p->share, LAYER_UNMAPPED, (struct change){ MODEL_DEVICE, BLOCK_NO_SITE, delta * (int64_t)p->size, delta, 0, 0 }, ns);
}

static void count_maps(struct physical *p, int delta, uint64_t ns)
{
	if (!p->maps)
		charge_unmapped(p, -1, ns);
	p->maps += (uint32_t)delta;
	if (!p->maps)
		charge_unmapped(p, 1, ns);
}

/* Adds one, unreleased or not; returns its index or -MT_EMEMORY. */
static int64_t physical_put(struct account *a, const struct physical *p, uint64_t ns)
{
	struct device_books *b = a->devices;
	uint32_t i = b->physical_free;
	if (!i) {
		int e = vec_reserve(b->physical, b->physical_room, b->physical_count + 1);
		if (e)
			return e;
		i = (uint32_t)++b->physical_count;
	} else {
		b->physical_free = b->physical[i - 1].maps;
	}
	b->physical[i - 1] = *p;
	b->physical[i - 1].used = true;
	charge(&b->physical[i - 1], 1, ns);
	charge_unmapped(&b->physical[i - 1], 1, ns);
	return i - 1;
}

static void physical_drop(struct account *a, struct physical *p, uint64_t ns)
{
	struct device_books *b = a->devices;
	charge_unmapped(p, -1, ns);
	charge(p, -1, ns);
	*p = (struct physical){ .maps = b->physical_free };
	b->physical_free = (uint32_t)(p - b->physical) + 1;
}

static void drop_if_unused(struct account *a, struct physical *p, uint64_t ns)
{
	if (p->released && !p->maps)
		physical_drop(a, p, ns);
}

static void release(struct account *a, struct physical *p, uint64_t ns)
{
	struct block *b = blocks_find(&a->devices->handles, p->handle);
	if (b)
		blocks_remove(&a->devices->handles, b);
	p->released = true;
	drop_if_unused(a, p, ns);
}

static struct physical *physical_find(const struct account *a, uint64_t handle)
{
	const struct block *b = handle ? blocks_find(&a->devices->handles, handle) : NULL;
	return b ? &a->devices->physical[b->site] : NULL;
}

static int hold_handle(struct account *a, uint64_t handle, uint32_t index)
{
	return blocks_put(&a->devices->handles, &(struct block){ .addr = handle, .site = index });
}

static int64_t site_of(struct share *s, enum device_space space, const struct device_event *e);
static void count_given(struct share *s, enum device_space space, uint32_t site, uint64_t bytes);

static int alloc_physical(struct account *a, struct share *s, const struct device_event *e)
{
	struct physical *old = physical_find(a, e->slot->addr);
	enum device_space space = s->seen.id ? SPACES : SPACE_PINNED;
	if (old) {
		count(a, old->share, space, COUNT_MISSED, 1);
		release(a, old, e->ns);
	}
	int64_t site = site_of(s, space, e);
	if (site < 0)
		return (int)site;
	count_given(s, space, (uint32_t)site, e->slot->size);
	oom_given(s, e);
	int64_t i = physical_put(a, &(struct physical){ .handle = e->slot->addr, .size = e->slot->size, .ns = e->ns,
				 .event = a->model->device_events, .share = s, .site = (uint32_t)site, .thread = e->thread,
				 .ring = e->ring }, e->ns);
	return i < 0 ? (int)i : hold_handle(a, e->slot->addr, (uint32_t)i);
}

/* A handle that was asked for again, of memory that is known: one more reference. 1 = so it is, 0 = it is another's memory. */
static int retain(struct account *a, const struct device_event *e)
{
	struct device_books *b = a->devices;
	struct physical *p = physical_find(a, e->slot->addr);
	if (p) {
		p->retained++;
		return 1;
	}
	for (size_t i = 0; i < b->physical_count; i++)
		if (b->physical[i].used && b->physical[i].released && b->physical[i].handle == e->slot->addr) {
			b->physical[i].released = false;
			int error = hold_handle(a, e->slot->addr, (uint32_t)i);
			return error ? error : 1;
		}
	return 0;
}

/* ---- what lies where something new is -------------------------------------------------------------------- */

/* The ring's place to remember this free. */
static struct device_undo *undo_of(struct account *a, const struct device_event *e)
{
	struct ring_state *ring = account_ring(a, e->ring);
	if (ring && !ring->device)
		ring->device = calloc(1, sizeof(*ring->device));
	if (!ring || !ring->device) {
		error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
		return NULL;
	}
	struct device_undo *u = &ring->device->frees[ring->device->next++ % UNDO_DEPTH];
	struct gone *gone = u->gone;
	size_t room = u->gone_room;
	*u = (struct device_undo){ .addr = e->slot->addr, .class = e->ext.class, .space = space_of(e->ext.class), .gone = gone,
				   .gone_room = room };
	return u;
}

/* What is mapped in an extent is one view less. *u, unless NULL, remembers it. */
static int unmap_extent(struct account *a, struct share *s, struct extent *x, struct device_undo *u, uint64_t ns)
{
	struct physical *p = &a->devices->physical[x->physical - 1];
	int e = u ? vec_reserve(u->gone, u->gone_room, u->gone_count + 1) : 0;
	if (e)
		return e;
	if (u)
		u->gone[u->gone_count++] = (struct gone){ s, *x, *p };
	extent_remove(s, x, ns);
	count_maps(p, -1, ns);
	drop_if_unused(a, p, ns);
	return 0;
}

static void end_block(struct share *s, enum device_space space, struct block *b, uint64_t ns)
{
	count(s->account, s, space, COUNT_MISSED, 1);
	move_block(s, space, b, -1, ns);
	blocks_remove(&s->space[space], b);
}

/* Whatever lies in [start, end) has ended without a word. */
static int clear_extents(struct share *s, uint64_t start, uint64_t end, uint64_t ns)
{
	struct extent *x;
	int e = 0;
	while (!e && start < end && (x = extent_at(s, start, end)) != NULL) {
		struct block *b = x->physical ? NULL : blocks_find(&s->space[SPACE_LINEAR], x->start);
		if (b)
			end_block(s, SPACE_LINEAR, b, ns);
		if (x->physical)
			e = unmap_extent(s->account, s, x, NULL, ns);
		else
			extent_remove(s, x, ns);
	}
	return e;
}

/* ---- allocations ----------------------------------------------------------------------------------------- */

static uint64_t end_of(uint64_t addr, uint64_t size)
{
	return addr + size < addr ? UINT64_MAX : addr + size;
}

static int put_extent(struct share *s, const struct device_event *e, uint32_t site)
{
	const struct extent x = { .start = e->slot->addr, .end = end_of(e->slot->addr, e->slot->size), .ns = e->ns,
				  .event = s->account->model->device_events, .site = site, .ring = e->ring, .bytes = e->slot->size };
	int error = clear_extents(s, x.start, x.end, e->ns);
	return error || x.end == x.start ? error : extent_put(s, &x, e->ns);
}

/* The number of the site to charge, BLOCK_NO_SITE for what is no new memory, or -MT_EMEMORY. */
static int64_t site_of(struct share *s, enum device_space space, const struct device_event *e)
{
	enum model_kind kind = kind_of(space);
	if (kind == MODEL_KINDS)
		return BLOCK_NO_SITE;
	return kind == MODEL_PINNED ? account_site(s->account, kind, e->slot, e->thread) : share_site(s, kind, e);
}

static void count_given(struct share *s, enum device_space space, uint32_t site, uint64_t bytes)
{
	enum model_kind kind = kind_of(space);
	if (kind == MODEL_PINNED)
		account_count(s->account, kind, site, bytes);
	else if (kind != MODEL_KINDS)
		share_count(s, kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY, site, bytes);
	s->given++;
}

static int alloc_block(struct account *a, struct share *s, enum device_space space, const struct device_event *e)
{
	struct block *old = blocks_find(&s->space[space], e->slot->addr);
	enum model_kind kind = kind_of(space);
	if (old)
		end_block(s, space, old, e->ns);
	int64_t site = site_of(s, space, e);
	int error = site < 0 ? (int)site : space == SPACE_LINEAR ? put_extent(s, e, (uint32_t)site) : 0;
	if (!error && kind != MODEL_KINDS)
		error = account_set_last(a, kind, e->thread, e->slot->addr);
	if (error)
		return error;
	const struct block b = { .addr = e->slot->addr, .size = e->slot->size, .ns = e->ns, .site = (uint32_t)site,
				 .thread = e->thread };
	if (kind == MODEL_POOL) {
		uint64_t newest = note_pool(s, b.addr, end_of(b.addr, b.size), e->ring, e->ns);
		s->has_pool = true;
		error = oom_served(s, e, newest);
	} else if (space == SPACE_LINEAR) {
		oom_given(s, e);
	}
	count_given(s, space, b.site, b.size);
	move_block(s, space, &b, 1, e->ns);
	return error ? error : blocks_put(&s->space[space], &b);
}

static int reserve(struct account *a, const struct device_event *e)
{
	struct ranges *all = &a->devices->reserved;
	uint64_t start = e->slot->addr, end = end_of(start, e->slot->size);
	for (const struct range *r; start < end && (r = ranges_overlap(all, start, end)) != NULL;)
		ranges_remove(all, r);
	return start < end ? ranges_put(all, &(struct range){ .start = start, .end = end, .ns = e->ns }) : 0;
}

int memory_alloc(struct account *a, const struct device_event *e)
{
	if (!is_class(e->ext.class))
		return 0;
	if (e->ext.class == MT_CLASS_RESERVED)
		return reserve(a, e);
	struct share *s = share_of(a, e->ext.device);
	int known = s ? e->ext.class == MT_CLASS_ALIAS ? retain(a, e) : 0 : -MT_EMEMORY;
	if (known)
		return known < 0 ? known : 0;
	return e->ext.class == MT_CLASS_PHYSICAL ? alloc_physical(a, s, e) : alloc_block(a, s, space_of(e->ext.class), e);
}

int memory_map(struct account *a, const struct device_event *e)
{
	struct physical *p = physical_find(a, e->ext.stream);
	uint64_t start = e->slot->addr, end = end_of(start, e->slot->size);
	if (!p || start == end)
		return 0; /* another process's memory, or a handle of before the recording */
	struct share *s = p->share;
	const struct range *r = reservation_at(a, start);
	struct extent x = { .start = start, .end = end, .ns = p->ns, .event = p->event, .site = p->site, .ring = p->ring,
			    .bytes = p->maps ? 0 : e->slot->size, .physical = (uint32_t)(p - a->devices->physical) + 1,
			    .pool = r && r->class };
	count_maps(p, 1, e->ns); /* before what lies there goes, which may be a view of the same */
	int error = clear_extents(s, start, end, e->ns);
	return error ? error : extent_put(s, &x, e->ns);
}

/* ---- frees ----------------------------------------------------------------------------------------------- */

static struct share *share_known(const struct account *a, uint32_t id)
{
	return id < a->devices->share_room ? a->devices->shares[id] : NULL;
}

/* The block at `addr`: on the device that the event names, or on another. */
static struct block *find_block(const struct account *a, const struct device_event *e, enum device_space space, struct share **s)
{
	struct block *b = NULL;
	/* the framework says whose block it frees, unless it tells by mstx */
	bool anywhere = (space != SPACE_POOL && space != SPACE_WORKSPACE) || !e->ext.device;
	*s = share_known(a, e->ext.device);
	if (*s && (b = blocks_find(&(*s)->space[space], e->slot->addr)) != NULL)
		return b;
	for (size_t i = 0; i < a->devices->share_room && anywhere; i++)
		if (a->devices->shares[i] && (b = blocks_find(&a->devices->shares[i]->space[space], e->slot->addr)) != NULL) {
			*s = a->devices->shares[i];
			return b;
		}
	return NULL;
}

static void free_block(struct account *a, struct share *s, struct block *b, struct device_undo *u, uint64_t ns)
{
	enum model_kind kind = kind_of(u->space);
	u->known = true;
	u->share = s;
	u->block = *b;
	u->temporary = kind != MODEL_KINDS && b->thread < a->last_room[kind] && a->last[kind][b->thread] == b->addr;
	count(a, s, u->space, COUNT_FREES, 1);
	if (u->temporary) {
		count(a, s, u->space, COUNT_TEMPORARY, 1);
		a->sites.sites[b->site].temporary++;
	}
	move_block(s, u->space, b, -1, ns);
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

static int free_unknown(struct account *a, struct share *s, struct device_undo *u)
{
	if (devices_inherited(a, u->space, u->addr)) {
		u->inherited = true;
		a->seen.inherited_device_frees++;
	} else {
		u->share = s;
		count(a, s, u->space, COUNT_UNKNOWN, 1);
	}
	return 0;
}

static int free_physical(struct account *a, const struct device_event *e, struct device_undo *u)
{
	struct physical *p = physical_find(a, u->addr);
	if (!p) { /* it may be a handle of another process's memory */
		struct block *b = find_block(a, e, SPACE_ALIAS, &u->share);
		if (!b)
			return free_unknown(a, share_known(a, e->ext.device), u);
		u->space = SPACE_ALIAS;
		free_block(a, u->share, b, u, e->ns);
		return 0;
	}
	int error = vec_reserve(u->gone, u->gone_room, 1ul);
	if (error)
		return error;
	u->gone[u->gone_count++] = (struct gone){ .share = p->share, .physical = *p };
	u->known = p->retained == 0;
	u->reference = !u->known;
	u->share = p->share;
	u->space = space_of_physical(p);
	if (u->reference) {
		p->retained--;
		return 0;
	}
	count(a, p->share, u->space, COUNT_FREES, 1);
	release(a, p, e->ns);
	return 0;
}

static int unreserve(struct account *a, const struct device_event *e, struct device_undo *u)
{
	const struct range *r = reservation_at(a, e->slot->addr);
	if (!r || r->start != e->slot->addr)
		return 0;
	u->known = true;
	u->reservation = *r;
	ranges_remove(&a->devices->reserved, r);
	return 0;
}

int memory_free(struct account *a, const struct device_event *e)
{
	if (!is_class(e->ext.class))
		return 0;
	struct device_undo *u = undo_of(a, e);
	if (!u)
		return -MT_EMEMORY;
	if (e->ext.class == MT_CLASS_RESERVED)
		return unreserve(a, e, u);
	if (e->ext.class == MT_CLASS_PHYSICAL)
		return free_physical(a, e, u);
	struct share *s;
	struct block *b = find_block(a, e, u->space, &s);
	if (!b)
		return free_unknown(a, s, u);
	int error = u->space == SPACE_LINEAR ? free_extent(s, u, e->ns) : 0;
	if (!error)
		free_block(a, s, b, u, e->ns);
	return error;
}

int memory_unmap(struct account *a, const struct device_event *e)
{
	struct device_undo *u = undo_of(a, e);
	uint64_t start = e->slot->addr, end = end_of(start, e->slot->size ? e->slot->size : 1);
	int error = u ? 0 : -MT_EMEMORY;
	if (u)
		u->unmapping = true;
	for (size_t i = 0; i < a->devices->share_room && !error; i++) {
		struct share *s = a->devices->shares[i];
		uint64_t at = start;
		for (const struct range *r; s && !error && at < end && (r = ranges_overlap(&s->extents, at, end)) != NULL;) {
			at = r->end;
			if (s->extent[r->file].physical)
				error = unmap_extent(a, s, &s->extent[r->file], u, e->ns);
		}
	}
	return error;
}

/* ---- undo ------------------------------------------------------------------------------------------------ */

/* The physical memory of an extent that was unmapped, or a handle that was released, as it was. */
static int64_t restore_physical(struct account *a, const struct gone *g, uint64_t ns)
{
	struct device_books *b = a->devices;
	for (size_t i = 0; i < b->physical_count; i++)
		if (b->physical[i].used && b->physical[i].event == g->physical.event && b->physical[i].handle == g->physical.handle)
			return (int64_t)i;
	struct physical p = g->physical;
	p.maps = 0;
	return physical_put(a, &p, ns);
}

static int restore_gone(struct account *a, const struct gone *g, uint64_t ns)
{
	struct extent x = g->extent;
	int e = x.used ? clear_extents(g->share, x.start, x.end, ns) : 0;
	if (e || !g->physical.used)
		return e ? e : extent_put(g->share, &x, ns);
	int64_t i = restore_physical(a, g, ns);
	if (i < 0)
		return (int)i;
	struct physical *p = &a->devices->physical[i];
	if (!x.used) {
		p->released = false;
		p->retained = g->physical.retained;
		return physical_find(a, p->handle) ? 0 : hold_handle(a, p->handle, (uint32_t)i);
	}
	count_maps(p, 1, ns);
	x.physical = (uint32_t)i + 1;
	return extent_put(g->share, &x, ns);
}

static int restore_block(struct account *a, struct device_undo *u, uint64_t ns)
{
	if (u->temporary) {
		count(a, u->share, u->space, COUNT_TEMPORARY, (uint64_t)-1);
		a->sites.sites[u->block.site].temporary--;
	}
	move_block(u->share, u->space, &u->block, 1, ns);
	return blocks_put(&u->share->space[u->space], &u->block);
}

static int restore_reservation(struct account *a, const struct device_undo *u)
{
	const struct range *r = &u->reservation;
	return !u->known || ranges_overlap(&a->devices->reserved, r->start, r->end) ? 0 : ranges_put(&a->devices->reserved, r);
}

static int restore(struct account *a, struct device_undo *u, uint64_t ns)
{
	const uint64_t addr = u->addr;
	int e = 0;
	u->addr = 0;
	if (u->inherited) {
		a->seen.inherited_device_frees--;
		devices_bring_back(a, u->space, addr);
		return 0;
	}
	if (u->class == MT_CLASS_RESERVED)
		return restore_reservation(a, u);
	if (u->known && u->block.addr && blocks_find(&u->share->space[u->space], u->block.addr)) {
		a->seen.odd_undos++;
		return 0;
	}
	if (u->known)
		count(a, u->share, u->space, COUNT_FREES, (uint64_t)-1);
	else if (!u->unmapping && !u->reference)
		count(a, u->share, u->space, COUNT_UNKNOWN, (uint64_t)-1);
	for (size_t i = 0; i < u->gone_count && !e; i++)
		e = restore_gone(a, &u->gone[i], ns);
	return e || !u->block.addr ? e : restore_block(a, u, ns);
}

int memory_undo(struct account *a, const struct device_event *e)
{
	struct ring_state *ring = account_ring(a, e->ring);
	if (!ring)
		return -MT_EMEMORY;
	for (unsigned i = 1; ring->device && i <= UNDO_DEPTH; i++) {
		struct device_undo *u = &ring->device->frees[(ring->device->next - i) % UNDO_DEPTH];
		if (u->addr == e->slot->addr && u->class == e->ext.class)
			return restore(a, u, e->ns);
	}
	a->seen.odd_undos++;
	return 0;
}

/* ---- ends ------------------------------------------------------------------------------------------------ */

static void end_space(struct share *s, enum device_space space, uint64_t ns)
{
	struct blocks *t = &s->space[space];
	for (size_t i = 0; t->entries && i <= t->mask; i++)
		if (t->entries[i].addr)
			move_block(s, space, &t->entries[i], -1, ns);
	blocks_fini(t);
}

static void end_linear_extents(struct share *s, uint64_t ns)
{
	for (size_t i = 0; i < s->extent_count; i++)
		if (s->extent[i].used && !s->extent[i].physical)
			extent_remove(s, &s->extent[i], ns);
}

static void end_physical(struct account *a, const struct share *s, uint64_t ns)
{
	for (size_t i = 0; i < s->extent_count; i++)
		if (s->extent[i].used && s->extent[i].physical)
			unmap_extent(a, (struct share *)s, &((struct share *)s)->extent[i], NULL, ns);
	for (size_t i = 0; i < a->devices->physical_count; i++)
		if (a->devices->physical[i].used && a->devices->physical[i].share == s)
			release(a, &a->devices->physical[i], ns);
}

static void reset(struct account *a, struct share *s, unsigned class, uint64_t ns)
{
	for (int space = 0; space < SPACES; space++)
		if (!class || (class != MT_CLASS_PHYSICAL && class != MT_CLASS_RESERVED && space_of(class) == (enum device_space)space))
			end_space(s, space, ns);
	if (!class || space_of(class) == SPACE_LINEAR)
		end_linear_extents(s, ns);
	if (!class || class == MT_CLASS_PHYSICAL)
		end_physical(a, s, ns);
}

int memory_reset(struct account *a, const struct device_event *e)
{
	uint64_t class = e->slot->addr;
	if (class >= MT_CLASSES)
		return 0;
	for (size_t i = 0; i < a->devices->share_room; i++)
		if (a->devices->shares[i] && (!e->ext.device || e->ext.device == i))
			reset(a, a->devices->shares[i], (unsigned)class, e->ns);
	return 0;
}

static int add_outside(const struct share *s, struct model_moment *at, size_t *room, uint32_t site, uint64_t bytes)
{
	if (at->outside_count && at->outside[at->outside_count - 1].site == site &&
	    at->outside[at->outside_count - 1].process == s->seen.process->id) {
		at->outside[at->outside_count - 1].bytes += bytes;
		return 0;
	}
	int e = vec_reserve_raw(at->outside, *room, at->outside_count + 1ul);
	if (!e)
		at->outside[at->outside_count++] = (struct model_outside){ s->seen.process->id, site, bytes };
	return e;
}

int memory_outside(const struct share *s, struct model_moment *at, size_t *room)
{
	const struct device_books *b = s->account->devices;
	const struct blocks *arrays = &s->space[SPACE_ARRAY];
	int e = 0;
	for (size_t i = 0; i < s->extent_count && !e; i++)
		if (s->extent[i].used && !s->extent[i].pool && s->extent[i].bytes)
			e = add_outside(s, at, room, s->extent[i].site, s->extent[i].bytes);
	for (size_t i = 0; arrays->entries && i <= arrays->mask && !e; i++)
		if (arrays->entries[i].addr)
			e = add_outside(s, at, room, arrays->entries[i].site, arrays->entries[i].size);
	for (size_t i = 0; i < b->physical_count && !e; i++)
		if (b->physical[i].used && b->physical[i].share == s && !b->physical[i].maps)
			e = add_outside(s, at, room, b->physical[i].site, b->physical[i].size);
	return e;
}

void memory_drop(struct share *s)
{
	for (int space = 0; space < SPACES; space++)
		blocks_fini(&s->space[space]);
	ranges_fini(&s->extents);
	free(s->extent);
	s->extent = NULL;
	s->extent_count = s->extent_room = 0;
	s->extent_free = s->last = 0;
}

void memory_fini(struct device_books *b)
{
	free(b->physical);
	b->physical = NULL;
	b->physical_count = b->physical_room = 0;
	b->physical_free = 0;
	blocks_fini(&b->handles);
	ranges_fini(&b->reserved);
	legacy_fini(&b->legacy);
}

void memory_ring_fini(struct device_ring *r)
{
	for (int i = 0; r && i < UNDO_DEPTH; i++)
		free(r->frees[i].gone);
	free(r);
}
