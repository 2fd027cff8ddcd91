/* Fills the evidence from what the modules know of the trace: the only place where they and the rules meet. */
#include "analyzer/diagnosis/evidence.h"

#include "analyzer/diagnosis/unfinished.h"
#include "analyzer/diagnosis/evidence_growth.h"
#include "analyzer/diagnosis/evidence_heap.h"
#include "analyzer/diagnosis/evidence_replay.h"
#include "analyzer/diagnosis/pins.h"
#include "analyzer/model/pool_layout.h"
#include "analyzer/replay/pool/replay.h"
#include "analyzer/diagnosis/growth/process_piles.h"
#include "analyzer/symbols/python_frames.h"
#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"

#define LEAST_ALIVE  4    /* activations, to tell from them whether a graph is kept, ... */
#define KEPT_OF_MADE 0.25 /* ... which is more than this part of what is made */
#define ENDING_PART  4    /* of a process's time: so much of it is lately */

/* ---- what is not known ------------------------------------------------------------------------------------- */

struct evidence_device evidence_device_none(void)
{
	return (struct evidence_device){
		.name = "device",
		.total = EVIDENCE_UNKNOWN,
		.free = EVIDENCE_UNKNOWN,
		.own_other = EVIDENCE_UNKNOWN,
		.request = { .limit_bytes = EVIDENCE_UNKNOWN, .rise = EVIDENCE_UNKNOWN },
		.pool = { .largest_hole = EVIDENCE_UNKNOWN, .free_segments = EVIDENCE_UNKNOWN },
		.most_for = CATEGORY_unknown,
		.most_before = EVIDENCE_UNKNOWN,
		.graph_nodes = EVIDENCE_UNKNOWN,
		.step_first = EVIDENCE_UNKNOWN,
		.step_latest = EVIDENCE_UNKNOWN,
	};
}

struct evidence evidence_none(void)
{
	return (struct evidence){ .complete = true,
				  .host = {
					  .memory = EVIDENCE_UNKNOWN,
					  .limit = EVIDENCE_UNKNOWN,
					  .anon = EVIDENCE_UNKNOWN,
					  .file = EVIDENCE_UNKNOWN,
					  .available_min = EVIDENCE_UNKNOWN,
					  .swap_start = EVIDENCE_UNKNOWN,
					  .swap_peak = EVIDENCE_UNKNOWN,
					  .swap_total = EVIDENCE_UNKNOWN,
					  .rss_peak = EVIDENCE_UNKNOWN,
					  .rss_anon = EVIDENCE_UNKNOWN,
					  .live = EVIDENCE_UNKNOWN,
					  .live_peak = EVIDENCE_UNKNOWN,
					  .kept = EVIDENCE_UNKNOWN,
					  .shm_used = EVIDENCE_UNKNOWN,
					  .shm_total = EVIDENCE_UNKNOWN,
					  .copied = EVIDENCE_UNKNOWN,
					  .shm_left = EVIDENCE_UNKNOWN,
				  } };
}

/* ---- devices ----------------------------------------------------------------------------------------------- */

static const struct device_ledger_process *row_of(const struct device_ledger *l, uint32_t process)
{
	for (unsigned i = 0; i < l->process_count; i++)
		if (l->processes[i].process && l->processes[i].process->id == process)
			return &l->processes[i];
	return NULL;
}

static enum evidence_failure outcome_of(enum model_outcome o)
{
	return o == OUTCOME_CAUGHT ? FAILURE_CAUGHT : o == OUTCOME_FATAL ? FAILURE_FATAL : FAILURE_UNKNOWN;
}

/* Whose code asked the driver: the first library with a name from the inside. */
static const char *library_of(const struct diagnosis *diagnosis, uint32_t stack)
{
	const char *name = NULL;
	for (struct stack_walk w = { .next = stack }; !name && stack_step(diagnosis->selection->stacks, &w);)
		name = w.frame->library ? device_ledger_library(w.frame->library) : NULL;
	return name;
}

/* Who asked the driver beside the pool. */
static void set_caller(struct diagnosis *diagnosis, struct evidence_request *r, const struct model_oom *oom)
{
	const struct process *p = reader_process(diagnosis->selection->reader, oom->process);
	uint32_t stack = stacks_of(diagnosis->selection->stacks, p, oom->node, oom->node2);
	enum category c =
		oom->pool ? CATEGORY_unknown : categories_of(diagnosis->selection->categories, stack, LIFETIME_UNKNOWN);
	r->caller = oom->pool                 ? CALLER_POOL
		    : c == CATEGORY_comm      ? CALLER_COMM
		    : c == CATEGORY_workspace ? CALLER_LIBRARY
					      : CALLER_PROGRAM;
	r->caller_name = oom->pool ? NULL : library_of(diagnosis, stack);
}

