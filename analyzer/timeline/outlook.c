#include "analyzer/timeline/outlook.h"

#include "analyzer/util/minmax.h"
#include "analyzer/util/output.h"

#include <math.h>
#include <stdlib.h>

#define WORKS     0.03 /* of the time in which something is freed (collectors do so now and then) ... */
#define CHURN     0.5  /* ... and of the bytes that are made: so much is freed by who works */
#define OF_MAPPED 2    /* times the bytes by which mappings grow, that pass on the heap: as much a collector needs */
#define FREES     0.15 /* of the time, on devices: it works there */
#define RECURS    0.5  /* of the bytes that are made: so much is made by a loop's stacks */
#define GOES_ON   0.5  /* of the time while it grew, in which the program then does something else */
#define WRITTEN   0.5  /* of what grew, that can't be dropped: the last sample may be older than its end */
#define LATER     0.1  /* of what grew, that came in as much time behind the loop: it did not stop with it ... */
#define AT_MOST   0.5  /* ... however long that time was */

bool outlook_steps_are_sure(const struct step_list *p)
{
	return p->source == LOOP_MARKS || p->source == LOOP_NVTX || p->source == LOOP_MSTX ||
	       p->source == LOOP_OPTIMIZER || p->whole;
}

static uint64_t began_ns(const struct step_list *p, const struct growth *g)
{
	for (size_t i = 0; i < p->count; i++)
		if (step_x(p, i) >= g->since_x)
			return p->steps[i].begin_ns;
	return p->steps[0].begin_ns;
}

/* What came behind the loop that made it grow. */
enum after { NOTHING, CLEANS, RESTS, WORKS_ON };

static enum after after_loop(const struct timeline *c, const struct step_list *p, const struct growth *g, double later)
{
	uint64_t end = p->steps[p->count - 1].end_ns;
	double during = (double)less(end, began_ns(p, g)), behind = (double)less(p->process->end_ns, end);
	if (p->source != LOOP_SITES || behind <= GOES_ON * during ||
	    later >= fmin(LATER * fmax(1, behind / during), AT_MOST) * g->bytes)
		return NOTHING;
	struct work_behind done = work_behind(timeline_work(c), p->process->id, end, p->process->end_ns);
	if (done.making >= WORK_RESTS || p->thinned)
		return WORKS_ON;
	return done.freed >= WORK_CLEANS * g->bytes ? CLEANS : RESTS;
}

static void at_most_medium(struct growth *g)
{
	g->certainty = g->certainty > CERTAINTY_MEDIUM ? CERTAINTY_MEDIUM : g->certainty;
}

/* It is a loop's stacks that make most of it, or that make most of what passes: a load before them may be larger than
 * all they do. */
static bool recurs(const struct work_done *done)
{
	double kept = done->made - done->passing;
	return done->again >= RECURS * done->made || done->again - kept >= CHURN * done->again;
}

static double median_low(const struct step_track *t, size_t from, size_t to)
{
	double *lows = malloc((to - from + 1) * sizeof(*lows)), median = 0;
	for (size_t i = from; lows && i < to; i++)
		lows[i - from] = (double)step_low(t, i);
	if (lows && to > from)
		median = median_of(lows, to - from);
	free(lows);
	return median;
}

/* What the process has mapped more since growth began: by its usual low points, as mappings come and go, too. */
static double mapped_since(const struct step_list *p, enum model_kind kind, const struct growth *g)
{
	size_t from = 0;
	while (from + 1 < p->count && step_x(p, from) < g->since_x)
		from++;
	const size_t quarter = (p->count - from + 3) / 4;
	double more = kind == MODEL_MAP ? g->bytes : 0;
	for (size_t k = 0; k < p->track_count; k++)
		if (p->tracks[k].kind == MODEL_MAP && p->tracks[k].device == MODEL_NO_DEVICE)
			more = fmax(more, median_low(&p->tracks[k], p->count - quarter, p->count) -
						  median_low(&p->tracks[k], from, from + quarter));
	return more;
}

/* That a table was moved into a larger one is no work. Nor is what a collector needs of the heap while mappings fill,
 * however many stacks map them, and whatever it keeps of that itself. */
static bool works(const struct timeline *c, const struct step_list *p, enum model_kind kind, const struct growth *g,
		  uint64_t from, uint64_t to)
{
	struct work_done done = work_between(timeline_work(c), p->process->id, from, to);
	const double made = done.made - g->moved, passing = done.passing - g->moved;
	return done.busy >= WORKS && (p->thinned || (passing >= CHURN * made && recurs(&done) &&
						     passing >= OF_MAPPED * mapped_since(p, kind, g)));
}

