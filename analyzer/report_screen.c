/* The report on one screen: at most 45 lines of 100 columns, the failure first. */
#include "analyzer/error.h"
#include "analyzer/output.h"
#include "analyzer/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SCREEN_LINES 45
#define MAX_PROCESSES 5
#define MAX_OWNERS 8
#define MIN_OWNERS 3
#define MAX_MAPS 2
#define SPARKS 16
#define LEAST_SHARE 200 /* an owner with less than 1/200 is not worth its lines */

static void print_heading(const char *text)
{
	printf("\n%s%s%s\n", output_begin(STYLE_HEAD), text, output_end(STYLE_HEAD));
}

/* Frees `text`. */
static void print_line(enum output_style style, char *text)
{
	char *clean = text ? output_clean(text) : NULL;
	char *fitted = clean ? output_fit(clean, output_width()) : NULL;
	if (fitted)
		printf("%s%s%s\n", output_begin(style), fitted, output_end(style));
	free(fitted);
	free(clean);
	free(text);
}

/* ---- title --------------------------------------------------------------------------------------------- */

/* The command without the folders of what it names, so that it can be recognized in few columns. */
static char *command_line(const struct process *p, int columns)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	for (unsigned i = 0; i < p->argc; i++)
		fprintf(f, "%s%s", i ? " " : "", base_name(p->argv[i]));
	if (p->argc == 0)
		fprintf(f, "%s", p->name);
	fclose(f);
	char *fitted = output_cut(text, columns);
	free(text);
	return fitted;
}

static void print_title(const struct view *v)
{
	struct tm tm = { 0 };
	char start[32] = "";
	time_t seconds = (time_t)(reader_origin_real_ns(v->reader) / 1000000000u);
	unsigned count = reader_processes(v->reader), hosts = reader_hosts(v->reader);
	char *command = count ? command_line(reader_process(v->reader, 0), 36) : NULL;
	if (gmtime_r(&seconds, &tm))
		strftime(start, sizeof(start), "%Y-%m-%d %H:%M:%S UTC", &tm);
	print_line(STYLE_HEAD, output_format("memtrace report   %s   %u %s on %s%s   %s   %s", command ? command : "?", count,
					      count == 1 ? "process" : "processes",
					     hosts ? reader_host(v->reader, 0)->name : "?", hosts > 1 ? " and others" : "",
					     start, DURATION(reader_duration_ns(v->reader))));
	free(command);
}

/* ---- what is missing ----------------------------------------------------------------------------------- */

static unsigned print_notes(const struct view *v)
{
	unsigned printed = 0;
	for (unsigned i = 0; i < reader_notes(v->reader) && printed < 2; i++) {
		const struct reader_note *n = reader_note(v->reader, i);
		if (n->code == MT_OK)
			continue;
		print_line(STYLE_BAD, output_format("  %s: %s", n->file, n->text));
		printed++;
	}
	return printed;
}

static unsigned print_incomplete(const struct report *r)
{
	const struct losses *l = &r->losses;
	unsigned lines = 1;
	print_line(STYLE_BAD, strdup("INCOMPLETE: the figures below are what is left, the truth may be more"));
	if (l->events || l->skipped_slots) {
		print_line(STYLE_BAD, output_format("  %s events were lost while recording (disk full, limit reached, or "
						    "damage)", COUNT(l->events + l->skipped_slots)));
		lines++;
	}
	if (l->unrecorded) {
		print_line(STYLE_BAD, output_format("  %s processes were seen but could not be recorded", COUNT(l->unrecorded)));
		lines++;
	}
	if (l->turned_off) {
		print_line(STYLE_BAD, output_format("  recording turned itself off in %u processes", l->turned_off));
		lines++;
	}
	return lines + print_notes(r->view);
}