/* What of the pool this request could not use. */
static struct evidence_graphs graphs_of(const struct model_oom *oom)
{
	uint64_t graphs = less(oom->graphs.reserved, oom->graphs.allocated);
	struct evidence_graphs g = { .captures = oom->graphs.captures,
				     .pools = oom->graphs.pools,
				     .reserved = oom->graphs.reserved,
				     .allocated = oom->graphs.allocated,
				     .unused = graphs,
				     .capturing = oom->capturing };
	if (oom->capturing) {
		g.unused = less(graphs, less(oom->usable.reserved, oom->usable.allocated));
		g.common_unused = less(less(oom->reserved_bytes, oom->allocated_bytes), graphs);
		g.common_idle = oom->layout ? pool_layout_pools(oom->layout, POOL_LAYOUT_COMMON).idle : 0;
	}
	return g;
}

/* Unused in segments of the common pool that this request could not use. */
static uint64_t apart_of(const struct model_oom *oom)
{
	if (!oom->layout || oom->capturing)
		return 0;
	struct model_pools common = pool_layout_pools(oom->layout, POOL_LAYOUT_COMMON);
	return less(less(common.reserved, common.allocated), less(oom->usable.reserved, oom->usable.allocated));
}

static int set_pins(struct diagnosis *diagnosis, struct evidence_device *e, const struct model_oom *oom)
{
	struct pin *pins = NULL;
	size_t count = 0;
	int error = oom->layout ? pins_find(oom->layout, &oom->asked, &pins, &count) : 0;
	size_t most = count < VERDICT_SITES ? count : VERDICT_SITES;
	struct evidence_pin *list = error < 0 ? NULL : diagnosis_alloc(diagnosis, most * sizeof(*list));
	for (size_t i = 0; list && i < most; i++) {
		const struct model_site *s = model_site(diagnosis->selection->model, pins[i].process, pins[i].site);
		const struct process *p = reader_process(diagnosis->selection->reader, pins[i].process);
		list[i] = (struct evidence_pin){ .held = pins[i].held,
						 .pinned = pins[i].pinned,
						 .site = s ? diagnosis_site(diagnosis,
									    stacks_of(diagnosis->selection->stacks, p,
										      s->node, s->node2))
							   : "?" };
	}
	free(pins);
	if (!list)
		return error < 0 ? error : error_memory();
	e->pins.items = list;
	e->pins.count = most;
	return 0;
}

static uint64_t said_unused(const struct model_oom *oom)
{
	return oom->said_reserved != MODEL_UNKNOWN && oom->said_allocated != MODEL_UNKNOWN
		       ? less(oom->said_reserved, oom->said_allocated)
		       : EVIDENCE_UNKNOWN;
}

static int set_request(struct diagnosis *diagnosis, struct evidence_device *e, const struct model_device *d,
		       const struct model_oom *oom)
{
	const struct process *p = reader_process(diagnosis->selection->reader, oom->process);
	const struct steps_rise rise =
		findings_rise(&diagnosis->findings, diagnosis->timeline, oom->process, d->index, oom->at.ns);
	e->request = (struct evidence_request){
		.failed = true,
		.pid = p->pid,
		.ns = oom->at.ns,
		.bytes = oom->requested_bytes,
		.block_bytes = oom->block_bytes,
		.limit_bytes = oom->limit_bytes ? oom->limit_bytes : EVIDENCE_UNKNOWN,
		.rise = rise.scaled,
		.rise_unscaled = rise.unscaled,
		.failures = (unsigned)d->ooms,
		.driver_failures = oom->refusal_count,
		.outcome = outcome_of(oom->outcome),
		.ran_on_ns = p->end_ns > oom->at.ns ? p->end_ns - oom->at.ns : 0,
	};
	set_caller(diagnosis, &e->request, oom);
	e->pool = (struct evidence_pool){
		.known = oom->reserved_bytes > 0,
		.driver_pool = e->pool.driver_pool,
		.partly_seen = e->pool.partly_seen,
		.said_unused = said_unused(oom),
		.reserved = oom->reserved_bytes,
		.allocated = oom->allocated_bytes,
		.expandable = e->pool.expandable,
		.apart = apart_of(oom),
		.withheld = oom->withheld_bytes,
		.largest_hole = oom->usable.largest_hole,
		.free_segments = oom->usable.idle,
		.graphs = graphs_of(oom),
	};
	int error = unfinished_find(diagnosis, d, oom, &e->request);
	return error < 0 ? error : set_pins(diagnosis, e, oom);
}

/* ---- attempts ---------------------------------------------------------------------------------------------- */

/* Lines are told by where they are, not by who called them: the next attempt is often made by another line of the
 * caller's. */
struct attempts {
	struct diagnosis *diagnosis;
	const struct model_oom *last;
	const struct model_device *device;
	/* when the first attempt began, where that is known; the first failure, and the one before the last */
	uint64_t began_ns, first_ns, before_ns;
	struct attempt_line {
		const struct frame *frame;
		uint32_t stack; /* of one of its blocks */
		uint64_t left;
	} *lines;
	size_t count, room;
	uint64_t others; /* what these lines have made that is no attempt's */
};

