/*
 * The rules about a device. Most ask the same question: the request was short by so much; would it have fitted without
 * this? What a rule is about must also be worth the name: where 4 MiB are missing, any 4 MiB would have helped.
 */
#include "analyzer/diagnosis/growth/growth_matters.h"
#include "analyzer/diagnosis/verdict_capacity.h"
#include "analyzer/diagnosis/verdict_rules_internal.h"
#include "analyzer/timeline/forecast.h"
#include "analyzer/timeline/outlook.h"
#include "analyzer/timeline/phases.h"
#include "analyzer/util/output.h"

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
	uint64_t apart = d->pool.graphs.unused + d->pool.graphs.common_unused + d->pool.apart;
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

/* By how much the rest of the step, as earlier ones went, exceeds what there is, holes included; 0 = it fits, or nobody
 * knows. */
static uint64_t rest_lacks(const struct evidence_device *d, const struct balance *b)
{
	return less(evidence_or(d->request.rise, 0), b->free + b->unused);
}

static const char *untold(const struct evidence_device *d)
{
	return evidence_known(d->request.rise) ? "" : "; no earlier step says what would still have been asked for";
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

static enum finding unknown(struct verdict *out, char *what)
{
	out->evidence = what;
	return FINDING_UNKNOWN;
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
	return r->failed && r->caller == CALLER_POOL && evidence_known(d->free) && !r->driver_failures &&
	       d->free >= needed(d);
}

enum finding device_limit(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_request *r = &d->request;
	uint64_t need = needed(d);
	if (!r->failed || r->caller != CALLER_POOL || !evidence_known(d->free))
		return FINDING_NONE;
	if (!met_limit(d))
		return is_capped(d) || r->driver_failures
			       ? ruled_out(out,
					   output_format("%s was free, %s asked for: it was the device that was full",
							 BYTES(d->free), BYTES(need)))
			       : FINDING_NONE;
	out->advice = output_format(
		"raise the cap (set_per_process_memory_fraction, or the pool's limit) or ask for less: %s of "
		"the device are free",
		BYTES(d->free));
	if (is_capped(d) && d->pool.known) {
		out->evidence =
			output_format("the pool may take %s; it had %s and wanted %s more while %s were free",
				      BYTES(r->limit_bytes), BYTES(d->pool.reserved), BYTES(need), BYTES(d->free));
		return holds(out, e, less(d->pool.reserved + need, r->limit_bytes), CONFIDENCE_own_limit);
	}
	out->evidence = output_format("the pool gave up although %s were free and no driver call failed: it has a cap",
				      BYTES(d->free));
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

static char *why_not_growing(const struct evidence_device *d)
{
	LIST_EACH (struct evidence_growth, g, d->growth)
		if (g->is_copy && outlook_goes_on(g->outlook))
			return output_format("what grew (%s, %s) is one of the copies", g->site ? g->site : "?",
					     BYTES(g->bytes));
	LIST_EACH (struct evidence_growth, g, d->growth) { /* the largest first */
		char *why = g->works || !g->bytes ? NULL : outlook_why_no_leak(g->outlook);
		char *text = why ? output_format("what grew (%s, %s) did so %s", g->site ? g->site : "?",
						 BYTES(g->bytes), why)
				 : NULL;
		free(why);
		if (text)
			return text;
	}
	LIST_EACH (struct evidence_growth, g, d->growth)
		if (g->fit.certainty == CERTAINTY_LOW && outlook_goes_on(g->outlook))
			return output_format(
				"what grows (%s, %s) is too uncertain: lost events may have made most of it",
				g->site ? g->site : "?", BYTES(g->bytes));
	if (d->steps)
		return output_format("what outlives its %u steps does not grow%s", d->steps,
				     d->behind_steps ? "; it failed behind them" : "");
	return output_format("nothing that one line makes goes on growing");
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
	char *list = g->per_step > 0     ? output_format(", %s more each step", BYTES((uint64_t)g->per_step))
		     : g->per_second > 0 ? output_format(", %s more each second", BYTES((uint64_t)g->per_second))
					 : output_format("%s", "");
	const char *site = g->site ? g->site : "one site", *second = growth_second(g);
	char *makers = growth_makers(g);
	char *when = g->fails_step > 0 && !d->request.failed ? forecast_text(g->fails_step, g->fails_low, g->fails_high)
							     : NULL;
	char *fails = output_format("%s%s", when ? "; if it goes on, memory ends at step " : "", when ? when : "");
	char *since = !g->late          ? output_format("since the start")
		      : g->per_step > 0 ? output_format("since step %.0f", floor(g->since))
					: output_format("since second %.1f", g->since);
	out->evidence = output_format("more of %s stays, made by %s: %s %s%s, %s%s%s%s", d->name, makers ? makers : "",
				      BYTES(g->bytes), since ? since : "", list ? list : "", growth_name(g->fit.kind),
				      g->freed_some ? "" : ", nothing of it was ever freed",
				      groups > 1 ? "; others grow too" : "", fails ? fails : "");
	out->advice =
		keeps_graph
			? output_format(
				  "what %s makes for a backward pass is kept, and the graph with it: detach() what is stored, or take its value (.item()); "
				  "or run the backward pass of each at once",
				  site)
		: g->outside_pool
			? output_format("find what keeps the blocks of %s: nothing gives them back to the driver", site)
			: output_format(
				  "find what holds the blocks of %s%s%s (a list, a cache, %sa hook registered again)",
				  site, second ? ", and those of " : "", second ? second : "",
				  may_be_graph(d, g) ? "a graph through a loss, " : "");
	free(list);
	free(makers);
	free(since);
	free(when);
	free(fails);
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
	out->evidence = output_format(
		"%u request%s failed before and %s caught, and %s of what %s attempt%s made (%s) is still alive",
		a->count, a->count == 1 ? "" : "s", a->count == 1 ? "was" : "were", BYTES(a->bytes),
		a->count == 1 ? "that" : "those", a->count == 1 ? "" : "s", a->site ? a->site : "?");
	out->advice = output_format(
		"find what holds what %s made for attempts that failed: the exception, if it is kept or the next attempt runs in its except "
		"block (its traceback holds all of them; its text will do), or a list of the program's",
		a->site ? a->site : "it");
	return holds(out, e, a->bytes, CONFIDENCE_one_open);
}

enum finding device_leak(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	uint64_t grown = growing_bytes(d);
	const struct evidence_growth *most = largest_growth(d);
	if (d->attempts.count && would_do(d, d->attempts.bytes) && !(most && would_do(d, grown)))
		return left_by_attempts(e, d, out);
	if (!d->growth_known)
		return d->request.failed
			       ? unknown(out, output_format("growth on %s: the run is too short to say", d->name))
			       : FINDING_NONE;
	const struct evidence_growth *open = most ? NULL : evidence_unproven(d->growth.items, d->growth.count);
	if (open)
		return unknown(
			out,
			output_format(
				"whether %s leaks: more of what %s makes seems to stay, %s, but frees may be among the lost events",
				d->name, open->site ? open->site : "one site", BYTES(open->unproven)));
	if (!most && d->doubt && d->doubt >= notable(d))
		return unknown(out, output_format("whether anything on %s leaks: too many events were lost", d->name));
	if (!most)
		return ruled_out(out, why_not_growing(d));
	bool matters = d->request.failed ? would_do(d, grown) : grown >= notable(d) || fails_soon(most, grown);
	if (!matters)
		return ruled_out(out,
				 output_format("what grows (%s, %s) %s", most->site ? most->site : "?", BYTES(grown),
					       d->request.failed ? "is not what was missing"
								 : "is little and far from the limit"));
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

char *copies_evidence(const struct evidence_copies *c, struct verdict *out)
{
	char *made = output_format("%s", ""), *begun = NULL;
	for (unsigned i = 0; i < VERDICT_SITES && c->owners[i]; i++) {
		char *times = c->times[i] > 1 ? output_format(" (%u of them)", c->times[i]) : NULL;
		char *more =
			output_format("%s%s%s%s", made ? made : "", i ? ", " : ": ", c->owners[i], times ? times : "");
		free(made);
		free(times);
		made = more;
		out->sites[i] = c->owners[i];
	}
	if (c->missing)
		begun = output_format(
			"; the last one was being made when it failed: %s of it were there, %s were missing",
			BYTES(c->there), BYTES(c->missing));
	out->advice = output_format(
		"%sdrop %s of them before this point (del, gc.collect()), %sor share the storage: that gives back %s",
		c->used ? "if one can go, " : "", c->count > 2 ? "all but one" : "one",
		c->missing ? "make it on the host, " : "", BYTES(c->extra_bytes));
	char *text = output_format("%s%u sets of %u blocks of the same sizes are alive together, %s each%s%s%s",
				   c->used ? "copies, if one can go: " : "", c->count, c->blocks, BYTES(c->bytes),
				   c->cast      ? " or twice that"
				   : c->several ? " or several times that"
						: "",
				   made ? made : "", begun ? begun : "");
	free(made);
	free(begun);
	return text;
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
		out->evidence = copies_evidence(begun, out);
		return holds(out, e, extra + begun->missing, copies_confidence(begun));
	}
	if (extra == 0)
		return d->request.failed ? ruled_out(out, output_format("no two sets of blocks have the same sizes"))
					 : FINDING_NONE;
	if (!d->request.failed)
		return FINDING_NONE;
	if (!would_do(d, extra))
		return ruled_out(out, output_format("dropping the copies would give %s, too little", BYTES(extra)));
	out->evidence = copies_evidence(d->copies.items, out);
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

static char *neighbours_evidence(const struct evidence_device *d, uint64_t bytes)
{
	const struct evidence_neighbour *most = d->neighbours.items;
	LIST_EACH (struct evidence_neighbour, n, d->neighbours)
		most = n->bytes > most->bytes ? n : most;
	if (d->neighbours.count == 1 && !most->pid)
		return output_format("others hold %s %% of %s since before we began; without that the request fits",
				     PERCENT(bytes, d->total), d->name);
	if (d->neighbours.count == 1)
		return output_format("%u%s%s%s holds %s %% of %s; without it the request fits", most->pid,
				     most->name ? " " : "", most->name ? most->name : "",
				     most->worker ? ", a worker that it started itself," : "", PERCENT(bytes, d->total),
				     d->name);
	return output_format("%zu %s hold %s %% of %s, %u most (%s); without %s it fits", d->neighbours.count,
			     are_workers(d) ? "workers that it started itself" : "neighbours", PERCENT(bytes, d->total),
			     d->name, most->pid, BYTES(most->bytes),
			     that_would_do(d) == d->neighbours.count
				     ? d->neighbours.count == 2 ? "either one of them" : "any one of them"
			     : that_would_do(d) ? "the largest"
						: "all of them");
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
	char *who = neighbours_evidence(d, bytes);
	char *line = inside ? output_format("; %s of %u holds %s", inside->site, inside->pid, BYTES(inside->site_bytes))
			    : NULL;
	char *less = inside ? output_format(", or let %s of %u hold less", inside->site, inside->pid) : NULL;
	out->sites[0] = inside ? inside->site : NULL;
	out->evidence = output_format("%s%s", who ? who : "", line ? line : "");
	out->advice =
		are_workers(d)
			? output_format(
				  "let workers keep nothing on %s: what they prepare can be on the host until this process wants it; or have "
				  "fewer of them%s",
				  d->name, less ? less : "")
			: output_format("keep fewer processes on %s: %zu were on it%s", d->name,
					d->neighbours.count + 1, less ? less : "");
	free(who);
	free(line);
	free(less);
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
		return d->neighbours_known
			       ? ruled_out(out,
					   output_format("%s was ours alone (its processes were sampled)", d->name))
		       : is_accounted_for(d)
			       ? ruled_out(
					 out,
					 output_format(
						 "all of %s but %s was ours or free: that is no more than contexts take",
						 d->name, BYTES((uint64_t)(d->unexplained > 0 ? d->unexplained : 0))))
			       : unknown(out, output_format("other processes on %s: nothing sampled them", d->name));
	out->evidence = output_format(
		"%s of %s were neither ours nor free: a process that was not seen (another pid namespace, or it "
		"ended)",
		BYTES((uint64_t)d->unexplained), d->name);
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
		return ruled_out(out, output_format("neighbours hold %s of %s: without them it does not fit either",
						    BYTES(bytes), d->name));
	if (would_do(d, growing_bytes(d)) && neighbours_stayed(d))
		return ruled_out(
			out,
			output_format("the neighbours' %s were there before and did not change; what grew is our own",
				      BYTES(bytes)));
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

static bool stands_out(const struct evidence_device *d, const struct phase_peak *f, uint64_t request)
{
	if (!f->top || !f->next)
		return false;
	uint64_t peak = f->top->peak_bytes + request;
	return (double)peak >= PEAK_RATIO * (double)f->next->peak_bytes && peak - f->next->peak_bytes >= notable(d) &&
	       added(f->top) + request > f->most_added;
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
	/* nor a line that made nothing before its request failed */
	if (!f.top || !f.next || !is_phase(d, f.top) || (f.top->line && added(f.top) == 0))
		return FINDING_NONE;
	if (!stands_out(d, &f, request) || f.top->peak_bytes + request - f.next->peak_bytes < b.least_short)
		return ruled_out(out, output_format("%s needed no more than %s (%s)", f.top->name, f.next->name,
						    BYTES(f.next->peak_bytes)));
	if (would_do(d, growing_bytes(d)))
		return ruled_out(out, output_format("what grew was there before %s began", f.top->name));
	out->evidence = output_format("%s needs %s, no other phase more than %s (%s)", f.top->name,
				      BYTES(f.top->peak_bytes + request), BYTES(f.next->peak_bytes), f.next->name);
	out->advice =
		d->most_for == CATEGORY_activations && !d->no_graph
			? output_format(
				  "let %s need less at once (smaller batches there); if no backward pass follows, run it under torch.no_grad(): most are "
				  "activations (%s)",
				  f.top->name, BYTES(d->most_for_bytes))
			: output_format(
				  "let %s need less at once (smaller batches there), or free what it does not need before it",
				  f.top->name);
	return holds(out, e, f.top->peak_bytes + request - f.next->peak_bytes, CONFIDENCE_one_open);
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
		out->evidence = output_format(
			"%s of neighbour %u takes %s (else at most %s): two runs do not fit beside each other then",
			f.top->name, n->pid, BYTES(f.top->peak_bytes), BYTES(f.next->peak_bytes));
		out->advice = output_format("two runs must not be in %s together: stagger them, or let it need less",
					    f.top->name);
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

/* With it the rest of the step fits, too: another request that fails in the same step is no help. */
static bool lasts(const struct evidence_device *d, const struct evidence_setting *s)
{
	const uint64_t room = s->spare + s->unused;
	if (evidence_known(d->request.rise))
		return less(d->request.rise, d->request.bytes) <= room;
	return is_much(d, room);
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

/* Under which it fits, too; NULL = there are none. */
static char *other_settings(const struct evidence_device *d, const struct evidence_setting *best)
{
	char *list = NULL;
	for (size_t i = 0; i < d->pool.replay.count; i++) {
		const struct evidence_setting *s = &d->pool.replay.settings[i];
		if (s == best || !s->fits || !lasts(d, s))
			continue;
		char *more = output_format("%s %s (%s)", list ? list : "; so it does with", s->name, BYTES(s->spare));
		free(list);
		list = more;
	}
	return list;
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

/* Against holes, where no setting helps. */
static char *fewer_holes(const struct evidence_device *d, const char *why)
{
	return output_format("%s: use fewer different sizes, or free the blocks that pin segments (memtrace frag%s)",
			     why, d->request.failed ? " --at oom" : "");
}

/* Against holes of so many bytes, where a request failed or not. */
static char *holes_advice(const struct evidence_device *d, uint64_t bytes)
{
	const bool failed = d->request.failed;
	const struct evidence_replay *r = &d->pool.replay;
	const struct evidence_setting *best = best_setting(d);
	if (best && failed) {
		char *others = other_settings(d, best);
		char *text = output_format("%s: replayed with it this request fits, %s to spare%s", best->name,
					   BYTES(best->spare), others ? others : "");
		free(others);
		return text;
	}
	if (best)
		return output_format("%s: replayed with it the pool reserves %s less at most", best->name,
				     BYTES(r->reserved - best->reserved));
	const struct evidence_setting *brief = failed ? brief_setting(d) : NULL;
	if (r->known && r->count && (brief || !r->sizes_unknown)) {
		char *why =
			brief ? output_format(
					"no setting of the allocator helps for long (%zu replayed; with %s this request fits, %s to spare)",
					r->count, brief->name, BYTES(brief->spare))
			      : output_format("no setting of the allocator helps (%zu replayed)", r->count);
		char *text = fewer_holes(d, why ? why : "");
		free(why);
		return text;
	}
	if (d->pool.expandable)
		return fewer_holes(d, "segments are expandable already");
	return output_format(failed ? "expandable_segments:True can win up to %s here (not replayed)"
				    : "expandable_segments:True may join up to %s (not replayed)",
			     BYTES(bytes));
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
		return ruled_out(out, output_format("%s of %s reserved are unused, %s of it whole segments: a cache",
						    BYTES(unused), BYTES(d->pool.reserved),
						    BYTES(evidence_or(d->pool.free_segments, 0))));
	out->evidence = output_format("%s of %s reserved lie in holes between blocks while %s is nearly full",
				      BYTES(holes), BYTES(d->pool.reserved), d->name);
	out->advice = holes_advice(d, holes);
	return holds(out, e, holes, CONFIDENCE_so_far);
}

/* What is unused, but not for this request; NULL = nothing is. */
static char *out_of_reach(const struct evidence_device *d)
{
	const struct evidence_graphs *g = &d->pool.graphs;
	if (g->capturing && g->common_unused)
		return output_format(" (a capture can't use the common pool's %s)", BYTES(g->common_unused));
	if (d->pool.apart > g->unused)
		return output_format(" (%s are for other streams or sizes)", BYTES(d->pool.apart));
	return g->unused ? output_format(" (%s are CUDA graphs' own)", BYTES(g->unused)) : NULL;
}

/* What a perfect packing of what is in use would not have needed: holes of all streams and sizes. */
static uint64_t not_needed_packed(const struct evidence_device *d)
{
	const struct evidence_graphs *g = &d->pool.graphs;
	return less(less(d->pool.reserved, d->pool.allocated), g->capturing ? g->common_unused : g->unused);
}

static enum finding not_fragmented(const struct evidence_device *d, const struct balance *b, struct verdict *out)
{
	uint64_t hole = d->pool.largest_hole;
	const bool hopeless = d->request.bytes > b->free + not_needed_packed(d);
	char *apart = out_of_reach(d);
	enum finding f = ruled_out(
		out, output_format("unused in our pool: %s in all%s%s; with the %s free that is less than %s%s%s",
				   BYTES(b->unused), evidence_known(hole) ? ", largest hole " : "",
				   evidence_known(hole) ? BYTES(hole) : "", BYTES(b->free), BYTES(d->request.bytes),
				   apart ? apart : "", hopeless && !apart ? ": no packing would have helped" : ""));
	free(apart);
	return f;
}

/* Who keeps segments with holes from going back. */
static char *pinned_by(const struct evidence_device *d, struct verdict *out)
{
	for (size_t i = 0; i < d->pins.count && i < VERDICT_SITES; i++)
		out->sites[i] = d->pins.items[i].site;
	return d->pins.count ? output_format("; %s pins segments with %s unused by %s of blocks", d->pins.items->site,
					     BYTES(d->pins.items->pinned), BYTES(d->pins.items->held))
			     : NULL;
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
		return is_much(d, less(b->free + b->unused, d->request.bytes)) ? CONFIDENCE_remains : CONFIDENCE_guess;
	return evidence_known(d->pool.largest_hole) ? CONFIDENCE_shown : CONFIDENCE_either;
}

static enum finding fragmented(const struct evidence *e, const struct evidence_device *d, const struct balance *b,
			       struct verdict *out)
{
	const enum confidence confidence = fragmentation_confidence(d, b);
	char *pins = pinned_by(d, out);
	char *needs =
		evidence_known(d->step_first)
			? output_format(
				  "; each step needs more than those before (%s at first, %s lately): that will fill them, too",
				  BYTES(d->step_first), BYTES(d->step_latest))
			: NULL;
	const uint64_t packed = not_needed_packed(d);
	out->evidence = output_format(
		"%s unused in the pool%s and %s free are together enough for %s, but the largest hole is %s; packed without "
		"holes the pool needs %s less%s%s%s",
		BYTES(b->unused), b->unused > pool_unused(d) ? " for all sizes and streams" : "", BYTES(b->free),
		BYTES(d->request.bytes), evidence_known(d->pool.largest_hole) ? BYTES(d->pool.largest_hole) : "smaller",
		BYTES(packed), untold(d), needs ? needs : "", pins ? pins : "");
	free(pins);
	free(needs);
	out->advice = holes_advice(d, b->unused);
	return holds(out, e, packed, confidence);
}

enum finding device_fragmentation(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_request *r = &d->request;
	struct balance b = balance_of(d);
	if (!d->pool.known)
		return r->failed && r->caller == CALLER_POOL && !d->pool.driver_pool
			       ? unknown(out,
					 output_format(
						 "blocks of the pool on %s: not recorded, so fragmentation can't be told",
						 d->name))
			       : FINDING_NONE;
	if (!r->failed)
		return fragmented_so_far(e, d, out);
	if (r->caller != CALLER_POOL || met_limit(d))
		return FINDING_NONE;
	if ((b.least_short > 0 && !best_setting(d)) || b.need <= b.free)
		return not_fragmented(d, &b, out);
	if (b.least_short > 0)
		b.unused = not_needed_packed(d); /* a setting makes it fit with what is for other sizes, too */
	const struct evidence_copies *begun = begun_copy(d);
	if (begun)
		return ruled_out(
			out,
			output_format("%s are unused in the pool, but what failed was one more copy, which needed %s",
				      BYTES(b.unused), BYTES(begun->missing)));
	if (b.unused < (uint64_t)(NOTABLE_HOLES * (double)evidence_or(d->total, 0)))
		return ruled_out(out, output_format("%s of %s reserved (%s %%) are unused and could serve this request",
						    BYTES(b.unused), BYTES(d->pool.reserved),
						    PERCENT(b.unused, d->pool.reserved)));
	if (rest_lacks(d, &b))
		return ruled_out(
			out,
			output_format(
				"%s are unused in the pool, but as earlier steps went this one rises by %s from here: it would have "
				"failed a little later",
				BYTES(b.unused), BYTES(r->rise)));
	const struct evidence_growth *passing = evidence_largest(d->growth.items, d->growth.count, OUTLOOK_NEEDS_MORE);
	const uint64_t grown = growing_bytes(d) + (passing ? passing->bytes : 0);
	if (b.unused < more_needed(d) / 2)
		return ruled_out(
			out,
			output_format(
				"%s are unused in the pool, but each step needs more than those before (%s at first, %s lately)",
				BYTES(b.unused), BYTES(d->step_first), BYTES(d->step_latest)));
	if (would_do(d, grown) && b.unused < grown / 2)
		return ruled_out(
			out, output_format("%s are unused in the pool: what grew (%s) would have filled them soon, too",
					   BYTES(b.unused), BYTES(grown)));
	if (would_do(d, copied_bytes(d)) && b.unused < copied_bytes(d) / 2)
		return ruled_out(out, output_format("%s are unused in the pool: little beside the copies (%s)",
						    BYTES(b.unused), BYTES(copied_bytes(d))));
	if (evidence_known(d->pool.largest_hole) && d->pool.largest_hole >= r->bytes && !best_setting(d))
		return ruled_out(
			out,
			output_format(
				"a hole of %s is large enough, but in a segment for blocks of other sizes, or of another stream",
				BYTES(d->pool.largest_hole)));
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

static char *graphs_advice(const struct evidence_graphs *g)
{
	if (g->pools > 1 && 2 * g->pools > g->captures) /* where they share one it may look like several */
		return output_format(
			"let the graphs share one pool (pool=torch.cuda.graph_pool_handle()), capture the largest batch first, and fewer sizes");
	return output_format(
		"capture the largest batch first and fewer sizes, and drop graphs that are not replayed: their pool goes with the last");
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
		out->evidence = output_format(
			"asked in a capture, in which PyTorch returns no cache: the common pool keeps %s in whole free segments",
			BYTES(g->common_idle));
		out->advice =
			r->known && r->emptied_known && !r->emptied_fits
				? output_format(
					  "capture before the pool has grown (an empty_cache() before it is not enough: replayed)")
				: output_format(
					  "return the cache right before the capture (torch.cuda.empty_cache()%s), or capture before the "
					  "pool has grown",
					  r->known && r->emptied_fits ? ": replayed, the request fits" : "");
		return holds(out, e, g->common_idle, CONFIDENCE_one_open);
	}
	if (!by_itself(d, g->unused))
		return FINDING_NONE;
	out->evidence =
		output_format("private pools of %u CUDA graph%s keep %s that nothing uses and this request can't",
			      g->captures, g->captures == 1 ? "" : "s", BYTES(g->unused));
	out->advice = graphs_advice(g);
	return holds(out, e, g->unused, CONFIDENCE_one_open);
}

/* A request beside the pool, which has enough unused; what of that is whole segments goes back. */
static enum finding kept_beside(const struct evidence *e, const struct evidence_device *d, uint64_t unused,
				struct verdict *out)
{
	const struct evidence_replay *r = &d->pool.replay;
	const char *who = d->request.caller_name ? d->request.caller_name : "the program";
	if (r->known && !would_do(d, r->cached))
		return ruled_out(
			out,
			output_format(
				"%s asked beside the pool, which keeps %s that nothing uses; empty_cache() would have given back %s of it "
				"(replayed), too little",
				who, BYTES(unused), BYTES(r->cached)));
	out->evidence = output_format("%s asked beside the pool, which keeps %s that nothing uses", who, BYTES(unused));
	char *replayed = r->known ? output_format(": replayed, that gives %s", BYTES(r->cached)) : NULL;
	out->advice = output_format(
		"give the pool's cache back before (torch.cuda.empty_cache()%s), or cap it so that %s stay free",
		replayed ? replayed : "", BYTES(balance_of(d).need));
	free(replayed);
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
		out->evidence = output_format("the pools of neighbours keep %s that they do not use", BYTES(theirs));
		out->advice =
			output_format("let the neighbours give their cache back (empty_cache()) or cap their pools");
		return holds(out, e, theirs, CONFIDENCE_one_open);
	}
	return kept_by_graphs(e, d, out);
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
		sum += g->outside_pool && evidence_is_leak(g) ? g->bytes : 0;
	return sum;
}

enum finding device_outside_pool(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_part *most;
	const uint64_t all = avoidable(d, &most), grown = grown_outside(d), bytes = less(all, grown);
	if (d->request.failed && would_do(d, d->unmapped)) {
		out->evidence =
			output_format("%s of physical memory were made and are mapped nowhere; without them it fits",
				      BYTES(d->unmapped));
		out->advice = output_format("map what cuMemCreate made, or release it (cuMemRelease)");
		return holds(out, e, d->unmapped, CONFIDENCE_counted);
	}
	if (!d->request.failed || !d->pool.known)
		return FINDING_NONE;
	if (!evidence_known(d->own_other))
		return unknown(out, output_format("memory of ours outside the pool on %s: not known", d->name));
	if (grown && would_do(d, all) && !would_do(d, bytes))
		return ruled_out(out, output_format("%s of ours are outside the pool, of which %s grew there: a leak",
						    BYTES(d->own_other), BYTES(grown)));
	if (!most || bytes < 2 * notable(d) || !would_do(d, bytes))
		return ruled_out(out, output_format("%s of ours are outside the pool", BYTES(d->own_other)));
	out->evidence = output_format("%s of ours lie outside the pool (%s %s); without them it fits", BYTES(bytes),
				      most->name ? most->name : "?", BYTES(most->bytes));
	out->advice = output_format("reduce what %s takes", most->name ? most->name : "it");
	return holds(out, e, bytes, CONFIDENCE_one_open);
}

/* ---- capacity ------------------------------------------------------------------------------------------ */

/* Some other rule says that it would have fitted. */
static const char *other_cause(const struct evidence *e, const struct evidence_device *d)
{
	static const struct {
		verdict_rule *rule;
		const char *why;
	} others[] = {
		{ device_limit, "the device had room: a cap was met" },
		{ device_leak, "without what grew the request fits" },
		{ device_copies, "without the copies the request fits" },
		{ device_other_process, "without the neighbours the request fits" },
		{ own_phase_peak, "the other phases fit" },
		{ device_fragmentation, "enough is free, though in pieces" },
		{ device_retained, "without what pools keep unused it fits" },
		{ device_outside_pool, "without what is outside the pool it fits" },
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct verdict v = { 0 };
		enum finding f = others[i].rule(e, d, &v);
		free(v.evidence);
		free(v.advice);
		if (f == FINDING_HOLDS && verdict_certainty(v.confidence) > CERTAINTY_LOW)
			return others[i].why;
	}
	return NULL;
}

/* Another device of the process's that had room for it all the time. */
static char *elsewhere(const struct evidence_device *d, uint64_t missing)
{
	const uint64_t free = d->roomiest.free;
	return d->roomiest.name && free >= missing && (double)free >= NOTABLE * (double)d->roomiest.total
		       ? output_format("put a part of it on %s, which had %s free at its fullest, or ",
				       d->roomiest.name, BYTES(free))
		       : NULL;
}

enum finding device_capacity(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	struct balance b = balance_of(d);
	if (!d->request.failed)
		return FINDING_NONE;
	if (!evidence_known(d->free))
		return unknown(out, output_format("what was free on %s when it failed", d->name));
	if (!evidence_known(d->total))
		return unknown(out, output_format("how large %s is", d->name));
	const char *cause = other_cause(e, d);
	if (cause)
		return ruled_out(out, output_format("%s", cause));
	if (b.most_short == 0)
		return unknown(out, output_format("%s failed on %s although %s were free", BYTES(b.need), d->name,
						  BYTES(b.free)));
	uint64_t lacks = rest_lacks(d, &b), missing = b.most_short > lacks ? b.most_short : lacks;
	if (b.least_short == 0 && lacks)
		out->evidence = output_format(
			"asked %s, free %s and unused in the pool %s, but as earlier steps went this one rises by %s from here: "
			"short by %s",
			BYTES(d->request.bytes), BYTES(b.free), BYTES(b.unused), BYTES(d->request.rise), BYTES(lacks));
	else if (b.least_short > 0 && b.most_short - b.least_short > b.most_short / 50)
		out->evidence = output_format("asked %s, free %s, unused in the pool %s: short by %s to %s%s",
					      BYTES(d->request.bytes), BYTES(b.free), BYTES(b.unused),
					      BYTES(b.least_short), BYTES(b.most_short), untold(d));
	else
		out->evidence =
			output_format("asked %s, free %s: short by %s with %s unused in the pool%s", BYTES(b.need),
				      BYTES(b.free), BYTES(b.most_short), BYTES(b.unused), untold(d));
	char *advice = capacity_advice(d, missing), *room = elsewhere(d, missing);
	out->advice = output_format("%s%s", room ? room : "", advice ? advice : "");
	free(advice);
	free(room);
	const bool maybe_holes =
		b.least_short == 0 && d->pool.known && (!evidence_known(d->request.rise) || more_needed(d));
	return holds(out, e, missing,
		     maybe_holes || (!d->neighbours_known && !is_accounted_for(d)) ? CONFIDENCE_either
		     : !d->growth_known                                            ? CONFIDENCE_one_open
										   : CONFIDENCE_shown);
}
