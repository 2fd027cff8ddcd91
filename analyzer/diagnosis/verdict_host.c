/* The rules about the machine's own memory. */
#include "analyzer/diagnosis/growth/growth_matters.h"
#include "analyzer/diagnosis/verdict_rules_internal.h"
#include "analyzer/diagnosis/growth/outlook.h"

#include <stdlib.h>
#include <string.h>

#define NOTABLE     GROWTH_NOTABLE
#define SWAPPED     0.02 /* ... that went to swap during the run */
#define TIGHT       0.9
#define LITTLE_LEFT 0.05
#define KEPT        0.3 /* of what is resident */
#define LEAST_KEPT  (64ull << 20)
#define LEAST_LEFT  (192ull << 20) /* in /dev/shm: others come and go there with less */
/* that an allocator asks for: glibc for the block and 128 KiB, then for a mapping of 1 MiB */
#define ALLOCATORS_LEAST (256ull << 10)
/* of what is resident: then it counts, however large the machine is, if it is as much as ... */
#define MOSTLY_KEPT 0.5
#define MUCH_KEPT   (512ull << 20)

enum { SURE_BATCHES = 5 };

#define LIST_EACH(type, at, list) for (const type *at = (list).items; at && at < (list).items + (list).count; at++)

/* What there is for the run: the cgroup's limit if it is the lower one. */
static uint64_t bound(const struct evidence_host *h)
{
	return h->limit < h->memory ? h->limit : h->memory;
}

static bool part_of(uint64_t bytes, double part, uint64_t of)
{
	return evidence_known(of) && (double)bytes >= part * (double)of;
}

/* The kernel killed, or a request was refused. */
static bool ended_badly(const struct evidence_host *h)
{
	return h->oom_kills > 0 || h->failed_bytes > 0;
}

/* Copies that nobody asked for are the part that can be had back. */
static void say_relief(const struct evidence_host *h, enum reason_kind otherwise, struct reasons *advice)
{
	if (part_of(evidence_or(h->copied, 0), NOTABLE, bound(h)))
		SAY(advice, fork_copied, .bytes = h->copied);
	else
		reasons_add(advice, otherwise, NULL);
}

/* ---- limit --------------------------------------------------------------------------------------------- */

/* What is taken at once nobody sees in use; but if the machine had room, it was the limit that was hit. */
static bool struck_at_limit(const struct evidence_host *h)
{
	return h->limit_killed && part_of(h->available_min, LITTLE_LEFT, h->memory);
}

/* As memory.oom.group does, or whoever kills a container; but what didn't fit is known. */
static enum finding cut_off(const struct evidence *e, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	bool seen = part_of(h->anon, TIGHT, h->limit);
	SAY(&out->evidence, cgroup_used, .limit = h->limit, .memory = h->memory, .used = h->anon);
	if (!seen)
		SAY(&out->evidence, heaps_got, .bytes = h->got_since);
	SAY(&out->evidence, all_ended);
	say_relief(h, REASON_raise_cgroup, &out->advice);
	return holds(out, e, seen ? h->anon : h->limit, seen ? CONFIDENCE_either : CONFIDENCE_remains);
}

/* What it had of a limit, and what it asked for, do not fit into it. For a small block an allocator asks for more. */
static bool meets(uint64_t limit, uint64_t used, uint64_t bytes)
{
	bytes = bytes > ALLOCATORS_LEAST ? bytes : ALLOCATORS_LEAST;
	return evidence_known(limit) && evidence_known(used) && (bytes > limit || used > limit - bytes);
}

static enum finding refused(const struct evidence *e, const struct evidence_refusal *r, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	if (meets(r->address_limit, r->address_used, r->bytes)) {
		SAY(&out->evidence, met_ulimit_v, .pid = r->pid, .name = r->name, .bytes = r->bytes,
		    .used = r->address_used, .limit = r->address_limit);
		SAY(&out->advice, raise_ulimit_v);
		return holds(out, e, r->address_limit, CONFIDENCE_shown);
	}
	if (meets(r->data_limit, r->data_used, r->bytes)) {
		SAY(&out->evidence, met_ulimit_d, .pid = r->pid, .name = r->name, .bytes = r->bytes,
		    .used = r->data_used, .limit = r->data_limit);
		SAY(&out->advice, raise_ulimit_d);
		return holds(out, e, r->data_limit, CONFIDENCE_shown);
	}
	if (evidence_known(h->memory) && r->bytes > h->memory) {
		SAY(&out->evidence, more_than_machine, .pid = r->pid, .name = r->name, .bytes = r->bytes,
		    .memory = h->memory);
		SAY(&out->advice, find_size, .site = r->site);
		return holds(out, e, r->bytes, CONFIDENCE_counted);
	}
	return UNKNOWN(out, which_limit, .bytes = r->bytes, .pid = r->pid, .name = r->name, .ended = r->ended);
}

