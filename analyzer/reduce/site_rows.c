/*
 * Sites by stack. All of them are summed by the numbers that stacks have in this process, which takes no names. Names
 * are looked up for the largest only: a trace may have a million stacks.
 */
#include "analyzer/reduce/reduce_internal.h"
#include "analyzer/report/json/json.h"
#include "analyzer/util/error.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/vec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SITES = 2000, CANDIDATES = 2 * MOST_SITES };

struct entry {
	size_t rank;
	enum model_kind kind;
	uint32_t device, stack;
	/* bytes, blocks */
	double peak, peak_blocks, end, end_blocks, failure;
	bool estimated;
	double worth; /* the largest part that it is of anything, 0 to 1; 2 more where it grows */
	char hash[STACK_NAME];
	const struct site_grows *grows;
};

struct reduce_sites {
	struct entry *list;
	size_t count, room;
	struct hash_index index;
	size_t *counts; /* by rank: stacks with memory */
	struct site_grows *grows;
	size_t grow_count;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
}

static uint64_t key(size_t rank, enum model_kind kind, uint32_t device, uint32_t stack)
{
	return mix(mix((uint64_t)rank << 8 | kind) ^ ((uint64_t)device << 32 | stack));
}

static uint64_t hash_of(const void *things, uint32_t number)
{
	const struct entry *e = &((const struct reduce_sites *)things)->list[number - 1];
	return key(e->rank, e->kind, e->device, e->stack);
}

static struct entry *entry_of(struct reduce_sites *s, size_t rank, enum model_kind kind, uint32_t device,
			      uint32_t stack)
{
	uint64_t hash = key(rank, kind, device, stack);
	if (hash_index_is_full(&s->index, s->count) && hash_index_grow(&s->index, s, s->count, hash_of) < 0)
		return NULL;
	size_t at = hash_index_home(&s->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&s->index, hash, &at)); at = hash_index_after(&s->index, at)) {
		struct entry *e = &s->list[n - 1];
		if (e->rank == rank && e->kind == kind && e->device == device && e->stack == stack)
			return e;
	}
	if (vec_reserve(s->list, s->room, s->count + 1) < 0)
		return NULL;
	struct entry *e = &s->list[s->count++];
	*e = (struct entry){ .rank = rank, .kind = kind, .device = device, .stack = stack };
	hash_index_set(&s->index, at, s->count, hash);
	return e;
}

static int collect_process(struct reduction *r, struct reduce_sites *s, const struct model_process *mp)
{
	const struct selection *sel = r->selection;
	for (uint32_t i = 0; i < mp->site_count; i++) {
		const struct model_site *site = &mp->sites[i];
		if (!site->peak_bytes && !site->live_bytes)
			continue;
		uint32_t stack = stacks_of_site(sel->stacks, mp->process, site->number, site->node, site->node2);
		struct entry *e = entry_of(s, r->ranks.of[mp->process->id], site->kind, site->device, stack);
		if (!e)
			return error_memory();
		double weight = owners_weight(sel->reader, site);
		e->peak += weight * (double)site->peak_bytes;
		e->peak_blocks += weight * site->peak_blocks;
		e->end += weight * (double)site->live_bytes;
		e->end_blocks += weight * site->live_blocks;
		e->estimated = e->estimated || site->sampled;
	}
	return 0;
}

struct failing {
	struct reduction *r;
	struct reduce_sites *s;
};

static int add_block(void *arg, const struct snapshot_block *b)
{
	const struct failing *f = arg;
	const struct model *m = f->r->selection->model;
	if (b->device == MODEL_NO_DEVICE || !diagnosis_failure(model_device(m, b->device)))
		return 0;
	struct entry *e = entry_of(f->s, f->r->ranks.of[b->process->id], b->kind, b->device,
				   diagnosis_stack(f->r->analysis.diagnosis, b));
	if (!e)
		return error_memory();
	e->failure += (double)b->size;
	return 0;
}

static int collect_failures(struct reduction *r, struct reduce_sites *s)
{
	const struct diagnosis_parts *parts = r->analysis.diagnosis ? r->analysis.diagnosis->parts : NULL;
	struct failing f = { r, s };
	return parts && parts->snapshots ? snapshot_each(parts->snapshots, add_block, &f) : 0;
}

static double part_of(double bytes, double all)
{
	return all > 0 ? bytes / all : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->device > y->device) - (x->device < y->device);
}

/* There may be no list. */
static void sort(struct reduce_sites *s, int (*compare)(const void *, const void *))
{
	if (s->count)
		qsort(s->list, s->count, sizeof(*s->list), compare);
}

