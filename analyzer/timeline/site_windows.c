#include "analyzer/timeline/site_windows.h"

#include "analyzer/model/pool_layout.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>

#define FORGOTTEN           UINT32_MAX
#define CLASSES             4096   /* of worth: class_of() */
#define WINDOWS_MOST_BLOCKS 600000 /* in all layouts, about */

/* A window in which a site changed. */
struct entry {
	uint64_t live, at_high, allocated, passing; /* as in window_values */
	uint32_t blocks;
	uint32_t before; /* the site's last one, index + 1 */
	uint32_t high;   /* at_high is of the track's high point of that number */
	uint16_t window;
};

struct state {
	uint64_t live, most, allocated;
	uint32_t blocks;
	uint32_t entry; /* the latest, index + 1; FORGOTTEN */
	uint32_t node, node2;
	uint32_t track;  /* index + 1; 0 = nothing was seen of it */
	uint16_t window; /* of the latest entry */
};

struct states {
	struct state *list;
	size_t count, room;
};

/* As in the model: the number of the high point goes up when something changes behind a new maximum. What a site had
 * there is what it has when it changes for the first time since. */
struct track {
	struct window_track seen;
	uint64_t live, blocks, allocated;
	uint32_t number;
	bool rose;
	uint32_t last[SITE_WINDOWS_MOST]; /* number of each window's high point */
};

struct end {
	uint64_t ns;
	uint32_t process;
};

struct planned {
	uint64_t ns;
	uint32_t device;
	bool peak;
};

struct site_windows {
	const struct selection *selection;
	const struct model *pass; /* the second's; NULL = nothing has changed yet */
	uint64_t times[SITE_WINDOWS_MOST + 1];
	uint32_t count, window;
	bool begun; /* behind times[0] */
	struct track *tracks;
	size_t track_count, track_room;
	struct states *states; /* by process */
	unsigned processes;
	struct entry *entries;
	size_t entry_count, entry_room;
	struct end *ends;
	size_t end_count, next_end;
	struct window_site *sites; /* behind the pass */
	size_t site_count;
	struct planned plan[SITE_WINDOWS_LAYOUTS];
	size_t plan_count, next_plan;
	struct window_layout layouts[SITE_WINDOWS_LAYOUTS];
	size_t layout_count, layout_blocks, skip;
	struct pool_events **pools; /* by device */
	int error;
};

/* ---- when ---------------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void add_moment(struct site_windows *w, uint64_t from, uint64_t to, uint64_t ns)
{
	if (w->count < SITE_WINDOWS_MOST && ns > from && ns < to)
		w->times[++w->count] = ns;
}

/* Equal windows are there already; moments that fall on each other's time are one. */
static void add_moments(struct site_windows *w, uint64_t from, uint64_t to)
{
	const struct model *m = w->selection->model;
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		add_moment(w, from, to, model_totals(m, kind).peak_ns);
	for (unsigned i = 0; i < model_devices(m); i++) {
		const struct model_device *d = model_device(m, i);
		add_moment(w, from, to, d->peak.ns);
		add_moment(w, from, to, d->layer[LAYER_POOL].peak_ns);
		if (d->oom_count)
			add_moment(w, from, to, d->oom[d->oom_count - 1].at.ns);
	}
	for (unsigned i = 0; i < model_ooms(m); i++)
		add_moment(w, from, to, model_oom(m, i)->at.ns);
	qsort(w->times, w->count + 1, sizeof(*w->times), by_time);
	uint32_t kept = 0;
	for (uint32_t i = 1; i <= w->count; i++)
		if (w->times[i] != w->times[kept])
			w->times[++kept] = w->times[i];
	w->count = kept;
}

static void set_times(struct site_windows *w)
{
	uint64_t from = w->selection->from_ns, to = model_end_ns(w->selection->model);
	to = to > from ? to : from + 1;
	w->times[0] = from;
	for (uint64_t i = 1; i <= SITE_WINDOWS; i++) {
		uint64_t ns = from + (uint64_t)((double)(to - from) * (double)i / SITE_WINDOWS);
		if (i == SITE_WINDOWS)
			ns = to;
		if (ns > w->times[w->count])
			w->times[++w->count] = ns;
	}
	add_moments(w, from, to);
}