static enum finding of_runtime(const struct evidence *e, const struct evidence_runtime *t, struct verdict *out)
{
	if (!t->option || !part_of(t->bytes, TIGHT, t->limit))
		return UNKNOWN(out, runtime_refused, .pid = t->pid, .name = t->name, .ended = t->ended,
			       .bytes = t->bytes);
	SAY(&out->evidence, runtime_full, .pid = t->pid, .name = t->name, .ended = t->ended, .bytes = t->bytes,
	    .limit = t->limit, .setting = t->option);
	SAY(&out->advice, raise_runtime, .setting = t->option);
	return holds(out, e, t->limit, CONFIDENCE_unsaid);
}

enum finding host_limit(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	(void)d;
	if (!h->oom_kills && h->refusal.bytes)
		return refused(e, &h->refusal, out);
	if (!h->oom_kills && h->runtime.pid)
		return of_runtime(e, &h->runtime, out);
	if (!h->sampled || !evidence_known(h->limit) || !evidence_known(h->memory) || h->limit >= h->memory)
		return FINDING_NONE;
	if (!h->oom_kills)
		return h->cut_off ? cut_off(e, out) : FINDING_NONE;
	if (!evidence_known(h->anon))
		return UNKNOWN(out, cgroup_not_sampled, .limit = h->limit);
	bool seen = part_of(h->anon + evidence_or(h->shm_used, 0), 0.8, h->limit);
	if (!seen && !struck_at_limit(h))
		return RULED_OUT(out, cgroup_not_full, .used = h->anon, .limit = h->limit);
	SAY(&out->evidence, cgroup_used, .limit = h->limit, .memory = h->memory, .used = h->anon);
	if (!seen)
		SAY(&out->evidence, hit_at_once);
	SAY(&out->evidence, kernel_killed, .count = h->oom_kills);
	say_relief(h, REASON_raise_cgroup, &out->advice);
	return holds(out, e, seen ? h->anon : h->limit, h->killed ? CONFIDENCE_shown : CONFIDENCE_unsaid);
}

/* ---- leak ---------------------------------------------------------------------------------------------- */

/* What a device's leaking blocks need of the host (a tensor's own structures): the same line keeps both, and the larger
 * part is on the device. Arenas are nobody's line. Where the host itself ran out it is a cause of its own. */
static const struct evidence_device *kept_with(const struct evidence *e, const struct evidence_growth *g)
{
	if (ended_badly(&e->host) || !g->site)
		return NULL;
	LIST_EACH (struct evidence_device, d, e->devices)
		LIST_EACH (struct evidence_growth, on, d->growth)
			if (evidence_is_leak(on) && on->site && (g->arenas || !strcmp(on->site, g->site)) &&
			    on->bytes > g->bytes)
				return d;
	return NULL;
}

/* A leak matters by what it has cost, or by what it will. */
static bool matters(const struct evidence *e, const struct evidence_growth *g)
{
	const struct evidence_host *h = &e->host;
	struct growth_scale scale = { evidence_or(h->live_peak, 0), bound(h), 0 };
	LIST_EACH (struct evidence_growth, other, h->growth)
		scale.leaking += evidence_is_leak(other) && !kept_with(e, other) ? (double)other->bytes : 0;
	if (!evidence_is_leak(g))
		scale.leaking = 0;
	return growth_matters(&scale, (double)g->bytes,
			      (g->fails_step > 0 || g->fails_ns > 0) && g->fails_in <= GROWTH_HORIZON);
}

static enum finding not_growing(const struct evidence *e, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	/* then what goes on growing is stated as a fact, and the copies are the reason why it is no leak */
	const bool copied = evidence_or(h->copied, 0) > LEAST_KEPT;
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (evidence_is_leak(g) && kept_with(e, g))
			return RULED_OUT(out, kept_with_device, .bytes = g->bytes, .site = g->site,
					 .of = kept_with(e, g)->name);
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (g->file_backed)
			return RULED_OUT(out, grew_in_files, .site = g->site, .bytes = g->bytes);
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (g->is_copy)
			return RULED_OUT(out, grew_as_copy, .site = g->site, .bytes = g->bytes);
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (g->outlook != OUTLOOK_LEAKS && !(copied && outlook_goes_on(g->outlook)) && g->bytes &&
		    matters(e, g))
			return RULED_OUT(out, grew_so, .site = g->site, .bytes = g->bytes, .how = g->outlook);
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (evidence_is_leak(g))
			return RULED_OUT(out, grows_little, .site = g->site, .bytes = g->bytes);
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (g->fit.certainty == CERTAINTY_LOW && outlook_goes_on(g->outlook) &&
		    !(copied && g->bytes < h->copied))
			return uncertain(out, g);
	return copied ? RULED_OUT(out, workers_copied, .bytes = h->copied) : RULED_OUT(out, nothing_grows);
}

