#include "analyzer/diagnosis/growth/leaks.h"

#include "analyzer/symbols/builtin_suppressions.h"
#include "analyzer/util/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- suppressing --------------------------------------------------------------------------------------- */

/* A fold has no argument of its own. */
static const struct suppress *suppressing;

static const char *fold(struct stacks *s, uint32_t stack)
{
	return suppressions_find(suppressing, s, stack) ? "suppressed" : builtin_suppressed_stack(s, stack);
}

/* ---- owners -------------------------------------------------------------------------------------------- */

/* What a process held that was killed, or runs, is no leak. */
static uint64_t held_at_death(const struct selection *sel)
{
	uint64_t bytes = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct process *p = reader_process(sel->reader, id);
		if (selection_has(sel, p) && p->exit_kind != MT_EXIT_CODE)
			bytes += model_process(sel->model, id)->kind[MODEL_HEAP].live_bytes;
	}
	return bytes;
}

bool leak_grows(const struct leak *leak)
{
	return leak->owner_growth && outlook_goes_on(leak->owner_growth->outlook);
}

bool leak_leaks(const struct leak *leak)
{
	return leak->owner_growth && leak->owner_growth->outlook == OUTLOOK_LEAKS;
}

bool leak_counts(const struct leak *leak)
{
	return !leak->benign && !leak->suppressed;
}

static int worse(const void *a, const void *b)
{
	const struct leak *x = a, *y = b;
	if (leak_counts(x) != leak_counts(y))
		return leak_counts(x) ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->owner->bytes != y->owner->bytes)
		return x->owner->bytes > y->owner->bytes ? -1 : 1;
	if (x->kind != y->kind) /* owners of two kinds lie wherever malloc put them */
		return x->kind > y->kind ? -1 : 1;
	return (x->owner > y->owner) - (x->owner < y->owner);
}

static uint64_t oldest_of(const struct leaks *l, const struct owner *o)
{
	uint64_t oldest = UINT64_MAX;
	for (size_t i = 0; i < o->member_count; i++) {
		const struct model_site *site =
			model_site(l->selection->model, o->members[i]->process, o->members[i]->number);
		const struct model_process *p = model_process(l->selection->model, o->members[i]->process);
		uint64_t ns = site && p->oldest_ns ? p->oldest_ns[site - p->sites] : 0;
		oldest = ns && ns < oldest ? ns : oldest;
	}
	return oldest;
}

/* It grew by a quarter or more in the second half of the steps: what first steps load is no growth with them. */
static bool grows_with_steps(const struct owner_growth *t)
{
	size_t at = 0;
	if (!t->growth.stepped || !t->points)
		return false;
	while (at + 1 < t->points && t->x[at] < t->x[t->points - 1] / 2)
		at++;
	return 4 * (t->bytes[t->points - 1] - t->bytes[at]) >= t->growth.bytes;
}

/* A cache that a loop makes larger is worth a look even where such things usually are no leak. Without steps their
 * growth says nothing: while a program begins it is all that grows. */
static void judge(const struct leaks *l, struct leak *leak)
{
	const struct owner *o = leak->owner;
	uint32_t stack = o->stack_count ? o->stacks->stack : 0;
	leak->suppressed = suppressions_find(l->suppress, l->selection->stacks, stack);
	if (leak->suppressed || (leak_grows(leak) && grows_with_steps(leak->owner_growth)))
		return;
	leak->benign = l->selection->by == BY_STACK
			       ? builtin_suppressed_stack(l->selection->stacks, selection_owner_stack(l->selection, o))
		       : o->folded ? o->label
				   : NULL;
	if (leak->benign && leak_grows(leak))
		leak->owner_growth = NULL;
}

