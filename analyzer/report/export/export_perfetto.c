/*
 * A trace of Perfetto's (perfetto.dev; protos/perfetto/trace): counters of what is known over time, phases and steps as
 * slices, failures as instants, and what was alive at the peak and at the end as heap profiles, one for each process
 * and kind of memory.
 *
 * What its trace_processor demands without a word: all clocks in a ClockSnapshot, or heap profiles are dropped;
 * strings, frames and callstacks as InternedData; a packet sequence of its own for each (process, heap), or figures
 * mix. Times are those of the wall clock, so that it lies beside a profiler's trace of the same run.
 *
 * A counter has the highest value of each stretch of time. Memory is bounded by the stacks that had something then.
 */
#include "analyzer/report/export/export.h"
#include "analyzer/report/export/protobuf.h"
#include "analyzer/analysis/series_lines.h"

#include "analyzer/timeline/timeline.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* Numbers of fields. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_PROFILE = 37,
	PACKET_CLOCK = 58,
	PACKET_TRACK = 60
};
enum { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME };
enum { TRACK_UUID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { COUNTER_UNIT = 3 };
enum { EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_NAME = 23, EVENT_VALUE = 30 };
enum {
	INTERNED_FUNCTIONS = 5,
	INTERNED_FRAMES = 6,
	INTERNED_STACKS = 7,
	INTERNED_BUILD_IDS = 16,
	INTERNED_PATHS,
	INTERNED_SOURCES,
	INTERNED_MAPPINGS
};
enum { STRING_ID = 1, STRING_TEXT };
enum { FRAME_ID = 1, FRAME_FUNCTION, FRAME_MAPPING, FRAME_PC, FRAME_SOURCE, FRAME_LINE };
enum { STACK_ID = 1, STACK_FRAMES };
enum { MAPPING_ID = 1, MAPPING_PATH = 7 };
enum { PROFILE_DUMP = 5, PROFILE_INDEX = 7 };
enum { DUMP_PID = 1, DUMP_SAMPLE = 2, DUMP_TIME = 9, DUMP_HEAP = 11 };
enum { SAMPLE_STACK = 1, SAMPLE_ALLOCATED, SAMPLE_FREED, SAMPLE_TIME, SAMPLE_BLOCKS, SAMPLE_BLOCKS_FREED };

enum { CLOCK_REALTIME_ID = 1, CLOCK_MONOTONIC_ID = 3, CLOCK_COARSE_ID = 4, CLOCK_BOOTTIME_ID = 6 };
enum { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER };
enum { UNIT_COUNT = 2, UNIT_BYTES };
enum { FLAG_FRESH = 1, FLAG_NEEDS_STATE };

enum { EVENTS_SEQUENCE = 1, FIRST_HEAP_SEQUENCE = 2 };

/* What was interned in a sequence: texts, or frames by their address. */
struct interned {
	struct interned_key {
		uint64_t field, what; /* what: the address of a frame or library, 0 = text */
	} key;
	char *text;
	uint64_t number;
	UT_hash_handle hh;
};

enum { MOMENTS = 2 }; /* its peak and the end, or the one that was asked for */

/* What a stack had at each moment of its heap. */
struct heap_stack {
	uint64_t number;
	uint64_t bytes[MOMENTS], blocks[MOMENTS];
	UT_hash_handle hh;
	uint64_t frames[]; /* their numbers, the outermost first */
};

/* One heap of one process. */
struct heap {
	const struct process *process;
	char *memory;
	const struct moment *first;
	struct interned *interned, *texts;
	struct heap_stack *stacks;
	uint64_t numbers;
	struct protobuf state; /* InternedData */
};

struct perfetto {
	struct selection *selection;
	struct timeline *timeline;
	struct heap *heaps;
	size_t heap_count, heap_room;
	struct protobuf packet, inner, part;
	uint64_t tracks; /* uuids given */
	uint64_t *frames;
	size_t frame_room;
	bool failed;
};

/* ---- packets --------------------------------------------------------------------------------------------- */

static uint64_t wall(const struct perfetto *p, uint64_t ns)
{
	return reader_origin_real_ns(p->selection->reader) + ns;
}

static void put_packet(struct perfetto *p, uint64_t sequence)
{
	protobuf_uint(&p->packet, PACKET_SEQUENCE, sequence);
	struct protobuf outer = { 0 };
	protobuf_message(&outer, TRACE_PACKET, &p->packet);
	p->failed = p->failed || outer.failed;
	if (!outer.failed)
		print_as_is((const char *)outer.data, outer.size);
	protobuf_fini(&outer);
}

static void put_clocks(struct perfetto *p)
{
	static const unsigned clocks[] = { CLOCK_BOOTTIME_ID, CLOCK_MONOTONIC_ID, CLOCK_COARSE_ID, CLOCK_REALTIME_ID };
	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		protobuf_uint(&p->part, CLOCK_ID, clocks[i]);
		protobuf_uint(&p->part, CLOCK_TIME, wall(p, 0));
		protobuf_message(&p->inner, CLOCKS_CLOCK, &p->part);
	}
	protobuf_message(&p->packet, PACKET_CLOCKS, &p->inner);
	protobuf_uint(&p->packet, PACKET_TIME, wall(p, 0));
	put_packet(p, EVENTS_SEQUENCE);
}