/* `others`: in bytes, what grows besides at another pace. */
static void describe_leak(struct verdict *out, const struct evidence_growth *most, uint64_t others)
{
	struct reasons *evidence = &out->evidence, *advice = &out->advice;
	const char *second = growth_second(most);
	const bool python = most->site && strstr(most->site, ".py:");
	SAY(evidence, more_of, .of = most->of);
	if (most->processes > 1)
		SAY(evidence, of_each, .count = most->processes);
	else if (most->pid)
		SAY(evidence, of_process, .pid = most->pid);
	SAY(evidence, stays);
	say_makers(evidence, most);
	SAY(evidence, grew, .bytes = most->bytes);
	say_pace(evidence, most, true);
	SAY(evidence, of_shape, .shape = most->fit.kind);
	if (most->tool)
		SAY(evidence, is_a_tools, .name = most->tool->name);
	if (others)
		SAY(evidence, others_grow_by, .bytes = others);

	if (most->tool) {
		SAY(advice, tool_keeps, .name = most->tool->name, .setting = most->tool->advice);
	} else if (most->extension) {
		SAY(advice, free_extension, .extension = most->extension);
	} else if (most->arenas) {
		SAY(advice, fill_arenas, .site = most->site);
		if (most->container)
			SAY(advice, container_grows, .second = most->container);
		SAY(advice, allocators_show);
	} else if (most->setting) {
		SAY(advice, find_holder, .site = most->site);
	} else if (most->sites > 1) {
		SAY(advice, find_holder, .site = most->site);
		if (second)
			SAY(advice, and_those_of, .second = second);
		else
			SAY(advice, what_grows_too);
		if (most->sites > 2 && second)
			SAY(advice, and_the_rest);
		reasons_add(advice, python ? REASON_one_thing_python : REASON_one_thing, NULL);
	} else {
		SAY(advice, find_holder, .site = most->site);
		reasons_add(advice, python ? REASON_may_be_dict : REASON_may_be_table, NULL);
	}
	if (most->setting)
		SAY(advice, setting_shows, .setting = most->setting);
	else if (!most->arenas)
		SAY(advice, leaks_shows);
}

/* Too short to tell how its heap grew, which is large enough to ask. */
static bool is_too_short(const struct evidence_host *h)
{
	return !h->growth_known && h->lasted_s > 0 && evidence_or(h->live_peak, 0) >= GROWTH_LEAST_BYTES;
}

enum finding host_leak(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	const struct evidence_growth *most = NULL;
	uint64_t grown = 0;
	(void)d;
	if (is_too_short(h))
		return RULED_OUT(out, host_too_short, .lasted = h->lasted_s);
	if (!h->growth_known)
		return FINDING_NONE;
	LIST_EACH (struct evidence_growth, g, h->growth) {
		if (!evidence_is_leak(g) || !matters(e, g) || kept_with(e, g))
			continue;
		add_site(out, g->site);
		add_site(out, growth_second(g));
		grown += g->bytes;
		most = !most || g->bytes > most->bytes ? g : most;
	}
	const struct evidence_growth *open = most ? NULL : evidence_unproven(h->growth.items, h->growth.count);
	if (open)
		return UNKNOWN(out, leak_unproven, .of = open->of, .site = open->site, .bytes = open->unproven);
	if (!most && h->doubt && part_of(h->doubt, NOTABLE, evidence_or(h->live_peak, 0)))
		return UNKNOWN(out, too_many_lost);
	if (!most)
		return not_growing(e, out);
	describe_leak(out, most, grown - most->bytes);
	return holds_as(out, most, grown);
}

/* ---- processes ------------------------------------------------------------------------------------------ */

