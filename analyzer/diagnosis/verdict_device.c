/*
 * The rules about a device. Most ask the same question: the request was short by so much; would it have fitted without
 * this? What a rule is about must also be worth the name: where 4 MiB are missing, any 4 MiB would have helped.
 */
#include "analyzer/diagnosis/growth/growth_matters.h"
#include "analyzer/diagnosis/verdict_capacity.h"
#include "analyzer/diagnosis/verdict_rules_internal.h"
#include "analyzer/diagnosis/growth/forecast.h"
#include "analyzer/diagnosis/growth/outlook.h"
#include "analyzer/timeline/phases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOTABLE           0.05 /* of the device: less is not a cause, even where it would have been enough */
#define NOTABLE_HOLES     0.02
#define PEAK_RATIO        1.15 /* of a phase to the next highest one */
#define CONTEXTS          0.05
#define MUCH              0.2 /* more than contexts take, where nobody sampled who has it */
#define NEARLY_FULL       0.9
#define SERIOUS           0.3  /* 1 - allocated/reserved */
#define GRAPH_NODE_BLOCKS 4    /* at most, that a node of a graph keeps in the mean */
#define ALIKE             0.9  /* of its rise that earlier steps had, or more: then this one is as large as they were */
#define ROOM_GOES_ON      0.08 /* of the device behind the request: runs that were tried without the holes went on */

#define LIST_EACH(type, at, list) for (const type *at = (list).items; at && at < (list).items + (list).count; at++)

/* The request against what there was for it. */
struct balance {
	uint64_t need;                    /* of the driver, or in one piece of the pool */
	uint64_t free;                    /* that this process might still take */
	uint64_t unused;                  /* in the pool, whole or in pieces, that this request could have used */
	uint64_t least_short, most_short; /* if unused had been in one piece and with the rest; as it was */
};

static uint64_t notable(const struct evidence_device *d)
{
	return (uint64_t)(NOTABLE * (double)evidence_or(d->total, 0));
}

/* That the request could use. */
static uint64_t pool_unused(const struct evidence_device *d)
{
	uint64_t apart = d->pool.graphs.unused + d->pool.graphs.common_unused + d->pool.apart + d->pool.withheld;
	if (d->pool.partly_seen)
		return evidence_or(d->pool.said_unused, 0);
	return d->pool.known ? less(less(d->pool.reserved, d->pool.allocated), apart) : 0;
}

static bool is_capped(const struct evidence_device *d)
{
	return evidence_known(d->request.limit_bytes) &&
	       d->request.limit_bytes < evidence_or(d->total, EVIDENCE_UNKNOWN);
}

static struct balance balance_of(const struct evidence_device *d)
{
	const struct evidence_request *r = &d->request;
	struct balance b = { .need = r->block_bytes > r->bytes ? r->block_bytes : r->bytes,
			     .free = evidence_or(d->free, 0) };
	if (is_capped(d) && d->pool.known && less(r->limit_bytes, d->pool.reserved) < b.free)
		b.free = less(r->limit_bytes, d->pool.reserved);
	if (r->caller == CALLER_POOL)
		b.unused = pool_unused(d);
	b.most_short = less(b.need, b.free);
	b.least_short = less(r->bytes, b.free + b.unused);
	return b;
}

/* What the rest of the step asks for, as earlier ones went, or what its own work does at least; 0 = nobody knows. */
static uint64_t rest_of(const struct evidence_device *d)
{
	return evidence_or(d->request.rise, d->request.ahead);
}

/* By how much that exceeds what there is, holes included; 0 = it fits, or nobody knows. */
static uint64_t rest_lacks(const struct evidence_device *d, const struct balance *b)
{
	return less(rest_of(d), b->free + b->unused);
}

static void say_rest(struct reasons *evidence, const struct evidence_device *d)
{
	if (d->request.ahead)
		SAY(evidence, rest_ahead, .name = d->request.ahead_for, .rise = d->request.ahead);
	else if (!evidence_known(d->request.rise))
		SAY(evidence, rest_unknown);
}

static uint64_t neighbour_bytes(const struct evidence_device *d)
{
	uint64_t sum = 0;
	LIST_EACH (struct evidence_neighbour, n, d->neighbours)
		sum += n->bytes;
	return sum;
}

/* A cache that fills, a jump, and a program that only loads are not growth that goes on. Pages of files can be dropped.
 * */
static uint64_t growing_bytes(const struct evidence_device *d)
{
	uint64_t sum = 0;
	LIST_EACH (struct evidence_growth, g, d->growth)
		sum += evidence_is_leak(g) ? g->bytes : 0;
	return sum;
}

static uint64_t copied_bytes(const struct evidence_device *d)
{
	uint64_t sum = 0;
	LIST_EACH (struct evidence_copies, c, d->copies)
		sum += c->extra_bytes;
	return sum;
}

/* The copy that the request was a part of; NULL = none. */
static const struct evidence_copies *begun_copy(const struct evidence_device *d)
{
	LIST_EACH (struct evidence_copies, c, d->copies)
		if (d->request.failed && c->missing)
			return c;
	return NULL;
}

/* Worth naming, and it would have fitted without. */
static bool would_do(const struct evidence_device *d, uint64_t bytes)
{
	struct balance b = balance_of(d);
	return bytes >= notable(d) && bytes > 0 && bytes >= b.least_short;
}

/* ---- limit --------------------------------------------------------------------------------------------- */

static uint64_t needed(const struct evidence_device *d)
{
	return d->request.block_bytes > d->request.bytes ? d->request.block_bytes : d->request.bytes;
}

/* The pool gave up while the device had room. */
static bool met_limit(const struct evidence_device *d)
{
	const struct evidence_request *r = &d->request;
	return r->failed && r->caller == CALLER_POOL && needed(d) && evidence_known(d->free) && !r->driver_failures &&
	       d->free >= needed(d);
}

