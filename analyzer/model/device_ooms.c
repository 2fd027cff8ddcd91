/*
 * What failed, and what it belongs to.
 *
 * A pool that finds no block asks the driver; if that refuses, the pool returns what it has cached and asks again; if
 * that fails too it gives up and says so. So a refusal is not yet an event of its own. It waits, per ring, for what the
 * same thread does next:
 *
 *   the pool gives up                          one OOM, the refusals are its evidence
 *   the pool serves a block from memory that
 *   the driver gave after the refusal          a retry that succeeded
 *   ... from older memory, or nothing at all   it had nothing to do with the pool: an OOM of its own
 *
 * Where no pool is seen a refusal is followed by the same request again, or is an OOM of its own.
 */
#include "analyzer/model/device.h"

#include "analyzer/model/pool_layout.h"
#include "analyzer/util/vec.h"

#define RETRY_NS      1000000000ull  /* a request this long after the same one that failed is not its retry ... */
#define POOL_RETRY_NS 60000000000ull /* ... but a pool may wait for its streams and return much memory in between */
#define INFO_NS       10000000000ull

enum { RESOURCE_EXHAUSTED = 8 }; /* status of a failure of XLA's; that of others' pools is 2 */
enum { LAYOUTS_TAKEN = 1000 };   /* of one device: each costs a look at all blocks */

struct oom_thread {
	/* of the latest pool block that the thread took: its next one is probably of the same */
	uint64_t stream;
	const struct share *stream_of; /* where it took that; NULL = it took none */
	bool waits;                    /* `oom` is not decided */
	struct model_oom oom;
	struct share *share;
	uint64_t first_event, last_ns, last_bytes; /* of its refusals */
	struct info {
		bool known;
		uint32_t id;
		uint64_t ns, free, total, own;
	} info;
};

static struct oom_thread *thread_of(struct process_memory *memory, uint32_t ring)
{
	struct process_devices *b = memory->devices;
	return vec_reserve(b->threads, b->thread_room, ring + 1ul) ? NULL : &b->threads[ring];
}

/* ---- the list -------------------------------------------------------------------------------------------- */

static void oom_fini(struct model_oom *o)
{
	pool_layout_free(o->layout);
	moment_fini(&o->at);
	o->layout = NULL;
}

/* The first ones and the last. */
static int keep(struct share *s, const struct model_oom *o)
{
	struct device *d = s->device;
	int e = vec_reserve(d->ooms, d->oom_room, d->oom_count + 1);
	if (e)
		return e;
	if (d->oom_count == MODEL_OOMS)
		oom_fini(&d->ooms[--d->oom_count]);
	if (d->oom_count > MODEL_LAYOUTS) {
		pool_layout_free(d->ooms[d->oom_count - 1].layout);
		d->ooms[d->oom_count - 1].layout = NULL;
	}
	d->ooms[d->oom_count++] = *o;
	d->oom_total++;
	s->seen.ooms++;
	s->seen.retries += o->retries;
	return 0;
}

/* The refusals that wait were an OOM of their own. */
static int decide(struct oom_thread *t)
{
	if (!t->waits)
		return 0;
	t->waits = false;
	t->oom.retries = 0; /* nobody tried anything, as far as one can see */
	return keep(t->share, &t->oom);
}

static void forget(struct oom_thread *t)
{
	if (t->waits)
		oom_fini(&t->oom);
	t->waits = false;
}

/* ---- the moment ------------------------------------------------------------------------------------------ */

int oom_info(struct process_memory *memory, const struct device_event *e)
{
	struct oom_thread *t = thread_of(memory, e->ring);
	struct share *s = t ? share_of(memory, e->ext.device) : NULL;
	if (!s)
		return -MT_EMEMORY;
	t->info = (struct info){ true,
				 e->ext.device,
				 e->ns,
				 e->slot->addr,
				 e->slot->size ? e->slot->size : MODEL_UNKNOWN,
				 s->device->layer[LAYER_MEMORY].totals.live_bytes };
	if (e->slot->size > s->device->seen.total_bytes)
		s->device->seen.total_bytes = e->slot->size;
	if (s->device->seen.used_before == MODEL_UNKNOWN && !s->device->layer[LAYER_MEMORY].totals.allocations &&
	    e->slot->addr <= e->slot->size)
		s->device->seen.used_before = e->slot->size - e->slot->addr;
	return 0;
}

