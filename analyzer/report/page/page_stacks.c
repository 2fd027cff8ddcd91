/* What stacks had and did in windows of time: sites that look the same are one stack, and the largest are kept. */
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page_internal.h"
#include "analyzer/symbols/builtin_suppressions.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/vec.h"

#include <uthash.h>

enum { WHOLE = 4 };                /* sites whose whole stacks are shown, for each stack that there may be */
enum { AHEAD = 6 };                /* sites that are fetched while one is added */
enum { PAGE_MOST_PROCESSES = 64 }; /* of a track */

struct stack_key {
	uint32_t track, node, category;
	uint32_t label;  /* node of the name that the report's lists have for it, as "imported modules"; 0 = none */
	uint32_t thread; /* node of the name of the thread that allocated; 0 = threads are not told apart */
};

struct page_stack {
	UT_hash_handle hh;
	struct stack_key key;
	double worth;
	uint32_t *sites; /* indices for site_windows_site() */
	size_t site_count, site_room;
	bool folded; /* of what lies further in only the sum is told */
};

/* The node of a stack that is shown whole. */
struct whole_stack {
	UT_hash_handle hh;
	uint32_t stack, node;
};

struct stack_list {
	const struct report *report;
	struct page_tree *tree;
	const bool *devices; /* on the page, by index */
	struct page_stack *by_key, **sorted;
	size_t count;
	/* So many sites have their whole stacks, and so have those with the same ones, as in forked processes; others
	 * what they were for, or the line. */
	size_t whole;
	struct whole_stack *wholes;
};

/* ---- sites become stacks ------------------------------------------------------------------------------------- */

/* When it allocates, seen from the loop: what categories go by where no frame says anything. Where the program or its
 * optimizer says what a step is, and on devices, as in the diagnosis. */
static enum lifetime lifetime_of(const struct report *r, const struct window_site *s, const struct window_values *of)
{
	const struct site_windows *w = r->analysis.windows;
	const struct step_list *steps = timeline_step_list(r->analysis.timeline, s->process);
	if (site_windows_track(w, s->track)->device == MODEL_NO_DEVICE || !steps || steps->source == LOOP_NONE ||
	    steps->source == LOOP_SITES || steps->count < 2)
		return LIFETIME_UNKNOWN;
	uint64_t first = UINT64_MAX, last = 0;
	for (uint32_t i = 0; i < site_windows_count(w); i++)
		if (of[i].allocated) {
			first = first == UINT64_MAX ? site_windows_time(w, i) : first;
			last = site_windows_time(w, i + 1);
		}
	if (last <= steps->steps[0].begin_ns)
		return LIFETIME_SETUP;
	return last > steps->steps[0].end_ns && first != UINT64_MAX ? LIFETIME_STEP : LIFETIME_FIRST_STEP;
}

static uint32_t stack_of(const struct selection *sel, const struct window_site *s)
{
	return stacks_of_site(sel->stacks, reader_process(sel->reader, s->process), s->site, s->node, s->node2);
}

/* The stack of that key, which is made if it is new; NULL when there is no memory. */
static struct page_stack *stack_at(struct stack_list *l, const struct stack_key *key)
{
	struct page_stack *found;
	HASH_FIND(hh, l->by_key, key, sizeof(*key), found);
	if (found || !(found = calloc(1, sizeof(*found))))
		return found;
	found->key = *key;
	HASH_ADD(hh, l->by_key, key, sizeof(found->key), found);
	l->count++;
	return found;
}

static int append_site(struct page_stack *s, uint32_t site)
{
	int e = s ? vec_reserve(s->sites, s->site_room, s->site_count + 1) : error_memory();
	if (e == 0)
		s->sites[s->site_count++] = site;
	return e;
}

/* As the report's lists have it: what modules and libraries need for themselves has one name. Those are of the heap and
 * of mappings. */
static uint32_t label_of(struct stack_list *l, const struct window_site *s, uint32_t stack)
{
	const struct window_track *t = site_windows_track(l->report->analysis.windows, s->track);
	const char *label =
		t->device == MODEL_NO_DEVICE ? builtin_suppressed_stack(l->report->selection->stacks, stack) : NULL;
	return label ? page_tree_label(l->tree, label) : 0;
}

