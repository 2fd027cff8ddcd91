/* What a report says first where no failure does: how much it was, whose most of it was, and whether that is well; and,
 * at its end, what to ask next. */
#include "analyzer/analysis/open.h"
#include "analyzer/diagnosis/growth/growth_matters.h"
#include "analyzer/diagnosis/own_allocator.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/shell.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPPED_MORE 2 /* times the heap: then the peak of mappings is the one to know */
#define SPIKE_BYTES (64u << 20)
#define SPIKE_PART  0.5
#define LEFT_BYTES  (16u << 20)
#define NOTABLE     0.1        /* of what there is of a kind: growth by less is not in the headline */
#define LATE        0.75       /* of its process's time: what stopped later may have had no time to go on */
#define SHORT_BYTES (8u << 20) /* less is not in the headline where no line is known */
#define LEFT_PART   0.5        /* of the heap's peak */
#define BY_TURNS    4          /* times the peak of all at once */
#define TOLD        128 /* sampled blocks of what grows: by so many it is found nine times of ten, a backlog, too */

/* ---- the peak -------------------------------------------------------------------------------------------- */

static char *share_text(uint64_t part, uint64_t all, const char *name)
{
	return output_format(", %.0f %% of it %s", all ? 100.0 * (double)part / (double)all : 0.0, name ? name : "");
}

/* "train.py:73 save", or its label. The caller frees it. */
static char *place_of(const struct owner *o)
{
	return o->label || !o->frame ? owner_text(o) : frame_place(o->frame);
}

static char *owner_share(const struct owners *s)
{
	const struct owner *o = s && s->count && s->bytes ? &s->owners[0] : NULL;
	char *name = o ? place_of(o) : NULL;
	char *text = o ? share_text(o->bytes, s->bytes, name) : strdup("");
	free(name);
	return text;
}

static char *device_peak(const struct report *r, const struct diagnosis_space *s)
{
	const struct model_device *d = model_device(r->selection->model, s->device);
	const struct model_totals *t = &d->layer[LAYER_MEMORY];
	char *title = report_device_title(r->selection, d, NULL);
	char *all = d->total_bytes ? output_format("'s %s", BYTES(d->total_bytes)) : strdup("");
	char *share = s->holder_count ? share_text(s->top[0].bytes, t->peak_bytes,
						   diagnosis_site(r->analysis.diagnosis, s->top[0].stack))
				      : strdup("");
	char *text = output_format("peak %s of %s%s at %s%s", BYTES(t->peak_bytes), title ? title : "", all ? all : "",
				   DURATION(t->peak_ns), share ? share : "");
	free(title);
	free(all);
	free(share);
	return text;
}

/* ", 1.07 GiB of it address space of libarrow.so.2600's allocator, 283.3 MiB of that resident (sampled)", if most of
 * what was mapped is what an allocator has reserved and does not use; else NULL. */
static char *reserved_share(const struct report *r, uint64_t peak)
{
	const struct selection *sel = r->selection;
	struct own_allocator most = { 0 };
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct model_process *m = model_process(sel->model, id);
		struct own_allocator own = { 0 };
		if (selection_has(sel, m->process))
			own = own_allocator_find(sel, timeline_samples(r->analysis.timeline), m);
		most = own.bytes > most.bytes ? own : most;
	}
	return most.library && most.bytes > peak / 2 && most.resident < most.bytes / 2
		       ? output_format(", %s of it address space of %s's allocator, %s of that resident (sampled)",
				       BYTES(most.bytes), base_name(most.library), BYTES(most.resident))
		       : NULL;
}

static char *kind_peak(const struct report *r, enum model_kind kind)
{
	static const char *const names[] = { [MODEL_HEAP] = "of heap", [MODEL_MAP] = "mapped" };
	struct model_totals t = model_totals(r->selection->model, kind);
	if (!t.allocations)
		return strdup("nothing was allocated");
	char *share = kind == MODEL_MAP ? reserved_share(r, t.peak_bytes) : NULL;
	share = share ? share : owner_share(r->owners[kind]);
	char *text = output_format("peak %s%s %s at %s%s", t.estimated ? "about " : "", BYTES(t.peak_bytes),
				   names[kind], DURATION(t.peak_ns), share ? share : "");
	free(share);
	return text;
}

