/*
 * PyTorch's memory snapshot (torch.cuda.memory._dump_snapshot()): the segments of a process's pools at its end, and the
 * last events before it. What was alive when these begin is found by going back from the end, event by event, as
 * PyTorch's own viewers do. It is allocated at the trace's start, since nobody knows when it was.
 *
 * Events have what was asked for, and the blocks of the end also what the pool gave. Of other blocks that is worked out
 * as the pool did it: the request is rounded, and what is left of the free block that it is cut from is added if the
 * pool would not have split that off.
 */
#include "analyzer/import/import.h"
#include "analyzer/import/import_trace.h"
#include "analyzer/import/unpickle.h"

#include "analyzer/replay/pool/cuda_pool.h"
#include "analyzer/replay/pool/replay.h"
#include "analyzer/util/blocks.h"
#include "analyzer/util/error.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/output.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"
#include "format/fnv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT  "a memory snapshot of PyTorch's"
#define LACKS "the host's memory, other processes, and what lies outside of PyTorch's pools"

#define MIN_BLOCK   512u
#define SMALL_BLOCK (1u << 20) /* requests up to that have segments of their own */
#define MAX_DEVICES 1024u
#define MAX_PAGES   (1u << 22)

enum key {
	ACTION,
	ADDR,
	SIZE,
	STREAM,
	TIME,
	FRAMES,
	DEVICE_FREE,
	POOL_ID,
	NAME,
	FILENAME,
	LINE,
	ADDRESS,
	REQUESTED,
	STATE,
	ORDINAL,
	TOTAL,
	BLOCKS,
	SEGMENT_POOL_ID,
	EXPANDABLE,
	SEGMENTS,
	TRACES,
	SETTINGS,
	CONF,
	HISTORY,
	REAL_SIZE,
};

static const char *const keys[UNPICKLE_KEYS + 1] = {
	[ACTION] = "action",
	[ADDR] = "addr",
	[SIZE] = "size",
	[STREAM] = "stream",
	[TIME] = "time_us",
	[FRAMES] = "frames",
	[DEVICE_FREE] = "device_free",
	[POOL_ID] = "pool_id",
	[NAME] = "name",
	[FILENAME] = "filename",
	[LINE] = "line",
	[ADDRESS] = "address",
	[REQUESTED] = "requested_size",
	[STATE] = "state",
	[ORDINAL] = "device",
	[TOTAL] = "total_size",
	[BLOCKS] = "blocks",
	[SEGMENT_POOL_ID] = "segment_pool_id",
	[EXPANDABLE] = "is_expandable",
	[SEGMENTS] = "segments",
	[TRACES] = "device_traces",
	[SETTINGS] = "allocator_settings",
	[CONF] = "PYTORCH_CUDA_ALLOC_CONF",
	[HISTORY] = "history",
	[REAL_SIZE] = "real_size",
};

/* What the caller's values are: the kind is the upper 4 of their 28 bits. A history is that of a block before 2.1. */
enum mine { A_FRAME = 1, A_STACK, A_HISTORY, A_SNAPSHOT };
#define MINE_BITS 24

enum action { OTHER, ALLOC, FREE, FREED, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP, OOM };
static const char *const actions[] = { "",
				       "alloc",
				       "free_requested",
				       "free_completed",
				       "segment_alloc",
				       "segment_free",
				       "segment_map",
				       "segment_unmap",
				       "oom" };

struct event {
	uint64_t addr : 48, pool : 16;            /* addr of OOM: bytes that the device had free */
	uint64_t size : 48, action : 8, last : 8; /* last: this block is one of the end's */
	uint64_t time_us;
	uint32_t stack;
	uint32_t stream; /* index */
};

/* Events of one list, which are those of a device. */
struct run {
	uint32_t list;
	size_t from, to;
};

/* A list of lists: device_traces is one. */
struct traces {
	uint32_t number;
	uint32_t *lists;
	size_t count;
};

/* A block of the end. */
struct kept {
	uint64_t addr, size, requested; /* requested 0: unknown */
	uint32_t list, stack;
};

struct segment {
	uint64_t addr, size;
	uint32_t list; /* of its blocks; 0 = none */
	uint32_t stack, device, stream;
	uint16_t pool;
	bool expandable;
};

/* What cudaMalloc gave while events are gone through, and the pool's large blocks in it. */
struct extent {
	uint64_t addr, size;
	struct spot {
		uint64_t addr, size;
	} *spots; /* by address */
	size_t count, room;
};

/* Of a device. In `live`, `given` and `pages` are blocks, segments and pages of expandable segments: of each its site
 * is the index of one of the end's, or BLOCK_NO_SITE, and its thread the index of its stream; its ns is its pool or, of
 * a page, its handle. */
struct device {
	uint32_t ordinal, id;
	size_t from, to; /* its events */
	struct blocks live, given, pages;
	struct blocks last; /* blocks of the end */
	struct range {
		uint64_t addr, size, pages; /* pages: mapped now */
	} *ranges;                          /* by address */
	size_t range_count, range_room;
	struct extent *extents; /* by address */
	size_t extent_count, extent_room;
	uint64_t allocated, reserved;
};