static int by_end(const void *a, const void *b)
{
	const struct end *x = a, *y = b;
	return by_time(&x->ns, &y->ns);
}

/* Ends in the last window are the run's: what was alive then is shown. */
static bool set_ends(struct site_windows *w)
{
	w->ends = calloc(w->processes + 1ul, sizeof(*w->ends));
	for (unsigned id = 0; w->ends && id < w->processes; id++) {
		const struct process *p = reader_process(w->selection->reader, id);
		if (p->state != PROCESS_RUNNING && p->end_ns <= w->times[w->count - 1])
			w->ends[w->end_count++] = (struct end){ p->end_ns, id };
	}
	if (w->ends)
		qsort(w->ends, w->end_count, sizeof(*w->ends), by_end);
	return w->ends;
}

static bool has_pool(const struct model_device *d)
{
	return d->layer[LAYER_POOL].peak_bytes;
}

static int by_plan(const void *a, const void *b)
{
	const struct planned *x = a, *y = b;
	return by_time(&x->ns, &y->ns);
}

/* The peak of each device, and as many equal stretches as there is room for. (Failures have layouts of their own.) */
static void plan_layouts(struct site_windows *w)
{
	const struct model *m = w->selection->model;
	const uint64_t from = w->times[0], to = w->times[w->count];
	unsigned pools = 0;
	for (unsigned i = 0; i < model_devices(m); i++)
		pools += has_pool(model_device(m, i)) && selection_has_device(w->selection, i);
	const unsigned each = pools ? SITE_WINDOWS_LAYOUTS / pools : 0;
	for (unsigned i = 0; i < model_devices(m) && each; i++) {
		const struct model_device *d = model_device(m, i);
		if (!has_pool(d) || !selection_has_device(w->selection, i))
			continue;
		w->plan[w->plan_count++] = (struct planned){ d->peak.ns, i, true };
		for (unsigned k = 1; k < each; k++)
			w->plan[w->plan_count++] =
				(struct planned){ from + (uint64_t)((double)(to - from) * k / each), i, false };
	}
	qsort(w->plan, w->plan_count, sizeof(*w->plan), by_plan);
}

static void plan_pool_events(struct site_windows *w)
{
	const struct model *m = w->selection->model;
	w->pools = calloc(model_devices(m) + 1ul, sizeof(*w->pools));
	for (unsigned i = 0; w->pools && i < model_devices(m); i++) {
		const struct model_device *d = model_device(m, i);
		struct pool_events *l =
			has_pool(d) && selection_has_device(w->selection, i) ? calloc(1, sizeof(*l)) : NULL;
		const struct model_oom *oom = d->oom_count ? &d->oom[d->oom_count - 1] : NULL;
		w->pools[i] = l;
		if (l) {
			l->ns = oom ? oom->at.ns : d->peak.ns;
			l->process = oom ? oom->process : UINT32_MAX;
		}
	}
}

struct site_windows *site_windows_new(const struct selection *sel)
{
	struct site_windows *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->selection = sel;
	w->processes = reader_processes(sel->reader);
	w->states = calloc(w->processes + 1ul, sizeof(*w->states));
	set_times(w);
	if (!w->states || !set_ends(w)) {
		site_windows_free(w);
		return NULL;
	}
	plan_layouts(w);
	plan_pool_events(w);
	return w;
}

void site_windows_free(struct site_windows *w)
{
	if (!w)
		return;
	for (unsigned id = 0; w->states && id < w->processes; id++)
		free(w->states[id].list);
	for (size_t i = 0; i < w->layout_count; i++)
		pool_layout_free(w->layouts[i].layout);
	for (unsigned i = 0; w->pools && i < model_devices(w->selection->model); i++)
		free(w->pools[i]);
	free(w->pools);
	free(w->states);
	free(w->tracks);
	free(w->entries);
	free(w->ends);
	free(w->sites);
	free(w);
}

/* ---- windows ------------------------------------------------------------------------------------------------- */

static void open_window(struct site_windows *w, struct track *t)
{
	t->number++;
	t->rose = false;
	t->seen.windows[w->window].at_high = t->live;
}