static struct attempt_line *line_of(struct attempts *a, const struct frame *f)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->lines[i].frame->function == f->function && a->lines[i].frame->file == f->file &&
		    a->lines[i].frame->line == f->line && a->lines[i].frame->offset == f->offset)
			return &a->lines[i];
	return NULL;
}

static const struct frame *frame_of(struct attempts *a, uint32_t stack)
{
	return stack ? stacks_site_frame(a->diagnosis->selection->stacks, stack,
					 selection_flags(a->diagnosis->selection->options))
		     : NULL;
}

static int note_line(struct attempts *a, uint32_t stack)
{
	const struct frame *f = frame_of(a, stack);
	if (!f || line_of(a, f))
		return 0;
	int e = vec_reserve(a->lines, a->room, a->count + 1);
	if (e == 0)
		a->lines[a->count++] = (struct attempt_line){ .frame = f, .stack = stack };
	return e;
}

static bool is_of(const struct attempts *a, const struct snapshot_block *b)
{
	return b->kind == MODEL_POOL && b->device == a->device->index && b->process->id == a->last->process &&
	       b->site != UINT32_MAX;
}

static int note_used(void *arg, const struct snapshot_block *b)
{
	struct attempts *a = arg;
	return is_of(a, b) && b->ns > a->first_ns ? note_line(a, diagnosis_stack(a->diagnosis, b)) : 0;
}

static bool failed_in(const struct attempts *a, uint32_t thread)
{
	for (unsigned i = 0; i < a->device->oom_count; i++)
		if (a->device->oom[i].process == a->last->process && a->device->oom[i].thread == thread)
			return true;
	return false;
}

/* Of the threads that failed; or of none, as what a thread without a program of its own makes for another one. */
static bool is_attempts(const struct attempts *a, const struct pool_layout_block *b, const struct frame *f)
{
	return b->ns > a->began_ns && (failed_in(a, b->thread) || !python_is_frame(f));
}

static void note_left(struct attempts *a, const struct pool_layout_segment *s)
{
	const struct selection *selection = a->diagnosis->selection;
	for (uint32_t i = 0; i < s->block_count; i++) {
		const struct pool_layout_block *b = &s->blocks[i];
		const struct model_site *site =
			b->ns <= a->before_ns ? model_site(selection->model, s->process, b->site) : NULL;
		const struct frame *f =
			site ? frame_of(a, stacks_of(selection->stacks, reader_process(selection->reader, s->process),
						     site->node, site->node2))
			     : NULL;
		struct attempt_line *line = f ? line_of(a, f) : NULL;
		if (line)
			*(is_attempts(a, b, f) ? &line->left : &a->others) += b->size;
	}
}

static unsigned list_attempts(struct attempts *a, const struct model_device *d)
{
	unsigned count = 0;
	for (unsigned i = 0; i < d->oom_count; i++) {
		const struct model_oom *o = &d->oom[i];
		if (o->process != a->last->process || o->at.ns >= a->last->at.ns || o->outcome != OUTCOME_CAUGHT)
			continue;
		a->first_ns = count++ ? a->first_ns : o->at.ns;
		a->before_ns = o->at.ns;
	}
	return count;
}

static int set_attempts(struct diagnosis *diagnosis, struct evidence_device *e, const struct model_device *d,
			const struct model_oom *oom)
{
	struct attempts a = { .diagnosis = diagnosis, .last = oom, .device = d };
	unsigned count = list_attempts(&a, d);
	const struct attempt_line *most = NULL;
	if (!count || !oom->layout)
		return 0;
	a.began_ns = evidence_step_began(diagnosis, oom->process, a.first_ns);
	int error = note_line(&a, stacks_of(diagnosis->selection->stacks,
					    reader_process(diagnosis->selection->reader, oom->process), oom->node,
					    oom->node2));
	if (error == 0)
		error = snapshot_each(diagnosis->parts->snapshots, note_used, &a);
	for (size_t i = 0; error == 0 && i < oom->layout->segment_count; i++)
		note_left(&a, &oom->layout->segments[i]);
	for (size_t i = 0; error == 0 && i < a.count; i++) {
		e->attempts.bytes += a.lines[i].left;
		most = !most || a.lines[i].left > most->left ? &a.lines[i] : most;
	}
	e->attempts.site = most ? diagnosis_site(diagnosis, most->stack) : NULL;
	/* where these lines keep more of what went well, it is not that they failed */
	e->attempts.count = e->attempts.bytes > a.others ? count : 0;
	free(a.lines);
	return error;
}