static void put_text(struct perfetto *p, struct protobuf *to, unsigned field, const char *text)
{
	char *clean = export_clean(text ? text : "");
	protobuf_text(to, field, clean ? clean : "");
	p->failed = p->failed || !clean;
	free(clean);
}

/* Of a process, or within another track. Returns its uuid. */
static uint64_t put_track(struct perfetto *p, const struct process *process, uint64_t parent, const char *name,
			  unsigned unit)
{
	uint64_t uuid = ++p->tracks;
	protobuf_uint(&p->inner, TRACK_UUID, uuid);
	if (parent)
		protobuf_uint(&p->inner, TRACK_PARENT, parent);
	put_text(p, &p->inner, TRACK_NAME, name);
	if (process) {
		protobuf_uint(&p->part, PROCESS_PID, process->pid);
		put_text(p, &p->part, PROCESS_NAME, process->name);
		protobuf_message(&p->inner, TRACK_PROCESS, &p->part);
	}
	if (unit) {
		protobuf_uint(&p->part, COUNTER_UNIT, unit);
		protobuf_message(&p->inner, TRACK_COUNTER, &p->part);
	}
	protobuf_message(&p->packet, PACKET_TRACK, &p->inner);
	put_packet(p, EVENTS_SEQUENCE);
	return uuid;
}

static void put_event(struct perfetto *p, uint64_t ns, uint64_t track, unsigned type, const char *name, uint64_t value)
{
	protobuf_uint(&p->inner, EVENT_TYPE, type);
	protobuf_uint(&p->inner, EVENT_TRACK, track);
	if (name)
		put_text(p, &p->inner, EVENT_NAME, name);
	if (type == TYPE_COUNTER)
		protobuf_uint(&p->inner, EVENT_VALUE, value);
	protobuf_uint(&p->packet, PACKET_TIME, wall(p, ns));
	protobuf_message(&p->packet, PACKET_EVENT, &p->inner);
	put_packet(p, EVENTS_SEQUENCE);
}

/* ---- over time ------------------------------------------------------------------------------------------- */

struct drawing {
	struct perfetto *perfetto;
	uint64_t *processes; /* uuids of their tracks, by id; the last is that of all */
};

static uint64_t process_track(struct drawing *d, const struct process *process)
{
	struct perfetto *p = d->perfetto;
	uint64_t *uuid = &d->processes[process ? process->id : reader_processes(p->selection->reader)];
	if (!*uuid)
		*uuid = put_track(p, process, 0, process ? process->name : "all processes", 0);
	return *uuid;
}

/* More than the machine has is address space: beside it all other counters were flat lines. */
static bool is_memory(const struct series_line *l)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < l->series->count; i++)
		most = l->series->buckets[i].high > most ? l->series->buckets[i].high : most;
	return most && (l->device || !l->host->memory_bytes || most <= l->host->memory_bytes);
}