/* What the driver said lately is true as long as nobody we see has changed anything. */
static bool info_holds(const struct oom_thread *t, const struct share *s, const struct device_event *e)
{
	return t->info.known && t->info.id == e->ext.device && e->ns - t->info.ns < INFO_NS &&
	       t->info.own == s->device->layer[LAYER_MEMORY].totals.live_bytes;
}

/* What the pool could use of its segments, as far as sums tell. */
static void see_pools(struct model_oom *o, const struct share *s)
{
	o->graphs = (struct model_pools){ .reserved = s->layer[LAYER_PRIVATE].totals.live_bytes,
					  .largest_hole = MODEL_UNKNOWN,
					  .allocated = s->layer[LAYER_PRIVATE_POOL].totals.live_bytes,
					  .idle = MODEL_UNKNOWN };
	o->usable = (struct model_pools){ .largest_hole = MODEL_UNKNOWN, .idle = MODEL_UNKNOWN };
	if (!o->capturing) {
		o->usable.reserved = o->reserved_bytes - o->graphs.reserved;
		o->usable.allocated = o->allocated_bytes - o->graphs.allocated;
	}
}

static int see_layout(struct model_oom *o, struct share *s, const struct oom_thread *t, uint32_t capture)
{
	const struct model *m = s->memory->model;
	o->largest_hole_bytes = o->whole_free_bytes = MODEL_UNKNOWN;
	if (s->device->layouts >= LAYOUTS_TAKEN)
		return 0;
	s->device->layouts++;
	pool_layout_free(o->layout);
	int e = pool_layout_take(&o->layout, m, s->device->seen.index, s->seen.process->id);
	if (e)
		return e;
	if (s->seen.partly_seen) { /* what is in no block may be in use */
		see_pools(o, s);
		return 0;
	}
	o->largest_hole_bytes = o->layout->largest_hole;
	o->whole_free_bytes = o->layout->idle;
	o->asked = (struct pool_request){ .pool = capture ? graphs_pool_of_capture(s, capture) : POOL_LAYOUT_COMMON,
					  .bytes = o->pool ? o->requested_bytes : 0,
					  .stream_known = o->pool && t->stream_of == s,
					  .stream = t->stream };
	o->withheld_bytes = o->retries ? pool_layout_withhold(o->layout, &o->asked) : 0;
	o->whole_free_bytes -= o->withheld_bytes;
	o->usable = pool_layout_usable(o->layout, &o->asked);
	o->graphs = pool_layout_pools(o->layout, POOL_LAYOUT_PRIVATE);
	return 0;
}

/* The device and the process's part of it as they are now. */
static int see(struct model_oom *o, struct share *s, const struct oom_thread *t, const struct device_event *e)
{
	int error = device_moment(s->device, &o->at, e->ns, s->memory->model->device_events);
	if (error)
		return error;
	if (info_holds(t, s, e)) {
		o->at.free_bytes = t->info.free;
		o->at.total_bytes = t->info.total;
	}
	o->allocated_bytes = s->layer[LAYER_POOL].totals.live_bytes;
	o->reserved_bytes = s->layer[LAYER_RESERVED].totals.live_bytes;
	o->given = s->given;
	o->capturing = e->ext.capture != 0;
	see_pools(o, s);
	return see_layout(o, s, t, e->ext.capture);
}

static struct model_oom oom_of(const struct share *s, const struct device_event *e)
{
	return (struct model_oom){ .process = s->seen.process->id,
				   .device = s->device->seen.index,
				   .thread = e->thread,
				   .node = e->slot->node,
				   .node2 = e->slot->node2,
				   .hook = e->slot->hook,
				   .requested_bytes = e->slot->addr,
				   .requested_error = e->slot->size,
				   .said_allocated = MODEL_UNKNOWN,
				   .said_reserved = MODEL_UNKNOWN };
}

/* ---- events ---------------------------------------------------------------------------------------------- */

static void count_failure(struct model_totals *t, uint64_t bytes)
{
	t->failed++;
	t->failed_bytes_max = bytes > t->failed_bytes_max ? bytes : t->failed_bytes_max;
}