/* Each entry's worth, by its part of what its rank has of that kind there. */
static void weigh(struct reduce_sites *s)
{
	sort(s, by_place);
	for (size_t i = 0, end; i < s->count; i = end) {
		struct entry all = { 0 };
		for (end = i; end < s->count && by_place(&s->list[i], &s->list[end]) == 0; end++) {
			all.peak += s->list[end].peak;
			all.end += s->list[end].end;
			all.failure += s->list[end].failure;
		}
		for (size_t k = i; k < end; k++) {
			struct entry *e = &s->list[k];
			e->worth = fmax(part_of(e->peak, all.peak),
					fmax(part_of(e->end, all.end), part_of(e->failure, all.failure)));
		}
	}
}

static int by_worth(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->worth != y->worth)
		return x->worth > y->worth ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	int order = strcmp(x->hash, y->hash);
	return order ? order : (x->stack > y->stack) - (x->stack < y->stack);
}

/* Those of a rank behind its first CANDIDATES become one for each kind and device, without a stack. */
static void fold_small(struct reduce_sites *s, size_t most)
{
	size_t out = 0;
	sort(s, by_worth);
	for (size_t i = 0, n = 0, rest = 0; i < s->count; i++) {
		struct entry e = s->list[i];
		if (i && e.rank != s->list[i - 1].rank)
			n = 0;
		if (n == 0)
			rest = SIZE_MAX;
		if (n++ < most) {
			s->list[out++] = e;
			continue;
		}
		size_t k = rest;
		for (; k < out && by_place(&s->list[k], &e); k++)
			;
		rest = rest == SIZE_MAX ? out : rest;
		if (k >= out) {
			k = out++;
			s->list[k] = (struct entry){
				.rank = e.rank, .kind = e.kind, .device = e.device, .stack = UINT32_MAX, .worth = -1
			};
		}
		s->list[k].peak += e.peak;
		s->list[k].peak_blocks += e.peak_blocks;
		s->list[k].end += e.end;
		s->list[k].end_blocks += e.end_blocks;
		s->list[k].failure += e.failure;
		s->list[k].estimated = s->list[k].estimated || e.estimated;
	}
	s->count = out;
}

static int same_hash(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = by_place(x, y);
	return order ? order : strcmp(x->hash, y->hash);
}

/* Stacks that differ only in what a name leaves out are one. */
static void join_same(struct reduce_sites *s)
{
	size_t out = 0;
	sort(s, same_hash);
	for (size_t i = 0; i < s->count; i++) {
		struct entry e = s->list[i], *last = out ? &s->list[out - 1] : NULL;
		if (!last || same_hash(last, &e)) {
			s->list[out++] = e;
			continue;
		}
		last->peak += e.peak;
		last->peak_blocks += e.peak_blocks;
		last->end += e.end;
		last->end_blocks += e.end_blocks;
		last->failure += e.failure;
		last->worth += e.worth;
		last->estimated = last->estimated || e.estimated;
		last->stack = last->stack < e.stack ? last->stack : e.stack;
	}
	s->count = out;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* The stacks that will be named, sorted; allocated. */
static uint32_t *stacks_wanted(const struct reduce_sites *s, size_t *count)
{
	uint32_t *list = calloc(s->count + 1, sizeof(*list));
	*count = 0;
	for (size_t i = 0; list && i < s->count; i++)
		if (s->list[i].stack != UINT32_MAX)
			list[(*count)++] = s->list[i].stack;
	if (*count)
		qsort(list, *count, sizeof(*list), by_number);
	return list;
}

/* Their modules are read one after the other, which costs far less than frame by frame. */
static void look_ahead(struct reduction *r, const struct reduce_sites *s)
{
	const struct selection *sel = r->selection;
	size_t count;
	uint32_t *wanted = stacks_wanted(s, &count);
	for (unsigned id = 0; wanted && id < reader_processes(sel->reader); id++) {
		const struct model_process *mp = model_process(sel->model, id);
		for (uint32_t i = 0; i < mp->site_count; i++) {
			const struct model_site *site = &mp->sites[i];
			uint32_t stack =
				stacks_of_site(sel->stacks, mp->process, site->number, site->node, site->node2);
			if (!bsearch(&stack, wanted, count, sizeof(*wanted), by_number))
				continue;
			stacks_prepare(sel->stacks, mp->process, site->node);
			stacks_prepare(sel->stacks, mp->process, site->node2);
		}
	}
	free(wanted);
	stacks_look_ahead(sel->stacks, NULL);
}

static int name_all(struct reduction *r, struct reduce_sites *s)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->list[i].stack == UINT32_MAX)
			continue;
		const struct stack_name *name = stack_names_find(r->names, s->list[i].stack);
		if (!name)
			return error_memory();
		memcpy(s->list[i].hash, name->hash, sizeof(name->hash));
	}
	return 0;
}