/* What it had when the failing process came to the device. */
static uint64_t before_us(const struct diagnosis *diagnosis, const struct model_device *d,
			  const struct device_ledger_process *row, uint64_t ns)
{
	const struct model_share *share =
		row->process ? model_share(diagnosis->selection->model, d->index, row->process->id) : NULL;
	if (!share)
		return row->before || row->since_ns < ns ? EVIDENCE_UNKNOWN : 0;
	return share->first_ns > ns ? 0
				    : model_at(diagnosis->selection->model, &share->timeline[LAYER_MEMORY], ns).last;
}

/* What one process holds on one device. */
struct held {
	const struct diagnosis *diagnosis;
	uint32_t process, device;
	struct top_lines lines;
};

static int add_held(void *arg, const struct snapshot_block *b)
{
	struct held *h = arg;
	const struct model_site *s = model_site(h->diagnosis->selection->model, b->process->id, b->site);
	if (b->process->id != h->process || b->device != h->device || (b->kind == MODEL_DEVICE && s && s->segments))
		return 0;
	return top_lines_add(&h->lines, diagnosis_stack(h->diagnosis, b), b->size);
}

/* The line that most of a traced neighbour's memory is by. */
static int set_holder(struct diagnosis *diagnosis, struct evidence_neighbour *n, uint32_t process, uint32_t device)
{
	struct top_line most[TOP_LINES_MOST];
	struct held h = { .diagnosis = diagnosis, .process = process, .device = device };
	int e = snapshot_each(diagnosis->parts->snapshots, add_held, &h);
	if (e == 0 &&
	    top_lines_most(&h.lines, diagnosis->selection->stacks, selection_flags(diagnosis->selection->options),
			   most) &&
	    most->stack) {
		n->site = diagnosis_site(diagnosis, most->stack);
		n->site_bytes = most->bytes;
	}
	top_lines_fini(&h.lines);
	return e;
}

static bool is_started_by(const struct process *p, const struct process *who)
{
	for (p = p->creator; p; p = p->creator)
		if (p->host == who->host && p->pid == who->pid)
			return true;
	return false;
}

static int set_neighbours(struct diagnosis *diagnosis, struct evidence_device *e, const struct device_ledger *l,
			  const struct model_oom *oom)
{
	struct evidence_neighbour *list = diagnosis_alloc(diagnosis, l->process_count * sizeof(*list));
	const struct device_ledger_process *own = oom ? row_of(l, oom->process) : NULL;
	int error = list ? 0 : error_memory();
	for (unsigned i = 0; error == 0 && i < l->process_count; i++) {
		const struct device_ledger_process *row = &l->processes[i];
		if ((row->process && (!oom || row->process->id == oom->process)) || row->bytes == 0)
			continue;
		struct evidence_neighbour *n = &list[e->neighbours.count++];
		*n = (struct evidence_neighbour){
			.pid = row->pid,
			.name = row->name,
			.bytes = row->bytes,
			.since_ns = row->since_ns,
			.before = row->before,
			.traced = row->process != NULL,
			.worker =
				oom && row->process &&
				is_started_by(row->process, reader_process(diagnosis->selection->reader, oom->process)),
			.pool_unused = row->process && !row->partly_seen ? row->pool_free - row->graphs_free
									 : EVIDENCE_UNKNOWN,
			.bytes_before = l->by_use && !row->process ? row->bytes
					: own                      ? before_us(diagnosis, l->device, row, own->since_ns)
								   : EVIDENCE_UNKNOWN,
		};
		error = oom && row->process ? set_holder(diagnosis, n, row->process->id, l->device->index) : 0;
	}
	e->neighbours.items = list;
	e->neighbours_known = l->other_processes != MODEL_UNKNOWN;
	e->self_listed = e->neighbours_known && !l->by_use;
	return error;
}

static void add_part(struct evidence_part *list, size_t *count, const char *name, uint64_t bytes, bool fixed)
{
	for (size_t i = 0; i < *count; i++)
		if (!strcmp(list[i].name, name)) {
			list[i].bytes += bytes;
			return;
		}
	list[(*count)++] = (struct evidence_part){ .name = name, .bytes = bytes, .fixed = fixed };
}

/* Pages that a pool has made for the request that fails just now are mapped nowhere yet. */
static uint64_t made_for_request(const struct diagnosis *diagnosis, const struct device_ledger *l,
				 const struct model_oom *oom)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; oom && i < l->at->outside_count; i++) {
		const struct model_outside *o = &l->at->outside[i];
		const struct model_site *s = model_site(diagnosis->selection->model, o->process, o->site);
		bytes += o->process == oom->process && s->segments && s->node == oom->node && s->node2 == oom->node2
				 ? o->bytes
				 : 0;
	}
	return bytes;
}

