/*
 * PyTorch's memory snapshot, as torch.cuda.memory._snapshot() returns it: the segments of a process's pools at one
 * moment, and the events up to then. Its viewers (torch.cuda._memory_viz, pytorch.org/memory_viz) go backwards from the
 * segments, so these are as they are behind the last event.
 *
 * The events are kept in a ring of EVENTS, which bounds the memory whatever the run's length. What the driver gave is a
 * segment when a block of the pool is seen to lie in it: its events are kept in case.
 *
 * Not known is what another stream still uses when it is freed (record_stream): such a block is taken to be free at
 * once, so each free is requested and completed. Of a block of 512 bytes or less, what was asked for is not known where
 * the allocator did not ask how to round it: it is the block's size.
 */
#include "analyzer/report/export/export.h"
#include "analyzer/report/export/pickle.h"

#include "analyzer/analysis/open.h"
#include "analyzer/model/pool_layout.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { EVENTS = 500000 };

enum action { NO_ACTION, ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP, OOM };

struct event {
	uint64_t addr, size, stream, ns;
	uint32_t node, node2;
	uint32_t process, device; /* ids */
	/* of MAP and UNMAP: index + 1 of its range; 0 = none. Of SEGMENT_*: whether it is one */
	uint32_t range;
	enum action action; /* NO_ACTION: it did not happen, or was none of the pool's */
};

/* A block of the pool. */
struct live {
	struct live_key {
		uint64_t addr;
		uint32_t process, device;
	} key;
	uint64_t size, requested, stream;
	uint32_t node, node2;
	UT_hash_handle hh;
};

/* What the driver gave, by process, device and address. */
struct extent {
	uint32_t process, device;
	uint64_t addr, size, stream;
	uint64_t event; /* number of the one that made it */
	uint32_t node, node2;
	bool pool;
};

/* Addresses that memory is mapped into: those of an expandable segment if the pool has blocks there. Kept when they are
 * given back, for the events. */
struct range {
	uint32_t process, device;
	uint64_t addr, size, stream;
	bool pool, gone;
};

struct snapshot {
	struct selection *selection;
	struct event *events; /* number n at n % EVENTS, the last EVENTS of them */
	uint64_t count;
	struct live *live;
	struct extent *extents;
	size_t extent_count, extent_room;
	struct range *ranges;
	size_t range_count, range_room;
	uint64_t device_free; /* as a driver said last */
	struct model *model;  /* of another pass, where that was needed */
	struct reader *reader;
	struct pickle pickle;
	struct frame_list frames;
	bool failed;
};

/* ---- events ---------------------------------------------------------------------------------------------- */

static struct event *event_at(struct snapshot *s, uint64_t number)
{
	return number < s->count && s->count - number <= EVENTS ? &s->events[number % EVENTS] : NULL;
}

static struct event *add_event(struct snapshot *s, enum action action, const struct process *p,
			       const struct mt_event *slot, uint32_t device)
{
	struct event *e = &s->events[s->count++ % EVENTS];
	*e = (struct event){ .addr = slot->addr,
			     .size = slot->size,
			     .ns = process_ns(p, slot->ticks),
			     .node = slot->node,
			     .node2 = slot->node2,
			     .process = p->id,
			     .device = device,
			     .action = action };
	return e;
}

/* ---- what the driver gave -------------------------------------------------------------------------------- */

static int compare(const struct extent *x, const struct live_key *k)
{
	if (x->process != k->process)
		return x->process < k->process ? -1 : 1;
	if (x->device != k->device)
		return x->device < k->device ? -1 : 1;
	return x->addr < k->addr ? -1 : x->addr > k->addr;
}

/* The first extent that is not below the key. */
static size_t extent_place(const struct snapshot *s, const struct live_key *k)
{
	return SEARCH_FIRST(i, s->extent_count, compare(&s->extents[i], k) >= 0);
}

