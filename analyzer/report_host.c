/* HOST: where the memory of the machine, or what the cgroup may have of it, was; and the largest processes in it. */
#include "analyzer/arith.h"
#include "analyzer/error.h"
#include "analyzer/freed.h"
#include "analyzer/managed.h"
#include "analyzer/output.h"
#include "analyzer/print.h"
#include "analyzer/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORTH_A_LINE 200 /* of the memory there is: freed since the peak */
#define MOST_PROCESSES 6
#define SHOWN 0.002 /* of the total; less is no row ... */
#define OWN_ROWS 8  /* ... but of the run's own, which come first, what matters to the run is */
#define OWN_SHOWN 0.05
#define LEAST_MISSED (32u << 20) /* of a peak that no sample is near ... */
#define MISSED 0.25              /* ... and this part of it */

struct line { const char *name; uint64_t bytes; };

static const char *gib(struct number *out, uint64_t bytes)
{
	return output_bytes(out, bytes);
}

#define BYTES_OR_NONE(n) ((n) == SYSTEM_UNKNOWN ? "-" : gib(&(struct number){ "" }, n))

/* The second form where the first does not fit. */
static char *heading(const struct system *s, int form)
{
	const struct system_ledger *l = system_ledger(s);
	const struct system_facts *f = system_facts(s);
	char *swap = f->swap_total && f->swap_total != SYSTEM_UNKNOWN
			     ? output_format("swap %s of %s", BYTES(f->swap_peak), BYTES(f->swap_total)) : strdup("no swap");
	const char *group = form ? "cgroup's limit   " : "limit of its cgroup   ", *estimated = form ? "   (estimated)" : "   (shares estimated)";
	char *text = output_format("HOST at %s, %s %% of %s used   %s%s%s", DURATION(l->ns), PERCENT(l->used, l->total), BYTES(l->total),
				   l->cgroup ? group : "", swap ? swap : "", l->estimated ? estimated : "");
	free(swap);
	return text;
}

/* ---- how near the table's moment is --------------------------------------------------------------------------- */

/* The process whose peak, as the kernel counts it, was highest above all that samples showed of it; NULL = samples were near enough. */
static const struct system_process *unseen_peak(const struct report *r)
{
	const struct system_process *most = NULL;
	uint64_t missed = 0;
	for (unsigned i = 0; i < reader_processes(r->view->reader); i++) {
		const struct system_process *p = system_process(r->system, i);
		uint64_t more = p->rss_peak == SYSTEM_UNKNOWN ? 0 : less(p->rss_peak, p->rss_seen);
		if (!view_has(r->view, p->process) || more <= missed || more < LEAST_MISSED || (double)more < MISSED * (double)p->rss_peak)
			continue;
		most = p;
		missed = more;
	}
	return most;
}

struct nearest { const struct report *report; uint64_t heap; };

static int take_nearest(void *arg, const struct sample *x)
{
	struct nearest *n = arg;
	const struct model *m = n->report->view->model;
	if (x->subject->kind == MT_SUBJECT_PROCESS && x->subject->traced && x->subject->host->index == 0 && !x->gone)
		n->heap = higher(n->heap, model_at(m, &model_host(m, 0)->timeline[MODEL_HEAP], x->ns).high);
	return 0;
}

/* The most that was alive of the heap in a stretch of time with a sample. */
static uint64_t heap_seen(const struct report *r)
{
	struct nearest n = { .report = r };
	return samples_each(system_samples(r->system), 0, UINT64_MAX, take_nearest, &n) ? UINT64_MAX : n.heap;
}

/* What of the heap was alive at the table's moment. */
static uint64_t heap_then(const struct report *r)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < reader_processes(r->view->reader); i++)
		bytes += view_has(r->view, reader_process(r->view->reader, i)) ? system_process(r->system, i)->live_heap : 0;
	return bytes;
}