enum finding device_limit(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_request *r = &d->request;
	uint64_t need = needed(d);
	if (!r->failed || r->caller != CALLER_POOL || !evidence_known(d->free) || !need)
		return FINDING_NONE;
	if (!met_limit(d))
		return is_capped(d) || r->driver_failures ? RULED_OUT(out, device_full, .free = d->free, .need = need)
							  : FINDING_NONE;
	if (d->pool.partly_seen)
		SAY(&out->advice, raise_fraction, .free = d->free);
	else
		SAY(&out->advice, raise_cap, .free = d->free);
	if (is_capped(d) && d->pool.known) {
		SAY(&out->evidence, pool_met_cap, .limit = r->limit_bytes, .bytes = d->pool.reserved + need,
		    .reserved = d->pool.reserved, .need = need, .free = d->free);
		return holds(out, e, less(d->pool.reserved + need, r->limit_bytes), CONFIDENCE_own_limit);
	}
	SAY(&out->evidence, pool_gave_up, .free = d->free);
	return holds(out, e, need, CONFIDENCE_either);
}

/* ---- leak ---------------------------------------------------------------------------------------------- */

static const struct evidence_growth *largest_growth(const struct evidence_device *d)
{
	const struct evidence_growth *most = NULL;
	LIST_EACH (struct evidence_growth, g, d->growth)
		if (evidence_is_leak(g) && (!most || g->bytes > most->bytes))
			most = g;
	return most;
}

static enum finding not_growing(const struct evidence_device *d, struct verdict *out)
{
	LIST_EACH (struct evidence_growth, g, d->growth)
		if (g->is_copy && outlook_goes_on(g->outlook))
			return RULED_OUT(out, grew_as_copy, .site = g->site, .bytes = g->bytes);
	LIST_EACH (struct evidence_growth, g, d->growth) /* the largest first */
		if (!g->works && g->bytes)
			return RULED_OUT(out, grew_so, .site = g->site, .bytes = g->bytes, .how = g->outlook);
	LIST_EACH (struct evidence_growth, g, d->growth)
		if (g->fit.certainty == CERTAINTY_LOW && outlook_goes_on(g->outlook))
			return uncertain(out, g);
	if (!d->steps)
		return RULED_OUT(out, nothing_grows);
	SAY(&out->evidence, steps_keep_nothing, .steps = d->steps);
	if (d->behind_steps)
		SAY(&out->evidence, failed_behind_steps);
	return FINDING_RULED_OUT;
}

/* The nodes of a graph are on the heap, and each keeps a few blocks. Not known: it may be. */
static bool may_be_graph(const struct evidence_device *d, const struct evidence_growth *g)
{
	return d->graph_nodes >= (g->block_bytes ? g->bytes / g->block_bytes : 0) / GRAPH_NODE_BLOCKS;
}

/* Who makes what stays is known; who keeps it, often another line, is not. */
static void describe_growth(struct verdict *out, const struct evidence_device *d, const struct evidence_growth *g,
			    unsigned groups, bool keeps_graph)
{
	struct reasons *evidence = &out->evidence, *advice = &out->advice;
	const char *second = growth_second(g);
	SAY(evidence, more_of, .of = d->name);
	SAY(evidence, stays);
	say_makers(evidence, g);
	SAY(evidence, grew, .bytes = g->bytes);
	if (!g->late)
		SAY(evidence, since_start);
	else if (g->per_step > 0)
		SAY(evidence, since_step, .step = (uint64_t)g->since);
	else if (g->since > 0)
		SAY(evidence, since_second, .moment = g->since);
	say_pace(evidence, g, false);
	SAY(evidence, of_shape, .shape = g->fit.kind);
	if (!g->freed_some)
		SAY(evidence, never_freed);
	if (groups > 1)
		SAY(evidence, others_grow);
	if (g->fails_step > 0 && !d->request.failed)
		SAY(evidence, memory_ends, .ends = { true, g->fails_step, g->fails_low, g->fails_high });

	if (keeps_graph) {
		SAY(advice, keeps_graph, .site = g->site);
	} else if (g->kind == MODEL_DEVICE) {
		SAY(advice, keeps_from_driver, .site = g->site);
	} else {
		SAY(advice, find_holder, .site = g->site);
		if (second)
			SAY(advice, and_those_of, .second = second);
		reasons_add(advice, may_be_graph(d, g) ? REASON_may_be_graph : REASON_may_be_hook, NULL);
	}
}

/* A forecast is of all that grows, and says nothing about a small part of that; and one of far ahead matters little. */
static bool fails_soon(const struct evidence_growth *g, uint64_t grown)
{
	return (g->fails_step > 0 || g->fails_ns > 0) && g->fails_in <= GROWTH_HORIZON &&
	       (double)g->bytes >= NOTABLE * (double)grown;
}

/* What a caught exception holds by its traceback, while the next attempt runs. */
static enum finding left_by_attempts(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_attempts *a = &d->attempts;
	out->sites[0] = a->site;
	if (a->count == 1)
		SAY(&out->evidence, attempt_left, .bytes = a->bytes, .site = a->site);
	else
		SAY(&out->evidence, attempts_left, .count = a->count, .bytes = a->bytes, .site = a->site);
	SAY(&out->advice, drop_attempts, .site = a->site);
	return holds(out, e, a->bytes, CONFIDENCE_one_open);
}

enum finding device_leak(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	uint64_t grown = growing_bytes(d);
	const struct evidence_growth *most = largest_growth(d);
	if (d->attempts.count && would_do(d, d->attempts.bytes) && !(most && would_do(d, grown)))
		return left_by_attempts(e, d, out);
	if (!d->growth_known)
		return d->request.failed ? UNKNOWN(out, device_too_short, .of = d->name) : FINDING_NONE;
	const struct evidence_growth *open = most ? NULL : evidence_unproven(d->growth.items, d->growth.count);
	if (open)
		return UNKNOWN(out, leak_unproven, .of = d->name, .site = open->site, .bytes = open->unproven);
	if (!most && d->doubt && d->doubt >= notable(d))
		return UNKNOWN(out, too_many_lost, .of = d->name);
	if (!most)
		return not_growing(d, out);
	bool matters = d->request.failed ? would_do(d, grown) : grown >= notable(d) || fails_soon(most, grown);
	if (!matters)
		return d->request.failed ? RULED_OUT(out, not_missing, .site = most->site, .bytes = grown)
					 : RULED_OUT(out, grows_little, .site = most->site, .bytes = grown);
	unsigned groups = 0, tensors = 0;
	LIST_EACH (struct evidence_growth, g, d->growth) {
		tensors += evidence_is_leak(g) ? g->tensors : 0;
		if (!evidence_is_leak(g))
			continue;
		add_site(out, g->site);
		add_site(out, growth_second(g));
		groups++;
	}
	/* what a graph keeps is made by more than one line */
	describe_growth(out, d, most, groups,
			tensors > 1 && most->category == CATEGORY_activations && may_be_graph(d, most));
	return holds_as(out, most, grown);
}

