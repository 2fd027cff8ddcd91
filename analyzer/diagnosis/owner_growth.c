#include "analyzer/diagnosis/owner_growth.h"

#include "analyzer/diagnosis/device_ledger.h"
#include "analyzer/reader/process_limits.h"
#include "analyzer/timeline/site_growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LAST_STEP 0.05 /* of what grew: more than the last stretch of steps can add to it */
#define ALIKE     3    /* times as fast or as slow: still the same growth */
#define HALF      0.5
#define PART      0.1  /* of what came: members with less are not looked at */
#define WINDOWS   3    /* of time, that the fit leaves out at the end, and a part of one at the begin */
#define IN_STEP   0.05 /* greatest distance of two curves at the same pace, each from 0 to 1 */

/* ---- limits -------------------------------------------------------------------------------------------- */

static double known(uint64_t bytes)
{
	return bytes == MODEL_UNKNOWN ? 0 : (double)bytes;
}

/* As of the device's last failure or its peak; where that was later than the last step, as of that one's end. */
static int make_ledger(struct device_ledger *l, const struct timeline *c, const struct selection *v,
		       const struct step_list *p, const struct model_device *d)
{
	const struct model_moment *at = device_ledger_moment(d, NULL);
	uint64_t end = p->steps[p->count - 1].end_ns;
	if (at->ns > end)
		return device_ledger_make_then(l, v->model, v->reader, timeline_samples(c), v->stacks, d, end);
	return device_ledger_make(l, v->model, v->reader, timeline_samples(c), v->stacks, d, at);
}

/* How much of what the pool has is in no block. Of a moment that was folded steps know more than what is left of its
 * blocks. */
static double unused_part(const struct selection *v, const struct step_list *p, const struct step_track *t,
			  const struct device_ledger_process *one, uint64_t ns)
{
	double used = known(one->pool_allocated), all = used + known(one->pool_free);
	size_t i = 0;
	const struct model_fold *fold = &model_process(v->model, p->process->id)->fold;
	if (ns < fold->until_ns || fold->now_other_bytes) {
		while (i + 1 < p->count && p->steps[i].end_ns < ns)
			i++;
		used = fmin(fmax(used, (double)step_high(t, i)), all);
	}
	return (all - used) / (all + 1);
}

/* What others, and for a pool what lies outside it, leave of the device. */
static bool device_limit(const struct timeline *c, const struct selection *v, const struct step_list *p,
			 const struct step_track *t, struct forecast_room *room)
{
	const struct model_device *d = model_device(v->model, t->device);
	struct device_ledger l;
	double unused = 0;
	if (!d->total_bytes || make_ledger(&l, c, v, p, d) < 0)
		return false;
	room->limit = l.total == MODEL_UNKNOWN ? (double)d->total_bytes : (double)l.total;
	if (l.other_processes != MODEL_UNKNOWN)
		room->limit -= (double)l.other_processes;
	else if (l.explained && l.unexplained > 0)
		room->limit -= (double)l.unexplained;
	for (unsigned i = 0; i < l.process_count; i++) {
		const struct device_ledger_process *one = &l.processes[i];
		if (one->process && one->process->id == p->process->id) {
			room->limit -= t->kind == MODEL_POOL ? known(one->other) : 0;
			/* It may stay as useless as it is, and grow with the pool. */
			unused = t->kind == MODEL_POOL ? unused_part(v, p, t, one, l.ns) : 0;
		} else if (one->process) {
			room->limit -= known(one->bytes);
		}
	}
	room->doubt = unused * fmax(room->limit, 0);
	device_ledger_fini(&l);
	return true;
}

static void at_most(double *room, double more)
{
	if (more >= 0 && more < *room)
		*room = more;
}

/* What the track had when a sample was looked at: what the process got since then the sample does not know. */
static double level_at(const struct step_list *p, const struct step_track *t, uint64_t ns)
{
	size_t i = p->count;
	while (i > 0 && p->steps[i - 1].begin_ns > ns)
		i--;
	return i ? (double)step_high(t, i - 1) : (double)step_low(t, 0);
}

/* What control groups and the machine had left for the track, with what it had, in the sample that was looked at latest
 * while it ran. */