static void put_extent(struct snapshot *s, const struct extent *x)
{
	size_t at = extent_place(s, &(struct live_key){ x->addr, x->process, x->device });
	if (vec_reserve_raw(s->extents, s->extent_room, s->extent_count + 1)) {
		s->failed = true;
		return;
	}
	memmove(&s->extents[at + 1], &s->extents[at], (s->extent_count++ - at) * sizeof(*x));
	s->extents[at] = *x;
}

/* The extent that holds the address. */
static struct extent *extent_of(const struct snapshot *s, const struct live_key *k)
{
	size_t at = extent_place(s, k);
	if (at < s->extent_count && compare(&s->extents[at], k) == 0)
		return &s->extents[at];
	struct extent *x = at ? &s->extents[at - 1] : NULL;
	return x && x->process == k->process && x->device == k->device && k->addr - x->addr < x->size ? x : NULL;
}

static struct range *range_of(const struct snapshot *s, const struct live_key *k)
{
	for (size_t i = s->range_count; i-- > 0;) {
		struct range *r = &s->ranges[i];
		if (!r->gone && r->process == k->process && r->device == k->device && k->addr >= r->addr &&
		    k->addr - r->addr < r->size)
			return r;
	}
	return NULL;
}

/* Of what is unmapped or given back: the device is the thread's, which may be another than the memory's. */
static struct range *range_of_free(const struct snapshot *s, const struct process *p, uint64_t addr, uint32_t device)
{
	struct range *r = range_of(s, &(struct live_key){ addr, p->id, device });
	for (unsigned i = 0; i < p->device_count && !r; i++)
		r = range_of(s, &(struct live_key){ addr, p->id, p->devices[i].id });
	return r;
}

static void give_segment(struct snapshot *s, const struct process *p, const struct mt_event *slot, uint32_t device)
{
	struct event *e = add_event(s, SEGMENT_ALLOC, p, slot, device);
	put_extent(s, &(struct extent){ p->id, device, slot->addr, slot->size, 0, s->count - 1, e->node, e->node2,
					false });
}

static struct extent *extent_of_free(const struct snapshot *s, const struct process *p, uint64_t addr, uint32_t device)
{
	struct live_key k = { addr, p->id, device };
	struct extent *x = extent_of(s, &k);
	for (unsigned i = 0; i < p->device_count && !(x && x->addr == addr); i++) {
		k.device = p->devices[i].id;
		x = extent_of(s, &k);
	}
	return x && x->addr == addr ? x : NULL;
}

static void take_segment(struct snapshot *s, const struct process *p, const struct mt_event *slot, uint32_t device)
{
	struct extent *x = extent_of_free(s, p, slot->addr, device);
	if (!x)
		return;
	struct event *made = event_at(s, x->event);
	if (x->pool) {
		struct event *e = add_event(s, SEGMENT_FREE, p, slot, x->device);
		e->size = x->size;
		e->stream = x->stream;
		e->range = 1;
	} else if (made) {
		made->action = NO_ACTION;
	}
	size_t at = (size_t)(x - s->extents);
	memmove(x, x + 1, (--s->extent_count - at) * sizeof(*x));
}

/* The latest free of it did not happen. */
static void undo(struct snapshot *s, const struct process *p, uint64_t addr)
{
	for (uint64_t n = s->count; n-- > 0 && s->count - n <= 64;) {
		struct event *e = event_at(s, n);
		if (e->process != p->id || e->addr != addr || (e->action != SEGMENT_FREE && e->action != SEGMENT_UNMAP))
			continue;
		if (e->action == SEGMENT_FREE)
			put_extent(s, &(struct extent){ p->id, e->device, addr, e->size, e->stream, UINT64_MAX, e->node,
							e->node2, true });
		e->action = NO_ACTION;
		return;
	}
}