/* ---- facts --------------------------------------------------------------------------------------------- */

/* It is no cause, but somebody wants to know. */
static enum finding say_fact(const struct evidence_device *d, enum outlook how, struct verdict *out)
{
	const struct evidence_growth *g = evidence_largest(d->growth.items, d->growth.count, how);
	if (!g || g->is_copy || g->bytes < notable(d))
		return FINDING_NONE;
	describe_growth(out, d, g, 1, false);
	return fact(out, g);
}

enum finding device_grows(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	(void)e;
	return say_fact(d, OUTLOOK_GROWS, out);
}

enum finding device_backlog(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	(void)e;
	return say_fact(d, OUTLOOK_BACKLOG, out);
}

/* ---- copies -------------------------------------------------------------------------------------------- */

void copies_describe(const struct evidence_copies *c, struct verdict *out)
{
	struct reasons *evidence = &out->evidence, *advice = &out->advice;
	if (c->used)
		SAY(evidence, if_one_can_go);
	SAY(evidence, copies_alive, .count = c->count, .alike = c->blocks, .bytes = c->bytes);
	if (c->cast)
		SAY(evidence, or_twice);
	else if (c->several)
		SAY(evidence, or_several);
	for (unsigned i = 0; i < VERDICT_SITES && c->owners[i]; i++) {
		reasons_add(evidence, i ? REASON_copy_also_by : REASON_copy_made_by,
			    &(struct figures){ .site = c->owners[i] });
		if (c->times[i] > 1)
			SAY(evidence, so_many, .count = c->times[i]);
		out->sites[i] = c->owners[i];
	}
	if (c->threads > 1)
		SAY(evidence, copy_by_each, .count = c->threads);
	if (c->missing)
		SAY(evidence, copy_begun, .there = c->there, .missing = c->missing);

	if (c->used)
		SAY(advice, drop_if);
	if (c->count > 2)
		SAY(advice, drop_all_but_one);
	else
		SAY(advice, drop_one);
	if (c->missing)
		SAY(advice, make_on_host);
	SAY(advice, share_storage, .bytes = c->extra_bytes);
}

static enum confidence copies_confidence(const struct evidence_copies *c)
{
	return c->blocks >= MANY_COPIED || c->missing ? CONFIDENCE_counted : CONFIDENCE_either;
}

enum finding device_copies(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	uint64_t extra = copied_bytes(d);
	const struct evidence_copies *begun = begun_copy(d);
	if (!d->copies_known)
		return FINDING_NONE;
	if (begun) {
		copies_describe(begun, out);
		return holds(out, e, extra + begun->missing, copies_confidence(begun));
	}
	if (extra == 0)
		return d->request.failed ? RULED_OUT(out, no_copies) : FINDING_NONE;
	if (!d->request.failed)
		return FINDING_NONE;
	if (!would_do(d, extra))
		return RULED_OUT(out, copies_little, .bytes = extra);
	copies_describe(d->copies.items, out);
	return holds(out, e, extra, copies_confidence(d->copies.items));
}

/* ---- other process ------------------------------------------------------------------------------------- */

static bool neighbours_stayed(const struct evidence_device *d)
{
	LIST_EACH (struct evidence_neighbour, n, d->neighbours)
		if (!evidence_known(n->bytes_before) || n->bytes > n->bytes_before + notable(d) / 5)
			return false;
	return true;
}

static unsigned that_would_do(const struct evidence_device *d)
{
	unsigned count = 0;
	LIST_EACH (struct evidence_neighbour, n, d->neighbours)
		count += would_do(d, n->bytes);
	return count;
}

static bool are_workers(const struct evidence_device *d)
{
	LIST_EACH (struct evidence_neighbour, n, d->neighbours)
		if (!n->worker)
			return false;
	return d->neighbours.count > 0;
}

static void say_neighbours(const struct evidence_device *d, uint64_t bytes, struct reasons *evidence)
{
	const struct evidence_neighbour *most = d->neighbours.items;
	const size_t count = d->neighbours.count;
	const double percent = percent_of(bytes, d->total);
	LIST_EACH (struct evidence_neighbour, n, d->neighbours)
		most = n->bytes > most->bytes ? n : most;
	if (count == 1 && !most->pid) {
		SAY(evidence, others_hold, .percent = percent, .of = d->name);
	} else if (count == 1) {
		SAY(evidence, neighbour, .pid = most->pid);
		if (most->name)
			SAY(evidence, named, .name = most->name);
		if (most->worker)
			SAY(evidence, own_worker);
		SAY(evidence, neighbour_holds, .percent = percent, .of = d->name);
	} else {
		reasons_add(evidence, are_workers(d) ? REASON_workers_hold : REASON_neighbours_hold,
			    &(struct figures){ .count = count,
					       .percent = percent,
					       .of = d->name,
					       .pid = most->pid,
					       .bytes = most->bytes });
		if (that_would_do(d) == count && count == 2)
			SAY(evidence, without_either);
		else if (that_would_do(d) == count)
			SAY(evidence, without_any);
		else if (that_would_do(d))
			SAY(evidence, without_largest);
		else
			SAY(evidence, without_all);
	}
}

/* The traced neighbour whose own line holds most; NULL = none that is worth the name. */
static const struct evidence_neighbour *known_inside(const struct evidence_device *d)
{
	const struct evidence_neighbour *most = NULL;
	LIST_EACH (struct evidence_neighbour, n, d->neighbours)
		if (n->site && n->site_bytes >= notable(d) && (!most || n->site_bytes > most->site_bytes))
			most = n;
	return most;
}

