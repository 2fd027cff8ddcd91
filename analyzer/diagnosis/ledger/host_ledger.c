/* All subjects as of the ledger's moment: what processes had, and the host's ledger. A part of host_memory.c. */
#include "analyzer/diagnosis/ledger/host_memory_internal.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <string.h>

#define TOUCH_NS         (2 * SECOND)  /* what is older and isn't in memory is not about to be */
#define HOST_NEARLY_FULL 0.9           /* of a limit: what nobody saw took the rest */
#define HEADER           32            /* of a block, with rounding, at most */
#define STACK            (1ull << 20)  /* of a thread, what is touched of it */
#define LIBRARIES        (16ull << 20) /* private pages of libraries */
#define HOST_LATELY_NS   (10 * SECOND) /* a rollup that is older is of no use for a single process's figures */

/* ---- processes ------------------------------------------------------------------------------------------ */

static uint64_t known(const struct sample_state *x, unsigned field)
{
	return x->known >> field & 1 ? x->value[field] : HOST_KILL_UNKNOWN;
}

/* Sums over traced processes, shared pages once. */
struct sums {
	uint64_t anon, file, shmem, live, untouched, untouched_error, pinned, swap, copied, unseen, pool_free;
};

/* Returns its share of private memory. */
static uint64_t add_process(struct host_memory *s, const struct sample_state *x, struct host_process *out,
			    struct sums *sums)
{
	bool rolled = x->known >> MT_PROCESS_pss_anon & 1;
	uint64_t anon = known_or(x, MT_PROCESS_rss_anon, 0), file = known_or(x, MT_PROCESS_rss_file, 0);
	uint64_t shmem = known_or(x, MT_PROCESS_rss_shmem, 0);
	if (rolled) {
		anon = host_share(anon, x->value[MT_PROCESS_pss_anon], x->value[MT_PROCESS_anonymous]);
		uint64_t all = x->value[MT_PROCESS_shared_clean] + x->value[MT_PROCESS_shared_dirty] +
			       x->value[MT_PROCESS_private_clean] + x->value[MT_PROCESS_private_dirty];
		uint64_t then =
			all > x->value[MT_PROCESS_anonymous] + shmem ? all - x->value[MT_PROCESS_anonymous] - shmem : 0;
		bool fresh = x->ns[MT_PROCESS_pss_file] == x->ns[MT_PROCESS_rss_file];
		if (fresh || !then)
			file = x->value[MT_PROCESS_pss_file] < file ? x->value[MT_PROCESS_pss_file] : file;
		else if (x->value[MT_PROCESS_pss_file] < then)
			file = (uint64_t)((double)file * (double)x->value[MT_PROCESS_pss_file] / (double)then);
		shmem = x->value[MT_PROCESS_pss_shmem] < shmem ? x->value[MT_PROCESS_pss_shmem] : shmem;
	}
	s->ledger.estimated |= !rolled || x->ns[MT_PROCESS_pss_anon] != x->ns[MT_PROCESS_rss_anon];
	sums->anon += anon;
	sums->file += file;
	sums->shmem += shmem;
	sums->swap += known_or(x, MT_PROCESS_swap_pss, known_or(x, MT_PROCESS_swap, 0));
	out->rss = known(x, MT_PROCESS_rss);
	out->anon = known(x, MT_PROCESS_rss_anon);
	out->file = known(x, MT_PROCESS_rss_file);
	out->shmem = known(x, MT_PROCESS_rss_shmem);
	bool lately = rolled && x->ns[MT_PROCESS_pss] + HOST_LATELY_NS >= s->ns;
	out->pss = lately ? known(x, MT_PROCESS_pss) : HOST_KILL_UNKNOWN;
	out->swap = known(x, MT_PROCESS_swap);
	out->private_dirty = lately ? known(x, MT_PROCESS_private_dirty) : HOST_KILL_UNKNOWN;
	out->size = known(x, MT_PROCESS_size);
	return anon;
}

/* What a forked child wrote to, beyond what it allocated itself, is a copy of what it inherited. As of the latest look
 * at its pages. */
static uint64_t copied(const struct model_process *m, const struct sample_state *x, const struct host_process *p)
{
	uint64_t more = less(known_or(x, MT_PROCESS_private_dirty, 0), p->live_heap + p->live_map);
	return lower(more, m->level.inherited_bytes);
}

/* The most that allocators can have kept: what of the addresses where blocks ever lay has none now. Where these are not
 * known they never had more than the heap and the mappings at their peaks, half as much again for holes, and headers.
 * */