static void draw_line(void *arg, const struct series_line *l)
{
	struct drawing *d = arg;
	const struct model_series *s = l->series;
	if (!is_memory(l))
		return;
	char *name = l->device ? output_format("%s %s", l->device->name, l->what) : output_format("%s", l->what);
	uint64_t track = put_track(d->perfetto, NULL, process_track(d, l->process), name ? name : "", UNIT_BYTES);
	uint64_t before = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		uint64_t high = s->buckets[i].high;
		if (i == 0 || high != before)
			put_event(d->perfetto, selection_bucket_ns(d->perfetto->selection, s->first + i), track,
				  TYPE_COUNTER, NULL, high);
		before = high;
	}
	put_event(d->perfetto, selection_bucket_ns(d->perfetto->selection, s->first + s->count), track, TYPE_COUNTER,
		  NULL, s->buckets[s->count - 1].last);
	free(name);
}

/* Slices of a track must nest: one that crosses those that are open goes to the next track. */
struct lane {
	const struct process *process;
	uint64_t track;
	uint64_t *open; /* when they end, the outermost first */
	size_t open_count, open_room;
};

struct lanes {
	struct lane *lanes;
	size_t count, room;
};

static void close_until(struct perfetto *p, struct lane *l, uint64_t ns)
{
	for (; l->open_count && l->open[l->open_count - 1] <= ns; l->open_count--)
		put_event(p, l->open[l->open_count - 1], l->track, TYPE_END, NULL, 0);
}

static struct lane *lane_for(struct drawing *d, struct lanes *all, const struct process *process, uint64_t begin,
			     uint64_t end, const char *name)
{
	for (size_t i = 0; i < all->count; i++) {
		struct lane *l = &all->lanes[i];
		if (l->process != process)
			continue;
		close_until(d->perfetto, l, begin);
		if (!l->open_count || l->open[l->open_count - 1] >= end)
			return l;
	}
	if (vec_reserve(all->lanes, all->room, all->count + 1))
		return NULL;
	struct lane *l = &all->lanes[all->count++];
	l->process = process;
	l->track = put_track(d->perfetto, NULL, process_track(d, process), name, 0);
	return l;
}

static void draw_slice(struct drawing *d, struct lanes *all, const struct process *process, uint64_t begin,
		       uint64_t end, const char *lane, const char *name)
{
	struct lane *l = lane_for(d, all, process, begin, end, lane);
	if (!l || vec_reserve(l->open, l->open_room, l->open_count + 1)) {
		d->perfetto->failed = true;
		return;
	}
	put_event(d->perfetto, begin, l->track, TYPE_BEGIN, name, 0);
	l->open[l->open_count++] = end;
}

static void lanes_fini(struct perfetto *p, struct lanes *all)
{
	for (size_t i = 0; i < all->count; i++) {
		close_until(p, &all->lanes[i], UINT64_MAX);
		free(all->lanes[i].open);
	}
	free(all->lanes);
}

static void draw_phases(struct drawing *d)
{
	const struct phases *phases = timeline_phases(d->perfetto->timeline);
	struct lanes lanes = { 0 };
	for (size_t i = 0; i < phases_count(phases); i++) {
		const struct phase *f = phases_get(phases, i);
		if (selection_has(d->perfetto->selection, f->process) && f->end_ns >= f->begin_ns)
			draw_slice(d, &lanes, f->process, f->begin_ns, f->end_ns, "phases", f->name);
	}
	lanes_fini(d->perfetto, &lanes);
}

static void draw_steps(struct drawing *d)
{
	const struct selection *sel = d->perfetto->selection;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct step_list *list = timeline_step_list(d->perfetto->timeline, id);
		struct lanes lanes = { 0 };
		if (!list || list->source == LOOP_NONE || !selection_has(sel, list->process))
			continue;
		for (size_t i = 0; i < list->count; i++) {
			const struct step *s = &list->steps[i];
			char *name = s->count > 1 ? output_format("steps %" PRIu64 " to %" PRIu64, s->number,
								  s->number + s->count - 1)
						  : output_format("step %" PRIu64, s->number);
			draw_slice(d, &lanes, list->process, s->begin_ns, s->end_ns, "steps", name ? name : "");
			free(name);
		}
		lanes_fini(d->perfetto, &lanes);
	}
}