static bool is_mapped(const struct selection *sel)
{
	struct model_totals heap = model_totals(sel->model, MODEL_HEAP), map = model_totals(sel->model, MODEL_MAP);
	return !(sel->kinds & 1u << MODEL_HEAP) ||
	       (sel->kinds & 1u << MODEL_MAP && map.peak_bytes / MAPPED_MORE > heap.peak_bytes);
}

/* One line of the program made most of the heap's peak: nobody should have to look for that behind what a library
 * reserves, or other trouble. */
static char *spike_text(const struct report *r)
{
	const struct owners *s = r->selection->kinds & 1u << MODEL_HEAP ? r->owners[MODEL_HEAP] : NULL;
	const struct owner *o = s && s->count ? &s->owners[0] : NULL;
	return o && !o->folded && s->bytes >= SPIKE_BYTES && (double)o->bytes >= SPIKE_PART * (double)s->bytes
		       ? kind_peak(r, MODEL_HEAP)
		       : NULL;
}

static unsigned print_spike(const struct report *r)
{
	char *text = spike_text(r);
	unsigned lines = text ? output_wrapped(text, 2, 2, output_width(), NULL) : 0;
	free(text);
	return lines;
}

static char *peak_text(const struct report *r)
{
	const struct diagnosis_space *s = report_main_space(r);
	return s->device == MODEL_NO_DEVICE ? kind_peak(r, is_mapped(r->selection) ? MODEL_MAP : MODEL_HEAP)
					    : device_peak(r, s);
}

/* ---- whether that is well ---------------------------------------------------------------------------------- */

/* Memory was refused, whatever became of that. */
static bool was_refused(const struct selection *sel)
{
	return model_failures(sel->model) || model_ooms(sel->model);
}

static bool ended_well(const struct report *r)
{
	const struct process *p = report_main_program(r);
	return p && (p->state == PROCESS_RUNNING ||
		     (p->state == PROCESS_ENDED && p->exit_kind == MT_EXIT_CODE && p->exit_code == 0));
}

/* ---- what was never freed -------------------------------------------------------------------------------------- */

/* What was alive at the end of each process may be more than there ever was at once. */
static uint64_t own_peaks(const struct report *r)
{
	uint64_t bytes = 0;
	for (unsigned id = 0; id < reader_processes(r->selection->reader); id++)
		bytes += model_process(r->selection->model, id)->kind[MODEL_HEAP].peak_bytes;
	return bytes;
}

/* Several times as much as there ever was at once: processes had it one after another. */
static bool had_by_turns(const struct report *r, enum model_kind kind, double bytes)
{
	return bytes > BY_TURNS * (double)model_totals(r->selection->model, kind).peak_bytes;
}

/* One line's blocks, most of what the heaps ever had, were alive at exit: a leak, or what it worked with to its end.
 * NULL = none. What many short processes leave one after the other is nobody's memory. */
static const struct owner *left_behind(const struct report *r)
{
	const struct owners *s = r->survivors;
	for (size_t i = 0; s && i < s->count; i++) {
		const struct owner *o = &s->owners[i];
		if (!o->folded)
			return o->bytes >= LEFT_BYTES && !had_by_turns(r, MODEL_HEAP, (double)o->bytes) &&
					       (double)o->bytes >= LEFT_PART * (double)own_peaks(r)
				       ? o
				       : NULL;
	}
	return NULL;
}

/* ---- what grew ---------------------------------------------------------------------------------------------- */

/* Worth a line where no verdict is about it: of all processes in which it is so. What is stated as a fact always is. */
static bool is_worth(const struct report *r, const struct owner_growth *t, uint64_t of)
{
	const struct selection *sel = r->selection;
	const struct growth_scale scale =
		growth_scale_of(sel->model, reader_hosts(sel->reader) ? reader_host(sel->reader, 0) : NULL,
				timeline_samples(r->analysis.timeline));
	const bool goes_on = outlook_goes_on(t->outlook);
	return (goes_on || t->outlook == OUTLOOK_NEEDS_MORE) && !growth_is_noise(&scale, t->all_bytes) &&
	       (t->all_bytes >= NOTABLE * (double)of || (goes_on && growth_matters(&scale, t->all_bytes, false)));
}