static uint64_t allocators_room(const struct model_process *m)
{
	const struct model_totals *heap = &m->kind[MODEL_HEAP], *map = &m->kind[MODEL_MAP];
	const struct model_footprint *f = &m->level.footprint;
	uint64_t had = heap->peak_bytes + HEADER * heap->peak_blocks + map->peak_bytes;
	return f->known ? less(f->bytes, f->live) : had + had / 2;
}

/* Resident beyond that: of a runtime or an allocator that asks the kernel by itself. What is left of it for stacks and
 * libraries is no sign. `share`: its part of what it has in common with others. */
static uint64_t unseen(const struct model_process *m, const struct host_process *p, uint64_t share)
{
	uint64_t other = less(p->anon, p->live_heap + p->live_map - p->untouched + m->level.inherited_bytes);
	uint64_t usual = allocators_room(m) + p->untouched_error + m->process->threads * STACK + LIBRARIES;
	uint64_t bytes = p->anon == HOST_KILL_UNKNOWN ? 0 : less(other, usual);
	return bytes >= other / 4 && p->anon ? (uint64_t)((double)bytes * (double)share / (double)p->anon) : 0;
}

static int add_level(const struct host_memory *s, const struct model *m, const struct sample_subject *d,
		     const struct sample_state *x, struct host_process *out, uint64_t share, struct sums *sums)
{
	const struct model_level *l = &model_process(m, out->process->id)->level;
	uint64_t mapped = 0;
	if (!l->taken)
		return 0;
	out->live_heap = l->live[MODEL_HEAP];
	out->live_map = l->map[MAP_ANON];
	for (int c = 0; c < MAP_CLASSES; c++)
		mapped += l->map[c];
	if (out->size != HOST_KILL_UNKNOWN)
		out->unseen_map = out->size > mapped ? out->size - mapped : 0;
	uint64_t live = out->live_heap + out->live_map, there = out->anon == HOST_KILL_UNKNOWN ? live : out->anon;
	int e = host_memory_set_untouched(s, m, d, out);
	out->untouched = lower(out->untouched, live);
	if (live - out->untouched > there) /* what is resident is known better than what was touched */
		out->untouched = live - there;
	sums->live += live;
	sums->untouched += out->untouched;
	sums->untouched_error += out->untouched_error;
	sums->pinned += l->live[MODEL_PINNED];
	sums->unseen += unseen(model_process(m, out->process->id), out, share);
	sums->pool_free += l->pool_free_bytes;
	sums->copied += copied(model_process(m, out->process->id), x, out);
	return e;
}

static int take_processes(struct host_memory *s, const struct model *m, struct sums *sums)
{
	for (unsigned i = 0; i < samples_subjects(s->samples); i++) {
		const struct sample_subject *d = samples_subject(s->samples, i);
		const struct sample_state *x = &s->states[i];
		if (d->kind != MT_SUBJECT_PROCESS || d->host != s->host || !x->last_ns || x->gone || !d->traced)
			continue;
		const struct process *p = samples_process(s->samples, d, s->ns);
		if (!p || (p->end_ns < s->ns && p->state != PROCESS_RUNNING && d->last_ns < s->ns))
			continue;
		uint64_t share = add_process(s, x, &s->processes[p->id], sums);
		int e = add_level(s, m, d, x, &s->processes[p->id], share, sums);
		if (e)
			return e;
	}
	return 0;
}

static int compare_others(const void *a, const void *b)
{
	uint64_t x = ((const struct host_other *)a)->rss, y = ((const struct host_other *)b)->rss;
	return (x < y) - (x > y);
}

static int take_others(struct host_memory *s)
{
	for (unsigned i = 0; i < samples_subjects(s->samples); i++) {
		const struct sample_subject *d = samples_subject(s->samples, i);
		const struct sample_state *x = &s->states[i];
		if (d->kind != MT_SUBJECT_PROCESS || d->host != s->host || !x->last_ns || x->gone || d->traced)
			continue;
		int e = vec_reserve(s->others, s->other_room, s->other_count + 1);
		if (e)
			return e;
		s->others[s->other_count++] = (struct host_other){ d->pid, d->text, known_or(x, MT_PROCESS_rss, 0),
								   known_or(x, MT_PROCESS_swap, 0) };
	}
	if (s->other_count)
		qsort(s->others, s->other_count, sizeof(*s->others), compare_others);
	return 0;
}

/* ---- the ledger ----------------------------------------------------------------------------------------- */

