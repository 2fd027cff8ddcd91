/* One stream of all processes: a heap of what each does next. */
#include "analyzer/reader/reader_internal.h"
#include "analyzer/util/error.h"
#include "analyzer/util/heap.h"

#include <stdlib.h>

/* From so many slots on, blocks are decoded ahead. Under AddressSanitizer they always are: what tests and the fuzzer
 * read there is small. */
#ifdef __SANITIZE_ADDRESS__
#define LARGE_SLOTS 1u
#else
#define LARGE_SLOTS (1u << 20)
#endif

/* Order of steps: time; on one clock the ticks themselves; a process begins before anything else happens and ends after
 * everything did. */
static bool source_before(const struct source *a, const struct source *b)
{
	if (a->image->clock == b->image->clock && a->ticks != b->ticks)
		return a->ticks < b->ticks;
	if (a->image->clock != b->image->clock && a->ns != b->ns)
		return a->ns < b->ns;
	if (a->next != b->next)
		return a->next < b->next;
	return a->image->process.id < b->image->process.id;
}

HEAP(sources, struct source, source_before)

static void set_time(struct source *s, uint64_t ticks)
{
	s->ticks = ticks;
	s->ns = clock_ns(s->image->clock, ticks);
}

static void add_sources(struct reader *r)
{
	for (; r->source_count < r->image_count; r->source_count++) {
		struct source *s = &r->sources[r->source_count];
		s->image = r->images[r->source_count];
		s->next = READER_START;
		set_time(s, image_start_ticks(s->image));
		r->heap[r->heap_count++] = s;
	}
}

int merge_processes_make(struct reader *r)
{
	size_t room = r->image_count + (reader_is_following(r) ? READER_MORE : 0);
	r->sources = calloc(room, sizeof(*r->sources));
	r->heap = calloc(room, sizeof(*r->heap));
	if (!r->sources || !r->heap)
		return error_memory();
	r->source_room = room;
	uint64_t slots = 0;
	for (size_t i = 0; i < r->image_count; i++)
		slots += r->images[i]->trace.slots;
	r->is_large = slots >= LARGE_SLOTS && !reader_is_following(r);
	add_sources(r);
	sources_heap_make(r->heap, r->heap_count);
	return 0;
}

void merge_processes_free(struct reader *r)
{
	for (size_t i = 0; i < r->source_count; i++)
		stream_free(r->sources[i].stream);
	free(r->sources);
	free(r->heap);
}

/* Gets the next batch, or prepares for the exit. */
static int refill(struct source *s)
{
	int e = stream_next(s->stream, &s->batch);
	if (e)
		return e;
	s->at = 0;
	if (s->batch.count) {
		s->next = READER_EVENTS;
		uint64_t ticks = s->batch.slots[0].ticks;
		set_time(s, ticks > s->ticks ? ticks : s->ticks);
		return 0;
	}
	if (reader_is_following(s->image->reader) && s->image->process.state == PROCESS_RUNNING) {
		s->next = READER_EVENTS;
		s->parked = true;
		return 0;
	}
	s->next = READER_EXIT;
	set_time(s, s->image->sign_of_life > s->ticks ? s->image->sign_of_life : s->ticks);
	return 0;
}

/* How many slots of the source come before what every other one does next. */
static size_t run_length(struct reader *r, const struct source *s)
{
	const struct source *other = NULL;
	for (size_t i = 1; i <= 2 && i < r->heap_count; i++)
		if (!other || source_before(r->heap[i], other))
			other = r->heap[i];
	if (!other)
		return s->batch.count - s->at;
	struct source probe = *s;
	size_t n = s->at + 1;
	for (; n < s->batch.count; n++) {
		if (s->batch.slots[n].kind == MT_EXT || s->batch.slots[n].ticks <= probe.ticks)
			continue;
		set_time(&probe, s->batch.slots[n].ticks);
		if (source_before(other, &probe))
			break;
	}
	return n - s->at;
}

static int step_start(struct source *s, struct reader_step *step)
{
	*step = (struct reader_step){ .what = READER_START, .process = &s->image->process, .ns = s->ns };
	int e = stream_new(&s->stream, s->image);
	return e ? e : refill(s);
}

static int step_events(struct reader *r, struct source *s, struct reader_step *step)
{
	size_t n = run_length(r, s);
	*step = (struct reader_step){ .what = READER_EVENTS,
				      .process = &s->image->process,
				      .ns = s->ns,
				      .slots = s->batch.slots + s->at,
				      .rings = s->batch.rings + s->at,
				      .threads = s->batch.threads + s->at,
				      .count = n };
	s->at += n;
	if (s->at < s->batch.count && s->batch.slots[s->at].ticks > s->ticks)
		set_time(s, s->batch.slots[s->at].ticks);
	return 0;
}

static void step_exit(struct source *s, struct reader_step *step)
{
	*step = (struct reader_step){ .what = READER_EXIT, .process = &s->image->process, .ns = s->ns };
	if (s->ns > s->image->process.end_ns)
		s->image->process.end_ns = s->ns;
	stream_free(s->stream);
	s->stream = NULL;
	s->next = 0;
}

int merge_processes_refresh(struct reader *r)
{
	size_t known = r->source_count;
	int e = 0;
	if (r->image_count > r->source_room)
		return error_set(MT_ECHANGED, r->sessions[0].dir, ERROR_NO_OFFSET, NULL);
	for (size_t i = 0; !e && i < known; i++) {
		struct source *s = &r->sources[i];
		if (!s->parked)
			continue;
		s->parked = false;
		e = stream_refresh(s->stream);
		if (!e)
			e = refill(s);
		if (!e && !s->parked)
			r->heap[r->heap_count++] = s;
	}
	add_sources(r);
	sources_heap_make(r->heap, r->heap_count);
	return e;
}

/* The first one has nothing more, or nothing for now. */
static void take_out(struct reader *r)
{
	r->heap[0] = r->heap[--r->heap_count];
	sources_heap_moved(r->heap, r->heap_count);
}

int reader_next(struct reader *r, struct reader_step *step)
{
	int e = 0;
	/* the batch that was handed out is only replaced now, so that it was valid until this call */
	while (r->heap_count && r->heap[0]->next == READER_EVENTS && r->heap[0]->at == r->heap[0]->batch.count) {
		e = refill(r->heap[0]);
		if (e)
			return e;
		if (r->heap[0]->parked)
			take_out(r);
		else
			sources_heap_moved(r->heap, r->heap_count);
	}
	if (!r->heap_count) {
		ahead_stop(r->ahead);
		return 0;
	}
	struct source *s = r->heap[0];
	if (s->next == READER_START)
		e = step_start(s, step);
	else if (s->next == READER_EVENTS)
		e = step_events(r, s, step);
	else
		step_exit(s, step);
	if (e)
		return e;
	if (!s->next || s->parked)
		take_out(r);
	else
		sources_heap_moved(r->heap, r->heap_count);
	return 1;
}

struct reader_progress reader_progress(const struct reader *r)
{
	uint64_t done = 0, all = 0;
	for (size_t i = 0; i < r->source_count; i++) {
		const struct source *s = &r->sources[i];
		uint64_t slots = s->image->trace.slots + s->image->raw.slots,
			 seen = s->stream ? stream_slots_read(s->stream) : 0;
		all += slots;
		done += !s->next || seen > slots ? slots : seen;
	}
	return (struct reader_progress){ all ? (double)done / (double)all : 1, all };
}
