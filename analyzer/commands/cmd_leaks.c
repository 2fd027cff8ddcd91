/* memtrace leaks: what was alive at the end, and what grows. */
#include "analyzer/commands/commands.h"
#include "analyzer/diagnosis/growth/leaks.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/report/ci/ci.h"
#include "analyzer/report/json/json.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "format/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OTHERS = 3 }; /* that grew and do not leak */

#define DEFAULT_ROWS      10
#define DEFAULT_JSON_ROWS 1000

struct leaks_options {
	struct options common;
	const char *fail_over;
	const char *suppressions, *format;
};

static const struct option_row rows[] = {
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_BY(OPTIONS_BY_OWNERS),
	{ "fail-over", 0, "LIMITS", OPTION_STRING, offsetof(struct leaks_options, fail_over),
	  "exit 1 if more is alive at the end (100M) or sites grow faster (1M/s, 1M/step)", 0 },
	{ "suppressions", 0, "FILE", OPTION_STRING, offsetof(struct leaks_options, suppressions),
	  "lines leak:PATTERN, as LeakSanitizer reads them: what to leave out", 0 },
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_FILTER,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_JSON,
	{ "format", 0, "FORMAT", OPTION_STRING, offsetof(struct leaks_options, format),
	  "for CI: github, sarif or junit", 0 },
	OPTIONS_ROW_RULES,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_leaks_spec = {
	"memtrace leaks [--fail-over 100M,1M/step] [options] [DIR...]",
	"What was alive when processes ended, by the site that allocated it, and sites\n"
	"that grow. What libraries, interpreter and imported modules usually keep is\n"
	"folded into one line.",
	rows,
	0,
	"  memtrace leaks -n 30\n"
	"  memtrace leaks --fail-over 1M/step      # for CI\n",
	"Read: docs/leaks.md; docs/MARKS.md on steps",
};

/* ---- screen -------------------------------------------------------------------------------------------- */

/* Of a site in Python the function of a C extension that it called for the blocks; NULL = none. */
static const struct frame *extension_of(const struct leaks *l, const struct owner *o)
{
	return !o->label && o->frame && o->stack_count ? stacks_extension(l->selection->stacks, o->stacks->stack)
						       : NULL;
}

static void frame_row(struct table *t, const char *form, const struct frame *f)
{
	char *text = f ? frame_text(f) : NULL, *where = f ? frame_where(f) : NULL,
	     *line = text ? output_format(form, text) : NULL;
	if (line)
		table_row(t, (const char *[]){ NULL, NULL, NULL, NULL, NULL, NULL, line, where });
	free(text);
	free(where);
	free(line);
}

static void leak_next(struct table *t, const struct owner *o)
{
	char *where, *line = owner_next(o, &where);
	if (line)
		table_row(t, (const char *[]){ NULL, NULL, NULL, NULL, NULL, NULL, line, where });
	free(where);
	free(line);
}

/* ---- rows that begin alike ------------------------------------------------------------------------------ */

enum { MOST_FRAMES = 256 };

struct frames {
	const struct frame *list[MOST_FRAMES];
	size_t count;
};

/* As screens show them, from the inside. */
static void list_frames(const struct leaks *l, const struct owner *o, struct frames *f)
{
	f->count = 0;
	for (struct stack_walk w = { .next = o->stack_count ? o->stacks->stack : 0 };
	     f->count < MOST_FRAMES &&
	     stack_step_shown(l->selection->stacks, &w, selection_flags(l->selection->options));)
		f->list[f->count++] = w.frame;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_frame(const struct frame *a, const struct frame *b)
{
	return a == b || (same_text(a->name, b->name) && same_text(a->file, b->file) && a->line == b->line &&
			  a->offset == b->offset && same_text(a->library, b->library));
}

static bool reads_alike(const struct owner *a, const struct owner *b)
{
	return a != b && same_frame(a->frame, b->frame) &&
	       (a->caller == b->caller || (a->caller && b->caller && same_frame(a->caller, b->caller)));
}

/* Of a stack whose site and caller others have as well: the first frame, going outwards, that tells it from all of
 * them. NULL = there are none. */
static const struct frame *distinguishing(const struct leaks *l, const struct leak *leak)
{
	struct frames own, other;
	const struct owner *o = leak->owner;
	size_t common = 0;
	if (l->selection->by != BY_STACK || !o->frame)
		return NULL;
	list_frames(l, o, &own);
	for (size_t i = 0; i < l->count; i++) {
		const struct owner *x = l->list[i].owner;
		if (l->list[i].kind != leak->kind || !leak_counts(&l->list[i]) || !x->frame || !reads_alike(o, x))
			continue;
		list_frames(l, x, &other);
		size_t same = 0;
		while (same < own.count && same < other.count && same_frame(own.list[same], other.list[same]))
			same++;
		common = same > common ? same : common;
	}
	return common && own.count ? own.list[common < own.count ? common : own.count - 1] : NULL;
}

static char *growth_text(const struct leak *leak)
{
	const struct owner_growth *t = leak->owner_growth;
	if (!t)
		return NULL;
	if (!leak_grows(leak))
		return output_format("%s", outlook_name(t->outlook));
	return output_format("%s %s/%s", leak_leaks(leak) ? growth_name(t->growth.kind) : outlook_name(t->outlook),
			     BYTES((uint64_t)fabs(t->growth.rate)), t->stepped ? "step" : "s");
}

static void leak_row(struct table *t, const struct leaks *l, const struct leak *leak, uint64_t all)
{
	const struct owner *o = leak->owner;
	char *text = owner_text(o);
	char *where = !o->label && o->frame ? frame_where(o->frame) : NULL;
	char *share = output_format("%s %%", PERCENT(leak->bytes, all)), *growth = growth_text(leak);
	char *range = leak->bytes == o->bytes ? owner_range(o) : NULL;
	const char *part = leak->kind == MODEL_HEAP ? share : kind_name(leak->kind);
	const char *oldest = leak->oldest_ns == UINT64_MAX ? NULL : DURATION(leak->oldest_ns);
	const char *least = leak->bytes ? BYTES(leak->bytes_min) : NULL;
	table_row(t, (const char *[]){ BYTES(leak->bytes), least, part, range ? range : COUNT(leak->blocks), oldest,
				       growth, text, where });
	frame_row(t, "> %s", extension_of(l, o));
	leak_next(t, o);
	frame_row(t, "< .. %s", distinguishing(l, leak));
	free(range);
	free(text);
	free(where);
	free(share);
	free(growth);
}

static const struct column leak_columns[] = {
	{ "bytes", RIGHT, false },      { "at least", RIGHT, false }, { "%", RIGHT, false },
	{ "blocks", RIGHT, false },     { "oldest", RIGHT, false },   { "growth", LEFT, false },
	{ "allocated by", LEFT, true }, { "", LEFT, true },
};

enum { LEAK_COLUMNS = sizeof(leak_columns) / sizeof(*leak_columns) };

static void print_kind(const struct leaks *l, enum model_kind kind, const char *heading)
{
	size_t most = selection_rows(l->selection, DEFAULT_ROWS), shown = 0, more = 0;
	uint64_t rest = 0;
	struct table *t = NULL;
	struct column columns[LEAK_COLUMNS];
	memcpy(columns, leak_columns, sizeof(columns));
	columns[1].gives = l->lost ? false : WORTH(1);
	for (size_t i = 0; i < l->count; i++) {
		const struct leak *leak = &l->list[i];
		if (leak->kind != kind || !leak_counts(leak) || !(leak->bytes || leak->blocks || leak_grows(leak)))
			continue;
		if (shown == most) {
			more++;
			rest += leak->bytes;
			continue;
		}
		if (!t) {
			t = table_new(columns, LEAK_COLUMNS, 2);
			table_keep(t, l->lost ? 0 : WORTH(2));
		}
		leak_row(t, l, leak, l->bytes);
		shown++;
	}
	if (!t)
		return;
	char *text = more ? output_format("%s by %s other sites: -n ROWS", BYTES(rest), COUNT(more)) : NULL;
	if (text)
		table_note(t, 0, text);
	free(text);
	print("\n%s%s%s\n", output_begin(STYLE_HEAD), heading, output_end(STYLE_HEAD));
	table_print(t);
}

/* "save train.py:73 and 9 more sites at the same pace", "serve server.py:14 in fast.c:12 fast_parse" */
static char *group_name(const struct leaks *l, const struct leak_group *g)
{
	const struct frame *extension = extension_of(l, g->most->owner);
	char *text = owner_text(g->most->owner),
	     *where = g->most->owner->frame ? frame_where(g->most->owner->frame) : NULL;
	char *inner = extension ? frame_place(extension) : NULL;
	char *more = g->sites > 1 ? output_format(" and %zu more at the same pace", g->sites - 1) : NULL;
	char *name = output_format("%s%s%s%s%s%s", text ? text : "", where ? "  " : "", where ? where : "",
				   inner ? " in " : "", inner ? inner : "", more ? more : "");
	free(text);
	free(where);
	free(inner);
	free(more);
	return name;
}

static void print_group(const struct leaks *l, const struct leak_group *g)
{
	const struct owner_growth *t = g->most->owner_growth;
	const struct process *p = reader_process(l->selection->reader, t->process);
	const char *unit = t->stepped ? "step" : "second", *hows[] = { "", "; bigger blocks" };
	char *name = group_name(l, g);
	char *how = t->how == OWNER_GROWTH_MORE_BLOCKS
			    ? output_format("; %.4g block%s more a %s, %s each", t->blocks_per_x,
					    fabs(t->blocks_per_x - 1) < 1e-4 ? "" : "s", unit,
					    BYTES((uint64_t)t->mean_block_bytes))
			    : output_format("%s", hows[t->how == OWNER_GROWTH_BIGGER_BLOCKS]);
	output_fit_line(STYLE_NONE, output_format("  %s +/- %s a %s: %s", BYTES((uint64_t)fabs(g->rate)),
						  BYTES((uint64_t)g->error), unit, name ? name : ""));
	char *whose = t->growing > 1 ? output_format("each of %u processes, %s together", t->growing,
						     BYTES((uint64_t)t->all_bytes))
				     : output_format("%u %s", p->pid, p->name);
	output_fit_line(STYLE_NONE, output_format("    %s of %s; %s, certainty %s%s", kind_name(g->most->kind),
						  whose ? whose : "", growth_name(t->growth.kind),
						  certainty_name(t->growth.certainty), how ? how : ""));
	if (t->growth.doubt > 0)
		output_fit_line(
			STYLE_NONE,
			output_format("    at least %s of %s: the frees of the rest may be among the lost events",
				      BYTES((uint64_t)(t->growth.bytes - t->growth.doubt)),
				      BYTES((uint64_t)t->growth.bytes)));
	if (t->forecast.ever)
		output_fit_line(STYLE_NONE, output_format("    memory %s at %s %.0f",
							  p->state == PROCESS_ENDED ? "would have ended" : "ends", unit,
							  t->forecast.x));
	free(name);
	free(how);
	free(whose);
}

static int grew_more(const void *a, const void *b)
{
	const struct leak_group *x = a, *y = b;
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* All groups, those that grew most first. */
static struct leak_group *list_groups(const struct leaks *l, size_t *count)
{
	struct leak_group *list = calloc((size_t)l->groups * MODEL_KINDS + 1, sizeof(*list));
	*count = 0;
	for (unsigned group = 1; list && group <= l->groups; group++)
		for (int kind = 0; kind < MODEL_KINDS; kind++)
			if ((list[*count] = leaks_group(l, group, kind)).sites)
				++*count;
	if (*count)
		qsort(list, *count, sizeof(*list), grew_more);
	return list;
}

/* What grew, but is no leak: why not. */
static void print_other(const struct leak *leak)
{
	char *text = owner_text(leak->owner), *where = leak->owner->frame ? frame_where(leak->owner->frame) : NULL;
	char *why = outlook_why_no_leak(leak->owner_growth->outlook);
	char *line = output_format("%s%s%s grew by %s %s", text ? text : "", where ? "  " : "", where ? where : "",
				   BYTES((uint64_t)leak->owner_growth->growth.bytes), why ? why : "");
	print("  ");
	output_wrapped(line ? line : "", 2, 4, output_width() - 2, NULL);
	free(line);
	free(why);
	free(text);
	free(where);
}

static bool is_other(const struct leak *leak)
{
	return leak->owner_growth && leak_counts(leak) && leak->owner_growth->growth.bytes > 0 && !leak_leaks(leak);
}

/* What goes on comes first, then the largest. */
static int other_first(const void *a, const void *b)
{
	const struct leak *const *x = a, *const *y = b;
	const double more = (*x)->owner_growth->growth.bytes - (*y)->owner_growth->growth.bytes;
	return leak_grows(*x) != leak_grows(*y) ? (leak_grows(*x) ? -1 : 1) : (more < 0) - (more > 0);
}

/* All that goes on, as far as there is room; else the largest, where nothing leaks. */
static void print_others(const struct leaks *l, bool leaks)
{
	const struct leak **list = calloc(l->count + 1, sizeof(*list));
	size_t count = 0;
	for (size_t i = 0; list && i < l->count; i++)
		if (is_other(&l->list[i]))
			list[count++] = &l->list[i];
	if (count)
		qsort(list, count, sizeof(*list), other_first);
	for (size_t i = 0; i < count && i < MOST_OTHERS; i++)
		if (leak_grows(list[i]) || (!i && !leaks))
			print_other(list[i]);
	free(list);
}

static void print_pile(const struct leaks *l)
{
	const struct pile *p = &l->pile;
	struct stack_site site = { 0 };
	if (!p->count)
		return;
	if (p->node)
		site = stacks_site(l->selection->stacks,
				   stacks_merged(l->selection->stacks,
						 stacks_of(l->selection->stacks, p->forked, p->node, p->node2)),
				   selection_flags(l->selection->options));
	char *name = site.frame ? frame_text(site.frame) : NULL, *where = site.frame ? frame_where(site.frame) : NULL;
	print("%sGROWTH  %u processes pile up%s\n", output_begin(STYLE_BAD), p->count, output_end(STYLE_BAD));
	char *line = output_format("%u started them%s%s%s%s in %u batches; they have %s of their own, %s more a second",
				   p->starter->pid, name ? " at " : "", name ? name : "", where ? "  " : "",
				   where ? where : "", p->batches, BYTES(p->bytes), BYTES((uint64_t)p->per_second));
	print("  ");
	output_wrapped(line ? line : "", 2, 4, output_width() - 2, NULL);
	free(line);
	free(name);
	free(where);
}

static void print_growing(const struct leaks *l)
{
	enum { MOST = 5 };
	size_t count, sites = 0;
	bool little = true;
	struct leak_group *list = list_groups(l, &count);
	for (size_t i = 0; i < count; i++) {
		sites += list[i].sites;
		little = little && list[i].little;
	}
	if (l->unproven)
		output_fit_line(
			STYLE_NONE,
			output_format("GROWTH  not known: %s that seem%s to grow may be blocks whose frees were lost",
				      BYTES(l->unproven), sites ? " more" : ""));
	else if (!sites)
		print("GROWTH  no site leaks%s\n", l->lost ? " by what was recorded" : "");
	if (sites)
		print("%sGROWTH  %zu site%s steadily%s%s\n", output_begin(little ? STYLE_NONE : STYLE_BAD), sites,
		      sites == 1 ? " grows" : "s grow", little ? ", too little or uncertain for a verdict" : "",
		      output_end(little ? STYLE_NONE : STYLE_BAD));
	size_t most = selection_rows(l->selection, MOST);
	uint64_t rest = 0;
	for (size_t i = 0; i < count && i < most; i++)
		print_group(l, &list[i]);
	for (size_t i = most; i < count; i++)
		rest += list[i].bytes;
	if (count > most)
		print("  %s by %zu other cause%s: -n ROWS\n", BYTES(rest), count - most, count - most == 1 ? "" : "s");
	print_others(l, sites);
	free(list);
}

enum { OTHERS = sizeof(", others 1023.9 MiB") };

static void print_benign(const struct leaks *l)
{
	if (l->suppressed_bytes)
		print("  suppressed: %s in %s blocks\n", BYTES(l->suppressed_bytes), COUNT(l->suppressed_blocks));
	if (!l->benign_bytes)
		return;
	char *all = output_format("  not counted: %s in %s blocks", BYTES(l->benign_bytes), COUNT(l->benign_blocks));
	int column = all ? output_columns(all) : 0;
	print("%s", all);
	free(all);
	uint64_t rest = l->benign_bytes;
	for (size_t i = 0, shown = 0; i < l->count && shown < 3; i++) {
		char *one = l->list[i].benign && l->list[i].kind == MODEL_HEAP
				    ? output_format("%s%s %s", shown ? ", " : ": ", l->list[i].benign,
						    BYTES(l->list[i].bytes))
				    : NULL;
		shown += one != NULL;
		if (one && column + output_columns(one) + OTHERS <= output_width()) {
			print("%s", one);
			column += output_columns(one);
			rest -= l->list[i].bytes < rest ? l->list[i].bytes : rest;
		}
		free(one);
	}
	print(rest && rest < l->benign_bytes ? ", others %s\n" : "\n", BYTES(rest));
}

static void print_screen(const struct leaks *l)
{
	selection_print_missing(l->selection);
	char *least = l->lost ? output_format("%s to ", BYTES(l->bytes_min)) : strdup(""),
	     *blocks = l->lost ? output_format("%s to ", COUNT(l->blocks_min)) : strdup("");
	print("%sALIVE AT THE END  %s%s in %s%s blocks%s\n", output_begin(STYLE_HEAD), least ? least : "",
	      BYTES(l->bytes), blocks ? blocks : "", COUNT(l->blocks), output_end(STYLE_HEAD));
	free(least);
	free(blocks);
	if (l->lost)
		output_fit_line(
			STYLE_NONE,
			l->lost == UINT64_MAX
				? output_format(
					  "  events were lost: what was freed by them only seems alive, what was allocated is missing")
				: output_format(
					  "  %s events were lost: what was freed by them only seems alive, what was allocated is missing",
					  COUNT(l->lost)));
	if (l->in_use)
		print("  of all that, %s in processes that run, were killed or ended unknown: in use, not leaked\n",
		      BYTES(l->in_use));
	print_benign(l);
	if (l->live[MODEL_HEAP] && l->live[MODEL_HEAP]->estimated)
		print("  %s\n", SAMPLED_NOTE);
	print_pile(l);
	print_growing(l);
	if (l->selection->options->filter && !l->count)
		output_line(STYLE_NONE, output_format("no stack has a frame that matches --filter '%s'",
						      l->selection->options->filter));
	print_kind(l, MODEL_HEAP, "HEAP");
	print_kind(l, MODEL_MAP, "MAPPED");
	print_kind(l, MODEL_PINNED, "PINNED");
	print_kind(l, MODEL_POOL, "IN THE FRAMEWORK'S POOL");
	print_kind(l, MODEL_DEVICE, "ON DEVICES");
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static json_t *json_pile(const struct leaks *l)
{
	const struct pile *p = &l->pile;
	if (!p->count)
		return json_null();
	json_t *o = json_object();
	uint32_t stack = p->node ? stacks_of(l->selection->stacks, p->forked, p->node, p->node2) : 0;
	json_object_set_new(o, "processes", json_integer(p->count));
	json_object_set_new(o, "batches", json_integer(p->batches));
	json_object_set_new(o, "bytes", json_bytes(p->bytes));
	json_object_set_new(o, "bytes_per_s", json_real(p->per_second));
	json_object_set_new(o, "started_by", json_integer(p->starter->pid));
	json_object_set_new(o, "name", json_text(p->one->name));
	json_object_set_new(o, "stack",
			    stack ? json_stack(l->selection->stacks, stack, selection_flags(l->selection->options))
				  : json_null());
	return o;
}

static json_t *json_number(bool known, double n)
{
	return known && isfinite(n) ? json_real(n) : json_null();
}

static void set_growth(json_t *site, const struct owner_growth *t)
{
	const struct owner_growth none = { .forecast = forecast_never };
	static const char *const hows[] = { "unclear", "more blocks", "bigger blocks" };
	bool grows = t != NULL, steady = grows && growth_is_steady(&t->growth), stepped = grows && t->stepped;
	t = t ? t : &none;
	const struct forecast *f = &t->forecast;
	double per_s = stepped ? t->period_s : 1;
	json_object_set_new(site, "slope_bytes_per_s", json_real(grows ? owner_growth_per_second(t) : 0));
	json_object_set_new(site, "slope_bytes_per_step", json_number(stepped, t->growth.rate));
	json_object_set_new(site, "slope_error_per_step", json_number(stepped, t->growth.rate_error));
	json_object_set_new(site, "acceleration", json_real(grows ? owner_growth_acceleration_per_s2(t) : 0));
	json_object_set_new(site, "acceleration_per_step", json_number(stepped, t->growth.acceleration));
	json_object_set_new(site, "kind", json_string(growth_name(t->growth.kind)));
	json_object_set_new(site, "certainty", json_string(certainty_name(t->growth.certainty)));
	json_object_set_new(site, "outlook", json_string(outlook_name(t->outlook)));
	json_object_set_new(site, "growing_processes", json_integer(t->growing));
	json_object_set_new(site, "grown_bytes_all", json_number(grows, t->all_bytes));
	json_object_set_new(site, "grown_bytes", json_number(grows, t->growth.bytes));
	json_object_set_new(site, "grown_min_bytes", json_number(grows, t->growth.bytes - t->growth.doubt));
	json_object_set_new(site, "runs_out_at_s", json_number(f->ever && !stepped, f->x));
	json_object_set_new(site, "runs_out_at_step", json_number(f->ever && stepped, f->x));
	json_object_set_new(site, "blocks_per_step", json_number(steady && stepped, t->blocks_per_x));
	json_object_set_new(site, "blocks_per_s",
			    json_number(steady && per_s > 0, t->blocks_per_x / (per_s > 0 ? per_s : 1)));
	json_object_set_new(site, "how", steady ? json_string(hows[t->how]) : json_null());
	json_object_set_new(site, "group", steady ? json_integer(t->group) : json_null());
}

static json_t *json_leak(const struct leaks *l, const struct leak *leak)
{
	const struct owner *o = leak->owner;
	json_t *site = json_owner(l->selection->stacks, o, leak->kind, selection_flags(l->selection->options));
	double mean = leak->owner_growth && leak->owner_growth->mean_block_bytes ? leak->owner_growth->mean_block_bytes
		      : leak->blocks ? (double)leak->bytes / (double)leak->blocks
				     : 0;
	json_object_set_new(site, "bytes", json_bytes(leak->bytes));
	json_object_set_new(site, "blocks", json_bytes(leak->blocks));
	json_object_set_new(site, "bytes_min", json_bytes(leak->bytes_min));
	json_object_set_new(site, "blocks_min", json_bytes(leak->blocks_min));
	json_object_set_new(site, "unproven_growth_bytes", json_bytes(leak->unproven));
	set_growth(site, leak->owner_growth);
	json_object_set_new(site, "mean_block_bytes", json_bytes((uint64_t)mean));
	json_object_set_new(site, "oldest_s",
			    leak->oldest_ns == UINT64_MAX ? json_null() : json_seconds(leak->oldest_ns));
	json_object_set_new(site, "benign", json_text(leak->benign));
	json_object_set_new(site, "suppressed", json_text(leak->suppressed));
	return site;
}

static int print_json(const struct leaks *l)
{
	size_t most = selection_rows(l->selection, DEFAULT_JSON_ROWS);
	uint64_t rest = 0;
	for (size_t i = most; i < l->count; i++)
		rest += l->list[i].bytes;
	json_t *root = json_object(), *sites = json_array();
	for (size_t i = 0; i < l->count && i < most; i++)
		json_array_append_new(sites, json_leak(l, &l->list[i]));
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(reader_complete(l->selection->reader)));
	json_object_set_new(root, "in_use_bytes", json_bytes(l->in_use));
	json_object_set_new(root, "bytes", json_bytes(l->bytes));
	json_object_set_new(root, "blocks", json_bytes(l->blocks));
	json_object_set_new(root, "bytes_min", json_bytes(l->bytes_min));
	json_object_set_new(root, "blocks_min", json_bytes(l->blocks_min));
	json_object_set_new(root, "unproven_growth_bytes", json_bytes(l->unproven));
	json_object_set_new(root, "benign_bytes", json_bytes(l->benign_bytes));
	json_object_set_new(root, "benign_blocks", json_bytes(l->benign_blocks));
	json_object_set_new(root, "suppressed_bytes", json_bytes(l->suppressed_bytes));
	json_object_set_new(root, "suppressed_blocks", json_bytes(l->suppressed_blocks));
	json_object_set_new(root, "pile", json_pile(l));
	json_object_set_new(root, "by", json_string(selection_by_name(l->selection)));
	json_object_set_new(root, "sites", sites);
	json_set_left_out(root, "sites", l->count, l->count > most ? l->count - most : 0, rest);
	json_object_set_new(root, "unread_files", json_unread(l->selection->stacks));
	return json_print(root);
}

/* ---- limits -------------------------------------------------------------------------------------------- */

struct limits {
	uint64_t bytes, bytes_per_s, bytes_per_step; /* UINT64_MAX = none */
};

static int parse_limit(struct limits *limits, char *text)
{
	char *slash = strchr(text, '/');
	uint64_t bytes;
	if (slash)
		*slash++ = '\0';
	if (mt_read_bytes(text, &bytes) < 0 || (slash && strcmp(slash, "s") && strcmp(slash, "step")))
		return error_set(MT_EUSAGE, "--fail-over", ERROR_NO_OFFSET,
				 "%s%s%s: a limit is like 100M, 1M/s or 1M/step", text, slash ? "/" : "",
				 slash ? slash : "");
	if (!slash)
		limits->bytes = bytes;
	else if (strcmp(slash, "s") == 0)
		limits->bytes_per_s = bytes;
	else
		limits->bytes_per_step = bytes;
	return 0;
}

static int parse_limits(struct limits *limits, const char *text)
{
	*limits = (struct limits){ UINT64_MAX, UINT64_MAX, UINT64_MAX };
	char *copy = strdup(text ? text : ""), *rest = copy;
	int e = copy ? 0 : error_memory();
	for (char *word; e == 0 && text && (word = strsep(&rest, ","));)
		e = parse_limit(limits, word);
	free(copy);
	return e;
}

/* Says it, and keeps it for a CI system. Takes `text`. */
static int fails(struct ci *ci, const char *rule, char *text, const struct frame *at)
{
	print_error("memtrace: leaks: %s\n", text);
	ci_add(ci, true, rule, text, at ? at->file : NULL, at ? at->line : 0);
	return 1;
}

static int too_fast(const struct leaks *l, const struct leak_group *g, double rate, uint64_t limit, const char *unit,
		    struct ci *ci)
{
	if (limit == UINT64_MAX || rate <= (double)limit)
		return 0;
	char *name = group_name(l, g), *text = output_format("%s: grows by %s/%s, more than %s/%s", name ? name : "",
							     BYTES((uint64_t)rate), unit, BYTES(limit), unit);
	free(name);
	return fails(ci, "growth over the limit", text, g->most->owner->frame);
}

/* Processes that pile up grow, too. */
static int check_pile(const struct leaks *l, const struct limits *limits, struct ci *ci)
{
	if (!l->pile.count || limits->bytes_per_s == UINT64_MAX || l->pile.per_second <= (double)limits->bytes_per_s)
		return 0;
	return fails(ci, "processes over the limit",
		     output_format("%u processes pile up: %s/s, more than %s/s", l->pile.count,
				   BYTES((uint64_t)l->pile.per_second), BYTES(limits->bytes_per_s)),
		     NULL);
}

/* The fastest group. */
static int check_rates(const struct leaks *l, const struct limits *limits, struct ci *ci)
{
	struct leak_group second = { 0 }, step = { 0 };
	size_t count;
	struct leak_group *list = list_groups(l, &count);
	for (size_t i = 0; i < count; i++) {
		second = list[i].per_second > second.per_second ? list[i] : second;
		step = list[i].most->owner_growth->stepped && list[i].rate > step.rate ? list[i] : step;
	}
	free(list);
	return too_fast(l, &second, second.per_second, limits->bytes_per_s, "s", ci) |
	       too_fast(l, &step, step.rate, limits->bytes_per_step, "step", ci);
}

/* 1 when a limit is exceeded, or can't be checked: a check that could not look must not pass. */
static int check_limits(const struct leaks *l, const struct limits *limits, struct ci *ci)
{
	bool stepped = timeline_main(l->timeline, l->selection) != NULL;
	int failed = check_rates(l, limits, ci) | check_pile(l, limits, ci);
	if (l->bytes > limits->bytes)
		failed = fails(ci, "alive over the limit",
			       output_format("%s%s are alive at the end, more than %s%s",
					     l->bytes_min < l->bytes ? "up to " : "", BYTES(l->bytes),
					     BYTES(limits->bytes),
					     l->bytes_min > limits->bytes ? ""
					     : l->lost                    ? ", or less: events were lost"
									  : ""),
			       NULL);
	if (l->unproven && (limits->bytes_per_s != UINT64_MAX || limits->bytes_per_step != UINT64_MAX))
		failed = fails(
			ci, "growth not known",
			output_format(
				"events were lost, so whether %s grew can't be told and a limit on growth can't be checked",
				BYTES(l->unproven)),
			NULL);
	if (limits->bytes_per_step != UINT64_MAX && !stepped)
		failed = fails(ci, "no steps",
			       output_format("no steps were found in this trace, so a limit per step can't be checked"),
			       NULL);
	return failed;
}

/* What grows without being over a limit is worth a remark, the largest at least. */
static void add_growing(const struct leaks *l, struct ci *ci)
{
	size_t count;
	struct leak_group *list = list_groups(l, &count);
	for (size_t i = 0; i < count && i < selection_rows(l->selection, DEFAULT_ROWS); i++) {
		const struct owner_growth *t = list[i].most->owner_growth;
		char *name = group_name(l, &list[i]);
		ci_add(ci, false, "growth",
		       output_format("%s: grows by %s/%s, certainty %s", name ? name : "",
				     BYTES((uint64_t)fabs(list[i].rate)), t->stepped ? "step" : "s",
				     certainty_name(t->growth.certainty)),
		       list[i].most->owner->frame ? list[i].most->owner->frame->file : NULL,
		       list[i].most->owner->frame ? list[i].most->owner->frame->line : 0);
		free(name);
	}
	free(list);
}

/* ---- command ------------------------------------------------------------------------------------------- */

static int run(struct selection *v, struct leaks *l, const char *suppressions)
{
	struct suppress *suppress = NULL;
	struct analysis a;
	int e = suppressions ? suppressions_read(&suppress, suppressions) : 0;
	if (e < 0)
		return e;
	e = analysis_run(&a, v, ANALYSIS_TIMELINE, NULL, NULL);
	if (e == 0)
		return leaks_init(l, v, a.timeline, suppress, NULL);
	suppressions_free(suppress);
	analysis_free(&a);
	return e;
}

static int leaks(struct selection *v)
{
	const struct leaks_options *o = (const struct leaks_options *)v->options;
	struct limits limits = { 0 };
	struct leaks l;
	struct ci ci;
	int e = ci_init(&ci, "leaks", o->format, v->options->json);
	if (e == 0)
		e = parse_limits(&limits, o->fail_over);
	if (e == 0)
		e = run(v, &l, o->suppressions);
	if (e < 0)
		return e;
	if (v->options->json)
		e = print_json(&l);
	else if (ci.format)
		add_growing(&l, &ci);
	else
		print_screen(&l);
	if (e == 0)
		e = check_limits(&l, &limits, &ci);
	ci_finish(&ci);
	leaks_fini(&l);
	return e;
}

int cmd_leaks(int argc, char **argv)
{
	struct leaks_options o = { 0 };
	return selection_command(&cmd_leaks_spec, &o, argc, argv, leaks);
}