static void describe_neighbours(const struct evidence_device *d, uint64_t bytes, struct verdict *out)
{
	const struct evidence_neighbour *inside = known_inside(d);
	out->sites[0] = inside ? inside->site : NULL;
	say_neighbours(d, bytes, &out->evidence);
	if (are_workers(d))
		SAY(&out->advice, workers_keep_nothing, .of = d->name);
	else
		SAY(&out->advice, fewer_processes, .of = d->name, .count = d->neighbours.count + 1);
	if (inside) {
		SAY(&out->evidence, line_holds, .site = inside->site, .pid = inside->pid, .bytes = inside->site_bytes);
		SAY(&out->advice, line_less, .site = inside->site, .pid = inside->pid);
	}
}

static bool is_accounted_for(const struct evidence_device *d)
{
	return d->explained && (double)d->unexplained < CONTEXTS * (double)d->total;
}

/* Nobody sampled the processes: what is neither ours nor free may still be somebody's. */
static enum finding unseen_neighbours(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	bool large = d->unexplained > 0 && would_do(d, (uint64_t)d->unexplained);
	if (!large || (!d->neighbours_known && (double)d->unexplained < MUCH * (double)d->total))
		return d->neighbours_known   ? RULED_OUT(out, device_ours_alone, .of = d->name)
		       : is_accounted_for(d) ? RULED_OUT(out, accounted_for, .of = d->name,
							 .bytes = (uint64_t)(d->unexplained > 0 ? d->unexplained : 0))
					     : UNKNOWN(out, not_sampled, .of = d->name);
	SAY(&out->evidence, unseen_process, .bytes = (uint64_t)d->unexplained, .of = d->name);
	return holds(out, e, (uint64_t)d->unexplained, CONFIDENCE_remains);
}

enum finding device_other_process(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	uint64_t bytes = neighbour_bytes(d);
	if (!d->request.failed || met_limit(d))
		return FINDING_NONE;
	if (bytes == 0)
		return unseen_neighbours(e, d, out);
	if (!would_do(d, bytes))
		return RULED_OUT(out, neighbours_little, .bytes = bytes, .of = d->name);
	if (would_do(d, growing_bytes(d)) && neighbours_stayed(d))
		return RULED_OUT(out, neighbours_before, .bytes = bytes);
	describe_neighbours(d, bytes, out);
	return holds(out, e, bytes, d->self_listed ? CONFIDENCE_shown : CONFIDENCE_one_open);
}

/* ---- phase peak ---------------------------------------------------------------------------------------- */

/* What the phase itself added to what was there before. */
static uint64_t added(const struct evidence_phase *p)
{
	return evidence_known(p->begin_bytes) ? less(p->peak_bytes, p->begin_bytes) : p->peak_bytes;
}

struct phase_peak {
	const struct evidence_phase *top, *next;
	uint64_t most_added; /* by any other phase */
};

/* Of one process. `failed` adds what could not be had to the failing phase. */
static struct phase_peak highest_phase(const struct evidence_device *d, uint32_t pid, bool failing_only)
{
	struct phase_peak f = { 0 };
	LIST_EACH (struct evidence_phase, p, d->phases)
		if (p->pid == pid && (failing_only ? p->failing : !f.top || p->peak_bytes > f.top->peak_bytes))
			f.top = p;
	LIST_EACH (struct evidence_phase, p, d->phases) {
		if (p->pid != pid || (f.top && !strcmp(p->name, f.top->name)))
			continue;
		if (!f.next || p->peak_bytes > f.next->peak_bytes)
			f.next = p;
		f.most_added = added(p) > f.most_added ? added(p) : f.most_added;
	}
	return f;
}

/* The highest that it had, or what it had when it failed and asked for `request` more. */
static uint64_t needs_in(const struct evidence_device *d, const struct evidence_phase *p, uint64_t request)
{
	const uint64_t then = d->pool.allocated ? lower(d->pool.allocated, p->peak_bytes) : p->peak_bytes;
	return higher(p->peak_bytes, then + request);
}

static bool stands_out(const struct evidence_device *d, const struct phase_peak *f, uint64_t request)
{
	if (!f->top || !f->next)
		return false;
	uint64_t peak = needs_in(d, f->top, request);
	return (double)peak >= PEAK_RATIO * (double)f->next->peak_bytes && peak - f->next->peak_bytes >= notable(d) &&
	       added(f->top) + (peak - f->top->peak_bytes) > f->most_added;
}

/* A line of the training loop is a part of each step; and before the loop has run there is nothing to compare with. */
static bool is_phase(const struct evidence_device *d, const struct evidence_phase *p)
{
	unsigned times = 0;
	LIST_EACH (struct evidence_phase, other, d->phases)
		times += other->pid == p->pid && !strcmp(other->name, p->name) ? other->times : 0;
	return !p->line || (p->after_steps && !p->steps_run && times <= PHASE_VISITS && 2 * times <= p->steps);
}

static enum finding own_phase_peak(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	struct balance b = balance_of(d);
	struct phase_peak f = highest_phase(d, d->request.pid, true);
	uint64_t request = d->request.bytes;
	/* nor a line that made nothing before its request failed, nor one that makes what a model needs in any phase */
	if (!f.top || !f.next || !is_phase(d, f.top) || (f.top->line && added(f.top) == 0) || d->request.ahead)
		return FINDING_NONE;
	const uint64_t need = needs_in(d, f.top, request);
	if (!stands_out(d, &f, request) || need - f.next->peak_bytes < b.least_short)
		return RULED_OUT(out, phase_no_higher, .phase = f.top->name, .other = f.next->name,
				 .bytes = f.next->peak_bytes);
	if (would_do(d, growing_bytes(d)))
		return RULED_OUT(out, grew_before_phase, .phase = f.top->name);
	SAY(&out->evidence, phase_needs, .phase = f.top->name, .need = need, .bytes = f.next->peak_bytes,
	    .other = f.next->name);
	if (d->most_for == CATEGORY_activations && !d->no_graph)
		SAY(&out->advice, phase_no_grad, .phase = f.top->name, .bytes = d->most_for_bytes);
	else if (capacity_is_kept(d))
		SAY(&out->advice, phase_keeps, .phase = f.top->name, .site = d->holder.site, .blocks = d->holder.blocks,
		    .each = d->holder.each);
	else
		SAY(&out->advice, phase_less, .phase = f.top->name);
	return holds(out, e, need - f.next->peak_bytes, CONFIDENCE_one_open);
}