/* The same once more, or, as TensorFlow's and XLA's pools do, a tenth less. */
static bool asks_again(const struct oom_thread *t, const struct share *s, uint64_t bytes)
{
	const uint64_t before = t->last_bytes;
	if (bytes == before)
		return t->oom.refusal_count < MODEL_REFUSALS;
	return s->has_pool && bytes < before && bytes >= before - before / 8;
}

/* Is this the same request once more? */
static bool is_retry(const struct oom_thread *t, const struct share *s, const struct device_event *e)
{
	return t->waits && t->share == s && asks_again(t, s, e->slot->addr) &&
	       e->ns - t->last_ns < (s->has_pool ? POOL_RETRY_NS : RETRY_NS);
}

static int refused(struct share *s, struct oom_thread *t, const struct device_event *e)
{
	int error = 0;
	if (!is_retry(t, s, e)) {
		error = decide(t);
		t->oom = oom_of(s, e);
		t->oom.block_bytes = e->slot->addr;
		t->share = s;
		t->first_event = s->memory->model->device_events;
	}
	t->waits = true;
	t->last_ns = e->ns;
	t->last_bytes = e->slot->addr;
	t->oom.block_bytes = e->slot->addr;
	t->oom.refusal_count -= t->oom.refusal_count == MODEL_REFUSALS;
	t->oom.refusals[t->oom.refusal_count++] = (struct model_refusal){
		.ns = e->ns,
		.bytes = e->slot->addr,
		.node = e->slot->node,
		.node2 = e->slot->node2,
		.hook = e->slot->hook,
		.status = e->ext.status,
	};
	return error ? error : see(&t->oom, s, t, e);
}

/* The pool gave up. */
static int gave_up(struct share *s, struct oom_thread *t, const struct device_event *e)
{
	struct model_oom o = oom_of(s, e);
	o.pool = s->has_pool = true;
	s->seen.partly_seen |= e->ext.status == RESOURCE_EXHAUSTED;
	/* a pool gives up after it has returned its cache, whether it asked the driver then or knew its limit; but not
	 * in a capture */
	o.retries = !e->ext.capture;
	int error = 0;
	if (t->waits && (t->share != s || e->ns - t->last_ns >= POOL_RETRY_NS))
		error = decide(t);
	if (t->waits) {
		memcpy(o.refusals, t->oom.refusals, sizeof(o.refusals));
		o.refusal_count = t->oom.refusal_count;
		o.block_bytes = t->oom.block_bytes;
	}
	forget(t);
	if (e->ext.stream || e->ext.other) {
		o.said_allocated = e->ext.stream;
		o.said_reserved = e->ext.other;
	}
	if (!error)
		error = see(&o, s, t, e);
	if (!o.refusal_count && o.requested_bytes &&
	    (o.at.free_bytes == MODEL_UNKNOWN || o.at.free_bytes >= o.requested_bytes))
		o.limit_bytes = o.said_reserved != MODEL_UNKNOWN ? o.said_reserved : o.reserved_bytes;
	return error ? error : keep(s, &o);
}

int oom_fail(struct process_memory *memory, const struct device_event *e)
{
	const unsigned class = e->ext.class;
	const bool pool = class == MT_CLASS_POOL || class == MT_CLASS_WORKSPACE;
	if (class == MT_CLASS_PINNED || class == MT_CLASS_REGISTERED) {
		count_failure(&memory->kind[MODEL_PINNED].totals, e->slot->addr);
		return 0;
	}
	if (class == MT_CLASS_RESERVED || class == MT_CLASS_ALIAS || !class || class >= MT_CLASSES)
		return 0; /* addresses, not memory */
	struct share *s = share_of(memory, e->ext.device);
	struct oom_thread *t = s ? thread_of(memory, e->ring) : NULL;
	if (!t || share_show(s))
		return -MT_EMEMORY;
	count_failure(&memory->kind[pool ? MODEL_POOL : MODEL_DEVICE].totals, e->slot->addr);
	count_failure(&s->layer[pool ? LAYER_POOL : LAYER_MEMORY].totals, e->slot->addr);
	return pool ? gave_up(s, t, e) : refused(s, t, e);
}