struct torch {
	struct input in;
	struct imported *out;
	struct import_trace *trace;
	struct import_source source;
	const struct unpickle *reader;
	struct event *events;
	size_t event_count, event_room;
	struct run *runs;
	size_t run_count, run_room;
	struct traces *traces;
	size_t trace_count, trace_room;
	struct kept *kept;
	size_t kept_count, kept_room;
	struct segment *segments;
	size_t segment_count, segment_room;
	struct import_stack *stacks; /* from 1 on */
	size_t stack_count, stack_room;
	struct hash_index stack_index;
	uint32_t *frames;
	size_t frame_room;
	uint64_t *streams;
	size_t stream_count, stream_room;
	uint32_t top_traces; /* number of the list */
	bool whole;          /* it has the keys of a snapshot */
	char *conf;
	struct cuda_pool_settings settings;
	struct device *devices;
	uint32_t device_count;
	uint64_t page, handles, start_us;
	int error;
	uint32_t hooks[sizeof(actions) / sizeof(*actions)];
};

/* ---- reading --------------------------------------------------------------------------------------------- */

static int64_t mine_of(struct value v, enum mine kind)
{
	return v.kind == VALUE_MINE && v.n >> MINE_BITS == kind ? (int64_t)(v.n & ((1u << MINE_BITS) - 1)) : 0;
}

static struct value make_mine(enum mine kind, uint64_t n)
{
	return (struct value){ VALUE_MINE, (uint64_t)kind << MINE_BITS | n };
}

static uint64_t number_of(struct value v)
{
	return v.kind == VALUE_INT ? v.n : 0;
}

static uint16_t pool_of(struct value v)
{
	return v.kind == VALUE_PAIR ? (uint16_t)((v.n & 0x3fff) | v.n >> 14) : 0;
}

static int stream_of(struct torch *t, struct value v, uint32_t *index)
{
	uint64_t stream = number_of(v);
	for (size_t i = t->stream_count; i-- > 0;) {
		if (t->streams[i] == stream) {
			*index = (uint32_t)i;
			return 0;
		}
	}
	if (t->stream_count >= 4096)
		return input_bad(&t->in, "has more than 4,096 streams");
	int e = vec_reserve_raw(t->streams, t->stream_room, t->stream_count + 1);
	*index = (uint32_t)t->stream_count;
	if (!e)
		t->streams[t->stream_count++] = stream;
	return e;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n >= m && !strcmp(text + n - m, end);
}

static int take_frame(struct torch *t, const struct value *f, struct value *as)
{
	const char *file = unpickle_text(t->reader, f[FILENAME]);
	file = file ? file : "";
	bool python = ends_with(file, ".py") || *file == '<';
	uint32_t frame = import_frame(t->trace, &(struct import_frame){
							.function = unpickle_text(t->reader, f[NAME]),
							.file = *file == '?' ? NULL : file,
							.library = strstr(file, ".so") ? file : "C++",
							.line = (uint32_t)number_of(f[LINE]),
							.python = python,
						});
	if (frame >> MINE_BITS)
		return input_bad(&t->in, "has too many frames");
	*as = make_mine(A_FRAME, frame);
	return 0;
}

static uint64_t hash_of(struct import_stack s)
{
	return mt_fnv_stir(mt_fnv(MT_FNV_START, &s, sizeof(s)));
}

static uint64_t stack_hash(const void *stacks, uint32_t number)
{
	return hash_of(((const struct import_stack *)stacks)[number]);
}

static int take_stack(struct torch *t, const struct unpickled *u, struct value *as)
{
	int e = vec_reserve_raw(t->frames, t->frame_room, u->count);
	if (!e)
		e = vec_reserve(t->stacks, t->stack_room, t->stack_count + 2);
	if (!e && hash_index_is_full(&t->stack_index, t->stack_count))
		e = hash_index_grow(&t->stack_index, t->stacks, t->stack_count, stack_hash);
	if (e)
		return e;
	for (size_t i = 0; i < u->count; i++)
		t->frames[i] = (uint32_t)mine_of(u->items[i], A_FRAME);
	struct import_stack s = import_stack(t->trace, t->frames, u->count);
	uint64_t hash = hash_of(s);
	size_t at = hash_index_home(&t->stack_index, hash);
	uint32_t n;
	for (; (n = hash_index_candidate(&t->stack_index, hash, &at)) != 0; at = hash_index_after(&t->stack_index, at))
		if (!memcmp(&t->stacks[n], &s, sizeof(s)))
			break;
	if (!n) {
		n = (uint32_t)++t->stack_count;
		t->stacks[n] = s;
		hash_index_set(&t->stack_index, at, n, hash);
	}
	*as = make_mine(A_STACK, n);
	return n >> MINE_BITS ? input_bad(&t->in, "has too many stacks") : 0;
}

