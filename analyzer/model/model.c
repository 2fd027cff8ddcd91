/* Drives the books of all processes with the reader's stream, and shows the result. */
#include "analyzer/model/model.h"

#include "analyzer/model/device.h"
#include "analyzer/model/host_pools.h"
#include "analyzer/model/loss_doubt.h"
#include "analyzer/model/process_memory.h"
#include "analyzer/model/site_table.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

enum { PREFETCH = 16, PROGRESS_EVENTS = 65536 };

/* ---- time ------------------------------------------------------------------------------------------------ */

static void halve_timelines(struct model *m)
{
	for (int k = 0; k < MODEL_KINDS; k++) {
		for (size_t i = 0; i < m->process_count; i++)
			series_halve(&m->processes[i].seen.timeline[k]);
		for (size_t i = 0; i <= m->host_count; i++)
			series_halve(&m->hosts[i].timeline[k]);
	}
	devices_halve(m);
}

/* Figures begin now: counts and peaks of before are forgotten, what is live stays. */
static void restart(struct process_memory *memory, uint64_t ns)
{
	for (int k = 0; k < MODEL_KINDS; k++) {
		if (memory->seen.ended)
			memory->kind[k].totals = (struct model_totals){ 0 };
		peak_sum_restart(&memory->kind[k], ns);
	}
	for (size_t i = 0; i < site_table_count(&memory->sites); i++) {
		struct model_site *s = &memory->sites.sites[i];
		if (memory->seen.ended)
			s->live_bytes = s->live_blocks = 0;
	}
	for (int b = 0; b < MODEL_BINS; b++) {
		struct model_bin *bin = &memory->seen.bins[b];
		*bin = (struct model_bin){ .live_bytes = bin->live_bytes, .live_blocks = bin->live_blocks };
		if (memory->seen.ended)
			*bin = (struct model_bin){ 0 };
	}
	for (size_t n = 0; n < memory->sites.count && !memory->sites.numbers_only; n++)
		memory->sites.origins[n].temporary = 0;
	for (int c = 0; c < MAP_CLASSES; c++)
		memory->seen.map[c].peak_bytes = memory->seen.map[c].bytes;
	memory->seen.events = memory->seen.lost_events = memory->seen.map_given_bytes = 0;
	host_pool_restart(memory, ns);
	devices_restart_process(memory, ns);
}

static void reach_from(struct model *m)
{
	for (size_t i = 0; i < m->process_count; i++)
		restart(&m->processes[i], m->query.from_ns);
	for (size_t i = 0; i <= m->host_count; i++) {
		for (int k = 0; k < MODEL_KINDS; k++)
			peak_sum_restart(&m->hosts[i].kind[k], m->query.from_ns);
		for (int c = 0; c < MAP_CLASSES; c++)
			m->hosts[i].map[c].peak_bytes = m->hosts[i].map[c].bytes;
	}
	devices_restart(m, m->query.from_ns);
	m->failure_count = 0;
	hash_index_fini(&m->failure_index);
	m->from_reached = true;
}

static void reach(struct model *m, uint64_t ns)
{
	if (ns < m->query.from_ns)
		return;
	if (!m->from_reached)
		reach_from(m);
	for (unsigned n = axis_advance(&m->timeline, ns); n; n--)
		halve_timelines(m);
}

static inline void move_to(struct model *m, uint64_t ns)
{
	m->end_ns = ns;
	if (ns >= m->timeline.next_ns || !m->from_reached)
		reach(m, ns);
}

/* ---- at query.level_ns ----------------------------------------------------------------------------------- */

/* The last of n stretches that begins at an address or below; NULL if none does. */
static struct model_stretch *stretch_of(struct model_stretch *s, size_t n, uint64_t addr)
{
	const size_t low = SEARCH_FIRST(i, n, s[i].start > addr);
	return low ? &s[low - 1] : NULL;
}

