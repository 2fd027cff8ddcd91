/* HOST: where the memory of the machine, or what the cgroup may have of it, was; and the largest processes in it. */
#include "analyzer/diagnosis/ledger/managed_heaps.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/timeline/reclaimed.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORTH_A_LINE   200 /* of the memory there is: freed since the peak */
#define MOST_PROCESSES 6
#define SHOWN          0.002 /* of the total; less is no row ... */
#define OWN_ROWS       9     /* ... but of the run's own, which come first, what matters to the run is */
#define OWN_SHOWN      0.05
#define LEAST_MISSED   (8u << 20) /* of a peak that no sample is near ... */
#define MISSED         0.25       /* ... and this part of it */

struct line {
	const char *name;
	uint64_t bytes;
};

#define ALIKE        0.9           /* what it says of another moment is the same */
#define AT_END_NS    2000000000ull /* a look so long before the run's end tells of the end, but of a short run ... */
#define AT_END_SHORT 5             /* ... only one in this part of it, */
#define AT_END_PART  20            /* and of a long one also one in this part */

bool report_knows_end(const struct report *r)
{
	const struct host_facts *f = r->analysis.host ? host_facts(r->analysis.host) : NULL;
	const uint64_t run = reader_duration_ns(r->selection->reader);
	return f && f->traced_end != HOST_KILL_UNKNOWN &&
	       f->traced_end_ns + higher(lower(AT_END_NS, run / AT_END_SHORT), run / AT_END_PART) >= run;
}

#define BYTES_OR_NONE(n) ((n) == HOST_KILL_UNKNOWN ? "-" : BYTES(n))

/* The next form where one does not fit. */
static char *heading(const struct report *r, int form)
{
	const struct host_ledger *l = host_ledger(r->analysis.host);
	const struct host_facts *f = host_facts(r->analysis.host);
	if (form == 2)
		return output_format("HOST at %s, %s %% of %s used%s", DURATION(l->ns), PERCENT(l->used, l->total),
				     BYTES(l->total), l->cgroup ? "   cgroup" : "");
	char *swap = f->swap_total && f->swap_total != HOST_KILL_UNKNOWN
			     ? output_format("   swap %s of %s", BYTES(f->swap_peak), BYTES(f->swap_total))
			     : NULL,
	     *end = report_knows_end(r) ? output_format(form ? "   %s at the end" : "   this run %s at the end",
							BYTES(f->traced_end))
					: NULL;
	const char *group = form ? "   cgroup's limit" : "   limit of its cgroup",
		   *estimated = form ? "   (estimated)" : "   (shares estimated)";
	char *text = output_format("HOST at %s, %s %% of %s used%s%s%s%s", DURATION(l->ns), PERCENT(l->used, l->total),
				   BYTES(l->total), l->cgroup ? group : "", swap ? swap : "", end ? end : "",
				   l->estimated ? estimated : "");
	free(swap);
	free(end);
	return text;
}

/* ---- how near the table's moment is --------------------------------------------------------------------------- */

/* The process whose peak, as the kernel counts it, was highest above all that samples showed of it; NULL = samples were
 * near enough. */
static const struct host_process *unseen_peak(const struct report *r)
{
	const struct host_process *most = NULL;
	uint64_t missed = 0;
	for (unsigned i = 0; i < reader_processes(r->selection->reader); i++) {
		const struct host_process *p = host_process(r->analysis.host, i);
		uint64_t more = p->rss_peak == HOST_KILL_UNKNOWN ? 0 : less(p->rss_peak, p->rss_seen);
		if (!selection_has(r->selection, p->process) || more <= missed || more < LEAST_MISSED ||
		    (double)more < MISSED * (double)p->rss_peak)
			continue;
		most = p;
		missed = more;
	}
	return most;
}

struct nearest {
	const struct report *report;
	uint64_t heap;
};

static int take_nearest(void *arg, const struct sample *x)
{
	struct nearest *n = arg;
	const struct model *m = n->report->selection->model;
	if (x->subject->kind == MT_SUBJECT_PROCESS && x->subject->traced && x->subject->host->index == 0 && !x->gone)
		n->heap = higher(n->heap, model_at(m, &model_host(m, 0)->timeline[MODEL_HEAP], x->ns).high);
	return 0;
}

