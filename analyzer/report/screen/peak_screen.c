#include "analyzer/report/screen/peak_screen.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "format/fnv.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_OWNERS 10
#define STACKS_EACH    2
#define FRAMES_EACH    8

static void frame_row(struct table *t, const struct frame *f, unsigned times)
{
	char *text = frame_text(f), *where = frame_where(f);
	char *line = times > 1 ? output_format("< %s (%u times)", text ? text : "", times)
			       : output_format("< %s", text ? text : "");
	table_row(t, (const char *[]){ line, where });
	free(text);
	free(where);
	free(line);
}

/* Recursion takes one row. */
static void print_frames(struct stacks *s, uint32_t stack, unsigned flags)
{
	static const struct column columns[] = { { NULL, LEFT, true }, { NULL, LEFT, true } };
	struct table *t = table_new(columns, 2, 16);
	const struct frame *last = NULL;
	unsigned times = 0, rows = 0, most = flags & STACK_ALL_FRAMES ? UINT32_MAX : FRAMES_EACH;
	for (struct stack_walk w = { .next = stack }; rows < most && stack_step_shown(s, &w, flags);) {
		if (last && last->function && last->function == w.frame->function) {
			times++;
			continue;
		}
		if (last) {
			frame_row(t, last, times);
			rows++;
		}
		last = w.frame;
		times = 1;
	}
	if (last && rows < most)
		frame_row(t, last, times);
	else if (last)
		table_note(t, 2, "and outwards: --all-frames");
	table_print(t);
}

/* A stack as it is shown: several that differ in plumbing only look the same. */
struct path {
	uint64_t look;
	struct owner_stack sum;
};

static uint64_t look_of(struct stacks *s, uint32_t stack, unsigned flags)
{
	uint64_t hash = MT_FNV_START; /* over what is printed */
	for (struct stack_walk w = { .next = stack }; stack_step_shown(s, &w, flags);) {
		const struct frame *f = w.frame;
		uint64_t words[] = { (uint64_t)(uintptr_t)(f->function ? f->function : f->library),
				     (uint64_t)(uintptr_t)f->file, f->function ? f->line : f->offset };
		hash = mt_fnv(hash, words, sizeof(words));
	}
	return hash;
}

static int by_bytes(const void *a, const void *b)
{
	const struct path *x = a, *y = b;
	if (x->sum.bytes != y->sum.bytes)
		return x->sum.bytes > y->sum.bytes ? -1 : 1;
	return (x->sum.first > y->sum.first) - (x->sum.first < y->sum.first);
}

static int by_look(const void *a, const void *b)
{
	const struct path *x = a, *y = b;
	if (x->look != y->look)
		return x->look < y->look ? -1 : 1;
	return by_bytes(a, b);
}

/* The owner's stacks, those that look the same as one, largest first. NULL when there is no memory. */
static struct path *paths_of(struct selection *sel, const struct owner *o, size_t *count)
{
	struct path *paths = calloc(o->stack_count + 1, sizeof(*paths));
	*count = 0;
	if (!paths)
		return NULL;
	for (size_t i = 0; i < o->stack_count; i++)
		paths[i] = (struct path){ look_of(sel->stacks, o->stacks[i].stack, selection_flags(sel->options)),
					  o->stacks[i] };
	qsort(paths, o->stack_count, sizeof(*paths), by_look);
	for (size_t i = 0; i < o->stack_count; i++) {
		if (*count && paths[*count - 1].look == paths[i].look) {
			paths[*count - 1].sum.bytes += paths[i].sum.bytes;
			paths[*count - 1].sum.blocks += paths[i].sum.blocks;
		} else {
			paths[(*count)++] = paths[i];
		}
	}
	qsort(paths, *count, sizeof(*paths), by_bytes);
	return paths;
}

static void print_stacks(struct selection *sel, const struct owner *o)
{
	size_t count;
	struct path *paths = paths_of(sel, o, &count);
	for (size_t i = 0; i < count && i < STACKS_EACH; i++) {
		const struct owner_stack *sum = &paths[i].sum;
		if (count > 1)
			print("%s%14s in %s block%s by%s\n", output_begin(STYLE_FAINT), BYTES(sum->bytes),
			      COUNT(sum->blocks), sum->blocks == 1 ? "" : "s", output_end(STYLE_FAINT));
		print_frames(sel->stacks, sum->stack, selection_flags(sel->options));
	}
	uint64_t rest = 0;
	for (size_t i = STACKS_EACH; i < count; i++)
		rest += paths[i].sum.bytes;
	if (count > STACKS_EACH)
		print("%s%14s by %s other stacks: --by stack%s\n", output_begin(STYLE_FAINT), BYTES(rest),
		      COUNT(count - STACKS_EACH), output_end(STYLE_FAINT));
	free(paths);
}

static void print_range(const struct owner *o)
{
	char *range = owner_range(o);
	if (range)
		print("%s%14s %s, with 95 %% certainty%s\n", output_begin(STYLE_FAINT), "", range,
		      output_end(STYLE_FAINT));
	free(range);
}

