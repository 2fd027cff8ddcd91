/* The rules about the machine's own memory. */
#include "analyzer/diagnosis/growth/growth_matters.h"
#include "analyzer/diagnosis/verdict_rules_internal.h"
#include "analyzer/timeline/outlook.h"
#include "analyzer/util/output.h"

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
static char *relief(const struct evidence_host *h, const char *otherwise)
{
	if (!part_of(evidence_or(h->copied, 0), NOTABLE, bound(h)))
		return output_format("%s", otherwise);
	return output_format(
		"forked workers copied %s of what they inherited by touching it, as Python's reference counts do: hold data in arrays "
		"(numpy, Arrow) or shared memory, or have fewer workers",
		BYTES(h->copied));
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
	char *more = seen ? NULL : output_format(", heaps got %s more", BYTES(h->got_since));
	out->evidence = output_format(
		"the cgroup may use %s of the machine's %s; %s of it were in use%s, then all ended at once without a word, the "
		"recorder, too",
		BYTES(h->limit), BYTES(h->memory), BYTES(h->anon), more ? more : "");
	out->advice = relief(h, "raise the limit of the container or job, or need less (memtrace peak)");
	free(more);
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
	static const char *const form = "%u %s was refused %s when it had %s of %s of %s that it may have (%s)";
	const struct evidence_host *h = &e->host;
	if (meets(r->address_limit, r->address_used, r->bytes)) {
		out->evidence = output_format(form, r->pid, r->name, BYTES(r->bytes), BYTES(r->address_used),
					      "address space", BYTES(r->address_limit), "ulimit -v");
		out->advice = output_format(
			"raise the limit of address space (ulimit -v, RLIMIT_AS), or need less (memtrace peak)");
		return holds(out, e, r->address_limit, CONFIDENCE_shown);
	}
	if (meets(r->data_limit, r->data_used, r->bytes)) {
		out->evidence = output_format(form, r->pid, r->name, BYTES(r->bytes), BYTES(r->data_used),
					      "private memory", BYTES(r->data_limit), "ulimit -d");
		out->advice = output_format(
			"raise the limit of private memory (ulimit -d, RLIMIT_DATA), or need less (memtrace peak)");
		return holds(out, e, r->data_limit, CONFIDENCE_shown);
	}
	if (evidence_known(h->memory) && r->bytes > h->memory) {
		out->evidence = output_format("one request of %u %s for %s is more than the machine's %s", r->pid,
					      r->name, BYTES(r->bytes), BYTES(h->memory));
		out->advice = output_format("find out where %s gets that size from", r->site ? r->site : "the request");
		return holds(out, e, r->bytes, CONFIDENCE_counted);
	}
	out->evidence = output_format("which limit refused %s to %u %s (%s): it is neither ulimit -v nor -d",
				      BYTES(r->bytes), r->pid, r->name, r->ended);
	return FINDING_UNKNOWN;
}

