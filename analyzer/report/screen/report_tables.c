/* The tables of the report's screen: processes and owners. Each function returns the lines it printed. */
#include "analyzer/model/selection/main_process.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/symbols/python_arenas.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PROCESSES   5
#define BRIEF_PROCESSES 3
#define MAX_NAMES       30 /* of short commands */
#define PID_COLUMNS     9
#define MAX_OWNERS      10
#define MIN_OWNERS      3
#define COMMAND         20 /* columns; where there are many ... */
#define MORE_COMMAND    12
#define SPARKS          16
#define MOST_SPARKS     32
#define LEAST_SHARE     200 /* an owner with less than 1/200 is not worth its lines */

/* With what is in parentheses where there is room for all of it. */
static void print_heading(const char *text)
{
	const char *more = strstr(text, " (");
	int bytes = (int)(more && output_columns(text) > output_width() ? (size_t)(more - text) : strlen(text));
	print("\n%s%.*s%s\n", output_begin(STYLE_HEAD), bytes, text, output_end(STYLE_HEAD));
}

/* python -c's has lines. */
static void put_argument(FILE *f, unsigned number, const char *text)
{
	if (number)
		fputc(' ', f);
	for (; *text; text++)
		fputc(*text == '\n' || *text == '\t' ? ' ' : *text, f);
}

char *report_command(const struct process *p, int columns)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	/* first, so that it is not cut */
	if (p->argc && p->rank != PROCESS_NO_RANK)
		fprintf(f, "rank %" PRId64 " ", p->rank);
	if (p->argc && *p->tags)
		fprintf(f, "%s ", p->tags);
	for (unsigned i = 0; i < p->argc; i++)
		/* sh -c's is no path */
		put_argument(f, i, strchr(p->argv[i], ' ') ? p->argv[i] : base_name(p->argv[i]));
	if (p->argc == 0)
		fprintf(f, "%s", p->name);
	fclose(f);
	char *fitted = output_cut(text, columns);
	free(text);
	return fitted;
}

/* ---- processes ----------------------------------------------------------------------------------------- */

/* A process, by the program of it that had the most heap. */
struct ranked {
	const struct model_process *m, *last; /* last: the program that it ended as */
	uint64_t weight;
};

static int heavier(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->m->process->id > y->m->process->id) - (x->m->process->id < y->m->process->id);
}

/* Has only started others. */
static bool is_idle(const struct model_process *m)
{
	return m->kind[MODEL_HEAP].allocations + m->kind[MODEL_MAP].allocations == 0;
}

/* However often it becomes another program, a process is one. */
static struct ranked *rank_processes(const struct selection *sel, unsigned *count)
{
	unsigned all = reader_processes(sel->reader);
	struct ranked *list = calloc(all + 1, sizeof(*list));
	unsigned *place = calloc(all + 1, sizeof(*place)); /* in the list, plus 1; creators have lower ids */
	*count = 0;
	for (unsigned id = 0; list && place && id < all; id++) {
		const struct model_process *m = model_process(sel->model, id);
		const struct process *before = m->process->creator;
		const uint64_t weight = m->kind[MODEL_HEAP].peak_bytes;
		if (!selection_has(sel, m->process))
			continue;
		place[id] = before && process_goes_on_as(before, m->process) ? place[before->id] : 0;
		if (!place[id])
			place[id] = ++*count;
		struct ranked *r = &list[place[id] - 1];
		r->last = m;
		if (!r->m || weight > r->weight || (is_idle(r->m) && !is_idle(m))) {
			r->m = m;
			r->weight = weight;
		}
	}
	free(place);
	if (list)
		qsort(list, *count, sizeof(*list), heavier);
	return list;
}

static char *process_sparkline(const struct selection *sel, const struct model_process *m, uint64_t max)
{
	uint64_t values[MOST_SPARKS];
	int more = output_width() - REPORT_WIDE - MORE_COMMAND, count = more <= 0                     ? SPARKS
									: more < MOST_SPARKS - SPARKS ? SPARKS + more
												      : MOST_SPARKS;
	selection_resample(sel, &m->timeline[MODEL_HEAP], values, (size_t)count);
	return output_sparkline(values, (size_t)count, max);
}

/* A fork that still runs its parent's program is told by that. */
static char *process_command(const struct process *p)
{
	int more = output_width() - REPORT_WIDE;
	char *command = report_command(p, COMMAND + (more < 0 ? 0 : more < MORE_COMMAND ? more : MORE_COMMAND));
	if (p->origin != MT_ORIGIN_FORK || !p->creator || !command)
		return command;
	char *text = output_format("fork of %u", p->creator->pid);
	free(command);
	return text;
}