static void draw_failures(struct drawing *d)
{
	const struct selection *sel = d->perfetto->selection;
	for (unsigned i = 0; i < model_ooms(sel->model); i++) {
		const struct model_oom *o = model_oom(sel->model, i);
		const struct process *process = reader_process(sel->reader, o->process);
		if (!selection_has(sel, process) || !selection_has_device(sel, o->device))
			continue;
		char *name = output_format("out of memory on %s: %s asked for",
					   model_device(sel->model, o->device)->name, BYTES(o->requested_bytes));
		put_event(d->perfetto, o->at.ns, process_track(d, process), TYPE_INSTANT, name ? name : "", 0);
		free(name);
	}
	for (unsigned i = 0; i < model_failures(sel->model); i++) {
		const struct model_failure *f = model_failure(sel->model, i);
		const struct process *process = reader_process(sel->reader, f->process);
		char *name =
			output_format("%s failed: %s asked for", process_hook(process, f->hook), BYTES(f->last_bytes));
		if (selection_has(sel, process))
			put_event(d->perfetto, f->last_ns, process_track(d, process), TYPE_INSTANT, name ? name : "",
				  0);
		free(name);
	}
}

static int draw(struct perfetto *p)
{
	struct drawing d = { p, calloc(reader_processes(p->selection->reader) + 1ul, sizeof(*d.processes)) };
	struct all_sample_series *sampled;
	int e = d.processes ? sample_series_open(&sampled, p->selection) : error_memory();
	if (e == 0) {
		put_clocks(p);
		series_lines_each(p->selection, sampled, draw_line, &d);
		draw_phases(&d);
		draw_steps(&d);
		draw_failures(&d);
		sample_series_close(sampled);
	}
	free(d.processes);
	return e;
}

/* ---- heap profiles --------------------------------------------------------------------------------------- */

static struct heap *heap_of(struct perfetto *p, const struct export_stack *s)
{
	for (size_t i = p->heap_count; i-- > 0;)
		if (p->heaps[i].process == s->process && !strcmp(p->heaps[i].memory, s->memory))
			return &p->heaps[i];
	if (vec_reserve(p->heaps, p->heap_room, p->heap_count + 1))
		return NULL;
	struct heap *h = &p->heaps[p->heap_count];
	h->process = s->process;
	h->memory = export_clean(s->memory);
	p->heap_count += h->memory != NULL;
	return h->memory ? h : NULL;
}

/* The number of a text of that field; 0: no memory. */
static uint64_t intern_text(struct perfetto *p, struct heap *h, unsigned field, const char *text)
{
	char *clean = output_format("%u %s", field, text ? text : "");
	struct interned *i;
	if (!clean)
		return 0;
	HASH_FIND(hh, h->texts, clean, strlen(clean), i);
	if (i || !(i = calloc(1, sizeof(*i)))) {
		free(clean);
		return i ? i->number : 0;
	}
	i->text = clean;
	i->number = ++h->numbers;
	HASH_ADD_KEYPTR(hh, h->texts, i->text, strlen(i->text), i);
	protobuf_uint(&p->inner, STRING_ID, i->number);
	put_text(p, &p->inner, STRING_TEXT, text);
	protobuf_message(&h->state, field, &p->inner);
	return i->number;
}

/* New with a number of its own, or NULL where there is none, or what is there; *is_new says which. */
static struct interned *intern(struct heap *h, unsigned field, const void *what, bool *is_new)
{
	struct interned_key key = { field, (uint64_t)(uintptr_t)what };
	struct interned *i;
	HASH_FIND(hh, h->interned, &key, sizeof(key), i);
	*is_new = !i;
	if (i || !(i = calloc(1, sizeof(*i))))
		return i;
	i->key = key;
	i->number = ++h->numbers;
	HASH_ADD(hh, h->interned, key, sizeof(i->key), i);
	return i;
}

static uint64_t intern_mapping(struct perfetto *p, struct heap *h, const struct frame *f)
{
	bool is_new, python = f->language && !strcmp(f->language, "python");
	const char *path = python ? "python" : f->library ? f->library : "unknown";
	struct interned *i = intern(h, INTERNED_MAPPINGS, path, &is_new);
	if (!i || !is_new)
		return i ? i->number : 0;
	uint64_t text = intern_text(p, h, INTERNED_PATHS, path);
	protobuf_uint(&p->inner, MAPPING_ID, i->number);
	protobuf_uint(&p->inner, MAPPING_PATH, text);
	protobuf_message(&h->state, INTERNED_MAPPINGS, &p->inner);
	return i->number;
}