static int take_lists(struct torch *t, const struct unpickled *u)
{
	int e = u->count > MAX_DEVICES ? 0 : vec_reserve(t->traces, t->trace_room, t->trace_count + 1);
	if (e || u->count > MAX_DEVICES)
		return e;
	struct traces *x = &t->traces[t->trace_count];
	x->lists = calloc(u->count, sizeof(*x->lists));
	if (!x->lists)
		return error_memory();
	x->number = u->number;
	x->count = u->count;
	for (size_t i = 0; i < u->count; i++)
		x->lists[i] = u->items[i].kind == VALUE_LIST ? (uint32_t)u->items[i].n : 0;
	t->trace_count++;
	return 0;
}

/* A list of frames is a stack. */
static int take_list(struct torch *t, const struct unpickled *u, struct value *as)
{
	if (!u->count)
		return 0;
	if (u->items[0].kind == VALUE_LIST)
		return take_lists(t, u);
	int64_t history = mine_of(u->items[0], A_HISTORY);
	if (history)
		*as = make_mine(A_STACK, (uint64_t)history);
	return mine_of(u->items[0], A_FRAME) ? take_stack(t, u, as) : 0;
}

static enum action action_of(const char *name)
{
	for (unsigned i = 1; name && i < sizeof(actions) / sizeof(*actions); i++)
		if (!strcmp(name, actions[i]))
			return (enum action)i;
	return OTHER;
}

/* Events of one list follow each other. */
static int extend_run(struct torch *t, uint32_t list)
{
	struct run *last = t->run_count ? &t->runs[t->run_count - 1] : NULL;
	if (!last || last->list != list) {
		for (size_t i = 0; i < t->run_count; i++)
			if (t->runs[i].list == list)
				return input_bad(&t->in, "mixes the events of its devices");
		int e = t->run_count > MAX_DEVICES ? input_bad(&t->in, "has more than 1,024 devices")
						   : vec_reserve(t->runs, t->run_room, t->run_count + 1);
		if (e)
			return e;
		last = &t->runs[t->run_count++];
		*last = (struct run){ list, t->event_count, t->event_count };
	}
	last->to++;
	return 0;
}

#define FIT48(n) ((n) >> 48 ? (1ull << 48) - 1 : (n))

static int take_event(struct torch *t, const struct value *f, uint32_t into, struct value *as)
{
	enum action action = action_of(unpickle_text(t->reader, f[ACTION]));
	uint32_t stream = 0;
	as->kind = VALUE_GONE;
	if (action == OTHER)
		return 0;
	int e = vec_reserve_raw(t->events, t->event_room, t->event_count + 1);
	if (!e)
		e = stream_of(t, f[STREAM], &stream);
	if (!e)
		e = extend_run(t, into);
	if (e)
		return e;
	t->events[t->event_count++] = (struct event){
		.addr = FIT48(number_of(f[action == OOM ? DEVICE_FREE : ADDR])),
		.pool = pool_of(f[POOL_ID]),
		.size = FIT48(number_of(f[SIZE])),
		.action = action,
		.time_us = number_of(f[TIME]),
		.stack = (uint32_t)mine_of(f[FRAMES], A_STACK),
		.stream = stream,
	};
	t->out->untimed += !number_of(f[TIME]);
	return 0;
}

static int take_block(struct torch *t, const struct value *f, uint32_t into, struct value *as)
{
	const char *state = unpickle_text(t->reader, f[STATE]);
	as->kind = VALUE_GONE;
	if (!state || strcmp(state, "active_allocated"))
		return 0;
	int e = vec_reserve_raw(t->kept, t->kept_room, t->kept_count + 1);
	int64_t stack = mine_of(f[FRAMES].kind ? f[FRAMES] : f[HISTORY], A_STACK);
	if (!e)
		t->kept[t->kept_count++] = (struct kept){ number_of(f[ADDRESS]), number_of(f[SIZE]),
							  number_of(f[REQUESTED]), into, (uint32_t)stack };
	return e;
}

static int take_segment(struct torch *t, const struct value *f, struct value *as)
{
	uint32_t stream;
	int e = vec_reserve_raw(t->segments, t->segment_room, t->segment_count + 1);
	as->kind = VALUE_GONE;
	if (!e)
		e = stream_of(t, f[STREAM], &stream);
	if (!e && number_of(f[ORDINAL]) >= MAX_DEVICES)
		e = input_bad(&t->in, "has more than 1,024 devices");
	if (!e)
		t->segments[t->segment_count++] = (struct segment){
			.addr = number_of(f[ADDRESS]),
			.size = number_of(f[TOTAL]),
			.list = f[BLOCKS].kind == VALUE_LIST ? (uint32_t)f[BLOCKS].n : 0,
			.stack = (uint32_t)mine_of(f[FRAMES], A_STACK),
			.device = (uint32_t)number_of(f[ORDINAL]),
			.stream = stream,
			.pool = pool_of(f[SEGMENT_POOL_ID]),
			.expandable = number_of(f[EXPANDABLE]),
		};
	return e;
}