/* A neighbour whose phase needs so much that there is no room for us beside it. */
static enum finding neighbours_phase_peak(const struct evidence *e, const struct evidence_device *d,
					  struct verdict *out)
{
	LIST_EACH (struct evidence_neighbour, n, d->neighbours) {
		struct phase_peak f = highest_phase(d, n->pid, false);
		if (!n->traced || !stands_out(d, &f, 0) || !is_phase(d, f.top) ||
		    f.top->peak_bytes + f.next->peak_bytes <= d->total)
			continue;
		SAY(&out->evidence, neighbours_phase, .phase = f.top->name, .pid = n->pid, .need = f.top->peak_bytes,
		    .bytes = f.next->peak_bytes);
		SAY(&out->advice, stagger_phases, .phase = f.top->name);
		return holds(out, e, f.top->peak_bytes - f.next->peak_bytes,
			     f.top->failing ? CONFIDENCE_observed : CONFIDENCE_remains);
	}
	return FINDING_NONE;
}

enum finding device_phase_peak(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	if (!d->request.failed)
		return FINDING_NONE;
	enum finding theirs = neighbours_phase_peak(e, d, out);
	return theirs == FINDING_NONE ? own_phase_peak(e, d, out) : theirs;
}

/* ---- fragmentation ------------------------------------------------------------------------------------- */

/* Nobody knows what the rest of the step needs: room for as much again, and enough to go on with, speaks for it. */
static bool is_much(const struct evidence_device *d, uint64_t room)
{
	return room >= d->request.bytes && (double)room >= ROOM_GOES_ON * (double)evidence_or(d->total, 0);
}

static uint64_t room_with(const struct evidence_setting *s)
{
	return s->spare + s->unused;
}

/* Each step needs more than the one before, and they fill the room that a setting leaves as soon as growth would that
 * matters. */
static bool steps_fill(const struct evidence_device *d, const struct evidence_setting *s)
{
	return (double)d->step_pace * (GROWTH_HORIZON - 1) * d->steps > (double)room_with(s);
}

/* With it the rest of the step fits, too: another request that fails in the same step is no help. */
static bool lasts(const struct evidence_device *d, const struct evidence_setting *s)
{
	const uint64_t room = room_with(s);
	if (evidence_known(d->request.rise))
		return less(d->request.rise, d->request.bytes) <= room;
	return less(d->request.ahead, d->request.bytes) <= room && is_much(d, room);
}

/* The setting under which the failed request and the rest of its step fit, with most to spare; where nothing failed
 * that which reserves least, if that is less by what is worth the name. NULL = none helps, or nobody knows. */
static const struct evidence_setting *best_setting(const struct evidence_device *d)
{
	const struct evidence_replay *r = &d->pool.replay;
	const struct evidence_setting *best = NULL;
	for (size_t i = 0; r->known && i < r->count; i++) {
		const struct evidence_setting *s = &r->settings[i];
		if (!s->fits || (d->request.failed && !lasts(d, s)) ||
		    (!d->request.failed && less(r->reserved, s->reserved) < notable(d)))
			continue;
		if (!best || (d->request.failed ? s->spare > best->spare : s->reserved < best->reserved))
			best = s;
	}
	return best;
}

/* Those under which it fits, too. */
static void say_other_settings(const struct evidence_device *d, const struct evidence_setting *best,
			       struct reasons *advice)
{
	bool any = false;
	for (size_t i = 0; i < d->pool.replay.count; i++) {
		const struct evidence_setting *s = &d->pool.replay.settings[i];
		if (s == best || !s->fits || !lasts(d, s))
			continue;
		reasons_add(advice, any ? REASON_and_with : REASON_fits_also,
			    &(struct figures){ .setting = s->name, .bytes = s->spare });
		any = true;
	}
}

/* That which grants the request alone, with most to spare; NULL = none. */
static const struct evidence_setting *brief_setting(const struct evidence_device *d)
{
	const struct evidence_setting *best = NULL;
	for (size_t i = 0; i < d->pool.replay.count; i++) {
		const struct evidence_setting *s = &d->pool.replay.settings[i];
		best = s->fits && (!best || s->spare > best->spare) ? s : best;
	}
	return best;
}

static void say_too_late(const struct evidence_device *d, struct reasons *advice)
{
	if (d->late)
		SAY(advice, set_too_late, .name = d->late);
}

/* Against holes of so many bytes, where a request failed or not. */
static void advise_on_holes(const struct evidence_device *d, uint64_t bytes, struct reasons *advice)
{
	const bool failed = d->request.failed;
	const struct evidence_replay *r = &d->pool.replay;
	const struct evidence_setting *best = best_setting(d), *brief = failed ? brief_setting(d) : NULL;
	if (best) {
		SAY(advice, start_with, .name = d->conf);
		if (!failed) {
			SAY(advice, setting_saves, .setting = best->name, .bytes = r->reserved - best->reserved);
			return;
		}
		SAY(advice, setting_fits, .setting = best->name, .bytes = best->spare);
		if (steps_fill(d, best))
			SAY(advice, for_steps, .steps = room_with(best) / d->step_pace, .rate = d->step_pace);
		say_too_late(d, advice);
		say_other_settings(d, best, advice);
		return;
	}
	if (r->known && r->count && brief) {
		SAY(advice, setting_brief, .count = r->count, .setting = brief->name, .bytes = brief->spare);
	} else if (r->known && r->count && !r->sizes_unknown) {
		SAY(advice, no_setting, .count = r->count);
	} else if (d->pool.expandable) {
		SAY(advice, expandable_already);
	} else {
		SAY(advice, start_with, .name = d->conf);
		reasons_add(advice, failed ? REASON_expandable_wins : REASON_expandable_joins,
			    &(struct figures){ .bytes = bytes });
		say_too_late(d, advice);
		return;
	}
	reasons_add(advice, failed ? REASON_fewer_sizes_at_oom : REASON_fewer_sizes, NULL);
}