static uint32_t whole_node(struct stack_list *l, uint32_t stack)
{
	struct whole_stack *found;
	HASH_FIND(hh, l->wholes, &stack, sizeof(stack), found);
	return found ? found->node : 0;
}

static uint32_t add_whole(struct stack_list *l, uint32_t stack)
{
	uint32_t node = whole_node(l, stack);
	struct whole_stack *new = node ? NULL : calloc(1, sizeof(*new));
	node = node ? node : page_tree_node(l->tree, stack);
	if (new) {
		*new = (struct whole_stack){ .stack = stack, .node = node };
		HASH_ADD(hh, l->wholes, stack, sizeof(new->stack), new);
	}
	return node;
}

/* *whole: all its frames are in it. */
static struct page_stack *stack_of_site(struct stack_list *l, size_t i, struct window_values *room, bool *whole)
{
	const struct selection *sel = l->report->selection;
	const struct site_windows *w = l->report->analysis.windows;
	const struct window_site *s = site_windows_site(w, i);
	const uint32_t stack = stack_of(sel, s);
	struct stack_key key = { .track = s->track,
				 .node = i < l->whole ? add_whole(l, stack) : whole_node(l, stack),
				 .label = label_of(l, s, stack),
				 .thread = page_tree_thread(l->tree, s->process, s->site) };
	*whole = i < l->whole || key.node;
	if (!*whole)
		key.node = key.label ? key.label : page_tree_alone(l->tree, stack);
	if (site_windows_track(w, s->track)->device != MODEL_NO_DEVICE) {
		memset(room, 0, site_windows_count(w) * sizeof(*room));
		site_windows_add(w, i, 1, room);
		site_windows_sum(w, room);
	}
	key.category = categories_of(sel->categories, stack, lifetime_of(l->report, s, room));
	return stack_at(l, &key);
}

/* NULL: there was no memory for it. */
static int add_site(struct stack_list *l, struct page_stack *stack, size_t i, bool whole)
{
	int e = append_site(stack, (uint32_t)i);
	if (e == 0) {
		stack->worth += site_windows_site(l->report->analysis.windows, i)->worth;
		stack->folded = stack->folded || !whole;
	}
	return e;
}

/* Of small sites of a host with one stack of Python there may be a thousand times as many as of those stacks, by what
 * happened further in. All of them go where the first one goes, which is the largest or nearly so. */
struct python_key {
	uint32_t process, track, node2, label, thread;
};

struct python_stacks {
	struct python_stack {
		struct python_key key;
		uint32_t first; /* site */
	} *list;
	size_t count, room;
	struct hash_index index;
};

static uint64_t hash_of_key(const struct python_key *k)
{
	uint64_t h = ((uint64_t)k->process << 32 ^ k->node2) * 0x9e3779b97f4a7c15u ^ k->track ^
		     (k->label ^ (uint64_t)k->thread << 32) * 0x9e3779b1u;
	return (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
}

static uint64_t hash_of_python_stack(const void *list, uint32_t number)
{
	return hash_of_key(&((const struct python_stack *)list)[number - 1].key);
}

/* The site itself where there was none before it, or no memory. */
static uint32_t first_with(struct python_stacks *all, const struct python_key *key, uint32_t site)
{
	if ((hash_index_is_full(&all->index, all->count) &&
	     hash_index_grow(&all->index, all->list, all->count, hash_of_python_stack)) ||
	    vec_reserve_raw(all->list, all->room, all->count + 1))
		return site;
	const uint64_t hash = hash_of_key(key);
	size_t at = hash_index_home(&all->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&all->index, hash, &at)); at = hash_index_after(&all->index, at))
		if (!memcmp(&all->list[n - 1].key, key, sizeof(*key)))
			return all->list[n - 1].first;
	all->list[all->count++] = (struct python_stack){ *key, site };
	hash_index_set(&all->index, at, all->count, hash);
	return site;
}

static bool is_small(const struct stack_list *l, size_t i, const struct window_site *s)
{
	return i >= l->whole && s->node2 &&
	       site_windows_track(l->report->analysis.windows, s->track)->device == MODEL_NO_DEVICE;
}