static uint64_t intern_frame(struct perfetto *p, struct heap *h, const struct frame *f)
{
	bool is_new;
	struct interned *i = intern(h, INTERNED_FRAMES, f, &is_new);
	if (!i || !is_new)
		return i ? i->number : 0;
	char *name = export_frame_text(f);
	uint64_t function = intern_text(p, h, INTERNED_FUNCTIONS, name), mapping = intern_mapping(p, h, f);
	uint64_t source = f->file ? intern_text(p, h, INTERNED_SOURCES, f->file) : 0;
	protobuf_uint(&p->inner, FRAME_ID, i->number);
	protobuf_uint(&p->inner, FRAME_FUNCTION, function);
	protobuf_uint(&p->inner, FRAME_MAPPING, mapping);
	protobuf_uint(&p->inner, FRAME_PC, f->language && !strcmp(f->language, "python") ? 0 : f->offset);
	if (source)
		protobuf_uint(&p->inner, FRAME_SOURCE, source);
	if (f->line)
		protobuf_uint(&p->inner, FRAME_LINE, f->line);
	protobuf_message(&h->state, INTERNED_FRAMES, &p->inner);
	p->failed = p->failed || !name || !function || !mapping;
	free(name);
	return i->number;
}

static const struct frame no_stack = { .name = "(no stack)" };

static struct heap_stack *new_stack(struct perfetto *p, struct heap *h, size_t count)
{
	struct heap_stack *stack = calloc(1, sizeof(*stack) + count * sizeof(*stack->frames));
	if (!stack)
		return NULL;
	memcpy(stack->frames, p->frames, count * sizeof(*stack->frames));
	stack->number = ++h->numbers;
	HASH_ADD_KEYPTR(hh, h->stacks, stack->frames, count * sizeof(*stack->frames), stack);
	protobuf_uint(&p->inner, STACK_ID, stack->number);
	for (size_t i = 0; i < count; i++)
		protobuf_uint(&p->inner, STACK_FRAMES, p->frames[i]);
	protobuf_message(&h->state, INTERNED_STACKS, &p->inner);
	return stack;
}

/* NULL: there is no memory. */
static struct heap_stack *stack_of(struct perfetto *p, struct heap *h, const struct export_stack *s)
{
	const size_t count = s->count ? s->count : 1;
	struct heap_stack *stack;
	if (vec_reserve_raw(p->frames, p->frame_room, count))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		p->frames[count - 1 - i] = intern_frame(p, h, s->count ? s->frames[i] : &no_stack);
		p->failed = p->failed || !p->frames[count - 1 - i];
	}
	HASH_FIND(hh, h->stacks, p->frames, count * sizeof(*p->frames), stack);
	return stack ? stack : new_stack(p, h, count);
}

static int add_stack(struct export *x, const struct export_stack *s)
{
	struct perfetto *p = x->state;
	struct heap *h = heap_of(p, s);
	struct heap_stack *stack = h ? stack_of(p, h, s) : NULL;
	if (!stack)
		return error_memory();
	if (!h->first)
		h->first = s->at;
	const unsigned i = h->first != s->at;
	stack->bytes[i] += s->bytes;
	stack->blocks[i] += s->blocks;
	return p->failed || h->state.failed ? error_memory() : 0;
}

/* What was allocated and freed up to a moment, so that the rest is what is alive: trace_processor takes the differences
 * of two dumps of a sequence. */
static void put_sample(struct perfetto *p, struct protobuf *dump, const struct heap_stack *s, unsigned moment)
{
	uint64_t bytes = s->bytes[0], blocks = s->blocks[0];
	if (moment) {
		bytes = s->bytes[1] > bytes ? s->bytes[1] : bytes;
		blocks = s->blocks[1] > blocks ? s->blocks[1] : blocks;
	}
	protobuf_uint(&p->inner, SAMPLE_STACK, s->number);
	protobuf_uint(&p->inner, SAMPLE_ALLOCATED, bytes);
	protobuf_uint(&p->inner, SAMPLE_FREED, bytes - s->bytes[moment]);
	protobuf_uint(&p->inner, SAMPLE_BLOCKS, blocks);
	protobuf_uint(&p->inner, SAMPLE_BLOCKS_FREED, blocks - s->blocks[moment]);
	protobuf_message(dump, DUMP_SAMPLE, &p->inner);
}

