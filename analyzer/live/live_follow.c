#include "analyzer/live/live_follow.h"

#include "analyzer/diagnosis/growth/findings.h"
#include "analyzer/diagnosis/growth/growth_matters.h"
#include "analyzer/reader/process_limits.h"
#include "analyzer/reader/tick_clock.h"
#include "analyzer/live/live_sites.h"
#include "analyzer/symbols/builtin_suppressions.h"
#include "analyzer/diagnosis/growth/process_piles.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAST_EVENTS 2000 /* fewer have no loop worth a look */
#define RETRIES      5
#define RETRY_US     300000u
#define LIVE_ALIKE   3           /* times as much: processes that do the same */
#define EVERY_NS     1000000000u /* between two looks while it reads */

static struct live *reading; /* by whom progress is shown */

/* ---- gauges -------------------------------------------------------------------------------------------- */

static struct gauge *find_gauge(struct live *l, const char *key)
{
	for (size_t i = 0; i < l->gauge_count; i++)
		if (!strcmp(l->gauges[i].key, key))
			return &l->gauges[i];
	return NULL;
}

static struct gauge *gauge_of(struct live *l, const char *key)
{
	struct gauge *known = find_gauge(l, key);
	if (known || l->gauge_count == LIVE_GAUGES)
		return known;
	struct gauge *g = &l->gauges[l->gauge_count++];
	*g = (struct gauge){ .key = "" };
	snprintf(g->key, sizeof(g->key), "%s", key);
	snprintf(g->name, sizeof(g->name), "%s", key);
	return g;
}

static void set_gauge(struct live *l, const char *key, double used, double total)
{
	struct gauge *g = total > 0 ? gauge_of(l, key) : NULL;
	if (!g)
		return;
	g->used = used;
	g->total = total;
}

static double left_of(struct live *l, const char *key)
{
	const struct gauge *g = find_gauge(l, key);
	return g ? fmax(g->total - g->used, 0) : INFINITY;
}

static bool has(const struct sample_subject *d, unsigned field)
{
	return d->known & 1ull << field;
}

/* A device is known by its UUID, so that what the driver says and what the events say are of one. */
static void take_device(struct live *l, const struct sample_subject *d)
{
	char name[96];
	snprintf(name, sizeof(name), "%s %u", d->backend == MT_BACKEND_ASCEND ? "npu" : "gpu", d->number);
	bool known = l->modelled;
	set_gauge(l, *d->text ? d->text : name, (double)d->last[MT_DEVICE_used].value,
		  (double)d->last[MT_DEVICE_total].value);
	struct gauge *g = gauge_of(l, *d->text ? d->text : name);
	if (g && (!known || !strcmp(g->name, g->key)))
		snprintf(g->name, sizeof(g->name), "%s", name);
}

static void take_subject(struct live *l, const struct sample_subject *d)
{
	if (d->kind == MT_SUBJECT_MACHINE && has(d, MT_MACHINE_total) && has(d, MT_MACHINE_available)) {
		double total = (double)d->last[MT_MACHINE_total].value;
		set_gauge(l, "machine", total - (double)d->last[MT_MACHINE_available].value, total);
	} else if (d->kind == MT_SUBJECT_CGROUP && has(d, MT_CGROUP_limit) && has(d, MT_CGROUP_current)) {
		double file = has(d, MT_CGROUP_file) ? (double)d->last[MT_CGROUP_file].value : 0;
		set_gauge(l, "control group", (double)d->last[MT_CGROUP_current].value - file,
			  (double)d->last[MT_CGROUP_limit].value);
	} else if (d->kind == MT_SUBJECT_DEVICE && d->gone_ns == UINT64_MAX && has(d, MT_DEVICE_used) &&
		   has(d, MT_DEVICE_total)) {
		take_device(l, d);
	}
}

/* ---- processes ----------------------------------------------------------------------------------------- */

/* The kernel knows better than a sample while it runs here. */
static uint64_t rss_now(const struct process *p, const struct sample_subject *d)
{
	char path[64];
	unsigned long pages;
	snprintf(path, sizeof(path), "/proc/%u/statm", p->pid);
	FILE *f = p->state == PROCESS_RUNNING ? fopen(path, "re") : NULL;
	int n = f ? fscanf(f, "%*u %lu", &pages) : 0;
	if (f)
		fclose(f);
	if (n == 1)
		return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return d && has(d, MT_PROCESS_rss) && p->state == PROCESS_RUNNING ? d->last[MT_PROCESS_rss].value : 0;
}

