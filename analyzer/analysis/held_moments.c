/* memtrace peak --by holder: who held what was alive at a moment, as the nearest snapshot of each process saw it. */
#include "analyzer/analysis/held.h"

#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define NO_OWNER UINT32_MAX

/* A block that was alive at the moment. */
struct alive {
	uint64_t addr, size, ns;
	uint32_t process, stack, owner;
	enum { NOT_SEEN, SEEN, HELD } state; /* HELD: by an object, though it may have no row */
};

struct named {
	UT_hash_handle hh;
	uint32_t owner;
	char *label;
};

struct by_holder {
	const struct selection *sel;
	const struct moment *at;
	const struct model *model; /* of the moment */
	struct alive *alive;
	size_t count, room, first, end; /* first to end: those of the process that is looked at */
	uint32_t process;
	uint32_t *stacks; /* what --filter lets through; in order */
	size_t stack_count;
	struct named *names;
	struct owners *owners;
	size_t owner_room;
};

/* ---- what was alive -------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static int list_stacks(struct by_holder *b)
{
	const struct owners *o = b->at->sites;
	size_t room = 0;
	for (size_t i = 0; b->sel->options->filter && i < o->count; i++) {
		int e = vec_reserve_raw(b->stacks, room, b->stack_count + o->owners[i].stack_count);
		if (e)
			return e;
		for (size_t k = 0; k < o->owners[i].stack_count; k++)
			b->stacks[b->stack_count++] = stacks_merged(b->sel->stacks, o->owners[i].stacks[k].stack);
	}
	if (b->stack_count)
		qsort(b->stacks, b->stack_count, sizeof(*b->stacks), by_number);
	return 0;
}

static int add_alive(void *arg, const struct model_block *block)
{
	struct by_holder *b = arg;
	const struct process *p = reader_process(b->sel->reader, b->process);
	const struct model_site *s = block->inherited ? NULL : model_site(b->model, b->process, block->site);
	if (!s || (b->at->device && block->device != b->at->device->index))
		return 0;
	uint32_t stack = stacks_merged(b->sel->stacks, stacks_of(b->sel->stacks, p, s->node, s->node2));
	if (b->sel->options->filter && !bsearch(&stack, b->stacks, b->stack_count, sizeof(*b->stacks), by_number))
		return 0;
	int e = vec_reserve_raw(b->alive, b->room, b->count + 1);
	if (!e)
		b->alive[b->count++] =
			(struct alive){ block->addr, block->size, block->ns, b->process, stack, NO_OWNER, NOT_SEEN };
	return e;
}

static int by_address(const void *a, const void *b)
{
	const struct alive *x = a, *y = b;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* At a peak by a pass of its own. */
static int list_alive(struct by_holder *b)
{
	struct model_query q = { .until_ns = b->at->ns, .processes = b->sel->processes };
	struct reader *reader = NULL;
	struct model *model = NULL;
	bool again = b->at->measure == OWNERS_HOST_PEAK;
	int e = list_stacks(b);
	if (!e && again)
		e = selection_run_again(b->sel, &reader, &model, &q);
	b->model = again ? model : b->sel->model;
	for (b->process = 0; !e && b->process < reader_processes(b->sel->reader); b->process++)
		if (selection_has(b->sel, reader_process(b->sel->reader, b->process)))
			e = model_each_block(b->model, b->process, b->at->kind, add_alive, b);
	if (!e && b->count)
		qsort(b->alive, b->count, sizeof(*b->alive), by_address);
	model_free(model);
	reader_close(reader);
	return e;
}

/* ---- who held it ----------------------------------------------------------------------------------------- */

static uint32_t owner_of(struct by_holder *b, char *label)
{
	struct named *n = NULL;
	if (label)
		HASH_FIND_STR(b->names, label, n);
	if (!label || n) {
		free(label);
		return n ? n->owner : NO_OWNER;
	}
	n = calloc(1, sizeof(*n));
	if (!n || vec_reserve(b->owners->owners, b->owner_room, b->owners->count + 1)) {
		free(n);
		free(label);
		return NO_OWNER;
	}
	*n = (struct named){ .label = label, .owner = (uint32_t)b->owners->count };
	HASH_ADD_KEYPTR(hh, b->names, n->label, strlen(n->label), n);
	b->owners->owners[b->owners->count++] =
		(struct owner){ .label = strdup(label), .rank_low = PROCESS_NO_RANK, .rank_high = PROCESS_NO_RANK };
	return n->owner;
}