/* The line that grew most, and how many others; NULL = none did. */
static const struct owner_finding *largest_line(const struct report *r, size_t *others)
{
	const struct findings *f = &r->analysis.diagnosis->findings;
	const struct owner_finding *most = NULL;
	*others = 0;
	for (size_t i = 0; i < f->count; i++) {
		const struct owner_finding *one = &f->list[i];
		if (one->owner->folded || !is_worth(r, &one->growth, one->all) ||
		    findings_find(f, one->kind, one->owner) != one)
			continue;
		*others += most != NULL;
		most = !most || one->growth.all_bytes > most->growth.all_bytes ? one : most;
	}
	return most;
}

/* Mappings where they are most of it: else much of them is never touched. What a driver gave a pool the pool tells. */
static bool is_shown(const struct report *r, const struct growth_place *place)
{
	const struct growth_place pool = { place->process, MODEL_POOL, place->device };
	if (place->kind == MODEL_DEVICE && findings_track(&r->analysis.diagnosis->findings, &pool))
		return false;
	return place->kind != MODEL_MAP || is_mapped(r->selection);
}

/* Nothing that the process has was seen for long enough. Where many steps were seen, that is only said of what rose. */
static bool was_short(const struct report *r, const struct track_finding *one)
{
	const struct findings *f = &r->analysis.diagnosis->findings;
	const uint32_t process = one->place.process;
	const struct step_list *steps = timeline_step_list(r->analysis.timeline, process);
	if (steps && steps->source != LOOP_NONE && steps->total >= TIMELINE_SURE_STEPS &&
	    one->growth.rise < NOTABLE * (double)one->bytes)
		return false;
	for (size_t i = 0; i < f->track_count; i++)
		if (f->tracks[i].place.process == process && f->tracks[i].growth.outlook != OUTLOOK_SHORT &&
		    f->tracks[i].growth.outlook != OUTLOOK_NONE)
			return false;
	return true;
}

/* All that a process has of a kind, where no line has it; NULL = it does not grow, or too little was seen. */
static const struct track_finding *largest_track(const struct report *r, enum outlook how)
{
	const struct findings *f = &r->analysis.diagnosis->findings;
	const struct track_finding *most = NULL;
	for (size_t i = 0; i < f->track_count; i++) {
		const struct track_finding *one = &f->tracks[i];
		const bool is = how == OUTLOOK_SHORT
					? one->growth.outlook == how && one->bytes >= SHORT_BYTES && was_short(r, one)
					: is_worth(r, &one->growth, one->bytes) &&
						  one->growth.rise >= fmax(NOTABLE * (double)one->bytes, SHORT_BYTES);
		if (is && is_shown(r, &one->place) && (!most || one->bytes > most->bytes))
			most = one;
	}
	return most;
}

static const char *how_it_grows(enum outlook o)
{
	return o == OUTLOOK_LEAKS        ? "keeps more and more"
	       : o == OUTLOOK_GROWS      ? "only grew"
	       : o == OUTLOOK_COLLECTED  ? "makes the runtime's own heap larger"
	       : o == OUTLOOK_BACKLOG    ? "falls behind: more waits, and waits longer"
	       : o == OUTLOOK_NEEDS_MORE ? "needs more and more at a time"
					 : "was seen too briefly to say whether it grows";
}

/* Why no verdict is about it, unless the line says what was never freed. What fills a device is mostly a load, and its
 * tables need the room. */
static const char *why_no_verdict(const struct report *r, const struct owner_finding *one)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	const enum outlook o = one->kind < MODEL_HOST_KINDS ? one->growth.outlook : OUTLOOK_NONE;
	if (one->growth.outlook == OUTLOOK_LEAKS && one->growth.growth.certainty == CERTAINTY_LOW)
		return ": not certain";
	if (o == OUTLOOK_GROWS)
		return left_behind(r) ? "" : ": a load, or all of it is kept";
	for (size_t i = 0; i < v->ruled_out_count && o == OUTLOOK_LEAKS; i++)
		if (reasons_find(&v->ruled_out[i].evidence, REASON_grows_little))
			return ": too little for a verdict";
	return "";
}