/* Pages that were mapped or unmapped one after the other are one event. */
static void map_pages(struct snapshot *s, enum action action, const struct process *p, const struct mt_event *slot,
		      uint32_t device)
{
	struct range *r = range_of_free(s, p, slot->addr, device);
	struct event *last = s->count ? event_at(s, s->count - 1) : NULL;
	if (!r)
		return;
	uint32_t number = (uint32_t)(r - s->ranges) + 1;
	if (last && last->action == action && last->range == number && last->addr + last->size == slot->addr &&
	    last->node == slot->node && last->node2 == slot->node2)
		last->size += slot->size;
	else
		add_event(s, action, p, slot, r->device)->range = number;
}

static void add_range(struct snapshot *s, const struct process *p, const struct mt_event *slot, uint32_t device)
{
	if (vec_reserve_raw(s->ranges, s->range_room, s->range_count + 1))
		s->failed = true;
	else
		s->ranges[s->range_count++] = (struct range){ p->id, device, slot->addr, slot->size, 0, false, false };
}

/* ---- the pool's blocks ----------------------------------------------------------------------------------- */

/* Where a block lies is a segment, of the block's stream. */
static void mark_segment(struct snapshot *s, const struct live *l)
{
	struct extent *x = extent_of(s, &l->key);
	struct range *r = x ? NULL : range_of(s, &l->key);
	if (r && !r->pool) {
		r->pool = true;
		r->stream = l->stream;
	}
	if (!x || x->pool)
		return;
	x->pool = true;
	x->stream = l->stream;
	struct event *made = event_at(s, x->event);
	if (made) {
		made->range = 1;
		made->stream = l->stream;
	}
}

static void give_block(struct snapshot *s, const struct process *p, const struct mt_event *slot,
		       const struct mt_ext_device *x)
{
	struct live *l = calloc(1, sizeof(*l)), *old;
	if (!l) {
		s->failed = true;
		return;
	}
	l->key = (struct live_key){ slot->addr, p->id, x->device };
	l->size = slot->size;
	l->requested = x->other && x->other - 1 <= slot->size ? slot->size - (x->other - 1) : slot->size;
	l->stream = x->stream;
	l->node = slot->node;
	l->node2 = slot->node2;
	HASH_REPLACE(hh, s->live, key, sizeof(l->key), l, old);
	free(old);
	struct event *e = add_event(s, ALLOC, p, slot, x->device);
	e->size = l->requested;
	e->stream = l->stream;
	mark_segment(s, l);
}

static struct live *find_block(const struct snapshot *s, const struct process *p, uint64_t addr, uint32_t device)
{
	struct live_key k;
	struct live *l;
	memset(&k, 0, sizeof(k));
	k.addr = addr;
	k.process = p->id;
	k.device = device;
	HASH_FIND(hh, s->live, &k, sizeof(k), l);
	for (unsigned i = 0; i < p->device_count && !l; i++) {
		k.device = p->devices[i].id;
		HASH_FIND(hh, s->live, &k, sizeof(k), l);
	}
	return l;
}

static void take_block(struct snapshot *s, const struct process *p, const struct mt_event *slot, uint32_t device)
{
	struct live *l = find_block(s, p, slot->addr, device);
	if (!l)
		return;
	struct event *e = add_event(s, FREE, p, slot, l->key.device);
	e->size = l->requested;
	e->stream = l->stream;
	HASH_DEL(s->live, l);
	free(l);
}

static bool is_pool(unsigned class)
{
	return class == MT_CLASS_POOL || class == MT_CLASS_WORKSPACE;
}

static void note_driver(struct snapshot *s, const struct process *p, const struct mt_event *slot,
			const struct mt_ext_device *x)
{
	switch (slot->kind) {
	case MT_DEVICE_ALLOC:
		if (x->class == MT_CLASS_RESERVED)
			add_range(s, p, slot, x->device);
		else if (x->class == MT_CLASS_DEVICE)
			give_segment(s, p, slot, x->device);
		break;
	case MT_DEVICE_FREE:
		if (x->class == MT_CLASS_RESERVED) {
			struct range *r = range_of_free(s, p, slot->addr, x->device);
			if (r)
				r->gone = true;
		} else if (x->class == MT_CLASS_DEVICE) {
			take_segment(s, p, slot, x->device);
		}
		break;
	case MT_DEVICE_MAP:
		if (x->class == MT_CLASS_PHYSICAL)
			map_pages(s, SEGMENT_MAP, p, slot, x->device);
		break;
	case MT_DEVICE_UNMAP:
		map_pages(s, SEGMENT_UNMAP, p, slot, x->device);
		break;
	case MT_DEVICE_UNDO:
		undo(s, p, slot->addr);
		break;
	default:
		break;
	}
}