/* What makes a report less telling, though no figure is wrong. */
static void print_gaps(const struct report *r)
{
	struct stack_gaps g = stacks_gaps(r->view->stacks);
	if (g.replaced)
		print_line(STYLE_BAD, output_format("no symbols for %u module%s replaced since the recording: %s%s", g.replaced,
						    g.replaced > 1 ? "s" : "", g.replaced_path, g.replaced > 1 ? ", ..." : ""));
	if (g.missing)
		print_line(STYLE_BAD, output_format("no symbols for %u module%s not on this machine: %s%s", g.missing,
						    g.missing > 1 ? "s" : "", g.missing_path, g.missing > 1 ? ", ..." : ""));
	if (r->losses.truncated_stacks)
		print_line(STYLE_FAINT, output_format("%s stacks lack their outer frames (MEMTRACE_DEPTH, or code that can't be "
						      "unwound)", COUNT(r->losses.truncated_stacks)));
}

static unsigned count_gaps(const struct report *r)
{
	struct stack_gaps g = stacks_gaps(r->view->stacks);
	return (g.replaced > 0) + (g.missing > 0) + (r->losses.truncated_stacks > 0);
}

/* ---- totals -------------------------------------------------------------------------------------------- */

static void totals_row(struct table *t, const char *name, const struct model_totals *m)
{
	table_row(t, (const char *[]){ name, BYTES(m->peak_bytes), DURATION(m->peak_ns), BYTES(m->live_bytes),
				       COUNT(m->live_blocks), COUNT(m->allocations), COUNT(m->frees), COUNT(m->temporary),
				       m->failed ? COUNT(m->failed) : "-" });
}

static char *map_classes(const struct view *v)
{
	static const char *const names[MAP_CLASSES] = {
		"anonymous", "files", "memfd and shm", "shared", "address space only",
	};
	char *text = NULL;
	size_t size;
	unsigned classes = 0;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	for (int class = 0; class < MAP_CLASSES; class++) {
		struct model_map_sum sum = model_map_sum(v->model, class);
		if (sum.peak_bytes)
			fprintf(f, "%s%s %s", classes++ ? ", " : "mapped at most: ", names[class], BYTES(sum.peak_bytes));
	}
	fclose(f);
	if (classes > 1)
		return text;
	free(text);
	return NULL;
}

static unsigned print_totals(const struct view *v)
{
	static const struct column columns[] = {
		{ "HOST MEMORY", LEFT, true }, { "peak", RIGHT, false }, { "at", RIGHT, false },
		{ "live at end", RIGHT, false }, { "blocks", RIGHT, false }, { "allocations", RIGHT, false },
		{ "frees", RIGHT, false }, { "temporary", RIGHT, false }, { "failed", RIGHT, false },
	};
	struct model_totals heap = view_totals(v, MODEL_HEAP), map = view_totals(v, MODEL_MAP);
	struct table *t = table_new(columns, 9, 0);
	if (v->kinds & 1u << MODEL_HEAP)
		totals_row(t, "  heap (malloc)", &heap);
	if (v->kinds & 1u << MODEL_MAP)
		totals_row(t, "  mapped (mmap)", &map);
	char *classes = map.peak_bytes && !v->processes ? map_classes(v) : NULL;
	if (classes)
		table_note(t, 2, classes);
	printf("\n");
	table_print(t);
	unsigned lines = classes ? 5 : 4;
	free(classes);
	return lines;
}

static unsigned print_failures(const struct view *v)
{
	const struct model_failure *worst = NULL;
	for (unsigned i = 0; i < model_failures(v->model); i++) {
		const struct model_failure *f = model_failure(v->model, i);
		if (!worst || f->largest_bytes > worst->largest_bytes)
			worst = f;
	}
	if (!worst)
		return 0;
	const struct process *p = reader_process(v->reader, worst->process);
	uint32_t stack = stacks_of(v->stacks, p, worst->node, worst->node2);
	const struct frame *frame = stacks_site(v->stacks, stack, view_flags(v->options)).frame;
	char *text = frame ? frame_text(frame) : NULL, *where = frame ? frame_where(frame) : NULL;
	print_line(STYLE_BAD, output_format("FAILED  %s of %s bytes (%s) at %s in %u %s  %s  %s", process_hook(p, worst->hook),
					    EXACT(worst->largest_bytes), BYTES(worst->largest_bytes), DURATION(worst->last_ns),
					    p->pid, p->name, text ? text : "", where ? where : ""));
	free(text);
	free(where);
	return 1;
}