static void fill_stretches(const struct process_memory *memory, struct model_stretch *s, size_t n)
{
	for (struct model_stretch *x = s; x < s + n; x++) {
		const struct range *r = ranges_overlap(&memory->maps, x->start, x->end);
		for (; r; r = ranges_overlap(&memory->maps, r->end, x->end))
			if (r->class == MAP_ANON && !r->inherited)
				x->live += (r->end < x->end ? r->end : x->end) -
					   (r->start > x->start ? r->start : x->start);
	}
	for (size_t i = 0; memory->heap.entries && i <= memory->heap.mask; i++) {
		const struct block *b = &memory->heap.entries[i];
		struct model_stretch *x = b->addr ? stretch_of(s, n, b->addr) : NULL;
		if (x && b->addr < x->end)
			x->live += process_memory_weigh(memory, b).bytes;
	}
}

static int add_to_level(void *arg, const struct range *r)
{
	struct process_memory *memory = arg;
	struct model_level *l = &memory->seen.level;
	if (r->class != MAP_ANON || r->inherited)
		return 0;
	const struct site_key site = site_table_key(&memory->sites, r->site);
	size_t i = 0;
	while (i < l->stack_count && (l->by_stack[i].node != site.node || l->by_stack[i].node2 != site.node2))
		i++;
	if (i == l->stack_count) {
		if (vec_reserve(l->by_stack, l->stack_room, l->stack_count + 1))
			return -MT_EMEMORY;
		l->by_stack[l->stack_count++] = (struct model_level_map){ .node = site.node, .node2 = site.node2 };
	}
	l->by_stack[i].bytes += r->end - r->start;
	return 0;
}

/* Just before the first thing that happens after query.level_ns. */
static int take_level(struct process_memory *memory)
{
	struct model_level *l = &memory->seen.level;
	l->taken = true;
	for (int k = 0; k < MODEL_HOST_KINDS; k++)
		l->live[k] = memory->kind[k].totals.live_bytes;
	for (int c = 0; c < MAP_CLASSES; c++)
		l->map[c] = memory->seen.map[c].bytes;
	l->registered_bytes = memory->seen.registered_bytes;
	process_memory_fill_footprint(memory);
	l->footprint = memory->seen.footprint;
	l->pool_free_bytes = less(memory->seen.pool.reserved_bytes, memory->seen.pool.in_use_bytes);
	l->inherited_bytes =
		memory->kind[MODEL_HEAP].totals.inherited_bytes + memory->kind[MODEL_MAP].totals.inherited_bytes;
	const struct model_query *q = &memory->model->query;
	size_t first = 0, n = 0;
	while (first < q->stretch_count && q->stretches[first].process != memory->seen.process->id)
		first++;
	while (first + n < q->stretch_count && q->stretches[first + n].process == memory->seen.process->id)
		n++;
	if (n)
		fill_stretches(memory, q->stretches + first, n);
	return ranges_each(&memory->maps, add_to_level, memory);
}

static inline int pass_level(struct process_memory *memory, uint64_t ns)
{
	uint64_t level = memory->model->query.level_ns;
	bool now = level && ns > level && !memory->seen.level.taken && memory->seen.started &&
		   memory->seen.process->start_ns <= level;
	return now ? take_level(memory) : 0;
}

/* ---- the pass -------------------------------------------------------------------------------------------- */

static int start(struct model *m, const struct process *p)
{
	struct process_memory *memory = &m->processes[p->id];
	memory->seen.started = true;
	return p->parent && m->processes[p->parent->id].seen.started
		       ? process_memory_inherit(memory, &m->processes[p->parent->id])
		       : 0;
}

/* A process that still runs keeps what it has: only its trace ends here. */
static int end(struct model *m, const struct process *p)
{
	if (p->state == PROCESS_RUNNING)
		return 0;
	bool keep_live = p->exit_kind != MT_EXIT_EXEC && m->query.until_ns == UINT64_MAX && !m->query.until_event;
	return process_memory_end(&m->processes[p->id], keep_live);
}

/* Nearly all time goes into waiting for memory: what an event needs is asked for some events before. */
static inline void prefetch(const struct process_memory *memory, const struct mt_event *far,
			    const struct mt_event *near)
{
	blocks_prefetch(&memory->heap, far->addr);
	if (site_table_is_small(&memory->sites))
		return;
	if (far->kind == MT_ALLOC)
		site_table_prefetch(&memory->sites, far->node, far->node2);
	if (near->kind == MT_ALLOC) {
		site_table_prefetch_found(&memory->sites, near->node, near->node2);
	} else if (near->kind == MT_FREE) {
		const struct block *b = blocks_find(&memory->heap, near->addr);
		if (b && b->site != BLOCK_NO_SITE)
			site_table_prefetch_site(&memory->sites, b->site);
	}
}

