/* What is alive and what was allocated, as a profile (pprof.h). */
#include "analyzer/report/export/export.h"
#include "analyzer/report/export/pprof.h"
#include "analyzer/report/export/record_set.h"

#include "analyzer/util/error.h"

#include <stdlib.h>
#include <string.h>

/* What a stack of a process allocated, all in all. */
struct allocated {
	uint32_t process, node, node2, device;
	uint64_t kind;
	/* behind the key */
	uint64_t bytes, blocks;
};

struct profile {
	struct pprof *pprof;
	const struct selection *selection;
	struct record_set allocated;
	/* what was allocated is not known: stacks were sampled, or a filter looks at what is alive */
	bool live_only;
	bool failed; /* no memory */
	uint64_t ns; /* the latest of the moments */
};

/* Of the sites of that stack in that process, once. */
static void take_allocated(struct profile *p, const struct export_stack *s, int64_t values[PPROF_VALUES])
{
	for (size_t i = 0; i < s->owner->member_count; i++) {
		const struct model_site *site = s->owner->members[i];
		if (site->process != s->process->id)
			continue;
		struct allocated key = { site->process, site->node, site->node2, site->device, site->kind, 0, 0 };
		uint32_t n = record_set_number(&p->allocated, &key);
		struct allocated *a = n ? record_set_at(&p->allocated, n) : &key;
		values[ALLOCATED_BYTES] += (int64_t)a->bytes;
		values[ALLOCATED_BLOCKS] += (int64_t)a->blocks;
		a->bytes = a->blocks = 0;
	}
}

static int add_sample(struct profile *p, const struct export_stack *s, const int64_t values[PPROF_VALUES])
{
	struct pprof_stack stack = { .memory = s->memory,
				     .kind = kind_name(s->at->kind),
				     .device = s->at->device ? s->at->device->name : "host",
				     .category = category_name(s->owner->category),
				     .process = s->process,
				     .frames = s->frames,
				     .count = s->count };
	memcpy(stack.values, values, sizeof(stack.values));
	return pprof_add(p->pprof, &stack);
}

static int add_stack(struct export *x, const struct export_stack *s)
{
	struct profile *p = x->state;
	int64_t values[PPROF_VALUES] = { [LIVE_BYTES] = (int64_t)s->bytes, [LIVE_BLOCKS] = (int64_t)s->blocks };
	take_allocated(p, s, values);
	p->ns = s->at->ns > p->ns ? s->at->ns : p->ns;
	return add_sample(p, s, values);
}

static void note_allocation(void *arg, const struct model_change *c)
{
	struct profile *p = arg;
	if (c->bytes < 0 || c->blocks <= 0 || c->ns < p->selection->from_ns || !selection_has(p->selection, c->process))
		return;
	struct allocated key = { c->process->id, c->node, c->node2, c->device, c->kind, 0, 0 };
	uint32_t n = record_set_number(&p->allocated, &key);
	if (!n) {
		p->failed = true;
		return;
	}
	struct allocated *a = record_set_at(&p->allocated, n);
	a->bytes += (uint64_t)c->bytes;
	a->blocks += (uint64_t)c->blocks;
}

static bool stacks_are_sampled(const struct selection *sel)
{
	for (unsigned id = 0; id < reader_processes(sel->reader); id++)
		if (selection_has(sel, reader_process(sel->reader, id)) &&
		    reader_process(sel->reader, id)->stacks != MT_STACKS_ALL)
			return true;
	return false;
}

static int ask(struct export *x, struct model_query *q)
{
	struct profile *p = x->state = calloc(1, sizeof(*p));
	if (!p || !(p->pprof = pprof_new(x->selection->stacks)))
		return error_memory();
	p->selection = x->selection;
	p->allocated =
		(struct record_set){ .size = sizeof(struct allocated), .key = offsetof(struct allocated, bytes) };
	p->live_only = x->selection->options->filter || stacks_are_sampled(x->selection);
	if (!p->live_only) {
		q->on_change = note_allocation;
		q->arg = p;
	}
	return 0;
}

/* ---- stacks that have nothing at the moment -------------------------------------------------------------- */

