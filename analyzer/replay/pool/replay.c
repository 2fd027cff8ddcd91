#include "analyzer/replay/pool/replay.h"

#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define RANGES   (1ull << 46) /* addresses of a case's expandable segments, above those of its others */
#define SEGMENTS (1ull << 40)
#define GAP      (2ull << 20) /* between two segments: they never become one */

#define SMALL_SEGMENT      (2ull << 20) /* of the native allocator */
#define MOST_STREAMS       64           /* that one request which failed may be of */
#define REPLAY_MOST_PASSES 16           /* over the run, to learn whose segments are whose */
#define UNKNOWN_STREAM     (1ull << 63) /* above it: of a range whose stream nothing tells */
#define MOST_KEPT          (1u << 19)   /* events: 36 MiB */
#define MOST_FREED         512          /* blocks freed last, which another stream may still have used */
#define ROUNDED            512          /* bytes, to which each request is rounded: what it has less is not missed */

/* The events that a pass is about, in their order, each with its other half. Where they are few, later passes need not
 * read the trace again, most of which may be about the heap. */
struct replay_events {
	struct kept_event {
		uint32_t process;
		struct mt_event slots[2];
	} *list;
	size_t count, room;
	bool whole; /* there are no others */
};

/* What the driver was asked by a process and did, since the last request that the allocator was asked. GIVE is of the
 * pool's segments alone, and what came and went without being one is dropped: a program that never asks the allocator
 * keeps no more than is alive. */
enum driver_call_kind { CALL_TAKE, CALL_GIVE, CALL_FAIL, CALL_RESERVE, CALL_MAP, CALL_UNMAP };
struct driver_call {
	enum driver_call_kind kind;
	bool matched; /* the replayed pool has done the same */
	bool pages;   /* FAIL: of an expandable segment */
	uint64_t addr, bytes;
};

/* A block that was freed; `block` is what the run's pool keeps of it while another stream uses it, else NULL. */
struct freed {
	uint64_t addr, bytes;
	struct pool_block *block; /* NULL: it is not held */
	bool tried;
};

/* A block of the program's, in each of the pools; NULL = refused there, or that pool is at its end. */
struct live {
	uint64_t addr, bytes, requested; /* as recorded */
	uint64_t low;                    /* the least that can have been requested */
	UT_hash_handle hh;
	struct pool_block *blocks[];
};

/* Captures that share a pool are joined: the trace doesn't say so, but their blocks lie in one segment. */
struct capture {
	uint32_t number;
	size_t joined; /* to this one, or itself */
};

struct owner {
	uint32_t capture; /* whose pool; 0 = common */
	uint64_t stream;  /* of a range that was made for a request that failed */
	bool has_stream;
};

/* Whose which segment (range of addresses) is. They are counted as they are made, so this holds in each pass. What was
 * learnt behind a request that it is about takes another pass. */
struct replay_segments {
	struct capture *captures;
	size_t capture_count, capture_room;
	struct owner *owners;
	size_t owner_room;
	uint64_t last;     /* the latest segment's address */
	unsigned up, down; /* how many lay above the one before, how many below */
	bool learnt;
};

/* A segment or range that is there. In order of addresses. */
struct span {
	uint64_t begin, end;
	size_t number;
	bool failed; /* it was made for a request that failed */
};

/* Memory of the driver's. */
struct place {
	uint64_t addr, bytes;
	bool segment;     /* a segment of the pool's, or a page of one */
	uint32_t capture; /* that it was taken for; 0 = none */
	UT_hash_handle hh;
};

/* The driver under a case: a card of so many bytes, which others have a part of. */
struct card {
	uint64_t used, room, next, next_range;
	bool down; /* each segment below the one before, as the run's driver did */
};

/* Number 0 is the run itself, then come the cases; then the cases once more with the least that each request can have
 * asked for, where that is not known. */
struct pool_state {
	struct cuda_pool *pool;
	struct cuda_pool_driver driver;
	struct card card;
	bool ended;
};

struct pass;

struct track {
	struct pass *pass;
	size_t number; /* in replay.tracks */
	struct pool_state *pools;
	struct live *live;
	struct place *places;
	struct driver_call *calls;
	size_t call_count, call_room;
	struct span *spans;
	size_t span_count, span_room, spans_made;
	bool any_failed;                  /* some span was made for a request that failed */
	uint64_t free_bytes, total_bytes; /* as the driver said last */
	uint64_t unmapped;                /* pages that the pool took since the last request and has not mapped yet */
	uint64_t streams[MOST_STREAMS];   /* of requests; that of the last one first */
	size_t stream_count;
	uint64_t used, requested;       /* of all that is live, as recorded */
	uint64_t low;                   /* the least that can have been requested of it */
	uint32_t capture;               /* whose pool it was for that is being served, or was last */
	uint32_t capturing;             /* in which it was made; 0 = none */
	bool failed, failed_beside;     /* the failure that the query names is over */
	struct freed freed[MOST_FREED]; /* the latest first */
	size_t freed_count;
	uint64_t held;      /* bytes of these that other streams use */
	bool torn;          /* the pool asked for what the run's did not */
	uint64_t elsewhere; /* ... for pages here, where the run's took others; 0 = it did not */
};

/* Of a process, by the device's id in it. */
/* The device of physical memory, as long as the program has a reference to it. */
struct physical {
	uint64_t handle;
	uint32_t device;
	UT_hash_handle hh;
};

struct per_process {
	struct track **tracks;
	size_t room;
	struct physical *physical;
	/* ranges whose device is not known yet: a thread without a current context, as on the default stream, reserves
	 * them without a device. Whatever is mapped there tells it */
	struct driver_call *ranges;
	size_t range_count, range_room;
};

struct pass {
	const struct reader *first; /* whose processes the tracks name */
	struct replay *out;
	const struct replay_query *q;
	struct per_process *processes;
	unsigned process_count;
	size_t pools; /* of each track */
};

static struct replay_track *facts_of(const struct track *t)
{
	return &t->pass->out->tracks[t->number];
}

/* ---- the driver of the run ------------------------------------------------------------------------------- */

static int put_place(struct track *t, uint64_t addr, uint64_t bytes, bool segment)
{
	struct place *place = calloc(1, sizeof(*place)), *old;
	if (!place)
		return error_memory();
	place->addr = addr;
	place->bytes = bytes;
	place->segment = segment;
	place->capture = segment ? t->capture : 0;
	HASH_REPLACE(hh, t->places, addr, sizeof(place->addr), place, old);
	free(old);
	return 0;
}

static struct driver_call *find_call(struct track *t, enum driver_call_kind kind, uint64_t addr, uint64_t bytes)
{
	for (size_t i = 0; i < t->call_count; i++) {
		struct driver_call *d = &t->calls[i];
		if (!d->matched && d->kind == kind && (!addr || d->addr == addr) && (!bytes || d->bytes == bytes))
			return d;
	}
	return NULL;
}

/* Where free blocks are taken in order of addresses it matters how the driver goes on. */
static void note_direction(struct replay_segments *g, uint64_t addr)
{
	g->up += g->last && addr > g->last;
	g->down += g->last && addr < g->last;
	g->last = addr;
}

/* A segment: as in the run, or refused as there. Some failures name no size. */
static uint64_t take_segment(struct track *t, uint64_t bytes)
{
	struct driver_call *took = find_call(t, CALL_TAKE, 0, bytes), *failed = find_call(t, CALL_FAIL, 0, bytes);
	struct driver_call *d = !took || (failed && failed < took) ? failed : took;
	struct place *place = NULL;
	if (!d) {
		t->torn = true;
		return 0;
	}
	d->matched = true;
	if (d->kind == CALL_FAIL)
		return 0;
	note_direction(facts_of(t)->segments, d->addr);
	HASH_FIND(hh, t->places, &d->addr, sizeof(d->addr), place);
	if (place) {
		place->segment = true;
		place->capture = t->capture;
	}
	return d->addr;
}