static void process_row(struct table *t, const struct report *r, const struct ranked *one, uint64_t max)
{
	static const char *const kills[] = { NULL, "OOM kill?", "OOM kill" };
	const struct model_process *m = one->m, *last = one->last;
	char exit[32], *command = process_command(m->process), *sparks = process_sparkline(r->selection, m, max);
	const char *kill =
		r->analysis.host ? kills[host_process(r->analysis.host, last->process->id)->oom_killed] : NULL;
	const struct model_totals *heap = &m->kind[MODEL_HEAP], *map = &m->kind[MODEL_MAP];
	char *pid = output_format("%u", m->process->pid);
	const uint32_t has = m->process->imported_has;
	const bool heaps = has & MT_IMPORT_HEAP, maps = has & MT_IMPORT_MAPPINGS;
	table_row(t, (const char *[]){ pid, command, heaps ? BYTES(heap->peak_bytes) : "?",
				       heaps ? BYTES(last->kind[MODEL_HEAP].live_bytes) : "?",
				       maps ? BYTES(map->peak_bytes) : "?", heaps ? COUNT(heap->allocations) : "?",
				       kill ? kill : exit_text(last->process, exit, sizeof(exit)), sparks });
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
		const uint64_t left = list[i].last->kind[MODEL_HEAP].live_bytes;
		live = left > live ? left : live;
		maps = m->kind[MODEL_MAP].peak_bytes > maps ? m->kind[MODEL_MAP].peak_bytes : maps;
		allocations += m->kind[MODEL_HEAP].allocations;
	}
	char *text = output_format("%u more, none above", count);
	table_row(t,
		  (const char *[]){ "", text, BYTES(most), BYTES(live), BYTES(maps), COUNT(allocations), NULL, NULL });
	free(text);
}

/* Those that matter first, else as they were; returns how many matter. Only several of the others, and beside one that
 * does, are folded. */
static unsigned sort_out_momentary(struct ranked *list, unsigned count)
{
	struct ranked *momentary = calloc(count + 1ul, sizeof(*momentary));
	unsigned matter = 0, others = 0;
	for (unsigned i = 0; momentary && i < count; i++)
		if (process_is_momentary(list[i].m) && process_is_momentary(list[i].last))
			momentary[others++] = list[i];
		else
			list[matter++] = list[i];
	if (others)
		memcpy(list + matter, momentary, others * sizeof(*list));
	free(momentary);
	return others < 2 || !matter ? count : matter;
}

static bool is_named_before(const struct ranked *list, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (!strcmp(list[k].m->process->program, list[i].m->process->program))
			return true;
	return false;
}

/* Under the commands: "12 short commands, at most 96.4 KiB each: cut, date, ..", each name once. */
static void momentary_row(struct table *t, const struct ranked *list, unsigned count)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return;
	fprintf(f, "%u short commands, at most %s each", count, BYTES(list[0].weight));
	for (unsigned i = 0, names = 0; i < count && names < MAX_NAMES; i++)
		if (!is_named_before(list, i))
			fprintf(f, "%s%s", names++ ? ", " : ": ", list[i].m->process->program);
	fclose(f);
	char *fitted = text ? output_cut(text, output_width() - PID_COLUMNS) : NULL;
	table_note(t, PID_COLUMNS, fitted ? fitted : "");
	free(fitted);
	free(text);
}

unsigned report_print_processes(const struct report *r)
{
	static const struct column columns[] = {
		{ "PROCESS", RIGHT, false },   { "", LEFT, true },
		{ "heap peak", RIGHT, false }, { "at end", RIGHT, false },
		{ "mapped", RIGHT, WORTH(2) }, { "allocs", RIGHT, WORTH(1) },
		{ "exit", LEFT, false },       { "heap over time", LEFT, WORTH(3) },
	};
	unsigned all, shown = r->brief ? BRIEF_PROCESSES : MAX_PROCESSES;
	struct ranked *list = rank_processes(r->selection, &all);
	unsigned count = list ? sort_out_momentary(list, all) : 0;
	struct table *t = table_new(columns, 8, 0);
	table_keep(t, r->brief ? 3 : 0);
	if (count <= shown + 1)
		shown = count;
	while (list && shown > 1 && is_idle(list[shown - 1].m))
		shown--;
	for (unsigned i = 0; list && i < shown; i++)
		process_row(t, r, &list[i], list[0].weight);
	if (list && count > shown)
		folded_row(t, list + shown, count - shown);
	if (list && all > count)
		momentary_row(t, list + count, all - count);
	print("\n");
	table_print(t);
	free(list);
	return 2 + shown + (count > shown) + (all > count);
}