/* The most that was alive of the heap in a stretch of time with a sample. */
static uint64_t heap_seen(const struct report *r)
{
	struct nearest n = { .report = r };
	return samples_each(host_memory_samples(r->analysis.host), 0, UINT64_MAX, take_nearest, &n) ? UINT64_MAX
												    : n.heap;
}

/* What of the heap was alive at the table's moment. */
static uint64_t heap_then(const struct report *r)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < reader_processes(r->selection->reader); i++)
		bytes += selection_has(r->selection, reader_process(r->selection->reader, i))
				 ? host_process(r->analysis.host, i)->live_heap
				 : 0;
	return bytes;
}

/* Where nobody looked near the peak the table is of another moment, and the words say so. */
static unsigned print_distance(const struct report *r)
{
	const struct host_process *p = unseen_peak(r);
	const struct model_totals heap = model_totals(r->selection->model, MODEL_HEAP);
	uint64_t missed = less(heap.peak_bytes, heap_seen(r));
	if (p)
		output_fit_line(STYLE_FAINT, output_format("  peak not sampled: %u had %s, %s was seen",
							   p->process->pid, BYTES(p->rss_peak), BYTES(p->rss_seen)));
	else if (missed >= LEAST_MISSED && (double)missed >= MISSED * (double)heap.peak_bytes)
		output_fit_line(STYLE_FAINT,
				output_format("  no sample near the heap's peak: %s at %s, %s in this table",
					      BYTES(heap.peak_bytes), DURATION(heap.peak_ns), BYTES(heap_then(r))));
	else
		return 0;
	return 1;
}

/* What allocators keep is told as of the end: where the table is of another moment, in which they kept less, a line has
 * what the end's would have. */
static unsigned print_kept(const struct report *r)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	const struct host_ledger *l = host_ledger(r->analysis.host);
	const struct figures *f = NULL;
	for (size_t i = 0; !f && i < v->held_count; i++)
		f = reasons_find(&v->held[i].evidence, REASON_heap_keeps);
	if (!f || (double)l->kept >= ALIKE * (double)f->bytes)
		return 0;
	output_fit_line(STYLE_FAINT,
			output_format("  at the end: live %s, kept by allocators %s", BYTES(f->used), BYTES(f->bytes)));
	return 1;
}

/* ---- the ledger: two rows side by side, where there is room ------------------------------------------------- */

/* What is too little for a row of its own shares one, so that the rows add up. */
static unsigned collect(const struct host_ledger *l, const struct line *managed, struct line *out)
{
	const struct line all[] = {
		{ "live in this run", l->live - managed->bytes },
		*managed,
		{ "copied after fork", l->copied },
		{ "kept by allocators", l->kept - l->copied - l->unseen - l->pool_free },
		{ "unused in pools", l->pool_free },
		{ "seen by no hook", l->unseen },
		{ "pinned", l->pinned },
		{ "shared memory", l->shared },
		{ "mapped files", l->mapped_files },
		{ "other files in shm", l->shm_files },
		{ "other processes", l->other_processes },
		{ "page cache", l->page_cache },
		{ "kernel", l->kernel },
		{ "free", l->free },
	};
	unsigned n = 0;
	uint64_t rest = 0;
	double own = OWN_SHOWN * (double)(l->live + l->kept + l->shared);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if ((double)all[i].bytes >= SHOWN * (double)l->total || !strcmp(all[i].name, "free") ||
		    (i < OWN_ROWS && all[i].bytes && (double)all[i].bytes >= own))
			out[n++] = all[i];
		else
			rest += all[i].bytes;
	if (rest)
		out[n++] = (struct line){ "smaller parts", rest };
	return n;
}

enum { CELL = 40 }; /* columns */

static char *cell(const char *name, const char *bytes, const char *share)
{
	return output_format("  %-19s %10s %5s %%", name, bytes, share);
}