/* Small objects lie in arenas that other lines needed: the line that may hold them says more than how many lines. */
static char *of_arenas(const struct report *r, const struct owner_finding *one)
{
	const struct owner_finding *container =
		findings_container(&r->analysis.diagnosis->findings, one->growth.process);
	char *place = container ? place_of(container->owner) : NULL;
	char *text = !place ? strdup(" of any line's small objects")
		     : container->owner->frame == one->owner->frame
			     ? strdup(" of small objects")
			     : output_format(" of small objects, perhaps held by %s", place);
	free(place);
	return text;
}

static char *line_text(const struct report *r, const struct owner_finding *one, size_t others)
{
	const struct findings *f = &r->analysis.diagnosis->findings;
	const struct held_question *held = r->held_count ? &r->held[r->held_count - 1] : NULL;
	const struct owner *o = one->owner;
	const unsigned devices = findings_devices(f, one);
	char *place = place_of(o);
	const unsigned processes = one->growth.growing;
	const bool by_turns = devices <= 1 && processes > 1 && had_by_turns(r, one->kind, one->growth.all_bytes);
	const double bytes = one->growth.all_bytes / (by_turns ? processes : 1);
	char *each = devices > 1     ? output_format(" on each of %u devices", devices)
		     : by_turns      ? output_format(" in each of %u processes, one after another", processes)
		     : processes > 1 ? output_format(" in %u processes together", processes)
				     : strdup("");
	char *more = owner_is_arenas(o, one->kind, r->selection->stacks) ? of_arenas(r, one)
		     : others ? output_format(", and %zu more site%s", others, others == 1 ? "" : "s")
			      : strdup("");
	char *by = held && held->known ? output_format(", held by %s", held->name) : strdup("");
	const char *when = one->growth.outlook == OUTLOOK_NEEDS_MORE ? " in the second half" : "";
	char *text =
		output_format("%s %s, %s%s%s%s%s%s (memtrace %s)", place ? place : "one line",
			      how_it_grows(one->growth.outlook), BYTES((uint64_t)bytes), when, each ? each : "",
			      by ? by : "", more ? more : "", why_no_verdict(r, one), by && *by ? "holders" : "leaks");
	free(by);
	free(place);
	free(each);
	free(more);
	return text;
}

char *report_grown_site(const struct report *r, bool *device)
{
	size_t others;
	const struct owner_finding *line = largest_line(r, &others);
	*device = line && line->kind != MODEL_HEAP && line->kind != MODEL_PINNED && line->kind != MODEL_MAP;
	return line && !line->owner->label && line->owner->frame ? frame_place(line->owner->frame) : NULL;
}

static char *track_text(const struct report *r, const struct track_finding *one)
{
	char name[64];
	const struct process *p = reader_process(r->selection->reader, one->place.process);
	timeline_track_name(r->selection, p, one->place.kind, one->place.device, name, sizeof(name));
	const char *what = one->place.kind == MODEL_HEAP  ? "the heap"
			   : one->place.kind == MODEL_MAP ? "mapped memory"
							  : name;
	return one->growth.outlook == OUTLOOK_SHORT
		       ? output_format("%s of %u %s", what, p->pid, how_it_grows(OUTLOOK_SHORT))
		       : output_format("%s of %u rose to its end, by %s in the second half", what, p->pid,
				       BYTES((uint64_t)one->growth.rise));
}

/* The files that a line goes on making in /dev/shm; NULL = they are few. */
static const struct evidence_growth *grown_files(const struct report *r)
{
	const struct evidence_host *h = &r->analysis.diagnosis->evidence.host;
	for (size_t i = 0; i < h->growth.count; i++)
		if (h->growth.items[i].in_files && h->growth.items[i].bytes >= SHORT_BYTES)
			return &h->growth.items[i];
	return NULL;
}

/* What grew most: one of them, or none. */
struct grown {
	const struct evidence_growth *files;
	const struct owner_finding *line;
	size_t others; /* lines */
	const struct track_finding *track;
};

static struct grown what_grew(const struct report *r)
{
	size_t others;
	const struct owner_finding *line = largest_line(r, &others);
	const struct evidence_growth *files = grown_files(r);
	if (files && (!line || (double)files->bytes > line->growth.all_bytes))
		return (struct grown){ .files = files };
	return line ? (struct grown){ .line = line, .others = others }
		    : (struct grown){ .track = largest_track(r, OUTLOOK_NONE) };
}