/* Of the failing process, or of all where none failed. */
static int set_parts(struct diagnosis *diagnosis, struct evidence_device *e, const struct device_ledger *l,
		     const struct model_oom *oom)
{
	const struct model_moment *at = l->at;
	struct evidence_part *list =
		diagnosis_alloc(diagnosis, (at->outside_count + l->part_count + 1) * sizeof(*list));
	if (!list)
		return error_memory();
	for (unsigned i = 0; i < at->outside_count; i++) {
		const struct model_outside *o = &at->outside[i];
		const struct model_site *s = model_site(diagnosis->selection->model, o->process, o->site);
		if (oom && o->process != oom->process)
			continue;
		const char *name =
			library_of(diagnosis, stacks_of(diagnosis->selection->stacks,
							reader_process(diagnosis->selection->reader, o->process),
							s->node, s->node2));
		add_part(list, &e->parts.count, name ? name : "the program", o->bytes, false);
	}
	for (unsigned i = 0; i < l->part_count; i++)
		if (l->parts[i].context && (!oom || l->parts[i].process->id == oom->process))
			add_part(list, &e->parts.count, "context", l->parts[i].bytes, true);
	e->parts.items = list;
	return 0;
}

static void add_line(struct evidence_copies *c, const char *line)
{
	for (unsigned i = 0; i < 4; i++) {
		if (c->owners[i] && strcmp(c->owners[i], line))
			continue;
		c->owners[i] = line;
		c->times[i]++;
		return;
	}
}

/* All of them if each copy was made by another thread, else 0. */
static unsigned threads_of(const struct copy_set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		for (unsigned k = 0; k <= i; k++)
			if (s->owners[i].thread == (k < i ? s->owners[k].thread : COPY_NO_THREAD))
				return 0;
	return s->count;
}

/* Copies of one space: all processes' on that device, or the heap's. */
static int set_copies(struct diagnosis *diagnosis, uint32_t device, const struct evidence_copies **items, size_t *count)
{
	struct evidence_copies *list = diagnosis_alloc(diagnosis, diagnosis->copies.count * sizeof(*list));
	if (!list)
		return error_memory();
	for (size_t i = 0; i < diagnosis->copies.count; i++) {
		const struct copy_set *s = &diagnosis->copies.sets[i];
		if (!diagnosis_copies_on(s, device))
			continue;
		struct evidence_copies *c = &list[(*count)++];
		*c = (struct evidence_copies){ .bytes = s->each,
					       .cast = s->cast,
					       .several = s->several,
					       .extra_bytes = s->extra_bytes,
					       .missing = s->missing_bytes,
					       .count = s->count,
					       .blocks = s->blocks,
					       .used = s->count == 2 && !s->missing_bytes };
		for (unsigned k = 0; k < s->count; k++) {
			c->used = c->used && s->owners[k].category == CATEGORY_parameters;
			c->there += s->owners[k].cut ? s->owners[k].bytes : 0;
			add_line(c, diagnosis_call(diagnosis, s->owners[k].stack));
		}
		c->threads = threads_of(s);
	}
	*items = list;
	return 0;
}

/* What most of it is for, and the line that holds most. */
static void set_most(struct diagnosis *diagnosis, struct evidence_device *e, const struct diagnosis_space *s)
{
	for (int c = 0; c < CATEGORIES; c++)
		if (s->category[c] > e->most_for_bytes) {
			e->most_for = (enum category)c;
			e->most_for_bytes = s->category[c];
		}
	if (!s->holder_count)
		return;
	const struct top_line *h = s->top;
	e->holder.site = diagnosis_site(diagnosis, h->stack);
	e->holder.bytes = h->bytes;
	e->holder.blocks = h->blocks;
	e->holder.each = h->least >= h->most - h->most / 16 ? h->bytes / h->blocks : 0; /* the pool rounds */
}

/* Decorated with no_grad() or inference_mode(). As a `with` block neither is on the stack. */
static bool is_decorated(struct stacks *s, uint32_t stack)
{
	for (stack = stacks_merged(s, stack); stack; stack = stacks_outer(s, stack)) {
		const struct frame *frames;
		size_t count = stacks_frames(s, stack, &frames);
		for (size_t i = 0; i < count; i++)
			if (frames[i].name && frames[i].file && strstr(frames[i].name, "decorate_context") &&
			    strstr(frames[i].file, "/torch/utils/"))
				return true;
	}
	return false;
}

/* Where no graph is kept, results are all that outlives a forward pass: few of the blocks made since the oldest of the
 * latest ones. A quarter of them may be older: what training left bound. */
static bool has_no_graph(const struct diagnosis *diagnosis, const struct diagnosis_space *s,
			 const struct model_oom *oom)
{
	uint32_t stack =
		oom ? stacks_of(diagnosis->selection->stacks,
				reader_process(diagnosis->selection->reader, oom->process), oom->node, oom->node2)
		    : 0;
	if (stack && is_decorated(diagnosis->selection->stacks, stack))
		return true;
	unsigned n = s->latest_count - s->latest_count / 4;
	return n >= LEAST_ALIVE && (double)n < KEPT_OF_MADE * (double)(s->latest[0] - s->latest[n - 1] + 1);
}