/* Where nobody looked near the peak the table is of another moment, and the words say so. */
static unsigned print_distance(const struct report *r)
{
	const struct system_process *p = unseen_peak(r);
	const struct model_totals heap = model_totals(r->view->model, MODEL_HEAP);
	uint64_t missed = less(heap.peak_bytes, heap_seen(r));
	if (p)
		output_fit_line(STYLE_FAINT, output_format("  peak not sampled: %u had %s, %s was seen", p->process->pid, BYTES(p->rss_peak),
							  BYTES(p->rss_seen)));
	else if (missed >= LEAST_MISSED && (double)missed >= MISSED * (double)heap.peak_bytes)
		output_fit_line(STYLE_FAINT, output_format("  no sample near the heap's peak: %s at %s, %s in this table", BYTES(heap.peak_bytes),
							  DURATION(heap.peak_ns), BYTES(heap_then(r))));
	else
		return 0;
	return 1;
}

/* ---- the ledger: two rows side by side ---------------------------------------------------------------------- */

/* What is too little for a row of its own shares one, so that the rows add up. */
static unsigned collect(const struct system_ledger *l, const struct line *managed, struct line *out)
{
	const struct line all[] = {
		{ "live in this run", l->live - managed->bytes }, *managed, { "copied after fork", l->copied },
		{ "kept by allocators", l->kept - l->copied - l->unseen }, { "seen by no hook", l->unseen }, { "pinned", l->pinned },
		{ "shared memory", l->shared }, { "mapped files", l->mapped_files },
		{ "other files in shm", l->shm_files }, { "other processes", l->other_processes },
		{ "page cache", l->page_cache }, { "kernel", l->kernel }, { "free", l->free },
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

static char *cell(const char *name, const char *bytes, const char *share)
{
	return output_format("  %-19s %10s %5s %%", name, bytes, share);
}

static unsigned print_ledger(const struct report *r)
{
	const struct system_ledger *l = system_ledger(r->system);
	const struct managed m = managed_find(r->view, r->system);
	char *name = output_format(m.several ? "managed heaps" : "managed heap of %s", m.name ? m.name : "?");
	const struct line managed = { name ? name : "managed heaps", m.bytes };
	struct line rows[13];
	char *cells[14];
	unsigned n = collect(l, &managed, rows), count = 0;
	for (unsigned i = 0; i < n; i++)
		cells[count++] = cell(rows[i].name, BYTES(rows[i].bytes), PERCENT(rows[i].bytes, l->total));
	uint64_t size = (uint64_t)(l->unexplained < 0 ? -l->unexplained : l->unexplained);
	char *signed_bytes = output_format("%s%s", l->unexplained < 0 ? "-" : "", BYTES(size));
	cells[count++] = cell("unexplained", signed_bytes ? signed_bytes : "", PERCENT(size, l->total));
	free(signed_bytes);
	free(name);
	unsigned half = (count + 1) / 2;
	for (unsigned i = 0; i < half; i++)
		print("%s%s\n", cells[i] ? cells[i] : "", i + half < count && cells[i + half] ? cells[i + half] : "");
	for (unsigned i = 0; i < count; i++)
		free(cells[i]);
	bool exact = (double)l->live_error < SHOWN * (double)l->total;
	if (!exact)
		print("  live and kept: +/- %s, as large mappings were looked at before\n", BYTES(l->live_error));
	return half + !exact;
}

/* ---- who was killed ----------------------------------------------------------------------------------------- */

static bool was_killed(const struct report *r, const struct system_process *p)
{
	return view_has(r->view, p->process) && p->oom_killed != SYSTEM_NOT_KILLED;
}

unsigned report_kills(const struct report *r)
{
	unsigned n = 0;
	for (unsigned i = 0; r->system && i < reader_processes(r->view->reader); i++)
		n += was_killed(r, system_process(r->system, i));
	return n;
}

static void print_kill(const struct report *r, const struct system_process *p, unsigned others)
{
	const struct system_facts *f = system_facts(r->system);
	bool group = f->limit != SYSTEM_UNKNOWN;
	char *more = others ? output_format(", %u more", others) : NULL, *when = output_format("  %s", DURATION(p->process->end_ns)), *forms[2];
	for (int i = 0; i < 2; i++)
		forms[i] = output_format("OUT OF MEMORY  host (%s%s)  pid %u %s%s  %skilled by the kernel%s", group ? "cgroup, " : "",
					 BYTES(group ? f->limit : f->memory), p->process->pid, p->process->name, when && !i ? when : "",
					 p->oom_killed == SYSTEM_KILLED ? "" : "perhaps ", more ? more : "");
	print("\n");
	output_first_line(STYLE_BAD, forms, 2);
	free(when);
	free(more);
}

/* The one of which that is surest, of these the largest. */
unsigned report_print_kills(const struct report *r)
{
	unsigned all = report_kills(r);
	const struct system_process *best = NULL;
	for (unsigned i = 0; all && i < reader_processes(r->view->reader); i++) {
		const struct system_process *p = system_process(r->system, i);
		if (was_killed(r, p) &&
		    (!best || p->oom_killed > best->oom_killed || (p->oom_killed == best->oom_killed && p->rss_peak > best->rss_peak)))
			best = p;
	}
	if (!best)
		return 0;
	print_kill(r, best, all - 1);
	return 2;
}

/* ---- the processes ------------------------------------------------------------------------------------------ */

static uint64_t weight(const struct system_process *p)
{
	return p->rss == SYSTEM_UNKNOWN ? 0 : p->anon + (p->swap == SYSTEM_UNKNOWN ? 0 : p->swap);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = weight(*(const struct system_process *const *)a), y = weight(*(const struct system_process *const *)b);
	return (x < y) - (x > y);
}

static void add_row(struct table *t, const struct system_process *p)
{
	static const char *const killed[] = { "", "  OOM killer?", "  OOM killer" };
	char *name = output_format("  %u %s%s", p->process->pid, p->process->name, killed[p->oom_killed]);
	table_row(t, (const char *[]){ name, BYTES_OR_NONE(p->rss), BYTES_OR_NONE(p->pss), BYTES(p->live_heap + p->live_map),
				       BYTES_OR_NONE(p->private_dirty), BYTES_OR_NONE(p->swap), BYTES_OR_NONE(p->rss_peak) });
	free(name);
}

static unsigned print_processes(const struct report *r, unsigned room)
{
	static const struct column columns[] = {
		{ "  IN MEMORY THEN", LEFT, true }, { "resident", RIGHT, false }, { "its share", RIGHT, WORTH(2) }, { "live", RIGHT, WORTH(4) },
		{ "private dirty", RIGHT, WORTH(1) }, { "swap", RIGHT, WORTH(3) }, { "most resident", RIGHT, false },
	};
	unsigned all = reader_processes(r->view->reader), n = 0;
	const struct system_process **list = calloc(all + 1ul, sizeof(*list));
	if (!list)
		return 0;
	for (unsigned i = 0; i < all; i++)
		if (view_has(r->view, reader_process(r->view->reader, i)) && system_process(r->system, i)->rss != SYSTEM_UNKNOWN)
			list[n++] = system_process(r->system, i);
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
	struct freed most = { 0 }, f;
	const struct process *who = NULL;
	for (unsigned i = 0; i < reader_processes(r->view->reader); i++) {
		const struct process *p = reader_process(r->view->reader, i);
		if (!view_has(r->view, p) || !freed_process(r->view, p, &f) || f.bytes <= most.bytes || f.error > f.bytes / 4)
			continue;
		most = f;
		who = p;
	}
	if (!who || most.bytes < system_ledger(r->system)->total / WORTH_A_LINE)
		return 0;
	uint64_t gave = most.to_kernel > 0 ? (uint64_t)most.to_kernel : 0, rest = most.bytes > gave ? most.bytes - gave : 0;
	uint64_t kept = most.kept < rest ? most.kept : rest; /* what came into RAM meanwhile was not freed */
	char *untouched = rest > kept ? output_format(", %s untouched", BYTES(rest - kept)) : NULL;
	print("  freed by %u (+/- %s): %s to the kernel, %s kept%s\n", who->pid, BYTES(most.error), BYTES(gave), BYTES(kept),
	      untouched ? untouched : "");
	free(untouched);
	return 1;
}

unsigned report_print_host(const struct report *r, unsigned room)
{
	const struct system_ledger *l = system_ledger(r->system);
	if (!l->known || !l->total || room < 6)
		return 0;
	print("\n");
	output_first_line(STYLE_HEAD, (char *[]){ heading(r->system, 0), heading(r->system, 1) }, 2);
	unsigned lines = 2 + print_distance(r) + print_ledger(r);
	if (room > lines + 3)
		lines += print_freed(r);
	if (room > lines + 2)
		lines += print_processes(r, room - lines - 1);
	return lines;
}