static void note_pool(struct snapshot *s, const struct process *p, const struct mt_event *slot,
		      const struct mt_ext_device *x)
{
	if (slot->kind == MT_DEVICE_ALLOC) {
		give_block(s, p, slot, x);
	} else if (slot->kind == MT_DEVICE_FREE) {
		take_block(s, p, slot, x->device);
	} else if (slot->kind == MT_DEVICE_FAIL) {
		struct event *e = add_event(s, OOM, p, slot, x->device);
		e->size = slot->addr;
		e->addr = s->device_free;
	}
}

static void note_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread)
{
	struct snapshot *s = arg;
	(void)ring;
	(void)thread;
	if (slot->kind < MT_DEVICE_ALLOC || slot->kind > MT_DEVICE_INFO || !selection_has(s->selection, p))
		return;
	struct mt_ext_device x;
	memcpy(&x, slot + 1, sizeof(x));
	if (slot->kind == MT_DEVICE_INFO)
		s->device_free = slot->addr;
	else if (is_pool(x.class))
		note_pool(s, p, slot, &x);
	else
		note_driver(s, p, slot, &x);
}

/* ---- whose ----------------------------------------------------------------------------------------------- */

static bool has_pool(const struct model_share *share)
{
	return share->layer[LAYER_POOL].allocations || share->ooms;
}

/* The process whose pools are looked at: the only one that has some. */
static int find_process(const struct selection *sel, const struct process **found)
{
	*found = NULL;
	for (unsigned i = 0; i < model_devices(sel->model); i++) {
		const struct model_device *d = model_device(sel->model, i);
		for (unsigned k = 0; k < d->share_count && selection_has_device(sel, i); k++) {
			const struct process *p = d->shares[k]->process;
			if (!has_pool(d->shares[k]) || !selection_has(sel, p) || p == *found)
				continue;
			if (*found)
				return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET,
						 "a snapshot is of one process: --process %u or --process %u ...",
						 (*found)->pid, p->pid);
			*found = p;
		}
	}
	return *found ? 0
		      : error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET,
				  "no process here has a pool of PyTorch's on a device");
}

/* ---- another pass, up to a device's peak ----------------------------------------------------------------- */

static void forget(struct snapshot *s)
{
	struct live *l, *next;
	HASH_ITER(hh, s->live, l, next)
	{
		HASH_DEL(s->live, l);
		free(l);
	}
	s->count = s->device_free = 0;
	s->extent_count = s->range_count = 0;
}

static int run_to_peak(struct snapshot *s, const struct process *p)
{
	const struct selection *sel = s->selection;
	const struct model_device *at = NULL;
	for (unsigned i = 0; i < model_devices(sel->model); i++) {
		const struct model_share *share = model_share(sel->model, i, p->id);
		if (!share || !has_pool(share) || !selection_has_device(sel, i))
			continue;
		if (at)
			return error_set(MT_EUSAGE, "--at", ERROR_NO_OFFSET,
					 "peak of which device? --device %s or --device %s", at->name,
					 model_device(sel->model, i)->name);
		at = model_device(sel->model, i);
	}
	struct model_query q = MODEL_QUERY_ALL;
	q.until_event = at ? at->peak.event : 0;
	q.keep_blocks = true;
	q.on_event = note_event;
	q.arg = s;
	forget(s);
	return selection_run_again(sel, &s->reader, &s->model, &q);
}