/* Nothing failed: pieces only matter where the device is nearly full of them. */
static enum finding fragmented_so_far(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	uint64_t unused = pool_unused(d), holes = less(unused, evidence_or(d->pool.free_segments, 0));
	double part = d->pool.reserved ? (double)holes / (double)d->pool.reserved : 0;
	double taken = (double)less(d->total, evidence_or(d->free, 0));
	if (unused < notable(d) || !evidence_known(d->pool.free_segments))
		return FINDING_NONE;
	if (part < SERIOUS || taken < NEARLY_FULL * (double)d->total)
		return RULED_OUT(out, unused_is_cache, .unused = unused, .reserved = d->pool.reserved,
				 .bytes = evidence_or(d->pool.free_segments, 0));
	SAY(&out->evidence, holes_so_far, .bytes = holes, .reserved = d->pool.reserved, .of = d->name);
	advise_on_holes(d, holes, &out->advice);
	return holds(out, e, holes, CONFIDENCE_so_far);
}

/* What is unused, but not for this request. Is there any? */
static bool say_out_of_reach(const struct evidence_device *d, struct reasons *evidence)
{
	const struct evidence_graphs *g = &d->pool.graphs;
	if (g->capturing && g->common_unused)
		SAY(evidence, not_for_capture, .bytes = g->common_unused);
	else if (d->pool.apart > g->unused)
		SAY(evidence, for_others, .bytes = d->pool.apart);
	else if (g->unused)
		SAY(evidence, of_graphs, .bytes = g->unused);
	else
		return false;
	return true;
}

/* What a perfect packing of what is in use would not have needed: holes of all streams and sizes. */
static uint64_t not_needed_packed(const struct evidence_device *d)
{
	const struct evidence_graphs *g = &d->pool.graphs;
	return less(less(d->pool.reserved, d->pool.allocated),
		    d->pool.withheld + (g->capturing ? g->common_unused : g->unused));
}

static enum finding not_fragmented(const struct evidence_device *d, const struct balance *b, struct verdict *out)
{
	struct reasons *why = &out->evidence;
	SAY(why, unused_in_all, .unused = b->unused);
	if (evidence_known(d->pool.largest_hole))
		SAY(why, with_hole, .bytes = d->pool.largest_hole);
	SAY(why, too_little, .free = b->free, .need = d->request.bytes);
	if (!say_out_of_reach(d, why) && d->request.bytes > b->free + not_needed_packed(d))
		SAY(why, no_packing);
	return FINDING_RULED_OUT;
}

/* Who keeps segments with holes from going back. */
static void say_pins(const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_pin *most = d->pins.items;
	for (size_t i = 0; i < d->pins.count && i < VERDICT_SITES; i++)
		out->sites[i] = d->pins.items[i].site;
	if (d->pins.count)
		SAY(&out->evidence, pins_segments, .site = most->site, .pinned = most->pinned, .bytes = most->held);
}

/* By which steps need more than the first ones did, where that alone would have been enough; else 0. */
static uint64_t more_needed(const struct evidence_device *d)
{
	const uint64_t more = evidence_known(d->step_first) ? less(d->step_latest, d->step_first) : 0;
	return would_do(d, more) ? more : 0;
}

/* High where the run would have gone on: the rest of the step fits, too, as earlier ones went. In a first step nobody
 * knows that: there only much room behind the request speaks for it. Nor where each step needs more: a later one fills
 * the holes. */
static enum confidence fragmentation_confidence(const struct evidence_device *d, const struct balance *b)
{
	if (more_needed(d))
		return CONFIDENCE_guess;
	if (!evidence_known(d->request.rise))
		return is_much(d, less(b->free + b->unused, higher(d->request.bytes, d->request.ahead)))
			       ? CONFIDENCE_remains
			       : CONFIDENCE_guess;
	return evidence_known(d->pool.largest_hole) ? CONFIDENCE_shown : CONFIDENCE_either;
}

/* By what goes on growing for certain. */
static bool will_be_filled(const struct evidence_device *d)
{
	const struct evidence_growth *most = largest_growth(d);
	return most && most->fit.certainty == CERTAINTY_HIGH && would_do(d, growing_bytes(d));
}

static enum finding fragmented(const struct evidence *e, const struct evidence_device *d, const struct balance *b,
			       struct verdict *out)
{
	struct reasons *evidence = &out->evidence;
	const uint64_t packed = not_needed_packed(d);
	SAY(evidence, unused_in_pool, .unused = b->unused);
	if (b->unused > pool_unused(d))
		SAY(evidence, for_all_sizes);
	if (evidence_known(d->pool.largest_hole))
		SAY(evidence, largest_hole, .free = b->free, .need = d->request.bytes, .bytes = d->pool.largest_hole);
	else
		SAY(evidence, smaller_holes, .free = b->free, .need = d->request.bytes);
	SAY(evidence, packed_less, .bytes = packed);
	say_rest(evidence, d);
	if (evidence_known(d->step_first))
		SAY(evidence, steps_will_fill, .first = d->step_first, .latest = d->step_latest);
	say_pins(d, out);
	advise_on_holes(d, b->unused, &out->advice);
	/* enough for what the step still needs, if that is known, and for those that follow */
	const struct evidence_setting *best = best_setting(d);
	out->shown = best && evidence_known(d->request.rise) && !will_be_filled(d) && !steps_fill(d, best);
	return holds(out, e, packed, fragmentation_confidence(d, b));
}