/* For each site the one that is asked in its place. NULL when there is no memory. */
static uint32_t *firsts_of(struct stack_list *l, size_t count)
{
	struct python_stacks all = { 0 };
	uint32_t *firsts = malloc((count + 1) * sizeof(*firsts));
	for (uint32_t i = 0; firsts && i < count; i++) {
		const struct window_site *s = site_windows_site(l->report->analysis.windows, i);
		firsts[i] = i;
		if (!is_small(l, i, s))
			continue;
		firsts[i] = first_with(&all,
				       &(struct python_key){ s->process, s->track, s->node2,
							     label_of(l, s, stack_of(l->report->selection, s)),
							     page_tree_thread(l->tree, s->process, s->site) },
				       i);
	}
	free(all.list);
	hash_index_fini(&all.index);
	return firsts;
}

/* Each file once, rather than one for each stack. */
static void look_ahead(const struct selection *sel, const struct site_windows *w, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct window_site *s = site_windows_site(w, i);
		const struct process *p = reader_process(sel->reader, s->process);
		stacks_prepare(sel->stacks, p, s->node);
		stacks_prepare(sel->stacks, p, s->node2);
	}
	stacks_look_ahead(sel->stacks, NULL);
}

static int by_worth(const void *a, const void *b)
{
	const struct page_stack *const *x = a, *const *y = b;
	if ((*x)->worth != (*y)->worth)
		return (*x)->worth < (*y)->worth ? 1 : -1;
	return memcmp(&(*x)->key, &(*y)->key, sizeof((*x)->key));
}

static int fill(struct stack_list *l)
{
	const struct site_windows *w = l->report->analysis.windows;
	const size_t count = site_windows_sites(w);
	struct window_values *room = calloc(site_windows_count(w) + 1ul, sizeof(*room));
	struct page_stack **stacks = calloc(count + 1, sizeof(*stacks));
	look_ahead(l->report->selection, w, count);
	uint32_t *firsts = firsts_of(l, count);
	int e = room && stacks && firsts ? 0 : error_memory();
	for (size_t i = 0; i < count && e == 0; i++) {
		bool whole = false;
		stacks[i] = firsts[i] == i ? stack_of_site(l, i, room, &whole) : stacks[firsts[i]];
		e = add_site(l, stacks[i], i, whole);
	}
	free(firsts);
	free(stacks);
	free(room);
	return e;
}

static int sort(struct stack_list *l)
{
	size_t n = 0;
	free(l->sorted);
	l->sorted = calloc(l->count + 1, sizeof(struct page_stack *));
	if (!l->sorted)
		return error_memory();
	for (struct page_stack *s = l->by_key; s; s = s->hh.next)
		l->sorted[n++] = s;
	qsort(l->sorted, l->count, sizeof(*l->sorted), by_worth);
	return 0;
}

/* All but the first `keep` become those of their outermost frames. */
static int fold(struct stack_list *l, size_t keep, unsigned depth)
{
	const size_t count = l->count;
	int e = 0;
	for (size_t i = keep; i < count && e == 0; i++) {
		struct page_stack *s = l->sorted[i];
		struct stack_key key = s->key;
		key.node = page_tree_outer(l->tree, key.node, depth);
		if (key.node == s->key.node)
			continue;
		struct page_stack *outer = stack_at(l, &key);
		for (size_t k = 0; k < s->site_count && e == 0; k++)
			e = append_site(outer, s->sites[k]);
		if (e == 0) {
			outer->worth += s->worth;
			outer->folded = true;
			HASH_DEL(l->by_key, s);
			l->count--;
			free(s->sites);
			free(s);
		}
	}
	return e < 0 ? e : sort(l);
}

/* Down to `most`: the small ones lose their inner frames, as many as it takes. */
static int fold_all(struct stack_list *l, size_t most)
{
	static const unsigned depths[] = { 12, 8, 5, 3, 2, 1 };
	int e = sort(l);
	for (size_t i = 0; i < sizeof(depths) / sizeof(*depths) && e == 0 && l->count > most; i++)
		e = fold(l, most * 3 / 4, depths[i]);
	return e;
}