/* ---- writing: frames ------------------------------------------------------------------------------------- */

static void write_text(struct snapshot *s, const char *text)
{
	char *clean = export_clean(text ? text : "");
	pickle_text(&s->pickle, clean ? clean : "");
	s->failed = s->failed || !clean;
	free(clean);
}

static void write_frame(struct snapshot *s, const struct frame *f)
{
	struct pickle *p = &s->pickle;
	if (pickle_recall(p, f))
		return;
	char *name = frame_text(f);
	pickle_dict(p);
	pickle_text(p, "name");
	write_text(s, name ? name : "");
	pickle_text(p, "filename");
	write_text(s, f->file ? f->file : f->library);
	pickle_text(p, "line");
	pickle_int(p, f->line);
	pickle_dict_end(p);
	pickle_remember(p, f);
	s->failed = s->failed || !name;
	free(name);
}

/* "frames": those of a stack are written once, since viewers tell stacks apart by the list. */
static void write_frames(struct snapshot *s, uint32_t process, uint32_t node, uint32_t node2)
{
	struct stacks *stacks = s->selection->stacks;
	uint32_t stack = stacks_of(stacks, reader_process(s->selection->reader, process), node, node2);
	const void *key = (const void *)(uintptr_t)(((uint64_t)stacks_merged(stacks, stack) << 1) | 1);
	pickle_text(&s->pickle, "frames");
	if (pickle_recall(&s->pickle, key))
		return;
	s->failed = stacks_list_shown(stacks, stacks_merged(stacks, stack), selection_flags(s->selection->options),
				      &s->frames) < 0 ||
		    s->failed;
	pickle_list(&s->pickle);
	for (size_t i = 0; i < s->frames.count; i++) {
		write_frame(s, s->frames.frames[i]);
		pickle_append(&s->pickle);
	}
	pickle_remember(&s->pickle, key);
}

static void write_int(struct pickle *p, const char *name, uint64_t n)
{
	pickle_text(p, name);
	pickle_int(p, n);
}

/* ---- writing: segments ----------------------------------------------------------------------------------- */

static void begin_block(struct pickle *p, uint64_t addr, uint64_t size, uint64_t requested, const char *state)
{
	pickle_dict(p);
	write_int(p, "address", addr);
	write_int(p, "size", size);
	write_int(p, "requested_size", requested);
	pickle_text(p, "state");
	pickle_text(p, state);
}

static void end_block(struct pickle *p)
{
	pickle_dict_end(p);
	pickle_append(p);
}

static void write_hole(struct pickle *p, uint64_t from, uint64_t to)
{
	if (to <= from)
		return;
	begin_block(p, from, to - from, to - from, "inactive");
	pickle_text(p, "frames");
	pickle_list(p);
	end_block(p);
}

struct place {
	struct snapshot *snapshot;
	const struct process *process;
	uint32_t device; /* id */
	uint32_t ordinal;
};

static uint64_t requested_of(const struct place *at, const struct pool_layout_block *b, const struct live **l)
{
	*l = find_block(at->snapshot, at->process, b->addr, at->device);
	return *l && (*l)->requested <= b->size ? (*l)->requested : b->size;
}

static void write_blocks(const struct place *at, const struct pool_layout_segment *seg)
{
	struct pickle *p = &at->snapshot->pickle;
	uint64_t end = seg->addr;
	pickle_text(p, "blocks");
	pickle_list(p);
	for (uint32_t i = 0; i < seg->block_count; i++) {
		const struct pool_layout_block *b = &seg->blocks[i];
		const struct live *l;
		uint64_t requested = requested_of(at, b, &l);
		write_hole(p, end, b->addr);
		begin_block(p, b->addr, b->size, requested, "active_allocated");
		write_frames(at->snapshot, at->process->id, l ? l->node : 0, l ? l->node2 : 0);
		end_block(p);
		end = b->addr + b->size;
	}
	write_hole(p, end, seg->addr + seg->size);
}