/* Returns 1 when query.until_ns is passed, or query.until_event reached. */
static int events(struct model *m, const struct reader_step *step)
{
	struct process_memory *memory = &m->processes[step->process->id];
	const uint64_t told = !m->query.on_event ? 0 : m->query.event_kinds ? m->query.event_kinds : UINT64_MAX;
	uint64_t ticks = 0, ns = step->ns;
	for (size_t i = 0; i < step->count; i++) {
		const struct mt_event *s = &step->slots[i];
		if (i + PREFETCH < step->count)
			prefetch(memory, &step->slots[i + PREFETCH], &step->slots[i + PREFETCH / 2]);
		if (s->kind == MT_EXT)
			continue;
		if (s->ticks != ticks) {
			ticks = s->ticks;
			ns = process_ns(step->process, ticks);
			if (ns > m->query.until_ns)
				return 1;
			move_to(m, ns);
			int e = pass_level(memory, ns);
			if (e)
				return e;
		}
		if (told >> s->kind & 1)
			m->query.on_event(m->query.arg, step->process, s, step->rings[i], step->threads[i]);
		int e = process_memory_slot(memory, s, step->rings[i], step->threads[i], ns);
		if (e)
			return e;
	}
	return 0;
}

static int take_step(struct model *m, const struct reader_step *step)
{
	if (step->ns > m->query.until_ns)
		return 1;
	switch (step->what) {
	case READER_START:
		move_to(m, step->ns);
		return start(m, step->process);
	case READER_EVENTS:
		return events(m, step);
	case READER_EXIT:
		move_to(m, step->ns);
		/* a killed one may have lived on after its last event */
		return pass_level(&m->processes[step->process->id], UINT64_MAX) ? -MT_EMEMORY : end(m, step->process);
	}
	return 0;
}

static bool is_wanted(const struct model *m, size_t id)
{
	return !m->query.processes || m->query.processes[id];
}

/* Of processes that began while the reader follows: it keeps within the room. */
static void add_accounts(struct model *m)
{
	for (; m->process_count < reader_processes(m->reader); m->process_count++) {
		struct process_memory *memory = &m->processes[m->process_count];
		memory->model = m;
		memory->seen.process = reader_process(m->reader, (unsigned)m->process_count);
		memory->footprint.unknown = process_is_picked(memory->seen.process);
		memory->sites.numbers_only = m->query.changes_only;
		memory->sites.known = m->query.numbers ? &m->query.numbers->processes[m->process_count].sites : NULL;
		memory->host = is_wanted(m, m->process_count) ? &m->hosts[memory->seen.process->host->index]
							      : &m->hosts[m->host_count];
	}
}

static int pass(struct model *m)
{
	struct reader_step step;
	size_t events = 0;
	int e, more = 0;
	do {
		add_accounts(m);
		while ((e = reader_next(m->reader, &step)) > 0) {
			e = take_step(m, &step);
			if (e)
				return e;
			events += step.count + 1;
			if (m->query.on_progress && events >= PROGRESS_EVENTS) {
				events = 0;
				struct reader_progress p = reader_progress(m->reader);
				m->query.on_progress(p.done, p.events);
			}
		}
		more = !e && m->query.on_idle ? m->query.on_idle(m->query.idle_arg, m) : 0;
	} while (more > 0);
	return e ? e : more;
}

/* ---- the result ------------------------------------------------------------------------------------------ */

static void finish_sites(struct process_memory *memory)
{
	for (size_t i = 0; i < memory->sites.site_count; i++) {
		struct model_site *s = &memory->sites.sites[i];
		uint64_t host_number = memory->host->kind[s->kind].number;
		if (s->kind >= MODEL_HOST_KINDS) {
			devices_finish_site(memory, s);
		} else if (!memory->seen.ended) {
			site_table_touch(s, memory->kind[s->kind].number, host_number);
		} else if (memory->host_number_at_end[s->kind] != host_number) {
			s->host_peak_bytes = s->host_peak_blocks = 0;
		}
	}
	site_table_drop_empty(&memory->sites);
	memory->seen.sites = memory->sites.sites;
	memory->seen.oldest_ns = memory->sites.oldest_ns;
	memory->seen.doubts = memory->sites.doubts;
	memory->seen.site_count = (uint32_t)memory->sites.site_count;
}