/* The state of the cgroup with a limit that is fullest, or NULL. */
static const struct sample_state *tightest(const struct host_memory *s, const struct sample_subject **out)
{
	const struct sample_state *best = NULL;
	double fullest = -1;
	for (unsigned i = 0;
	     (i = samples_find(s->samples, MT_SUBJECT_CGROUP, s->host, i)) < samples_subjects(s->samples); i++) {
		const struct sample_state *x = &s->states[i];
		uint64_t limit = known_or(x, MT_CGROUP_limit, 0);
		if (!limit || limit >= s->facts.memory)
			continue;
		double full = (double)known_or(x, MT_CGROUP_current, 0) / (double)limit;
		if (full > fullest) {
			fullest = full;
			best = x;
			*out = samples_subject(s->samples, i);
		}
	}
	return best;
}

/* `there`: all private memory of the machine or cgroup, which the shares of forked processes may exceed, being
 * estimates. */
static void split_anon(struct host_ledger *l, struct sums *sums, uint64_t there)
{
	sums->anon = lower(sums->anon, there);
	l->live = lower(sums->live - sums->untouched, sums->anon);
	l->kept = sums->anon - l->live;
	l->copied = lower(sums->copied, l->kept);
	l->live_error = lower(sums->untouched_error, sums->anon);
	l->not_resident = sums->live - l->live;
	l->swapped = sums->swap;
}

static void make_machine_ledger(struct host_memory *s, struct sums *sums, const struct sample_state *x)
{
	struct host_ledger *l = &s->ledger;
	uint64_t cached = known_or(x, MT_MACHINE_cached, 0), shmem = known_or(x, MT_MACHINE_shmem, 0);
	l->total = known_or(x, MT_MACHINE_total, 0);
	split_anon(l, sums, known_or(x, MT_MACHINE_anon, 0));
	l->other_processes = less(known_or(x, MT_MACHINE_anon, 0), sums->anon);
	l->shared = lower(sums->shmem, shmem);
	l->shm_files = shmem - l->shared;
	l->mapped_files = lower(sums->file, less(cached, shmem));
	l->page_cache = less(cached, shmem) - l->mapped_files + known_or(x, MT_MACHINE_buffers, 0) +
			known_or(x, MT_MACHINE_swap_cached, 0);
	l->kernel = known_or(x, MT_MACHINE_slab_reclaimable, 0) + known_or(x, MT_MACHINE_slab_unreclaimable, 0) +
		    known_or(x, MT_MACHINE_kernel_stacks, 0) + known_or(x, MT_MACHINE_page_tables, 0) +
		    known_or(x, MT_MACHINE_per_cpu, 0) + known_or(x, MT_MACHINE_huge_pages, 0);
	l->free = known_or(x, MT_MACHINE_free, 0);
	l->used = less(l->total, known_or(x, MT_MACHINE_available, l->free + l->page_cache + l->mapped_files));
}

static void make_cgroup_ledger(struct host_memory *s, struct sums *sums, const struct sample_state *x)
{
	struct host_ledger *l = &s->ledger;
	uint64_t current = known_or(x, MT_CGROUP_current, 0), anon = known_or(x, MT_CGROUP_anon, 0);
	uint64_t file = known_or(x, MT_CGROUP_file, 0), shmem = known_or(x, MT_CGROUP_shmem, 0);
	l->total = known_or(x, MT_CGROUP_limit, 0);
	split_anon(l, sums, anon);
	l->other_processes = less(anon, sums->anon);
	l->shared = lower(sums->shmem, shmem);
	l->shm_files = shmem - l->shared;
	l->mapped_files = lower(sums->file, file);
	l->page_cache = file - l->mapped_files;
	l->kernel = known_or(x, MT_CGROUP_kernel, 0);
	l->free = less(l->total, current);
	l->used = less(current, file);
}

/* A driver's pinned memory is in no process's account as far as the rows leave room for it; else it is in a process's
 * own, of which nobody's allocator keeps it. */
static void diagnosis(struct host_ledger *l, const struct sums *sums)
{
	int64_t rest = (int64_t)l->total - (int64_t)(l->live + l->kept + l->mapped_files + l->shared + l->shm_files +
						     l->other_processes + l->page_cache + l->kernel + l->free);
	bool outside = rest >= (int64_t)sums->pinned;
	if (!l->cgroup)
		l->pinned = outside ? sums->pinned : lower(sums->pinned, l->kept - l->copied);
	if (!outside)
		l->kept -= l->pinned;
	l->pool_free = lower(sums->pool_free, l->kept - l->copied);
	l->unseen = lower(sums->unseen, l->kept - l->copied - l->pool_free);
	l->unexplained = rest - (outside ? (int64_t)l->pinned : 0);
}

static uint64_t counted(const struct sample_subject *d, unsigned field)
{
	return d && d->known >> field & 1 ? d->last[field].value - d->first[field].value : HOST_KILL_UNKNOWN;
}