/* The same block, not another one at its address. */
static struct alive *find(const struct by_holder *b, const struct hold_block *block)
{
	size_t i = b->first + SEARCH_FIRST(k, b->end - b->first, b->alive[b->first + k].addr >= block->addr);
	struct alive *a = &b->alive[i];
	return i < b->end && a->addr == block->addr && a->ns == block->ns && a->size == block->size ? a : NULL;
}

static bool wants(void *arg, const struct hold_block *block)
{
	return find(arg, block) != NULL;
}

static void held(void *arg, const struct hold_block *block, const struct holder *h)
{
	struct by_holder *b = arg;
	find(b, block)->owner = owner_of(b, holder_text(h, false));
}

static void look_at(struct by_holder *b, const struct hold_graph *g)
{
	for (size_t i = 0; i < g->block_count + g->loose_count; i++) {
		bool loose = i >= g->block_count;
		const struct hold_block *block = loose ? &g->loose[i - g->block_count] : &g->blocks[i];
		struct alive *a = block->kind == b->at->kind ? find(b, block) : NULL;
		if (a)
			a->state = !loose && g->place[g->items + i] != HOLD_NONE ? HELD : SEEN;
	}
}

static const char *unheld(const struct alive *a, const struct held_snapshot *s)
{
	if (!s)
		return "(its process has no snapshot)";
	switch (a->state) {
	case HELD:
		return "(smaller holders)";
	case SEEN:
		return "(no object of Python: C and C++ alone)";
	default:
		return a->ns > s->ns ? "(made after the snapshot)" : "(freed before the snapshot)";
	}
}

/* What has no holder yet gets a row that says why. */
static void tell_rest(struct by_holder *b, const struct held_snapshot *s)
{
	for (size_t i = b->first; i < b->end; i++)
		if (b->alive[i].owner == NO_OWNER)
			b->alive[i].owner = owner_of(b, strdup(unheld(&b->alive[i], s)));
}

static int nearest(const struct held_snapshot *s, uint64_t ns)
{
	int best = 0;
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < s->count; i++) {
		uint64_t at = process_ns(s->process, s->heads[i].ticks), off = at > ns ? at - ns : ns - at;
		if (off <= least) {
			least = off;
			best = i;
		}
	}
	return best;
}

static int note(struct held_seens *seen, const struct held_snapshot *s, const struct process *p)
{
	for (size_t i = 0; i < seen->count; i++)
		if (seen->list[i].process == p && seen->list[i].number == s->number)
			return 0;
	int e = vec_reserve(seen->list, seen->room, seen->count + 1);
	if (!e)
		seen->list[seen->count++] = (struct held_seen){ p, s->number, s->snapshot.head.why, s->ns };
	return e;
}

/* Those of one process, by a pass of its own over the trace until its snapshot. */
static int ask_process(struct by_holder *b, struct held_seens *seen)
{
	struct held_pass p;
	struct holders *h = NULL;
	const struct holders_query q = {
		.kind = b->at->kind, .device = MODEL_NO_DEVICE, .wants = wants, .each = held, .arg = b
	};
	int n = held_pass_heads(&p, b->sel, b->process), e = n < 0 ? n : 0;
	if (n > 0)
		e = held_open(&p.held, &p.sel, nearest(&p.held, b->at->ns));
	if (n > 0 && !e) {
		look_at(b, p.held.graph);
		e = holders_find(&h, p.held.graph, &q);
		e = e ? e : note(seen, &p.held, reader_process(b->sel->reader, b->process));
	}
	holders_free(h);
	if (!e)
		tell_rest(b, n > 0 ? &p.held : NULL);
	held_pass_close(&p);
	return e;
}

/* ---- owners ---------------------------------------------------------------------------------------------- */

static int by_owner(const void *a, const void *b)
{
	const struct alive *x = a, *y = b;
	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
}

static int larger_stack(const void *a, const void *b)
{
	const struct owner_stack *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static int larger_owner(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->label, y->label);
}

