/* The report's parts about devices: what failed, where the memory was then, and how it got there. */
#include "analyzer/diagnosis/ledger/device_ledger.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/symbols/python_frames.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_SOURCE (16 << 20) /* bytes */

enum {
	BRIEF_DEVICES = 4,
	SPARKS = 42,
	FEW_SPARKS = 24,
	ROWS = 5,
	FRAMES = 3,
	LITTLE = 200 /* of a device: that part of it */
};

/* ---- names ----------------------------------------------------------------------------------------------- */

char *report_device_title(const struct selection *sel, const struct model_device *d, const struct process *p)
{
	const struct model_share *s = p ? model_share(sel->model, d->index, p->id) : NULL;
	const char *kind = d->backend == MT_BACKEND_ASCEND ? "NPU" : d->backend == MT_BACKEND_OTHER ? "DEVICE" : "GPU";
	if (!s && !d->share_count)
		return output_format("%s %s", kind, d->name);
	return output_format("%s %u", kind, s ? s->ordinal : d->shares[0]->ordinal);
}

/* "GPU-5f1c2a" of "GPU-5f1c2a00-...", all of "PCI-0000:03:00.0". */
static char *short_uuid(const struct model_device *d)
{
	const char *dash = strchr(d->uuid, '-');
	int n = strchr(d->uuid, ':') ? (int)strlen(d->uuid) : dash ? (int)(dash - d->uuid) + 7 : 10;
	return output_format("%.*s", n, d->uuid);
}

/* ---- what failed ----------------------------------------------------------------------------------------- */

/* The failure that is to be explained: the last fatal one, else the last one. */
static const struct model_oom *worst_oom(const struct model_device *d)
{
	for (unsigned i = d->oom_count; i-- > 0;)
		if (d->oom[i].outcome == OUTCOME_FATAL)
			return &d->oom[i];
	return d->oom_count ? &d->oom[d->oom_count - 1] : NULL;
}

static char *outcome_text(const struct model_oom *o, const struct process *p)
{
	char exit[32];
	if (o->outcome == OUTCOME_CAUGHT)
		return output_format("caught: the run went on");
	if (o->outcome == OUTCOME_FATAL)
		return output_format("uncaught, %s", exit_text(p, exit, sizeof(exit)));
	return output_format("%s", p->state == PROCESS_RUNNING ? "still running" : "how it ended is not known");
}

static void print_oom_head(const struct selection *sel, const struct model_device *d, const struct model_oom *o)
{
	const struct process *p = reader_process(sel->reader, o->process);
	char *title = report_device_title(sel, d, p), *uuid = short_uuid(d), *outcome = outcome_text(o, p);
	char *identity = *d->uuid ? output_format("%s, ", uuid) : strdup(""), *forms[2];
	for (int i = 0; i < 2; i++)
		forms[i] = output_format("OUT OF MEMORY  %s (%s%s)  pid %u %s  %s  %s", title,
					 identity && !i ? identity : "",
					 o->at.total_bytes == MODEL_UNKNOWN ? "size unknown" : BYTES(o->at.total_bytes),
					 p->pid, p->name, DURATION(o->at.ns), outcome);
	output_first_line(STYLE_BAD, forms, 2);
	free(title);
	free(uuid);
	free(outcome);
	free(identity);
}

/* Of an expandable segment the driver is asked for one page at a time. */
static uint64_t asked_of(const struct model_oom *o)
{
	return o->block_bytes > o->requested_bytes ? o->block_bytes : o->requested_bytes;
}

static char *free_text(const struct model_oom *o)
{
	const uint64_t asked = asked_of(o), left = o->at.free_bytes;
	if (left == MODEL_UNKNOWN)
		return strdup("");
	if (left < asked)
		return output_format("   free %s   short by %s", BYTES(left), BYTES(asked - left));
	return output_format("   free %s, which would do", BYTES(left));
}