/* Pages: each is a mapping of the run's. Where one was refused, those before it were not mapped either. */
static uint64_t take_pages(struct track *t, uint64_t at, uint64_t bytes)
{
	struct driver_call *d = find_call(t, CALL_MAP, at, 0), *failed = find_call(t, CALL_FAIL, 0, 0);
	if (failed && (!d || failed < d)) {
		failed->matched = true;
		return 0;
	}
	for (uint64_t done = 0; done < bytes; done += d->bytes) {
		d = find_call(t, CALL_MAP, at + done, 0);
		if (!d || !d->bytes) {
			t->torn = true;
			t->elsewhere = !done && find_call(t, CALL_MAP, 0, 0) ? at : 0;
			return 0;
		}
		d->matched = true;
		if (put_place(t, d->addr, d->bytes, true))
			t->torn = true;
	}
	return at;
}

static uint64_t run_take(void *arg, uint64_t at, uint64_t bytes)
{
	return at ? take_pages(arg, at, bytes) : take_segment(arg, bytes);
}

static uint64_t run_reserve(void *arg, uint64_t bytes)
{
	struct track *t = arg;
	/* the size depends on the device's, which may not be known */
	struct driver_call *d = find_call(t, CALL_RESERVE, 0, t->pools[0].driver.device_bytes ? bytes : 0);
	if (!d) {
		t->torn = true;
		return RANGES;
	}
	d->matched = true;
	return d->addr;
}

static void run_give_back(void *arg, uint64_t addr, uint64_t bytes)
{
	struct track *t = arg;
	struct driver_call *d = find_call(t, CALL_GIVE, addr, 0);
	if (d) {
		d->matched = true;
		return;
	}
	for (uint64_t done = 0; done < bytes; done += d->bytes) {
		d = find_call(t, CALL_UNMAP, addr + done, 0);
		if (!d || !d->bytes) {
			t->torn = true;
			return;
		}
		d->matched = true;
	}
}

/* ---- the driver of a case --------------------------------------------------------------------------------- */

static uint64_t card_take(void *arg, uint64_t at, uint64_t bytes)
{
	struct card *c = arg;
	if (bytes > c->room || c->used > c->room - bytes)
		return 0;
	c->used += bytes;
	if (at)
		return at;
	if (c->down)
		return (c->next -= bytes + GAP);
	at = c->next;
	c->next += bytes + GAP;
	return at;
}

static uint64_t card_reserve(void *arg, uint64_t bytes)
{
	struct card *c = arg;
	uint64_t at = c->next_range;
	c->next_range += bytes + GAP;
	return at;
}

static void card_give_back(void *arg, uint64_t addr, uint64_t bytes)
{
	struct card *c = arg;
	(void)addr;
	c->used -= bytes;
}

/* ---- tracks ----------------------------------------------------------------------------------------------- */

static const struct replay_case *case_of(const struct pass *pass, size_t stage)
{
	return stage ? &pass->q->cases[(stage - 1) % pass->q->case_count] : NULL;
}

static bool is_low(const struct pass *pass, size_t stage)
{
	return stage > pass->q->case_count;
}

static struct replay_outcome *outcome_of(const struct track *t, size_t stage)
{
	return stage ? &facts_of(t)->outcomes[stage - 1] : &facts_of(t)->run;
}

static void free_track(struct track *t)
{
	struct live *l, *l2;
	struct place *p, *p2;
	if (!t)
		return;
	for (size_t i = 0; t->pools && i < t->pass->pools; i++)
		cuda_pool_free(t->pools[i].pool);
	HASH_ITER(hh, t->live, l, l2)
	{
		HASH_DEL(t->live, l);
		free(l);
	}
	HASH_ITER(hh, t->places, p, p2)
	{
		HASH_DEL(t->places, p);
		free(p);
	}
	free(t->pools);
	free(t->spans);
	free(t->calls);
	free(t);
}

/* Those that nobody has set. */
static struct cuda_pool_settings default_settings(const struct replay_track *t)
{
	struct cuda_pool_settings s = CUDA_POOL_DEFAULTS;
	if (t->framework.kind == FRAMEWORK_TORCH_NPU)
		s = NPU_POOL_DEFAULTS;
	s.old_lists = framework_is_before(&t->framework, 2, 9);
	return s;
}

static const struct {
	const char *name;
	uint32_t backend; /* 0 = of all */
} variables[] = { { "PYTORCH_CUDA_ALLOC_CONF=", MT_BACKEND_CUDA },
		  { "PYTORCH_CUDA_ALLOC_CONF=", MT_BACKEND_HIP },
		  { "PYTORCH_HIP_ALLOC_CONF=", MT_BACKEND_HIP },
		  { "PYTORCH_NPU_ALLOC_CONF=", MT_BACKEND_ASCEND },
		  { "PYTORCH_ALLOC_CONF=", 0 } };

const char *replay_variable(uint32_t backend)
{
	unsigned k = 0;
	while (variables[k].backend && variables[k].backend != backend)
		k++;
	return variables[k].name;
}

/* What its process's variables say. */
static void note_settings(struct replay_track *f, bool files)
{
	const uint32_t backend = f->device ? f->device->backend : MT_BACKEND_CUDA;
	const uint64_t total = f->device ? f->device->total_bytes : 0;
	f->framework = framework_of(f->process, backend, files);
	f->settings = default_settings(f);
	if (f->framework.kind == FRAMEWORK_MINDSPORE)
		f->unmodelled = "MindSpore's allocator has rules of its own";
	if (f->framework.kind == FRAMEWORK_JAX)
		f->unmodelled = "XLA's allocator has rules of its own";
	for (unsigned i = 0; i < f->process->env_count; i++)
		for (unsigned k = 0; k < sizeof(variables) / sizeof(variables[0]); k++) {
			const char *name = variables[k].name, *text = f->process->env[i];
			if (strncmp(text, name, strlen(name)) != 0 ||
			    (variables[k].backend && variables[k].backend != backend))
				continue;
			replay_settings(&f->settings, text + strlen(name), total, false);
			if (strstr(text, "backend:cudaMallocAsync"))
				f->unmodelled = "backend:cudaMallocAsync leaves it to the driver where blocks lie";
		}
}

int replay_case_settings(const struct replay_track *t, const struct replay_case *c, uint64_t device_bytes,
			 struct cuda_pool_settings *out)
{
	*out = c->own ? t->settings : default_settings(t);
	out->oldest_first = t->settings.oldest_first;
	return c->conf ? replay_settings(out, c->conf, device_bytes, true) : 0;
}

static int make_outcomes(struct replay_track *f, const struct replay_query *q)
{
	struct replay_outcome *outcomes = calloc(2 * q->case_count + 1, sizeof(*outcomes));
	if (!outcomes)
		return error_memory();
	free(f->outcomes);
	f->outcomes = outcomes;
	f->outcomes_low = NULL;
	return 0;
}

/* In the second pass they are found as the first one left them. */
static int list_track(struct track *t, const struct process *p, uint32_t id)
{
	struct replay *out = t->pass->out;
	for (t->number = 0; t->number < out->count; t->number++)
		if (out->tracks[t->number].process->id == p->id && out->tracks[t->number].id == id)
			return 0;
	int e = vec_reserve(out->tracks, out->room, out->count + 1);
	if (e)
		return e;
	struct replay_track *f = &out->tracks[out->count++];
	*f = (struct replay_track){ .process = reader_process(t->pass->first, p->id), .id = id };
	f->segments = calloc(1, sizeof(*f->segments));
	if (!f->segments || make_outcomes(f, t->pass->q))
		return error_memory();
	for (const struct process *at = f->process; at && !f->device; at = at->parent)
		f->device = process_device(at, id);
	note_settings(f, !t->pass->q->no_files);
	return 0;
}