static void write_segment(const struct place *at, const struct pool_layout_segment *seg)
{
	struct snapshot *s = at->snapshot;
	struct pickle *p = &s->pickle;
	const struct live *l;
	uint64_t requested = 0;
	for (uint32_t i = 0; i < seg->block_count; i++)
		requested += requested_of(at, &seg->blocks[i], &l);
	const struct extent *x = extent_of(s, &(struct live_key){ seg->addr, at->process->id, at->device });
	pickle_dict(p);
	write_int(p, "device", at->ordinal);
	write_int(p, "address", seg->addr);
	write_int(p, "total_size", seg->size);
	write_int(p, "allocated_size", seg->used);
	write_int(p, "active_size", seg->used);
	write_int(p, "requested_size", requested);
	write_int(p, "stream", seg->stream);
	pickle_text(p, "segment_type");
	pickle_text(p, seg->sizes == POOL_LAYOUT_SMALL ? "small" : "large");
	pickle_text(p, "segment_pool_id");
	pickle_pair(p, 0, seg->private);
	pickle_text(p, "is_expandable");
	pickle_bool(p, seg->expandable);
	write_frames(s, at->process->id, x ? x->node : 0, x ? x->node2 : 0);
	write_blocks(at, seg);
	pickle_dict_end(p);
	pickle_append(p);
}

static int write_segments_of(struct snapshot *s, const struct process *process, uint32_t ordinal)
{
	const struct model *m = s->model ? s->model : s->selection->model;
	int e = 0;
	for (uint32_t i = 0; i < model_devices(m) && e == 0; i++) {
		const struct model_share *share = model_share(m, i, process->id);
		struct pool_layout *layout = NULL;
		if (!share || share->ordinal != ordinal || !selection_has_device(s->selection, i))
			continue;
		e = pool_layout_take(&layout, m, i, process->id);
		const struct place at = { s, process, share->id, share->ordinal };
		for (size_t k = 0; e == 0 && k < layout->segment_count; k++)
			write_segment(&at, &layout->segments[k]);
		pool_layout_free(layout);
	}
	return e;
}

/* One more than the highest number of a device. */
static uint32_t ordinals_of(const struct process *process)
{
	uint32_t count = 0;
	for (unsigned i = 0; i < process->device_count; i++)
		if (process->devices[i].ordinal >= count && process->devices[i].ordinal < 1024)
			count = process->devices[i].ordinal + 1;
	return count;
}

/* In the order of devices, as PyTorch's are. */
static int write_segments(struct snapshot *s, const struct process *process)
{
	int e = 0;
	pickle_text(&s->pickle, "segments");
	pickle_list(&s->pickle);
	for (uint32_t ordinal = 0; ordinal < ordinals_of(process) && e == 0; ordinal++)
		e = write_segments_of(s, process, ordinal);
	return e;
}

/* ---- writing: events ------------------------------------------------------------------------------------- */

/* Is it the pool's? Then it has the stream of its segment. */
static bool settle(const struct snapshot *s, struct event *e)
{
	if (e->action == SEGMENT_MAP || e->action == SEGMENT_UNMAP) {
		e->stream = s->ranges[e->range - 1].stream;
		return s->ranges[e->range - 1].pool;
	}
	return e->action != NO_ACTION && ((e->action != SEGMENT_ALLOC && e->action != SEGMENT_FREE) || e->range);
}

static void write_event(struct snapshot *s, const struct event *e, const char *action)
{
	struct pickle *p = &s->pickle;
	pickle_dict(p);
	pickle_text(p, "action");
	pickle_text(p, action);
	write_int(p, e->action == OOM ? "device_free" : "addr", e->addr);
	write_int(p, "size", e->size);
	write_int(p, "stream", e->stream);
	write_int(p, "time_us", (reader_origin_real_ns(s->selection->reader) + e->ns) / 1000);
	write_frames(s, e->process, e->node, e->node2);
	pickle_dict_end(p);
	pickle_append(p);
}

