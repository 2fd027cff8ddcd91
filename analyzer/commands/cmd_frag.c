/* memtrace frag: how blocks lie in what was reserved for them, on devices and in heaps. */
#include "analyzer/commands/commands.h"
#include "analyzer/report/screen/frag.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>

static const struct option_row rows[] = {
	OPTIONS_ROW_AT,   OPTIONS_ROW_DEVICE, OPTIONS_ROW_PROCESS, OPTIONS_ROW_ROWS,  OPTIONS_ROW_TIMES,
	OPTIONS_ROW_JSON, OPTIONS_ROW_FRAMES, OPTIONS_ROW_FORCE,   OPTIONS_ROW_QUIET, OPTIONS_END,
};

const struct option_spec cmd_frag_spec = {
	"memtrace frag [--at TIME] [options] [DIR...]",
	"How blocks lie in the memory that was reserved for them: per device its\n"
	"segments, their holes and whose blocks keep them from going back; per process\n"
	"the arenas of its heap. Devices are shown each time their memory ran out, else\n"
	"at their peak, and heaps at the process's end. --at asks for another moment.",
	rows,
	0,
	"  memtrace frag --at oom:2                # at the second failure\n"
	"  memtrace frag --device host --process worker\n",
	"Read: docs/frag.md",
};

static void fini(struct frag *f)
{
	for (size_t i = 0; i < f->device_count; i++) {
		if (f->devices[i].own)
			pool_layout_free(f->devices[i].layout);
		free(f->devices[i].pins);
	}
	for (size_t i = 0; i < f->heap_count; i++)
		arenas_fini(&f->heaps[i].arenas);
	free(f->devices);
	free(f->heaps);
}

/* ---- devices --------------------------------------------------------------------------------------------- */

static int add_device(struct frag *f, struct frag_device d)
{
	int e = vec_reserve(f->devices, f->device_room, f->device_count + 1);
	if (!e)
		e = pins_find(d.layout, NULL, &d.pins, &d.pin_count);
	if (e && d.own)
		pool_layout_free(d.layout);
	if (!e)
		f->devices[f->device_count++] = d;
	return e;
}

static int add_ooms(struct frag *f, const struct model_device *d)
{
	int e = 0;
	for (unsigned i = 0; i < d->oom_count && !e; i++) {
		const struct model_oom *o = &d->oom[i];
		const struct process *p = reader_process(f->selection->reader, o->process);
		unsigned number = i + 1 < d->oom_count ? i + 1 : (unsigned)d->ooms;
		if (o->layout && selection_has(f->selection, p))
			e = add_device(f, (struct frag_device){ .device = d,
								.moment = "oom",
								.number = number,
								.oom = o,
								.process = p,
								.ns = o->at.ns,
								.layout = o->layout });
	}
	return e;
}

/* As the pass left it: at the time or OOM that was asked for, or at the end. */
static int add_now(struct frag *f, const struct model_device *d)
{
	const struct when *at = &f->selection->options->at;
	const bool oom = at->kind == WHEN_OOM;
	struct frag_device now = { .device = d,
				   .moment = oom                                              ? "oom"
					     : at->kind == WHEN_UNSET || at->kind == WHEN_END ? "end"
											      : "time",
				   .ns = model_end_ns(f->selection->model),
				   .own = true };
	unsigned count = model_ooms(f->selection->model);
	const struct model_oom *last = oom && count ? model_oom(f->selection->model, count - 1) : NULL;
	if (last && last->device == d->index) {
		now.oom = last;
		now.number = (unsigned)d->ooms;
		now.process = reader_process(f->selection->reader, last->process);
		now.ns = last->at.ns;
	} else if (oom && selection_wants_device(f->selection->options) == false && !d->layer[LAYER_POOL].live_bytes) {
		return 0;
	}
	int e = pool_layout_take(&now.layout, f->selection->model, d->index,
				 now.process ? now.process->id : UINT32_MAX);
	return e ? e : add_device(f, now);
}