static void fini(struct stack_list *l)
{
	struct page_stack *s, *next;
	HASH_ITER(hh, l->by_key, s, next)
	{
		HASH_DEL(l->by_key, s);
		free(s->sites);
		free(s);
	}
	struct whole_stack *whole, *other;
	HASH_ITER(hh, l->wholes, whole, other)
	{
		HASH_DEL(l->wholes, whole);
		free(whole);
	}
	free(l->sorted);
}

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

/* By window in which it differs from the one before: live bytes, blocks; at_high less live; allocated, passing. */
static json_t *json_stack_windows(const struct window_values *v, uint32_t count)
{
	json_t *o = json_object(), *at = json_array(), *live = json_array(), *blocks = json_array();
	json_t *high = json_array(), *allocated = json_array(), *passing = json_array();
	struct window_values last = { 0 };
	for (uint32_t i = 0; i < count; i++) {
		bool same = v[i].live == last.live && v[i].blocks == last.blocks && v[i].at_high == v[i].live &&
			    last.at_high == last.live && !v[i].allocated && !v[i].passing && !last.allocated &&
			    !last.passing;
		if (!same) {
			json_array_append_new(at, json_integer(i));
			json_array_append_new(live, json_bytes(v[i].live));
			json_array_append_new(blocks, json_bytes(v[i].blocks));
			json_array_append_new(high, json_integer((json_int_t)(v[i].at_high - v[i].live)));
			json_array_append_new(allocated, json_bytes(v[i].allocated));
			json_array_append_new(passing, json_bytes(v[i].passing));
		}
		last = v[i];
	}
	json_object_set_new(o, "at", at);
	json_object_set_new(o, "live", live);
	json_object_set_new(o, "blocks", blocks);
	json_object_set_new(o, "high", high);
	json_object_set_new(o, "allocated", allocated);
	json_object_set_new(o, "passing", passing);
	return o;
}

/* ---- processes ----------------------------------------------------------------------------------------------- */

/* The largest processes of a track, whose sites are added up while those of stacks are: what a site had lies anywhere
 * in memory, so it is looked up once. */
struct process_sum {
	uint32_t process;
	double worth;
	struct window_values *windows;
};

struct process_sums {
	unsigned tracks;
	struct process_sum (*largest)[PAGE_MOST_PROCESSES]; /* by track, the largest first; windows NULL = no more */
};

static int by_sum(const void *a, const void *b)
{
	const struct process_sum *x = a, *y = b;
	if (x->worth != y->worth)
		return x->worth < y->worth ? 1 : -1;
	return (x->process > y->process) - (x->process < y->process);
}

static void sums_free(struct process_sums *p)
{
	for (unsigned t = 0; p->largest && t < p->tracks; t++)
		for (unsigned i = 0; i < PAGE_MOST_PROCESSES; i++)
			free(p->largest[t][i].windows);
	free(p->largest);
}

/* `worth` is that of each process in the track. */
static int pick_largest(struct process_sum *largest, const double *worth, struct process_sum *all, unsigned count,
			uint32_t windows)
{
	for (unsigned id = 0; id < count; id++)
		all[id] = (struct process_sum){ .process = id, .worth = worth[id] };
	qsort(all, count, sizeof(*all), by_sum);
	for (unsigned i = 0; i < PAGE_MOST_PROCESSES && i < count && all[i].worth > 0; i++) {
		largest[i] = all[i];
		largest[i].windows = calloc(windows + 1ul, sizeof(*largest[i].windows));
		if (!largest[i].windows)
			return error_memory();
	}
	return 0;
}

/* Of one process alone there is nothing to add up. */
static int sums_init(struct process_sums *p, const struct report *r)
{
	const struct site_windows *w = r->analysis.windows;
	const unsigned count = reader_processes(r->selection->reader);
	*p = (struct process_sums){ .tracks = r->selection->selected > 1 ? site_windows_tracks(w) : 0 };
	struct process_sum *all = calloc(count + 1ul, sizeof(*all));
	double *worth = calloc(p->tracks * (size_t)count + 1, sizeof(*worth));
	p->largest = calloc(p->tracks + 1ul, sizeof(*p->largest));
	int e = p->largest && all && worth ? 0 : error_memory();
	for (size_t i = 0; i < site_windows_sites(w) && p->tracks && e == 0; i++) {
		const struct window_site *s = site_windows_site(w, i);
		worth[s->track * (size_t)count + s->process] += s->worth;
	}
	for (unsigned t = 0; t < p->tracks && e == 0; t++)
		e = pick_largest(p->largest[t], worth + t * (size_t)count, all, count, site_windows_count(w));
	free(worth);
	free(all);
	return e;
}

