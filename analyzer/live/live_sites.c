#include "analyzer/live/live_sites.h"

#include "analyzer/diagnosis/growth/growth_matters.h"
#include "analyzer/symbols/builtin_suppressions.h"

#include <stdlib.h>
#include <string.h>

enum { LIVE_MOST = 256, LIVE_PLACES = 8 }; /* stacks that are looked at; places that are judged */

/* Stacks are of one place by this. */
struct place {
	uint64_t pc;
	enum model_kind kind;
	bool python;
};

struct context {
	const struct timeline *timeline;
	const struct samples *samples;
	const struct selection *sel;
	const struct step_list *list;
	uint32_t sites[LIVE_MOST]; /* the largest first */
	struct place places[LIVE_MOST];
	size_t count;
};

static bool is_runtime(const struct process_module *module)
{
	const char *name = module ? strrchr(module->path, '/') : NULL;
	return name &&
	       (!strncmp(name, "/libstdc++.", 11) || !strncmp(name, "/libc.", 6) || !strncmp(name, "/libc-", 6));
}

static struct place place_of(const struct context *x, uint32_t site)
{
	const struct process *process = x->list->process;
	struct place place = { 0 };
	uint32_t node, node2;
	model_site_stack(x->sel->model, process->id, site, &node, &node2, &place.kind);
	place.python = node2;
	const struct mt_node *n = process_node(process, node2 ? node2 : node);
	place.pc = n ? n->pc : 0;
	while (n && !node2 && is_runtime(reader_module_of(process, node))) {
		node = n->parent;
		n = process_node(process, node);
		place.pc = n ? n->pc : place.pc;
	}
	return place;
}

static bool same(const struct place *a, const struct place *b)
{
	return a->pc == b->pc && a->kind == b->kind && a->python == b->python;
}

static uint32_t stack_of(const struct context *x, uint32_t site)
{
	const struct process *p = x->list->process;
	uint32_t node, node2;
	enum model_kind kind;
	model_site_stack(x->sel->model, p->id, site, &node, &node2, &kind);
	return stacks_of_site(x->sel->stacks, p, site, node, node2);
}

/* What stacks of one place have together. */
static void judge(struct owner_growth *g, const struct context *x, size_t first)
{
	const uint32_t process = x->list->process->id;
	const struct growth_place of = { process, x->places[first].kind, MODEL_NO_DEVICE };
	struct cohort_table *table = calloc(1, sizeof(*table));
	*g = (struct owner_growth){ 0 };
	for (size_t i = first; table && i < x->count; i++)
		if (same(&x->places[i], &x->places[first]))
			cohorts_add_site(timeline_cohorts(x->timeline), process, x->sites[i], 1, table);
	if (table) /* nobody knows how much of what was lost is theirs */
		owner_growth_judge(g, x->timeline, x->sel->model, x->samples, &of, table,
				   model_doubt(x->sel->model, process, MODEL_HEAP));
	free(table);
	if (owner_growth_may_be_collected(g, of.kind))
		owner_growth_collect(g, of.kind, x->sel, stack_of(x, x->sites[first]));
}

static bool is_first(const struct context *x, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (same(&x->places[k], &x->places[i]))
			return false;
	return true;
}

static void leave_out_start_up(struct context *x)
{
	size_t count = 0;
	for (size_t i = 0; i < x->count; i++)
		if (!builtin_suppressed_import(x->sel->stacks, stack_of(x, x->sites[i])))
			x->sites[count++] = x->sites[i];
	x->count = count;
}

bool live_sites_grow(struct owner_growth *g, const struct timeline *timeline, const struct samples *samples,
		     const struct selection *sel, const struct step_list *steps)
{
	struct context x = { .timeline = timeline, .samples = samples, .sel = sel, .list = steps };
	struct growth_scale scale = growth_scale_of(sel->model, steps->process->host, samples);
	x.count = cohorts_largest(timeline_cohorts(timeline), steps->process->id, x.sites, LIVE_MOST);
	leave_out_start_up(&x);
	for (size_t i = 0; i < x.count; i++)
		x.places[i] = place_of(&x, x.sites[i]);
	*g = (struct owner_growth){ 0 };
	for (size_t i = 0, places = 0; i < x.count && places < LIVE_PLACES; i++) {
		struct owner_growth one;
		if (!is_first(&x, i))
			continue;
		places++;
		judge(&one, &x, i);
		if (!outlook_goes_on(one.outlook))
			continue;
		scale.leaking += one.outlook == OUTLOOK_LEAKS ? one.growth.bytes : 0;
		*g = owner_growth_grew_more(&one, g) ? one : *g;
	}
	return outlook_goes_on(g->outlook) && growth_matters(&scale, g->growth.bytes, false);
}