static void mark_growing(struct reduce_sites *s)
{
	for (size_t g = 0; g < s->grow_count; g++) {
		struct entry *most = NULL;
		for (size_t i = 0; i < s->count; i++) {
			struct entry *e = &s->list[i];
			bool same = e->rank == s->grows[g].rank && e->kind == s->grows[g].kind &&
				    !strcmp(e->hash, s->grows[g].stack);
			most = same && (!most || e->end > most->end) ? e : most;
		}
		if (most) {
			most->grows = &s->grows[g];
			most->worth += 2;
		}
	}
}

int sites_collect(struct reduction *r)
{
	const struct selection *sel = r->selection;
	struct reduce_sites *s = r->sites = calloc(1, sizeof(*s));
	int e = s && (s->counts = calloc(r->ranks.count + 1, sizeof(*s->counts))) ? 0 : error_memory();
	for (unsigned id = 0; e == 0 && id < reader_processes(sel->reader); id++)
		e = collect_process(r, s, model_process(sel->model, id));
	if (e == 0)
		e = collect_failures(r, s);
	if (e < 0)
		return e;
	hash_index_fini(&s->index);
	for (size_t i = 0; i < s->count; i++)
		s->counts[s->list[i].rank]++;
	weigh(s);
	fold_small(s, CANDIDATES);
	look_ahead(r, s);
	e = name_all(r, s);
	if (e == 0)
		e = growth_list(r, &s->grows, &s->grow_count);
	if (e < 0)
		return e;
	join_same(s);
	mark_growing(s);
	return 0;
}

void sites_free(struct reduce_sites *s)
{
	if (!s)
		return;
	hash_index_fini(&s->index);
	free(s->list);
	free(s->counts);
	free(s->grows);
	free(s);
}

size_t sites_count(const struct reduce_sites *s, size_t rank)
{
	return s->counts[rank];
}

static json_t *whole(double n)
{
	return json_integer((json_int_t)llround(n));
}

static void put_growth(json_t *o, const struct site_grows *g)
{
	json_object_set_new(o, "outlook", json_string(g->outlook));
	json_object_set_new(o, "certainty", json_string(g->certainty));
	json_object_set_new(o, "grown", whole(g->grown));
	json_object_set_new(o, "slope_per_s", json_real_or_null(true, g->per_s));
	json_object_set_new(o, "slope_per_step", json_real_or_null(true, g->per_step));
	json_object_set_new(o, "slope_error", json_real(g->error));
}

static void put_entry(struct reduction *r, const struct entry *e)
{
	const struct selection *sel = r->selection;
	const struct model_device *d = e->device == MODEL_NO_DEVICE ? NULL : model_device(sel->model, e->device);
	json_t *o = json_object();
	json_object_set_new(o, "rank", json_rank(r->ranks.items[e->rank].rank));
	json_object_set_new(o, "kind", json_string(kind_name(e->kind)));
	json_object_set_new(o, "device", d ? json_text(d->name) : json_null());
	if (e->stack != UINT32_MAX) {
		enum category c = categories_of(sel->categories, e->stack, LIFETIME_UNKNOWN);
		stack_names_mark(r->names, e->stack);
		json_object_set_new(o, "stack", json_string(e->hash));
		json_object_set_new(o, "category", json_string(category_name(c)));
	}
	json_object_set_new(o, "peak", whole(e->peak));
	json_object_set_new(o, "peak_blocks", whole(e->peak_blocks));
	json_object_set_new(o, "failure", d && diagnosis_failure(d) ? whole(e->failure) : json_null());
	json_object_set_new(o, "end", whole(e->end));
	json_object_set_new(o, "end_blocks", whole(e->end_blocks));
	json_object_set_new(o, "estimated", json_boolean(e->estimated));
	if (e->grows)
		put_growth(o, e->grows);
	rows_put(&r->rows, TABLE_site, o);
}

/* From a copy: with less room it is called again. */
void sites_put(struct reduction *r)
{
	struct reduce_sites s = { .count = r->sites->count };
	s.list = malloc((s.count + 1) * sizeof(*s.list));
	if (!s.list) {
		r->rows.error = error_memory();
		return;
	}
	if (s.count)
		memcpy(s.list, r->sites->list, s.count * sizeof(*s.list));
	fold_small(&s, r->bounds.sites);
	for (size_t i = 0; i < s.count; i++)
		put_entry(r, &s.list[i]);
	free(s.list);
}