/* What pools the failing process has used, or any. */
static struct evidence_pool pool_of(const struct model_device *d, const struct model_oom *oom)
{
	struct evidence_pool p = { .largest_hole = EVIDENCE_UNKNOWN, .free_segments = EVIDENCE_UNKNOWN };
	for (unsigned i = 0; i < d->share_count; i++) {
		const struct model_share *s = d->shares[i];
		p.partly_seen |= s->partly_seen && (!oom || s->process->id == oom->process);
		p.driver_pool |= s->driver_pool && (!oom || s->process->id == oom->process);
		p.expandable |= s->expandable && (!oom || s->process->id == oom->process);
	}
	return p;
}

static bool has_used(const struct model_device *d, uint32_t process)
{
	for (unsigned i = 0; i < d->share_count; i++)
		if (d->shares[i]->process->id == process)
			return true;
	return false;
}

/* Where the process had room besides: at its fullest, which is the least there was. */
static int set_roomiest(struct diagnosis *diagnosis, struct evidence_device *e, const struct model_device *d,
			uint32_t process)
{
	for (unsigned i = 0; i < model_devices(diagnosis->selection->model); i++) {
		const struct model_device *other = model_device(diagnosis->selection->model, i);
		if (other == d || other->ooms || !has_used(other, process))
			continue;
		const struct device_ledger *l = diagnosis_ledger(diagnosis, other, &other->peak);
		if (!l)
			return error_memory();
		if (l->total != MODEL_UNKNOWN && l->free != MODEL_UNKNOWN && l->free > e->roomiest.free) {
			e->roomiest.name = other->name;
			e->roomiest.total = l->total;
			e->roomiest.free = l->free;
		}
	}
	return 0;
}

/* Each backward pass goes through a function of Python's of that name, and makes blocks there. */
static bool runs_no_backward(const struct process *p)
{
	for (unsigned i = 0; i < p->code_count; i++)
		if (!strcmp(p->codes[i].name, "backward"))
			return false;
	return p->code_count > 0;
}

static int set_device(struct diagnosis *diagnosis, struct evidence_device *e, const struct model_device *d)
{
	const struct model_oom *oom = diagnosis_failure(d);
	const struct device_ledger *l = diagnosis_ledger(diagnosis, d, oom ? &oom->at : &d->peak);
	if (!l)
		return error_memory();
	*e = evidence_device_none();
	e->name = d->name;
	e->uuid = d->uuid;
	e->conf = replay_variable(d->backend);
	e->late = oom ? reader_process(diagnosis->selection->reader, oom->process)->late[0] : NULL;
	set_most(diagnosis, e, &diagnosis->spaces[1 + d->index]);
	e->no_graph = has_no_graph(diagnosis, &diagnosis->spaces[1 + d->index], oom);
	e->never_backward = oom && runs_no_backward(reader_process(diagnosis->selection->reader, oom->process));
	e->total = l->total;
	e->free = l->free;
	const struct device_ledger_process *own = oom ? row_of(l, oom->process) : NULL;
	e->own_other = own ? own->other : l->other_own;
	e->unmapped =
		less(l->unmapped < e->own_other ? l->unmapped : e->own_other, made_for_request(diagnosis, l, oom));
	e->explained = l->explained;
	e->unexplained = l->explained ? l->unexplained : 0;
	e->pool = pool_of(d, oom);
	e->pool.known = l->pool_reserved > 0;
	e->pool.reserved = l->pool_reserved;
	e->pool.allocated = l->pool_allocated;
	e->pool.graphs = (struct evidence_graphs){ .reserved = l->graphs_reserved,
						   .allocated = l->graphs_allocated,
						   .unused = less(l->graphs_reserved, l->graphs_allocated) };
	int error = oom ? set_request(diagnosis, e, d, oom) : 0;
	if (error == 0)
		error = evidence_replay_device(diagnosis, e, d, oom);
	if (error == 0 && oom)
		error = set_attempts(diagnosis, e, d, oom);
	if (error == 0)
		error = set_neighbours(diagnosis, e, l, oom);
	if (error == 0 && oom)
		error = set_roomiest(diagnosis, e, d, oom->process);
	if (error == 0)
		error = set_parts(diagnosis, e, l, oom);
	e->copies_known = true;
	if (error == 0)
		error = set_copies(diagnosis, d->index, &e->copies.items, &e->copies.count);
	return error < 0 ? error : evidence_time_device(diagnosis, e, d->index, oom);
}

/* What was live may be too high for lost frees, or too low for lost allocations, of which nobody knows more than how
 * many at most. */