/* What grew over much of the second half, and stopped so late that the rest of the run says little. NULL = nothing
 * did. */
static char *stopped_text(const struct report *r)
{
	const struct findings *f = &r->analysis.diagnosis->findings;
	const struct owner_finding *most = NULL;
	for (size_t i = 0; i < f->count; i++) {
		const struct owner_finding *one = &f->list[i];
		const struct owner_growth *t = &one->growth;
		const struct process *p = reader_process(r->selection->reader, t->process);
		const bool late = t->stopped_ns >= p->start_ns + (uint64_t)(LATE * (double)(p->end_ns - p->start_ns));
		if (t->outlook == OUTLOOK_STOPPED && late && !one->owner->folded && one->kind != MODEL_MAP &&
		    t->late_bytes >= fmax(NOTABLE * (double)one->all, SHORT_BYTES) &&
		    (!most || t->late_bytes > most->growth.late_bytes))
			most = one;
	}
	if (!most)
		return NULL;
	const struct owner *o = most->owner;
	char *place = place_of(o);
	char *text =
		output_format("%s grew by %s until %s of %s, then stopped (memtrace leaks)", place ? place : "one line",
			      BYTES((uint64_t)most->growth.all_bytes), DURATION(most->growth.stopped_ns),
			      DURATION(reader_duration_ns(r->selection->reader)));
	free(place);
	return text;
}

/* Of growth by less too few sampled blocks may be left to tell it. NULL: all blocks were recorded. */
static char *sampled_text(const struct report *r)
{
	uint64_t mean = 0;
	for (unsigned id = 0; id < reader_processes(r->selection->reader); id++) {
		const struct process *p = reader_process(r->selection->reader, id);
		if (selection_has(r->selection, p) && process_is_picked(p))
			mean = higher(mean, p->sample_bytes);
	}
	if (!mean)
		return NULL;
	if (own_peaks(r) < TOLD * mean)
		return strdup("too few blocks were sampled to say whether it grows");
	return output_format("blocks were sampled, and nothing of %s or more goes on growing", BYTES(TOLD * mean));
}

/* NULL: nothing goes on growing. */
static char *grown_text(const struct report *r)
{
	const struct grown g = what_grew(r);
	const bool unknown = r->leaks.unproven || !(selection_has_kinds(r->selection) & MT_IMPORT_HISTORY);
	if (g.files)
		return output_format("%s makes more and more files in /dev/shm, %s, %s/s", g.files->site,
				     BYTES(g.files->bytes), BYTES((uint64_t)g.files->per_second));
	const struct track_finding *track = g.line || g.track ? g.track : largest_track(r, OUTLOOK_SHORT);
	char *stopped = g.line || track || unknown ? NULL : stopped_text(r);
	return g.line    ? line_text(r, g.line, g.others)
	       : track   ? track_text(r, track)
	       : unknown ? strdup("whether it grew is not known")
	       : stopped ? stopped
			 : sampled_text(r);
}

static char *alive_text(const struct report *r)
{
	const struct report_leaks *l = &r->leaks;
	const struct process *p = report_main_program(r);
	const bool running = p && p->state == PROCESS_RUNNING,
		   ended = !running && r->selection->until_ns >= model_end_ns(r->selection->model);
	const char *when = running ? "so far" : ended ? "at exit" : "at that moment";
	if (l->in_use || !ended)
		return output_format("%s in use %s", BYTES(l->in_use ? l->in_use : l->alive),
				     ended ? "where processes did not exit by themselves" : when);
	if (l->alive_min < l->alive)
		return output_format("%s to %s of the program's own alive at exit", BYTES(l->alive_min),
				     BYTES(l->alive));
	return l->alive ? output_format("%s of the program's own alive at exit", BYTES(l->alive))
			: strdup("nothing of its own alive at exit");
}

static char *left_text(const struct report *r)
{
	const struct owner *o = left_behind(r);
	char *place = o ? place_of(o) : NULL;
	char *text = o ? output_format(", %s %% of %s by %s", PERCENT(o->bytes, own_peaks(r)),
				       reader_processes(r->selection->reader) > 1 ? "the processes' peaks" : "the peak",
				       place ? place : "")
		       : strdup("");
	free(place);
	return text;
}

