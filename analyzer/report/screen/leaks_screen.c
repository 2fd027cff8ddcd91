#include "analyzer/report/screen/leaks_screen.h"
#include "analyzer/analysis/open.h"
#include "analyzer/symbols/python_arenas.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OTHERS = 3 }; /* that grew and do not leak */

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
	const char *how = leak_leaks(leak) ? growth_name(t->growth.kind) : outlook_name(t->outlook);
	if (growth_is_brief(&t->growth))
		return output_format("%s, %s", how, BYTES((uint64_t)t->growth.bytes));
	return output_format("%s %s/%s", how, BYTES((uint64_t)fabs(t->growth.rate)), t->growth.stepped ? "step" : "s");
}

static void held_row(struct table *t, const struct held_question *held)
{
	char *line = held->known ? output_format("held by %s", held->name) : NULL;
	if (line)
		table_note(t, 2, line);
	free(line);
}

static void leak_row(struct table *t, const struct leaks *l, const struct leak *leak, const struct held_question *held,
		     uint64_t all)
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
	held_row(t, held);
	free(range);
	free(text);
	free(where);
	free(share);
	free(growth);
}

static const struct column leak_columns[] = {
	{ "bytes", RIGHT, false },      { "at least", RIGHT, false },
	{ "%", RIGHT, false },          { "blocks", RIGHT, false },
	{ "oldest", RIGHT, WORTH(2) },  { "growth", LEFT, false },
	{ "allocated by", LEFT, true }, { "", LEFT, true },
};

enum { LEAK_COLUMNS = sizeof(leak_columns) / sizeof(*leak_columns) };

