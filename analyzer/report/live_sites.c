#include "analyzer/report/live_sites.h"

#include "analyzer/diagnosis/growth_matters.h"
#include "analyzer/diagnosis/owner_growth.h"
#include "analyzer/timeline/site_growth.h"

#include <math.h>
#include <string.h>

enum { MOST = 256, PLACES = 8 }; /* stacks that are looked at; places that are judged */

#define HALF 0.5
#define PART 0.1 /* of what came: stacks with less are not looked at */

/* Stacks are of one place by this. */
struct place {
	uint64_t pc;
	enum model_kind kind;
	bool python;
};

struct context {
	const struct timeline *timeline;
	const struct samples *samples;
	const struct model *model;
	const struct step_list *list;
	uint32_t sites[MOST]; /* the largest first */
	struct place places[MOST];
	size_t count;
};

/* Low points of some stacks, added up, and what that says. */
struct sum {
	double x[STEPS_BUCKETS], bytes[STEPS_BUCKETS], blocks[STEPS_BUCKETS];
	size_t points;
	struct growth growth;
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
	model_site_stack(x->model, process->id, site, &node, &node2, &place.kind);
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

static void add(struct sum *s, const struct context *x, size_t i)
{
	size_t n = steps_site(timeline_steps(x->timeline), x->list->process->id, x->sites[i], 1, s->x, s->bytes,
			      s->blocks);
	s->points = n > s->points ? n : s->points;
}

static double peak_of(const struct step_list *p, enum model_kind kind)
{
	uint64_t most = 0;
	for (size_t k = 0; k < p->track_count; k++)
		for (size_t i = 0; p->tracks[k].kind == kind && i < p->count; i++)
			most = step_high(&p->tracks[k], i) > most ? step_high(&p->tracks[k], i) : most;
	return (double)most;
}

/* Whether it goes on growing, and not by what the kernel can drop. */
static bool judge(struct sum *s, const struct context *x, enum model_kind kind)
{
	const struct step_list *p = x->list;
	s->growth = site_growth(x->timeline, p, s->x, s->bytes,
				s->points && p->source == LOOP_NONE ? s->points - 1 : s->points);
	/* nobody knows how much of that is theirs */
	growth_doubt(&s->growth, model_doubt(x->model, p->process->id, MODEL_HEAP));
	return outlook_is_leak(outlook_of(x->timeline, p, kind, &s->growth, 0)) &&
	       s->growth.certainty != CERTAINTY_LOW && s->growth.bytes >= OWNER_GROWTH_LEAST * peak_of(p, kind) &&
	       !(kind == MODEL_MAP && outlook_gives_way(x->samples, x->model, p, s->growth.bytes));
}

/* Of what is of one place with stack `first`: the stacks that go on growing, together. */
static bool parts_grow(struct sum *most, const struct context *x, size_t first, double came)
{
	double growing = 0;
	most->growth.bytes = 0;
	for (size_t i = first; i < x->count; i++) {
		struct sum one = { 0 };
		if (!same(&x->places[i], &x->places[first]))
			continue;
		add(&one, x, i);
		if (!one.points || one.bytes[one.points - 1] < PART * came || !judge(&one, x, x->places[i].kind))
			continue;
		growing += one.growth.bytes;
		if (one.growth.bytes > most->growth.bytes)
			most->growth = one.growth;
	}
	return growing > 0 && growing >= HALF * came;
}

static bool place_grows(struct growth *g, const struct context *x, size_t first)
{
	struct sum all = { 0 };
	double came = 0;
	size_t stacks = 0;
	for (size_t i = first; i < x->count; i++)
		if (same(&x->places[i], &x->places[first])) {
			add(&all, x, i);
			stacks++;
		}
	for (size_t i = 0; i < all.points; i++)
		came = fmax(came, all.bytes[i] - all.bytes[0]);
	const bool grows =
		judge(&all, x, x->places[first].kind) || (stacks > 1 && came > 0 && parts_grow(&all, x, first, came));
	*g = all.growth;
	return grows;
}

static bool is_first(const struct context *x, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (same(&x->places[k], &x->places[i]))
			return false;
	return true;
}

bool live_sites_grow(struct growth *g, const struct timeline *c, const struct samples *samples, const struct model *m,
		     const struct step_list *p)
{
	struct context x = { .timeline = c, .samples = samples, .model = m, .list = p };
	x.count = steps_largest(timeline_steps(c), p->process->id, x.sites, MOST);
	for (size_t i = 0; i < x.count; i++)
		x.places[i] = place_of(&x, x.sites[i]);
	struct growth_scale scale = growth_scale_of(m, p->process->host, samples);
	g->bytes = 0;
	for (size_t i = 0, places = 0; i < x.count && places < PLACES; i++) {
		struct growth one;
		if (!is_first(&x, i))
			continue;
		places++;
		if (!place_grows(&one, &x, i))
			continue;
		scale.leaking += one.bytes;
		*g = one.bytes > g->bytes ? one : *g;
	}
	return scale.leaking > 0 && growth_matters(&scale, g->bytes, false);
}
