#include "analyzer/report/export/export.h"

#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/suggest.h"
#include "analyzer/util/vec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct export_ops *const formats[] = {
#define EXPORT(format) &export_##format,
#include "analyzer/report/export/exports.def"
#undef EXPORT
};

#define FORMATS (sizeof(formats) / sizeof(*formats))

static int no_format(const char *name)
{
	struct suggestion s = { .text = name };
	char all[256] = "";
	for (size_t i = 0, n = 0; i < FORMATS && n < sizeof(all); i++) {
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", formats[i]->name);
		if (name)
			suggest(&s, formats[i]->name);
	}
	if (!name)
		return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET, "which one? There is %s", all);
	if (s.best)
		return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET, "unknown value '%s'; did you mean '%s'?", name,
				 s.best);
	return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET, "unknown value '%s'; there is %s", name, all);
}

const struct export_ops *export_find(const char *name)
{
	for (size_t i = 0; name && i < FORMATS; i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	no_format(name);
	return NULL;
}

/* ---- each process's part ---------------------------------------------------------------------------------- */

struct part {
	const struct process *process;
	uint64_t bytes, blocks;
};

static struct part part_of(const struct reader *r, const struct model_site *site, enum owners_measure measure)
{
	double weight = owners_weight(r, site);
	uint64_t bytes = measure == OWNERS_LIVE ? site->live_bytes : site->host_peak_bytes;
	uint64_t blocks = measure == OWNERS_LIVE ? site->live_blocks : site->host_peak_blocks;
	return (struct part){ reader_process(r, site->process), (uint64_t)llround((double)bytes * weight),
			      (uint64_t)llround((double)blocks * weight) };
}

/* Members are sorted by process. Estimates are rounded once for the sum: the last process has what that leaves. */
static int export_parts(const struct export_ops *ops, struct export *x, struct export_stack s)
{
	const struct owner *o = s.owner;
	uint64_t bytes = o->bytes, blocks = o->blocks;
	for (size_t i = 0; i < o->member_count;) {
		struct part sum = part_of(x->selection->reader, o->members[i], s.at->measure);
		for (i++; i < o->member_count && o->members[i]->process == sum.process->id; i++) {
			struct part more = part_of(x->selection->reader, o->members[i], s.at->measure);
			sum.bytes += more.bytes;
			sum.blocks += more.blocks;
		}
		bool last = i == o->member_count;
		s.process = sum.process;
		s.bytes = last || sum.bytes > bytes ? bytes : sum.bytes;
		s.blocks = last || sum.blocks > blocks ? blocks : sum.blocks;
		bytes -= s.bytes;
		blocks -= s.blocks;
		int e = ops->stack(x, &s);
		if (e < 0)
			return e;
	}
	return 0;
}

/* ---- what is told together ---------------------------------------------------------------------------------- */

/* Stacks of one label. */
struct together {
	const char *label;
	struct owner owner;
	size_t room;
};

struct togethers {
	struct together *list;
	size_t count, room;
};

static int by_process(const void *a, const void *b)
{
	const struct model_site *x = *(const struct model_site *const *)a, *y = *(const struct model_site *const *)b;
	return (x->process > y->process) - (x->process < y->process);
}

static struct together *together_of(struct togethers *t, const char *label)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->list[i].label == label)
			return &t->list[i];
	if (vec_reserve(t->list, t->room, t->count + 1) < 0)
		return NULL;
	t->list[t->count] = (struct together){ .label = label };
	return &t->list[t->count++];
}

static int join(struct togethers *t, const char *label, const struct owner *o)
{
	struct together *into = together_of(t, label);
	if (!into)
		return error_memory();
	struct owner *sum = &into->owner;
	if (!sum->member_count)
		sum->category = label == export_small_stacks ? CATEGORY_unknown : o->category;
	sum->bytes += o->bytes;
	sum->blocks += o->blocks;
	int e = vec_reserve(sum->members, into->room, sum->member_count + o->member_count);
	for (size_t i = 0; e == 0 && i < o->member_count; i++)
		sum->members[sum->member_count++] = o->members[i];
	return e;
}

static int export_stack(const struct export_ops *ops, struct export *x, const struct export_stack *s)
{
	return ops->by_process ? export_parts(ops, x, *s) : ops->stack(x, s);
}

static int export_togethers(const struct export_ops *ops, struct export *x, const struct moment *at, const char *memory,
			    struct togethers *t)
{
	int e = 0;
	for (size_t i = 0; i < t->count; i++) {
		struct owner *o = &t->list[i].owner;
		const struct frame *frame = o->frame = export_label_frame(x, t->list[i].label);
		qsort(o->members, o->member_count, sizeof(*o->members), by_process);
		if (e == 0)
			e = frame ? export_stack(ops, x,
						 &(struct export_stack){ at, memory, NULL, o, &frame, 1, o->bytes,
									 o->blocks })
				  : error_memory();
	}
	return e;
}

