#include "analyzer/whatif/whatif_internal.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdlib.h>
#include <string.h>

static char *place_of(const struct selection *sel, const struct process *p, const struct replay_moment *m)
{
	const struct stack_site site =
		stacks_site(sel->stacks, stacks_of(sel->stacks, p, m->node, m->node2), selection_flags(sel->options));
	return site.frame ? frame_where(site.frame) : strdup("(no stack)");
}

/* What became of the requests. */
static char *end_text(const struct selection *sel, const struct replay_track *t, const struct replay_outcome *o)
{
	if (o->refused.request) {
		char *place = place_of(sel, t->process, &o->refused);
		char *text = output_format("no, at %s: %s %s", DURATION(o->refused.ns), BYTES(o->refused.bytes),
					   place ? place : "");
		free(place);
		return text;
	}
	if (!t->refused)
		return strdup("yes");
	if (whatif_fits(t, o))
		return strdup(o->granted_count < t->refused ? "yes, what failed last too" : "yes, what failed too");
	const uint64_t again = t->refused - o->granted_count;
	return o == &t->run ? output_format("no, %s failed", COUNT(again))
			    : output_format("no, %s of %s %s again", COUNT(again), COUNT(t->refused),
					    again == 1 ? "fails" : "fail");
}

static void print_row(struct table *table, const struct selection *sel, const struct replay_track *t, const char *name,
		      const struct replay_outcome *o, uint64_t least)
{
	char *end = end_text(sel, t, o);
	table_row(table, (const char *[]){ name, BYTES(o->figures.most_reserved), BYTES(o->figures.most_used),
					   COUNT(o->figures.retries), least ? BYTES(least) : "?", end });
	free(end);
}

static const struct replay_outcome *sorted_by;

/* What gets furthest, then what reserves least. */
static int by_use(const void *a, const void *b)
{
	const struct replay_outcome *x = &sorted_by[*(const size_t *)a], *y = &sorted_by[*(const size_t *)b];
	const uint64_t p = x->refused.request ? x->refused.request : UINT64_MAX,
		       q = y->refused.request ? y->refused.request : UINT64_MAX;
	if (p != q)
		return p > q ? -1 : 1;
	return (x->figures.most_reserved > y->figures.most_reserved) -
	       (x->figures.most_reserved < y->figures.most_reserved);
}

/* Why blocks may be missing, or NULL. */
static const char *missing_text(const struct replay *r, const struct process *p, const struct whatif_question *q)
{
	return p->lost_events || p->skipped_slots ? "events were lost"
	       : !q->complete                     ? "part of the trace is missing"
	       : r->folded                        ? "the disk limit left events out of the trace"
						  : NULL;
}

/* Folding keeps what is live when a pool has most, so this holds even so; where a free is missing it may not. */
static void print_asked(const struct replay_track *t, const struct whatif_question *q)
{
	if (q->complete)
		output_whole_line(
			STYLE_NONE,
			t->unknown_sizes
				? output_format(
					  "  asked for at any one time: at most %s to %s; no setting can need less",
					  BYTES(t->most_requested_low), BYTES(t->most_requested))
				: output_format("  asked for at any one time: at most %s; no setting can need less",
						BYTES(t->most_requested)));
}

static void print_differs(const struct selection *sel, const struct replay *r, const struct replay_track *t,
			  const struct whatif_question *q)
{
	const char *missing = missing_text(r, t->process, q);
	char *place = place_of(sel, t->process, &t->differs);
	output_whole_line(
		STYLE_BAD,
		output_format("  not modelled: request %s of %s got another block than the replay says (%s at %s);",
			      COUNT(t->differs.request), COUNT(t->requests), place ? place : "",
			      DURATION(t->differs.ns)));
	output_whole_line(STYLE_BAD, output_format("  %s%sof other settings nothing can be said",
						   missing ? missing : "", missing ? ", so " : ""));
	print_asked(t, q);
	free(place);
}