static uint64_t doubt_of(const struct diagnosis *diagnosis, unsigned kinds)
{
	double doubt = 0;
	for (unsigned id = 0; id < reader_processes(diagnosis->selection->reader); id++) {
		const struct model_process *p = model_process(diagnosis->selection->model, id);
		const uint64_t lost = model_lost(diagnosis->selection->model, id);
		for (int kind = 0; lost && kind < MODEL_KINDS; kind++) {
			const struct model_totals *t = &p->kind[kind];
			if (kinds & 1u << kind && t->allocations &&
			    !model_lost_late(diagnosis->selection->model, id, (enum model_kind)kind))
				doubt += model_doubt(diagnosis->selection->model, id, kind) +
					 (double)lost * (double)t->allocated_bytes / (double)t->allocations;
		}
	}
	return doubt < 0x1p62 ? (uint64_t)doubt : 1ull << 62;
}

static int set_devices(struct diagnosis *diagnosis)
{
	unsigned count = model_devices(diagnosis->selection->model);
	struct evidence_device *list = diagnosis_alloc(diagnosis, count * sizeof(*list));
	if (!list)
		return error_memory();
	for (unsigned i = 0; i < count; i++) {
		int e = set_device(diagnosis, &list[i], model_device(diagnosis->selection->model, i));
		if (e < 0)
			return e;
		list[i].doubt = doubt_of(diagnosis, 1u << MODEL_DEVICE | 1u << MODEL_POOL);
	}
	diagnosis->evidence.devices.items = list;
	diagnosis->evidence.devices.count = count;
	return 0;
}

/* ---- host -------------------------------------------------------------------------------------------------- */

/* What was looked at last of its private memory. `share`: its part, where others have the same pages. */
struct resident {
	uint64_t anon, share, ns;
	bool shared;
};

/* Of what is neither live nor inherited no more than lies where blocks once were, or, where these addresses are not
 * known, than was freed: the rest was never recorded, or is no allocator's. Pages that processes of a family share
 * count once; where nobody looked whose they are, a child has none. */
static uint64_t kept_of(const struct diagnosis *diagnosis, const struct process *p, const struct resident *r,
			uint64_t live)
{
	const struct model_process *m = model_process(diagnosis->selection->model, p->id);
	const struct model_totals *heap = &m->kind[MODEL_HEAP];
	const uint64_t freed =
		m->footprint.known ? less(m->footprint.bytes, m->footprint.live) : less(heap->peak_bytes, live);
	const uint64_t kept = lower(less(r->anon, live + m->began_with), freed);
	if (!r->shared)
		return p->parent ? 0 : kept;
	return r->anon ? (uint64_t)((double)kept * (double)r->share / (double)r->anon) : 0;
}

/* The most that was live in the last part of a process: what it frees as it ends nobody is going to use again. */
static uint64_t live_lately(const struct diagnosis *diagnosis, const struct process *p, uint64_t ns)
{
	const struct model_series *lines = model_process(diagnosis->selection->model, p->id)->timeline;
	uint64_t most = 0, width = model_timeline_width_ns(diagnosis->selection->model);
	uint64_t back = (ns > p->start_ns ? ns - p->start_ns : 0) / ENDING_PART;
	for (uint64_t i = 0; i <= back / width + 1; i++) {
		uint64_t at = i * width < back ? ns - i * width : ns - back;
		uint64_t live = model_at(diagnosis->selection->model, &lines[MODEL_HEAP], at).high +
				model_at(diagnosis->selection->model, &lines[MODEL_MAP], at).high;
		most = live > most ? live : most;
	}
	return most;
}

/* What the allocators of the traced processes kept of what was resident when each was looked at last. Who keeps most of
 * it and was not forked, or NULL. */
static const struct process *set_kept(struct diagnosis *diagnosis)
{
	struct evidence_host *h = &diagnosis->evidence.host;
	const struct samples *samples = host_memory_samples(diagnosis->system);
	const struct process *keeper = NULL;
	uint64_t sampled = 0, most = 0;
	h->rss_anon = h->live = h->kept = 0;
	for (unsigned id = 0; id < reader_processes(diagnosis->selection->reader); id++) {
		const struct process *p = reader_process(diagnosis->selection->reader, id);
		const struct sample_subject *s = samples_of_process(samples, p);
		if (!s || !(s->known >> MT_PROCESS_rss_anon & 1) ||
		    samples_process(samples, s, s->last[MT_PROCESS_rss_anon].ns) != p)
			continue;
		struct resident r = { .anon = s->last[MT_PROCESS_rss_anon].value,
				      .ns = s->last[MT_PROCESS_rss_anon].ns };
		r.shared = s->known >> MT_PROCESS_pss_anon & 1;
		r.share = r.shared ? host_share(r.anon, s->last[MT_PROCESS_pss_anon].value,
						s->last[MT_PROCESS_anonymous].value)
				   : r.anon;
		const uint64_t live = live_lately(diagnosis, p, r.ns), kept = kept_of(diagnosis, p, &r, live);
		h->rss_anon += r.share;
		h->live += lower(live, r.anon);
		h->kept += kept;
		sampled++;
		if (!p->parent && kept > most) {
			most = kept;
			h->keeper = p->pid;
			keeper = p;
		}
	}
	if (!sampled)
		h->rss_anon = h->live = h->kept = EVIDENCE_UNKNOWN;
	else
		h->kept = lower(h->kept, h->rss_anon);
	return keeper;
}