static int start_stage(struct track *t, size_t i)
{
	const struct replay_track *f = facts_of(t);
	struct pool_state *s = &t->pools[i];
	const struct replay_case *c = case_of(t->pass, i);
	const uint64_t own = f->device ? f->device->total_bytes : 0;
	const uint64_t device = c && c->card ? c->card(c->card_arg, f) : c && c->device_bytes ? c->device_bytes : own;
	s->card = (struct card){ .room = !device               ? UINT64_MAX
					 : device > f->outside ? device - f->outside
							       : 0,
				 .next = SEGMENTS,
				 .down = f->segments->down > f->segments->up,
				 .next_range = RANGES };
	s->driver = i ? (struct cuda_pool_driver){ &s->card, card_take, card_reserve, card_give_back, device }
		      : (struct cuda_pool_driver){ t, run_take, run_reserve, run_give_back, device };
	struct cuda_pool_settings settings = f->settings;
	int e = c ? replay_case_settings(f, c, device, &settings) : 0;
	s->pool = e ? NULL : cuda_pool_new(&settings, &s->driver);
	return e ? e : s->pool ? 0 : error_memory();
}

static int new_track(struct pass *pass, const struct process *p, uint32_t id, struct track **out)
{
	struct track *t = calloc(1, sizeof(*t));
	if (!t)
		return error_memory();
	t->pass = pass;
	t->pools = calloc(pass->pools, sizeof(*t->pools));
	int e = t->pools ? list_track(t, p, id) : error_memory();
	for (size_t i = 0; i < pass->pools && !e; i++)
		e = start_stage(t, i);
	if (e)
		return free_track(t), e;
	*out = t;
	return 0;
}

static int track_of(struct pass *pass, const struct process *p, uint32_t id, struct track **out)
{
	struct per_process *of = &pass->processes[p->id];
	int e = vec_reserve(of->tracks, of->room, id + 1ul);
	if (!e && !of->tracks[id])
		e = new_track(pass, p, id, &of->tracks[id]);
	*out = e ? NULL : of->tracks[id];
	return e;
}

/* ---- what the driver did ----------------------------------------------------------------------------------- */

static int add_call(struct track *t, enum driver_call_kind kind, uint64_t addr, uint64_t bytes)
{
	int e = vec_reserve(t->calls, t->call_room, t->call_count + 1);
	if (!e)
		t->calls[t->call_count++] = (struct driver_call){ .kind = kind, .addr = addr, .bytes = bytes };
	return e;
}

static void drop_call(struct track *t, const struct driver_call *d)
{
	const size_t i = (size_t)(d - t->calls);
	memmove(&t->calls[i], &t->calls[i + 1], (t->call_count - i - 1) * sizeof(*t->calls));
	t->call_count--;
}

/* Of the first span that ends behind the address. */
static size_t span_from(const struct track *t, uint64_t addr)
{
	return SEARCH_FIRST(i, t->span_count, t->spans[i].end > addr);
}

/* That an address lies in, or NULL. */
static struct span *span_at(const struct track *t, uint64_t addr)
{
	const size_t i = span_from(t, addr);
	return i < t->span_count && t->spans[i].begin <= addr ? &t->spans[i] : NULL;
}

/* What was there goes: its end was not seen. */
static int add_span(struct track *t, uint64_t addr, uint64_t bytes)
{
	size_t at = span_from(t, addr), gone = at;
	int e = vec_reserve(t->spans, t->span_room, t->span_count + 1);
	if (e)
		return e;
	while (gone < t->span_count && t->spans[gone].begin < addr + bytes)
		gone++;
	memmove(&t->spans[at + 1], &t->spans[gone], (t->span_count - gone) * sizeof(*t->spans));
	t->spans[at] = (struct span){ addr, addr + bytes, t->spans_made++, false };
	t->span_count = t->span_count - (gone - at) + 1;
	return 0;
}

static int take_place(struct track *t, uint64_t addr, uint64_t bytes)
{
	int e = put_place(t, addr, bytes, false);
	if (!e)
		e = add_span(t, addr, bytes);
	return e ? e : add_call(t, CALL_TAKE, addr, bytes);
}

/* A segment of a graph's pool goes back only when the graph is gone. */
static void forget_graph(struct track *t, uint32_t capture)
{
	for (size_t i = 0; capture && i < t->pass->pools; i++)
		cuda_pool_forget(t->pools[i].pool, capture);
}

static void forget_freed(struct track *t, uint64_t addr, uint64_t bytes);

/* Freed (CALL_GIVE) or unmapped. The device of such a call is the thread's, which may be another than the memory's. */
static int give_place(struct per_process *of, enum driver_call_kind kind, uint64_t addr)
{
	for (size_t i = 0; i < of->room; i++) {
		struct track *t = of->tracks[i];
		struct place *place = NULL;
		struct driver_call *took;
		int e = 0;
		if (t)
			HASH_FIND(hh, t->places, &addr, sizeof(addr), place);
		if (!place)
			continue;
		if (place->segment) {
			forget_freed(t, addr, place->bytes);
			e = add_call(t, kind, addr, place->bytes);
			forget_graph(t, place->capture);
		} else if ((took = find_call(t, CALL_TAKE, addr, 0)))
			drop_call(t, took);
		HASH_DEL(t->places, place);
		free(place);
		return e;
	}
	return 0;
}

/* A free of a segment that did not happen. */
static int undo_give(struct track *t, uint64_t addr)
{
	struct driver_call *gave = find_call(t, CALL_GIVE, addr, 0);
	if (!gave)
		return 0;
	const uint64_t bytes = gave->bytes;
	drop_call(t, gave);
	return put_place(t, addr, bytes, true);
}

/* A call of the driver's failed. Those that the pool made itself are the same moment: it has returned its cache. */
static void note_failure_beside(struct track *t, uint64_t ns)
{
	if (!t->pass->q->failure_ns || ns < t->pass->q->failure_ns || t->failed_beside)
		return;
	t->failed_beside = true;
	outcome_of(t, 0)->failure.cached = cuda_pool_cached(t->pools[0].pool);
}

/* torch_npu tells nobody that a request failed: the driver has refused, got the cache back, and refused once more. */
static bool failed_silently(const struct track *t)
{
	unsigned failed = 0;
	for (size_t i = 0; i < t->call_count; i++)
		failed += t->calls[i].kind == CALL_FAIL;
	return facts_of(t)->framework.kind == FRAMEWORK_TORCH_NPU && facts_of(t)->requests && failed > 1;
}

static int note_request(struct pass *pass, const struct process *p, const struct mt_event *s,
			const struct mt_ext_device *x);

/* What was asked for is known since torch_npu 2.10; before, what the driver was asked for is the most that it can have
 * been. */
static int note_silent_failure(struct pass *pass, const struct process *p, const struct mt_event *s,
			       const struct mt_ext_device *x)
{
	struct mt_event failed = *s;
	if (x->stream)
		failed.addr = x->stream;
	else if (s->addr == SMALL_SEGMENT)
		failed.addr = 512;
	return note_request(pass, p, &failed, &(struct mt_ext_device){ .class = MT_CLASS_POOL, .device = x->device });
}