int oom_served(struct share *s, const struct device_event *e, uint64_t since)
{
	struct oom_thread *t = thread_of(s->memory, e->ring);
	if (!t)
		return -MT_EMEMORY;
	t->stream = e->ext.stream;
	t->stream_of = s;
	if (!t->waits || t->share != s)
		return 0;
	if (since <= t->first_event)
		return decide(t);
	s->seen.retries++;
	forget(t);
	return 0;
}

void oom_given(struct share *s, const struct device_event *e)
{
	struct process_devices *b = s->memory->devices;
	struct oom_thread *t = e->ring < b->thread_room ? &b->threads[e->ring] : NULL;
	if (!t || s->has_pool ||
	    !is_retry(t, s, &(struct device_event){ .slot = &(struct mt_event){ .addr = e->slot->size }, .ns = e->ns }))
		return;
	s->seen.retries++;
	forget(t);
}

/* ---- the end --------------------------------------------------------------------------------------------- */

int ooms_settle(struct process_memory *memory)
{
	int e = 0;
	for (size_t i = 0; i < memory->devices->thread_room && !e; i++)
		e = decide(&memory->devices->threads[i]);
	return e;
}

/* Whether the process lived on. A few allocations after the failure may be its clean-up. */
static enum model_outcome outcome_of(const struct model *m, const struct model_oom *o, bool last)
{
	enum { CLEAN_UP = 64 };
	const struct process_memory *memory = &m->processes[o->process];
	const struct process *p = memory->seen.process;
	const struct model_share *seen = model_share(m, o->device, o->process);
	uint64_t after = seen ? ((const struct share *)seen)->given - o->given : 0;
	bool failed = p->exit_kind == MT_EXIT_SIGNAL || (p->exit_kind == MT_EXIT_CODE && p->exit_code != 0);
	if (p->exit_kind == MT_EXIT_CODE && p->exit_code == 0)
		return OUTCOME_CAUGHT;
	if (failed && last && after < CLEAN_UP)
		return OUTCOME_FATAL;
	return after || failed ? OUTCOME_CAUGHT : OUTCOME_UNKNOWN;
}

static int by_event(const void *a, const void *b)
{
	const struct model_oom *x = *(const struct model_oom *const *)a, *y = *(const struct model_oom *const *)b;
	return (x->at.event > y->at.event) - (x->at.event < y->at.event);
}

static int oom_order(const void *a, const void *b)
{
	const struct model_oom *x = a, *y = b;
	return by_event(&x, &y);
}

static bool is_last(const struct model *m, size_t i)
{
	for (size_t k = i + 1; k < m->oom_total; k++)
		if (m->ooms[k]->process == m->ooms[i]->process)
			return false;
	return true;
}

int ooms_finish(struct model *m)
{
	size_t all = 0;
	for (size_t i = 0; i < m->device_count; i++)
		all += m->devices[i]->oom_count;
	m->ooms = calloc(all + 1, sizeof(*m->ooms));
	if (!m->ooms)
		return error_memory();
	for (size_t i = 0; i < m->device_count; i++) {
		struct device *d = m->devices[i];
		if (d->oom_count)
			qsort(d->ooms, d->oom_count, sizeof(*d->ooms), oom_order);
		d->seen.oom = d->ooms;
		d->seen.oom_count = (unsigned)d->oom_count;
		d->seen.ooms = d->oom_total;
		for (size_t k = 0; k < d->oom_count; k++)
			m->ooms[m->oom_total++] = &d->ooms[k];
	}
	qsort(m->ooms, m->oom_total, sizeof(*m->ooms), by_event);
	for (size_t i = 0; i < m->oom_total; i++)
		((struct model_oom *)m->ooms[i])->outcome = outcome_of(m, m->ooms[i], is_last(m, i));
	return 0;
}

void ooms_fini(struct device *d)
{
	for (size_t i = 0; i < d->oom_count; i++)
		oom_fini(&d->ooms[i]);
	free(d->ooms);
	d->ooms = NULL;
	d->oom_count = d->oom_room = 0;
	d->oom_total = 0;
}

void ooms_fini_threads(struct process_devices *b)
{
	for (size_t i = 0; i < b->thread_room; i++)
		forget(&b->threads[i]);
	free(b->threads);
	b->threads = NULL;
	b->thread_room = 0;
}