/* Those that are something else than the run was; the best first. Returns how many. */
static size_t rank(const struct replay_track *t, const struct whatif_question *q, size_t order[WHATIF_MOST_CASES])
{
	size_t count = 0;
	for (size_t i = 0; i < q->count; i++) {
		struct cuda_pool_settings settings;
		if (q->cases[i].device_bytes || q->cases[i].factor || q->count == 1 ||
		    replay_case_settings(t, &q->cases[i], 0, &settings) ||
		    !replay_same_settings(&settings, &t->settings))
			order[count++] = i;
	}
	if (q->changes[0])
		return count; /* at least, at most */
	sorted_by = t->outcomes;
	qsort(order, count, sizeof(*order), by_use);
	return count;
}

/* Behind the recorded end, under the best of the cases. */
static void print_growth(const struct whatif_question *q, const struct replay_track *t, size_t best)
{
	const struct replay_outcome *o = &t->outcomes[best];
	const struct whatif_growth g = whatif_growth_of(q->ahead, t, o);
	const char *unit = g.stepped ? "step" : "second";
	if (!g.grows || !whatif_fits(t, o))
		return;
	char *when = g.until.ever ? forecast_text(g.until.x, g.until.low, g.until.high) : NULL;
	char *line = output_format("%s: fits up to the recorded end; goes on to grow %s a %s%s%s%s%s",
				   q->cases[best].name, BYTES((uint64_t)g.rate), unit, when ? ", so until " : "",
				   when ? unit : "", when ? " " : "", when ? when : "");
	print("  ");
	output_wrapped(line ? line : "", 2, 4, output_width() - 2, NULL);
	free(line);
	free(when);
}

static void print_outcomes(const struct selection *sel, const struct replay *r, const struct replay_track *t,
			   const struct whatif_question *q)
{
	static const struct column columns[] = {
		{ "setting", LEFT, false },     { "reserved", RIGHT, WORTH(3) }, { "in use", RIGHT, WORTH(2) },
		{ "retries", RIGHT, WORTH(1) }, { "needs", RIGHT, false },       { "does it fit?", LEFT, true },
	};
	size_t order[WHATIF_MOST_CASES], count = rank(t, q, order);
	struct table *table = table_new(columns, sizeof(columns) / sizeof(columns[0]), 2);
	print_row(table, sel, t, "the run", &t->run, whatif_least_of(q, r, t, 0));
	for (size_t i = 0; i < count; i++) {
		print_row(table, sel, t, q->cases[order[i]].name, &t->outcomes[order[i]],
			  whatif_least_of(q, r, t, order[i] + 1));
		if (t->outcomes_low)
			print_row(table, sel, t, "  had they asked for less", &t->outcomes_low[order[i]], 0);
	}
	table_print(table);
	if (count && q->ahead && !q->changes[0])
		print_growth(q, t, order[0]);
}

/* A request that is granted is no help where the next one of its step fails. */
static void print_rest(const struct replay_track *t, const struct whatif_question *q)
{
	const struct whatif_rest r = whatif_rest(q, t);
	if (!r.known)
		return;
	if (!r.rest_known) {
		output_whole_line(STYLE_NONE,
				  output_format("  at least %s are left after the request that failed last; "
						"what comes after it is not known",
						BYTES(r.left)));
		return;
	}
	const char *so = r.most <= r.left   ? "it fits"
			 : r.least > r.left ? "it fails in the same step"
					    : "it may fail in the same step";
	output_whole_line(
		r.most <= r.left ? STYLE_NONE : STYLE_BAD,
		r.least < r.most
			? output_format("  the rest of that step needs %s to %s, as earlier ones went, and %s are "
					"left: %s",
					BYTES(r.least), BYTES(r.most), BYTES(r.left), so)
			: output_format("  the rest of that step needs %s, as earlier ones went, and %s are left: %s",
					BYTES(r.most), BYTES(r.left), so));
}

