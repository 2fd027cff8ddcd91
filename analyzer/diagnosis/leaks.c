#include "analyzer/diagnosis/leaks.h"

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
static uint64_t held_at_death(const struct selection *v)
{
	uint64_t bytes = 0;
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct process *p = reader_process(v->reader, id);
		if (selection_has(v, p) && p->exit_kind != MT_EXIT_CODE)
			bytes += model_process(v->model, id)->kind[MODEL_HEAP].live_bytes;
	}
	return bytes;
}

bool leak_is_steady(const struct leak *leak)
{
	return leak->owner_growth && owner_growth_leaks(leak->owner_growth);
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

static struct owner_growth *find_growth(const struct leaks *l, const struct owner *o, uint64_t *unproven)
{
	struct owner_growth found, *kept = NULL;
	owner_growth_of(&found, l->timeline, l->selection, o);
	*unproven = found.growth.unproven > (double)*unproven ? (uint64_t)found.growth.unproven : *unproven;
	if (found.growth.kind != GROWTH_NONE && (kept = malloc(sizeof(*kept))))
		*kept = found;
	return kept;
}

/* What a site had at the peak and was freed in the end grew all the same. */
static struct owner_growth *find_growth_of_both(const struct leaks *l, const struct owner *live,
						const struct owner *peak, uint64_t *unproven)
{
	struct owner both = *live;
	struct owner_growth *t = NULL;
	both.members = malloc((live->member_count + (peak ? peak->member_count : 0)) * sizeof(*both.members));
	if (!both.members)
		return NULL;
	memcpy(both.members, live->members, live->member_count * sizeof(*both.members));
	for (size_t i = 0; peak && !live->folded && i < peak->member_count; i++) {
		size_t k = 0;
		while (k < live->member_count && live->members[k] != peak->members[i])
			k++;
		if (k == live->member_count)
			both.members[both.member_count++] = peak->members[i];
	}
	if (both.member_count > live->member_count)
		t = find_growth(l, &both, unproven);
	free(both.members);
	if (t && growth_is_steady(&t->growth))
		return t;
	free(t);
	return find_growth(l, live, unproven);
}

static uint64_t oldest_of(const struct leaks *l, const struct owner *o)
{
	uint64_t oldest = UINT64_MAX;
	for (size_t i = 0; i < o->member_count; i++) {
		const struct model_process *p = model_process(l->selection->model, o->members[i]->process);
		uint64_t ns = p->oldest_ns ? p->oldest_ns[o->members[i] - p->sites] : 0;
		oldest = ns && ns < oldest ? ns : oldest;
	}
	return oldest;
}

/* A cache that a loop makes larger is worth a look even where such things usually are no leak. Without steps their
 * growth says nothing: while a program begins it is all that grows. */
static void judge(const struct leaks *l, struct leak *leak)
{
	const struct owner *o = leak->owner;
	uint32_t stack = o->stack_count ? o->stacks->stack : 0;
	leak->suppressed = suppressions_find(l->suppress, l->selection->stacks, stack);
	if (leak->suppressed || (leak_is_steady(leak) && leak->owner_growth->stepped))
		return;
	leak->benign = l->selection->by == BY_STACK ? builtin_suppressed_stack(l->selection->stacks, stack)
		       : o->folded                  ? o->label
						    : NULL;
	if (!leak->benign || !leak_is_steady(leak))
		return;
	free(leak->owner_growth);
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
		const struct model_process *p = model_process(l->selection->model, s->process);
		double weight = p->doubts ? owners_weight(l->selection->reader, s) : 0;
		bytes += weight ? weight * (double)p->doubts[s - p->sites].bytes : 0;
		blocks += weight ? weight * (double)p->doubts[s - p->sites].blocks : 0;
	}
	leak->bytes_min = rest_of(leak->bytes, (uint64_t)bytes);
	leak->blocks_min = rest_of(leak->blocks, (uint64_t)blocks);
}