/* The settings come as the variable's text. */
static int take_settings(struct torch *t, const struct value *f)
{
	const char *text = unpickle_text(t->reader, f[CONF]);
	free(t->conf);
	t->conf = output_format("%s", text ? text : "");
	return t->conf ? 0 : error_memory();
}

static int take(void *arg, const struct unpickled *u, struct value *as)
{
	struct torch *t = arg;
	const struct value *f = u->fields;
	t->reader = u->reader;
	if (u->list)
		return take_list(t, u, as);
	if (f[ACTION].kind == VALUE_TEXT)
		return take_event(t, f, u->into, as);
	if (f[FILENAME].kind == VALUE_TEXT)
		return take_frame(t, f, as);
	if (f[REAL_SIZE].kind == VALUE_INT)
		*as = make_mine(A_HISTORY, (uint64_t)mine_of(f[FRAMES], A_STACK));
	else if (f[STATE].kind == VALUE_TEXT)
		return take_block(t, f, u->into, as);
	else if (f[TOTAL].kind == VALUE_INT)
		return take_segment(t, f, as);
	else if (f[CONF].kind == VALUE_TEXT)
		return take_settings(t, f);
	else if (f[SEGMENTS].kind == VALUE_LIST) {
		t->whole = true;
		t->top_traces = f[TRACES].kind == VALUE_LIST ? (uint32_t)f[TRACES].n : 0;
	}
	return 0;
}

/* ---- which events and blocks are whose ------------------------------------------------------------------- */