/* Of the whole run it is known how many calls there were, and for how many bytes. */
static void take_tally(struct process_memory *memory)
{
	const struct process *p = memory->seen.process;
	struct model_totals *t = &memory->kind[MODEL_HEAP].totals;
	if (!process_is_picked(p) || memory->model->query.from_ns || memory->model->query.until_ns != UINT64_MAX ||
	    memory->model->query.until_event)
		return;
	t->allocations = p->heap_calls;
	t->allocated_bytes = p->heap_bytes;
	t->frees = p->heap_frees;
}

static void finish_process(struct process_memory *memory)
{
	finish_sites(memory);
	if (!memory->seen.ended)
		process_memory_fill_footprint(memory);
	for (int k = 0; k < MODEL_KINDS; k++) {
		struct model_totals *sum = &memory->host->seen.kind[k];
		struct model_series *line = &memory->seen.timeline[k];
		if (k == MODEL_HEAP) {
			struct process_memory_ranges ranges = { 0 };
			process_memory_add_ranges(memory, &ranges);
			process_memory_set_ranges(&ranges, &ranges.peak, &memory->kind[k].totals);
			take_tally(memory);
		}
		memory->seen.kind[k] = memory->kind[k].totals;
		peak_sum_add(sum, &memory->kind[k].totals);
		if (line->count && !memory->seen.ended)
			series_note(line, &memory->model->timeline, memory->kind[k].totals.live_bytes,
				    memory->kind[k].totals.live_bytes, memory->kind[k].totals.live_blocks);
	}
}

/* Sums over processes, with the peak that only the pass could see. */
static void finish_host(struct model *m, struct host_sums *h)
{
	for (int k = 0; k < MODEL_KINDS; k++) {
		const struct model_totals *alive = &h->kind[k].totals;
		struct model_totals *seen = &h->seen.kind[k];
		seen->peak_bytes = alive->peak_bytes;
		seen->peak_blocks = alive->peak_blocks;
		seen->peak_ns = alive->peak_ns;
		if (h->timeline[k].count)
			series_note(&h->timeline[k], &m->timeline, alive->live_bytes, alive->live_bytes,
				    alive->live_blocks);
		h->seen.timeline[k] = h->timeline[k];
	}
	memcpy(h->seen.map, h->map, sizeof(h->map));
	struct process_memory_ranges ranges = { 0 };
	for (size_t i = 0; i < m->process_count; i++)
		if (m->processes[i].host == h)
			process_memory_add_ranges(&m->processes[i], &ranges);
	process_memory_set_ranges(&ranges, &ranges.host_peak, &h->seen.kind[MODEL_HEAP]);
}

static int finish(struct model *m)
{
	if (m->query.until_ns != UINT64_MAX)
		move_to(m, m->query.until_ns);
	for (size_t i = 0; i < m->process_count; i++) {
		int e = m->processes[i].seen.ended ? 0 : process_memory_prove(&m->processes[i], m->end_ns);
		if (e)
			return e;
	}
	for (size_t i = 0; i <= m->host_count; i++)
		for (int k = 0; k < MODEL_KINDS; k++)
			peak_sum_settle(&m->hosts[i].kind[k]);
	for (size_t i = 0; i < m->process_count; i++) {
		struct process_memory *memory = &m->processes[i];
		for (int k = 0; k < MODEL_KINDS && !memory->seen.ended; k++)
			peak_sum_settle(&memory->kind[k]);
		int e = memory->seen.ended ? 0 : pass_level(memory, UINT64_MAX); /* nothing happened after it */
		if (e)
			return e;
		e = memory->seen.ended ? site_table_settle(&memory->sites, memory->seen.process->id)
				       : process_memory_fill_sites(memory);
		if (e)
			return e;
		finish_process(memory);
	}
	for (size_t i = 0; i <= m->host_count; i++)
		finish_host(m, &m->hosts[i]);
	return devices_finish(m);
}