/* ---- processes ----------------------------------------------------------------------------------------- */

struct ranked {
	const struct model_process *m;
	uint64_t weight;
};

static int heavier(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->m->process->id > y->m->process->id) - (x->m->process->id < y->m->process->id);
}

static struct ranked *rank_processes(const struct view *v, unsigned *count)
{
	unsigned all = reader_processes(v->reader);
	struct ranked *list = calloc(all + 1, sizeof(*list));
	*count = 0;
	for (unsigned id = 0; list && id < all; id++) {
		const struct model_process *m = model_process(v->model, id);
		if (view_has(v, m->process))
			list[(*count)++] = (struct ranked){ m, m->kind[MODEL_HEAP].peak_bytes };
	}
	if (list)
		qsort(list, *count, sizeof(*list), heavier);
	return list;
}

static char *process_sparkline(const struct view *v, const struct model_process *m, uint64_t max)
{
	uint64_t values[SPARKS];
	view_resample(v, &m->timeline[MODEL_HEAP], values, SPARKS);
	return output_sparkline(values, SPARKS, max);
}

/* A fork that still runs its parent's program is told by that. */
static char *process_command(const struct process *p)
{
	char *command = command_line(p, 40);
	if (p->origin != MT_ORIGIN_FORK || !p->creator || !command)
		return command;
	char *text = output_format("fork of %u", p->creator->pid);
	free(command);
	return text;
}

static void process_row(struct table *t, const struct view *v, const struct model_process *m, uint64_t max)
{
	char exit[32], *command = process_command(m->process), *sparks = process_sparkline(v, m, max);
	const struct model_totals *heap = &m->kind[MODEL_HEAP], *map = &m->kind[MODEL_MAP];
	char *pid = output_format("%u", m->process->pid);
	table_row(t, (const char *[]){ pid, command, BYTES(heap->peak_bytes), BYTES(heap->live_bytes), BYTES(map->peak_bytes),
				       COUNT(heap->allocations), exit_text(m->process, exit, sizeof(exit)), sparks });
	free(command);
	free(sparks);
	free(pid);
}

static void folded_row(struct table *t, const struct ranked *list, unsigned count)
{
	uint64_t most = 0, live = 0, allocations = 0, maps = 0;
	for (unsigned i = 0; i < count; i++) {
		const struct model_process *m = list[i].m;
		most = list[i].weight > most ? list[i].weight : most;
		live += m->kind[MODEL_HEAP].live_bytes;
		maps = m->kind[MODEL_MAP].peak_bytes > maps ? m->kind[MODEL_MAP].peak_bytes : maps;
		allocations += m->kind[MODEL_HEAP].allocations;
	}
	char *text = output_format("%u more, none above", count);
	table_row(t, (const char *[]){ "", text, BYTES(most), BYTES(live), BYTES(maps), COUNT(allocations), NULL, NULL });
	free(text);
}

static unsigned print_processes(const struct view *v)
{
	static const struct column columns[] = {
		{ "PROCESS", RIGHT, false }, { "", LEFT, true }, { "heap peak", RIGHT, false }, { "at end", RIGHT, false },
		{ "mapped", RIGHT, false }, { "allocs", RIGHT, false }, { "exit", LEFT, false }, { "heap over time", LEFT, false },
	};
	unsigned count, shown = MAX_PROCESSES;
	struct ranked *list = rank_processes(v, &count);
	struct table *t = table_new(columns, 8, 0);
	if (count <= shown + 1)
		shown = count;
	for (unsigned i = 0; list && i < shown; i++)
		process_row(t, v, list[i].m, list[0].weight);
	if (list && count > shown)
		folded_row(t, list + shown, count - shown);
	printf("\n");
	table_print(t);
	free(list);
	return 2 + shown + (count > shown);
}

/* ---- owners -------------------------------------------------------------------------------------------- */

static const struct column owner_columns[] = {
	{ NULL, RIGHT, false }, { NULL, RIGHT, false }, { NULL, RIGHT, false }, { NULL, LEFT, true }, { NULL, LEFT, true },
};

