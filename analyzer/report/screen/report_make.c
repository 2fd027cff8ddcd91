/* A report's data: the analysis, and beside its second pass the owners of host memory. */
#include "analyzer/diagnosis/growth/leaks.h"
#include "analyzer/analysis/open.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/symbols/builtin_suppressions.h"
#include "analyzer/symbols/python_arenas.h"

#include <stdlib.h>
#include <string.h>

void report_fini(struct report *r)
{
	report_held_fini(r);
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		owners_free(r->owners[kind]);
	owners_free(r->temporary);
	owners_free(r->survivors);
	analysis_free(&r->analysis);
}

/* What modules and libraries need for themselves takes one row each, so that the rows are the program's. */
static int host_owners(const struct selection *sel, enum model_kind kind, struct owners **out)
{
	bool folds = sel->options->by == BY_UNSET && !sel->options->json && !sel->options->all_frames;
	return selection_owners_brief(sel, OWNERS_HOST_PEAK, kind, folds ? builtin_suppressed_stack : NULL, out);
}

/* Where nothing is wrong as far as causes go, what memtrace leaks says of it. */
static int ask_leaks(struct report *r, struct selection *sel)
{
	struct leaks l;
	int e = leaks_init(&l, sel, r->analysis.timeline, NULL, &r->analysis.diagnosis->findings);
	if (e < 0) {
		r->analysis.timeline = NULL; /* it has taken that over */
		return e;
	}
	r->leaks = (struct report_leaks){
		.known = true, .alive = l.bytes, .alive_min = l.bytes_min, .unproven = l.unproven, .in_use = l.in_use
	};
	l.timeline = NULL; /* ours again */
	leaks_fini(&l);
	return 0;
}

static int larger(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* What is not kept for all owners: without memory for it, nobody learns how it grew. */
static void join_members(struct owner *all, const struct owner *o)
{
	const struct model_site **members =
		realloc(all->members, (all->member_count + o->member_count + 1) * sizeof(*members));
	if (!members)
		return;
	for (size_t i = 0; i < o->member_count; i++)
		members[all->member_count++] = o->members[i];
	all->members = members;
}

/* The arenas that were mapped by imports and the others are one owner. Returns the others' bytes. */
static uint64_t join_arenas(struct owners *s)
{
	struct owner *all = NULL;
	uint64_t after = 0;
	for (size_t i = 0; i < s->count; i++) {
		struct owner *o = &s->owners[i];
		if (!o->folded || !python_arenas_is_label(o->label))
			continue;
		after += strcmp(o->label, PYTHON_ARENAS_LABEL) ? 0 : o->bytes;
		if (!all) {
			all = o;
			all->label[sizeof(PYTHON_ARENAS_LABEL) - 1] = '\0';
			continue;
		}
		all->bytes += o->bytes;
		all->blocks += o->blocks;
		join_members(all, o);
		free(o->label);
		free(o->stacks);
		free(o->members);
		memmove(o, o + 1, (--s->count - i) * sizeof(*o));
		i--;
	}
	if (all)
		qsort(s->owners, s->count, sizeof(*s->owners), larger);
	return after;
}

/* Beside the second pass. */
static int build_owners(void *arg)
{
	struct report *r = arg;
	const struct selection *sel = r->selection;
	int e = 0;
	owners_look_ahead(sel->model, sel->reader, sel->stacks,
			  1u << OWNERS_HOST_PEAK | 1u << OWNERS_TEMPORARY | 1u << OWNERS_LIVE);
	for (int kind = 0; e == 0 && kind < MODEL_HOST_KINDS; kind++)
		if (sel->kinds & 1u << kind)
			e = host_owners(sel, kind, &r->owners[kind]);
	if (r->owners[MODEL_MAP])
		r->arenas_after = join_arenas(r->owners[MODEL_MAP]);
	if (e == 0 && sel->kinds & 1u << MODEL_HEAP)
		e = selection_owners_brief(sel, OWNERS_TEMPORARY, MODEL_HEAP, NULL, &r->temporary);
	if (e == 0 && sel->kinds & 1u << MODEL_HEAP)
		e = selection_leftovers(sel, MODEL_HEAP, builtin_suppressed_stack, &r->survivors);
	bool any = (r->survivors && r->survivors->count) || !(sel->kinds & ((1u << MODEL_HOST_KINDS) - 1));
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		any = any || (r->owners[kind] && r->owners[kind]->count);
	return e ? e : selection_check_filter(sel, any);
}

int report_make(struct report *r, struct selection *sel, unsigned more)
{
	r->selection = sel;
	int e = analysis_run(&r->analysis, sel, ANALYSIS_TIMELINE | ANALYSIS_HOST | ANALYSIS_DIAGNOSIS | more,
			     build_owners, r);
	if (e == 0)
		e = report_find_held(r);
	return e == 0 && !sel->options->json && !report_is_trouble(r) ? ask_leaks(r, sel) : e;
}