static double host_limit(const struct samples *s, const struct step_list *p, const struct step_track *t, uint64_t ns)
{
	double limit = INFINITY;
	struct sample_state state;
	for (unsigned i = 0; i < samples_subjects(s); i++) {
		const struct sample_subject *d = samples_subject(s, i);
		bool machine = d->kind == MT_SUBJECT_MACHINE;
		if (d->host->index != p->process->host->index || (!machine && d->kind != MT_SUBJECT_CGROUP) ||
		    samples_at(s, ns, i, &state) < 0)
			continue;
		if (machine && state.known & 1ull << MT_MACHINE_available)
			at_most(&limit, (double)state.value[MT_MACHINE_available] +
						(state.known & 1ull << MT_MACHINE_swap_free
							 ? (double)state.value[MT_MACHINE_swap_free]
							 : 0) +
						level_at(p, t, state.ns[MT_MACHINE_available]));
		if (!machine && state.known & 1ull << MT_CGROUP_limit && state.value[MT_CGROUP_limit] &&
		    state.known & 1ull << MT_CGROUP_current)
			at_most(&limit,
				(double)state.value[MT_CGROUP_limit] - (double)state.value[MT_CGROUP_current] +
					(state.known & 1ull << MT_CGROUP_file ? (double)state.value[MT_CGROUP_file]
									      : 0) +
					level_at(p, t, state.ns[MT_CGROUP_current]));
	}
	return limit;
}

static bool find_limit(const struct timeline *c, const struct selection *v, const struct step_list *p,
		       const struct step_track *t, struct forecast_room *room)
{
	*room = (struct forecast_room){ .limit = INFINITY };
	if (!p->count)
		return false;
	if (t->device != MODEL_NO_DEVICE)
		return t->device < model_devices(v->model) && device_limit(c, v, p, t, room);
	if (!timeline_samples(c))
		return false;
	const uint64_t end = p->steps[p->count - 1].end_ns;
	uint64_t then = end;
	double left = process_limits_room(timeline_samples(c), p->process, end, &then);
	room->limit = fmin(host_limit(timeline_samples(c), p, t, end), left + level_at(p, t, then));
	return isfinite(room->limit);
}

struct forecast owner_growth_forecast_to(const struct step_list *p, const struct step_track *t, const struct growth *g,
					 struct forecast_room room)
{
	double *points = calloc(3 * p->count + 1, sizeof(*points));
	room.x = points;
	room.high = points + 2 * p->count;
	room.count = points ? timeline_points(p, t, points, points + p->count, points + 2 * p->count) : 0;
	struct forecast f = forecast_of(g, &room);
	free(points);
	return f;
}

struct forecast owner_growth_forecast(const struct timeline *c, const struct selection *v, const struct step_list *p,
				      const struct step_track *t, const struct growth *g, double *limit)
{
	struct forecast_room room;
	bool known = find_limit(c, v, p, t, &room);
	*limit = room.limit;
	return known ? owner_growth_forecast_to(p, t, g, room) : forecast_never;
}

struct forecast owner_growth_forecast_all(const struct timeline *c, const struct selection *v, uint32_t process,
					  enum model_kind kind, uint32_t device, struct growth *all)
{
	const struct step_list *p = timeline_step_list(c, process);
	double limit;
	for (size_t k = 0; p && k < p->track_count; k++) {
		const struct step_track *t = &p->tracks[k];
		if (t->kind != kind || t->device != device)
			continue;
		*all = timeline_growth(p, t);
		return growth_is_steady(all) ? owner_growth_forecast(c, v, p, t, all, &limit) : forecast_never;
	}
	return forecast_never;
}

/* ---- owners -------------------------------------------------------------------------------------------- */

/* The members [from, to) are of one process: what they hold together. */
static size_t add_up(const struct timeline *c, const struct selection *v, const struct owner *o, size_t from, size_t to,
		     struct owner_growth *t, double *blocks)
{
	uint32_t process = o->members[from]->process;
	size_t points = 0;
	memset(t->bytes, 0, sizeof(t->bytes));
	memset(blocks, 0, STEPS_BUCKETS * sizeof(*blocks));
	for (size_t i = from; i < to; i++) {
		double weight = owners_weight(v->reader, o->members[i]);
		size_t n = steps_site(timeline_steps(c), process, o->members[i]->number, weight,
				      i == from ? t->x : NULL, t->bytes, blocks);
		points = n > points ? n : points;
	}
	return points;
}