static int export_moment(const struct export_ops *ops, struct export *x, const struct moment *at,
			 struct frame_list *list)
{
	struct togethers t = { 0 };
	int e = 0;
	size_t told = 0;
	char *memory = export_memory(at->kind, at->device);
	if (!memory)
		return error_memory();
	for (size_t i = 0; e == 0 && i < at->sites->count; i++) {
		const struct owner *o = &at->sites->owners[i];
		const char *label = export_label(x, at->kind, selection_owner_stack(x->selection, o), o->bytes,
						 at->sites->bytes, told);
		if (label) {
			e = join(&t, label, o);
			continue;
		}
		told++;
		e = stacks_list_shown(x->selection->stacks, o->stacks->stack, selection_flags(x->selection->options),
				      list);
		if (e == 0)
			e = export_stack(ops, x,
					 &(struct export_stack){ at, memory, NULL, o, list->frames, list->count,
								 o->bytes, o->blocks });
	}
	if (e == 0)
		e = export_togethers(ops, x, at, memory, &t);
	for (size_t i = 0; i < t.count; i++)
		free(t.list[i].owner.members);
	free(t.list);
	free(memory);
	return e;
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

/* The last failure's, else the heap's, else the one with the most. */
static const struct moment *main_moment(const struct moments *m)
{
	const struct moment *best = NULL;
	uint64_t last = 0;
	for (size_t i = 0; i < m->count; i++) {
		const struct model_device *d = m->moments[i].device;
		const struct model_oom *oom = d && d->oom_count ? &d->oom[d->oom_count - 1] : NULL;
		if (oom && oom->at.ns >= last && oom->pool == (m->moments[i].kind == MODEL_POOL)) {
			best = &m->moments[i];
			last = oom->at.ns;
		}
	}
	for (size_t i = 0; i < m->count && !best; i++)
		if (m->moments[i].kind == MODEL_HEAP && m->moments[i].sites->bytes)
			best = &m->moments[i];
	if (!best)
		for (size_t i = 0; i < m->count; i++)
			if (!best || m->moments[i].sites->bytes > best->sites->bytes)
				best = &m->moments[i];
	return best;
}

/* What the format has no place for. */
static void print_notes(const struct selection *sel, const struct moments *m)
{
	bool estimated = false, picked = false;
	for (size_t i = 0; i < m->count; i++) {
		estimated = estimated || m->moments[i].sites->estimated;
		picked = picked || m->moments[i].sites->picked;
	}
	if (!reader_complete(sel->reader))
		print_error("memtrace: note: the trace is incomplete: what is left, see memtrace check\n");
	if (estimated)
		print_error("memtrace: note: %s were sampled: their bytes are estimates\n",
			    picked ? "blocks" : "stacks");
	if (moment_is_time(&sel->options->at) && model_fold(sel->model).until_ns)
		print_error("memtrace: note: without short-lived blocks, which were folded at the disk limit\n");
	if (model_fold(sel->model).young_blocks)
		print_error("memtrace: note: without short-lived small blocks, which were recorded as totals\n");
}

static int export_stacks(const struct export_ops *ops, struct export *x, const struct moments *m)
{
	struct frame_list list = { 0 };
	int e = ops->open ? ops->open(x) : 0;
	for (size_t i = 0; e == 0 && i < m->count; i++)
		if (!ops->one_kind || x->all || x->selection->options->device || &m->moments[i] == x->main)
			e = export_moment(ops, x, &m->moments[i], &list);
	free(list.frames);
	return e;
}

int export_run(const struct export_ops *ops, struct selection *sel, bool all)
{
	struct model_query q = MODEL_QUERY_ALL;
	struct moments m = { 0 };
	struct export x = { .selection = sel, .all = all || sel->options->rows == OPTIONS_ALL_ROWS };
	int e = ops->ask ? ops->ask(&x, &q) : 0;
	sel->by = BY_STACK;
	if (e == 0)
		e = selection_run(sel, &q);
	if (e == 0 && ops->stack)
		e = moments_find(&m, sel, ops->end && sel->options->at.kind == WHEN_UNSET);
	x.main = main_moment(&m);
	if (e == 0)
		e = export_stacks(ops, &x, &m);
	x.failed = e < 0;
	int closed = ops->close ? ops->close(&x) : 0;
	export_free_labels(&x);
	e = e < 0 ? e : closed;
	if (e == 0)
		print_notes(sel, &m);
	moments_fini(&m);
	return e;
}