static bool is_wanted(const struct export *x, const struct allocated *a)
{
	const struct selection *sel = x->selection;
	if (!x->all && !sel->options->device &&
	    (!x->main || a->kind != x->main->kind ||
	     a->device != (x->main->device ? x->main->device->index : MODEL_NO_DEVICE)))
		return false;
	return a->blocks && sel->kinds & 1u << a->kind &&
	       (a->device == MODEL_NO_DEVICE || selection_has_device(sel, a->device));
}

/* `sum`: of all that have nothing. */
static int add_gone_stack(struct export *x, const struct allocated *a, uint64_t sum, struct frame_list *list)
{
	const struct selection *sel = x->selection;
	const struct process *process = reader_process(sel->reader, a->process);
	const uint32_t pair = stacks_of(sel->stacks, process, a->node, a->node2),
		       stack = stacks_merged(sel->stacks, pair);
	const struct moment at = { .kind = (enum model_kind)a->kind,
				   .device =
					   a->device == MODEL_NO_DEVICE ? NULL : model_device(sel->model, a->device) };
	const struct owner owner = { .category = categories_of(sel->categories, stack, LIFETIME_UNKNOWN) };
	char *memory = export_memory(at.kind, at.device);
	int e = memory ? stacks_list_shown(sel->stacks, stack, selection_flags(sel->options), list) : error_memory();
	const char *label = export_label(x, at.kind, pair, a->bytes, sum, 0);
	const struct frame *only = label ? export_label_frame(x, label) : NULL;
	if (e == 0)
		e = add_sample(
			x->state,
			&(struct export_stack){ .at = &at,
						.memory = memory,
						.process = process,
						.owner = &owner,
						.frames = only ? &only : list->frames,
						.count = only ? 1 : list->count },
			(const int64_t[PPROF_VALUES]){
				[ALLOCATED_BYTES] = (int64_t)a->bytes, [ALLOCATED_BLOCKS] = (int64_t)a->blocks });
	free(memory);
	return e;
}

static int add_gone(struct export *x)
{
	const struct selection *sel = x->selection;
	const struct profile *p = x->state;
	struct frame_list list = { 0 };
	uint64_t sum = 0;
	int e = 0;
	for (uint32_t n = 1; n <= p->allocated.count; n++) {
		const struct allocated *a = record_set_at(&p->allocated, n);
		if (!is_wanted(x, a))
			continue;
		sum += a->bytes;
		stacks_prepare(sel->stacks, reader_process(sel->reader, a->process), a->node);
		stacks_prepare(sel->stacks, reader_process(sel->reader, a->process), a->node2);
	}
	stacks_look_ahead(sel->stacks, NULL);
	for (uint32_t n = 1; n <= p->allocated.count && e == 0; n++)
		if (is_wanted(x, record_set_at(&p->allocated, n)))
			e = add_gone_stack(x, record_set_at(&p->allocated, n), sum, &list);
	free(list.frames);
	return e;
}

static int write_profile(struct profile *p)
{
	const struct reader *r = p->selection->reader;
	struct pprof_head head = {
		.first = p->live_only ? LIVE_BLOCKS : ALLOCATED_BLOCKS,
		.last = LIVE_BYTES,
		.real_ns = reader_origin_real_ns(r) + p->ns,
		.duration_ns = reader_duration_ns(r),
		.period = pprof_period(r),
		.comments = { "memtrace: kinds of memory overlap (a pool lies in device memory) and may each be at their "
			      "own peak: look at one, as -tagfocus=kind=heap does" },
	};
	size_t count = 1;
	if (!reader_complete(r))
		head.comments[count++] = "memtrace: the trace is incomplete";
	if (stacks_are_sampled(p->selection))
		head.comments[count++] = "memtrace: stacks were sampled or not kept: bytes may be estimates";
	return p->failed ? error_memory() : pprof_write(p->pprof, &head);
}

static int close_profile(struct export *x)
{
	struct profile *p = x->state;
	int e = 0;
	if (!p)
		return 0;
	if (!x->failed)
		e = add_gone(x);
	if (!x->failed && e == 0)
		e = write_profile(p);
	pprof_free(p->pprof);
	record_set_fini(&p->allocated);
	free(p);
	return e;
}

const struct export_ops export_pprof = { .name = "pprof",
					 .binary = true,
					 .by_process = true,
					 .one_kind = true,
					 .ask = ask,
					 .stack = add_stack,
					 .close = close_profile };