static int make_devices(struct torch *t)
{
	const struct traces *x = NULL;
	for (size_t i = 0; i < t->trace_count; i++)
		if (t->traces[i].number == t->top_traces)
			x = &t->traces[i];
	t->device_count = x ? (uint32_t)x->count : 0;
	for (size_t i = 0; i < t->segment_count; i++)
		if (t->segments[i].device >= t->device_count)
			t->device_count = t->segments[i].device + 1;
	t->devices = calloc(t->device_count + 1u, sizeof(*t->devices));
	if (!t->devices)
		return error_memory();
	for (uint32_t i = 0; i < t->device_count; i++) {
		struct device *d = &t->devices[i];
		d->ordinal = i;
		for (size_t k = 0; x && i < x->count && k < t->run_count; k++) {
			if (t->runs[k].list == x->lists[i]) {
				d->from = t->runs[k].from;
				d->to = t->runs[k].to;
			}
		}
	}
	return 0;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Memory is mapped and unmapped in whole pages, whose size nobody noted. */
static int find_page(struct torch *t)
{
	uint64_t page = 0, mapped = 0;
	for (size_t i = 0; i < t->event_count; i++) {
		const struct event *e = &t->events[i];
		if (e->action == SEGMENT_MAP || e->action == SEGMENT_UNMAP)
			page = common_divisor(common_divisor(page, e->addr), e->size);
	}
	for (size_t i = 0; i < t->segment_count; i++) {
		const struct segment *s = &t->segments[i];
		if (s->expandable) {
			page = common_divisor(common_divisor(page, s->addr), s->size);
			mapped += s->size;
		}
	}
	for (page = page ? page : 1; page % 2 == 0 && page > 2u << 20;)
		page /= 2;
	t->page = page;
	return mapped / page > MAX_PAGES ? input_bad(&t->in, "maps memory in pieces that are too small") : 0;
}

/* ---- back from the end ----------------------------------------------------------------------------------- */

/* False: something is there already. */
static bool put(struct torch *t, struct blocks *table, const struct block *b)
{
	if (!b->addr || blocks_find(table, b->addr))
		return false;
	t->error = t->error ? t->error : blocks_put(table, b);
	return true;
}

static bool take_out(struct blocks *table, uint64_t addr, struct block *b)
{
	struct block *found = blocks_find(table, addr);
	if (!found)
		return false;
	*b = *found;
	blocks_remove(table, found);
	return true;
}

static bool put_pages(struct torch *t, struct device *d, uint64_t addr, uint64_t size, uint32_t stream)
{
	bool all = true;
	for (uint64_t at = addr; at < addr + size && d->pages.count < MAX_PAGES; at += t->page)
		all &= put(t, &d->pages, &(struct block){ at, t->page, ++t->handles, BLOCK_NO_SITE, stream });
	return all;
}

static bool take_pages(struct torch *t, struct device *d, uint64_t addr, uint64_t size)
{
	struct block gone;
	bool all = true;
	for (uint64_t at = addr; at < addr + size && d->pages.count; at += t->page)
		all &= take_out(&d->pages, at, &gone);
	return all;
}

static int begin_at_end(struct torch *t)
{
	for (uint32_t i = 0; i < t->segment_count && !t->error; i++) {
		const struct segment *s = &t->segments[i];
		struct device *d = &t->devices[s->device];
		if (s->expandable)
			put_pages(t, d, s->addr, s->size, s->stream);
		else
			put(t, &d->given, &(struct block){ s->addr, s->size, s->pool, i, s->stream });
		const size_t low = SEARCH_FIRST(i, t->kept_count, t->kept[i].list >= s->list);
		for (size_t k = low; s->list && k < t->kept_count && t->kept[k].list == s->list && !t->error; k++) {
			const struct kept *b = &t->kept[k];
			const struct block live = { b->addr, b->size, s->pool, (uint32_t)k, s->stream };
			if (put(t, &d->live, &live))
				put(t, &d->last, &live);
		}
	}
	return t->error;
}

/* What was there before the event. False: it does not fit what was there behind it. */
static bool undo(struct torch *t, struct device *d, struct event *e)
{
	const struct block there = { e->addr, e->size, e->pool, BLOCK_NO_SITE, e->stream };
	struct block gone;
	switch ((enum action)e->action) {
	case ALLOC:
		if (!take_out(&d->live, e->addr, &gone))
			return false;
		e->last = gone.site != BLOCK_NO_SITE;
		return true;
	case FREE:
		return put(t, &d->live, &there);
	case SEGMENT_ALLOC:
		return take_out(&d->given, e->addr, &gone);
	case SEGMENT_FREE:
		return put(t, &d->given, &there);
	case SEGMENT_MAP:
		return take_pages(t, d, e->addr, e->size);
	case SEGMENT_UNMAP:
		return put_pages(t, d, e->addr, e->size, e->stream);
	default:
		return true;
	}
}

static int go_back(struct torch *t)
{
	for (uint32_t i = 0; i < t->device_count && !t->error; i++)
		for (size_t k = t->devices[i].to; k-- > t->devices[i].from && !t->error;)
			t->out->odd += !undo(t, &t->devices[i], &t->events[k]);
	return t->error;
}

/* ---- sizes of blocks ------------------------------------------------------------------------------------- */

/* The first that is not below the address. */
static size_t extent_place(const struct device *d, uint64_t addr)
{
	return SEARCH_FIRST(i, d->extent_count, d->extents[i].addr >= addr);
}

static struct extent *extent_of(const struct device *d, uint64_t addr)
{
	size_t at = extent_place(d, addr);
	struct extent *x = at < d->extent_count && d->extents[at].addr == addr ? &d->extents[at]
			   : at                                                ? &d->extents[at - 1]
									       : NULL;
	return x && addr - x->addr < x->size ? x : NULL;
}

static size_t spot_place(const struct extent *x, uint64_t addr)
{
	return SEARCH_FIRST(i, x->count, x->spots[i].addr >= addr);
}

static void add_extent(struct torch *t, struct device *d, uint64_t addr, uint64_t size)
{
	size_t at = extent_place(d, addr);
	if (!t->error)
		t->error = vec_reserve_raw(d->extents, d->extent_room, d->extent_count + 1);
	if (t->error)
		return;
	memmove(&d->extents[at + 1], &d->extents[at], (d->extent_count++ - at) * sizeof(*d->extents));
	d->extents[at] = (struct extent){ .addr = addr, .size = size };
}

static void remove_extent(struct device *d, uint64_t addr)
{
	size_t at = extent_place(d, addr);
	if (at >= d->extent_count || d->extents[at].addr != addr)
		return;
	free(d->extents[at].spots);
	memmove(&d->extents[at], &d->extents[at + 1], (--d->extent_count - at) * sizeof(*d->extents));
}

static void add_spot(struct torch *t, struct extent *x, uint64_t addr, uint64_t size)
{
	size_t at = spot_place(x, addr);
	if (at < x->count && x->spots[at].addr == addr) {
		x->spots[at].size = size;
		return;
	}
	if (!t->error)
		t->error = vec_reserve_raw(x->spots, x->room, x->count + 1);
	if (t->error)
		return;
	memmove(&x->spots[at + 1], &x->spots[at], (x->count++ - at) * sizeof(*x->spots));
	x->spots[at] = (struct spot){ addr, size };
}

static void remove_spot(const struct device *d, uint64_t addr)
{
	struct extent *x = extent_of(d, addr);
	size_t at = x ? spot_place(x, addr) : 0;
	if (x && at < x->count && x->spots[at].addr == addr)
		memmove(&x->spots[at], &x->spots[at + 1], (--x->count - at) * sizeof(*x->spots));
}

/* Of small requests and in expandable segments all is split off that is left of a free block. */
static uint64_t size_given(const struct torch *t, const struct device *d, uint64_t addr, uint64_t requested)
{
	uint64_t size = cuda_pool_round(&t->settings, requested);
	const struct extent *x = size > SMALL_BLOCK ? extent_of(d, addr) : NULL;
	if (!x)
		return size;
	size_t at = spot_place(x, addr);
	uint64_t free_bytes = (at < x->count ? x->spots[at].addr : x->addr + x->size) - addr;
	bool splits = size < t->settings.max_split_bytes && free_bytes > size && free_bytes - size > SMALL_BLOCK;
	return splits || free_bytes < size ? size : free_bytes;
}

/* ---- the trace ------------------------------------------------------------------------------------------- */

static struct mt_event slot_of(enum mt_kind kind, uint64_t addr, uint64_t size, uint32_t hook, struct import_stack s)
{
	return (struct mt_event){
		.addr = addr, .size = FIT48(size), .hook = hook, .kind = kind, .node = s.node, .node2 = s.node2
	};
}

static struct import_stack stack_of(const struct torch *t, uint32_t number)
{
	return number ? t->stacks[number] : (struct import_stack){ 0, 0 };
}

static struct mt_ext_device ext_of(const struct torch *t, const struct device *d, enum mt_class class, uint32_t stream)
{
	return (struct mt_ext_device){
		.stream = t->streams[stream], .class = class, .device = d->id, .kind_ext = MT_EXT << 26
	};
}

static void put_event(struct torch *t, uint64_t ns, struct mt_event slot, struct mt_ext_device ext)
{
	import_event(t->trace, ns, slot, &ext);
}

static void put_block(struct torch *t, struct device *d, uint64_t ns, const struct block *b, uint64_t requested,
		      uint32_t stack)
{
	struct mt_ext_device ext = ext_of(t, d, MT_CLASS_POOL, b->thread);
	struct extent *x = extent_of(d, b->addr);
	ext.other = requested && requested <= b->size ? b->size - requested + 1 : 0;
	ext.capture = (uint32_t)b->ns;
	put_event(t, ns, slot_of(MT_DEVICE_ALLOC, b->addr, b->size, t->hooks[ALLOC], stack_of(t, stack)), ext);
	if (x)
		add_spot(t, x, b->addr, b->size);
	d->allocated += b->size;
}

static void put_segment(struct torch *t, struct device *d, uint64_t ns, const struct block *b, uint32_t stack)
{
	struct mt_ext_device ext = ext_of(t, d, MT_CLASS_DEVICE, b->thread);
	put_event(t, ns, slot_of(MT_DEVICE_ALLOC, b->addr, b->size, t->hooks[SEGMENT_ALLOC], stack_of(t, stack)), ext);
	add_extent(t, d, b->addr, b->size);
	d->reserved += b->size;
}

/* Reserves a range when its first page is mapped, and gives it back behind the last. */
static void count_page(struct torch *t, struct device *d, uint64_t ns, uint64_t addr, bool mapped)
{
	const size_t low = SEARCH_FIRST(i, d->range_count, d->ranges[i].addr + d->ranges[i].size > addr);
	if (low == d->range_count)
		return;
	struct range *r = &d->ranges[low];
	struct mt_ext_device ext = ext_of(t, d, MT_CLASS_RESERVED, 0);
	const struct import_stack none = { 0, 0 };
	ext.stream = 0;
	if (mapped && r->pages++ == 0)
		put_event(t, ns, slot_of(MT_DEVICE_ALLOC, r->addr, r->size, t->hooks[SEGMENT_MAP], none), ext);
	else if (!mapped && --r->pages == 0)
		put_event(t, ns, slot_of(MT_DEVICE_FREE, r->addr, 0, t->hooks[SEGMENT_UNMAP], none), ext);
}

static void put_page(struct torch *t, struct device *d, uint64_t ns, const struct block *b, uint32_t stack)
{
	struct mt_ext_device ext = ext_of(t, d, MT_CLASS_PHYSICAL, b->thread);
	const struct import_stack s = stack_of(t, stack);
	count_page(t, d, ns, b->addr, true);
	ext.stream = 0;
	put_event(t, ns, slot_of(MT_DEVICE_ALLOC, b->ns, b->size, t->hooks[SEGMENT_MAP], s), ext);
	ext.stream = b->ns;
	put_event(t, ns, slot_of(MT_DEVICE_MAP, b->addr, b->size, t->hooks[SEGMENT_MAP], s), ext);
	d->reserved += b->size;
}

static void take_page(struct torch *t, struct device *d, uint64_t ns, const struct block *b)
{
	struct mt_ext_device ext = ext_of(t, d, MT_CLASS_PHYSICAL, b->thread);
	const struct import_stack none = { 0, 0 };
	ext.stream = 0;
	put_event(t, ns, slot_of(MT_DEVICE_UNMAP, b->addr, b->size, t->hooks[SEGMENT_UNMAP], none), ext);
	put_event(t, ns, slot_of(MT_DEVICE_FREE, b->ns, 0, t->hooks[SEGMENT_UNMAP], none), ext);
	count_page(t, d, ns, b->addr, false);
	d->reserved -= b->size;
}

static int compare_blocks(const void *a, const void *b)
{
	uint64_t x = ((const struct block *)a)->addr, y = ((const struct block *)b)->addr;
	return (x > y) - (x < y);
}

/* What is in a table, by address; *count of them, to be freed. */
static struct block *sorted(struct torch *t, const struct blocks *table, size_t *count)
{
	struct block *list = malloc((table->count + 1) * sizeof(*list));
	*count = 0;
	if (!list) {
		t->error = error_memory();
		return NULL;
	}
	for (size_t i = 0; table->entries && i <= table->mask; i++)
		if (table->entries[i].addr)
			list[(*count)++] = table->entries[i];
	qsort(list, *count, sizeof(*list), compare_blocks);
	return list;
}

/* Addresses are reserved before memory is mapped there, and given back when none is mapped any more. Nobody noted how
 * many: a range is what is ever used without a gap. */
static void find_ranges(struct torch *t, struct device *d)
{
	struct blocks used = { 0 };
	size_t count = 0;
	for (size_t i = d->from; i < d->to && !t->error; i++) {
		const struct event *e = &t->events[i];
		if (e->action == SEGMENT_MAP || e->action == SEGMENT_UNMAP)
			for (uint64_t at = e->addr; at < (uint64_t)e->addr + e->size && used.count < MAX_PAGES;
			     at += t->page)
				put(t, &used, &(struct block){ .addr = at });
	}
	for (size_t i = 0; d->pages.entries && i <= d->pages.mask && !t->error; i++)
		if (d->pages.entries[i].addr)
			put(t, &used, &d->pages.entries[i]);
	struct block *list = sorted(t, &used, &count);
	for (size_t i = 0, next; i < count && !t->error; i = next) {
		for (next = i + 1; next < count && list[next].addr == list[next - 1].addr + t->page;)
			next++;
		t->error = vec_reserve_raw(d->ranges, d->range_room, d->range_count + 1);
		if (!t->error)
			d->ranges[d->range_count++] = (struct range){ list[i].addr, (next - i) * t->page, 0 };
	}
	free(list);
	blocks_fini(&used);
}

static void put_first(struct torch *t, struct device *d)
{
	size_t count = 0;
	find_ranges(t, d);
	struct block *list = sorted(t, &d->given, &count);
	for (size_t i = 0; i < count && !t->error; i++)
		put_segment(t, d, 0, &list[i], list[i].site != BLOCK_NO_SITE ? t->segments[list[i].site].stack : 0);
	free(list);
	list = sorted(t, &d->pages, &count);
	for (size_t i = 0; i < count && !t->error; i++)
		put_page(t, d, 0, &list[i], 0);
	free(list);
	list = sorted(t, &d->live, &count);
	for (size_t i = 0; i < count && !t->error; i++) {
		const struct kept *k = list[i].site != BLOCK_NO_SITE ? &t->kept[list[i].site] : NULL;
		uint64_t requested = k ? k->requested : list[i].size;
		if (!k)
			list[i].size = cuda_pool_round(&t->settings, requested);
		put_block(t, d, 0, &list[i], requested, k ? k->stack : 0);
		blocks_find(&d->live, list[i].addr)->size = list[i].size;
	}
	free(list);
}

static void apply_alloc(struct torch *t, struct device *d, uint64_t ns, const struct event *e)
{
	const struct block *last = e->last ? blocks_find(&d->last, e->addr) : NULL;
	const struct block b = { e->addr, last ? last->size : size_given(t, d, e->addr, e->size), e->pool,
				 BLOCK_NO_SITE, e->stream };
	if (put(t, &d->live, &b))
		put_block(t, d, ns, &b, e->size, e->stack);
}

static void apply_free(struct torch *t, struct device *d, uint64_t ns, const struct event *e)
{
	struct block gone;
	if (!take_out(&d->live, e->addr, &gone))
		return;
	d->allocated -= gone.size;
	put_event(t, ns, slot_of(MT_DEVICE_FREE, e->addr, 0, t->hooks[FREE], (struct import_stack){ 0, 0 }),
		  ext_of(t, d, MT_CLASS_POOL, gone.thread));
}

static void apply_segment_free(struct torch *t, struct device *d, uint64_t ns, const struct event *e)
{
	struct block gone;
	if (!take_out(&d->given, e->addr, &gone))
		return;
	d->reserved -= gone.size;
	remove_extent(d, e->addr);
	put_event(t, ns, slot_of(MT_DEVICE_FREE, e->addr, 0, t->hooks[SEGMENT_FREE], (struct import_stack){ 0, 0 }),
		  ext_of(t, d, MT_CLASS_DEVICE, gone.thread));
}

static void apply_pages(struct torch *t, struct device *d, uint64_t ns, const struct event *e)
{
	for (uint64_t at = e->addr; at < (uint64_t)e->addr + e->size && d->pages.count < MAX_PAGES; at += t->page) {
		struct block page = { at, t->page, t->handles + 1, BLOCK_NO_SITE, e->stream };
		if (e->action == SEGMENT_MAP && put(t, &d->pages, &page)) {
			t->handles++;
			put_page(t, d, ns, &page, e->stack);
		} else if (e->action == SEGMENT_UNMAP && take_out(&d->pages, at, &page)) {
			take_page(t, d, ns, &page);
		}
	}
}

static void apply_oom(struct torch *t, struct device *d, uint64_t ns, const struct event *e)
{
	struct mt_ext_device ext = ext_of(t, d, MT_CLASS_POOL, e->stream);
	struct mt_event slot = slot_of(MT_DEVICE_FAIL, e->size, 0, t->hooks[OOM], stack_of(t, e->stack));
	ext.stream = d->allocated;
	ext.other = d->reserved;
	ext.capture = e->pool;
	put_event(t, ns, slot_of(MT_DEVICE_INFO, e->addr, 0, 0, (struct import_stack){ 0, 0 }),
		  ext_of(t, d, MT_CLASS_DEVICE, e->stream));
	put_event(t, ns, slot, ext);
}

static void apply(struct torch *t, struct device *d, const struct event *e)
{
	uint64_t ns = e->time_us > t->start_us ? (e->time_us - t->start_us) * 1000 : 0;
	const struct block segment = { e->addr, e->size, e->pool, BLOCK_NO_SITE, e->stream };
	switch ((enum action)e->action) {
	case ALLOC:
		return apply_alloc(t, d, ns, e);
	case FREE:
		return apply_free(t, d, ns, e);
	case FREED:
		return remove_spot(d, e->addr);
	case SEGMENT_ALLOC:
		if (put(t, &d->given, &segment))
			put_segment(t, d, ns, &segment, e->stack);
		break;
	case SEGMENT_FREE:
		return apply_segment_free(t, d, ns, e);
	case SEGMENT_MAP:
	case SEGMENT_UNMAP:
		return apply_pages(t, d, ns, e);
	case OOM:
		return apply_oom(t, d, ns, e);
	case OTHER:
		break;
	}
}

/* Events of all devices in order of time; each device's as they are. */
static int go_forward(struct torch *t)
{
	for (uint32_t i = 0; i < t->device_count && !t->error; i++)
		put_first(t, &t->devices[i]);
	while (!t->error) {
		struct device *first = NULL;
		for (uint32_t i = 0; i < t->device_count; i++) {
			struct device *d = &t->devices[i];
			if (d->from < d->to && (!first || t->events[d->from].time_us < t->events[first->from].time_us))
				first = d;
		}
		if (!first)
			break;
		apply(t, first, &t->events[first->from++]);
	}
	return t->error;
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

static void set_start(struct torch *t)
{
	t->start_us = UINT64_MAX;
	for (size_t i = 0; i < t->event_count; i++)
		if (t->events[i].time_us && t->events[i].time_us < t->start_us)
			t->start_us = t->events[i].time_us;
	t->start_us = t->start_us == UINT64_MAX ? 0 : t->start_us;
	t->source.start_real_ns = t->start_us * 1000;
}

static int set_settings(struct torch *t)
{
	t->settings = CUDA_POOL_DEFAULTS;
	if (!t->conf || !*t->conf)
		return 0;
	char *setting = output_format("PYTORCH_CUDA_ALLOC_CONF=%s", t->conf);
	t->source.settings = setting;
	return setting ? replay_settings(&t->settings, t->conf, 0, false) : error_memory();
}

static int write_trace(struct torch *t)
{
	int e = make_devices(t);
	if (!e)
		e = find_page(t);
	if (!e)
		e = set_settings(t);
	for (unsigned i = 1; i < sizeof(actions) / sizeof(*actions); i++)
		t->hooks[i] = import_hook(t->trace, actions[i]);
	for (uint32_t i = 0; i < t->device_count; i++)
		t->devices[i].id = import_device(t->trace, MT_BACKEND_CUDA, i);
	set_start(t);
	if (!e)
		e = begin_at_end(t);
	if (!e)
		e = go_back(t);
	return e < 0 ? e : go_forward(t);
}

static void torch_fini(struct torch *t)
{
	for (uint32_t i = 0; t->devices && i < t->device_count; i++) {
		struct device *d = &t->devices[i];
		while (d->extent_count)
			free(d->extents[--d->extent_count].spots);
		blocks_fini(&d->live);
		blocks_fini(&d->given);
		blocks_fini(&d->pages);
		blocks_fini(&d->last);
		free(d->extents);
		free(d->ranges);
	}
	while (t->trace_count)
		free(t->traces[--t->trace_count].lists);
	hash_index_fini(&t->stack_index);
	free((char *)t->source.settings);
	free(t->events);
	free(t->runs);
	free(t->traces);
	free(t->kept);
	free(t->segments);
	free(t->stacks);
	free(t->frames);
	free(t->streams);
	free(t->devices);
	free(t->conf);
	input_close(&t->in);
}

int import_torch(const char *path, const char *dir, struct imported *out)
{
	struct torch t = {
		.out = out,
		.source = { .what = WHAT, .path = path, .lacks = LACKS, .has = MT_IMPORT_DEVICES | MT_IMPORT_HISTORY }
	};
	const struct unpickle_caller caller = { keys, take, &t };
	out->what = WHAT;
	int e = input_open(&t.in, path);
	if (!e)
		e = import_trace_open(&t.trace, dir, &t.source);
	if (!e)
		e = unpickle(&t.in, &caller);
	if (!e && !t.whole)
		e = input_bad(&t.in, "is a pickle, but no memory snapshot of PyTorch's");
	if (!e)
		e = write_trace(&t);
	int closed = import_trace_close(t.trace, e == 0);
	out->events = t.event_count;
	torch_fini(&t);
	return e < 0 ? e : closed;
}