/* Of this machine, where the program runs. */
static void take_machine(struct live *l)
{
	unsigned long long total = 0, available = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "MemTotal: %llu", &total);
		sscanf(line, "MemAvailable: %llu", &available);
	}
	if (f)
		fclose(f);
	if (total && available)
		set_gauge(l, "machine", (double)(total - available) * 1024, (double)total * 1024);
}

static bool is_wanted(const struct live *l, unsigned id)
{
	return reader_find(l->reader, l->options->process, id) == id;
}

static void take_processes(struct live *l)
{
	l->process_count = l->process_all = 0;
	l->running = false;
	l->rss = l->swap = 0;
	for (unsigned id = 0; id < reader_processes(l->reader); id++) {
		const struct process *p = reader_process(l->reader, id);
		if (!is_wanted(l, id))
			continue;
		l->running = l->running || p->state == PROCESS_RUNNING;
		l->process_all++;
		if (p->state != PROCESS_RUNNING && l->process_all > 1)
			continue;
		const struct sample_subject *d = samples_of_process(l->samples, p);
		uint64_t rss = rss_now(p, d), swap = d && has(d, MT_PROCESS_swap) ? d->last[MT_PROCESS_swap].value : 0;
		l->rss += rss;
		l->swap += swap;
		if (l->process_count == LIVE_PROCESSES)
			continue;
		struct shown_process *to = &l->processes[l->process_count++];
		if (to->pid != p->pid)
			*to = (struct shown_process){ .pid = p->pid };
		snprintf(to->name, sizeof(to->name), "%s", p->name);
		to->id = id;
		to->rank = p->rank;
		to->rss = rss;
		to->swap = swap;
		to->running = p->state == PROCESS_RUNNING;
	}
}

static void take_samples(struct live *l)
{
	for (unsigned i = 0; i < samples_subjects(l->samples); i++)
		take_subject(l, samples_subject(l->samples, i));
	take_processes(l);
	if (l->running)
		take_machine(l);
}

/* ---- growth -------------------------------------------------------------------------------------------- */

/* What is left now of what it is in, and of a pool what that has and does not use: all of it may be of use, or nothing.
 * */
static struct forecast_room room_of(struct live *l, const struct model *m, const struct track_finding *of)
{
	const struct step_track *t = of->track;
	double high = (double)step_high(t, of->steps->count - 1);
	uint64_t then;
	if (t->device == MODEL_NO_DEVICE)
		return (struct forecast_room){
			.limit = high + fmin(fmin(left_of(l, "machine"), left_of(l, "control group")),
					     process_limits_room(l->samples, of->steps->process, l->age_ns, &then))
		};
	const struct model_device *d = model_device(m, t->device);
	struct forecast_room room = { .limit = high + left_of(l, *d->uuid ? d->uuid : d->name) };
	double reserved = t->kind == MODEL_POOL ? (double)model_device_live(m, t->device, LAYER_RESERVED) : 0;
	if (reserved > high) {
		room.limit += reserved - high;
		room.doubt = room.limit * (reserved - high) / reserved;
	}
	return room;
}

/* Who only fills, or falls behind, is not said to grow: that is no leak. */
static const char *how_it_goes(enum outlook o)
{
	return o == OUTLOOK_LEAKS       ? "grows"
	       : o == OUTLOOK_BACKLOG   ? "falls behind"
	       : o == OUTLOOK_COLLECTED ? "is a runtime's own heap, larger"
					: "fills";
}

/* "1.0 MiB a step"; what is brief has no rate. The caller frees it. */
static char *take_pace(struct live *l, const struct growth *g)
{
	const bool brief = growth_is_brief(g);
	l->growth_stepped = g->stepped;
	l->growth_rate = brief ? NAN : g->rate;
	return brief ? growth_brief_text(g, g->bytes)
		     : output_format("%s a %s", BYTES((uint64_t)g->rate), growth_unit(g));
}

/* Whose growth it is; the text only where there are several. */
static void take_process(struct live *l, const struct process *p, char *text, size_t size)
{
	l->growth_pid = p->pid;
	snprintf(text, size, l->process_all > 1 ? " in process %u" : "", p->pid);
}

/* What collectors free now and then may hide in a whole track what one place keeps. Of a process without devices, so
 * that it is on the host. */