static void add_live(struct leaks *l, const struct owner *o, enum model_kind kind, const struct owner *peak)
{
	struct leak *leak = &l->list[l->count++];
	*leak = (struct leak){
		.owner = o, .kind = kind, .bytes = o->bytes, .blocks = o->blocks, .oldest_ns = oldest_of(l, o)
	};
	leak->owner_growth = find_growth_of_both(l, o, peak, &leak->unproven);
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

/* ---- what there was at the peak --------------------------------------------------------------------------- */

/* The owners at the peak by their members, so that those at the end find theirs. */
struct member {
	const struct model_site *site;
	const struct owner *owner;
};

struct members {
	struct member *list;
	size_t count;
};

static int by_site(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	return (x->site > y->site) - (x->site < y->site);
}

static void list_members(struct members *m, const struct owners *s)
{
	size_t n = 0;
	for (size_t i = 0; s && i < s->count; i++)
		n += s->owners[i].member_count;
	*m = (struct members){ .list = calloc(n + 1, sizeof(*m->list)) };
	for (size_t i = 0; m->list && s && i < s->count; i++)
		for (size_t k = 0; k < s->owners[i].member_count; k++)
			m->list[m->count++] = (struct member){ s->owners[i].members[k], &s->owners[i] };
	if (m->count)
		qsort(m->list, m->count, sizeof(*m->list), by_site);
}

static const struct owner *owner_of(const struct members *m, const struct owner *live)
{
	const struct member *found = NULL;
	for (size_t i = 0; i < live->member_count && m->count && !found; i++) {
		const struct member wanted = { live->members[i], NULL };
		found = bsearch(&wanted, m->list, m->count, sizeof(*m->list), by_site);
	}
	return found ? found->owner : NULL;
}

/* What grew, but was freed in the end. */
static void add_grown(struct leaks *l, const struct owner *o, enum model_kind kind)
{
	if (o->bytes < 65536)
		return;
	struct leak leak = { .owner = o, .kind = kind, .oldest_ns = UINT64_MAX };
	leak.owner_growth = find_growth(l, o, &leak.unproven);
	bool grew = leak.owner_growth && growth_is_steady(&leak.owner_growth->growth);
	if (grew || leak.unproven)
		judge(l, &leak);
	if ((grew && leak.owner_growth) || leak.unproven)
		l->list[l->count++] = leak;
	else
		free(leak.owner_growth);
}

static int add_kind(struct leaks *l, enum model_kind kind)
{
	const struct owners *live = l->live[kind], *peak = l->peak[kind];
	struct members members;
	bool *met = calloc(peak ? peak->count + 1 : 1, sizeof(*met));
	list_members(&members, peak);
	int e = met && members.list ? 0 : error_memory();
	for (size_t i = 0; e == 0 && live && i < live->count; i++) {
		const struct owner *then = owner_of(&members, &live->owners[i]);
		if (then)
			met[then - peak->owners] = true;
		add_live(l, &live->owners[i], kind, then);
	}
	for (size_t i = 0; e == 0 && peak && i < peak->count; i++)
		if (!met[i])
			add_grown(l, &peak->owners[i], kind);
	free(members.list);
	free(met);
	return e;
}

static void find_groups(struct leaks *l)
{
	size_t n = 0;
	struct owner_growth **list = calloc(l->count + 1, sizeof(*list));
	for (size_t i = 0; list && i < l->count; i++)
		if (leak_is_steady(&l->list[i]))
			list[n++] = l->list[i].owner_growth;
	if (list)
		owner_growth_group(list, n);
	for (size_t i = 0; i < n; i++)
		l->groups = list[i]->group > l->groups ? list[i]->group : l->groups;
	free(list);
}

/* Of the host's, too small a part of the peak of its kind is no verdict, as of all that grows: by what it had then, and
 * by what it grew. */
static bool is_part(const struct leaks *l, const struct leak *leak)
{
	double peak = 0;
	for (size_t i = 0; i < leak->owner->member_count; i++)
		peak += (double)leak->owner->members[i]->peak_bytes;
	return l->peak[leak->kind] &&
	       fmin(peak, leak->owner_growth->growth.bytes) >= OWNER_GROWTH_LEAST * (double)l->peak[leak->kind]->bytes;
}

static void set_scale(struct leaks *l)
{
	const struct selection *v = l->selection;
	const struct reader_host *host = reader_hosts(v->reader) ? reader_host(v->reader, 0) : NULL; /* as a report */
	l->scale = growth_scale_of(v->model, host, timeline_samples(l->timeline));
	for (size_t i = 0; i < l->count; i++) {
		const struct leak *leak = &l->list[i];
		if (leak->kind < MODEL_HOST_KINDS && leak_is_steady(leak) && !leak->suppressed && is_part(l, leak))
			l->scale.leaking += leak->owner_growth->all_bytes;
	}
}

int leaks_init(struct leaks *l, struct selection *v, struct timeline *timeline, struct suppress *suppress)
{
	*l = (struct leaks){ .selection = v, .timeline = timeline, .suppress = suppress, .in_use = held_at_death(v) };
	size_t count = 0;
	int e = 0;
	suppressing = suppress;
	for (int kind = 0; e == 0 && kind < MODEL_KINDS; kind++) {
		if (!(v->kinds & 1u << kind))
			continue;
		e = selection_owners(v, OWNERS_LIVE, kind, fold, &l->live[kind]);
		if (e == 0)
			e = selection_owners(v, OWNERS_PEAK, kind, fold, &l->peak[kind]);
		count += e == 0 ? l->live[kind]->count + l->peak[kind]->count : 0;
	}
	if (e == 0 && !(l->list = calloc(count + 1, sizeof(*l->list))))
		e = error_memory();
	for (int kind = 0; e == 0 && kind < MODEL_KINDS; kind++)
		e = add_kind(l, kind);
	suppressing = NULL;
	if (e < 0) {
		leaks_fini(l);
		return e;
	}
	process_piles_find(&l->pile, v->reader, v->model, timeline_samples(timeline));
	count_rest(l);
	count_least(l);
	find_groups(l);
	set_scale(l);
	qsort(l->list, l->count, sizeof(*l->list), worse);
	return 0;
}

void leaks_fini(struct leaks *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->list[i].owner_growth);
	for (int kind = 0; kind < MODEL_KINDS; kind++) {
		owners_free(l->live[kind]);
		owners_free(l->peak[kind]);
	}
	free(l->list);
	suppressions_free(l->suppress);
	timeline_free(l->timeline);
	*l = (struct leaks){ 0 };
}