static unsigned print_ledger(const struct report *r)
{
	const struct host_ledger *l = host_ledger(r->analysis.host);
	const struct managed_heaps m = managed_heaps_find(r->selection, r->analysis.host);
	char *name = output_format(m.several ? "managed heaps" : "managed heap of %s", m.name ? m.name : "?");
	const struct line managed = { name ? name : "managed heaps", m.bytes };
	struct line rows[14];
	char *cells[15];
	unsigned n = collect(l, &managed, rows), count = 0;
	for (unsigned i = 0; i < n; i++)
		cells[count++] = cell(rows[i].name, BYTES(rows[i].bytes), PERCENT(rows[i].bytes, l->total));
	uint64_t size = (uint64_t)(l->unexplained < 0 ? -l->unexplained : l->unexplained);
	char *signed_bytes = output_format("%s%s", l->unexplained < 0 ? "-" : "", BYTES(size));
	cells[count++] = cell("unexplained", signed_bytes ? signed_bytes : "", PERCENT(size, l->total));
	free(signed_bytes);
	free(name);
	unsigned lines = output_width() < 2 * CELL ? count : (count + 1) / 2;
	for (unsigned i = 0; i < lines; i++)
		print("%s%s\n", cells[i] ? cells[i] : "",
		      i + lines < count && cells[i + lines] ? cells[i + lines] : "");
	for (unsigned i = 0; i < count; i++)
		free(cells[i]);
	bool exact = (double)l->live_error < SHOWN * (double)l->total;
	if (!exact)
		print("  live and kept: +/- %s, as large mappings were looked at before\n", BYTES(l->live_error));
	return lines + !exact;
}

/* Who made the files of that row, if most of it can be theirs. */
static unsigned print_shm_maker(const struct report *r)
{
	const struct host_ledger *l = host_ledger(r->analysis.host);
	const struct shm_maker *m = &r->analysis.diagnosis->evidence.host.shm;
	if (!m->files || (double)l->shm_files < SHOWN * (double)l->total || m->bytes < l->shm_files / 2)
		return 0;
	char *several = m->processes > 1 ? output_format(" in %u processes", m->processes) : NULL;
	output_fit_line(STYLE_FAINT,
			output_format("  made in /dev/shm: %s file%s, %s, by %s%s", COUNT(m->files),
				      m->files == 1 ? "" : "s", BYTES(m->bytes), m->site, several ? several : ""));
	free(several);
	return 1;
}

/* ---- who was killed ----------------------------------------------------------------------------------------- */

static bool was_killed(const struct report *r, const struct host_process *p)
{
	return selection_has(r->selection, p->process) && p->oom_killed != HOST_NOT_KILLED;
}

unsigned report_kills(const struct report *r)
{
	unsigned n = 0;
	for (unsigned i = 0; r->analysis.host && i < reader_processes(r->selection->reader); i++)
		n += was_killed(r, host_process(r->analysis.host, i));
	return n;
}

static void print_kill(const struct report *r, const struct host_process *p, unsigned others)
{
	const struct host_facts *f = host_facts(r->analysis.host);
	bool group = f->limit != HOST_KILL_UNKNOWN;
	char *more = others ? output_format(", %u more", others) : NULL,
	     *when = output_format("  %s", DURATION(p->process->end_ns)), *forms[2];
	for (int i = 0; i < 2; i++)
		forms[i] = output_format("OUT OF MEMORY  host (%s%s)  pid %u %s%s  %skilled by the kernel%s",
					 group ? "cgroup, " : "", BYTES(group ? f->limit : f->memory), p->process->pid,
					 p->process->name, when && !i ? when : "",
					 p->oom_killed == HOST_KILLED ? "" : "perhaps ", more ? more : "");
	print("\n");
	output_first_line(STYLE_BAD, forms, 2);
	free(when);
	free(more);
}

/* The one of which that is surest, of these the largest. */
unsigned report_print_kills(const struct report *r)
{
	unsigned all = report_kills(r);
	const struct host_process *best = NULL;
	for (unsigned i = 0; all && i < reader_processes(r->selection->reader); i++) {
		const struct host_process *p = host_process(r->analysis.host, i);
		if (was_killed(r, p) && (!best || p->oom_killed > best->oom_killed ||
					 (p->oom_killed == best->oom_killed && p->rss_peak > best->rss_peak)))
			best = p;
	}
	if (!best)
		return 0;
	print_kill(r, best, all - 1);
	return 2;
}

/* ---- the processes ------------------------------------------------------------------------------------------ */