static void take_sites(struct live *l, const struct selection *sel, const struct step_list *steps)
{
	struct owner_growth found;
	for (size_t k = 0; k < steps->track_count; k++)
		if (steps->tracks[k].device != MODEL_NO_DEVICE)
			return;
	if (!live_sites_grow(&found, l->timeline, l->samples, sel, steps))
		return;
	char *pace = take_pace(l, &found.growth), of[48];
	take_process(l, steps->process, of, sizeof(of));
	snprintf(l->growth, sizeof(l->growth), "one site on the host %s by %s%s, %s", how_it_goes(found.outlook),
		 pace ? pace : "", of, growth_name(found.growth.kind));
	free(pace);
}

/* If they have more than what grew. */
static void take_pile(struct live *l, const struct model *m, double grown)
{
	struct pile p;
	if (!process_piles_find(&p, l->reader, m, l->samples) || (double)p.bytes <= grown)
		return;
	l->growth_rate = l->runs_out = NAN;
	l->growth_pid = 0;
	snprintf(l->growth, sizeof(l->growth), "%u processes that %u started pile up, %s of their own", p.count,
		 p.starter->pid, BYTES(p.bytes));
}

/* Of several processes that keep more on the host, as the report sums them up: returns how many, and adds to *all what
 * those beside `most` keep. */
static unsigned join(const struct findings *f, const struct track_finding *most, struct growth *all)
{
	unsigned processes = 1;
	for (size_t i = 0; i < f->track_count && most->place.device == MODEL_NO_DEVICE; i++) {
		const struct track_finding *one = &f->tracks[i];
		if (one == most || one->place.kind != most->place.kind || !outlook_goes_on(one->growth.outlook) ||
		    one->rise.stepped != all->stepped || one->rise.bytes < most->rise.bytes / LIVE_ALIKE)
			continue;
		processes++;
		all->bytes += one->rise.bytes;
		all->rate += one->rise.rate;
	}
	return processes;
}

/* What is left was known at the last sample; of a program that has ended, what the report says. */
static struct forecast forecast_for(struct live *l, const struct selection *sel, const struct track_finding *t)
{
	double limit;
	if (!outlook_foretells(t->growth.outlook))
		return forecast_never;
	return t->steps->process->state == PROCESS_RUNNING || t->place.device != MODEL_NO_DEVICE
		       ? owner_growth_forecast_to(t->steps, t->track, &t->rise, room_of(l, sel->model, t))
		       : owner_growth_forecast(l->timeline, sel, t->steps, t->track, &t->rise, &limit);
}

/* `leaking`: bytes by which all that leaks on the host has grown. */
static bool matters(struct live *l, const struct selection *sel, const struct track_finding *t, double leaking)
{
	struct growth_scale scale = growth_scale_of(sel->model, t->steps->process->host, l->samples);
	scale.leaking = leaking;
	return t->place.device != MODEL_NO_DEVICE || growth_matters(&scale, t->rise.bytes, false) ||
	       forecast_for(l, sel, t).ever;
}

/* What memory ends at is of the one that grew most. */
static void say_growth(struct live *l, const struct selection *sel, const struct findings *f,
		       const struct track_finding *t)
{
	struct growth all = t->rise;
	const struct forecast ends = forecast_for(l, sel, t);
	const unsigned processes = join(f, t, &all);
	char *when = ends.ever && processes == 1 ? forecast_text(ends.x, ends.low, ends.high) : NULL,
	     *pace = take_pace(l, &all), name[64], of[48];
	l->runs_out = when ? ends.x : NAN;
	if (processes > 1)
		snprintf(of, sizeof(of), " in %u processes together", processes);
	else
		take_process(l, t->steps->process, of, sizeof(of));
	timeline_track_name(sel, t->steps->process, t->place.kind, t->place.device, name, sizeof(name));
	snprintf(l->growth, sizeof(l->growth), "%s %s by %s%s, %s%s%s%s%s", name, how_it_goes(t->growth.outlook),
		 pace ? pace : "", of, growth_name(all.kind), when ? "; if it goes on, memory ends at " : "",
		 when ? growth_unit(&all) : "", when ? " " : "", when ? when : "");
	free(pace);
	free(when);
}

/* While it runs without the symbols of libraries, which take long to read. */
static int find_tracks(struct live *l, struct findings *f, const struct selection *sel)
{
	int e = 0;
	l->steps = 0;
	for (unsigned id = 0; e == 0 && id < reader_processes(l->reader); id++) {
		const struct step_list *steps = is_wanted(l, id) ? timeline_step_list(l->timeline, id) : NULL;
		if (steps && steps->source != LOOP_NONE && steps->total > l->steps)
			l->steps = steps->total;
		if (steps && steps->count)
			e = findings_add_tracks(f, l->timeline, l->samples, sel, steps,
						l->running ? builtin_suppressed_import : builtin_suppressed_stack);
	}
	return e;
}