static double slope_of(const double *x, const double *y, size_t n)
{
	struct fit f;
	double t[STEPS_BUCKETS], span = x[n - 1] - x[0];
	for (size_t i = 0; i < n; i++)
		t[i] = (x[i] - x[0]) / span;
	fit_make(&f, FIT_LINE, 0, t, y, n, 0);
	return f.beta[1] / span;
}

/* More blocks or bigger ones, since growth began. */
static void look_at_blocks(struct owner_growth *t, const double *blocks)
{
	size_t from = 0;
	while (from + GROWTH_LEAST_POINTS < t->points && t->x[from] < t->growth.from_x)
		from++;
	size_t last = from; /* where there is most: the program's end may lie behind it */
	for (size_t i = from; i < t->points; i++)
		last = t->bytes[i] >= t->bytes[last] ? i : last;
	last = last > from ? last : t->points - 1;
	double more = blocks[last] - blocks[from], bytes = t->bytes[last] - t->bytes[from];
	t->blocks_per_x = slope_of(t->x + from, blocks + from, last + 1 - from);
	if (more >= 1 && t->blocks_per_x > 0) /* their low points need not be at the same moments, but rise alike */
		t->mean_block_bytes = round(slope_of(t->x + from, t->bytes + from, last + 1 - from) / t->blocks_per_x);
	else if (blocks[last] > 0)
		t->mean_block_bytes = t->bytes[last] / blocks[last];
	double part = blocks[from] > 0 ? more / blocks[from] : INFINITY,
	       grown = t->bytes[from] > 0 ? bytes / t->bytes[from] : INFINITY;
	t->how = more >= 2 && part > 0.5 * fmin(grown, 1) ? OWNER_GROWTH_MORE_BLOCKS
		 : more < 2 || part < 0.1 * grown         ? OWNER_GROWTH_BIGGER_BLOCKS
							  : OWNER_GROWTH_UNCLEAR;
}

static int by_process(const void *a, const void *b)
{
	const struct model_site *const *x = a, *const *y = b;
	return ((*x)->process > (*y)->process) - ((*x)->process < (*y)->process);
}

/* Of one process, most often, which is sorted already. */
static void sort_members(const struct owner *o)
{
	for (size_t i = 1; i < o->member_count; i++)
		if (o->members[i - 1]->process > o->members[i]->process) {
			qsort(o->members, o->member_count, sizeof(*o->members), by_process);
			return;
		}
}

/* Memory has ended already. */
static bool has_failed(const struct selection *v, const struct step_list *p, uint32_t device)
{
	const struct model_device *d = device == MODEL_NO_DEVICE ? NULL : model_device(v->model, device);
	for (unsigned i = 0; d && i < d->oom_count; i++)
		if (d->oom[i].process == p->process->id && d->oom[i].outcome == OUTCOME_FATAL)
			return true;
	return false;
}

/* When its own growth has used up what its track has left. */
static void look_ahead(struct owner_growth *t, const struct timeline *c, const struct selection *v,
		       const struct step_list *p, const struct model_site *site)
{
	struct forecast_room room;
	for (size_t k = 0; k < p->track_count && growth_is_steady(&t->growth); k++) {
		const struct step_track *track = &p->tracks[k];
		if (track->kind != site->kind || track->device != site->device || !find_limit(c, v, p, track, &room) ||
		    has_failed(v, p, site->device))
			continue;
		double high = (double)step_low(track, p->count - 1) + timeline_amplitude(p, track);
		room.limit += t->bytes[t->points - 1] - high;
		room.x = t->x;
		room.high = t->bytes;
		room.count = t->points;
		t->forecast = forecast_of(&t->growth, &room);
	}
}

/* The first point of what grew: what was left out before as start-up belongs to it as far as it grew about as fast. */
static size_t first_of(const struct owner_growth *t)
{
	size_t i = 0;
	while (i + 1 < t->points && t->x[i] < t->growth.since_x)
		i++;
	for (; i > 0; i--) {
		double more = t->bytes[i] - t->bytes[i - 1], usual = t->growth.rate * (t->x[i] - t->x[i - 1]);
		if (more < usual / ALIKE || more > usual * ALIKE)
			break;
	}
	return i;
}