static void add_rank(struct owner *o, int64_t rank)
{
	if (rank == PROCESS_NO_RANK)
		return;
	o->rank_low = o->rank_low == PROCESS_NO_RANK || rank < o->rank_low ? rank : o->rank_low;
	o->rank_high = rank > o->rank_high ? rank : o->rank_high;
}

/* Adds n blocks, by stack, to their owner. */
static int fill(const struct by_holder *b, struct owner *o, const struct alive *a, size_t n)
{
	size_t room = 0;
	unsigned char *seen = calloc(reader_processes(b->sel->reader) + 1, 1);
	int e = seen && o->label ? 0 : error_memory();
	for (size_t i = 0; !e && i < n; i++) {
		if (!i || a[i].stack != a[i - 1].stack) {
			e = vec_reserve_raw(o->stacks, room, o->stack_count + 1);
			if (e)
				break;
			o->stacks[o->stack_count++] = (struct owner_stack){ .stack = a[i].stack };
		}
		o->stacks[o->stack_count - 1].bytes += a[i].size;
		o->stacks[o->stack_count - 1].blocks++;
		o->bytes += a[i].size;
		o->blocks++;
		o->processes += !seen[a[i].process];
		seen[a[i].process] = 1;
		add_rank(o, reader_process(b->sel->reader, a[i].process)->rank);
	}
	free(seen);
	if (e)
		return e;
	qsort(o->stacks, o->stack_count, sizeof(*o->stacks), larger_stack);
	o->category = categories_of(b->sel->categories, o->stacks->stack, LIFETIME_UNKNOWN);
	return 0;
}

/* What is known as a sum alone: small blocks of which no events are there. */
static int add_rest(struct by_holder *b)
{
	struct owners *o = b->owners;
	const struct owners *all = b->at->sites;
	if (b->sel->options->filter || all->bytes <= o->bytes)
		return 0;
	uint32_t rest = owner_of(b, strdup("(recorded as sums alone)"));
	struct owner_stack *none = calloc(1, sizeof(*none));
	if (rest == NO_OWNER || !none) {
		free(none);
		return error_memory();
	}
	o->owners[rest].bytes = all->bytes - o->bytes;
	o->owners[rest].blocks = all->blocks > o->blocks ? all->blocks - o->blocks : 0;
	o->owners[rest].stacks = none;
	o->owners[rest].stack_count = 1;
	o->bytes = all->bytes;
	o->blocks += o->owners[rest].blocks;
	return 0;
}

static int add_up(struct by_holder *b)
{
	struct owners *o = b->owners;
	int e = 0;
	if (b->count)
		qsort(b->alive, b->count, sizeof(*b->alive), by_owner);
	for (size_t i = 0, k; !e && i < b->count; i = k) {
		if (b->alive[i].owner == NO_OWNER)
			return error_memory();
		for (k = i; k < b->count && b->alive[k].owner == b->alive[i].owner; k++) {
			o->bytes += b->alive[k].size;
			o->blocks++;
		}
		e = fill(b, &o->owners[b->alive[i].owner], &b->alive[i], k - i);
	}
	e = e ? e : add_rest(b);
	if (!e && o->count)
		qsort(o->owners, o->count, sizeof(*o->owners), larger_owner);
	return e;
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

static int make(struct by_holder *b, struct held_seens *seen)
{
	int e = b->owners ? list_alive(b) : error_memory();
	for (b->first = 0; !e && b->first < b->count; b->first = b->end) {
		b->process = b->alive[b->first].process;
		for (b->end = b->first; b->end < b->count && b->alive[b->end].process == b->process;)
			b->end++;
		e = ask_process(b, seen);
	}
	return e ? e : add_up(b);
}

int held_moments(const struct selection *sel, struct moments *m, struct held_seens *seen)
{
	int e = held_check(sel);
	for (size_t i = 0; !e && i < m->count; i++) {
		struct by_holder b = { .sel = sel, .at = &m->moments[i], .owners = calloc(1, sizeof(*b.owners)) };
		struct named *n, *next;
		e = make(&b, seen);
		HASH_ITER(hh, b.names, n, next)
		{
			HASH_DEL(b.names, n);
			free(n->label);
			free(n);
		}
		free(b.alive);
		free(b.stacks);
		owners_free(e ? b.owners : m->moments[i].sites);
		if (!e)
			m->moments[i].sites = b.owners;
	}
	return e;
}