static void close_window(struct site_windows *w, struct track *t)
{
	struct window_values *v = &t->seen.windows[w->window];
	v->live = t->live;
	v->blocks = t->blocks;
	/* nobody has changed since: what they have at the end is what they had */
	t->last[w->window] = t->rose ? ++t->number : t->number;
	if (v->at_high > t->seen.peak)
		t->seen.peak = v->at_high;
}

static void next_window(struct site_windows *w)
{
	for (size_t i = 0; i < w->track_count; i++)
		close_window(w, &w->tracks[i]);
	w->window++;
	for (size_t i = 0; i < w->track_count; i++)
		open_window(w, &w->tracks[i]);
}

static struct entry *entry_of(struct site_windows *w, struct state *s)
{
	if (s->entry == FORGOTTEN)
		return NULL;
	if (s->entry && s->window == w->window)
		return &w->entries[s->entry - 1];
	if ((w->error = vec_reserve_raw(w->entries, w->entry_room, w->entry_count + 1)) < 0)
		return NULL;
	struct entry *e = &w->entries[w->entry_count++];
	*e = (struct entry){ .live = s->live,
			     .at_high = s->live,
			     .blocks = s->blocks,
			     .before = s->entry,
			     .window = (uint16_t)w->window };
	s->entry = (uint32_t)w->entry_count;
	s->window = (uint16_t)w->window;
	return e;
}

/* What was there before the first window is in it, though it may never change. */
static void begin(struct site_windows *w)
{
	w->begun = true;
	for (size_t i = 0; i < w->track_count; i++)
		open_window(w, &w->tracks[i]);
	for (unsigned id = 0; id < w->processes; id++)
		for (size_t i = 0; i < w->states[id].count && !w->error; i++)
			if (w->states[id].list[i].live)
				entry_of(w, &w->states[id].list[i]);
}

/* Up to the window that this moment is in. */
static void advance(struct site_windows *w, uint64_t ns)
{
	if (!w->begun && ns > w->times[0])
		begin(w);
	while (w->begun && w->window + 1 < w->count && ns > w->times[w->window + 1])
		next_window(w);
}

static uint32_t track_of(struct site_windows *w, enum model_kind kind, uint32_t device)
{
	for (uint32_t i = 0; i < w->track_count; i++)
		if (w->tracks[i].seen.kind == kind && w->tracks[i].seen.device == device)
			return i + 1;
	if ((w->error = vec_reserve(w->tracks, w->track_room, w->track_count + 1)) < 0)
		return 0;
	struct track *t = &w->tracks[w->track_count++];
	*t = (struct track){ .seen = { .kind = kind, .device = device }, .number = 1 };
	return (uint32_t)w->track_count;
}

/* ---- sites --------------------------------------------------------------------------------------------------- */

static void change_site(struct site_windows *w, struct track *t, struct state *s, int64_t bytes, int64_t blocks)
{
	struct entry *e = w->begun ? entry_of(w, s) : NULL;
	if (e && e->high != t->number) {
		e->at_high = s->live;
		e->high = t->number;
	}
	s->live += (uint64_t)bytes;
	s->blocks += (uint32_t)blocks;
	s->most = s->live > s->most ? s->live : s->most;
	if (e) {
		e->live = s->live;
		e->blocks = s->blocks;
	}
}

static void change_track(struct site_windows *w, struct track *t, int64_t bytes, int64_t blocks)
{
	t->live += (uint64_t)bytes;
	t->blocks += (uint64_t)blocks;
	if (w->begun && t->live > t->seen.windows[w->window].at_high) {
		t->seen.windows[w->window].at_high = t->live;
		t->rose = true;
	}
}

static void before_change(struct track *t, int64_t bytes)
{
	if (bytes < 0 && t->rose) {
		t->number++;
		t->rose = false;
	}
}

static void count(const struct site_windows *w, uint64_t *allocated, uint64_t *passing, const struct model_change *c)
{
	if (c->bytes > 0)
		*allocated += (uint64_t)c->bytes;
	else if (c->made_ns > w->times[w->window])
		*passing += (uint64_t)-c->bytes;
}

/* There will be no fewer than have figures behind the first pass. */
static void make_room(struct site_windows *w, struct states *all, unsigned process)
{
	const size_t count = model_process(w->selection->model, process)->site_count;
	all->list = vec_calloc(count + 1, sizeof(*all->list));
	if (!all->list)
		w->error = error_memory();
	else
		all->count = all->room = count + 1;
}