/* ---- owners -------------------------------------------------------------------------------------------- */

static const struct column owner_columns[] = {
	{ NULL, RIGHT, false }, { NULL, RIGHT, false }, { NULL, RIGHT, WORTH(1) },
	{ NULL, LEFT, true },   { NULL, LEFT, true },
};

static void owner_row(struct table *t, const struct owner *o, uint64_t all)
{
	char *text = owner_text(o);
	char *where = !o->label && o->frame ? frame_where(o->frame) : NULL;
	char *share = output_format("%s %%", PERCENT(o->bytes, all));
	char *blocks = owner_range(o);
	if (!blocks)
		blocks = output_format("%s block%s", COUNT(o->blocks), o->blocks == 1 ? "" : "s");
	table_row(t, (const char *[]){ BYTES(o->bytes), share, blocks, text, where });
	free(text);
	free(where);
	free(share);
	free(blocks);
}

/* "Block.forward  train.py:60 > Linear.forward", without what does not fit. */
static char *owner_line(const struct owner *o, int columns)
{
	char *text = owner_text(o), *where = !o->label && o->frame ? frame_where(o->frame) : NULL, *next_where = NULL;
	char *next = o->folded ? NULL : owner_next(o, &next_where);
	char *line = output_format("%s%s%s", text ? text : "", where && *where ? "  " : "", where ? where : "");
	char *with = next ? output_format("%s %s", line ? line : "", next) : NULL;
	if (with && output_columns(with) <= columns) {
		free(line);
		line = with;
		with = NULL;
	}
	free(with);
	free(text);
	free(where);
	free(next);
	free(next_where);
	char *fitted = line ? output_tail(line, columns) : NULL;
	free(line);
	return fitted;
}

#define HINT_INDENT 6
#define BRIEF_LEFT  22 /* columns of figures before an owner's line */

/* One line an owner. */
static void brief_row(struct table *t, const struct owner *o, uint64_t all)
{
	char *share = output_format("%s %%", PERCENT(o->bytes, all)),
	     *line = owner_line(o, output_width() - BRIEF_LEFT);
	table_row(t, (const char *[]){ BYTES(o->bytes), share, NULL, line, NULL });
	free(share);
	free(line);
}

static bool next_row(struct table *t, const struct owner *o)
{
	char *where, *line = owner_next(o, &where);
	bool there = line != NULL;
	if (there)
		table_row(t, (const char *[]){ NULL, NULL, NULL, line, where });
	free(where);
	free(line);
	return there;
}

/* How to know more of an owner whose line nobody knows; of Python's objects also when they came. */
static char *hint_of(const struct report *r, const struct owner *o)
{
	const char *setting = owner_setting(o, r->selection->stacks);
	if (setting)
		return output_format("%s shows whose", setting);
	if (!o->folded || !python_arenas_is_label(o->label))
		return NULL;
	const char *after = r->arenas_after ? BYTES(r->arenas_after) : "nothing";
	char *text = output_format("%s of it after imports; %s", after, PYTHON_ARENAS_HINT);
	if (text && output_columns(text) + HINT_INDENT > output_width()) {
		free(text);
		text = output_format("%s of it after imports", after);
	}
	return text;
}

static unsigned hint_row(struct table *t, const struct report *r, const struct owner *o, bool full)
{
	char *text = full ? NULL : hint_of(r, o);
	if (!text)
		return 0;
	table_note(t, HINT_INDENT - 2, text);
	free(text);
	return 1;
}

/* The rest in one line, if it is worth one. */
static unsigned print_rest(struct table *t, uint64_t bytes, size_t count, uint64_t all)
{
	if (count == 0 || bytes < all / LEAST_SHARE)
		return 0;
	char *share = output_format("%s %%", PERCENT(bytes, all)),
	     *text = output_format("%s other%s", COUNT(count), count == 1 ? "" : "s");
	table_row(t, (const char *[]){ BYTES(bytes), share, NULL, text, NULL });
	free(share);
	free(text);
	return 1;
}

static uint64_t sum_owners(const struct owner *owners, size_t count)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < count; i++)
		bytes += owners[i].bytes;
	return bytes;
}