/* What the members [from, to) have at the end: in windows of time, and `at_peak`, the most there was; else at the low
 * point of the last step. */
static double had_last(const struct owner_growth *t, const struct timeline *c, const struct selection *v,
		       const struct owner *o, size_t from, size_t to, bool at_peak)
{
	double sum = 0;
	for (size_t k = from; k < to; k++) {
		const struct model_site *s = o->members[k];
		double most = (double)(s->live_bytes > s->peak_bytes ? s->live_bytes : s->peak_bytes);
		sum += owners_weight(v->reader, s) *
		       (t->stepped && !at_peak ? steps_site_last(timeline_steps(c), t->process, s->number) : most);
	}
	return sum;
}

/* What came behind the last point of the fit: its stretches are known by their low points, and the last one may have
 * been left out. */
static double behind_fit(const struct owner_growth *t)
{
	double stretch = t->points > 1 ? t->x[t->points - 1] - t->x[t->points - 2] : 0;
	return t->growth.rate * fmax(t->x[t->points - 1] + stretch - t->growth.x - t->growth.span, 0);
}

/* What steady growth came to: at the low point of the last step, or of windows of time at the most there was, against
 * the first stretch behind the start-up. If that is not what was fitted there is more to the last one: most often the
 * program's end, which frees all; then what there was at the peak counts, as far as it goes on as it did. */
static double grown(const struct owner_growth *t, const struct timeline *c, const struct selection *v,
		    const struct owner *o, size_t from, size_t to)
{
	size_t i = first_of(t);
	double fitted = t->growth.bytes,
	       step = t->points > 1 ? t->growth.rate * (t->x[t->points - 1] - t->x[t->points - 2]) : 0;
	double all = had_last(t, c, v, o, from, to, false) - t->bytes[i],
	       room = fmax(LAST_STEP * fitted, t->stepped ? 0 : WINDOWS * step);
	for (size_t k = i; k + 1 < t->points && t->x[k] < t->growth.since_x; k++)
		fitted += t->bytes[k + 1] - t->bytes[k];
	if (fabs(all - fitted) < room)
		return all;
	double most = had_last(t, c, v, o, from, to, true) - t->bytes[i];
	return t->stepped && most > fitted ? fmin(most, fitted + behind_fit(t)) : fitted;
}

/* How much of what the members [from, to) had, at any time, may be due to events that were lost. */
static double doubt_of(const struct selection *v, const struct owner *o, size_t from, size_t to)
{
	const struct model_process *p = model_process(v->model, o->members[from]->process);
	const struct model_totals *kind = &p->kind[o->members[from]->kind];
	const uint64_t lost = model_lost(v->model, o->members[from]->process);
	double doubt = 0, bytes = 0, blocks = 0;
	if (!lost)
		return 0;
	if (!p->doubts)
		return INFINITY;
	for (size_t i = from; i < to; i++) {
		const struct model_doubt *d = &p->doubts[o->members[i] - p->sites];
		double weight = owners_weight(v->reader, o->members[i]);
		doubt += weight * (double)(d->bytes + d->missed_bytes);
		bytes += weight * (double)(o->members[i]->live_bytes + o->members[i]->peak_bytes);
		blocks += weight * (double)(o->members[i]->live_blocks + o->members[i]->peak_blocks);
	}
	/* what was live at first, too, and was freed later: frees of blocks that nobody saw being allocated */
	double unknown = (double)(kind->unknown_frees < lost ? kind->unknown_frees : lost);
	return doubt + (blocks > 0 ? unknown * bytes / blocks : 0);
}

/* The members [from, to) only have what steps need, which grew by plan. */
static bool is_needed(const struct owner_growth *t, const struct timeline *c, const struct selection *v,
		      const struct step_list *p, const struct owner *o, size_t from, size_t to)
{
	double kept = 0;
	const struct model_site *site = o->members[from];
	for (size_t i = from; i < to; i++)
		kept += owners_weight(v->reader, o->members[i]) *
			steps_site_kept(timeline_steps(c), site->process, o->members[i]->number);
	for (size_t k = 0; k < p->track_count; k++)
		if (p->tracks[k].kind == site->kind && p->tracks[k].device == site->device)
			return timeline_is_needed(p, &p->tracks[k], &t->growth, kept);
	return false;
}