static struct state *state_of(struct site_windows *w, const struct model_change *c)
{
	struct states *all = &w->states[c->process->id];
	if (c->site == UINT32_MAX)
		return NULL;
	if (!all->list)
		make_room(w, all, c->process->id);
	if (w->error)
		return NULL;
	if (c->site >= all->count && (w->error = vec_extend(all->list, all->count, all->room, c->site + 1ul)) < 0)
		return NULL;
	struct state *s = &all->list[c->site];
	if (!s->track) {
		s->track = track_of(w, c->kind, c->device);
		s->node = c->node;
		s->node2 = c->node2;
	}
	return s;
}

/* What an ended process has is nobody's. */
static void end_process(struct site_windows *w, uint32_t id)
{
	struct states *all = &w->states[id];
	for (size_t i = 0; i < all->count; i++) {
		struct state *s = &all->list[i];
		if (!s->track || !s->live)
			continue;
		struct track *t = &w->tracks[s->track - 1];
		int64_t bytes = -(int64_t)s->live, blocks = -(int64_t)s->blocks;
		before_change(t, bytes);
		change_site(w, t, s, bytes, blocks);
		change_track(w, t, bytes, blocks);
	}
}

static void end_processes(struct site_windows *w, uint64_t ns)
{
	for (; w->next_end < w->end_count && w->ends[w->next_end].ns < ns; w->next_end++) {
		advance(w, w->ends[w->next_end].ns);
		end_process(w, w->ends[w->next_end].process);
	}
}

/* ---- keeping within bounds ----------------------------------------------------------------------------------- */

static int falling(const void *a, const void *b)
{
	return by_time(b, a);
}

/* What sites had at the most is compared whatever their track: of small tracks less is kept, and all of it shown. */
static uint64_t middle(const struct site_windows *w)
{
	size_t count = 0, room = 0;
	for (unsigned id = 0; id < w->processes; id++)
		room += w->states[id].count;
	uint64_t *values = calloc(room + 1, sizeof(*values)), found = UINT64_MAX;
	for (unsigned id = 0; values && id < w->processes; id++)
		for (size_t i = 0; i < w->states[id].count; i++) {
			const struct state *s = &w->states[id].list[i];
			if (s->entry && s->entry != FORGOTTEN)
				values[count++] = s->most;
		}
	if (values && count) {
		qsort(values, count, sizeof(*values), falling);
		found = values[count / 4];
	}
	free(values);
	return found;
}

static uint32_t move_entries(struct site_windows *w, struct entry *to, size_t *count, uint32_t last)
{
	uint32_t list[SITE_WINDOWS_MOST], n = 0, before = 0;
	for (uint32_t i = last; i && n < SITE_WINDOWS_MOST; i = w->entries[i - 1].before)
		list[n++] = i;
	while (n) {
		struct entry e = w->entries[list[--n] - 1];
		e.before = before;
		to[(*count)++] = e;
		before = (uint32_t)*count;
	}
	return before;
}

/* Three quarters of the sites go, those that never held as much as the others. */
static void forget(struct site_windows *w)
{
	uint64_t least = middle(w);
	size_t count = 0;
	struct entry *to = malloc((w->entry_count + 1) * sizeof(*to));
	if (!to) {
		w->error = error_memory();
		return;
	}
	for (unsigned id = 0; id < w->processes; id++)
		for (size_t i = 0; i < w->states[id].count; i++) {
			struct state *s = &w->states[id].list[i];
			if (!s->entry || s->entry == FORGOTTEN)
				continue;
			s->entry = s->most <= least && count + SITE_WINDOWS_MOST > SITE_WINDOWS_ENTRIES / 2 ? FORGOTTEN
				   : s->most < least                                                        ? FORGOTTEN
						     : move_entries(w, to, &count, s->entry);
		}
	free(w->entries);
	w->entries = to;
	w->entry_room = w->entry_count + 1;
	w->entry_count = count;
}

/* ---- the pass ------------------------------------------------------------------------------------------------ */