/* Only of who has mapped files there it can be told that files are likely to be its own. */
static bool uses_shm(const struct diagnosis *diagnosis)
{
	for (unsigned id = 0; id < reader_processes(diagnosis->selection->reader); id++) {
		const struct process *p = reader_process(diagnosis->selection->reader, id);
		for (unsigned i = 0; i < p->file_count; i++)
			if (!strncmp(p->files[i].path, "/dev/shm/", 9))
				return true;
	}
	return false;
}

static int set_system(struct diagnosis *diagnosis)
{
	struct evidence_host *h = &diagnosis->evidence.host;
	const struct host_facts *f = host_facts(diagnosis->system);
	const struct host_ledger *l = host_ledger(diagnosis->system);
	h->sampled = f->sampled;
	h->memory = f->memory;
	if (!f->sampled)
		return 0;
	h->limit = f->limit;
	h->available_min = f->available_min;
	h->swap_total = f->swap_total;
	h->swap_start = f->swap_start;
	h->swap_peak = f->swap_peak;
	h->shm_total = f->shm_total;
	h->shm_used = f->shm_peak;
	h->shm_left = uses_shm(diagnosis) ? f->shm_left : EVIDENCE_UNKNOWN;
	h->rss_peak = f->traced_peak;
	h->oom_kills = (unsigned)f->oom_kills;
	h->limit_killed = f->cgroup_killed;
	h->cut_off = f->cut_off;
	h->got_since = f->got_since;
	h->file = f->cgroup_file;
	h->anon = f->cgroup_most;
	if (l->known) {
		h->copied = l->copied;
		h->kept_then = l->kept - l->copied - l->unseen - l->pool_free;
		h->kept_then_ns = l->ns;
	}
	if (l->known && !evidence_known(h->anon)) {
		h->anon = l->live + l->kept + l->other_processes;
		h->file = l->page_cache + l->mapped_files;
	}
	for (unsigned id = 0; id < reader_processes(diagnosis->selection->reader); id++) {
		h->killed |= host_process(diagnosis->system, id)->oom_killed == HOST_KILLED;
		h->maybe_killed |= host_process(diagnosis->system, id)->oom_killed == HOST_MAYBE_KILLED;
	}
	return evidence_replay_heap(diagnosis, set_kept(diagnosis));
}

static void set_pile(struct diagnosis *diagnosis)
{
	struct pile p;
	if (!process_piles_find(&p, diagnosis->selection->reader, diagnosis->selection->model,
				timeline_samples(diagnosis->timeline)))
		return;
	uint32_t stack = p.node ? stacks_of(diagnosis->selection->stacks, p.forked, p.node, p.node2) : 0;
	diagnosis->evidence.host.pile = (struct evidence_pile){ .site = stack ? diagnosis_call(diagnosis, stack) : NULL,
								.name = p.one->name,
								.pid = p.starter->pid,
								.count = p.count,
								.batches = p.batches,
								.bytes = p.bytes };
}

static int set_host(struct diagnosis *diagnosis)
{
	struct evidence_host *h = &diagnosis->evidence.host;
	h->live_peak = model_totals(diagnosis->selection->model, MODEL_HEAP).peak_bytes;
	for (unsigned i = 0; i < model_failures(diagnosis->selection->model); i++)
		h->failed_bytes = model_failure(diagnosis->selection->model, i)->largest_bytes > h->failed_bytes
					  ? model_failure(diagnosis->selection->model, i)->largest_bytes
					  : h->failed_bytes;
	int e = diagnosis->system ? set_system(diagnosis) : 0;
	if (e < 0)
		return e;
	evidence_ends(diagnosis);
	set_pile(diagnosis);
	h->doubt = doubt_of(diagnosis, (1u << MODEL_HOST_KINDS) - 1);
	h->copies_known = true;
	e = set_copies(diagnosis, MODEL_NO_DEVICE, &h->copies.items, &h->copies.count);
	if (e == 0)
		e = shm_maker_find(&h->shm, diagnosis->selection, diagnosis->system);
	if (h->shm.site)
		h->shm.site = diagnosis_own_text(diagnosis, (char *)h->shm.site);
	return e < 0 ? e : evidence_time_host(diagnosis);
}

int evidence_make(struct diagnosis *diagnosis)
{
	diagnosis->evidence = evidence_none();
	diagnosis->evidence.complete = diagnosis->complete;
	int e = set_devices(diagnosis);
	return e < 0 ? e : set_host(diagnosis);
}