static void write_events_of(struct snapshot *s, const struct process *process, uint32_t ordinal)
{
	static const char *const names[] = { [ALLOC] = "alloc",
					     [FREE] = "free_requested",
					     [SEGMENT_ALLOC] = "segment_alloc",
					     [SEGMENT_FREE] = "segment_free",
					     [SEGMENT_MAP] = "segment_map",
					     [SEGMENT_UNMAP] = "segment_unmap",
					     [OOM] = "oom" };
	pickle_list(&s->pickle);
	for (uint64_t n = s->count > EVENTS ? s->count - EVENTS : 0; n < s->count; n++) {
		struct event *e = event_at(s, n);
		const struct process_device *d = process_device(process, e->device);
		if (e->process != process->id || !d || d->ordinal != ordinal || !settle(s, e) ||
		    e->ns < s->selection->from_ns)
			continue;
		write_event(s, e, names[e->action]);
		if (e->action == FREE)
			write_event(s, e, "free_completed");
	}
}

static void write_events(struct snapshot *s, const struct process *process)
{
	pickle_text(&s->pickle, "device_traces");
	pickle_list(&s->pickle);
	for (uint32_t ordinal = 0; ordinal < ordinals_of(process); ordinal++) {
		write_events_of(s, process, ordinal);
		pickle_append(&s->pickle);
	}
}

static void look_ahead(struct snapshot *s, const struct process *process)
{
	struct stacks *stacks = s->selection->stacks;
	for (uint64_t n = s->count > EVENTS ? s->count - EVENTS : 0; n < s->count; n++) {
		const struct event *e = event_at(s, n);
		if (e->process != process->id)
			continue;
		stacks_prepare(stacks, process, e->node);
		stacks_prepare(stacks, process, e->node2);
	}
	for (const struct live *l = s->live; l; l = l->hh.next) {
		if (l->key.process != process->id)
			continue;
		stacks_prepare(stacks, process, l->node);
		stacks_prepare(stacks, process, l->node2);
	}
	stacks_look_ahead(stacks, NULL);
}

static int write_snapshot(struct snapshot *s)
{
	const struct process *process;
	int e = find_process(s->selection, &process);
	if (e == 0 && s->selection->options->at.kind == WHEN_PEAK)
		e = run_to_peak(s, process);
	if (e < 0)
		return e;
	look_ahead(s, process);
	pickle_open(&s->pickle);
	pickle_dict(&s->pickle);
	e = write_segments(s, process);
	write_events(s, process);
	pickle_text(&s->pickle, "allocator_settings");
	pickle_dict(&s->pickle);
	pickle_dict_end(&s->pickle);
	pickle_text(&s->pickle, "external_annotations");
	pickle_list(&s->pickle);
	pickle_dict_end(&s->pickle);
	int closed = pickle_close(&s->pickle);
	return e < 0 ? e : s->failed ? error_memory() : closed;
}

/* ---- format ---------------------------------------------------------------------------------------------- */

static int ask(struct export *x, struct model_query *q)
{
	struct snapshot *s = x->state = calloc(1, sizeof(*s));
	if (!s || !(s->events = malloc(EVENTS * sizeof(*s->events))))
		return error_memory();
	if (x->selection->options->filter)
		return error_set(MT_EUSAGE, "--filter", ERROR_NO_OFFSET, "a snapshot has all blocks");
	s->selection = x->selection;
	q->keep_blocks = true;
	q->on_event = note_event;
	q->arg = s;
	return 0;
}

static int close_snapshot(struct export *x)
{
	struct snapshot *s = x->state;
	int e = 0;
	if (!s)
		return 0;
	if (!x->failed)
		e = write_snapshot(s);
	forget(s);
	model_free(s->model);
	reader_close(s->reader);
	free(s->events);
	free(s->extents);
	free(s->ranges);
	free(s->frames.frames);
	free(s);
	return e;
}

const struct export_ops export_snapshot = { .name = "snapshot", .binary = true, .ask = ask, .close = close_snapshot };