static int set_up(struct model *m)
{
	size_t room = reader_processes(m->reader) + 1ul + (m->query.on_idle ? READER_MORE : 0);
	m->host_count = reader_hosts(m->reader);
	m->processes = calloc(room, sizeof(*m->processes));
	m->hosts = calloc(m->host_count + 1, sizeof(*m->hosts));
	if (!m->processes || !m->hosts)
		return error_memory();
	for (unsigned i = 0; i < m->host_count; i++)
		m->hosts[i].seen.host = reader_host(m->reader, i);
	add_accounts(m);
	axis_init(&m->timeline, m->query.from_ns, 20, MODEL_TIMELINE_BUCKETS);
	m->from_reached = m->query.from_ns == 0;
	return devices_find_all(m);
}

int model_run(struct model **out, struct reader *r, const struct model_query *q)
{
	struct model *m = calloc(1, sizeof(*m));
	*out = NULL;
	if (!m)
		return error_memory();
	m->query = *q;
	m->reader = r;
	int e = set_up(m);
	if (!e)
		e = pass(m);
	if (e >= 0 && !q->changes_only)
		e = finish(m);
	if (e < 0) {
		model_free(m);
		return e;
	}
	*out = m;
	return 0;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t i = 0; m->processes && i < m->process_count; i++)
		process_memory_fini(&m->processes[i]);
	devices_fini(m);
	for (size_t i = 0; m->hosts && i <= m->host_count; i++)
		for (int k = 0; k < MODEL_KINDS; k++)
			series_fini(&m->hosts[i].timeline[k]);
	free(m->processes);
	free(m->hosts);
	free(m->failures);
	shm_files_fini(&m->shm);
	hash_index_fini(&m->failure_index);
	free(m);
}

const struct model_process *model_process(const struct model *m, unsigned id)
{
	return &m->processes[id].seen;
}
const struct model_host *model_host(const struct model *m, unsigned index)
{
	return &m->hosts[index].seen;
}
uint64_t model_timeline_width_ns(const struct model *m)
{
	return 1ull << m->timeline.shift;
}
uint64_t model_from_ns(const struct model *m)
{
	return m->query.from_ns;
}

struct model_bucket model_at(const struct model *m, const struct model_series *s, uint64_t ns)
{
	uint64_t from = model_from_ns(m), at = ns > from ? (ns - from) / model_timeline_width_ns(m) : 0;
	if (!s->count || at < s->first)
		return (struct model_bucket){ 0 };
	return s->buckets[at - s->first < s->count ? at - s->first : s->count - 1];
}

uint64_t model_end_ns(const struct model *m)
{
	return m->end_ns;
}

const struct model_site *model_site(const struct model *m, unsigned process, uint32_t number)
{
	const struct site_table *t = &m->processes[process].sites;
	return number < t->count ? site_table_figures(t, number) : NULL;
}

struct model_site model_site_key(const struct model *m, unsigned process, uint32_t number)
{
	const struct model_site *known = model_site(m, process, number);
	const struct site_key key = site_table_key(&m->processes[process].sites, number);
	return known ? *known
		     : (struct model_site){ .number = number,
					    .process = process,
					    .node = key.node,
					    .node2 = key.node2,
					    .split = key.split,
					    .kind = key.kind,
					    .device = key.device,
					    .sampled = key.sampled };
}

struct model_doubt model_doubt_of(const struct model *m, const struct model_site *site)
{
	const struct model_process *p = &m->processes[site->process].seen;
	const struct model_site *known = model_site(m, site->process, site->number);
	return known && p->doubts ? p->doubts[known - p->sites] : (struct model_doubt){ 0 };
}

void model_site_stack(const struct model *m, unsigned process, uint32_t number, uint32_t *node, uint32_t *node2,
		      enum model_kind *kind)
{
	const struct site_key key = site_table_key(&m->processes[process].sites, number);
	*node = key.node;
	*node2 = key.node2;
	*kind = (enum model_kind)key.kind;
}

unsigned model_failures(const struct model *m)
{
	return (unsigned)m->failure_count;
}
const struct model_failure *model_failure(const struct model *m, unsigned i)
{
	return &m->failures[i];
}