static void take_layout(struct site_windows *w, const struct planned *p)
{
	struct pool_layout *l = NULL;
	if (!w->pass || p->device >= model_devices(w->pass) || (w->skip && !p->peak)) {
		w->skip -= w->skip > 0;
		return;
	}
	int e = pool_layout_take(&l, w->pass, p->device, UINT32_MAX);
	w->error = e < 0 ? e : w->error;
	if (!l || !l->segment_count) {
		pool_layout_free(l);
		return;
	}
	w->layouts[w->layout_count++] = (struct window_layout){ p->device, p->ns, l };
	/* a layout takes as long as it has blocks: where there are many, fewer are taken, evenly from there on */
	w->layout_blocks += l->block_count;
	const size_t room = w->layout_blocks < WINDOWS_MOST_BLOCKS ? WINDOWS_MOST_BLOCKS - w->layout_blocks : 1;
	w->skip = l->block_count * (w->plan_count - w->next_plan) / room;
}

/* Before the event is accounted for. */
static void on_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread)
{
	struct site_windows *w = arg;
	(void)ring;
	(void)thread;
	if (w->next_plan >= w->plan_count || w->error)
		return;
	for (uint64_t ns = process_ns(p, slot->ticks); w->next_plan < w->plan_count && ns > w->plan[w->next_plan].ns;
	     w->next_plan++)
		take_layout(w, &w->plan[w->next_plan]);
}

static void on_change(void *arg, const struct model_change *c)
{
	struct site_windows *w = arg;
	w->pass = c->model;
	if (w->error || !selection_has(w->selection, c->process))
		return;
	end_processes(w, c->ns);
	advance(w, c->ns);
	if (c->kind == MODEL_POOL && site_windows_pool_events(w, c->device))
		pool_events_add(w->pools[c->device], c);
	struct state *s = state_of(w, c);
	uint32_t index = s ? s->track : w->error ? 0 : track_of(w, c->kind, c->device);
	if (!index)
		return;
	struct track *t = &w->tracks[index - 1];
	before_change(t, c->bytes);
	if (s)
		change_site(w, t, s, c->bytes, c->blocks);
	change_track(w, t, c->bytes, c->blocks);
	if (!w->begun)
		return;
	struct window_values *v = &t->seen.windows[w->window];
	count(w, &v->allocated, &v->passing, c);
	t->allocated += c->bytes > 0 ? (uint64_t)c->bytes : 0;
	if (s && c->bytes > 0)
		s->allocated += (uint64_t)c->bytes;
	if (s && s->entry && s->entry != FORGOTTEN) {
		struct entry *e = &w->entries[s->entry - 1];
		count(w, &e->allocated, &e->passing, c);
	}
	if (w->entry_count >= SITE_WINDOWS_ENTRIES)
		forget(w);
}

void site_windows_watch(struct site_windows *w, struct timeline *timeline)
{
	timeline_watch(timeline, true, on_event, on_change, w);
}

/* ---- behind the pass ----------------------------------------------------------------------------------------- */

static double worth(const struct site_windows *w, const struct state *s)
{
	const struct track *t = &w->tracks[s->track - 1];
	double held = t->seen.peak ? (double)s->most / (double)t->seen.peak : 0;
	double made = t->allocated ? (double)s->allocated / (double)t->allocated : 0;
	return held > made ? held : made;
}

/* A float's exponent and four bits behind: the larger, the higher. */
static uint32_t class_of(double worth)
{
	const float value = (float)worth;
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits >> 19;
}

/* 0: it is not listed. */
static double worth_of(const struct site_windows *w, const struct state *s)
{
	return s->track && s->entry && s->entry != FORGOTTEN ? worth(w, s) : 0;
}

/* Counts the sites of each class, and sets where its first one goes. Returns how many sites there are. */
static size_t place_classes(const struct site_windows *w, size_t *next)
{
	size_t count = 0;
	for (unsigned id = 0; id < w->processes; id++)
		for (size_t i = 0; i < w->states[id].count; i++) {
			const double value = worth_of(w, &w->states[id].list[i]);
			if (value > 0)
				next[class_of(value)]++;
		}
	for (uint32_t k = CLASSES; k-- > 0;) {
		const size_t own = next[k];
		next[k] = count;
		count += own;
	}
	return count;
}