enum finding host_processes(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	const struct evidence_pile *p = &h->pile;
	(void)d;
	if (!p->count)
		return FINDING_NONE;
	SAY(&out->evidence, processes_started, .count = p->count, .name = p->name, .pid = p->pid);
	if (p->site)
		SAY(&out->evidence, at_site, .site = p->site);
	SAY(&out->evidence, pile_up, .count = p->batches, .bytes = p->bytes, .each = p->bytes / p->count);
	SAY(&out->advice, end_processes, .site = p->site);
	out->sites[0] = p->site;
	return holds(out, e, p->bytes, p->batches >= SURE_BATCHES ? CONFIDENCE_one_open : CONFIDENCE_few);
}

/* ---- facts --------------------------------------------------------------------------------------------- */

/* It is no cause, but somebody wants to know. */
static enum finding say_fact(const struct evidence *e, enum outlook how, struct verdict *out)
{
	const struct evidence_growth *g = evidence_largest(e->host.growth.items, e->host.growth.count, how);
	if (!g || !evidence_is_steady(g) || g->is_copy || !matters(e, g))
		return FINDING_NONE;
	if (g->in_files) {
		SAY(&out->evidence, makes_files, .site = g->site, .bytes = g->bytes, .rate = (uint64_t)g->per_second);
		out->sites[0] = g->site;
		return holds_as(out, g, g->bytes);
	}
	describe_leak(out, g, 0);
	return fact(out, g);
}

enum finding host_grows(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	(void)d;
	const enum finding found = say_fact(e, OUTLOOK_GROWS, out);
	return found == FINDING_NONE ? say_fact(e, OUTLOOK_COLLECTED, out) : found;
}

enum finding host_backlog(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	(void)d;
	return say_fact(e, OUTLOOK_BACKLOG, out);
}

/* ---- copies -------------------------------------------------------------------------------------------- */

/* Copies are a cause where something failed, or would soon. */
enum finding host_copies(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	uint64_t extra = 0;
	(void)d;
	LIST_EACH (struct evidence_copies, c, h->copies)
		extra += c->extra_bytes;
	bool tight = ended_badly(h) || (evidence_known(h->anon) && part_of(h->anon, 0.85, bound(h)));
	if (!h->copies_known || !tight)
		return FINDING_NONE;
	if (!extra || !(part_of(extra, NOTABLE, bound(h)) || (h->failed_bytes && extra >= h->failed_bytes)))
		return RULED_OUT(out, nothing_twice);
	copies_describe(h->copies.items, out);
	return holds(out, e, extra, h->copies.items->blocks >= MANY_COPIED ? CONFIDENCE_counted : CONFIDENCE_either);
}

/* ---- retained ------------------------------------------------------------------------------------------ */

/* The ledger's moment has another figure where what was kept was used again, or given back, since. */
static enum finding not_kept(const struct evidence_host *h, struct verdict *out)
{
	SAY(&out->evidence, heap_kept, .bytes = h->kept, .memory = h->rss_anon);
	if (h->kept_then > h->kept + LEAST_KEPT / 8)
		SAY(&out->evidence, used_again, .at = h->kept_then_ns, .bytes = h->kept_then);
	return FINDING_RULED_OUT;
}

static bool keeps_of_machine(const struct evidence_host *h)
{
	return part_of(h->kept, NOTABLE, bound(h));
}

bool verdicts_keeps_much(const struct evidence_host *h)
{
	return h->sampled && evidence_known(h->kept) && h->kept >= LEAST_KEPT && part_of(h->kept, KEPT, h->rss_anon) &&
	       (keeps_of_machine(h) || (h->kept >= MUCH_KEPT && part_of(h->kept, MOSTLY_KEPT, h->rss_anon)));
}

/* What a replay of the heap says of each setting that helps: they are the first ones. */
static void say_replayed(const struct evidence_heap *heap, struct reasons *advice)
{
	for (size_t i = 0; i < heap->count && heap->settings[i].helps; i++) {
		const struct evidence_heap_setting *s = &heap->settings[i];
		if (i)
			SAY(advice, next_setting);
		SAY(advice, malloc_setting, .setting = s->name, .bytes = s->less, .times = s->time);
		if (s->once)
			SAY(advice, gives_once);
	}
	if (!heap->settings[0].helps)
		SAY(advice, no_malloc_setting, .count = heap->count);
}

static void advise_on_kept(const struct evidence_host *h, struct reasons *advice)
{
	if (h->heap.count) {
		say_replayed(&h->heap, advice);
		return;
	}
	SAY(advice, trim);
	if (h->keeper)
		SAY(advice, replay_heap, .pid = h->keeper);
	else
		SAY(advice, see_frag);
}