enum finding device_fragmentation(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_request *r = &d->request;
	struct balance b = balance_of(d);
	if (!d->pool.known)
		return r->failed && r->caller == CALLER_POOL && !d->pool.driver_pool
			       ? UNKNOWN(out, pool_not_recorded, .of = d->name)
			       : FINDING_NONE;
	if (!r->failed)
		return fragmented_so_far(e, d, out);
	if (r->caller != CALLER_POOL || met_limit(d))
		return FINDING_NONE;
	if (d->pool.partly_seen && evidence_known(d->pool.said_unused) && b.unused + b.free < r->bytes)
		return not_fragmented(d, &b, out);
	if (d->pool.partly_seen)
		return UNKNOWN(out, pool_partly_seen, .bytes = less(d->pool.reserved, d->pool.allocated),
			       .of = d->name);
	if ((b.least_short > 0 && !best_setting(d)) || b.need <= b.free)
		return not_fragmented(d, &b, out);
	if (b.least_short > 0)
		b.unused = not_needed_packed(d); /* a setting makes it fit with what is for other sizes, too */
	const struct evidence_copies *begun = begun_copy(d);
	if (begun)
		return RULED_OUT(out, unused_but_copy, .unused = b.unused, .missing = begun->missing);
	if (b.unused < (uint64_t)(NOTABLE_HOLES * (double)evidence_or(d->total, 0)))
		return RULED_OUT(out, unused_little, .unused = b.unused, .reserved = d->pool.reserved,
				 .percent = percent_of(b.unused, d->pool.reserved));
	if (rest_lacks(d, &b))
		return evidence_known(r->rise) ? RULED_OUT(out, unused_but_rise, .unused = b.unused, .rise = r->rise)
					       : RULED_OUT(out, unused_but_ahead, .unused = b.unused,
							   .name = r->ahead_for, .rise = r->ahead);
	const struct evidence_growth *passing = evidence_largest(d->growth.items, d->growth.count, OUTLOOK_NEEDS_MORE);
	const uint64_t grown = growing_bytes(d) + (passing ? passing->bytes : 0);
	if (b.unused < more_needed(d) / 2)
		return RULED_OUT(out, unused_but_steps, .unused = b.unused, .first = d->step_first,
				 .latest = d->step_latest);
	if (would_do(d, grown) && b.unused < grown / 2)
		return RULED_OUT(out, unused_but_growth, .unused = b.unused, .bytes = grown);
	if (would_do(d, copied_bytes(d)) && b.unused < copied_bytes(d) / 2)
		return RULED_OUT(out, unused_but_copies, .unused = b.unused, .bytes = copied_bytes(d));
	if (evidence_known(d->pool.largest_hole) && d->pool.largest_hole >= r->bytes && !best_setting(d))
		return RULED_OUT(out, hole_for_others, .bytes = d->pool.largest_hole);
	return fragmented(e, d, &b, out);
}

/* ---- retained ------------------------------------------------------------------------------------------ */

static uint64_t neighbours_unused(const struct evidence_device *d)
{
	uint64_t sum = 0;
	LIST_EACH (struct evidence_neighbour, n, d->neighbours)
		sum += n->traced ? evidence_or(n->pool_unused, 0) : 0;
	return sum;
}

/* It would have fitted, also if the holes that it could use are of no use. */
static bool by_itself(const struct evidence_device *d, uint64_t bytes)
{
	struct balance b = balance_of(d);
	return would_do(d, bytes) && b.most_short > 0 && (b.least_short > 0 || bytes >= b.most_short);
}

/*
 * Private pools keep what their captures needed most; nobody else can use it, and no cache of theirs is returned. Nor
 * does a pool return the common one's cache while it captures.
 */
static enum finding kept_by_graphs(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_graphs *g = &d->pool.graphs;
	const struct evidence_replay *r = &d->pool.replay;
	if (by_itself(d, g->common_idle)) {
		SAY(&out->evidence, asked_in_capture, .bytes = g->common_idle);
		if (r->known && r->emptied_fits)
			SAY(&out->advice, empty_before_fits);
		else if (r->known && r->emptied_known)
			SAY(&out->advice, capture_early);
		else
			SAY(&out->advice, empty_before_capture);
		out->shown = r->known && r->emptied_fits;
		return holds(out, e, g->common_idle, CONFIDENCE_one_open);
	}
	if (!by_itself(d, g->unused))
		return FINDING_NONE;
	if (g->captures == 1)
		SAY(&out->evidence, graph_keeps, .bytes = g->unused);
	else
		SAY(&out->evidence, graphs_keep, .count = g->captures, .bytes = g->unused);
	if (g->pools > 1 && 2 * g->pools > g->captures) /* where they share one it may look like several */
		SAY(&out->advice, share_graph_pool);
	else
		SAY(&out->advice, fewer_graphs);
	return holds(out, e, g->unused, CONFIDENCE_one_open);
}

/* It goes with the object that stands for the pool, and by nothing else. */
static enum finding kept_by_own_pool(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	if (!by_itself(d, d->pool.withheld))
		return FINDING_NONE;
	SAY(&out->evidence, own_pool_keeps, .bytes = d->pool.withheld);
	SAY(&out->advice, drop_own_pool);
	return holds(out, e, d->pool.withheld, CONFIDENCE_one_open);
}

/* A request beside the pool, which has enough unused; what of that is whole segments goes back. */
static enum finding kept_beside(const struct evidence *e, const struct evidence_device *d, uint64_t unused,
				struct verdict *out)
{
	const struct evidence_replay *r = &d->pool.replay;
	SAY(&out->evidence, asked_beside, .name = d->request.caller_name, .unused = unused);
	if (r->known && !would_do(d, r->cached))
		return RULED_OUT(out, cache_too_little, .bytes = r->cached);
	SAY(&out->advice, empty_cache);
	if (r->known)
		SAY(&out->advice, replayed_gives, .bytes = r->cached);
	out->shown = r->known;
	SAY(&out->advice, or_cap_pool, .need = balance_of(d).need);
	return holds(out, e, unused, CONFIDENCE_counted);
}

enum finding device_retained(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	uint64_t unused = pool_unused(d), theirs = neighbours_unused(d);
	if (!d->request.failed)
		return FINDING_NONE;
	if (d->request.caller != CALLER_POOL && d->pool.known && would_do(d, unused))
		return kept_beside(e, d, unused, out);
	if (would_do(d, theirs)) {
		SAY(&out->evidence, neighbours_keep, .bytes = theirs);
		SAY(&out->advice, neighbours_empty);
		return holds(out, e, theirs, CONFIDENCE_one_open);
	}
	enum finding found = kept_by_graphs(e, d, out);
	return found == FINDING_NONE ? kept_by_own_pool(e, d, out) : found;
}

/* ---- outside the pool ---------------------------------------------------------------------------------- */

