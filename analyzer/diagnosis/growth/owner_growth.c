#include "analyzer/diagnosis/growth/owner_growth.h"

#include "analyzer/diagnosis/ledger/device_ledger.h"
#include "analyzer/diagnosis/ledger/managed_heaps.h"
#include "analyzer/reader/process_limits.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WRITTEN 0.5  /* of what grew: if so much can't be dropped, it stays */
#define SEEN    0.1  /* of what grew: if a sample saw less of it mapped, the sample tells nothing */
#define DROPPED 0.9  /* of what grew: so much is freed before the ending */
#define ROUGH   0.2  /* of a rate: a line that is known no better goes through bursts */
#define NEARLY  0.98 /* of what came: then it is all there */
#define IN_STEP 0.05 /* greatest distance of two curves at the same pace, each from 0 to 1 */

/* ---- limits -------------------------------------------------------------------------------------------- */

static double known(uint64_t bytes)
{
	return bytes == MODEL_UNKNOWN ? 0 : (double)bytes;
}

/* As of the device's last failure or its peak; where that was later than the last step, as of that one's end. */
static int make_ledger(struct device_ledger *l, const struct timeline *timeline, const struct selection *sel,
		       const struct step_list *steps, const struct model_device *d)
{
	const struct model_moment *at = device_ledger_moment(d, NULL);
	uint64_t end = steps->steps[steps->count - 1].end_ns;
	if (at->ns > end)
		return device_ledger_make_then(l, sel->model, sel->reader, timeline_samples(timeline), sel->stacks, d,
					       end);
	return device_ledger_make(l, sel->model, sel->reader, timeline_samples(timeline), sel->stacks, d, at);
}

/* How much of what the pool has is in no block. Of a moment that was folded steps know more than what is left of its
 * blocks. */
static double unused_part(const struct selection *sel, const struct step_list *steps, const struct step_track *t,
			  const struct device_ledger_process *one, uint64_t ns)
{
	double used = known(one->pool_allocated), all = used + known(one->pool_free);
	size_t i = 0;
	const struct model_fold *fold = &model_process(sel->model, steps->process->id)->fold;
	if (ns < fold->until_ns || fold->now_other_bytes) {
		while (i + 1 < steps->count && steps->steps[i].end_ns < ns)
			i++;
		used = fmin(fmax(used, (double)step_high(t, i)), all);
	}
	return (all - used) / (all + 1);
}