bool model_lost_late(const struct model *m, unsigned id, enum model_kind kind)
{
	const uint64_t from = model_lost_ns(m, id);
	bool late = from >= model_ending_ns(m, id) && from >= m->processes[id].kind[kind].totals.peak_ns;
	for (unsigned i = 0; late && i < model_failures(m); i++)
		late = model_failure(m, i)->process != id || model_failure(m, i)->last_ns <= from;
	return late;
}

struct model_fold model_fold(const struct model *m)
{
	struct model_fold sum = { 0 };
	for (size_t i = 0; i < m->process_count; i++) {
		const struct model_fold *f = &m->processes[i].seen.fold;
		if (!is_wanted(m, i))
			continue;
		sum.until_ns = f->until_ns > sum.until_ns ? f->until_ns : sum.until_ns;
		sum.blocks += f->blocks;
		sum.bytes += f->bytes;
		sum.most_bytes += f->most_bytes;
		sum.now_bytes += f->now_bytes;
		sum.most_other_bytes += f->most_other_bytes;
		sum.now_other_bytes += f->now_other_bytes;
		sum.young_blocks += f->young_blocks;
		sum.young_bytes += f->young_bytes;
		sum.young_most_bytes += f->young_most_bytes;
	}
	return sum;
}

uint64_t model_live(const struct model *m, unsigned id, enum model_kind kind)
{
	return m->processes[id].kind[kind].totals.live_bytes;
}

uint64_t model_peak(const struct model *m, enum model_kind kind)
{
	uint64_t most = 0;
	for (size_t i = 0; i < m->host_count; i++) {
		const struct model_totals *t = &m->hosts[i].kind[kind].totals;
		most = higher(most, higher(t->peak_bytes, t->live_bytes));
	}
	return most;
}

uint64_t model_events(const struct model *m)
{
	uint64_t events = 0;
	for (size_t i = 0; i < m->process_count; i++)
		events += m->processes[i].seen.events;
	return events;
}

struct model_totals model_totals(const struct model *m, enum model_kind kind)
{
	struct model_totals t = { 0 };
	for (size_t i = 0; i < m->host_count; i++) {
		const struct model_totals *h = &m->hosts[i].seen.kind[kind];
		peak_sum_add(&t, h);
		if (h->peak_bytes > t.peak_bytes) {
			t.peak_bytes = h->peak_bytes;
			t.peak_blocks = h->peak_blocks;
			t.peak_ns = h->peak_ns;
			t.peak_low = h->peak_low;
			t.peak_high = h->peak_high;
		}
		t.estimated |= h->estimated;
		t.live_low += h->estimated ? h->live_low : h->live_bytes;
		t.live_high += h->estimated ? h->live_high : h->live_bytes;
	}
	return t;
}

struct model_map_sum model_map_sum(const struct model *m, enum model_map_class class)
{
	struct model_map_sum sum = { 0 };
	for (size_t i = 0; i < m->host_count; i++) {
		const struct model_map_sum *h = &m->hosts[i].map[class];
		sum.peak_bytes = h->peak_bytes > sum.peak_bytes ? h->peak_bytes : sum.peak_bytes;
	}
	for (size_t i = 0; i < m->process_count; i++) {
		if (!is_wanted(m, i))
			continue;
		sum.bytes += m->processes[i].seen.map[class].bytes;
		sum.blocks += m->processes[i].seen.map[class].blocks;
	}
	return sum;
}

uint64_t model_map_given_bytes(const struct model *m)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < m->process_count; i++)
		bytes += is_wanted(m, i) ? m->processes[i].seen.map_given_bytes : 0;
	return bytes;
}

void model_bins(const struct model *m, struct model_bin bins[MODEL_BINS])
{
	memset(bins, 0, MODEL_BINS * sizeof(*bins));
	for (size_t i = 0; i < m->process_count; i++)
		for (int b = 0; b < MODEL_BINS && is_wanted(m, i); b++) {
			const struct model_bin *from = &m->processes[i].seen.bins[b];
			bins[b].allocations += from->allocations;
			bins[b].temporary += from->temporary;
			bins[b].live_blocks += from->live_blocks;
			bins[b].live_bytes += from->live_bytes;
		}
}