static int note_physical(struct per_process *of, uint64_t handle, uint32_t device)
{
	struct physical *one = calloc(1, sizeof(*one)), *old;
	if (!one)
		return error_memory();
	one->handle = handle;
	one->device = device;
	HASH_REPLACE(hh, of->physical, handle, sizeof(one->handle), one, old);
	free(old);
	return 0;
}

static void forget_physical(struct per_process *of, uint64_t handle)
{
	struct physical *one;
	HASH_FIND(hh, of->physical, &handle, sizeof(handle), one);
	if (one)
		HASH_DEL(of->physical, one);
	free(one);
}

static int add_range(struct track *t, uint64_t addr, uint64_t bytes)
{
	int e = add_span(t, addr, bytes);
	return e ? e : add_call(t, CALL_RESERVE, addr, bytes);
}

static int keep_range(struct per_process *of, uint64_t addr, uint64_t bytes)
{
	int e = vec_reserve(of->ranges, of->range_room, of->range_count + 1);
	if (!e)
		of->ranges[of->range_count++] =
			(struct driver_call){ .kind = CALL_RESERVE, .addr = addr, .bytes = bytes };
	return e;
}

/* The ranges without a device in which `addr` lies (0 = all) are the track's. */
static int claim_ranges(struct track *t, struct per_process *of, uint64_t addr)
{
	size_t left = 0;
	int e = 0;
	for (size_t i = 0; i < of->range_count; i++) {
		const struct driver_call *r = &of->ranges[i];
		if (!e && (!addr || addr - r->addr < r->bytes))
			e = add_range(t, r->addr, r->bytes);
		else
			of->ranges[left++] = *r;
	}
	of->range_count = left;
	return e;
}

/* A mapping is on the device of what is mapped, whatever context is current. */
static uint32_t device_of_call(const struct per_process *of, const struct mt_event *s, const struct mt_ext_device *x)
{
	struct physical *one = NULL;
	if (s->kind == MT_DEVICE_MAP)
		HASH_FIND(hh, of->physical, &x->stream, sizeof(x->stream), one);
	return one ? one->device : x->device;
}

static int note_driver(struct pass *pass, const struct process *p, const struct mt_event *s,
		       const struct mt_ext_device *x)
{
	struct per_process *of = &pass->processes[p->id];
	const bool reserves = s->kind == MT_DEVICE_ALLOC && x->class == MT_CLASS_RESERVED;
	struct track *t;
	if (reserves && !x->device)
		return keep_range(of, s->addr, s->size);
	int e = track_of(pass, p, device_of_call(of, s, x), &t);
	if (s->kind == MT_DEVICE_MAP && x->class == MT_CLASS_POOL)
		return e; /* where a block lies */
	if (!e && s->kind == MT_DEVICE_MAP)
		e = claim_ranges(t, of, s->addr);
	if (e)
		return e;
	switch (s->kind) {
	case MT_DEVICE_ALLOC:
		if (reserves)
			return add_range(t, s->addr, s->size);
		if (x->class == MT_CLASS_PHYSICAL) {
			t->unmapped += s->size;
			return note_physical(of, s->addr, x->device);
		}
		return x->class == MT_CLASS_DEVICE ? take_place(t, s->addr, s->size) : 0;
	case MT_DEVICE_FREE:
		if (x->class == MT_CLASS_PHYSICAL)
			forget_physical(of, s->addr);
		return x->class == MT_CLASS_DEVICE ? give_place(&pass->processes[p->id], CALL_GIVE, s->addr) : 0;
	case MT_DEVICE_UNDO:
		return x->class == MT_CLASS_DEVICE ? undo_give(t, s->addr) : 0;
	case MT_DEVICE_FAIL:
		note_failure_beside(t, process_ns(p, s->ticks));
		if (x->class != MT_CLASS_DEVICE && x->class != MT_CLASS_PHYSICAL)
			return 0;
		e = add_call(t, CALL_FAIL, 0, s->addr);
		if (!e)
			t->calls[t->call_count - 1].pages = x->class == MT_CLASS_PHYSICAL;
		if (!e && failed_silently(t))
			e = note_silent_failure(pass, p, s, x);
		t->unmapped = 0; /* what it had taken for that request it gives back */
		return e;
	case MT_DEVICE_MAP:
		t->unmapped = less(t->unmapped, s->size);
		return add_call(t, CALL_MAP, s->addr, s->size);
	case MT_DEVICE_UNMAP:
		return give_place(&pass->processes[p->id], CALL_UNMAP, s->addr);
	case MT_DEVICE_INFO:
		t->free_bytes = s->addr;
		t->total_bytes = s->size;
		return 0;
	default:
		return 0;
	}
}

/* ---- requests ---------------------------------------------------------------------------------------------- */

static void differ(struct track *t, const struct replay_moment *at)
{
	struct replay_track *f = facts_of(t);
	if (!f->differs.request)
		f->differs = *at;
}

/* A garbage collection, which the pool does itself, comes right before a segment is asked for, and takes large ones
 * alone. */
static bool may_be_collection(const struct track *t, bool asked, uint64_t least)
{
	const struct cuda_pool_settings *s = &facts_of(t)->settings;
	return asked && least > SMALL_SEGMENT && s->gc_threshold > 0 && s->allowed_bytes != UINT64_MAX &&
	       (double)cuda_pool_figures(t->pools[0].pool)->reserved > s->gc_threshold * (double)s->allowed_bytes;
}

/* Segments (pages) of the pool's went back before the driver refused anything: somebody emptied the cache, unless the
 * pool may not grow for this request (NULL: there is none) and so did it itself. */
static bool was_emptied(const struct track *t, const struct cuda_pool_request *r)
{
	uint64_t least = UINT64_MAX;
	bool asked = false;
	for (size_t i = 0; i < t->call_count && !asked; i++) {
		const struct driver_call *d = &t->calls[i];
		if (d->kind == CALL_UNMAP || d->kind == CALL_GIVE)
			least = d->bytes < least ? d->bytes : least;
		else
			asked = d->kind == CALL_FAIL || d->kind == CALL_TAKE || d->kind == CALL_MAP;
	}
	return least != UINT64_MAX && !may_be_collection(t, asked, least) &&
	       !(r && cuda_pool_at_limit(t->pools[0].pool, r));
}

static int empty_as_then(struct track *t, const struct cuda_pool_request *r)
{
	int e = 0;
	if (!was_emptied(t, r))
		return 0;
	for (size_t i = 0; i < t->pass->pools && !e; i++)
		if (!t->pools[i].ended)
			e = cuda_pool_empty_cache(t->pools[i].pool);
	return e;
}

/* ---- what the program does that no event says ---------------------------------------------------------------- */

/* A case that names the setting keeps to it. */
static bool keeps_setting(const struct replay_case *c)
{
	return c->conf && strstr(c->conf, "expandable_segments");
}

/* What the program sets at any time replaces all: what it does not name is the default again. */
static struct cuda_pool_settings set_by_program(struct cuda_pool_settings s, bool expandable)
{
	const struct cuda_pool_settings defaults = CUDA_POOL_DEFAULTS;
	s.expandable = expandable;
	s.max_split_bytes = defaults.max_split_bytes;
	s.gc_threshold = defaults.gc_threshold;
	memcpy(s.divisions, defaults.divisions, sizeof(s.divisions));
	return s;
}

/* Before its first request it is the setting of the run. */
static void change_settings(struct track *t, bool expandable, const struct replay_moment *at)
{
	struct replay_track *f = facts_of(t);
	for (size_t i = 0; i < t->pass->pools; i++) {
		const struct cuda_pool_settings s = set_by_program(*cuda_pool_settings(t->pools[i].pool), expandable);
		if (!i || !keeps_setting(case_of(t->pass, i)))
			cuda_pool_set(t->pools[i].pool, &s);
	}
	if (at->request == 1)
		f->settings = *cuda_pool_settings(t->pools[0].pool);
	else if (!f->switches++)
		f->switched = *at;
}