static void take_facts(struct host_memory *s, const struct sample_subject *machine, const struct sample_subject *group,
		       const struct sample_state *x)
{
	struct host_facts *f = &s->facts;
	const struct sample_subject *any = group;
	unsigned i = samples_find(s->samples, MT_SUBJECT_CGROUP, s->host, 0);
	if (!any && i < samples_subjects(s->samples))
		any = samples_subject(s->samples, i);
	f->swapped_out = counted(machine, MT_MACHINE_swapped_out);
	f->stalled_ns = counted(machine, MT_MACHINE_psi_some);
	f->oom_kills = counted(any, MT_CGROUP_oom_kills);
	if (f->oom_kills == HOST_KILL_UNKNOWN || !f->oom_kills)
		for (unsigned p = 0; p < reader_processes(s->reader); p++)
			if (s->processes[p].oom_killed)
				f->oom_kills = counted(machine, MT_MACHINE_oom_kills);
	if (f->oom_kills == HOST_KILL_UNKNOWN)
		f->oom_kills = counted(machine, MT_MACHINE_oom_kills);
	if (!group)
		return;
	f->limit = known(x, MT_CGROUP_limit);
}

/* The one that holds the limit, which subjects have in common that are in groups of their own below it. */
static void find_worst(struct host_memory *s)
{
	struct host_facts *f = &s->facts;
	for (unsigned i = 0;
	     (i = samples_find(s->samples, MT_SUBJECT_CGROUP, s->host, i)) < samples_subjects(s->samples); i++) {
		const struct worst *w = &s->worst[i];
		if (!w->ns || strcmp(samples_subject(s->samples, i)->text, s->ledger.cgroup))
			continue;
		f->cgroup_killed |= w->killed;
		if (f->cgroup_most != HOST_KILL_UNKNOWN && w->bytes <= f->cgroup_most)
			continue;
		f->cgroup_most = w->bytes;
		f->cgroup_most_ns = w->ns;
		f->cgroup_file = w->file;
	}
}

/* The sampler did not see it end, for it ended, too. */
static bool was_cut_off(const struct host_memory *s, const struct process *p)
{
	const struct sample_subject *d = samples_of_process(s->samples, p);
	return p->cut_off && p->host == s->host && (!d || d->gone_ns == UINT64_MAX);
}

/* Of memory.oom.group no counter tells: whoever reads it is killed with the others. But somebody else may have killed
 * all, as schedulers do. */
static void judge_cut_off(struct host_memory *s, const struct model *m)
{
	struct host_facts *f = &s->facts;
	uint64_t early = 0, before = 0, after = 0, most = f->cgroup_most == HOST_KILL_UNKNOWN ? 0 : f->cgroup_most;
	for (unsigned i = 0; i < reader_processes(s->reader); i++) {
		const struct model_process *p = model_process(m, i);
		if (!was_cut_off(s, s->processes[i].process))
			continue;
		early += s->ns > TOUCH_NS ? model_at(m, &p->timeline[MODEL_HEAP], s->ns - TOUCH_NS).last : 0;
		before += s->processes[i].live_heap;
		after += p->kind[MODEL_HEAP].live_bytes;
	}
	f->got_since = less(after, before) + lower(s->ledger.not_resident, less(before, early));
	f->cut_off = after && ((double)most >= HOST_NEARLY_FULL * (double)f->limit || most + f->got_since >= f->limit);
	for (unsigned i = 0; f->cut_off && i < reader_processes(s->reader); i++)
		if (was_cut_off(s, s->processes[i].process) && s->processes[i].oom_killed == HOST_NOT_KILLED)
			s->processes[i].oom_killed = HOST_MAYBE_KILLED;
}

int host_memory_settle(struct host_memory *s, const struct model *m)
{
	struct sums sums = { 0 };
	const struct sample_subject *group = NULL;
	unsigned machine =
		s->host ? samples_find(s->samples, MT_SUBJECT_MACHINE, s->host, 0) : samples_subjects(s->samples);
	if (!s->facts.sampled || machine == samples_subjects(s->samples))
		return 0;
	int e = take_others(s);
	if (!e)
		e = take_processes(s, m, &sums);
	if (e)
		return e;
	const struct sample_state *x = tightest(s, &group);
	s->ledger.known = true;
	s->ledger.ns = s->ns;
	s->ledger.cgroup = group ? group->text : NULL;
	if (group)
		make_cgroup_ledger(s, &sums, x);
	else
		make_machine_ledger(s, &sums, &s->states[machine]);
	diagnosis(&s->ledger, &sums);
	take_facts(s, samples_subject(s->samples, machine), group, x);
	if (!group)
		return 0;
	find_worst(s);
	judge_cut_off(s, m);
	return 0;
}