static enum finding of_runtime(const struct evidence *e, const struct evidence_runtime *t, struct verdict *out)
{
	if (t->option && part_of(t->bytes, TIGHT, t->limit)) {
		out->evidence = output_format(
			"%u %s ended with %s when its runtime had mapped %s in all; its heap may have %s (%s)", t->pid,
			t->name, t->ended, BYTES(t->bytes), BYTES(t->limit), t->option);
		out->advice = output_format("raise %s, or keep less: the runtime's own heap dump says what", t->option);
		return holds(out, e, t->limit, CONFIDENCE_unsaid);
	}
	out->evidence = output_format(
		"whether the runtime of %u %s (%s), which manages %s by itself, refused memory: what it printed says so",
		t->pid, t->name, t->ended, BYTES(t->bytes));
	return FINDING_UNKNOWN;
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
	if (!evidence_known(h->anon)) {
		out->evidence = output_format("what processes had of the cgroup's %s when something was killed",
					      BYTES(h->limit));
		return FINDING_UNKNOWN;
	}
	bool seen = part_of(h->anon + evidence_or(h->shm_used, 0), 0.8, h->limit);
	if (!seen && !struck_at_limit(h))
		return ruled_out(out,
				 output_format("%s of the cgroup's %s were used by processes when something was killed",
					       BYTES(h->anon), BYTES(h->limit)));
	out->evidence = output_format(
		"the cgroup may use %s of the machine's %s; %s of it were in use%s and the kernel killed %u",
		BYTES(h->limit), BYTES(h->memory), BYTES(h->anon), seen ? "" : ", then it was hit at once",
		h->oom_kills);
	out->advice = relief(h, "raise the limit of the container or job, or need less (memtrace peak)");
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

static char *why_no_leak(const struct evidence_growth *g)
{
	char *why = outlook_why_no_leak(g->outlook),
	     *text = output_format("what grew (%s, %s) did so %s", g->site ? g->site : "?", BYTES(g->bytes),
				   why ? why : "");
	free(why);
	return text;
}

static char *why_not_growing(const struct evidence *e)
{
	const struct evidence_host *h = &e->host;
	/* then what goes on growing is stated as a fact, and the copies are the reason why it is no leak */
	const bool copied = evidence_or(h->copied, 0) > LEAST_KEPT;
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (evidence_is_leak(g) && kept_with(e, g))
			return output_format("what grows on the heap (%s) belongs to what %s keeps on %s",
					     BYTES(g->bytes), g->site, kept_with(e, g)->name);
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (g->file_backed)
			return output_format("what grew (%s, %s) are pages of files, which the kernel can drop",
					     g->site ? g->site : "?", BYTES(g->bytes));
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (g->is_copy)
			return output_format("what grew (%s, %s) is one of the copies", g->site ? g->site : "?",
					     BYTES(g->bytes));
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (g->outlook != OUTLOOK_LEAKS && !(copied && outlook_goes_on(g->outlook)) && g->bytes &&
		    matters(e, g))
			return why_no_leak(g);
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (evidence_is_leak(g))
			return output_format("what grows (%s, %s) is little and far from the limit",
					     g->site ? g->site : "?", BYTES(g->bytes));
	LIST_EACH (struct evidence_growth, g, h->growth)
		if (g->fit.certainty == CERTAINTY_LOW && outlook_goes_on(g->outlook))
			return output_format(
				"what grows (%s, %s) is too uncertain: lost events may have made most of it",
				g->site ? g->site : "?", BYTES(g->bytes));
	if (copied)
		return output_format(
			"workers copied %s of their parent's pages by touching them; they allocated nothing",
			BYTES(h->copied));
	return output_format("nothing that one line makes goes on growing");
}

static const char *memory_of(const struct evidence_growth *g)
{
	return g->of ? g->of : "the heap";
}

/* `others`: in bytes, what grows besides at another pace. */
static void describe_leak(struct verdict *out, const struct evidence_growth *most, uint64_t others)
{
	char *list = most->per_step > 0 ? output_format("%s more each step", BYTES((uint64_t)most->per_step))
					: output_format("%s more each second",
							BYTES((uint64_t)(most->per_second > 0 ? most->per_second : 0)));
	char *whose = most->processes > 1 ? output_format(" of each of %u processes", most->processes)
		      : most->pid         ? output_format(" of %u", most->pid)
					  : NULL;
	const char *site = most->site ? most->site : "one site", *second = growth_second(most);
	const bool python = strstr(site, ".py:") != NULL;
	char *makers = growth_makers(most);
	char *more = others ? output_format("; others grow too (%s)", BYTES(others)) : NULL;
	out->evidence = output_format("more of %s%s stays, made by %s: %s, %s, %s%s", memory_of(most),
				      whose ? whose : "", makers ? makers : "", BYTES(most->bytes), list ? list : "",
				      growth_name(most->fit.kind), more ? more : "");
	out->advice =
		most->extension
			? output_format(
				  "free what %s makes when it is done with, or find what holds it; memtrace leaks shows the stacks",
				  most->extension)
		: most->sites > 1
			? output_format(
				  "find what holds the blocks of %s, and those of %s%s: one thing (%s), or one for each line; memtrace leaks "
				  "shows the stacks",
				  site, second ? second : "what grows with it",
				  most->sites > 2 && second ? " and the rest" : "",
				  python ? "a list, a loss kept with its graph" : "a table, a cache")
			: output_format(
				  "find what holds the blocks of %s (a list, a %s, a cache); memtrace leaks shows the stacks",
				  site, python ? "dict" : "table");
	free(makers);
	free(more);
	free(whose);
	free(list);
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
		return ruled_out(out,
				 output_format("only %.2g s were recorded: too short to tell growth", h->lasted_s));
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
	if (open) {
		out->evidence = output_format(
			"whether %s leaks: more of what %s makes seems to stay, %s, but frees may be among the lost events",
			memory_of(open), open->site ? open->site : "one site", BYTES(open->unproven));
		return FINDING_UNKNOWN;
	}
	if (!most && h->doubt && part_of(h->doubt, NOTABLE, evidence_or(h->live_peak, 0))) {
		out->evidence = output_format("whether anything on the host leaks: too many events were lost");
		return FINDING_UNKNOWN;
	}
	if (!most)
		return ruled_out(out, why_not_growing(e));
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
	out->evidence = output_format(
		"%u processes (%s) that %u started%s%s in %u batches pile up: none of them ends; they have %s of their own, %s each",
		p->count, p->name, p->pid, p->site ? " at " : "", p->site ? p->site : "", p->batches, BYTES(p->bytes),
		BYTES(p->bytes / p->count));
	out->advice = output_format(
		"end them (close a pool and join it, or leave its with block) before %s starts more, or start them once",
		p->site ? p->site : "the program");
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
		return ruled_out(out, output_format("no large set of blocks is there twice"));
	out->evidence = copies_evidence(h->copies.items, out);
	return holds(out, e, extra, h->copies.items->blocks >= MANY_COPIED ? CONFIDENCE_counted : CONFIDENCE_either);
}

/* ---- retained ------------------------------------------------------------------------------------------ */

/* The ledger's moment has another figure where what was kept was used again, or given back, since. */
static char *not_kept(const struct evidence_host *h)
{
	char *then = h->kept_then > h->kept + LEAST_KEPT / 8
			     ? output_format("; at %s it was %s, which was used again or given back since",
					     DURATION(h->kept_then_ns), BYTES(h->kept_then))
			     : NULL;
	char *text = output_format(
		"allocators keep %s of what was freed when processes were looked at last; %s are resident and private%s",
		BYTES(h->kept), BYTES(h->rss_anon), then ? then : "");
	free(then);
	return text;
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
static char *replayed_settings(const struct evidence_host *h)
{
	char *text = NULL;
	for (size_t i = 0; i < h->heap.count && h->heap.settings[i].helps; i++) {
		const struct evidence_heap_setting *s = &h->heap.settings[i];
		char *before = text;
		text = output_format("%s%s%s: replayed, %s less at the end, %.2f times the time in malloc",
				     before ? before : "", before ? "; " : "", s->name, BYTES(s->less), s->time);
		free(before);
	}
	return text ? text
		    : output_format(
			      "no setting of malloc helps (%zu replayed): blocks that stay lie between those that "
			      "went (memtrace frag --device host)",
			      h->heap.count);
}

static char *retained_advice(const struct evidence_host *h)
{
	static const char usual[] = "malloc_trim(0) after the spike, MALLOC_ARENA_MAX=2 or another allocator";
	if (h->heap.count)
		return replayed_settings(h);
	return h->keeper ? output_format("%s: memtrace whatif --host all --process %u replays what each brings", usual,
					 h->keeper)
			 : output_format("%s (memtrace frag --device host)", usual);
}

enum finding host_retained(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	(void)d;
	if (!h->sampled || !evidence_known(h->kept) || !evidence_known(h->rss_anon))
		return FINDING_NONE;
	if (!verdicts_keeps_much(h))
		return ruled_out(out, not_kept(h));
	if (h->live_peak != EVIDENCE_UNKNOWN && part_of(evidence_or(h->live, 0), 0.9, h->live_peak))
		return FINDING_NONE; /* never fell: nothing was freed that could be kept */
	out->evidence = output_format("%s are resident, %s are live: allocators keep %s that the program has freed",
				      BYTES(h->rss_anon), BYTES(evidence_or(h->live, 0)), BYTES(h->kept));
	out->advice = retained_advice(h);
	return holds(out, e, h->kept, keeps_of_machine(h) ? CONFIDENCE_observed : CONFIDENCE_unsaid);
}

/* ---- files left ---------------------------------------------------------------------------------------- */

enum finding host_files_left(const struct evidence *e, const struct evidence_device *d, struct verdict *out)
{
	const struct evidence_host *h = &e->host;
	(void)d;
	if (!evidence_known(h->shm_left) || h->shm_left < LEAST_LEFT)
		return FINDING_NONE;
	out->evidence = output_format(
		"/dev/shm has %s more than when the run began, and all its processes have ended: files in it are memory until somebody "
		"removes them",
		BYTES(h->shm_left));
	out->advice =
		output_format("ls -l /dev/shm, and rm what nobody uses; unlink such files as soon as they are open");
	return holds(out, e, h->shm_left, CONFIDENCE_unsaid);
}

/* ---- pressure ------------------------------------------------------------------------------------------ */

static uint64_t swapped(const struct evidence_host *h)
{
	return evidence_known(h->swap_peak) ? less(h->swap_peak, evidence_or(h->swap_start, 0)) : 0;
}

/* NULL = nobody looked. */
static char *left_over(const struct evidence_host *h, const char *form)
{
	return evidence_known(h->available_min) ? output_format(form, BYTES(h->available_min), BYTES(h->memory)) : NULL;
}

static enum finding no_pressure(const struct evidence_host *h, struct verdict *out)
{
	uint64_t file = evidence_or(h->file, 0);
	char *left = left_over(h, "at least %s of %s available, ");
	char *cache = file > h->memory / 4 ? output_format("; %s are page cache, which gives way", BYTES(file)) : NULL;
	ruled_out(out, output_format("%sswap grew by %s%s%s", left ? left : "", BYTES(swapped(h)),
				     h->oom_kills || h->cut_off ? "" : ", nothing was killed", cache ? cache : ""));
	free(left);
	free(cache);
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
	if (!h->sampled || !evidence_known(h->memory)) {
		out->evidence = output_format(
			"resident memory and swap: the run was too short for a sample, or had no recorder");
		return FINDING_UNKNOWN;
	}
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
		out->evidence = output_format("%s of the %s that the cgroup may use were taken by processes (%s %%)",
					      BYTES(h->anon), BYTES(h->limit), PERCENT(h->anon, h->limit));
		out->advice = relief(h, "need less, or raise the limit: the host ledger shows who has it");
		return holds(out, e, h->anon, CONFIDENCE_one_open);
	}
	if (shm && !swaps && !scarce && !killed) {
		out->evidence = output_format("/dev/shm is full: %s of %s", BYTES(h->shm_used), BYTES(h->shm_total));
		out->advice = output_format("docker run --shm-size, or fewer DataLoader workers and less prefetching");
		return holds(out, e, h->shm_used, CONFIDENCE_one_open);
	}
	char *left = left_over(h, "%s of %s were left at the worst moment, ");
	out->evidence = output_format("%sswap grew by %s%s", left ? left : "", BYTES(swapped(h)),
				      killed ? ", the kernel killed" : "");
	free(left);
	out->advice = relief(h, "need less of the machine's memory: the host ledger shows who has it");
	uint64_t used = less(h->memory, evidence_or(h->available_min, h->memory));
	return holds(out, e, swaps ? swapped(h) : used,
		     killed || (swaps && scarce) ? CONFIDENCE_shown
		     : swaps                     ? CONFIDENCE_one_open
						 : CONFIDENCE_observed);
}