/* How the driver served a request, or refused it. */
enum served { SERVED_FROM_CACHE, SERVED_A_SEGMENT, SERVED_PAGES };

static enum served served_by_driver(const struct track *t, const struct mt_event *s, bool refused)
{
	for (size_t i = 0; i < t->call_count; i++) {
		const struct driver_call *d = &t->calls[i];
		const bool there = d->addr < s->addr + s->size && s->addr < d->addr + d->bytes;
		if (refused ? d->kind == CALL_FAIL && !d->pages : there && d->kind == CALL_TAKE)
			return SERVED_A_SEGMENT;
		if (refused ? d->kind == CALL_FAIL : there && d->kind == CALL_MAP)
			return SERVED_PAGES;
	}
	return SERVED_FROM_CACHE;
}

static bool is_as_then(const struct track *t, const struct cuda_pool_request *r, const struct mt_event *s,
		       enum served served)
{
	const struct cuda_pool *p = t->pools[0].pool;
	const struct cuda_pool_offer o = cuda_pool_offer(p, r);
	const bool pages = served == SERVED_PAGES;
	if (o.bytes != s->size)
		return false;
	return served == SERVED_FROM_CACHE ? o.addr == s->addr : !o.addr && cuda_pool_settings(p)->expandable == pages;
}

/* Whether it is so under other settings, which a program can set at any time. */
static bool follow_settings(struct track *t, const struct cuda_pool_request *r, const struct mt_event *s,
			    enum served served, const struct replay_moment *at)
{
	const struct cuda_pool_settings now = *cuda_pool_settings(t->pools[0].pool);
	for (unsigned same = 0; same < 2; same++) {
		const bool expandable = same ? now.expandable : !now.expandable;
		const struct cuda_pool_settings other = set_by_program(now, expandable);
		cuda_pool_set(t->pools[0].pool, &other);
		const bool found = is_as_then(t, r, s, served);
		cuda_pool_set(t->pools[0].pool, &now);
		if (found) {
			change_settings(t, expandable, at);
			return true;
		}
	}
	return false;
}

static void note_freed(struct track *t, uint64_t addr, uint64_t bytes)
{
	size_t i = t->freed_count < MOST_FREED ? t->freed_count++ : MOST_FREED - 1;
	while (i > 0 && t->freed[i].block) /* what is held stays */
		i--;
	if (t->freed[i].block)
		return;
	memmove(&t->freed[1], &t->freed[0], i * sizeof(t->freed[0]));
	t->freed[0] = (struct freed){ .addr = addr, .bytes = bytes };
}

static int hold(struct track *t, struct freed *l)
{
	int e = l->block ? 0 : cuda_pool_hold(t->pools[0].pool, l->addr, l->bytes, &l->block);
	t->held += l->block ? l->bytes : 0;
	return e;
}

static void let_go(struct track *t, struct freed *l)
{
	if (!l->block)
		return;
	cuda_pool_let_go(t->pools[0].pool, l->block);
	l->block = NULL;
	t->held -= l->bytes;
}

static bool lies_in(const struct freed *l, uint64_t addr, uint64_t bytes)
{
	return l->addr < addr + bytes && addr < l->addr + l->bytes;
}

static void let_all_go(struct track *t)
{
	for (size_t i = 0; i < t->freed_count && t->held; i++)
		let_go(t, &t->freed[i]);
}

/* A request got memory there: no stream uses it any more, nor what was freed before it, as a stream is done with one
 * after the other. */
static void forget_freed(struct track *t, uint64_t addr, uint64_t bytes)
{
	size_t kept = 0;
	bool done = false;
	for (size_t i = 0; i < t->freed_count; i++) {
		const bool there = lies_in(&t->freed[i], addr, bytes);
		done |= there && t->freed[i].block;
		if (done || there)
			let_go(t, &t->freed[i]);
		if (!there)
			t->freed[kept++] = t->freed[i];
	}
	memset(&t->freed[kept], 0, (t->freed_count - kept) * sizeof(t->freed[0]));
	t->freed_count = kept;
}

/* Which of the blocks freed last may be held, as the request got another block than the pool offers: what lay before
 * the block that it got; or behind it, so that this was no part of a larger one; or what is offered. */
static struct freed *suspect(struct track *t, const struct mt_event *s, struct cuda_pool_offer o, bool offered_first)
{
	struct freed *before = NULL, *offered = NULL, *behind = NULL;
	for (size_t i = 0; i < t->freed_count; i++) {
		struct freed *l = &t->freed[i];
		if (l->block || l->tried)
			continue;
		if (l->addr + l->bytes == s->addr)
			before = l;
		else if (!offered && lies_in(l, o.addr, o.bytes))
			offered = l;
		else if (l->addr >= s->addr + s->size && (!behind || l->addr < behind->addr))
			behind = l;
	}
	return before ? before : (offered_first && offered) || !behind ? offered : behind;
}

/* Blocks freed last are held one after the other, until the request gets the block that it got. Else none is. */
static int hold_some(struct track *t, const struct cuda_pool_request *r, const struct mt_event *s, enum served served,
		     bool offered_first, bool *found)
{
	struct freed *tried[MOST_FREED], *l;
	size_t count = 0;
	int e = 0;
	while (!e && !(*found = is_as_then(t, r, s, served)) &&
	       (l = suspect(t, s, cuda_pool_offer(t->pools[0].pool, r), offered_first)) != NULL) {
		e = hold(t, l);
		l->tried = true;
		tried[count++] = l;
	}
	while (count) {
		l = tried[--count];
		l->tried = false;
		if (!*found)
			let_go(t, l);
	}
	return e;
}

/* One of them. */
static int hold_one(struct track *t, const struct cuda_pool_request *r, const struct mt_event *s, enum served served,
		    bool *found)
{
	int e = 0;
	*found = is_as_then(t, r, s, served);
	for (size_t i = 0; i < t->freed_count && !e && !*found; i++) {
		struct freed *l = &t->freed[i];
		if (l->block || (e = hold(t, l)) || !l->block)
			continue;
		*found = is_as_then(t, r, s, served);
		if (!*found)
			let_go(t, l);
	}
	return e;
}

/* As few as explain it. */
static int hold_freed(struct track *t, const struct cuda_pool_request *r, const struct mt_event *s, enum served served,
		      bool *found)
{
	int e = hold_one(t, r, s, served, found);
	if (!e && !*found)
		e = hold_some(t, r, s, served, false, found);
	return e || *found ? e : hold_some(t, r, s, served, true, found);
}

/* Blocks that were freed while another stream used them (record_stream) serve nobody until it is done; no event says
 * either. */
static int follow_streams(struct track *t, const struct cuda_pool_request *r, const struct mt_event *s,
			  enum served served)
{
	struct replay_track *f = facts_of(t);
	bool found = false;
	uint64_t before = t->held;
	int e = hold_freed(t, r, s, served, &found);
	if (!e && !found && t->held) {
		let_all_go(t);
		before = 0;
		e = hold_freed(t, r, s, served, &found);
	}
	f->held_count += t->held > before;
	f->most_held = higher(f->most_held, t->held);
	return e;
}