/* A few turns of what nobody marked, or growth over time that might bend, tell nothing. Bursts that come again and
 * again do. */
static bool is_sure(const struct step_list *p, const struct growth *g)
{
	return p->source == LOOP_NONE ? g->certainty == CERTAINTY_HIGH || g->jumps : p->total >= OUTLOOK_STEPS;
}

static bool frees_on_devices(const struct step_list *p, const struct growth *g)
{
	size_t entries = 0, freeing = 0;
	for (size_t i = 0; i < p->count; i++)
		if (step_x(p, i) >= g->since_x) {
			entries++;
			freeing += p->steps[i].device_frees > 0;
		}
	return (double)freeing >= FREES * (double)entries;
}

/* What a program makes and frees on its heap says nothing of what it keeps on devices and for them. There it loads a
 * model where nothing is freed meanwhile. */
enum outlook outlook_of(const struct timeline *c, const struct step_list *p, enum model_kind kind, struct growth *g,
			double later)
{
	if (!growth_is_steady(g) || !p->count)
		return OUTLOOK_NONE;
	uint64_t from = began_ns(p, g), to = p->steps[p->count - 1].end_ns;
	const bool is_long = (double)less(to, from) >= OUTLOOK_LONG_S * 1e9;
	if (kind >= MODEL_PINNED)
		return kind != MODEL_PINNED && p->source == LOOP_NONE && !is_long && !frees_on_devices(p, g)
			       ? OUTLOOK_FILLS
			       : OUTLOOK_LEAKS;
	if (outlook_steps_are_sure(p))
		return OUTLOOK_LEAKS;
	const enum after after = after_loop(c, p, g, later);
	if (after == WORKS_ON || (after == RESTS && !is_long))
		return OUTLOOK_STOPPED;
	if (after == RESTS)
		at_most_medium(g);
	if (is_sure(p, g) && works(c, p, kind, g, from, to))
		return OUTLOOK_LEAKS;
	if (!is_long)
		return OUTLOOK_FILLS;
	at_most_medium(g);
	return OUTLOOK_LASTS;
}

/* What was written to in private copies of files is anonymous to the kernel. */
static double copied(const struct samples *samples, const struct model_process *m)
{
	const struct sample_subject *s = samples ? samples_of_process(samples, m->process) : NULL;
	if (!s || !(s->known >> MT_PROCESS_rss_anon & 1))
		return 0;
	return (double)less(s->last[MT_PROCESS_rss_anon].value,
			    m->kind[MODEL_HEAP].peak_bytes + m->map[MAP_ANON].peak_bytes);
}

bool outlook_gives_way(const struct samples *samples, const struct model *m, const struct step_list *p, double grown)
{
	const struct model_process *own = model_process(m, p->process->id);
	double stays = (double)(own->map[MAP_ANON].peak_bytes + own->map[MAP_MEMFD].peak_bytes +
				own->map[MAP_SHARED].peak_bytes);
	return fmax(stays, copied(samples, own)) < WRITTEN * grown && (double)own->map[MAP_FILE].peak_bytes > 0;
}

double outlook_lasted_s(const struct step_list *p, const struct growth *g)
{
	return p->count ? (double)less(p->steps[p->count - 1].end_ns, began_ns(p, g)) / 1e9 : 0;
}

enum outlook outlook_of_track(const struct timeline *c, const struct step_list *p, const struct step_track *t,
			      struct growth *g)
{
	double behind = p->count ? fmax((double)t->live - (double)step_high(t, p->count - 1), 0) : 0;
	return outlook_of(c, p, t->kind, g, behind);
}

char *outlook_why_no_leak(enum outlook o, double lasted_s)
{
	if (o == OUTLOOK_GIVES_WAY)
		return output_format("by pages of files, which the kernel can drop");
	if (o == OUTLOOK_PASSES)
		return output_format(
			"by blocks that come faster than they go: less than a quarter of it is older than nearly all of what was freed had become");
	if (o == OUTLOOK_STOPPED)
		return output_format("while it began, and not since: a warm-up or a load");
	return output_format(
		"to the end of only %.3g s, while hardly anything was freed: that is loading, or all of it is kept; growth for more "
		"than %g s would tell",
		lasted_s, OUTLOOK_LONG_S);
}