static void print_oom_figures(const struct model_oom *o)
{
	char *block = o->block_bytes && o->block_bytes != o->requested_bytes
			      ? output_format(" (a %s of %s)", o->block_bytes < o->requested_bytes ? "page" : "segment",
					      BYTES(o->block_bytes))
			      : strdup("");
	if (block && strstr(block, BYTES(o->requested_bytes)))
		*block = '\0'; /* rounded by less than is shown */
	char *left = free_text(o);
	const char *cache = o->pool && o->retries ? " (cache returned)" : "", *behind = left ? left : "",
		   *within = block ? block : "";
	char *about[] = {
		o->requested_bytes
			? output_format("  asked about %s%s%s%s", BYTES(o->requested_bytes), within, behind, cache)
			: output_format("  asked for an unknown number of bytes"),
	};
	char *forms[] = {
		output_format("  asked %s bytes = %s%s%s%s", EXACT(o->requested_bytes), BYTES(o->requested_bytes),
			      within, behind, cache),
		output_format("  asked %s bytes = %s%s%s", EXACT(o->requested_bytes), BYTES(o->requested_bytes), within,
			      behind),
		output_format("  asked %s%s%s", BYTES(o->requested_bytes), within, behind),
	};
	if (o->requested_bytes && !o->requested_error) {
		output_first_line(STYLE_BAD, forms, 3);
		free(about[0]);
	} else {
		output_first_line(STYLE_BAD, about, 1);
		for (int i = 0; i < 3; i++)
			free(forms[i]);
	}
	free(block);
	free(left);
	if (o->limit_bytes)
		output_line(STYLE_BAD, output_format("  refused by the pool itself, which may take %s to %s",
						     BYTES(o->limit_bytes), BYTES(o->reserved_bytes + asked_of(o))));
}

/* A line of the program, which is neither a library's nor made up. */
static bool is_own(const struct frame *f)
{
	return f->file && *f->file != '<' && !python_is_library(f->file);
}

/* Innermost first: of the program's own lines the innermost and the outermost, which is not its call of main() if there
 * is another, before them the innermost of a library they called. Without lines of its own: 0. */
static unsigned own_frames(const struct selection *sel, uint32_t stack, const struct frame **frames)
{
	const struct frame *library = NULL, *inner = NULL, *outer = NULL;
	unsigned count = 0;
	for (struct stack_walk w = { .next = stack }; stack_step(sel->stacks, &w);) {
		if (w.class != FRAME_PLAIN || !python_is_frame(w.frame) ||
		    !stack_shows(&w, selection_flags(sel->options)))
			continue;
		bool own = is_own(w.frame);
		if (!inner && !library && !own)
			library = w.frame;
		inner = inner || !own ? inner : w.frame;
		outer = own && !(outer && !strcmp(w.frame->function, "<module>")) ? w.frame : outer;
	}
	if (!inner)
		return 0;
	if (library)
		frames[count++] = library;
	frames[count++] = inner;
	if (outer != inner)
		frames[count++] = outer;
	return count;
}

/* The file of a program's line, if it is still the one that ran. A trace may name anything: what is waited for or has
 * no end is not read. */