static void place_sites(struct site_windows *w, size_t *next)
{
	for (unsigned id = 0; id < w->processes; id++)
		for (uint32_t i = 0; i < w->states[id].count; i++) {
			const struct state *s = &w->states[id].list[i];
			const double value = worth_of(w, s);
			if (value > 0)
				w->sites[next[class_of(value)]++] =
					(struct window_site){ id,       i,       s->node,      s->node2, s->track - 1,
							      s->entry, s->most, s->allocated, value };
		}
}

/* There may be millions, so they are not compared with each other, but counted by class and put in their places. */
static int list_sites(struct site_windows *w)
{
	size_t *next = calloc(CLASSES, sizeof(*next));
	if (!next)
		return error_memory();
	w->site_count = place_classes(w, next);
	w->sites = malloc((w->site_count + 1) * sizeof(*w->sites));
	vec_large(w->sites, (w->site_count + 1) * sizeof(*w->sites));
	if (w->sites)
		place_sites(w, next);
	free(next);
	return w->sites ? 0 : error_memory();
}

int site_windows_finish(struct site_windows *w)
{
	if (w->error)
		return w->error;
	end_processes(w, w->times[w->count]);
	advance(w, w->times[w->count]);
	for (size_t i = 0; i < w->track_count; i++)
		close_window(w, &w->tracks[i]);
	return list_sites(w);
}

uint32_t site_windows_count(const struct site_windows *w)
{
	return w->count;
}

uint64_t site_windows_time(const struct site_windows *w, uint32_t i)
{
	return w->times[i];
}

unsigned site_windows_tracks(const struct site_windows *w)
{
	return (unsigned)w->track_count;
}

const struct window_track *site_windows_track(const struct site_windows *w, unsigned i)
{
	return &w->tracks[i].seen;
}

size_t site_windows_sites(const struct site_windows *w)
{
	return w->site_count;
}

const struct window_site *site_windows_site(const struct site_windows *w, size_t i)
{
	return &w->sites[i];
}

static uint64_t weighed(double weight, uint64_t value)
{
	return weight == 1 ? value : (uint64_t)((double)value * weight + 0.5);
}

/* An entry's live bytes stay as they are up to the next one, and so does what it had when its track had the most, but
 * in its own window. Differences may be negative, and are so modulo 2^64. */
static void add_entry(struct window_values *v, const struct entry *e, uint32_t until, uint32_t count, bool own,
		      double weight)
{
	const uint64_t live = weighed(weight, e->live);
	const uint64_t high = own ? weighed(weight, e->at_high) : live;
	const uint64_t blocks = weighed(weight, e->blocks);
	struct window_values *at = &v[e->window];
	at->live += live;
	at->at_high += high;
	at->blocks += blocks;
	at->allocated += weighed(weight, e->allocated);
	at->passing += weighed(weight, e->passing);
	if (e->window + 1u < count)
		at[1].at_high += live - high;
	if (until < count) {
		v[until].live -= live;
		v[until].at_high -= live;
		v[until].blocks -= blocks;
	}
}

void site_windows_add(const struct site_windows *w, size_t i, double weight, struct window_values *values)
{
	const struct window_site *s = &w->sites[i];
	const uint32_t *last = w->tracks[s->track].last;
	uint32_t until = w->count;
	for (uint32_t k = s->entry; k; k = w->entries[k - 1].before) {
		const struct entry *e = &w->entries[k - 1];
		add_entry(values, e, until, w->count, e->high == last[e->window], weight);
		until = e->window;
	}
}

void site_windows_prefetch(const struct site_windows *w, size_t i)
{
	__builtin_prefetch(&w->entries[w->sites[i].entry - 1]);
}

void site_windows_sum(const struct site_windows *w, struct window_values *v)
{
	for (uint32_t i = 1; i < w->count; i++) {
		v[i].live += v[i - 1].live;
		v[i].at_high += v[i - 1].at_high;
		v[i].blocks += v[i - 1].blocks;
	}
}

size_t site_windows_layouts(const struct site_windows *w)
{
	return w->layout_count;
}

const struct window_layout *site_windows_layout(const struct site_windows *w, size_t i)
{
	return &w->layouts[i];
}

const struct pool_events *site_windows_pool_events(const struct site_windows *w, uint32_t device)
{
	return w->pools && device < model_devices(w->selection->model) ? w->pools[device] : NULL;
}