/* As many owners as fit into that many lines with heading and rest. */
static unsigned print_owners(const struct report *r, const struct owners *s, const char *heading, unsigned most_lines,
			     unsigned most)
{
	struct table *t = table_new(owner_columns, 5, 2);
	const bool all = r->selection->options->rows > 0;
	unsigned lines = r->brief ? 2 : 3;
	size_t i;
	table_keep(t, r->brief ? 2 : 0);
	print_heading(heading);
	for (i = 0; i < s->count && i < most && lines + (r->brief ? 1 : 2) <= most_lines; i++) {
		if (!all && i > 0 && s->owners[i].bytes < s->bytes / LEAST_SHARE)
			break;
		if (r->brief)
			brief_row(t, &s->owners[i], s->bytes);
		else
			owner_row(t, &s->owners[i], s->bytes);
		lines += 1 + (!r->brief && next_row(t, &s->owners[i])) +
			 hint_row(t, r, &s->owners[i], r->brief && lines + 2 > most_lines);
	}
	lines += print_rest(t, sum_owners(s->owners + i, s->count - i), s->count - i, s->bytes);
	if (s->estimated) {
		table_note(t, 0, sampled_note(s));
		lines++;
	}
	table_print(t);
	return lines - 1;
}

unsigned report_print_heap_owners(const struct report *r, unsigned room)
{
	const struct owners *s = r->owners[MODEL_HEAP];
	unsigned most = r->selection->options->rows ? (unsigned)r->selection->options->rows : MAX_OWNERS;
	if (!s || s->count == 0)
		return 0;
	const unsigned least = r->brief ? 1 + MIN_OWNERS : 3 + 2 * MIN_OWNERS;
	if (r->selection->options->rows || room < least)
		room = r->selection->options->rows ? UINT32_MAX - 4 : least;
	struct model_totals heap = model_totals(r->selection->model, MODEL_HEAP);
	char *heading = output_format("LARGEST OWNERS of the heap at its peak (%s at %s)", BYTES(heap.peak_bytes),
				      DURATION(heap.peak_ns));
	unsigned lines = print_owners(r, s, heading ? heading : "LARGEST OWNERS", room, most);
	free(heading);
	return lines;
}

/* By line. Where something is wrong WHY and ALIVE THEN say it. */
unsigned report_print_device_owners(const struct report *r, unsigned room)
{
	const struct diagnosis_space *s = report_main_space(r);
	unsigned lines = r->brief ? 2 : 3, i;
	uint64_t rest = s->bytes;
	if (s->device == MODEL_NO_DEVICE || !s->holder_count)
		return 0;
	if (r->selection->options->rows)
		room = UINT32_MAX - 4;
	struct table *t = table_new(owner_columns, 5, 2);
	table_keep(t, r->brief ? 2 : 0);
	char *heading = output_format("LARGEST OWNERS of %s %s (%s at %s)", s->name,
				      report_is_trouble(r) ? "then" : "at its peak", BYTES(s->bytes), DURATION(s->ns));
	print_heading(heading ? heading : "LARGEST OWNERS");
	for (i = 0; i < s->holder_count && lines + (r->brief ? 1 : 2) <= room &&
		    (!i || s->top[i].bytes >= s->bytes / LEAST_SHARE);
	     i++) {
		const struct top_line *h = &s->top[i];
		struct stack_site site =
			stacks_site(r->selection->stacks, h->stack, selection_flags(r->selection->options));
		struct owner o = { .frame = site.frame,
				   .caller = site.caller,
				   .callee = site.callee,
				   .bytes = h->bytes,
				   .blocks = h->blocks };
		if (r->brief)
			brief_row(t, &o, s->bytes);
		else
			owner_row(t, &o, s->bytes);
		lines += 1 + (!r->brief && next_row(t, &o));
		rest -= h->bytes;
	}
	lines += print_rest(t, rest, s->holding_lines - i, s->bytes);
	table_print(t);
	free(heading);
	return lines - 1;
}

unsigned report_print_other_owners(const struct report *r, unsigned room)
{
	static const char *const headings[MODEL_HOST_KINDS] = {
		[MODEL_MAP] = "LARGEST MAPPINGS at their peak", [MODEL_PINNED] = "MOST PINNED at its peak"
	};
	unsigned lines = 0;
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		if (headings[kind] && r->owners[kind] && r->owners[kind]->bytes)
			lines += print_owners(r, r->owners[kind], headings[kind], r->brief ? room : 3 + 2 * REPORT_MAPS,
					      REPORT_MAPS);
	return lines;
}