/* The library was loaded later, and calls of the process do not come to it. */
static bool is_unhooked(const struct report *r)
{
	const struct process *p = report_main_program(r);
	return p && p->attached == MT_ATTACHED_NOTHING;
}

/* "healthy" is said where everything is known to be; else what is known. */
static char *health_text(const struct report *r)
{
	const struct process *p = report_main_program(r);
	char exit[32], *grown = grown_text(r), *alive = alive_text(r), *end = NULL;
	const bool well = !was_refused(r->selection) && r->analysis.losses.complete && ended_well(r) &&
			  !report_is_full(r) && !left_behind(r);
	if (p && p->state == PROCESS_ENDED && !ended_well(r))
		end = output_format(" (%s)", exit_text(p, exit, sizeof(exit)));
	const char *verdict = well && !grown                 ? "healthy"
			      : !r->analysis.losses.complete ? "of what was recorded"
			      : was_refused(r->selection)    ? "besides"
			      : end                          ? "no trouble with memory"
			      : report_is_full(r)            ? "nothing failed"
			      : left_behind(r)               ? "never freed"
							     : "nothing failed";
	const bool leaves = !grown || left_behind(r); /* where something grew the line is about that */
	char *left = left_text(r),
	     *text = output_format("%s%s: %s%s%s%s", verdict, end ? end : "", grown ? grown : "nothing goes on growing",
				   leaves ? "; " : "", leaves && alive ? alive : "", left ? left : "");
	free(left);
	free(grown);
	free(alive);
	free(end);
	return text;
}

/* ---- what the first words are about ------------------------------------------------------------------------- */

/* Of a device the pool, where it has one: that knows who has the memory. */
static struct report_memory memory_of(const struct report *r, uint32_t device, const struct evidence_growth *growth)
{
	if (device == MODEL_NO_DEVICE)
		return (struct report_memory){ growth                    ? growth->kind
					       : is_mapped(r->selection) ? MODEL_MAP
									 : MODEL_HEAP,
					       device };
	const struct model_device *d = model_device(r->selection->model, device);
	const struct model_oom *o = diagnosis_failure(d);
	const bool pool = o ? o->pool : growth ? growth->kind == MODEL_POOL : d->layer[LAYER_POOL].peak_bytes > 0;
	return (struct report_memory){ pool ? MODEL_POOL : MODEL_DEVICE, device };
}

struct report_memory report_first_memory(const struct report *r)
{
	const struct diagnosis *diagnosis = r->analysis.diagnosis;
	const struct evidence_device *failed = report_device(r), *first = diagnosis->evidence.devices.items;
	const struct verdict *v = diagnosis->verdicts.held_count ? &diagnosis->verdicts.held[0] : NULL;
	if (failed && diagnosis_failure(model_device(r->selection->model, (uint32_t)(failed - first))))
		return memory_of(r, (uint32_t)(failed - first), NULL);
	if (v)
		return memory_of(r, v->device ? (uint32_t)(v->device - first) : MODEL_NO_DEVICE, v->growth);
	const struct grown g = report_is_trouble(r) ? (struct grown){ 0 } : what_grew(r);
	return g.files   ? memory_of(r, MODEL_NO_DEVICE, g.files)
	       : g.line  ? (struct report_memory){ g.line->kind, g.line->device }
	       : g.track ? (struct report_memory){ g.track->place.kind, g.track->place.device }
			 : memory_of(r, report_main_space(r)->device, NULL);
}

/* ---- trouble without a failure ------------------------------------------------------------------------------ */

static unsigned print_trouble(const struct report *r)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	const struct evidence_runtime *t = &r->analysis.diagnosis->evidence.host.runtime;
	if (was_refused(r->selection) || report_kills(r) || (!v->held_count && !t->pid))
		return 0;
	print("\n");
	char *end = t->pid ? output_format("%u %s ended with %s", t->pid, t->name, t->ended) : strdup("nothing failed");
	output_line(STYLE_BAD,
		    !v->held_count
			    ? output_format("ENDED BADLY  %s", end ? end : "")
			    : output_format("%s: %s, %s; %s",
					    v->status == STATUS_PROBLEM ? "MEMORY TROUBLE" : "PERHAPS TROUBLE",
					    verdict_title(v->held[0].kind), BYTES(v->held[0].bytes), end ? end : ""));
	free(end);
	return 2 + print_spike(r);
}