/* What others, and for a pool what lies outside it, leave of the device. */
static bool device_limit(const struct timeline *timeline, const struct selection *sel, const struct step_list *steps,
			 const struct step_track *t, struct forecast_room *room)
{
	const struct model_device *d = model_device(sel->model, t->device);
	struct device_ledger l;
	double unused = 0;
	if (!d->total_bytes || make_ledger(&l, timeline, sel, steps, d) < 0)
		return false;
	room->limit = l.total == MODEL_UNKNOWN ? (double)d->total_bytes : (double)l.total;
	if (l.other_processes != MODEL_UNKNOWN)
		room->limit -= (double)l.other_processes;
	else if (l.explained && l.unexplained > 0)
		room->limit -= (double)l.unexplained;
	for (unsigned i = 0; i < l.process_count; i++) {
		const struct device_ledger_process *one = &l.processes[i];
		if (one->process && one->process->id == steps->process->id) {
			room->limit -= t->kind == MODEL_POOL ? known(one->other) : 0;
			/* It may stay as useless as it is, and grow with the pool. */
			unused = t->kind == MODEL_POOL ? unused_part(sel, steps, t, one, l.ns) : 0;
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
static double level_at(const struct step_list *steps, const struct step_track *t, uint64_t ns)
{
	size_t i = steps->count;
	while (i > 0 && steps->steps[i - 1].begin_ns > ns)
		i--;
	return i ? (double)step_high(t, i - 1) : (double)step_low(t, 0);
}

/* What control groups and the machine had left for the track, with what it had, in the sample that was looked at latest
 * while it ran. */
static double host_limit(const struct samples *s, const struct step_list *steps, const struct step_track *t,
			 uint64_t ns)
{
	double limit = INFINITY;
	struct sample_state state;
	for (unsigned i = 0; i < samples_subjects(s); i++) {
		const struct sample_subject *d = samples_subject(s, i);
		bool machine = d->kind == MT_SUBJECT_MACHINE;
		if (d->host->index != steps->process->host->index || (!machine && d->kind != MT_SUBJECT_CGROUP) ||
		    samples_at(s, ns, i, &state) < 0)
			continue;
		if (machine && state.known & 1ull << MT_MACHINE_available)
			at_most(&limit, (double)state.value[MT_MACHINE_available] +
						(state.known & 1ull << MT_MACHINE_swap_free
							 ? (double)state.value[MT_MACHINE_swap_free]
							 : 0) +
						level_at(steps, t, state.ns[MT_MACHINE_available]));
		if (!machine && state.known & 1ull << MT_CGROUP_limit && state.value[MT_CGROUP_limit] &&
		    state.known & 1ull << MT_CGROUP_current)
			at_most(&limit,
				(double)state.value[MT_CGROUP_limit] - (double)state.value[MT_CGROUP_current] +
					(state.known & 1ull << MT_CGROUP_file ? (double)state.value[MT_CGROUP_file]
									      : 0) +
					level_at(steps, t, state.ns[MT_CGROUP_current]));
	}
	return limit;
}

/* It ended with status 0, and has no steps. A forecast in steps is for a next run with more of them; one in seconds is
 * of no use. */
static bool is_over(const struct step_list *steps)
{
	const struct process *p = steps->process;
	return steps->source == LOOP_NONE && p->state == PROCESS_ENDED && p->exit_kind == MT_EXIT_CODE &&
	       p->exit_code == 0;
}

static bool find_limit(const struct timeline *timeline, const struct selection *sel, const struct step_list *steps,
		       const struct step_track *t, struct forecast_room *room)
{
	*room = (struct forecast_room){ .limit = INFINITY };
	if (!steps->count || is_over(steps))
		return false;
	if (t->device != MODEL_NO_DEVICE)
		return t->device < model_devices(sel->model) && device_limit(timeline, sel, steps, t, room);
	if (!timeline_samples(timeline))
		return false;
	const uint64_t end = steps->steps[steps->count - 1].end_ns;
	uint64_t then = end;
	double left = process_limits_room(timeline_samples(timeline), steps->process, end, &then);
	room->limit = fmin(host_limit(timeline_samples(timeline), steps, t, end), left + level_at(steps, t, then));
	return isfinite(room->limit);
}

struct forecast owner_growth_forecast_to(const struct step_list *steps, const struct step_track *t,
					 const struct growth *g, struct forecast_room room)
{
	if (g->stepped != (steps->source != LOOP_NONE))
		return forecast_never;
	double *points = calloc(3 * steps->count + 1, sizeof(*points));
	room.x = points;
	room.high = points + 2 * steps->count;
	room.count = points ? timeline_points(steps, t, points, points + steps->count, points + 2 * steps->count) : 0;
	struct forecast f = forecast_of(g, &room);
	free(points);
	return f;
}

struct forecast owner_growth_forecast(const struct timeline *timeline, const struct selection *sel,
				      const struct step_list *steps, const struct step_track *t, const struct growth *g,
				      double *limit)
{
	struct forecast_room room;
	bool known = find_limit(timeline, sel, steps, t, &room);
	*limit = room.limit;
	return known ? owner_growth_forecast_to(steps, t, g, room) : forecast_never;
}

/* Memory has ended already. */
static bool has_failed(const struct selection *sel, const struct step_list *steps, uint32_t device)
{
	const struct model_device *d = device == MODEL_NO_DEVICE ? NULL : model_device(sel->model, device);
	for (unsigned i = 0; d && i < d->oom_count; i++)
		if (d->oom[i].process == steps->process->id && d->oom[i].outcome == OUTCOME_FATAL)
			return true;
	return false;
}

struct forecast owner_growth_forecast_all(const struct timeline *timeline, const struct selection *sel,
					  uint32_t process, enum model_kind kind, uint32_t device, struct growth *all)
{
	const struct step_list *steps = timeline_step_list(timeline, process);
	double limit;
	for (size_t k = 0; steps && !has_failed(sel, steps, device) && k < steps->track_count; k++) {
		const struct step_track *t = &steps->tracks[k];
		if (t->kind != kind || t->device != device)
			continue;
		*all = timeline_growth(steps, t);
		return growth_is_steady(all) ? owner_growth_forecast(timeline, sel, steps, t, all, &limit)
					     : forecast_never;
	}
	return forecast_never;
}

/* ---- one judgement ------------------------------------------------------------------------------------- */

/* A moment on the axis of growth: number of the step, or seconds since the start. */
static double place_of(const struct step_list *steps, uint64_t ns)
{
	const struct process *whose = steps->process;
	if (steps->source == LOOP_NONE || !steps->count)
		return (double)less(ns, whose->start_ns) / 1e9;
	const size_t low = SEARCH_FIRST(i, steps->count, steps->steps[i].end_ns > ns);
	const struct step *s = &steps->steps[low < steps->count ? low : steps->count - 1];
	const double length = (double)less(s->end_ns, s->begin_ns);
	const double part = length > 0 ? fmin((double)less(ns, s->begin_ns) / length, 1) : 1;
	return (double)s->number + part * s->count - 1;
}

static unsigned stretch_at(const struct cohort_clock *k, uint64_t ns)
{
	const size_t behind = SEARCH_FIRST(i, k->count, k->begin_ns[i] > ns);
	return behind ? (unsigned)behind - 1 : 0;
}

static unsigned stretches(const struct cohort_clock *k, uint64_t begin_ns, uint64_t end_ns)
{
	return stretch_at(k, end_ns) - stretch_at(k, begin_ns);
}

/* Stretches that a step takes in the mean, or the unfinished one at the end, if it has taken more. */
static unsigned step_length(const struct step_list *steps, const struct cohort_clock *k)
{
	if (steps->source == LOOP_NONE || !steps->count || !steps->total)
		return 0;
	const struct step *last = &steps->steps[steps->count - 1], *unfinished = NULL;
	if (steps->cut.end_ns)
		unfinished = &steps->cut;
	else if (last->partial && last->count == 1)
		unfinished = last;
	const double all = stretches(k, steps->steps[0].begin_ns, last->end_ns);
	const unsigned mean = (unsigned)ceil(all / (double)steps->total),
		       now = unfinished ? stretches(k, unfinished->begin_ns, unfinished->end_ns) : 0;
	return now > mean ? now : mean;
}

/* What folding has left out of the oldest events was made and freed. */
static void add_folded(struct cohort_clock *k, const struct model_fold *fold, enum model_kind kind)
{
	unsigned count = 0;
	while (fold->blocks && kind == MODEL_HEAP && count < k->count && k->begin_ns[count] <= fold->until_ns)
		count++;
	for (unsigned i = 0; i < count; i++) {
		k->made[i].bytes += (double)fold->bytes / count;
		k->made[i].blocks += (double)fold->blocks / count;
	}
}

/* What of a stretch is kept. */
static double kept_in(const struct outlook_found *f, unsigned i)
{
	return f->kept[i] - (i ? f->kept[i - 1] : 0);
}

/* Most of it came when the steps were over, or before they began: they are another loop's. */
static bool is_beside_steps(const struct step_list *steps, const struct outlook_found *f, const struct cohort_clock *k)
{
	if (steps->source == LOOP_NONE || !steps->count)
		return false;
	const uint64_t begin = steps->steps[0].begin_ns,
		       end = higher(steps->steps[steps->count - 1].end_ns, steps->cut.end_ns);
	double beside = 0;
	for (unsigned i = f->from; i < f->count; i++)
		if (k->begin_ns[i] >= end || (i + 1 < f->count && k->begin_ns[i + 1] <= begin))
			beside += kept_in(f, i);
	return 2 * beside > f->bytes;
}

/* The survivors' curve, and how it rises since growth began. */
static void fit_curve(struct owner_growth *t, const struct step_list *steps, const struct outlook_found *f,
		      const struct cohort_clock *k)
{
	const struct step_list seconds = { .process = steps->process, .source = LOOP_NONE };
	if (is_beside_steps(steps, f, k)) {
		steps = &seconds;
		t->beside_steps = true;
	}
	t->points = f->count;
	for (unsigned i = 0; i < f->count; i++) {
		const uint64_t end_ns =
			i + 1 < f->count ? k->begin_ns[i + 1] : lower(k->end_ns, steps->process->end_ns);
		t->x[i] = place_of(steps, end_ns);
		t->bytes[i] = f->kept[i];
	}
	const unsigned from = f->from ? f->from - 1 : 0;
	const double since = f->from ? t->x[from] : place_of(steps, k->begin_ns[0]), span = t->x[f->count - 1] - since;
	t->growth = growth_of(t->x + from, t->bytes + from, f->count - from);
	const bool rough = t->growth.kind == GROWTH_LINEAR && t->growth.rate_error > ROUGH * t->growth.rate;
	if (!growth_is_steady(&t->growth) || rough) { /* in bursts, or briefly: what it was in the mean */
		const bool ends = steps->source != LOOP_NONE && t->growth.kind == GROWTH_SATURATING;
		t->growth = growth_in_the_mean(t->x + from, t->bytes + from, f->count - from);
		t->growth.rate = span > 0 ? f->bytes / span : 0;
		if (ends) /* as much for the work, but each step brings less of that: they may bring no more of it */
			t->growth.rate_error = fmax(t->growth.rate_error, t->growth.rate);
	}
	t->growth.stepped = steps->source != LOOP_NONE;
	t->growth.since_x = since;
	t->growth.certainty =
		t->outlook == OUTLOOK_LEAKS && growth_may_be_none(&t->growth) ? CERTAINTY_LOW : f->certainty;
	t->growth.bytes = f->bytes;
	const bool even = t->growth.acceleration <= 0; /* else the rate is the one at the end */
	t->blocks_per_x = (even || span <= 0 ? t->growth.rate : f->bytes / span) * f->blocks / f->bytes;
	t->mean_block_bytes = f->blocks >= 1 ? f->bytes / f->blocks : 0;
	/* each cohort that keeps something has a block of its own, or some grew */
	t->how = f->blocks >= fmax(2, f->members) ? OWNER_GROWTH_MORE_BLOCKS : OWNER_GROWTH_BIGGER_BLOCKS;
	t->growth.lasted_s = (double)less(k->end_ns < steps->process->end_ns ? k->end_ns : steps->process->end_ns,
					  k->begin_ns[f->from]) /
			     1e9;
}

static void note_stop(struct owner_growth *t, const struct outlook_found *f, const struct cohort_clock *k,
		      const struct process *p)
{
	const double all = f->kept[f->count - 1], before = f->from ? f->kept[f->from - 1] : 0;
	const unsigned middle = stretch_at(k, p->start_ns + less(lower(k->end_ns, p->end_ns), p->start_ns) / 2);
	const size_t last = SEARCH_FIRST(i, f->count, f->kept[i] - before >= NEARLY * (all - before));
	if (t->outlook != OUTLOOK_STOPPED || f->members < OUTLOOK_MANY || last + 1 >= f->count)
		return;
	t->stopped_ns = k->begin_ns[last + 1];
	t->late_bytes = all - f->kept[middle > f->from ? middle : f->from];
}

/* What part of the mapped pages of files is private copies, which the kernel counts as anonymous: as of the last
 * sample. NAN: there is none, or less than SEEN of `grown` bytes was mapped at that moment. */
static double copied(const struct samples *samples, const struct model *m, const struct model_process *process,
		     double grown)
{
	const struct sample_subject *s = samples ? samples_of_process(samples, process->process) : NULL;
	if (!s || !(s->known >> MT_PROCESS_rss_anon & 1))
		return NAN;
	const struct sample_extreme *last = &s->last[MT_PROCESS_rss_anon];
	const uint64_t other = process->map[MAP_ANON].peak_bytes,
		       files = less(model_at(m, &process->timeline[MODEL_MAP], last->ns).last, other),
		       heap = model_at(m, &process->timeline[MODEL_HEAP], last->ns).last;
	return (double)files < SEEN * grown ? NAN : (double)less(last->value, heap + other) / (double)files;
}

/* What becomes of `goes_on`, an outlook of mappings that have grown by so much: pages of files that are not written to
 * give way; where no sample tells whether they are, it is too little to say. Told by all that the process has mapped,
 * since sites do not say what they map. */
static enum outlook of_files(const struct samples *samples, const struct model *m, const struct model_process *process,
			     double grown, enum outlook goes_on)
{
	const double stays = (double)(process->map[MAP_ANON].peak_bytes + process->map[MAP_MEMFD].peak_bytes +
				      process->map[MAP_SHARED].peak_bytes);
	if (stays >= WRITTEN * grown || !process->map[MAP_FILE].peak_bytes)
		return goes_on;
	const double part = copied(samples, m, process, grown);
	return isnan(part) ? OUTLOOK_SHORT : part < WRITTEN ? OUTLOOK_GIVES_WAY : goes_on;
}

/* Was what grew freed while the program went on? What it frees as it ends was needed until then. */
static bool is_dropped(const struct model *m, const struct model_process *whose, const struct growth_place *of,
		       uint64_t track_ns, double grown)
{
	const uint64_t late = model_ending_ns(m, of->process);
	if (of->device != MODEL_NO_DEVICE || late <= track_ns)
		return false;
	const struct model_series *all = &whose->timeline[of->kind];
	return (double)less(model_at(m, all, track_ns).high, model_at(m, all, late).last) >= DROPPED * grown;
}

/* Of blocks the cohorts have counted samples. */
static void set_mean_block(struct owner_growth *t, uint64_t bytes, uint64_t blocks)
{
	if (blocks)
		t->mean_block_bytes = (double)bytes / (double)blocks;
	t->blocks_per_x = t->mean_block_bytes > 0 ? t->growth.rate / t->mean_block_bytes : 0;
}

/* How many samples more there are goes up and down by chance, and a curve follows that: what is best known of steady
 * growth is how much there is more in how long, with the samples' own error. */
static void take_as_picked(struct owner_growth *t, const struct model_process *p)
{
	const double span = t->points ? t->x[t->points - 1] - t->growth.since_x : 0;
	if (t->growth.kind == GROWTH_LINEAR && t->growth.acceleration <= 0 && span > 0) {
		const double error = ESTIMATE_Z * sqrt((double)p->process->sample_bytes * t->growth.bytes) / span;
		t->growth.rate = t->growth.bytes / span;
		t->growth.rate_error = fmax(t->growth.rate_error, error);
	}
	set_mean_block(t, p->kind[MODEL_HEAP].live_bytes, p->kind[MODEL_HEAP].live_blocks);
}

void owner_growth_judge(struct owner_growth *t, const struct timeline *timeline, const struct model *m,
			const struct samples *samples, const struct growth_place *of, const struct cohort_table *table,
			double doubt)
{
	const struct step_list *steps = timeline_step_list(timeline, of->process);
	const struct model_process *whose = model_process(m, of->process);
	struct cohort_clock k = cohorts_clock(timeline_cohorts(timeline), of->process, of->kind, of->device);
	*t = (struct owner_growth){ .process = of->process, .forecast = forecast_never };
	if (!steps || !k.count)
		return;
	add_folded(&k, &whose->fold, of->kind);
	/* without steps: pieces may just be moved from a device to the host, one after the other */
	if (of->device == MODEL_NO_DEVICE && steps->source != LOOP_NONE)
		cohorts_add_devices(timeline_cohorts(timeline), of->process, &k);
	const struct outlook_found f = outlook_of(table, &k, step_length(steps, &k));
	/* who calls an optimizer, or marks steps, works */
	t->outlook = f.outlook == OUTLOOK_GROWS && timeline_steps_are_sure(steps) ? OUTLOOK_LEAKS : f.outlook;
	if (!(whose->process->imported_has & MT_IMPORT_HISTORY)) { /* moments: nobody knows what was between them */
		t->outlook = f.outlook == OUTLOOK_NONE ? OUTLOOK_NONE : OUTLOOK_SHORT;
		return;
	}
	if (t->outlook == OUTLOOK_GROWS && is_dropped(m, whose, of, k.end_ns, f.bytes)) {
		t->outlook = OUTLOOK_PASSES;
		return;
	}
	t->rise = f.rise;
	t->growth.stepped = steps->source != LOOP_NONE;
	t->period_s = timeline_period(steps);
	if (f.bytes <= 0)
		return;
	fit_curve(t, steps, &f, &k);
	note_stop(t, &f, &k, whose->process);
	if (of->kind == MODEL_HEAP && process_is_picked(whose->process))
		take_as_picked(t, whose);
	growth_doubt(&t->growth, doubt > 0 && model_lost_late(m, of->process, of->kind) ? 0 : doubt);
	if (t->growth.kind == GROWTH_NONE)
		t->outlook = OUTLOOK_NONE;
	else if (of->kind == MODEL_MAP && outlook_goes_on(t->outlook))
		t->outlook = of_files(samples, m, whose, t->growth.bytes, t->outlook);
	if (!outlook_goes_on(t->outlook)) /* the curve is one that ends */
		t->growth.kind = GROWTH_SATURATING;
	t->growing = 1;
	t->all_bytes = t->growth.bytes;
	t->all_per_second = owner_growth_per_second(t);
}

/* Shape and rate are that part of another's. */
static void take_rise(struct growth *g, const struct growth *from, double part)
{
	g->kind = from->kind;
	g->rate = part * from->rate;
	g->rate_error = part * from->rate_error;
	g->acceleration = part * from->acceleration;
	g->acceleration_error = part * from->acceleration_error;
}

struct growth owner_growth_rise(const struct step_list *steps, const struct step_track *t,
				const struct owner_growth *judged)
{
	struct step_track as_judged = *t;
	as_judged.doubt = judged->growth.doubt; /* lost events put one thing in doubt, not the same thing twice */
	struct growth g = timeline_growth(steps, &as_judged);
	if (!growth_is_steady(&g) || g.stepped != judged->growth.stepped || growth_is_brief(&judged->growth))
		return judged->growth;
	if (!g.stepped)
		take_rise(&g, &judged->growth, 1);
	g.lasted_s = judged->growth.lasted_s;
	return g;
}

double owner_growth_part(const struct owner_growth *t, const struct owner_growth *whole)
{
	const size_t last = t->points - 1;
	size_t from = 0;
	if (!t->points || t->points != whole->points)
		return 0;
	while (from < last && (t->x[from] < t->growth.since_x || whole->x[from] < whole->growth.since_x))
		from++;
	const double all = whole->bytes[last] - whole->bytes[from];
	return all > 0 ? (t->bytes[last] - t->bytes[from]) / all : 0;
}

void owner_growth_rise_with(struct owner_growth *t, const struct growth *rise, double part)
{
	const double before = owner_growth_per_second(t);
	take_rise(&t->growth, rise, part);
	if (t->growth.acceleration <= 0 && t->mean_block_bytes > 0)
		t->blocks_per_x = t->growth.rate / t->mean_block_bytes;
	t->all_per_second += owner_growth_per_second(t) - before;
}

/* ---- owners -------------------------------------------------------------------------------------------- */

static int by_track(const void *a, const void *b)
{
	const struct model_site *const *x = a, *const *y = b;
	if ((*x)->process != (*y)->process)
		return (*x)->process > (*y)->process ? 1 : -1;
	return ((*x)->device > (*y)->device) - ((*x)->device < (*y)->device);
}

/* Of one process and device, most often, which is sorted already. */
static void sort_members(const struct owner *o)
{
	for (size_t i = 1; i < o->member_count; i++)
		if (by_track(&o->members[i - 1], &o->members[i]) > 0) {
			qsort(o->members, o->member_count, sizeof(*o->members), by_track);
			return;
		}
}

/* What the track needs in a step at its end: what is freed behind that is the program's own end. */
static double level_at_end(const struct timeline *timeline, const struct step_list *steps, const struct step_track *t)
{
	const uint64_t end_ns =
		cohorts_clock(timeline_cohorts(timeline), steps->process->id, (enum model_kind)t->kind, t->device)
			.end_ns;
	size_t i = steps->count - 1;
	while (i > 0 && steps->steps[i].end_ns > end_ns)
		i--;
	return (double)step_low(t, i) + timeline_amplitude(steps, t);
}

/* When its own growth has used up what its track has left. */
static void look_ahead(struct owner_growth *t, const struct timeline *timeline, const struct selection *sel,
		       const struct model_site *site)
{
	const struct step_list *steps = timeline_step_list(timeline, t->process);
	struct forecast_room room;
	const bool ahead = steps->count;
	for (size_t k = 0; k < steps->track_count && ahead; k++) {
		const struct step_track *track = &steps->tracks[k];
		if (track->kind != site->kind || track->device != site->device ||
		    has_failed(sel, steps, site->device) || !find_limit(timeline, sel, steps, track, &room))
			continue;
		room.limit += t->bytes[t->points - 1] - level_at_end(timeline, steps, track);
		room.x = t->x;
		room.high = t->bytes;
		room.count = t->points;
		t->forecast = forecast_of(&t->growth, &room);
	}
}

/* How much of what the members [from, to) had, at any time, may be due to events that were lost. */
static double doubt_of(const struct selection *sel, const struct owner *o, size_t from, size_t to)
{
	const struct model_process *p = model_process(sel->model, o->members[from]->process);
	const struct model_totals *kind = &p->kind[o->members[from]->kind];
	const uint64_t lost = model_lost(sel->model, o->members[from]->process);
	double doubt = 0, bytes = 0, blocks = 0;
	if (!lost)
		return 0;
	if (!p->doubts)
		return INFINITY;
	for (size_t i = from; i < to; i++) {
		const struct model_doubt d = model_doubt_of(sel->model, o->members[i]);
		double weight = owners_weight(sel->reader, o->members[i]);
		doubt += weight * (double)(d.bytes + d.missed_bytes);
		bytes += weight * (double)(o->members[i]->live_bytes + o->members[i]->peak_bytes);
		blocks += weight * (double)(o->members[i]->live_blocks + o->members[i]->peak_blocks);
	}
	/* what was live at first, too, and was freed later: frees of blocks that nobody saw being allocated */
	double unknown = (double)(kind->unknown_frees < lost ? kind->unknown_frees : lost);
	return doubt + (blocks > 0 ? unknown * bytes / blocks : 0);
}

/* A leak says more than what has stopped. */
static int rank_of(const struct owner_growth *t)
{
	return t->outlook == OUTLOOK_LEAKS ? 2 : outlook_goes_on(t->outlook);
}

bool owner_growth_grew_more(const struct owner_growth *a, const struct owner_growth *b)
{
	return rank_of(a) != rank_of(b)             ? rank_of(a) > rank_of(b)
	       : a->growth.bytes != b->growth.bytes ? a->growth.bytes > b->growth.bytes
						    : a->growth.unproven > b->growth.unproven;
}

/* *best is of the process where it grows most, and says of how many it is. */
static void add_process(struct owner_growth *best, const struct owner_growth *t)
{
	const bool both = rank_of(t) && rank_of(t) == rank_of(best);
	const struct owner_growth before = *best;
	if (owner_growth_grew_more(t, best))
		*best = *t;
	if (!both)
		return;
	best->growing = before.growing + 1;
	best->all_bytes = before.all_bytes + t->growth.bytes;
	best->all_per_second = before.all_per_second + owner_growth_per_second(t);
}

bool owner_growth_may_be_collected(const struct owner_growth *t, enum model_kind kind)
{
	return t->outlook == OUTLOOK_BACKLOG ||
	       ((kind == MODEL_MAP || kind == MODEL_HEAP) && outlook_goes_on(t->outlook));
}

void owner_growth_collect(struct owner_growth *t, enum model_kind kind, const struct selection *sel, uint32_t stack)
{
	const bool waits = t->outlook == OUTLOOK_BACKLOG;
	if (kind == MODEL_HEAP && !waits ? !managed_heaps_malloc(sel, stack) : !managed_heaps_stack(sel, stack))
		return;
	t->outlook = waits ? OUTLOOK_NEEDS_MORE : OUTLOOK_COLLECTED;
	if (waits)
		t->growth.bytes = t->all_bytes = t->rise;
}

/* The members [from, to) are of one process. */
static void judge_members(struct owner_growth *best, const struct timeline *timeline, const struct selection *sel,
			  const struct owner *o, size_t from, size_t to)
{
	const struct model_site *site = o->members[from];
	const struct growth_place of = { site->process, (enum model_kind)site->kind, site->device };
	struct owner_growth t;
	double most = 0;
	for (size_t i = from; i < to; i++)
		most += owners_weight(sel->reader, o->members[i]) *
			(double)cohorts_live(timeline_cohorts(timeline), site->process, o->members[i]->number, NULL);
	struct cohort_table *table = most < COHORTS_LEAST ? NULL : calloc(1, sizeof(*table));
	for (size_t i = from; table && i < to; i++)
		cohorts_add_site(timeline_cohorts(timeline), site->process, o->members[i]->number,
				 owners_weight(sel->reader, o->members[i]), table);
	if (!table)
		return;
	owner_growth_judge(&t, timeline, sel->model, timeline_samples(timeline), &of, table,
			   doubt_of(sel, o, from, to));
	if (of.kind == MODEL_HEAP && process_is_picked(reader_process(sel->reader, site->process)))
		set_mean_block(&t, o->bytes, o->blocks);
	if (o->stack_count && owner_growth_may_be_collected(&t, of.kind))
		owner_growth_collect(&t, of.kind, sel, o->stacks->stack);
	if (outlook_foretells(t.outlook))
		look_ahead(&t, timeline, sel, site);
	add_process(best, &t);
	free(table);
}

/* Per process: workers that come and go one after the other would look like growth in their sum. */
void owner_growth_of(struct owner_growth *best, const struct timeline *timeline, const struct selection *sel,
		     const struct owner *o)
{
	*best = (struct owner_growth){ 0 };
	sort_members(o);
	for (size_t from = 0, to; from < o->member_count; from = to) {
		to = from + 1;
		while (to < o->member_count && !by_track(&o->members[from], &o->members[to]))
			to++;
		judge_members(best, timeline, sel, o, from, to);
	}
}

bool owner_growth_goes_on(const struct timeline *timeline, const struct selection *sel, const struct model_site *site)
{
	const struct owner one = { .members = &site, .member_count = 1 };
	struct owner_growth t;
	owner_growth_of(&t, timeline, sel, &one);
	return outlook_goes_on(t.outlook);
}

double owner_growth_per_second(const struct owner_growth *t)
{
	return !t->growth.stepped ? t->growth.rate : t->period_s > 0 ? t->growth.rate / t->period_s : 0;
}

double owner_growth_acceleration_per_s2(const struct owner_growth *t)
{
	double period = t->growth.stepped ? t->period_s : 1;
	return period > 0 ? t->growth.acceleration / period / period : 0;
}

/* ---- groups -------------------------------------------------------------------------------------------- */

static double part_at(const struct owner_growth *t, size_t i)
{
	double first = t->bytes[0], last = t->bytes[t->points - 1];
	return last > first ? (t->bytes[i] - first) / (last - first) : 0;
}

bool owner_growth_in_step(const struct owner_growth *a, const struct owner_growth *b)
{
	if (a->process != b->process || a->points != b->points || a->outlook != b->outlook ||
	    !outlook_goes_on(a->outlook))
		return false;
	for (size_t i = 0; i < a->points; i++)
		if (fabs(part_at(a, i) - part_at(b, i)) > IN_STEP)
			return false;
	return true;
}