static void owner_row(struct table *t, const struct owner *o, uint64_t all)
{
	char *text = o->label ? strdup(o->label) : o->frame ? frame_text(o->frame) : strdup("(no stack)");
	char *where = !o->label && o->frame ? frame_where(o->frame) : NULL;
	char *share = output_format("%s %%", PERCENT(o->bytes, all));
	char *blocks = output_format("%s block%s", COUNT(o->blocks), o->blocks == 1 ? "" : "s");
	table_row(t, (const char *[]){ BYTES(o->bytes), share, blocks, text, where });
	free(text);
	free(where);
	free(share);
	free(blocks);
}

static bool owner_caller(struct table *t, const struct owner *o)
{
	if (!o->caller)
		return false;
	char *text = frame_text(o->caller), *where = frame_where(o->caller);
	char *line = output_format("< %s", text ? text : "");
	table_row(t, (const char *[]){ NULL, NULL, NULL, line, where });
	free(text);
	free(where);
	free(line);
	return true;
}

/* The rest in one line, if it is worth one. */
static unsigned print_rest(struct table *t, const struct sites *s, size_t shown)
{
	uint64_t bytes = 0;
	for (size_t i = shown; i < s->count; i++)
		bytes += s->owners[i].bytes;
	if (shown == s->count || bytes < s->bytes / LEAST_SHARE)
		return 0;
	char *share = output_format("%s %%", PERCENT(bytes, s->bytes)), *text = output_format("%s others", COUNT(s->count - shown));
	table_row(t, (const char *[]){ BYTES(bytes), share, NULL, text, NULL });
	free(share);
	free(text);
	return 1;
}

/* As many owners as fit into that many lines with heading and rest. */
static unsigned print_owners(const struct sites *s, const char *heading, unsigned most_lines, unsigned most, bool all)
{
	struct table *t = table_new(owner_columns, 5, 2);
	unsigned lines = 3;
	size_t i;
	print_heading(heading);
	for (i = 0; i < s->count && i < most && lines + 2 <= most_lines; i++) {
		if (!all && i > 0 && s->owners[i].bytes < s->bytes / LEAST_SHARE)
			break;
		owner_row(t, &s->owners[i], s->bytes);
		lines += 1 + owner_caller(t, &s->owners[i]);
	}
	lines += print_rest(t, s, i);
	table_print(t);
	return lines - 1;
}

static unsigned print_heap_owners(const struct report *r, unsigned room)
{
	const struct sites *s = r->owners[MODEL_HEAP];
	unsigned most = r->view->options->rows ? (unsigned)r->view->options->rows : MAX_OWNERS;
	if (!s || s->count == 0)
		return 0;
	if (r->view->options->rows || room < 3 + 2 * MIN_OWNERS)
		room = r->view->options->rows ? UINT32_MAX - 4 : 3 + 2 * MIN_OWNERS;
	struct model_totals heap = view_totals(r->view, MODEL_HEAP);
	char *heading = r->view->processes && r->view->selected > 1
		? strdup("LARGEST OWNERS of the heap, each process at its own peak")
		: output_format("LARGEST OWNERS of the heap at its peak (%s at %s)", BYTES(heap.peak_bytes), DURATION(heap.peak_ns));
	unsigned lines = print_owners(s, heading ? heading : "LARGEST OWNERS", room, most, r->view->options->rows);
	free(heading);
	return lines;
}

static unsigned print_map_owners(const struct report *r)
{
	const struct sites *s = r->owners[MODEL_MAP];
	if (!s || s->bytes == 0)
		return 0;
	return print_owners(s, "LARGEST MAPPINGS at their peak", 3 + 2 * MAX_MAPS, MAX_MAPS, false);
}

/* ---- sizes, temporaries, survivors --------------------------------------------------------------------- */

static void view_bins(const struct view *v, struct model_bin *bins)
{
	memset(bins, 0, MODEL_BINS * sizeof(*bins));
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct model_process *m = model_process(v->model, id);
		for (int i = 0; i < MODEL_BINS && view_has(v, m->process); i++)
			bins[i].allocations += m->bins[i].allocations;
	}
}