unsigned report_print_headline(const struct report *r, unsigned room)
{
	(void)room;
	if (report_is_trouble(r))
		return print_trouble(r);
	print("\n");
	char *text = peak_text(r);
	unsigned lines = 1 + output_wrapped(text, 2, 2, output_width(), NULL);
	free(text);
	lines += is_mapped(r->selection) && report_main_space(r)->device == MODEL_NO_DEVICE ? print_spike(r) : 0;
	if (is_unhooked(r))
		return lines +
		       output_wrapped(
			       "recording began by dlopen, and nothing is hooked: what this program allocates is "
			       "not known; use LD_PRELOAD or memtrace run",
			       2, 2, output_width(), NULL);
	if (!r->leaks.known)
		return lines;
	text = health_text(r);
	lines += output_wrapped(text, 2, 3, output_width(), NULL);
	free(text);
	return lines;
}

/* ---- what to ask next --------------------------------------------------------------------------------------- */

struct question {
	const char *command, *what;
};

enum { MOST_QUESTIONS = 4 };

static unsigned questions(const struct report *r, struct question *list)
{
	const bool oom = model_ooms(r->selection->model) > 0;
	unsigned n = 0;
	list[n++] = oom ? (struct question){ "peak --at oom", "what was alive then, by line" }
			: (struct question){ "peak", "what was alive at its peak" };
	list[n++] = r->brief ? (struct question){ "report --all", "all that is known" }
			     : (struct question){ "report --json", "the same for programs" };
	list[n++] = (struct question){ "leaks", "what was left, and what grew" };
	list[n++] = oom ? (struct question){ "frag --at oom", "the device's segments and holes" }
			: (struct question){ "timeline", "memory over time" };
	return n;
}

/* What must stand behind each, so that it is about this trace: nothing if it is the newest here, which is read without
 * being named. */
static char *named(const struct options *o)
{
	char *text = strdup(o->force ? " --force" : "");
	for (int i = 0; text && !o->newest && i < o->ndirs; i++) {
		char *dir = shell_word(options_shown(o, i)), *more = output_format("%s %s", text, dir ? dir : "");
		free(dir);
		free(text);
		text = more;
	}
	return text;
}

static char *in_one_line(const struct question *list, unsigned n, const char *behind)
{
	char *text = strdup("more: memtrace ");
	for (unsigned i = 0; text && i < n; i++) {
		char *more = output_format("%s%s%s%s", text, i ? " | " : "", list[i].command, behind);
		free(text);
		text = more;
	}
	return text;
}

/* A command that is too wide is printed as it is all the same: it is to be copied. */
static void print_questions(const struct question *list, unsigned n, const char *behind)
{
	int widest = 0;
	for (unsigned i = 0; i < n; i++)
		widest = output_columns(list[i].command) > widest ? output_columns(list[i].command) : widest;
	for (unsigned i = 0; i < n; i++) {
		char *command = output_format("%s memtrace %s%s", i ? "     " : "more:", list[i].command, behind);
		char *line =
			output_format("%s%*s", command ? command : "", widest - output_columns(list[i].command), "");
		char *told = output_format("%s   %s", line ? line : "", list[i].what);
		bool fits = told && output_columns(told) <= output_width();
		print("%s%s%s\n", output_begin(STYLE_FAINT), fits ? told : command, output_end(STYLE_FAINT));
		free(told);
		free(line);
		free(command);
	}
}

/* One line, or, where that does not hold them with the trace's name, one line each, as many as there is room for. */
unsigned report_print_more(const struct report *r, unsigned room)
{
	struct question list[MOST_QUESTIONS];
	unsigned n = questions(r, list);
	char *behind = named(r->selection->options), *line = in_one_line(list, n, behind ? behind : "");
	if (line && output_columns(line) <= output_width()) {
		output_line(STYLE_FAINT, line);
		n = 1;
	} else {
		n = !r->brief || room > n ? n : room ? room : 1;
		print_questions(list, n, behind ? behind : "");
		free(line);
	}
	free(behind);
	return n;
}