static uint64_t avoidable(const struct evidence_device *d, const struct evidence_part **most)
{
	uint64_t sum = 0;
	*most = NULL;
	LIST_EACH (struct evidence_part, p, d->parts) {
		if (p->fixed)
			continue;
		sum += p->bytes;
		*most = !*most || p->bytes > (*most)->bytes ? p : *most;
	}
	return sum;
}

/* What goes on growing there is a leak's. */
static uint64_t grown_outside(const struct evidence_device *d)
{
	uint64_t sum = 0;
	LIST_EACH (struct evidence_growth, g, d->growth)
		sum += g->kind == MODEL_DEVICE && evidence_is_leak(g) ? g->bytes : 0;
	return sum;
}

enum finding device_outside_pool(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_part *most;
	const uint64_t all = avoidable(d, &most), grown = grown_outside(d), bytes = less(all, grown);
	if (d->request.failed && would_do(d, d->unmapped)) {
		SAY(&out->evidence, mapped_nowhere, .bytes = d->unmapped);
		SAY(&out->advice, map_or_release);
		return holds(out, e, d->unmapped, CONFIDENCE_counted);
	}
	if (!d->request.failed || !d->pool.known)
		return FINDING_NONE;
	if (!evidence_known(d->own_other))
		return UNKNOWN(out, outside_unknown, .of = d->name);
	if (grown && would_do(d, all) && !would_do(d, bytes)) {
		SAY(&out->evidence, outside, .bytes = d->own_other);
		return RULED_OUT(out, outside_grew, .bytes = grown);
	}
	if (!most || bytes < 2 * notable(d) || !would_do(d, bytes))
		return RULED_OUT(out, outside, .bytes = d->own_other);
	SAY(&out->evidence, lies_outside, .bytes = bytes, .name = most->name, .each = most->bytes);
	SAY(&out->advice, reduce_part, .name = most->name);
	return holds(out, e, bytes, CONFIDENCE_one_open);
}

/* ---- capacity ------------------------------------------------------------------------------------------ */

/* Some other rule says that it would have fitted. */
static bool has_other_cause(const struct evidence *e, const struct evidence_device *d, struct reasons *why)
{
	static const struct {
		verdict_rule *rule;
		enum reason_kind why;
	} others[] = {
		{ device_limit, REASON_cap_was_met },
		{ device_leak, REASON_fits_without_growth },
		{ device_copies, REASON_fits_without_copies },
		{ device_other_process, REASON_fits_without_neighbours },
		{ own_phase_peak, REASON_other_phases_fit },
		{ device_fragmentation, REASON_enough_in_pieces },
		{ device_retained, REASON_fits_without_unused },
		{ device_outside_pool, REASON_fits_without_outside },
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct verdict v = { 0 };
		enum finding f = others[i].rule(e, d, &v);
		reasons_fini(&v.evidence);
		reasons_fini(&v.advice);
		if (f == FINDING_HOLDS && verdict_certainty(v.confidence) > CERTAINTY_LOW) {
			reasons_add(why, others[i].why, NULL);
			return true;
		}
	}
	return false;
}

/* Another device of the process's that had room for it all the time. */
static void say_elsewhere(const struct evidence_device *d, uint64_t missing, struct reasons *advice)
{
	const uint64_t free = d->roomiest.free;
	if (d->roomiest.name && free >= missing && (double)free >= NOTABLE * (double)d->roomiest.total)
		SAY(advice, part_elsewhere, .other = d->roomiest.name, .free = free);
}

enum finding device_capacity(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	struct balance b = balance_of(d);
	if (!d->request.failed)
		return FINDING_NONE;
	if (!evidence_known(d->free))
		return UNKNOWN(out, free_unknown, .of = d->name);
	if (!d->request.bytes)
		return UNKNOWN(out, request_unknown, .of = d->name);
	if (!evidence_known(d->total))
		return UNKNOWN(out, size_unknown, .of = d->name);
	if (has_other_cause(e, d, &out->evidence))
		return FINDING_RULED_OUT;
	if (b.most_short == 0)
		return UNKNOWN(out, failed_with_room, .need = b.need, .of = d->name, .free = b.free);
	uint64_t lacks = rest_lacks(d, &b), missing = b.most_short > lacks ? b.most_short : lacks;
	const bool range = lacks > b.most_short && d->request.rise_unscaled &&
			   (double)d->request.rise_unscaled < ALIKE * (double)d->request.rise;
	const bool steps_tell = evidence_known(d->request.rise);
	const bool unsure = b.least_short > 0 && b.most_short - b.least_short > b.most_short / 50;
	if (lacks && (b.least_short == 0 || !steps_tell)) {
		reasons_add(&out->evidence,
			    !steps_tell ? REASON_short_ahead
			    : range     ? REASON_short_as_steps_may
					: REASON_short_as_steps_rise,
			    &(struct figures){ .need = d->request.bytes,
					       .free = b.free,
					       .unused = b.unused,
					       .least = d->request.rise_unscaled,
					       .rise = rest_of(d),
					       .name = d->request.ahead_for,
					       .missing = lacks });
	} else {
		if (unsure)
			SAY(&out->evidence, short_by_range, .need = d->request.bytes, .free = b.free,
			    .unused = b.unused, .least = b.least_short, .missing = b.most_short);
		else
			SAY(&out->evidence, short_by, .need = b.need, .free = b.free, .missing = b.most_short,
			    .unused = b.unused);
		say_rest(&out->evidence, d);
	}
	say_elsewhere(d, missing, &out->advice);
	capacity_advise(d, unsure && !steps_tell && !lacks ? b.least_short : missing,
			range                                ? REASON_need_up_to
			: lacks > b.most_short && steps_tell ? REASON_need_about
			: unsure && steps_tell               ? REASON_need_up_to
							     : REASON_need_less,
			&out->advice);
	const bool maybe_holes = b.least_short == 0 && d->pool.known && (steps_tell ? more_needed(d) > 0 : !lacks);
	return holds(out, e, missing,
		     maybe_holes || (!d->neighbours_known && !is_accounted_for(d)) ? CONFIDENCE_either
		     : !d->growth_known                                            ? CONFIDENCE_one_open
										   : CONFIDENCE_shown);
}