static uint64_t weight(const struct host_process *p)
{
	return p->rss == HOST_KILL_UNKNOWN ? 0 : p->anon + (p->swap == HOST_KILL_UNKNOWN ? 0 : p->swap);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = weight(*(const struct host_process *const *)a), y = weight(*(const struct host_process *const *)b);
	return (x < y) - (x > y);
}

static void add_row(struct table *t, const struct host_process *p)
{
	static const char *const killed[] = { "", "  OOM killer?", "  OOM killer" };
	char *name = output_format("  %u %s%s", p->process->pid, p->process->name, killed[p->oom_killed]);
	table_row(t, (const char *[]){ name, BYTES_OR_NONE(p->rss), BYTES_OR_NONE(p->pss),
				       BYTES(p->live_heap + p->live_map), BYTES_OR_NONE(p->private_dirty),
				       BYTES_OR_NONE(p->swap), BYTES_OR_NONE(p->rss_peak) });
	free(name);
}

static unsigned print_processes(const struct report *r, unsigned room)
{
	static const struct column columns[] = {
		{ "  IN MEMORY THEN", LEFT, true },   { "resident", RIGHT, false },
		{ "its share", RIGHT, WORTH(2) },     { "live", RIGHT, WORTH(4) },
		{ "private dirty", RIGHT, WORTH(1) }, { "swap", RIGHT, WORTH(3) },
		{ "most resident", RIGHT, false },
	};
	unsigned all = reader_processes(r->selection->reader), n = 0;
	const struct host_process **list = calloc(all + 1ul, sizeof(*list));
	if (!list)
		return 0;
	for (unsigned i = 0; i < all; i++)
		if (selection_has(r->selection, reader_process(r->selection->reader, i)) &&
		    host_process(r->analysis.host, i)->rss != HOST_KILL_UNKNOWN)
			list[n++] = host_process(r->analysis.host, i);
	qsort(list, n, sizeof(*list), compare);
	unsigned shown = n < MOST_PROCESSES ? n : MOST_PROCESSES;
	shown = shown < room ? shown : room;
	struct table *t = table_new(columns, 7, 0);
	for (unsigned i = 0; i < shown; i++)
		add_row(t, list[i]);
	table_print(t);
	free(list);
	return shown + 1;
}

/* Of the process that freed most since its peak, where that is a part worth a line: parts of what it freed. */
static unsigned print_freed(const struct report *r)
{
	struct reclaimed most = { 0 }, f;
	const struct process *who = NULL;
	for (unsigned i = 0; i < reader_processes(r->selection->reader); i++) {
		const struct process *p = reader_process(r->selection->reader, i);
		if (!selection_has(r->selection, p) || !reclaimed_process(r->selection, p, &f) ||
		    f.bytes <= most.bytes || f.error > f.bytes / 4)
			continue;
		most = f;
		who = p;
	}
	if (!who || most.bytes < host_ledger(r->analysis.host)->total / WORTH_A_LINE)
		return 0;
	uint64_t gave = most.to_kernel > 0 ? (uint64_t)most.to_kernel : 0,
		 rest = most.bytes > gave ? most.bytes - gave : 0;
	uint64_t kept = most.kept < rest ? most.kept : rest; /* what came into RAM meanwhile was not freed */
	char *untouched = rest > kept ? output_format(", %s untouched", BYTES(rest - kept)) : NULL;
	char *text = output_format("freed by %u (+/- %s): %s to the kernel, %s kept%s", who->pid, BYTES(most.error),
				   BYTES(gave), BYTES(kept), untouched ? untouched : "");
	print("  ");
	unsigned lines = output_wrapped(text ? text : "", 4, 3, output_width() - 2, NULL);
	free(untouched);
	free(text);
	return lines;
}

unsigned report_print_host(const struct report *r, unsigned room)
{
	const struct host_ledger *l = host_ledger(r->analysis.host);
	if (!l->known || !l->total || room < 6)
		return 0;
	print("\n");
	output_first_line(STYLE_HEAD, (char *[]){ heading(r, 0), heading(r, 1), heading(r, 2) }, 3);
	unsigned lines = 2 + print_distance(r) + print_ledger(r) + print_kept(r) + print_shm_maker(r);
	if (room > lines + 3)
		lines += print_freed(r);
	if (room > lines + 2)
		lines += print_processes(r, room - lines - 1);
	return lines;
}