/* The track that says most of those that matter, then single places, then processes. */
static void say_most(struct live *l, const struct selection *sel, const struct findings *f)
{
	const struct track_finding *most = NULL;
	double unproven = 0, leaking = 0;
	for (size_t i = 0; i < f->track_count; i++) {
		const struct track_finding *t = &f->tracks[i];
		const bool leaks = t->place.device == MODEL_NO_DEVICE && t->growth.outlook == OUTLOOK_LEAKS;
		leaking += leaks ? t->rise.bytes : 0;
		unproven = t->has_pool ? unproven : fmax(unproven, t->growth.growth.unproven);
	}
	for (size_t i = 0; i < f->track_count; i++) {
		const struct track_finding *t = &f->tracks[i];
		if (outlook_goes_on(t->growth.outlook) && !t->has_pool &&
		    (!most || owner_growth_grew_more(&t->growth, &most->growth)) && matters(l, sel, t, leaking))
			most = t;
	}
	if (most)
		say_growth(l, sel, f, most);
	for (unsigned id = 0; !most && !unproven && !*l->growth && id < reader_processes(l->reader); id++) {
		const struct step_list *steps = is_wanted(l, id) ? timeline_step_list(l->timeline, id) : NULL;
		if (steps && steps->count)
			take_sites(l, sel, steps);
	}
	take_pile(l, sel->model, most ? most->rise.bytes : 0);
	if (!*l->growth && unproven)
		snprintf(l->growth, sizeof(l->growth), "growth is not known: frees of %s may be among the lost events",
			 BYTES((uint64_t)unproven));
}

static void take_growth(struct live *l, const struct model *m)
{
	*l->growth = '\0';
	l->growth_rate = l->runs_out = NAN;
	l->growth_pid = 0;
	timeline_doubt(l->timeline, m);
	stacks_free(l->stacks); /* call trees have grown since the last look */
	l->stacks = stacks_new();
	if (!l->stacks)
		return;
	const struct selection sel = { .model = (struct model *)(uintptr_t)m,
				       .reader = l->reader,
				       .stacks = l->stacks };
	struct findings f = { 0 };
	timeline_find_arenas(l->timeline, m, l->reader, l->stacks);
	if (find_tracks(l, &f, &sel) == 0)
		say_most(l, &sel, &f);
	findings_fini(&f);
}

/* ---- events -------------------------------------------------------------------------------------------- */

/* The variance of an estimate of Y bytes from blocks much smaller than the mean S between samples is S * Y. */
uint64_t live_heap_error(const struct live *l)
{
	double variance = 0;
	for (size_t i = 0; i < l->process_count; i++) {
		const struct process *p = reader_process(l->reader, l->processes[i].id);
		variance += process_is_picked(p) ? (double)p->sample_bytes * (double)l->processes[i].heap : 0;
	}
	return (uint64_t)(ESTIMATE_Z * sqrt(variance));
}

static void take_model(struct live *l, const struct model *m)
{
	l->heap = l->map = l->pinned = l->device = l->heap_min = l->lost = l->pool = l->pool_reserved = 0;
	for (unsigned id = 0; id < reader_processes(l->reader); id++) {
		if (!is_wanted(l, id))
			continue;
		const uint64_t heap = model_live(m, id, MODEL_HEAP), lost = model_lost(m, id);
		l->heap += heap;
		l->picked |= process_is_picked(reader_process(l->reader, id));
		l->heap_min += heap - model_open(m, id, MODEL_HEAP);
		l->lost = lost > UINT64_MAX - l->lost ? UINT64_MAX : l->lost + lost;
		l->map += model_live(m, id, MODEL_MAP);
		l->pinned += model_live(m, id, MODEL_PINNED);
	}
	for (size_t i = 0; i < l->process_count; i++) {
		struct shown_process *to = &l->processes[i];
		to->heap = model_live(m, to->id, MODEL_HEAP);
		to->picked = process_is_picked(reader_process(l->reader, to->id));
		to->map = model_live(m, to->id, MODEL_MAP);
		to->pinned = model_live(m, to->id, MODEL_PINNED);
		to->device = model_live(m, to->id, MODEL_DEVICE);
	}
	for (unsigned i = 0; i < model_devices(m); i++) {
		const struct model_device *d = model_device(m, i);
		double own = (double)model_device_live(m, i, LAYER_MEMORY);
		struct gauge *g = d->total_bytes ? gauge_of(l, *d->uuid ? d->uuid : d->name) : NULL;
		l->device += (uint64_t)own;
		l->pool += model_device_live(m, i, LAYER_POOL);
		l->pool_reserved += model_device_live(m, i, LAYER_RESERVED);
		if (!g)
			continue;
		snprintf(g->name, sizeof(g->name), "%s", d->name);
		g->total = g->total > 0 ? g->total : (double)d->total_bytes;
		g->used = fmax(g->used, own); /* samples are some seconds old */
	}
	l->age_ns = model_end_ns(m);
	l->modelled = true;
}