static void put_dump(struct perfetto *p, const struct heap *h, unsigned moment, uint64_t ns, uint64_t sequence)
{
	struct protobuf dump = { 0 }; /* ProcessHeapSamples */
	for (const struct heap_stack *s = h->stacks; s; s = s->hh.next)
		put_sample(p, &dump, s, moment);
	protobuf_uint(&dump, DUMP_PID, h->process->pid);
	protobuf_uint(&dump, DUMP_TIME, ns);
	protobuf_text(&dump, DUMP_HEAP, h->memory);
	p->failed = p->failed || dump.failed;
	protobuf_message(&p->inner, PROFILE_DUMP, &dump);
	protobuf_uint(&p->inner, PROFILE_INDEX, moment);
	protobuf_uint(&p->packet, PACKET_FLAGS, FLAG_NEEDS_STATE);
	protobuf_uint(&p->packet, PACKET_TIME, ns);
	protobuf_message(&p->packet, PACKET_PROFILE, &p->inner);
	put_packet(p, sequence);
	protobuf_fini(&dump);
}

static void put_heap(struct perfetto *p, struct heap *h, uint64_t sequence)
{
	const struct selection *sel = p->selection;
	const uint64_t end_ns = model_end_ns(sel->model);
	protobuf_uint(&p->packet, PACKET_FLAGS, FLAG_FRESH);
	protobuf_uint(&p->packet, PACKET_TIME, wall(p, h->first->ns));
	protobuf_message(&p->packet, PACKET_INTERNED, &h->state);
	put_packet(p, sequence);
	put_dump(p, h, 0, wall(p, h->first->ns), sequence);
	if (sel->options->at.kind == WHEN_UNSET && end_ns > h->first->ns)
		put_dump(p, h, 1, wall(p, end_ns), sequence);
}

static void heap_fini(struct heap *h)
{
	struct interned *i, *next;
	HASH_ITER(hh, h->interned, i, next)
	{
		HASH_DEL(h->interned, i);
		free(i);
	}
	HASH_ITER(hh, h->texts, i, next)
	{
		HASH_DEL(h->texts, i);
		free(i->text);
		free(i);
	}
	struct heap_stack *s, *next_stack;
	HASH_ITER(hh, h->stacks, s, next_stack)
	{
		HASH_DEL(h->stacks, s);
		free(s);
	}
	protobuf_fini(&h->state);
	free(h->memory);
}

/* ---- format ---------------------------------------------------------------------------------------------- */

static int ask(struct export *x, struct model_query *q)
{
	struct perfetto *p = x->state = calloc(1, sizeof(*p));
	if (!p)
		return error_memory();
	p->selection = x->selection;
	p->timeline = timeline_new();
	if (!p->timeline)
		return error_memory();
	timeline_attach(p->timeline, q);
	return 0;
}

static int write_trace(struct perfetto *p)
{
	int e = timeline_run(p->timeline, p->selection);
	if (e == 0)
		e = draw(p);
	for (size_t i = 0; e == 0 && i < p->heap_count; i++)
		put_heap(p, &p->heaps[i], FIRST_HEAP_SEQUENCE + i);
	return e == 0 && p->failed ? error_memory() : e;
}

static int close_trace(struct export *x)
{
	struct perfetto *p = x->state;
	int e = 0;
	if (!p)
		return 0;
	if (!x->failed)
		e = write_trace(p);
	for (size_t i = 0; i < p->heap_count; i++)
		heap_fini(&p->heaps[i]);
	timeline_free(p->timeline);
	protobuf_fini(&p->packet);
	protobuf_fini(&p->inner);
	protobuf_fini(&p->part);
	free(p->heaps);
	free(p->frames);
	free(p);
	return e;
}

const struct export_ops export_perfetto = { .name = "perfetto",
					    .binary = true,
					    .by_process = true,
					    .end = true,
					    .ask = ask,
					    .stack = add_stack,
					    .close = close_trace };
