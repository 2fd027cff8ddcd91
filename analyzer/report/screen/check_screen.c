#include "analyzer/report/screen/check_screen.h"
#include "analyzer/analysis/open.h"
#include "analyzer/model/model.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/reader/samples.h"
#include "analyzer/report/json/json.h"
#include "analyzer/symbols/symbol_file.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* on the screen, of files and of processes each: a file that is full of holes has one at each block */
enum { MOST_FINDINGS = 20 };

/* What was found; printed as it comes, counted for the exit status. */
struct findings {
	bool json;
	uint64_t most, here; /* here: in this part */
	unsigned problems, remarks;
	uint64_t hidden, all_hidden; /* in this part, in all */
};

static void find(struct findings *f, bool problem, const char *where, int64_t offset, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

static void find(struct findings *f, bool problem, const char *where, int64_t offset, const char *format, ...)
{
	char what[512];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	bool first = !f->problems && !f->remarks;
	*(problem ? &f->problems : &f->remarks) += 1;
	if (f->here++ >= f->most) {
		f->hidden++;
		return;
	}
	if (!f->json) {
		print("%s%s", problem ? "" : "note: ", where);
		if (offset != ERROR_NO_OFFSET)
			print(": offset %" PRId64, offset);
		print(": %s\n", what);
		return;
	}
	print("%s{\"problem\":%s,\"where\":", first ? "" : ",", problem ? "true" : "false");
	json_print_text(where);
	print(",\"offset\":");
	print(offset == ERROR_NO_OFFSET ? "null" : "%" PRId64, offset);
	print(",\"what\":");
	json_print_text(what);
	print("}");
}

static void end_part(struct findings *f)
{
	if (f->hidden && !f->json)
		print("%" PRIu64 " more: -n all\n", f->hidden);
	f->all_hidden += f->hidden;
	f->hidden = f->here = 0;
}

static void find_count(struct findings *f, bool problem, const char *where, uint64_t n, const char *what)
{
	if (n)
		find(f, problem, where, ERROR_NO_OFFSET, "%" PRIu64 " %s", n, what);
}

/* What was freed meanwhile was not seen, as somebody wanted it; what a child has of its parent's neither. */
static bool lived_through_stop(const struct process *p)
{
	for (; p && !p->stops; p = p->origin == MT_ORIGIN_FORK ? p->parent : NULL)
		;
	return p != NULL;
}

static void check_process(struct findings *f, const struct model_process *mp)
{
	const struct process *p = mp->process;
	const struct model_totals *heap = &mp->kind[MODEL_HEAP], *map = &mp->kind[MODEL_MAP];
	const bool stopped = lived_through_stop(p);
	char where[64], part[RECORDED_PART];
	snprintf(where, sizeof(where), "process %" PRIu32 "-%" PRIu32, p->pid, p->image);
	uint64_t lost = p->lost_events > mp->lost_events ? p->lost_events : mp->lost_events;
	find_count(f, true, where, lost, "events were lost while recording");
	find_count(f, true, where, p->skipped_slots, "events are missing or unreadable");
	find_count(f, true, where, p->bad_nodes, "events have a stack that is missing");
	find_count(f, true, where, p->unwritten_bytes, "bytes of records could not be written");
	find_count(f, true, where, p->faults, "inconsistencies inside the recording library");
	find_count(f, true, where, p->off, "time the recording library turned itself off");
	if (process_was_stopped(p))
		find(f, false, where, ERROR_NO_OFFSET, "%s; blocks that were freed while it was stopped look alive",
		     recorded_part(p, part));
	else if (p->recorded_ticks)
		find(f, false, where, ERROR_NO_OFFSET, "%s", recorded_part(p, part));
	find_count(f, !stopped, where, mp->odd_undos, "calls were taken back that were never seen");
	find_count(f, !stopped, where, heap->missed_frees,
		   "blocks were freed unseen (their address was allocated again)");
	find_count(f, false, where, heap->unknown_frees,
		   lost ? "frees of blocks whose allocation is missing" : "frees of blocks from before the recording");
	find_count(f, false, where, map->missed_frees,
		   "mappings were removed unseen (something else was mapped there)");
	find_count(f, !stopped, where, mp->kind[MODEL_DEVICE].missed_frees,
		   "device allocations were freed unseen (their address was "
		   "allocated again)");
	find_count(f, !stopped, where, mp->kind[MODEL_POOL].missed_frees,
		   "blocks of a device's pool were freed unseen");
	find_count(f, !stopped, where, mp->kind[MODEL_PINNED].missed_frees, "pinned blocks were freed unseen");
	find_count(f, false, where,
		   mp->kind[MODEL_DEVICE].unknown_frees + mp->kind[MODEL_POOL].unknown_frees +
			   mp->kind[MODEL_PINNED].unknown_frees,
		   lost ? "frees of device memory whose allocation is missing"
			: "frees of device memory from before the recording");
	find_count(f, false, where, p->truncated_stacks - p->unplaced_stacks, "stacks were cut");
	find_count(f, false, where, p->unplaced_stacks, "stacks were cut for want of room for the call tree");
	find_count(f, false, where, mp->fold.blocks,
		   "blocks were folded at the disk limit: they are in all totals, not among the events");
	find_count(f, false, where, mp->fold.young_blocks,
		   "small blocks were recorded as totals: they are not among the events");
	if (process_is_picked(p))
		find(f, false, where, ERROR_NO_OFFSET,
		     "of the heap only sampled blocks have events: what is alive is an estimate");
	for (unsigned i = 0; i < p->mode_count; i++)
		find(f, false, where, ERROR_NO_OFFSET,
		     p->modes[i].record == MT_RECORD_YOUNG
			     ? "small blocks as totals from %s on: its recorder was behind"
			     : "all events again from %s on",
		     DURATION(process_ns(p, p->modes[i].ticks)));
	if (p->state == PROCESS_RUNNING)
		find(f, false, where, ERROR_NO_OFFSET, "still running");
	if (p->origin == MT_ORIGIN_FORK && !p->parent)
		find(f, false, where, ERROR_NO_OFFSET, "its parent is not in this trace: what it inherited is unknown");
}

/* What a framework says of its pool must be what was seen of it, where all of it is. */
static void check_oom(struct findings *f, const struct model *m, const struct reader *r, const struct model_oom *o)
{
	const struct process *p = reader_process(r, o->process);
	char where[64];
	const struct model_share *share = model_share(m, o->device, o->process);
	if (share && share->partly_seen)
		return;
	snprintf(where, sizeof(where), "process %" PRIu32 "-%" PRIu32, p->pid, p->image);
	if (o->said_allocated != MODEL_UNKNOWN && o->said_allocated != o->allocated_bytes)
		find(f, true, where, ERROR_NO_OFFSET,
		     "%s: the pool says it had %" PRIu64 " bytes in use when it ran out, %" PRIu64 " were seen",
		     model_device(m, o->device)->name, o->said_allocated, o->allocated_bytes);
	if (o->said_reserved != MODEL_UNKNOWN && o->said_reserved != o->reserved_bytes)
		find(f, true, where, ERROR_NO_OFFSET,
		     "%s: the pool says it had %" PRIu64 " bytes reserved when it ran out, %" PRIu64 " were seen",
		     model_device(m, o->device)->name, o->said_reserved, o->reserved_bytes);
}

static void check_notes(struct findings *f, const struct reader *r)
{
	for (unsigned i = 0; i < reader_notes(r); i++) {
		const struct reader_note *n = reader_note(r, i);
		find(f, n->code != MT_OK, n->file, n->offset, "%s", n->text);
	}
	find_count(f, true, "session", reader_unrecorded(r), "processes were seen but not recorded");
}

/* What is wrong with them is a note of the reader's. */
static int check_samples(struct reader *r)
{
	struct samples *s;
	int e = samples_open(&s, r);
	samples_close(s);
	return e;
}

static uint64_t count_events(const struct reader *r, const struct model *m)
{
	uint64_t n = 0;
	for (unsigned id = 0; id < reader_processes(r); id++)
		n += model_process(m, id)->events;
	return n;
}

static int check(struct reader *r, struct findings *f, const struct options *o)
{
	struct model *m;
	struct model_query q = MODEL_QUERY_ALL;
	int e = check_samples(r);
	if (!e)
		e = open_pass(r, &m, &q);
	if (e)
		return e;
	if (f->json)
		print("{\"version\":1,\"findings\":[");
	check_notes(f, r);
	for (unsigned i = 0; i < model_ooms(m); i++)
		check_oom(f, m, r, model_oom(m, i));
	for (int i = 0; i < o->ndirs; i++)
		if (symbol_file_read(NULL, o->dirs[i]) < 0)
			find(f, true, error_get()->file, error_get()->offset, "%s", error_get()->why);
	end_part(f);
	for (unsigned id = 0; id < reader_processes(r); id++)
		check_process(f, model_process(m, id));
	end_part(f);
	uint64_t events = count_events(r, m);
	bool complete = !f->problems && reader_complete(r);
	if (f->json)
		print("],\"findings_total\":%" PRIu64 ",\"findings_left_out\":%" PRIu64
		      ",\"processes\":%u,\"events\":%" PRIu64 ",\"complete\":%s}\n",
		      (uint64_t)f->problems + f->remarks, f->all_hidden, reader_processes(r), events,
		      complete ? "true" : "false");
	else
		print("%u process%s, %" PRIu64 " events: %s\n", reader_processes(r),
		      reader_processes(r) == 1 ? "" : "es", events, complete ? "complete" : "not complete");
	model_free(m);
	return !complete;
}

int check_print(struct reader *r, const struct options *o)
{
	struct findings f = { .json = o->json, .most = o->rows ? o->rows : o->json ? OPTIONS_ALL_ROWS : MOST_FINDINGS };
	return check(r, &f, o);
}