/* Where the request would get another block than it got: the program has changed settings, or streams held some. */
static int follow(struct track *t, const struct cuda_pool_request *r, const struct mt_event *s, bool refused,
		  const struct replay_moment *at)
{
	const enum served served = served_by_driver(t, s, refused);
	if (refused) {
		if (served != SERVED_FROM_CACHE &&
		    cuda_pool_settings(t->pools[0].pool)->expandable != (served == SERVED_PAGES))
			change_settings(t, served == SERVED_PAGES, at);
		return 0;
	}
	if (facts_of(t)->differs.request)
		return 0;
	forget_freed(t, s->addr, s->size);
	if (is_as_then(t, r, s, served) || follow_settings(t, r, s, served, at))
		return 0;
	return follow_streams(t, r, s, served);
}

/* ---- requests: what is learnt of them --------------------------------------------------------------------- */

/* The first of those that share a pool with that capture; makes an entry of one that is new. */
static int root_of(struct replay_segments *g, uint32_t number, size_t *root)
{
	size_t i = g->capture_count;
	while (i > 0 && g->captures[i - 1].number != number) /* the latest is the likeliest */
		i--;
	if (!i) {
		int e = vec_reserve(g->captures, g->capture_room, g->capture_count + 1);
		if (e)
			return e;
		g->captures[g->capture_count] = (struct capture){ number, g->capture_count };
		i = ++g->capture_count;
	}
	for (i--; g->captures[i].joined != i;)
		i = g->captures[i].joined;
	*root = i;
	return 0;
}

static int join_captures(struct replay_segments *g, uint32_t a, uint32_t b)
{
	size_t x, y;
	int e = root_of(g, a, &x);
	if (!e)
		e = root_of(g, b, &y);
	if (e || x == y)
		return e;
	g->captures[x > y ? x : y].joined = x > y ? y : x;
	g->learnt = true;
	return 0;
}

/* Whose pool a request of that capture (0 = none) was for, which got a block at an address, or failed with a range made
 * there (0 = none): where that lies says it, also of a warm-up run without a capture. */
static int pool_of(struct track *t, uint32_t capture, uint64_t addr, uint32_t *pool)
{
	struct replay_segments *g = facts_of(t)->segments;
	const struct span *at;
	size_t root;
	int e = 0;
	*pool = capture;
	if (!capture && !g->capture_count)
		return 0;
	at = addr ? span_at(t, addr) : NULL;
	if (at) {
		const size_t number = at->number;
		e = vec_reserve(g->owners, g->owner_room, number + 1);
		if (!e && capture && !g->owners[number].capture) {
			g->owners[number].capture = capture;
			g->learnt = true;
		} else if (!e && capture)
			e = join_captures(g, capture, g->owners[number].capture);
		if (!e)
			*pool = g->owners[number].capture;
	}
	if (e || !*pool)
		return e;
	e = root_of(g, *pool, &root);
	if (!e)
		*pool = g->captures[root].number;
	return e;
}

static bool is_named_failure(const struct track *t, uint64_t ns)
{
	return t->pass->q->failure_ns && ns >= t->pass->q->failure_ns && !t->failed;
}

/* The cache goes back where somebody asked for that before a capture begins. */
static int before_capture(struct track *t, uint32_t capture)
{
	int e = 0;
	for (size_t i = 1; capture && capture != t->capturing && i < t->pass->pools && !e; i++)
		if (case_of(t->pass, i)->empty_before_captures && !t->pools[i].ended)
			e = cuda_pool_empty_cache(t->pools[i].pool);
	t->capturing = capture;
	return e;
}

/* As the case wants it. False: it is not made at all. */
static bool change(const struct track *t, size_t i, const struct replay_moment *at, struct cuda_pool_request *r)
{
	const struct replay_case *c = case_of(t->pass, i);
	const double factor = c && c->factor ? c->factor(c->factor_arg, facts_of(t)->process, at->node, at->node2) : 1;
	if (factor == 1)
		return true;
	outcome_of(t, i)->changed++;
	r->bytes = (uint64_t)((double)r->bytes * factor);
	return factor > 0;
}

/* One that failed in the run is not made. */
static void leave_out(struct track *t, struct replay_outcome *o, const struct replay_moment *at, const struct card *c)
{
	if (is_named_failure(t, at->ns)) {
		o->failure.reached = o->failure.granted = true;
		o->failure.spare = c->room - c->used;
	}
	o->granted = *at;
	o->granted_count++;
}

static int take_in(struct track *t, size_t i, const struct cuda_pool_request *request, const struct replay_moment *at,
		   bool refused, struct pool_block **block)
{
	struct pool_state *s = &t->pools[i];
	struct replay_outcome *o = outcome_of(t, i);
	struct cuda_pool_request r = *request;
	*block = NULL;
	if (s->ended)
		return 0;
	if (!change(t, i, at, &r)) {
		if (refused)
			leave_out(t, o, at, &s->card);
		return 0;
	}
	int e = cuda_pool_take(s->pool, &r, block);
	if (e)
		return e;
	if (refused && is_named_failure(t, at->ns)) {
		o->failure.reached = true;
		o->failure.granted = *block;
		o->failure.spare = s->card.room - s->card.used;
		o->failure.unused = less(cuda_pool_figures(s->pool)->reserved, cuda_pool_figures(s->pool)->used);
	}
	if (*block && refused) {
		o->granted = *at;
		o->granted_count++;
		cuda_pool_give_back(s->pool, *block); /* what would have come of it isn't known */
		*block = NULL;
	} else if (!*block && !refused) {
		o->refused = *at;
		s->ended = true;
	}
	return 0;
}

static void note_stream(struct track *t, uint64_t stream)
{
	size_t i = 0;
	while (i < t->stream_count && t->streams[i] != stream)
		i++;
	if (i == t->stream_count && i < MOST_STREAMS)
		t->stream_count++;
	else if (i == MOST_STREAMS)
		i--; /* in place of the one that was used longest ago */
	memmove(&t->streams[1], &t->streams[0], i * sizeof(t->streams[0]));
	t->streams[0] = stream;
}

/* A range that was made for a request that failed has a block now, of the same stream. */
static int learn_stream(struct track *t, uint64_t addr, uint64_t stream)
{
	struct replay_segments *g = facts_of(t)->segments;
	struct span *s = t->any_failed ? span_at(t, addr) : NULL;
	if (!s || !s->failed)
		return 0;
	s->failed = false;
	int e = vec_reserve(g->owners, g->owner_room, s->number + 1);
	struct owner *o = e ? NULL : &g->owners[s->number];
	if (e || (o->has_stream && (o->stream <= UNKNOWN_STREAM || stream > UNKNOWN_STREAM)))
		return e;
	o->stream = stream;
	o->has_stream = g->learnt = true;
	return 0;
}

/* Such a range was passed over: it is of a stream that nothing is known of. */
static int learn_other_stream(struct track *t)
{
	struct span *s = t->elsewhere && t->any_failed ? span_at(t, t->elsewhere) : NULL;
	t->elsewhere = 0;
	return s && s->failed ? learn_stream(t, s->begin, UNKNOWN_STREAM + 1 + s->number) : 0;
}

/* Of the range that was made for a request which failed then, if that is known. */
static const struct owner *owner_of_failed(struct track *t)
{
	const struct replay_segments *g = facts_of(t)->segments;
	const struct driver_call *made = find_call(t, CALL_RESERVE, 0, 0);
	struct span *s = made ? span_at(t, made->addr) : NULL;
	if (!s)
		return NULL;
	s->failed = t->any_failed = true;
	return s->number < g->owner_room && g->owners[s->number].has_stream ? &g->owners[s->number] : NULL;
}

/* The trace does not have the stream of a request that failed: one for which the pool had no block, and had room in its
 * ranges if no new one was made; the last used first. */