enum finding host_retained(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	(void)d;
	if (!h->sampled || !evidence_known(h->kept) || !evidence_known(h->rss_anon))
		return FINDING_NONE;
	if (!verdicts_keeps_much(h))
		return not_kept(h, out);
	if (h->live_peak != EVIDENCE_UNKNOWN && part_of(evidence_or(h->live, 0), 0.9, h->live_peak))
		return FINDING_NONE; /* never fell: nothing was freed that could be kept */
	SAY(&out->evidence, heap_keeps, .memory = h->rss_anon, .used = evidence_or(h->live, 0), .bytes = h->kept);
	advise_on_kept(h, &out->advice);
	return holds(out, e, h->kept, keeps_of_machine(h) ? CONFIDENCE_observed : CONFIDENCE_unsaid);
}

/* ---- files left ---------------------------------------------------------------------------------------- */

enum finding host_files_left(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	(void)d;
	if (!evidence_known(h->shm_left) || h->shm_left < LEAST_LEFT)
		return FINDING_NONE;
	SAY(&out->evidence, files_left, .bytes = h->shm_left);
	SAY(&out->advice, remove_files);
	return holds(out, e, h->shm_left, CONFIDENCE_unsaid);
}

/* ---- pressure ------------------------------------------------------------------------------------------ */

static uint64_t swapped(const struct evidence_host *h)
{
	return evidence_known(h->swap_peak) ? less(h->swap_peak, evidence_or(h->swap_start, 0)) : 0;
}

static enum finding no_pressure(const struct evidence_host *h, struct verdict *out)
{
	uint64_t file = evidence_or(h->file, 0);
	if (evidence_known(h->available_min))
		SAY(&out->evidence, at_least_available, .free = h->available_min, .memory = h->memory);
	SAY(&out->evidence, swap_grew, .bytes = swapped(h));
	if (!h->oom_kills && !h->cut_off)
		SAY(&out->evidence, nothing_killed);
	if (file > h->memory / 4)
		SAY(&out->evidence, page_cache, .bytes = file);
	return FINDING_RULED_OUT;
}

/* The counter is of the whole machine: with room left, and none of ours among them, who was killed met a limit of their
 * own. */
static bool machine_killed(const struct evidence_host *h)
{
	bool room = evidence_known(h->available_min) && part_of(h->available_min, LITTLE_LEFT, h->memory);
	return h->oom_kills && bound(h) == h->memory && (h->killed || h->maybe_killed || !room);
}

enum finding host_pressure(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	(void)d;
	if (!h->sampled || !evidence_known(h->memory))
		return UNKNOWN(out, no_sample);
	bool swaps = swapped(h) && part_of(swapped(h), SWAPPED, h->memory);
	bool scarce = evidence_known(h->available_min) && !part_of(h->available_min, LITTLE_LEFT, h->memory);
	bool shm = evidence_known(h->shm_total) && h->shm_total &&
		   part_of(evidence_or(h->shm_used, 0), 0.95, h->shm_total);
	bool killed = machine_killed(h);
	bool tight = bound(h) < h->memory && !h->oom_kills && !h->cut_off &&
		     part_of(evidence_or(h->anon, 0), TIGHT, bound(h));
	if (!swaps && !scarce && !shm && !killed && !tight)
		return no_pressure(h, out);
	if (tight && !swaps && !scarce) {
		SAY(&out->evidence, cgroup_tight, .used = h->anon, .limit = h->limit,
		    .percent = percent_of(h->anon, h->limit));
		say_relief(h, REASON_raise_limit, &out->advice);
		return holds(out, e, h->anon, CONFIDENCE_one_open);
	}
	if (shm && !swaps && !scarce && !killed) {
		SAY(&out->evidence, shm_full, .used = h->shm_used, .limit = h->shm_total);
		SAY(&out->advice, larger_shm);
		return holds(out, e, h->shm_used, CONFIDENCE_one_open);
	}
	if (evidence_known(h->available_min))
		SAY(&out->evidence, were_left, .free = h->available_min, .memory = h->memory);
	SAY(&out->evidence, swap_grew, .bytes = swapped(h));
	if (killed)
		SAY(&out->evidence, something_killed);
	say_relief(h, REASON_need_less_of_machine, &out->advice);
	uint64_t used = less(h->memory, evidence_or(h->available_min, h->memory));
	return holds(out, e, swaps ? swapped(h) : used,
		     killed || (swaps && scarce) ? CONFIDENCE_shown
		     : swaps                     ? CONFIDENCE_one_open
						 : CONFIDENCE_observed);
}