/* ---- groups -------------------------------------------------------------------------------------------- */

static bool is_foreseen(const struct leaks *l, const struct leak_group *g)
{
	const struct owner_growth *t = g->most->owner_growth;
	struct growth all;
	return t->forecast.ever ||
	       owner_growth_forecast_all(l->timeline, l->selection, t->process, g->most->kind, MODEL_NO_DEVICE, &all)
		       .ever;
}

/* `part`: as far as its sites are no small parts, and certain enough. */
static bool is_little(const struct leaks *l, const struct leak_group *g, double part, enum growth_certainty certainty)
{
	if (!g->most || g->most->kind >= MODEL_HOST_KINDS)
		return false;
	return certainty == CERTAINTY_LOW || !part || !growth_matters(&l->scale, part, is_foreseen(l, g));
}

struct leak_group leaks_group(const struct leaks *l, unsigned group, enum model_kind kind)
{
	struct leak_group g = { 0 };
	enum growth_certainty certainty = CERTAINTY_LOW;
	double part = 0;
	for (size_t i = 0; i < l->count; i++) {
		const struct leak *leak = &l->list[i];
		if (!leak_is_steady(leak) || leak->suppressed || leak->kind != kind ||
		    leak->owner_growth->group != group)
			continue;
		g.sites++;
		g.rate += leak->owner_growth->growth.rate;
		g.error += leak->owner_growth->growth.rate_error;
		g.per_second += leak->owner_growth->all_per_second;
		g.bytes += leak->owner_growth->all_bytes;
		part += is_part(l, leak) ? leak->owner_growth->all_bytes : 0;
		if (leak->owner_growth->growth.certainty > certainty)
			certainty = leak->owner_growth->growth.certainty;
		if (!g.most || leak->owner_growth->growth.bytes > g.most->owner_growth->growth.bytes)
			g.most = leak;
	}
	g.little = is_little(l, &g, part, certainty);
	return g;
}