static uint64_t stream_of_refused(struct track *t, struct cuda_pool_request r)
{
	const struct owner *known = owner_of_failed(t);
	if (known)
		return known->stream;
	const bool made = find_call(t, CALL_RESERVE, 0, 0);
	uint64_t found = t->streams[0];
	bool any = false;
	for (size_t i = 0; i < t->stream_count; i++) {
		r.stream = t->streams[i];
		if (cuda_pool_has(t->pools[0].pool, &r))
			continue;
		if (cuda_pool_lacks_range(t->pools[0].pool, &r) == made)
			return r.stream;
		found = any ? found : r.stream;
		any = true;
	}
	return found;
}

/* What the program has then, whatever the replay says of it. */
static void put_live(struct track *t, struct live *l)
{
	struct replay_track *f = facts_of(t);
	struct live *old;
	HASH_REPLACE(hh, t->live, addr, sizeof(l->addr), l, old);
	t->used += l->bytes - (old ? old->bytes : 0);
	t->requested += l->requested - (old ? old->requested : 0);
	t->low += l->low - (old ? old->low : 0);
	f->most_used = higher(f->most_used, t->used);
	f->most_requested = higher(f->most_requested, t->requested);
	f->most_requested_low = higher(f->most_requested_low, t->low);
	free(old);
}

static int request(struct track *t, const struct mt_event *s, const struct mt_ext_device *x, struct replay_moment *at)
{
	struct replay_track *f = facts_of(t);
	const bool refused = s->kind == MT_DEVICE_FAIL;
	const uint64_t bytes = refused ? s->addr : x->other ? s->size - (x->other - 1) : s->size;
	struct live *l = calloc(1, sizeof(*l) + t->pass->pools * sizeof(l->blocks[0]));
	struct cuda_pool_request r = {
		.bytes = bytes, .stream = x->stream, .capturing = x->capture, .rounded = !refused && !x->other
	};
	int e = l ? 0 : error_memory();
	at->bytes = bytes;
	if (!e)
		e = empty_as_then(t, &r);
	const struct driver_call *range = refused ? find_call(t, CALL_RESERVE, 0, 0) : NULL;
	if (!e)
		e = pool_of(t, x->capture, !refused ? s->addr : range ? range->addr : 0, &r.capture);
	t->capture = r.capture;
	if (!e)
		e = before_capture(t, x->capture);
	if (refused)
		r.stream = stream_of_refused(t, r);
	if (!e)
		e = follow(t, &r, s, refused, at);
	uint64_t low = bytes;
	for (size_t i = 0; i < t->pass->pools && !e; i++) {
		if (is_low(t->pass, i))
			r.bytes = low;
		e = take_in(t, i, &r, at, refused, &l->blocks[i]);
		if (i == 0 && r.rounded && l->blocks[0])
			low = cuda_pool_least_request(t->pools[0].pool, l->blocks[0]);
		r.rounded = false; /* a case rounds in its own way */
	}
	t->failed |= refused && is_named_failure(t, at->ns);
	if (e || refused) {
		if (!e && outcome_of(t, 0)->granted.request == at->request)
			differ(t, at);
		free(l);
		return e;
	}
	e = learn_other_stream(t);
	if (!l->blocks[0] || t->torn || cuda_pool_address_of(l->blocks[0]) != s->addr ||
	    cuda_pool_bytes_of(l->blocks[0]) != s->size)
		differ(t, at);
	if (bytes - low >= ROUNDED) {
		f->unknown_sizes++;
		f->most_unknown = higher(f->most_unknown, bytes - low);
	}
	note_stream(t, x->stream);
	if (!e)
		e = learn_stream(t, s->addr, x->stream);
	l->addr = s->addr;
	l->bytes = s->size;
	l->requested = bytes;
	l->low = low;
	put_live(t, l);
	return e;
}

static void note_outside(struct track *t)
{
	struct replay_track *f = facts_of(t);
	uint64_t reserved = cuda_pool_figures(t->pools[0].pool)->reserved;
	const uint64_t own = reserved + t->unmapped;
	if (t->total_bytes && !f->differs.request && t->total_bytes >= t->free_bytes + own)
		f->outside = t->total_bytes - t->free_bytes - own;
}

static int note_request(struct pass *pass, const struct process *p, const struct mt_event *s,
			const struct mt_ext_device *x)
{
	struct track *t;
	int e = track_of(pass, p, x->device, &t);
	if (e)
		return e;
	struct replay_track *f = facts_of(t);
	e = claim_ranges(t, &pass->processes[p->id], 0);
	if (e)
		return e;
	f->requests++;
	f->refused += s->kind == MT_DEVICE_FAIL;
	struct replay_moment at = {
		.request = f->requests, .ns = process_ns(p, s->ticks), .node = s->node, .node2 = s->node2
	};
	e = f->unmodelled ? 0 : request(t, s, x, &at);
	if (s->kind == MT_DEVICE_FAIL)
		note_outside(t);
	t->call_count = 0;
	t->torn = false;
	t->unmapped = 0;
	return e;
}

/* Of Ascend's pools the trace does not say on which device a block was. */
static struct live *find_live(const struct per_process *of, uint32_t device, uint64_t addr, struct track **track)
{
	const size_t begin = device, end = device ? device + 1ul : of->room;
	for (size_t i = begin; i < end && i < of->room; i++) {
		struct live *l = NULL;
		if (of->tracks[i])
			HASH_FIND(hh, of->tracks[i]->live, &addr, sizeof(addr), l);
		*track = of->tracks[i];
		if (l)
			return l;
	}
	return NULL;
}

static int note_free(struct pass *pass, const struct process *p, uint32_t device, uint64_t addr)
{
	struct track *t;
	struct live *l = find_live(&pass->processes[p->id], device, addr, &t);
	if (!l)
		return 0;
	if (was_emptied(t, NULL)) { /* before this block was free */
		int e = empty_as_then(t, NULL);
		t->call_count = 0;
		if (e)
			return e;
	}
	note_freed(t, l->addr, l->bytes);
	for (size_t i = 0; i < pass->pools; i++)
		if (l->blocks[i] && !t->pools[i].ended)
			cuda_pool_give_back(t->pools[i].pool, l->blocks[i]);
	t->used -= l->bytes;
	t->requested -= l->requested;
	t->low -= l->low;
	HASH_DEL(t->live, l);
	free(l);
	return 0;
}

/* ---- a pass ------------------------------------------------------------------------------------------------- */

static int note_slot(struct pass *pass, const struct process *p, const struct mt_event *s)
{
	const struct mt_ext_device *x = (const struct mt_ext_device *)(s + 1);
	if (pass->q->only && pass->q->only->id != p->id)
		return 0;
	if (x->class != MT_CLASS_POOL)
		return note_driver(pass, p, s, x);
	if (s->kind == MT_DEVICE_ALLOC || s->kind == MT_DEVICE_FAIL)
		return note_request(pass, p, s, x);
	if (s->kind == MT_DEVICE_FREE)
		return note_free(pass, p, x->device, s->addr);
	return s->kind == MT_DEVICE_INFO ? note_driver(pass, p, s, x) : 0;
}

/* An incomplete list is of no use. */
static void keep_event(struct replay_events *t, const struct process *p, const struct mt_event *s)
{
	if (!t->whole)
		return;
	t->whole = t->count < MOST_KEPT && !vec_reserve_raw(t->list, t->room, t->count + 1);
	if (t->whole)
		t->list[t->count++] = (struct kept_event){ p->id, { s[0], s[1] } };
}

static int note_step(struct pass *pass, const struct reader_step *step, bool keeping)
{
	int e = 0;
	for (size_t i = 0; i < step->count && e >= 0; i++) {
		const struct mt_event *s = &step->slots[i];
		pass->out->folded |= s->kind == MT_FOLD;
		if (s->kind < MT_DEVICE_ALLOC || s->kind > MT_DEVICE_INFO)
			continue;
		if (keeping)
			keep_event(pass->out->kept, step->process, s);
		e = note_slot(pass, step->process, s);
	}
	return e;
}