static void print_kind(const struct leaks *l, const struct held_question *held, enum model_kind kind,
		       const char *heading)
{
	size_t most = selection_rows(l->selection, LEAKS_ROWS), shown = 0, more = 0;
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
		leak_row(t, l, leak, &held[i], l->bytes);
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

char *leaks_group_name(const struct leaks *l, const struct leak_group *g)
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

static char *pace_text(const struct owner_growth *t)
{
	const bool brief = growth_is_brief(&t->growth);
	const double blocks = brief ? t->growth.bytes / t->mean_block_bytes : t->blocks_per_x;
	if (t->how != OWNER_GROWTH_MORE_BLOCKS)
		return strdup(t->how == OWNER_GROWTH_BIGGER_BLOCKS ? "; bigger blocks" : "");
	char *count = fabs(blocks) < 1000 ? output_format("%.4g", blocks)
					  : output_format("%s", COUNT((uint64_t)fabs(blocks))),
	     *text = output_format("; %s block%s more%s%s, %s each", count ? count : "",
				   fabs(blocks - 1) < 1e-4 ? "" : "s", brief ? "" : " a ",
				   brief ? "" : growth_unit(&t->growth), BYTES((uint64_t)t->mean_block_bytes));
	free(count);
	return text;
}

static void print_group(const struct leaks *l, const struct held_question *held, const struct leak_group *g)
{
	const struct owner_growth *t = g->most->owner_growth;
	const struct process *p = reader_process(l->selection->reader, t->process);
	const char *unit = growth_unit(&t->growth);
	char *name = leaks_group_name(l, g), *pace = pace_text(t);
	char *rate = growth_is_brief(&t->growth) ? growth_brief_text(&t->growth, g->bytes)
						 : output_format("%s +/- %s a %s", BYTES((uint64_t)fabs(g->rate)),
								 BYTES((uint64_t)g->error), unit);
	output_whole_line(STYLE_NONE, output_format("  %s: %s", rate ? rate : "", name ? name : ""));
	free(rate);
	char *whose = t->growing > 1 ? output_format("each of %u processes, %s together", t->growing,
						     BYTES((uint64_t)t->all_bytes))
				     : output_format("%u %s", p->pid, p->name);
	output_whole_line(STYLE_NONE, output_format("    %s of %s; %s, certainty %s%s", kind_words(g->most->kind),
						    whose ? whose : "", growth_name(t->growth.kind),
						    certainty_name(g->certainty), pace ? pace : ""));
	const unsigned devices = findings_devices(l->findings, g->most->finding);
	if (devices > 1)
		output_whole_line(STYLE_NONE,
				  output_format("    the same on each of %u devices; these are the figures of %s",
						devices,
						model_device(l->selection->model, g->most->finding->device)->name));
	if (owner_is_arenas(g->most->owner, g->most->kind, l->selection->stacks))
		output_whole_line(STYLE_NONE,
				  output_format("    " PYTHON_ARENAS_LABEL ", of any line: " PYTHON_ARENAS_HINT));
	if (held[g->most - l->list].known) {
		struct reasons holder = { 0 };
		held_say(&held[g->most - l->list], &holder);
		char *text = reasons_text(&holder);
		output_whole_line(STYLE_NONE, output_format("    held by %s", text ? text : ""));
		free(text);
		reasons_fini(&holder);
	}
	if (t->growth.doubt > 0)
		output_whole_line(
			STYLE_NONE,
			output_format("    at least %s of %s: the frees of the rest may be among the lost events",
				      BYTES((uint64_t)(t->growth.bytes - t->growth.doubt)),
				      BYTES((uint64_t)t->growth.bytes)));
	if (g->forecast.ever)
		output_whole_line(STYLE_NONE, output_format("    memory %s at %s %.0f",
							    p->state == PROCESS_ENDED ? "would have ended" : "ends",
							    unit, g->forecast.x));
	free(name);
	free(pace);
	free(whose);
}

static int grew_more(const void *a, const void *b)
{
	const struct leak_group *x = a, *y = b;
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

struct leak_group *leaks_groups(const struct leaks *l, size_t *count)
{
	struct leak_group *list = calloc(l->groups + 1ul, sizeof(*list));
	*count = 0;
	for (unsigned group = 1; list && group <= l->groups; group++)
		if ((list[*count] = leaks_group(l, group)).sites)
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
	char *line = output_format("%s%s%s grew by %s of %s, %s", text ? text : "", where && *where ? "  " : "",
				   where ? where : "", BYTES((uint64_t)leak->owner_growth->growth.bytes),
				   kind_words(leak->kind), why ? why : "");
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

static void print_shm(const struct leaks *l)
{
	const struct shm_maker *m = &l->shm;
	if (!m->growing)
		return;
	print("%sGROWTH  more and more files in /dev/shm%s\n", output_begin(STYLE_BAD), output_end(STYLE_BAD));
	output_whole_line(STYLE_NONE, output_format("  %s makes them: %s, %s, %s/s", m->site, COUNT(m->files),
						    BYTES(m->bytes), BYTES((uint64_t)m->per_second)));
}

static void print_growing(const struct leaks *l, const struct held_question *held)
{
	enum { LEAKS_MOST = 5 };
	size_t count, sites = 0;
	bool little = true;
	struct leak_group *list = leaks_groups(l, &count);
	for (size_t i = 0; i < count; i++) {
		sites += list[i].sites;
		little = little && list[i].little;
	}
	if (l->unproven)
		output_whole_line(
			STYLE_NONE,
			output_format("GROWTH  not known: %s that seem%s to grow may be blocks whose frees were lost",
				      BYTES(l->unproven), sites ? " more" : ""));
	else if (!(selection_has_kinds(l->selection) & MT_IMPORT_HISTORY))
		print("GROWTH  not known: the file has no history\n");
	else if (!sites)
		print("GROWTH  no site leaks%s\n", l->lost ? " by what was recorded" : "");
	if (sites)
		print("%sGROWTH  %zu site%s steadily%s%s\n", output_begin(little ? STYLE_NONE : STYLE_BAD), sites,
		      sites == 1 ? " grows" : "s grow", little ? ", too little or uncertain for a verdict" : "",
		      output_end(little ? STYLE_NONE : STYLE_BAD));
	size_t most = selection_rows(l->selection, LEAKS_MOST);
	uint64_t rest = 0;
	for (size_t i = 0; i < count && i < most; i++)
		print_group(l, held, &list[i]);
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

/* Of the host. */
static void print_alive(const struct leaks *l)
{
	char *least = l->lost ? output_format("%s to ", BYTES(l->bytes_min)) : strdup(""),
	     *blocks = l->lost ? output_format("%s to ", COUNT(l->blocks_min)) : strdup("");
	print("%sALIVE AT THE END  %s%s in %s%s blocks%s\n", output_begin(STYLE_HEAD), least ? least : "",
	      BYTES(l->bytes), blocks ? blocks : "", COUNT(l->blocks), output_end(STYLE_HEAD));
	free(least);
	free(blocks);
	if (l->lost)
		output_whole_line(
			STYLE_NONE,
			l->lost == UINT64_MAX
				? output_format(
					  "  events were lost: what was freed by them only seems alive, what was allocated is missing")
				: output_format(
					  "  %s events were lost: what was freed by them only seems alive, what was allocated is missing",
					  COUNT(l->lost)));
	print_benign(l);
	if (l->in_use)
		output_whole_line(
			STYLE_NONE,
			output_format("  of all that, %s in processes that run, were killed or ended unknown: in "
				      "use, not leaked",
				      BYTES(l->in_use)));
}

void leaks_print(const struct leaks *l, const struct held_question *held)
{
	selection_print_missing(l->selection);
	if (l->selection->kinds & ((1u << MODEL_HOST_KINDS) - 1))
		print_alive(l);
	if (l->live[MODEL_HEAP] && l->live[MODEL_HEAP]->estimated)
		print("  %s\n", sampled_note(l->live[MODEL_HEAP]));
	print_pile(l);
	print_shm(l);
	print_growing(l, held);
	if (l->selection->options->filter && !l->count)
		output_line(STYLE_NONE, output_format("no stack has a frame that matches --filter '%s'",
						      l->selection->options->filter));
	print_kind(l, held, MODEL_HEAP, "HEAP");
	print_kind(l, held, MODEL_MAP, "MAPPED");
	print_kind(l, held, MODEL_PINNED, "PINNED");
	print_kind(l, held, MODEL_POOL, "IN THE FRAMEWORK'S POOL");
	print_kind(l, held, MODEL_DEVICE, "ON DEVICES");
}