/* What may have got steps since, or others. */
static bool is_doubtful(const struct live *l, const struct model *m)
{
	if (model_events(m) < 2 * l->first_events || model_events(m) < LEAST_EVENTS)
		return false;
	for (unsigned id = 0; id < reader_processes(l->reader); id++) {
		const struct step_list *steps = is_wanted(l, id) ? timeline_step_list(l->timeline, id) : NULL;
		if (steps && steps->process->state == PROCESS_RUNNING &&
		    (steps->source == LOOP_NONE || steps->source == LOOP_SITES))
			return true;
	}
	return false;
}

enum { STOP = 0, GO_ON = 1, ANEW = -1000 };

static int on_idle(void *arg, const struct model *m)
{
	struct live *l = arg;
	if (reader_ended(l->reader)) {
		timeline_finish(l->timeline);
		timeline_read_samples(l->timeline, l->reader);
	}
	take_samples(l);
	take_model(l, m);
	take_growth(l, m);
	if (!l->show(l, false) || reader_ended(l->reader) || !l->running)
		return STOP;
	if (is_doubtful(l, m))
		return ANEW;
	int e = reader_refresh(l->reader);
	return e || (e = samples_refresh(l->samples)) ? e : GO_ON;
}

static void on_progress(double done, uint64_t events)
{
	(void)done, (void)events;
	if (clock_mono_ns() < reading->next_ns)
		return;
	reading->next_ns = clock_mono_ns() + EVERY_NS;
	if (samples_refresh(reading->samples) == 0)
		take_samples(reading);
	reading->show(reading, true);
}

/* What recurs, in what is there now: the second pass begins with the very same. */
static int find_loops(struct live *l)
{
	struct reader *r;
	struct model *m = NULL;
	struct model_query q = MODEL_QUERY_ALL;
	q.changes_only = true;
	q.on_progress = on_progress;
	timeline_attach(l->timeline, &q);
	int e = reader_open_again(&r, l->reader);
	if (e == 0)
		e = model_run(&m, r, &q);
	if (e == 0)
		l->first_events = model_events(m);
	timeline_attach_second(l->timeline, &q); /* nothing of that reader is looked at from now on */
	model_free(m);
	reader_close(r);
	return e;
}

static int read_all(struct live *l)
{
	struct model *m = NULL;
	struct model_query q = MODEL_QUERY_ALL;
	l->timeline = timeline_new();
	if (!l->timeline)
		return error_memory();
	int e = find_loops(l);
	q.changes_only = true;
	q.on_progress = on_progress;
	q.on_idle = on_idle;
	q.idle_arg = l;
	timeline_attach_second(l->timeline, &q);
	if (e == 0)
		e = model_run(&m, l->reader, &q);
	model_free(m);
	timeline_free(l->timeline);
	l->timeline = NULL;
	return e;
}

static int open_all(struct live *l, const char *dir)
{
	int e = reader_open(&l->reader, &dir, 1, READER_FORCE | READER_FOLLOW);
	if (e == 0 && reader_find(l->reader, l->options->process, 0) == reader_processes(l->reader))
		e = reader_no_such_process(l->reader, l->options->process);
	l->stacks = stacks_new();
	return e ? e : !l->stacks ? error_memory() : samples_open(&l->samples, l->reader);
}

/* What is being written may be half there: a little later it is whole. */
int live_follow(struct live *l, const char *dir)
{
	int e, failures = 0;
	reading = l;
	do {
		e = open_all(l, dir);
		if (e == 0)
			e = read_all(l);
		samples_close(l->samples);
		stacks_free(l->stacks);
		reader_close(l->reader);
		l->samples = NULL;
		l->stacks = NULL;
		l->reader = NULL;
		failures = e < 0 && e != ANEW && e != -MT_EUSAGE ? failures + 1 : 0;
		if (failures)
			usleep(RETRY_US);
	} while (e == ANEW || (failures && failures <= RETRIES));
	return e;
}