static struct window_values *sum_of(const struct process_sums *p, const struct window_site *s)
{
	for (unsigned i = 0; s->track < p->tracks && i < PAGE_MOST_PROCESSES && p->largest[s->track][i].windows; i++)
		if (p->largest[s->track][i].process == s->process)
			return p->largest[s->track][i].windows;
	return NULL;
}

/* With the ids of the report's processes. */
static json_t *json_processes(const struct process_sums *p, unsigned track, const struct site_windows *w)
{
	json_t *list = json_array();
	for (unsigned i = 0; track < p->tracks && i < PAGE_MOST_PROCESSES && p->largest[track][i].windows; i++) {
		site_windows_sum(w, p->largest[track][i].windows);
		json_t *o = json_stack_windows(p->largest[track][i].windows, site_windows_count(w));
		json_object_set_new(o, "process", json_integer(p->largest[track][i].process));
		json_array_append_new(list, o);
	}
	return list;
}

/* ---- stacks -------------------------------------------------------------------------------------------------- */

/* What its sites had together, into `room`, and into the sums of their processes; whether that is an estimate.
 * *temporary gets how many blocks their threads freed before they allocated anything else. */
static bool sum_up(const struct report *r, const struct page_stack *s, const struct process_sums *p,
		   struct window_values *room, uint64_t *temporary)
{
	const struct site_windows *w = r->analysis.windows;
	const struct selection *sel = r->selection;
	bool estimated = false;
	*temporary = 0;
	memset(room, 0, site_windows_count(w) * sizeof(*room));
	for (size_t i = 0; i < s->site_count; i++) {
		const struct window_site *site = site_windows_site(w, s->sites[i]);
		if (i + AHEAD < s->site_count)
			site_windows_prefetch(w, s->sites[i + AHEAD]);
		if (i + 2 * AHEAD < s->site_count)
			__builtin_prefetch(site_windows_site(w, s->sites[i + 2 * AHEAD]));
		const bool sampled = reader_process(sel->reader, site->process)->stacks == MT_STACKS_SAMPLE;
		const struct model_site *m = model_site(sel->model, site->process, site->site);
		const double weight = m && sampled ? owners_weight(sel->reader, m) : 1;
		*temporary += m ? (uint64_t)(m->temporary * weight) : 0;
		estimated = estimated || weight != 1;
		site_windows_add(w, s->sites[i], weight, room);
		struct window_values *of_process = sum_of(p, site);
		if (of_process)
			site_windows_add(w, s->sites[i], weight, of_process);
	}
	site_windows_sum(w, room);
	return estimated;
}

static json_t *json_page_stack(const struct report *r, struct page_tree *t, const struct page_stack *s,
			       const struct process_sums *p, struct window_values *room)
{
	const struct site_windows *w = r->analysis.windows;
	const struct selection *sel = r->selection;
	uint64_t temporary;
	const bool estimated = sum_up(r, s, p, room, &temporary);
	json_t *o = json_stack_windows(room, site_windows_count(w));
	json_object_set_new(o, "track", json_integer(s->key.track));
	json_object_set_new(o, "node", json_integer(page_tree_use(t, s->key.node)));
	const struct window_site *first = site_windows_site(w, s->sites[0]);
	json_object_set_new(o, "site", json_integer(s->folded ? -2 : page_tree_site(t, stack_of(sel, first))));
	if (s->key.label)
		json_object_set_new(o, "label", json_integer(page_tree_use(t, s->key.label)));
	if (s->key.thread)
		json_object_set_new(o, "thread", json_integer(page_tree_use(t, s->key.thread)));
	json_object_set_new(o, "category", json_text(category_name(s->key.category)));
	json_object_set_new(o, "sites", json_bytes(s->site_count));
	if (temporary)
		json_object_set_new(o, "temporary", json_bytes(temporary));
	if (estimated)
		json_object_set_new(o, "estimated", json_true());
	return o;
}