static uint64_t rest_of(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

/* Without what its stacks' blocks may have lost. */
static void set_least(const struct leaks *l, struct leak *leak)
{
	double bytes = 0, blocks = 0;
	for (size_t i = 0; i < leak->owner->member_count; i++) {
		const struct model_site *s = leak->owner->members[i];
		const struct model_doubt doubt = model_doubt_of(l->selection->model, s);
		const double weight = owners_weight(l->selection->reader, s);
		bytes += weight * (double)doubt.bytes;
		blocks += weight * (double)doubt.blocks;
	}
	leak->bytes_min = rest_of(leak->bytes, (uint64_t)bytes);
	leak->blocks_min = rest_of(leak->blocks, (uint64_t)blocks);
}

static void set_growth(struct leak *leak, const struct owner_finding *f)
{
	if (!f)
		return;
	leak->owner_growth = f->growth.outlook ? &f->growth : NULL;
	leak->finding = f;
	leak->unproven = (uint64_t)f->growth.growth.unproven;
}

static void add_live(struct leaks *l, const struct owner *o, enum model_kind kind, const struct owner_finding *f)
{
	struct leak *leak = &l->list[l->count++];
	*leak = (struct leak){
		.owner = o, .kind = kind, .bytes = o->bytes, .blocks = o->blocks, .oldest_ns = oldest_of(l, o)
	};
	set_growth(leak, f);
	judge(l, leak);
	set_least(l, leak);
	if (kind != MODEL_HEAP || leak_counts(leak))
		return;
	*(leak->suppressed ? &l->suppressed_bytes : &l->benign_bytes) += o->bytes;
	*(leak->suppressed ? &l->suppressed_blocks : &l->benign_blocks) += o->blocks;
}

static uint64_t between(uint64_t least, uint64_t value, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static uint64_t add_lost(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* At least so much of what counts is alive: what each process is known to have, and what each owner is. */
static void count_least(struct leaks *l)
{
	uint64_t bytes = 0, blocks = 0, doubt_bytes = 0, doubt_blocks = 0;
	for (unsigned id = 0; id < reader_processes(l->selection->reader); id++) {
		const struct model_process *p = model_process(l->selection->model, id);
		if (!selection_has(l->selection, p->process))
			continue;
		l->lost = add_lost(l->lost, model_lost(l->selection->model, id));
		doubt_bytes += p->kind[MODEL_HEAP].doubt_bytes;
		doubt_blocks += p->kind[MODEL_HEAP].doubt_blocks;
	}
	for (size_t i = 0; i < l->count; i++) {
		const struct leak *leak = &l->list[i];
		bool counts = leak->kind == MODEL_HEAP && leak_counts(leak);
		bytes += counts ? leak->bytes_min : 0;
		blocks += counts ? leak->blocks_min : 0;
		l->unproven += leak_counts(leak) ? leak->unproven : 0;
	}
	l->bytes_min = between(rest_of(l->bytes, doubt_bytes), bytes, l->bytes);
	l->blocks_min = between(rest_of(l->blocks, doubt_blocks), blocks, l->blocks);
}

/* What counts, of a total that is exact even if its parts are estimates. */
static void count_rest(struct leaks *l)
{
	const struct owners *heap = l->live[MODEL_HEAP];
	if (!heap)
		return;
	l->bytes = rest_of(heap->bytes, l->benign_bytes + l->suppressed_bytes);
	l->blocks = rest_of(heap->blocks, l->benign_blocks + l->suppressed_blocks);
}

/* ---- what grew and was freed in the end ------------------------------------------------------------------- */

static void add_grown(struct leaks *l, const struct owner_finding *f)
{
	struct leak leak = { .owner = f->owner, .kind = f->kind, .oldest_ns = UINT64_MAX };
	set_growth(&leak, f);
	if (leak_grows(&leak) || leak.unproven)
		judge(l, &leak);
	if (leak_grows(&leak) || leak.unproven)
		l->list[l->count++] = leak;
}

/* Of a kind: its owners at the end, with how they grew, and those that grew and are gone. */
static int add_kind(struct leaks *l, enum model_kind kind)
{
	const struct owners *live = l->live[kind];
	const struct findings *all = l->findings;
	bool *met = calloc(all->count + 1, sizeof(*met));
	if (!met)
		return error_memory();
	for (size_t i = 0; live && i < live->count; i++) {
		const struct owner_finding *f = live->owners[i].bytes || live->owners[i].blocks
							? findings_find(all, kind, &live->owners[i])
							: NULL;
		if (f)
			met[f - all->list] = true;
		add_live(l, &live->owners[i], kind, f);
	}
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].kind == kind && !met[i] &&
		    findings_find(all, kind, all->list[i].owner) == &all->list[i])
			add_grown(l, &all->list[i]);
	free(met);
	return 0;
}

static void set_scale(struct leaks *l)
{
	const struct selection *sel = l->selection;
	const struct reader_host *host =
		reader_hosts(sel->reader) ? reader_host(sel->reader, 0) : NULL; /* as a report */
	l->scale = growth_scale_of(sel->model, host, timeline_samples(l->timeline));
	for (size_t i = 0; i < l->count; i++) {
		const struct leak *leak = &l->list[i];
		if (leak->kind < MODEL_HOST_KINDS && leak_leaks(leak) && !leak->suppressed && leak->finding->is_part)
			l->scale.leaking += leak->owner_growth->all_bytes;
	}
}

int leaks_init(struct leaks *l, struct selection *sel, struct timeline *timeline, struct suppress *suppress,
	       struct findings *findings)
{
	*l = (struct leaks){
		.selection = sel, .timeline = timeline, .suppress = suppress, .in_use = held_at_death(sel)
	};
	size_t count = 0;
	int e = 0;
	suppressing = suppress;
	for (int kind = 0; e == 0 && kind < MODEL_KINDS; kind++) {
		if (!(sel->kinds & 1u << kind))
			continue;
		e = selection_owners(sel, OWNERS_LIVE, kind, fold, &l->live[kind]);
		count += e == 0 ? l->live[kind]->count : 0;
	}
	l->findings = findings && sel->by == BY_SITE && !suppress ? findings : &l->own_findings;
	if (e == 0 && l->findings == &l->own_findings)
		e = findings_make(&l->own_findings, timeline, sel, sel->by, fold);
	l->groups = l->findings->groups;
	if (e == 0 && !(l->list = calloc(count + l->findings->count + 1, sizeof(*l->list))))
		e = error_memory();
	for (int kind = 0; e == 0 && kind < MODEL_KINDS; kind++)
		e = add_kind(l, kind);
	suppressing = NULL;
	if (e < 0) {
		leaks_fini(l);
		return e;
	}
	process_piles_find(&l->pile, sel->reader, sel->model, timeline_samples(timeline));
	count_rest(l);
	count_least(l);
	set_scale(l);
	qsort(l->list, l->count, sizeof(*l->list), worse);
	return 0;
}

void leaks_fini(struct leaks *l)
{
	free((char *)l->shm.site);
	for (int kind = 0; kind < MODEL_KINDS; kind++)
		owners_free(l->live[kind]);
	findings_fini(&l->own_findings);
	free(l->list);
	suppressions_free(l->suppress);
	timeline_free(l->timeline);
	*l = (struct leaks){ 0 };
}

/* ---- groups -------------------------------------------------------------------------------------------- */

/* What the user will see end is all memory of that kind; where that does not grow steadily, the site's own growth. */
static struct forecast forecast_group(const struct leaks *l, const struct leak *most, double *ahead)
{
	const struct owner_growth *t = most->owner_growth;
	struct growth all;
	const struct forecast f = owner_growth_forecast_all(l->timeline, l->selection, t->process, most->kind,
							    most->finding->device, &all);
	*ahead = f.ever ? forecast_ahead(&f, &all) : forecast_ahead(&t->forecast, &t->growth);
	return f.ever ? f : t->forecast;
}

static bool is_little(const struct leaks *l, const struct leak_group *g, double ahead)
{
	return g->most->kind < MODEL_HOST_KINDS && (g->certainty == CERTAINTY_LOW || !g->most->finding->is_part ||
						    !growth_matters(&l->scale, g->bytes, ahead <= GROWTH_HORIZON));
}

struct leak_group leaks_group(const struct leaks *l, unsigned group)
{
	struct leak_group g = { .certainty = CERTAINTY_LOW };
	for (size_t i = 0; i < l->count; i++) {
		const struct leak *leak = &l->list[i];
		if (!leak_leaks(leak) || leak->suppressed || leak->owner_growth->group != group)
			continue;
		g.sites++;
		g.rate += leak->owner_growth->growth.rate;
		g.error += leak->owner_growth->growth.rate_error;
		g.per_second += leak->owner_growth->all_per_second;
		g.bytes += leak->owner_growth->all_bytes;
		if (leak->owner_growth->growth.certainty > g.certainty)
			g.certainty = leak->owner_growth->growth.certainty;
		if (!g.most || leak->owner_growth->growth.bytes > g.most->owner_growth->growth.bytes)
			g.most = leak;
	}
	if (g.most) {
		double ahead;
		g.forecast = forecast_group(l, g.most, &ahead);
		g.little = is_little(l, &g, ahead);
	}
	return g;
}