/* The members [from, to) hold device memory of what comes and goes, now faster than it goes. */
static bool passes(const struct owner_growth *t, const struct timeline *c, const struct selection *v,
		   const struct owner *o, size_t from, size_t to)
{
	struct lifetimes_found all = { 0 };
	if (o->members[from]->device == MODEL_NO_DEVICE || o->members[from]->kind == MODEL_PINNED ||
	    !growth_is_steady(&t->growth))
		return false;
	for (size_t i = from; i < to; i++) {
		double weight = owners_weight(v->reader, o->members[i]);
		struct lifetimes_found one = steps_site_lives(timeline_steps(c), o->members[i]->process,
							      o->members[i]->number, t->growth.since_x);
		all.overdue += weight * one.overdue;
		all.freed += weight * one.freed;
		all.since += weight * one.since;
	}
	return lifetimes_passes(&all, t->growth.bytes);
}

/* What the members [from, to) had at their peak beyond the last step. */
static double later(const struct selection *v, const struct timeline *c, const struct owner *o, size_t from, size_t to)
{
	double more = 0;
	for (size_t i = from; i < to; i++) {
		const struct model_site *s = o->members[i];
		double most = (double)(s->peak_bytes > s->live_bytes ? s->peak_bytes : s->live_bytes);
		more += owners_weight(v->reader, s) *
			fmax(most - steps_site_last(timeline_steps(c), s->process, s->number), 0);
	}
	return more;
}

/* A leak says more than what has filled, that more than what has bent. */
static int rank_of(const struct owner_growth *t)
{
	return owner_growth_leaks(t) ? 2 : growth_is_steady(&t->growth);
}

/* *best is of the process where it grows most, and says of how many it is. */
static void add_process(struct owner_growth *best, struct owner_growth *t)
{
	bool both = owner_growth_leaks(t) && owner_growth_leaks(best);
	int more = rank_of(t) - rank_of(best);
	t->growing = 1 + (both ? best->growing : 0);
	t->all_bytes = t->growth.bytes + (both ? best->all_bytes : 0);
	t->all_per_second = owner_growth_per_second(t) + (both ? best->all_per_second : 0);
	if (more > 0 || (more == 0 && t->growth.bytes > best->growth.bytes)) {
		*best = *t;
	} else if (both) {
		best->growing = t->growing;
		best->all_bytes = t->all_bytes;
		best->all_per_second = t->all_per_second;
	}
}

static void consider(struct owner_growth *best, struct owner_growth *t, const struct timeline *c,
		     const struct selection *v, const struct owner *o, size_t from, size_t to)
{
	double blocks[STEPS_BUCKETS];
	const struct step_list *p = timeline_step_list(c, o->members[from]->process);
	if (!p)
		return;
	t->points = add_up(c, v, o, from, to, t, blocks);
	size_t fit = t->points && p->source == LOOP_NONE ? t->points - 1 : t->points;
	t->growth = o->members[from]->device == MODEL_NO_DEVICE ? site_growth(c, p, t->x, t->bytes, fit)
								: growth_of(t->x, t->bytes, fit);
	if (growth_is_steady(&t->growth) && is_needed(t, c, v, p, o, from, to))
		t->growth.kind = GROWTH_NONE;
	if (t->growth.kind == GROWTH_NONE)
		return;
	growth_doubt(&t->growth, doubt_of(v, o, from, to));
	if (t->growth.kind == GROWTH_NONE) {
		if (best->growth.kind == GROWTH_NONE && t->growth.unproven > best->growth.unproven) {
			best->growth.unproven = t->growth.unproven;
			best->process = o->members[from]->process;
		}
		return;
	}
	t->process = o->members[from]->process;
	t->stepped = p->source != LOOP_NONE;
	t->period_s = timeline_mean_period(p);
	t->outlook = outlook_of(c, p, o->members[from]->kind, &t->growth, later(v, c, o, from, to));
	if (o->members[from]->kind == MODEL_MAP && t->outlook &&
	    outlook_gives_way(timeline_samples(c), v->model, p, t->growth.bytes))
		t->outlook = OUTLOOK_GIVES_WAY;
	if (passes(t, c, v, o, from, to))
		t->outlook = OUTLOOK_PASSES;
	if (growth_is_steady(&t->growth))
		t->growth.bytes = grown(t, c, v, o, from, to);
	t->lasted_s = outlook_lasted_s(p, &t->growth);
	t->forecast = forecast_never;
	look_at_blocks(t, blocks);
	look_ahead(t, c, v, p, o->members[from]);
	add_process(best, t);
}