/* Peaks need a second pass, which looks at each device when it is there. */
static int add_peaks(struct frag *f, struct model_peek *peeks, size_t count)
{
	struct model_query q = MODEL_QUERY_ALL;
	struct reader *r = NULL;
	struct model *m = NULL;
	q.peeks = peeks;
	q.peek_count = count;
	int e = selection_run_again(f->selection, &r, &m, &q);
	model_free(m);
	reader_close(r);
	for (size_t i = 0; i < count; i++) {
		struct pool_layout *l = peeks[i].layout;
		const struct model_device *d = model_device(f->selection->model, peeks[i].device);
		if (e < 0 || !l)
			pool_layout_free(l);
		else
			e = add_device(
				f, (struct frag_device){
					   .device = d, .moment = "peak", .ns = d->peak.ns, .layout = l, .own = true });
	}
	return e;
}

static int add_devices(struct frag *f)
{
	const struct model *m = f->selection->model;
	const enum when_kind at = f->selection->options->at.kind;
	struct model_peek *peeks = calloc(model_devices(m) + 1ul, sizeof(*peeks));
	size_t count = 0;
	int e = peeks ? 0 : error_memory();
	for (unsigned i = 0; i < model_devices(m) && !e; i++) {
		const struct model_device *d = model_device(m, i);
		if (!selection_has_device(f->selection, i) || (!d->layer[LAYER_POOL].peak_bytes && !d->ooms))
			continue;
		if (at == WHEN_UNSET && d->ooms)
			e = add_ooms(f, d);
		else if ((at == WHEN_UNSET || at == WHEN_PEAK) && d->peak.event)
			peeks[count++] = (struct model_peek){ .device = i, .event = d->peak.event };
		else
			e = add_now(f, d);
	}
	if (!e && count)
		e = add_peaks(f, peeks, count);
	free(peeks);
	return e;
}

/* ---- heaps ----------------------------------------------------------------------------------------------- */

/* Its anonymous pages when the pass ended, or when it was last seen alive. */
static int find_resident(const struct samples *samples, struct frag_heap *h, uint64_t ns)
{
	const struct sample_subject *d = samples_of_process(samples, h->process->process);
	struct sample_state state;
	if (!d)
		return 0;
	int e = samples_at(samples, ns, d->index, &state);
	if (!e && state.known & 1ull << MT_PROCESS_rss_anon)
		h->resident = state.value[MT_PROCESS_rss_anon];
	return e;
}

static int add_heaps(struct frag *f)
{
	const struct selection *sel = f->selection;
	struct samples *samples;
	int e = samples_open(&samples, sel->reader);
	for (unsigned id = 0; id < reader_processes(sel->reader) && !e; id++) {
		const struct model_process *p = model_process(sel->model, id);
		if (!selection_has(sel, p->process) || !p->kind[MODEL_HEAP].allocations ||
		    p->process->exit_kind == MT_EXIT_EXEC)
			continue;
		f->picked |= process_is_picked(p->process);
		if (process_is_picked(p->process)) /* where its blocks lie is not known */
			continue;
		e = vec_reserve(f->heaps, f->heap_room, f->heap_count + 1);
		if (e)
			break;
		struct frag_heap *h = &f->heaps[f->heap_count++];
		*h = (struct frag_heap){ .process = p, .resident = MODEL_UNKNOWN };
		e = arenas_find(&h->arenas, sel->model, p->process);
		if (!e)
			e = find_resident(samples, h, model_end_ns(sel->model));
	}
	samples_close(samples);
	return e;
}

/* ---- command --------------------------------------------------------------------------------------------- */

static int frag(struct selection *sel)
{
	struct model_query q = MODEL_QUERY_ALL;
	struct frag f = { .selection = sel };
	q.keep_blocks = true;
	int e = selection_run(sel, &q);
	if (e == 0 && sel->kinds & 1u << MODEL_DEVICE)
		e = add_devices(&f);
	if (e == 0 && sel->kinds & 1u << MODEL_HEAP)
		e = add_heaps(&f);
	if (e == 0 && sel->options->json)
		e = frag_print_json(&f);
	else if (e == 0)
		frag_print(&f);
	if (e == 0 && f.picked)
		print_error("memtrace: note: heaps that were recorded with --record sampled are left out: where their "
			    "blocks lie needs --record all\n");
	fini(&f);
	return e;
}

int cmd_frag(int argc, char **argv)
{
	struct options o = { 0 };
	return selection_command(&cmd_frag_spec, &o, argc, argv, frag);
}