/* The first pass keeps its events for the others. */
static int read_all(struct pass *pass, struct reader *r)
{
	const bool keeping = !pass->out->kept;
	struct reader_step step;
	int e;
	if (keeping) {
		if (!(pass->out->kept = calloc(1, sizeof(*pass->out->kept))))
			return error_memory();
		pass->out->kept->whole = true;
	}
	while ((e = reader_next(r, &step)) > 0) {
		e = step.what == READER_EVENTS ? note_step(pass, &step, keeping) : 0;
		if (e < 0)
			break;
		if (pass->q->on_progress) {
			const struct reader_progress done = reader_progress(r);
			pass->q->on_progress(done.done, done.events);
		}
	}
	if (!pass->out->kept->whole) {
		free(pass->out->kept->list);
		*pass->out->kept = (struct replay_events){ 0 };
	}
	return e;
}

static int replay_kept(struct pass *pass, const struct replay_events *t)
{
	int e = 0;
	for (size_t i = 0; i < t->count && e >= 0; i++)
		e = note_slot(pass, reader_process(pass->first, t->list[i].process), t->list[i].slots);
	return e;
}

/* Figures as they are at the end. */
static void finish(struct pass *pass)
{
	for (unsigned i = 0; i < pass->process_count; i++) {
		struct per_process *of = &pass->processes[i];
		for (size_t k = 0; k < of->room; k++) {
			struct track *t = of->tracks[k];
			if (t && facts_of(t)->unknown_sizes && is_low(pass, pass->pools - 1))
				facts_of(t)->outcomes_low = facts_of(t)->outcomes + pass->q->case_count;
			for (size_t stage = 0; t && stage < pass->pools; stage++) {
				outcome_of(t, stage)->figures = *cuda_pool_figures(t->pools[stage].pool);
				outcome_of(t, stage)->room = t->pools[stage].card.room;
			}
			free_track(t);
		}
		struct physical *one, *next;
		HASH_ITER(hh, of->physical, one, next)
		{
			HASH_DEL(of->physical, one);
			free(one);
		}
		free(of->tracks);
		free(of->ranges);
	}
	free(pass->processes);
}

/* `r` NULL: of the kept events. */
static int run_pass(struct replay *out, const struct reader *first, struct reader *r, const struct replay_query *q,
		    size_t pools)
{
	struct pass pass = {
		.first = first, .out = out, .q = q, .process_count = reader_processes(first), .pools = pools
	};
	pass.processes = calloc(pass.process_count + 1ul, sizeof(*pass.processes));
	int e = !pass.processes ? error_memory() : r ? read_all(&pass, r) : replay_kept(&pass, out->kept);
	if (pass.processes)
		finish(&pass);
	return e;
}

/* What an earlier pass was for stays: settings, and what others have of the device. */
static void begin_again(struct replay *out)
{
	for (size_t i = 0; i < out->count; i++) {
		struct replay_track *f = &out->tracks[i];
		f->requests = f->refused = f->unknown_sizes = f->most_unknown = 0;
		f->most_used = f->most_requested = f->most_requested_low = 0;
		f->differs = f->switched = (struct replay_moment){ 0 };
		f->switches = f->held_count = f->most_held = 0;
		f->run = (struct replay_outcome){ 0 };
		f->segments->learnt = false;
	}
}

static bool has_learnt(const struct replay *out)
{
	for (size_t i = 0; i < out->count; i++)
		if (out->tracks[i].segments->learnt)
			return true;
	return false;
}

static void free_facts(struct replay_track *f)
{
	if (f->segments) {
		free(f->segments->captures);
		free(f->segments->owners);
	}
	free(f->segments);
	free(f->outcomes);
}

/* Where the allocator was never asked for anything there is nothing but the driver. */
static void keep_pools(struct replay *out)
{
	size_t kept = 0;
	for (size_t i = 0; i < out->count; i++)
		if (out->tracks[i].requests)
			out->tracks[kept++] = out->tracks[i];
		else
			free_facts(&out->tracks[i]);
	out->count = kept;
}

/* Another pass over the trace: of the run alone, or of the cases as well. */
static int pass_again(struct replay *out, const struct reader *first, const struct replay_query *q, bool cases)
{
	const size_t pools = 1 + (cases ? q->case_count * (1 + out->sizes_unknown) : 0);
	struct reader *r = NULL;
	int e = out->kept->whole ? 0 : reader_open_again(&r, first);
	if (e)
		return e;
	begin_again(out);
	e = run_pass(out, first, r, q, pools);
	reader_close(r);
	return e;
}

int replay_more(struct replay *out, const struct reader *first, const struct replay_query *q)
{
	for (size_t i = 0; i < out->count; i++)
		if (make_outcomes(&out->tracks[i], q))
			return error_memory();
	out->case_count = q->case_count;
	int e = pass_again(out, first, q, true);
	keep_pools(out); /* what is no pool was listed anew, behind the others */
	return e;
}

/* Which of two blocks of one size serves differs by version, and the trace does not have that: where the order of newer
 * ones does not fit, the older one is tried, and stays if it gets further. */
static int find_order(struct replay *out, const struct reader *first, const struct replay_query *q)
{
	struct replay_moment *before = calloc(out->count + 1, sizeof(*before));
	int e = before ? 0 : error_memory();
	bool any = false;
	for (size_t i = 0; i < out->count && !e; i++) {
		before[i] = out->tracks[i].differs;
		out->tracks[i].settings.oldest_first ^= before[i].request > 0;
		any |= before[i].request;
	}
	if (!e && any)
		e = pass_again(out, first, q, false);
	for (size_t i = 0; i < out->count && any && !e; i++) {
		struct replay_track *f = &out->tracks[i];
		if (f->differs.request && f->differs.request <= before[i].request) {
			f->settings.oldest_first ^= true;
			f->differs = before[i];
		}
	}
	free(before);
	return e;
}

/* How many of the cases. */
static size_t affordable(const struct replay *out, const struct replay_query *q)
{
	uint64_t requests = 0;
	for (size_t i = 0; i < out->count; i++)
		requests += out->tracks[i].requests;
	if (!q->most_work || requests * q->case_count <= q->most_work || !q->case_count)
		return q->case_count;
	return requests <= q->most_work ? 1 : 0;
}

static int replay_affordable(struct replay *out, const struct reader *first, const struct replay_query *q)
{
	struct replay_query some = *q;
	some.case_count = out->case_count = affordable(out, q);
	for (size_t i = 0; i < out->count; i++)
		out->sizes_unknown |= out->tracks[i].unknown_sizes > 0;
	return some.case_count ? pass_again(out, first, &some, true) : 0;
}

int replay_run(struct replay *out, struct reader *r, const struct replay_query *q)
{
	*out = (struct replay){ 0 };
	int e = run_pass(out, r, r, q, 1); /* what others have of the device is known behind it */
	for (int pass = 1; !e && has_learnt(out) && pass < REPLAY_MOST_PASSES; pass++)
		e = pass_again(out, r, q, false);
	if (!e)
		e = find_order(out, r, q);
	if (!e)
		e = replay_affordable(out, r, q);
	keep_pools(out);
	return e;
}

void replay_fini(struct replay *r)
{
	for (size_t i = 0; i < r->count; i++)
		free_facts(&r->tracks[i]);
	free(r->tracks);
	if (r->kept)
		free(r->kept->list);
	free(r->kept);
	*r = (struct replay){ 0 };
}