static json_t *json_column(const struct window_track *t, uint32_t count, size_t offset)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < count; i++) {
		uint64_t value;
		memcpy(&value, (const char *)&t->windows[i] + offset, sizeof(value));
		json_array_append_new(list, json_bytes(value));
	}
	return list;
}

static json_t *json_track(const struct selection *sel, const struct window_track *t, uint32_t count)
{
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string(kind_name(t->kind)));
	json_object_set_new(o, "device",
			    json_text(t->device == MODEL_NO_DEVICE ? NULL : model_device(sel->model, t->device)->name));
	json_object_set_new(o, "uuid",
			    json_text(t->device == MODEL_NO_DEVICE ? NULL : model_device(sel->model, t->device)->uuid));
	json_object_set_new(o, "live", json_column(t, count, offsetof(struct window_values, live)));
	json_object_set_new(o, "high", json_column(t, count, offsetof(struct window_values, at_high)));
	json_object_set_new(o, "allocated", json_column(t, count, offsetof(struct window_values, allocated)));
	json_object_set_new(o, "passing", json_column(t, count, offsetof(struct window_values, passing)));
	json_object_set_new(o, "blocks", json_column(t, count, offsetof(struct window_values, blocks)));
	return o;
}

static bool is_shown(const struct stack_list *l, const struct window_track *t)
{
	return l->report->selection->kinds & 1u << t->kind && (t->device == MODEL_NO_DEVICE || l->devices[t->device]);
}

/* Stacks of which there is no room are in the sums of processes. */
static void add_stacks(json_t *list, const struct stack_list *l, size_t most, const struct process_sums *p,
		       struct window_values *room)
{
	const struct report *r = l->report;
	uint64_t temporary;
	for (size_t i = 0; i < l->count; i++)
		if (json_array_size(list) < most &&
		    is_shown(l, site_windows_track(r->analysis.windows, l->sorted[i]->key.track)))
			json_array_append_new(list, json_page_stack(r, l->tree, l->sorted[i], p, room));
		else if (p->tracks)
			sum_up(r, l->sorted[i], p, room, &temporary);
}

static json_t *json_tracks(const struct stack_list *l, const struct process_sums *p)
{
	const struct report *r = l->report;
	const struct site_windows *w = r->analysis.windows;
	json_t *list = json_array();
	for (unsigned i = 0; i < site_windows_tracks(w); i++) {
		const bool shown = is_shown(l, site_windows_track(w, i));
		json_t *track =
			shown ? json_track(r->selection, site_windows_track(w, i), site_windows_count(w)) : json_null();
		if (shown)
			json_object_set_new(track, "processes", json_processes(p, i, w));
		json_array_append_new(list, track);
	}
	return list;
}

int page_stacks_json(json_t *o, const struct report *r, struct page_tree *tree, const bool *devices, size_t most)
{
	const struct site_windows *w = r->analysis.windows;
	const uint32_t count = site_windows_count(w);
	struct stack_list l = { .report = r, .tree = tree, .devices = devices, .whole = WHOLE * most };
	struct process_sums p;
	json_t *times = json_array(), *stacks = json_array();
	struct window_values *room = calloc(count + 1ul, sizeof(*room));
	int e = sums_init(&p, r);
	if (e == 0)
		e = room ? fill(&l) : error_memory();
	if (e == 0)
		e = fold_all(&l, most);
	if (e == 0)
		add_stacks(stacks, &l, most, &p, room);
	for (uint32_t i = 0; i <= count; i++)
		json_array_append_new(times, json_seconds(site_windows_time(w, i)));
	json_object_set_new(o, "times_s", times);
	json_object_set_new(o, "tracks", e == 0 ? json_tracks(&l, &p) : json_array());
	json_object_set_new(o, "stacks_left_out", json_bytes(l.count - json_array_size(stacks)));
	json_object_set_new(o, "stacks", stacks);
	free(room);
	sums_free(&p);
	fini(&l);
	return e;
}