static FILE *source_file(const struct frame *f, const struct process *p)
{
	struct stat s;
	int fd = python_is_frame(f) && is_own(f) && f->line
			 ? open(f->file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
			 : -1;
	bool fine = fd >= 0 && !fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_size > 0 && s.st_size <= MOST_SOURCE &&
		    (uint64_t)s.st_mtime * 1000000000u <= p->start_real_ns;
	FILE *file = fine ? fdopen(fd, "r") : NULL;
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

static char *source_text(const struct frame *f, const struct process *p)
{
	char *line = NULL, *text = NULL;
	size_t size = 0;
	FILE *file = source_file(f, p);
	uint32_t number = 0;
	while (file && number < f->line && getline(&line, &size, file) > 0)
		number++;
	if (file && number == f->line) {
		char *begin = line + strspn(line, " \t"), *end = begin + strcspn(begin, "\n");
		*end = '\0';
		text = strdup(begin);
	}
	if (file)
		fclose(file);
	free(line);
	return text;
}

static char *joined(const struct frame *const *frames, unsigned count)
{
	char *line = strdup(" ");
	for (unsigned i = count; i-- > 0 && line;) {
		char *text = frame_place(frames[i]),
		     *more = output_format("%s %s%s", line, text ? text : "", i ? " >" : "");
		free(text);
		free(line);
		line = more;
	}
	return line;
}

/* Who wanted it, outermost first: a line each with the source where that is at hand, else in one. */
static unsigned print_oom_stack(const struct report *r, const struct model_oom *o)
{
	const struct selection *sel = r->selection;
	const struct frame *frames[FRAMES];
	const struct process *p = reader_process(sel->reader, o->process);
	uint32_t stack = stacks_of(sel->stacks, p, o->node, o->node2);
	unsigned count = own_frames(sel, stack, frames), lines = 0;
	if (r->brief && count == FRAMES) { /* without the library's */
		memmove(frames, frames + 1, (FRAMES - 1) * sizeof(*frames));
		count--;
	}
	if (!count)
		count = selection_telling_frames(sel, stack, frames, FRAMES);
	while (count) {
		char *source = source_text(frames[count - 1], p),
		     *place = source && *source ? frame_place(frames[count - 1]) : NULL;
		if (place)
			output_line(STYLE_BAD, output_format("  %s: %s", place, source));
		else
			output_line(STYLE_BAD, joined(frames, count));
		count = place ? count - 1 : 0;
		free(place);
		free(source);
		lines++;
	}
	return lines;
}

static unsigned print_oom(const struct report *r, const struct model_device *d, const struct model_oom *o)
{
	print_oom_head(r->selection, d, o);
	print_oom_figures(o);
	unsigned lines = 2 + (o->limit_bytes != 0) + print_oom_stack(r, o);
	if (d->ooms <= 1)
		return lines;
	output_line(STYLE_NONE,
		    output_format("  %s more before: memtrace report --json lists them; memtrace frag --at oom:N",
				  COUNT(d->ooms - 1)));
	return lines + 1;
}

unsigned report_print_ooms(const struct report *r, unsigned room)
{
	const struct selection *sel = r->selection;
	(void)room;
	unsigned lines = 0, shown = 0;
	for (unsigned i = 0; i < model_devices(sel->model) && shown < 2; i++) {
		const struct model_device *d = model_device(sel->model, i);
		const struct model_oom *o = selection_has_device(sel, i) ? worst_oom(d) : NULL;
		if (!o || (sel->processes && !sel->processes[o->process]))
			continue;
		print(lines ? "" : "\n");
		lines += print_oom(r, d, o) + !shown++;
	}
	return lines;
}

/* ---- where the memory was -------------------------------------------------------------------------------- */

struct unit {
	const char *name;
	double bytes;
	int digits;
};

static struct unit unit_of(uint64_t total)
{
	static const struct unit gib = { "GiB", 1 << 30, 2 }, mib = { "MiB", 1 << 20, 1 };
	return total != MODEL_UNKNOWN && total >= 8ull << 30 ? gib : mib;
}

struct device_ledger_table {
	struct table *table;
	struct unit unit;
	uint64_t total;
	/* without rows of little, and of the total, which stands above; of what is free, which does, too */
	bool brief, tight;
	unsigned most; /* rows of processes */
	int64_t sum;
	unsigned rows;
};

static bool is_little(const struct device_ledger_table *t, int64_t bytes)
{
	uint64_t size = (uint64_t)(bytes < 0 ? -bytes : bytes);
	return t->total != MODEL_UNKNOWN ? size < t->total / LITTLE : size == 0;
}

static void device_ledger_row(struct device_ledger_table *t, const char *who, const char *name, const char *what,
			      int64_t bytes, const char *since, const char *seen)
{
	t->sum += bytes;
	if (t->brief && is_little(t, bytes) && strcmp(who ? who : "", "free"))
		return;
	char *figure = output_format("%.*f", t->unit.digits, (double)bytes / t->unit.bytes);
	char *percent = t->total != MODEL_UNKNOWN && t->total
				? output_format("%.1f", 100.0 * (double)bytes / (double)t->total)
				: NULL;
	table_row(t->table, (const char *[]){ who, name, what, figure, percent, since, seen });
	free(figure);
	free(percent);
	t->rows++;
}

/* What a process has outside its pool, by whom; NULL = nothing is known of it. */
static char *parts_text(const struct device_ledger *l, const struct process *process)
{
	struct unit unit = unit_of(l->total);
	char *text = NULL;
	unsigned count = 0;
	for (unsigned i = 0; i < l->part_count && count < 4; i++) {
		const struct device_ledger_part *p = &l->parts[i];
		if (p->process != process)
			continue;
		char *more = output_format("%s%s%s %.*f", text ? text : "", count++ ? ", " : "",
					   p->name ? p->name : "program", unit.digits, (double)p->bytes / unit.bytes);
		free(text);
		text = more;
	}
	return text;
}

/* A process in its parts. */
static void detailed_rows(struct device_ledger_table *t, const struct device_ledger *l,
			  const struct device_ledger_process *p, const char *who, const char *since)
{
	char *pid = output_format("%u", p->pid), *parts = parts_text(l, p->process);
	const bool pool = p->pool_allocated || p->pool_free;
	if (pool) {
		device_ledger_row(t, pid, who, "blocks in use", (int64_t)p->pool_allocated, since, "its trace");
		device_ledger_row(t, NULL, NULL, p->partly_seen ? "rest of XLA's pool" : "unused in pool",
				  (int64_t)(p->pool_free - p->graphs_free), NULL,
				  p->partly_seen ? "temporaries, code or free" : NULL);
	}
	if (p->graphs_free)
		device_ledger_row(t, NULL, NULL, "unused, graphs'", (int64_t)p->graphs_free, NULL, "private pools");
	if (pool && p->other)
		device_ledger_row(t, NULL, NULL, "outside pool", (int64_t)p->other, NULL, parts);
	else if (!pool)
		device_ledger_row(t, pid, who, "allocated", (int64_t)p->other, since, parts ? parts : "its trace");
	free(parts);
	free(pid);
}

static void process_rows(struct device_ledger_table *t, const struct device_ledger *l,
			 const struct device_ledger_process *p, bool own, const char *who)
{
	const bool detailed = own && (!t->brief || l->process_count == 1);
	char *since = p->before ? strdup("before") : output_format("%s", DURATION(p->since_ns));
	char *pid = p->pid ? output_format("%u", p->pid) : strdup("others");
	if (detailed)
		detailed_rows(t, l, p, who, since);
	else
		device_ledger_row(t, pid, own ? who : p->name, own ? "in all" : "neighbour", (int64_t)p->bytes, since,
				  p->process  ? "its own trace"
				  : l->by_use ? "use when we began"
					      : "driver, no trace");
	free(since);
	free(pid);
}

/* Whose memory it is about: that of the failure, else the largest of the recorded ones. UINT32_MAX: none of them. */
static unsigned row_of(const struct device_ledger *l, uint32_t process)
{
	for (unsigned i = 0; i < l->process_count; i++) {
		const struct process *p = l->processes[i].process;
		if (p && (process == UINT32_MAX || p->id == process))
			return i;
	}
	return UINT32_MAX;
}

static void fill_ledger(struct device_ledger_table *t, const struct device_ledger *l, uint32_t subject)
{
	const unsigned of = row_of(l, subject);
	uint64_t others = 0, count = 0;
	for (unsigned i = 0; i < l->process_count; i++) {
		const struct device_ledger_process *p = &l->processes[i];
		const bool own = i == of;
		if (i < t->most || own) {
			process_rows(t, l, p, own,
				     l->process_count > 1 && subject != UINT32_MAX ? "this process" : p->name);
			continue;
		}
		others += p->bytes;
		count++;
	}
	char *rest = output_format("%" PRIu64 " more", count);
	if (count)
		device_ledger_row(t, rest, NULL, count > 1 ? "neighbours" : "neighbour", (int64_t)others, NULL, NULL);
	free(rest);
	if (l->free != MODEL_UNKNOWN && !t->tight)
		device_ledger_row(t, "free", NULL, NULL, (int64_t)l->free, NULL, NULL);
	if (l->explained)
		device_ledger_row(t, "unexplained", NULL, NULL, l->unexplained, NULL,
				  l->other_processes == MODEL_UNKNOWN && l->unexplained > 0 ? "others: not sampled"
											    : NULL);
	if (l->total != MODEL_UNKNOWN && l->free == MODEL_UNKNOWN)
		device_ledger_row(t, "not known", NULL, NULL, (int64_t)l->total - t->sum, NULL,
				  "free, or others': not sampled");
	if (l->total != MODEL_UNKNOWN && !t->brief)
		device_ledger_row(t, "total", NULL, NULL, (int64_t)l->total, NULL, NULL);
}

static unsigned print_ledger(const struct report *r, const struct device_ledger *l, const struct model_oom *o,
			     unsigned room)
{
	const struct selection *sel = r->selection;
	struct unit unit = unit_of(l->total);
	const struct process *p = o ? reader_process(sel->reader, o->process) : NULL;
	char *device = report_device_title(sel, l->device, p);
	char *title = output_format("%s %s", device ? device : "", o ? "WHEN IT FAILED" : "AT ITS PEAK");
	char *when = output_format("%s", DURATION(l->ns));
	const struct column columns[] = {
		{ title ? title : "", LEFT, false }, { "", LEFT, true },    { when ? when : "", LEFT, false },
		{ unit.name, RIGHT, false },         { "%", RIGHT, false }, { "since", RIGHT, WORTH(2) },
		{ "known from", LEFT, WORTH(1) },
	};
	const bool tight = r->brief && o && room < 5;
	/* without heading, how many more there are, and what is free */
	const unsigned most = !r->brief ? ROWS : room > 4 ? room - 3 : 2;
	struct device_ledger_table t = { table_new(columns, 7, 0), unit, l->total, r->brief, tight, most, 0, 0 };
	fill_ledger(&t, l, o ? o->process : UINT32_MAX);
	print("\n");
	table_print(t.table);
	free(device);
	free(title);
	free(when);
	return t.rows + 2;
}

/* The device to show: where it failed fatally, where it failed, or the fullest one. */
static const struct model_device *subject_of(const struct selection *sel)
{
	const struct model_device *best = NULL;
	double most = -1;
	for (unsigned i = 0; i < model_devices(sel->model); i++) {
		const struct model_device *d = model_device(sel->model, i);
		const struct model_oom *o = worst_oom(d);
		double weight = d->total_bytes ? (double)d->layer[LAYER_MEMORY].peak_bytes / (double)d->total_bytes : 0;
		weight += o ? o->outcome == OUTCOME_FATAL ? 200 : 100 : 0;
		if (selection_has_device(sel, i) && weight > most && (d->layer[LAYER_MEMORY].peak_bytes || o)) {
			best = d;
			most = weight;
		}
	}
	return best;
}

unsigned report_print_ledger(const struct report *r, unsigned room)
{
	const struct selection *sel = r->selection;
	const struct model_device *d = subject_of(sel);
	const struct model_oom *o = d ? worst_oom(d) : NULL;
	const struct device_ledger *l = d ? diagnosis_ledger(r->analysis.diagnosis, d, o ? &o->at : &d->peak) : NULL;
	return l ? print_ledger(r, l, o, room) : 0;
}

/* ---- all devices ----------------------------------------------------------------------------------------- */

static void device_row(struct table *t, const struct model_device *d)
{
	const struct model_totals *memory = &d->layer[LAYER_MEMORY], *pool = &d->layer[LAYER_POOL],
				  *reserved = &d->layer[LAYER_RESERVED];
	char *uuid = short_uuid(d), *processes = output_format("%u", d->share_count);
	table_row(t, (const char *[]){ d->name, uuid, d->total_bytes ? BYTES(d->total_bytes) : "?",
				       BYTES(memory->peak_bytes), DURATION(memory->peak_ns),
				       pool->allocations ? BYTES(pool->peak_bytes) : "-",
				       pool->allocations ? BYTES(reserved->peak_bytes) : "-",
				       COUNT(memory->allocations), pool->allocations ? COUNT(pool->allocations) : "-",
				       processes, d->ooms ? COUNT(d->ooms) : "-" });
	free(uuid);
	free(processes);
}

unsigned report_print_devices(const struct report *r)
{
	const struct selection *sel = r->selection;
	static const struct column columns[] = {
		{ "DEVICES", LEFT, false },      { "", LEFT, WORTH(7) },       { "total", RIGHT, false },
		{ "peak", RIGHT, false },        { "at", RIGHT, WORTH(8) },    { "in pool", RIGHT, WORTH(6) },
		{ "reserved", RIGHT, WORTH(5) }, { "calls", RIGHT, WORTH(1) }, { "blocks", RIGHT, WORTH(2) },
		{ "pids", RIGHT, WORTH(3) },     { "oom", RIGHT, WORTH(9) },
	};
	const unsigned most = r->brief ? BRIEF_DEVICES : 2 * ROWS;
	uint64_t highest = 0;
	struct table *t = NULL;
	unsigned rows = 0, more = 0;
	for (unsigned i = 0; i < model_devices(sel->model); i++) {
		const struct model_device *d = model_device(sel->model, i);
		if (!selection_has_device(sel, i) || !(d->layer[LAYER_MEMORY].peak_bytes || d->ooms))
			continue;
		if (!t)
			t = table_new(columns, 11, 0);
		if (rows >= most) {
			highest = d->layer[LAYER_MEMORY].peak_bytes > highest ? d->layer[LAYER_MEMORY].peak_bytes
									      : highest;
			more++;
			continue;
		}
		device_row(t, d);
		rows++;
	}
	if (!t)
		return 0;
	char *rest = more ? output_format("%u more, none above %s", more, BYTES(highest)) : NULL;
	if (rest)
		table_note(t, 0, rest);
	free(rest);
	print("\n");
	table_print(t);
	return rows + 2 + (more > 0);
}

/* ---- over time ------------------------------------------------------------------------------------------- */

/* A process of the device over time: what its trace says that it allocated, or what the driver was seen to charge it.
 * */
struct time_row {
	char *who;
	uint64_t values[SPARKS], last, most;
};

static size_t spark_count(void)
{
	return output_width() < 100 ? FEW_SPARKS : SPARKS;
}

static void trace_times(const struct selection *sel, const struct model_share *s, struct time_row *r)
{
	const struct model_series *line = &s->timeline[LAYER_MEMORY];
	selection_resample(sel, line, r->values, spark_count());
	r->who = output_format("%u %s", s->process->pid, s->process->name);
	r->last = line->count ? line->buckets[line->count - 1].last : 0;
	r->most = s->layer[LAYER_MEMORY].peak_bytes;
}

static void sampled_times(const struct selection *sel, const struct device_ledger_process *p, struct time_row *r)
{
	const struct sample_subject *d = p->subject;
	if (samples_series(sel->samples, d->index, MT_DEVICE_PROCESS_bytes, sel->from_ns, model_end_ns(sel->model),
			   r->values, spark_count()) < 0)
		memset(r->values, 0, sizeof(r->values));
	r->who = output_format("%u %s (driver)", p->pid, p->name);
	r->last = d->last[MT_DEVICE_PROCESS_bytes].value;
	r->most = d->most[MT_DEVICE_PROCESS_bytes].value;
}

static unsigned fill_times(const struct selection *sel, const struct model_device *d, const struct device_ledger *l,
			   struct time_row *rows)
{
	unsigned count = 0;
	for (unsigned i = 0; i < d->share_count && count < ROWS; i++)
		if (d->shares[i]->layer[LAYER_MEMORY].peak_bytes && selection_has(sel, d->shares[i]->process))
			trace_times(sel, d->shares[i], &rows[count++]);
	for (unsigned i = 0; i < l->process_count && count < ROWS; i++)
		if (l->processes[i].subject)
			sampled_times(sel, &l->processes[i], &rows[count++]);
	return count;
}

/* All on one scale. */
static void print_times(struct table *t, struct time_row *rows, unsigned count)
{
	uint64_t most = 0;
	for (unsigned i = 0; i < count; i++)
		most = rows[i].most > most ? rows[i].most : most;
	for (unsigned i = 0; i < count; i++) {
		char *sparks = output_sparkline(rows[i].values, spark_count(), most);
		table_row(t, (const char *[]){ rows[i].who, sparks, BYTES(rows[i].last), BYTES(rows[i].most) });
		free(sparks);
		free(rows[i].who);
	}
	print("\n");
	table_print(t);
}

unsigned report_print_device_times(const struct report *r)
{
	const struct selection *sel = r->selection;
	const struct model_device *d = subject_of(sel);
	unsigned rows = 0;
	if (!d)
		return 0;
	const struct model_oom *o = worst_oom(d);
	char *title = report_device_title(sel, d, o ? reader_process(sel->reader, o->process) : NULL),
	     *head = output_format("OVER TIME  %s", title ? title : "");
	char *span = output_format("%s to %s", DURATION(sel->from_ns), DURATION(model_end_ns(sel->model)));
	const struct column columns[] = {
		{ head ? head : "", LEFT, true },
		{ span ? span : "", LEFT, false },
		{ "last", RIGHT, false },
		{ "most", RIGHT, false },
	};
	struct time_row list[ROWS];
	const struct device_ledger *l = diagnosis_ledger(r->analysis.diagnosis, d, o ? &o->at : &d->peak);
	rows = l ? fill_times(sel, d, l, list) : 0;
	print_times(table_new(columns, 4, 0), list, rows);
	free(title);
	free(head);
	free(span);
	return rows + 2;
}