/* What a collector frees now and then, or a machine that is busy for a while, may hide in a whole owner what its stacks
 * keep: those that leak have at least half of what came. */
static void take_members(struct owner_growth *best, const struct owner_growth *whole, const struct timeline *c,
			 const struct selection *v, const struct owner *o, size_t from, size_t to)
{
	const struct model_site *first = o->members[from];
	struct owner_growth most = { 0 };
	double came = 0, leaking = 0, largest = 0;
	for (size_t i = 0; i < whole->points; i++)
		came = fmax(came, whole->bytes[i] - whole->bytes[0]);
	for (size_t i = from; i < to && to - from > 1 && first->device == MODEL_NO_DEVICE && came > 0; i++) {
		struct owner_growth one = { 0 }, found = { 0 };
		if (had_last(whole, c, v, o, i, i + 1, false) >= PART * came)
			consider(&found, &one, c, v, o, i, i + 1);
		if (!owner_growth_leaks(&found))
			continue;
		leaking += found.growth.bytes;
		most = found.growth.bytes > largest ? found : most;
		largest = fmax(largest, found.growth.bytes);
	}
	if (!owner_growth_leaks(&most) || leaking < HALF * came)
		return;
	if (largest < HALF * came && growth_is_steady(&whole->growth)) { /* all of it, then */
		enum outlook outlook = most.outlook;
		enum growth_certainty certainty = most.growth.certainty;
		most = *whole;
		most.outlook = outlook;
		most.growth.certainty = certainty;
	}
	add_process(best, &most);
}

/* Per process: workers that come and go one after the other would look like growth in their sum. */
void owner_growth_of(struct owner_growth *best, const struct timeline *c, const struct selection *v,
		     const struct owner *o)
{
	struct owner_growth t = { 0 };
	*best = t;
	sort_members(o);
	for (size_t from = 0, to; from < o->member_count; from = to) {
		for (to = from + 1; to < o->member_count && o->members[to]->process == o->members[from]->process; to++)
			;
		consider(best, &t, c, v, o, from, to);
		if (!owner_growth_leaks(best))
			take_members(best, &t, c, v, o, from, to);
	}
}

bool owner_growth_leaks(const struct owner_growth *t)
{
	return outlook_is_leak(t->outlook);
}

double owner_growth_per_second(const struct owner_growth *t)
{
	return !t->stepped ? t->growth.rate : t->period_s > 0 ? t->growth.rate / t->period_s : 0;
}

double owner_growth_acceleration_per_s2(const struct owner_growth *t)
{
	double period = t->stepped ? t->period_s : 1;
	return period > 0 ? t->growth.acceleration / period / period : 0;
}

/* ---- groups -------------------------------------------------------------------------------------------- */

static double part_at(const struct owner_growth *t, size_t i)
{
	double first = t->bytes[0], last = t->bytes[t->points - 1];
	return last > first ? (t->bytes[i] - first) / (last - first) : 0;
}

static bool in_step(const struct owner_growth *a, const struct owner_growth *b)
{
	if (a->process != b->process || a->points != b->points || a->growth.kind != b->growth.kind ||
	    a->outlook != b->outlook)
		return false;
	for (size_t i = 0; i < a->points; i++)
		if (fabs(part_at(a, i) - part_at(b, i)) > IN_STEP)
			return false;
	return true;
}

void owner_growth_group(struct owner_growth **list, size_t count)
{
	unsigned groups = 0;
	for (size_t i = 0; i < count; i++) {
		if (!growth_is_steady(&list[i]->growth))
			continue;
		for (size_t k = 0; k < i && !list[i]->group; k++)
			if (list[k]->group && in_step(list[k], list[i]))
				list[i]->group = list[k]->group;
		if (!list[i]->group)
			list[i]->group = ++groups;
	}
}