/* What the answer rests on. */
static void print_changed(const struct replay_track *t, const struct whatif_question *q)
{
	const uint64_t least = t->outcomes[0].changed, most = t->outcomes[q->count - 1].changed;
	char *range =
		least < most ? output_format("%s to %s", COUNT(least), COUNT(most)) : output_format("%s", COUNT(most));
	output_whole_line(
		STYLE_NONE,
		output_format("  %s of %s requests are changed; all others are made as they were, in their order",
			      range ? range : "", COUNT(t->requests)));
	print_rest(t, q);
	if (t->refused)
		output_whole_line(STYLE_NONE,
				  output_format(
					  "  it is known up to the recorded end: what the program would have done "
					  "behind that nobody knows"));
	free(range);
}

/* Whose allocator it is taken for. */
static char *framework_text(const struct framework *f)
{
	if (*f->version)
		return output_format("the allocator of %s %s", framework_name(f->kind), f->version);
	return output_format("the allocator of %s, of a version that is not known: taken for a recent one",
			     framework_name(f->kind));
}

/* What the program did that no event says, and that a setting knows nothing of. */
static void print_inferred(const struct selection *sel, const struct replay_track *t)
{
	char *place = t->switches ? place_of(sel, t->process, &t->switched) : NULL;
	if (t->switches) {
		output_whole_line(STYLE_NONE,
				  output_format("  the program changes the allocator's settings itself, seen %s %s, "
						"first by request %s (%s);",
						COUNT(t->switches), t->switches == 1 ? "time" : "times",
						COUNT(t->switched.request), place ? place : ""));
		output_whole_line(STYLE_NONE,
				  strdup("  a setting that names expandable_segments is replayed as if it did not"));
	}
	if (t->held_count) {
		output_whole_line(STYLE_NONE,
				  output_format("  another stream still used %s blocks when they were freed "
						"(record_stream), at most %s at once;",
						COUNT(t->held_count), BYTES(t->most_held)));
		output_whole_line(STYLE_NONE, strdup("  under other settings they are replayed as free at once"));
	}
	free(place);
}

static void print_track(const struct selection *sel, const struct replay *r, const struct replay_track *t,
			const struct whatif_question *q)
{
	char name[32];
	output_line(STYLE_HEAD, output_format("WHAT IF  %s of %u %s", whatif_device_name(t, name, sizeof(name)),
					      t->process->pid, t->process->name));
	if (t->unmodelled) {
		output_whole_line(STYLE_BAD, output_format("  not modelled: %s", t->unmodelled));
		return;
	}
	char *framework = framework_text(&t->framework);
	output_whole_line(STYLE_NONE, output_format("  %s", framework ? framework : ""));
	free(framework);
	if (t->differs.request) {
		print_differs(sel, r, t, q);
		return;
	}
	output_whole_line(STYLE_NONE,
			  output_format("  the run, replayed: each of %s requests got the block that it got then",
					COUNT(t->requests)));
	if (t->outside)
		output_whole_line(STYLE_NONE,
				  output_format("  beside the pool %s of the device were in use", BYTES(t->outside)));
	if (t->unknown_sizes)
		output_whole_line(
			STYLE_BAD,
			output_format(
				"  of %s requests only the block's size is known: each may have asked for up to %s less",
				COUNT(t->unknown_sizes), BYTES(t->most_unknown)));
	print_inferred(sel, t);
	print_outcomes(sel, r, t, q);
	if (q->changes[0])
		print_changed(t, q);
	else
		print_asked(t, q);
}

void whatif_print(const struct selection *sel, const struct replay *replay, const struct whatif_question *q)
{
	size_t shown = 0;
	selection_print_parts(sel);
	if (!q->complete)
		output_whole_line(STYLE_BAD, strdup("INCOMPLETE: what is left is replayed, see memtrace check"));
	for (size_t i = 0; i < replay->count; i++) {
		if (!whatif_is_wanted(sel, &replay->tracks[i]))
			continue;
		if (shown++)
			print("\n");
		print_track(sel, replay, &replay->tracks[i], q);
	}
	if (!shown)
		print("no blocks of PyTorch's caching allocator in %s\nmemtrace whatif --host replays its heap on other mallocs\n",
		      replay->folded || !q->complete ? "what is left of this trace" : "this trace");
}