static void print_owner(struct selection *sel, const struct owner *o, uint64_t all)
{
	char *text = owner_text(o);
	char *where = !o->label && o->frame ? frame_where(o->frame) : NULL;
	char *line = output_format("%s%s%s", text ? text : "", where && *where ? "   " : "", where ? where : "");
	char *fitted = line ? output_fit(line, output_width() - 34) : NULL;
	print("%12s %6s %%  %9s  %s%s%s\n", BYTES(o->bytes), PERCENT(o->bytes, all), COUNT(o->blocks),
	      output_begin(STYLE_HEAD), fitted ? fitted : "", output_end(STYLE_HEAD));
	free(fitted);
	free(line);
	free(where);
	free(text);
	print_range(o);
	print_stacks(sel, o);
}

static const char *moment_name(const struct selection *sel, const struct moment *at)
{
	if (at->measure == OWNERS_HOST_PEAK)
		return "at its peak";
	return moment_is_time(&sel->options->at) ? "" : "when each process ended";
}

static void print_moment(struct selection *sel, const struct moment *at)
{
	static const char *const titles[MODEL_KINDS] = {
		[MODEL_HEAP] = "HEAP",     [MODEL_MAP] = "MAPPED",
		[MODEL_PINNED] = "PINNED", [MODEL_DEVICE] = "DRIVER'S ALLOCATIONS",
		[MODEL_POOL] = "POOL",
	};
	const struct owners *s = at->sites;
	size_t most = selection_rows(sel, DEFAULT_OWNERS);
	char *title =
		at->device ? output_format("%s %s", at->device->name, titles[at->kind]) : strdup(titles[at->kind]);
	char *range = s->picked ? output_format(" (%s to %s)", BYTES(s->bytes_low), BYTES(s->bytes_high)) : strdup("");
	print("%s%s %s%s%s in %s%s blocks   at %s%s%s%s\n", output_begin(STYLE_HEAD), title ? title : "",
	      s->picked ? "about " : "", BYTES(s->bytes), range ? range : "", s->picked ? "about " : "",
	      COUNT(s->blocks), DURATION(at->ns), *moment_name(sel, at) ? ", " : "", moment_name(sel, at),
	      output_end(STYLE_HEAD));
	free(range);
	free(title);
	const struct model_fold fold = model_fold(sel->model);
	uint64_t rest = 0, folded = !moment_is_time(&sel->options->at) ? 0
				    : at->kind == MODEL_HEAP           ? fold.now_bytes
								       : fold.now_other_bytes;
	if (folded)
		print("%sand up to %s of short-lived blocks, which were folded at the disk limit%s\n",
		      output_begin(STYLE_FAINT), BYTES(folded), output_end(STYLE_FAINT));
	if (at->kind == MODEL_HEAP && fold.young_blocks && sel->options->at.kind != WHEN_END)
		print("%sand up to %s of small blocks, which were recorded as totals%s\n", output_begin(STYLE_FAINT),
		      BYTES(fold.young_most_bytes), output_end(STYLE_FAINT));
	if (s->estimated)
		print("%s%s%s\n", output_begin(STYLE_FAINT), sampled_note(s), output_end(STYLE_FAINT));
	for (size_t i = 0; i < s->count && i < most; i++)
		print_owner(sel, &s->owners[i], s->bytes);
	for (size_t i = most; i < s->count; i++)
		rest += s->owners[i].bytes;
	if (s->count > most)
		print("%12s %6s %%  by %s other owners: -n ROWS\n", BYTES(rest), PERCENT(rest, s->bytes),
		      COUNT(s->count - most));
}

static void print_seen(const struct held_seens *seen)
{
	enum { MOST = 3 };
	for (size_t i = 0; i < seen->count && i < MOST; i++) {
		const struct held_seen *s = &seen->list[i];
		const struct mt_hold_head head = { .why = s->why };
		output_line(STYLE_FAINT, output_format("held as seen at %s, %s (pid %u)", DURATION(s->ns),
						       held_why(&head), s->process->pid));
	}
	if (seen->count > MOST)
		output_line(STYLE_FAINT, output_format("and in %zu more snapshots", seen->count - MOST));
}

static int count_hosts(const struct moment *moments, int count)
{
	int n = 0;
	while (n < count && !moments[n].device)
		n++;
	return n;
}

void peak_print(struct selection *sel, const struct moments *m, const struct held_seens *seen)
{
	const struct moment *moments = m->moments;
	const int count = (int)m->count;
	/* devices first where one ran out */
	int hosts = sel->options->at.kind == WHEN_OOM ? count_hosts(moments, count) : 0;
	selection_print_missing(sel);
	print_seen(seen);
	for (int k = 0, printed = 0; k < count; k++) {
		const struct moment *at = &moments[(k + hosts) % count];
		if (at->device && !at->sites->bytes && !sel->options->device)
			continue;
		if (printed++)
			print("\n");
		print_moment(sel, at);
	}
}