static uint64_t sum_bins(const struct model_bin *bins, unsigned from, unsigned to)
{
	uint64_t sum = 0;
	for (unsigned i = from; i <= to; i++)
		sum += bins[i].allocations;
	return sum;
}

static void print_sizes(const struct view *v)
{
	static const struct { const char *name; unsigned from, to; } groups[] = {
		{ "below 64 B", 0, 6 }, { "256 B", 7, 8 }, { "1 KiB", 9, 10 }, { "4 KiB", 11, 12 }, { "64 KiB", 13, 16 },
		{ "1 MiB", 17, 20 }, { "16 MiB", 21, 24 }, { "larger", 25, MODEL_BINS - 1 },
	};
	struct model_bin bins[MODEL_BINS];
	view_bins(v, bins);
	uint64_t all = sum_bins(bins, 0, MODEL_BINS - 1);
	printf("\n");
	if (all == 0)
		return;
	printf("%sSIZES%s       %% of allocations", output_begin(STYLE_HEAD), output_end(STYLE_HEAD));
	const char *comma = " ";
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		uint64_t part = sum_bins(bins, groups[i].from, groups[i].to);
		if (part)
			printf("%s %s %s", comma, groups[i].name, PERCENT(part, all));
		comma = part ? "," : comma;
	}
	printf("\n");
}

/* One line: heading, facts, and the owner they are about. */
static void print_best(const char *heading, const char *facts, const struct owner *o)
{
	char *text = o->frame ? frame_text(o->frame) : strdup("(no stack)"), *where = o->frame ? frame_where(o->frame) : NULL;
	char *line = output_format("%s  %s  %s", facts, text ? text : "", where ? where : "");
	char *clean = line ? output_clean(line) : NULL;
	char *fitted = clean ? output_fit(clean, output_width() - 12) : NULL;
	printf("%s%-12s%s%s\n", output_begin(STYLE_HEAD), heading, output_end(STYLE_HEAD), fitted ? fitted : "");
	free(fitted);
	free(clean);
	free(line);
	free(text);
	free(where);
}

static const struct owner *most_blocks(const struct sites *s)
{
	const struct owner *best = NULL;
	for (size_t i = 0; s && i < s->count; i++)
		if (!best || s->owners[i].blocks > best->blocks)
			best = &s->owners[i];
	return best;
}

static void print_temporary(const struct report *r)
{
	const struct owner *o = most_blocks(r->temporary);
	struct model_totals heap = view_totals(r->view, MODEL_HEAP);
	if (!o)
		return;
	char *facts = output_format("%s %% of allocations were freed at once, most (%s) in", PERCENT(heap.temporary, heap.allocations),
				    COUNT(o->blocks));
	print_best("TEMPORARY", facts ? facts : "", o);
	free(facts);
}

static void print_survivors(const struct report *r)
{
	const struct sites *s = r->survivors;
	if (!s || s->count == 0)
		return;
	char *facts = output_format("%s in %s blocks at exit, most (%s) of", BYTES(s->bytes), COUNT(s->blocks), BYTES(s->owners[0].bytes));
	print_best("LEFT ALIVE", facts ? facts : "", &s->owners[0]);
	free(facts);
}

static void print_next(void)
{
	printf("%smore: memtrace peak [--at SECONDS] | leaks | timeline | report --process PID | --json | --help%s\n",
	       output_begin(STYLE_FAINT), output_end(STYLE_FAINT));
}

void report_print(const struct report *r)
{
	const unsigned tail = 5; /* sizes, temporaries, survivors, next */
	unsigned maps = r->owners[MODEL_MAP] && r->owners[MODEL_MAP]->bytes ? 3 + 2 * MAX_MAPS : 0;
	print_title(r->view);
	unsigned lines = 1 + (r->losses.complete ? 0 : print_incomplete(r)) + print_failures(r->view) + count_gaps(r);
	lines += print_totals(r->view) + print_processes(r->view);
	print_heap_owners(r, SCREEN_LINES > lines + tail + maps ? SCREEN_LINES - lines - tail - maps : 0);
	print_map_owners(r);
	print_sizes(r->view);
	print_temporary(r);
	print_survivors(r);
	print_gaps(r);
	print_next();
}
