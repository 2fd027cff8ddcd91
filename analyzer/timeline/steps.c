#include "analyzer/timeline/steps.h"

#include "analyzer/timeline/step_shape.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

#include <ctype.h>
#include <math.h>

#define WINDOW_SHIFT  24 /* of the shortest windows of time: 17 ms */
#define LATEST        32 /* steps, whose median says what is usual */
#define STEPS_OVERDUE 1.5
#define MORE_WORK     0.05 /* of the usual number of allocations ... */
#define FAR           8.0  /* ... and times the median deviation from it: not a plain step */
#define CLEANS        0.25 /* of what it had, that is freed in the first half of such a time */
#define LONG_REST     0.1  /* of the time: shorter ends growth leaves out itself */

enum { FAILURES = 64 }; /* of a process's pools; of more the latest */

/* A figure of the latest steps. */
struct latest {
	uint64_t values[LATEST], sorted[LATEST];
	uint64_t count; /* of all that were put: `values` is a ring */
};

struct book {
	struct step_list list;
	const struct loop *loop;
	struct step_track *tracks; /* list.tracks, with room */
	size_t track_room, step_room;
	unsigned shift; /* entries are 2^shift steps */
	uint64_t index; /* of the step that is open, or window */
	bool started, open, recording, step_ended;
	bool left;           /* the pool's latest block was made by a site outside of the loop */
	uint64_t refused_ns; /* when a request of the open step failed last, if that is one: see note_failure(); 0 */
	bool refused_next;   /* ... and that request begins the next step */
	/* of each site that made a block of the pool's without a role: number of the step, from 1 on; 0 = none */
	uint64_t *seen;
	size_t seen_count, seen_room;
	/* the latest block of the loop's thread that has a Python stack was made by a site with ROLE_STEP */
	bool entered;
	uint64_t moving; /* bytes of the block that realloc is at: freed, and there again with the next change */
	struct step now;
	uint64_t before_ns; /* when the step before `now` began */
	uint64_t overdue_ns, kept_end;
	struct latest lengths, work; /* in ns, and in allocations */
	struct step_failure {
		uint64_t ns;
		struct steps_rise rise;
		uint32_t device;
	} failures[FAILURES];
	unsigned failure_count;
};

struct steps {
	struct loop_finder *finder;
	struct book **books; /* by process */
	size_t count, room;
};

struct steps *steps_new(struct loop_finder *finder)
{
	struct steps *s = calloc(1, sizeof(*s));
	if (s)
		s->finder = finder;
	return s;
}

static void book_free(struct book *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->list.track_count; i++) {
		step_shapes_free(b->tracks[i].shapes);
		free(b->tracks[i].low);
		free(b->tracks[i].high);
	}
	free(b->tracks);
	free(b->list.steps);
	free(b->seen);
	free(b);
}

void steps_free(struct steps *s)
{
	for (size_t i = 0; s && i < s->count; i++)
		book_free(s->books[i]);
	if (s)
		free(s->books);
	free(s);
}

static struct book *book_of(struct steps *s, const struct process *p)
{
	if (p->id >= s->count) {
		if (vec_reserve(s->books, s->room, p->id + 1ul))
			return NULL;
		s->count = p->id + 1ul;
	}
	struct book *b = s->books[p->id];
	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->loop = loop_finder_loop(s->finder, p->id);
	b->list.process = p;
	b->list.source = b->loop ? b->loop->source : LOOP_NONE;
	b->list.micro = b->loop ? b->loop->micro : 1;
	b->list.whole = b->loop && b->loop->whole;
	b->overdue_ns = UINT64_MAX;
	return s->books[p->id] = b;
}

/* ---- tracks -------------------------------------------------------------------------------------------- */

static struct step_track *new_track(struct book *b, uint32_t kind, uint32_t device)
{
	if (vec_reserve(b->tracks, b->track_room, b->list.track_count + 1))
		return NULL;
	b->list.tracks = b->tracks;
	struct step_track *t = &b->tracks[b->list.track_count++];
	*t = (struct step_track){ .kind = kind, .device = device, .from = b->list.count };
	if (kind == MODEL_POOL && b->list.source != LOOP_NONE)
		t->shapes = step_shapes_new();
	return t;
}

static inline struct step_track *track_of(struct book *b, uint32_t kind, uint32_t device)
{
	for (size_t i = 0; i < b->list.track_count; i++)
		if (b->tracks[i].kind == kind && b->tracks[i].device == device)
			return &b->tracks[i];
	return new_track(b, kind, device);
}

static void level_track(struct book *b, const struct model_level_change *l)
{
	struct step_track *t = track_of(b, l->kind, l->device);
	if (!t)
		return;
	t->leveled = !l->end;
	t->left_out = l->end ? 0 : l->now - t->live;
	t->now_low = l->low < t->now_low ? l->low : t->now_low;
	t->now_high = l->high > t->now_high ? l->high : t->now_high;
}

/* It was there all the time. */
static void lift_track(struct step_track *t, uint64_t bytes)
{
	for (size_t i = 0; i < t->count; i++) {
		t->low[i] += bytes;
		t->high[i] += bytes;
	}
	t->live += bytes;
	t->now_low += bytes;
	t->now_high += bytes;
}

static void change_track(struct book *b, const struct model_change *c)
{
	struct step_track *t = track_of(b, c->kind, c->device);
	if (!t)
		return;
	if (c->before && c->bytes > 0 && !t->leveled) {
		lift_track(t, (uint64_t)c->bytes);
		return;
	}
	t->live += (uint64_t)c->bytes;
	if (t->leveled)
		return;
	if (t->shapes && c->bytes > 0)
		step_shapes_allocation(t->shapes, t->live - (uint64_t)c->bytes, t->live);
	t->now_low = t->live < t->now_low && !(c->moves && c->bytes < 0) ? t->live : t->now_low;
	t->now_high = t->live > t->now_high ? t->live : t->now_high;
}

static int put_point(struct step_track *t, size_t entry, uint64_t low, uint64_t high)
{
	if (entry < t->from) { /* the track began in it */
		t->from = entry;
	}
	size_t at = entry - t->from;
	if (at < t->count) {
		t->low[at] = low < t->low[at] ? low : t->low[at];
		t->high[at] = high > t->high[at] ? high : t->high[at];
		return 0;
	}
	size_t room = t->room;
	int e = vec_reserve_raw(t->low, room, at + 1);
	room = t->room;
	e = e ? e : vec_reserve_raw(t->high, room, at + 1);
	if (e)
		return e;
	t->room = room;
	for (; t->count < at; t->count++)
		t->low[t->count] = t->high[t->count] = t->count ? t->high[t->count - 1] : 0;
	t->low[at] = low;
	t->high[at] = high;
	t->count = at + 1;
	return 0;
}

uint64_t step_low(const struct step_track *t, size_t entry)
{
	return entry < t->from || entry - t->from >= t->count ? 0 : t->low[entry - t->from];
}

uint64_t step_high(const struct step_track *t, size_t entry)
{
	return entry < t->from || entry - t->from >= t->count ? 0 : t->high[entry - t->from];
}

/* Entry i of the new list is 2i and 2i + 1 of the old one. A track that began in an odd one had nothing in the even
 * one. */
static void halve_track(struct step_track *t)
{
	size_t from = t->from / 2, n = 0;
	for (size_t i = 0; i < t->count; i++) {
		size_t to = (t->from + i) / 2 - from;
		uint64_t low = t->low[i], high = t->high[i];
		if (to < n) {
			t->low[to] = low < t->low[to] ? low : t->low[to];
			t->high[to] = high > t->high[to] ? high : t->high[to];
		} else {
			t->low[to] = (t->from + i) % 2 && i == 0 ? 0 : low;
			t->high[to] = high;
			n = to + 1;
		}
	}
	t->from = from;
	t->count = n;
}

/* ---- the list of steps --------------------------------------------------------------------------------- */

static void join(struct step *to, const struct step *more)
{
	to->end_ns = more->end_ns;
	to->count += more->count;
	to->allocations += more->allocations;
	to->device_frees += more->device_frees;
	to->rare += more->rare;
	to->partial = more->partial;
}

static void halve_steps(struct book *b)
{
	struct step *list = b->list.steps;
	for (size_t i = 0; i < b->list.count; i++) {
		if (i % 2)
			join(&list[i / 2], &list[i]);
		else
			list[i / 2] = list[i];
	}
	b->list.count = (b->list.count + 1) / 2;
	for (size_t i = 0; i < b->list.track_count; i++)
		halve_track(&b->tracks[i]);
	b->shift++;
}

/* The entry of the list that the current step belongs to, made if it is new. */
static struct step *entry_of(struct book *b, const struct step *step)
{
	size_t most = b->list.source == LOOP_NONE ? STEPS_WINDOWS : STEPS_MOST;
	while ((b->index >> b->shift) >= most)
		halve_steps(b);
	size_t entry = (size_t)(b->index >> b->shift);
	if (vec_reserve_raw(b->list.steps, b->step_room, entry + 1))
		return NULL;
	uint64_t start = b->list.process->start_ns;
	for (size_t i = b->list.count; i < entry; i++) /* windows before anything happened */
		b->list.steps[i] = (struct step){ .number = i,
						  .begin_ns = start + (i << b->shift << WINDOW_SHIFT),
						  .end_ns = start + ((i + 1) << b->shift << WINDOW_SHIFT),
						  .count = 1 };
	if (entry < b->list.count) {
		join(&b->list.steps[entry], step);
	} else {
		b->list.steps[entry] = *step;
		b->list.count = entry + 1;
	}
	return &b->list.steps[entry];
}

/* The step is over: its points are `kept` when it was overdue, else those of now. */
static void put_step(struct book *b, bool kept)
{
	if (!entry_of(b, &b->now))
		return;
	for (size_t i = 0; i < b->list.track_count; i++) {
		struct step_track *t = &b->tracks[i];
		if (put_point(t, b->list.count - 1, kept ? t->kept_low : t->now_low, kept ? t->kept_high : t->now_high))
			return;
	}
	b->list.total += b->now.count;
}

static void restart_tracks(struct book *b)
{
	for (size_t i = 0; i < b->list.track_count; i++)
		b->tracks[i].now_low = b->tracks[i].now_high =
			b->tracks[i].live + b->tracks[i].left_out + (b->tracks[i].kind == MODEL_HEAP ? b->moving : 0);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static uint64_t median(const struct latest *l)
{
	return l->sorted[(l->count < LATEST ? l->count : LATEST) / 2];
}

/* The oldest one leaves, the others move up or down by one place. */
static void put_latest(struct latest *l, uint64_t value)
{
	unsigned at = l->count < LATEST ? (unsigned)l->count : 0;
	uint64_t *oldest = &l->values[l->count % LATEST];
	while (l->count >= LATEST && l->sorted[at] != *oldest)
		at++;
	for (; at && l->sorted[at - 1] > value; at--)
		l->sorted[at] = l->sorted[at - 1];
	for (; at + 1 < LATEST && at < l->count && l->sorted[at + 1] < value; at++)
		l->sorted[at] = l->sorted[at + 1];
	l->sorted[at] = *oldest = value;
	l->count++;
}

/* How far they are from `middle`. */
static uint64_t median_deviation(const struct latest *l, uint64_t middle)
{
	struct latest apart = { 0 };
	for (unsigned i = 0; i < LATEST && i < l->count; i++)
		put_latest(&apart, l->values[i] > middle ? l->values[i] - middle : middle - l->values[i]);
	return median(&apart);
}

/* Far more allocations than in other steps, by how much those differ. */
static void look_at_work(struct book *b)
{
	const uint64_t usual = median(&b->work);
	const double more = (double)b->now.allocations - (double)usual;
	if (b->work.count < 3 || more <= MORE_WORK * (double)usual ||
	    more <= FAR * (double)median_deviation(&b->work, usual))
		return;
	b->now.rare = 1;
	b->list.rare_first = b->list.rare++ ? b->list.rare_first : b->now.number;
	b->list.rare_last = b->now.number;
}

static void end_step(struct book *b, uint64_t ns)
{
	b->now.end_ns = ns;
	look_at_work(b);
	put_latest(&b->work, b->now.allocations);
	put_latest(&b->lengths, ns - b->now.begin_ns);
	put_step(b, false);
	b->open = false;
}

#define NO_NUMBER UINT64_MAX

static void begin_step(struct book *b, uint64_t number, uint64_t ns)
{
	if (b->open)
		end_step(b, ns);
	if (b->started)
		b->index++;
	b->started = b->open = b->recording = true;
	b->step_ended = false;
	b->left = false;
	b->refused_ns = 0;
	b->before_ns = b->now.begin_ns;
	b->now = (struct step){ .number = number == NO_NUMBER ? b->index + 1 : number, .begin_ns = ns, .count = 1 };
	b->overdue_ns =
		b->lengths.count >= 2 ? ns + (uint64_t)(STEPS_OVERDUE * (double)median(&b->lengths)) : UINT64_MAX;
	restart_tracks(b);
	for (size_t i = 0; i < b->list.track_count; i++)
		if (b->tracks[i].shapes)
			step_shapes_begin(b->tracks[i].shapes, b->tracks[i].live);
}

/* The step takes longer than steps do: if it was the last, it ends here. */
static void keep_step(struct book *b)
{
	for (size_t i = 0; i < b->list.track_count; i++) {
		b->tracks[i].kept_low = b->tracks[i].now_low;
		b->tracks[i].kept_high = b->tracks[i].now_high;
	}
	b->kept_end = b->overdue_ns;
	b->overdue_ns = UINT64_MAX;
	b->recording = false;
}

/* What a site makes now and then is the loop's once another step has begun behind it. Without memory it is not. */
static bool is_outside(struct book *b, uint32_t site)
{
	if (site == UINT32_MAX || !b->started ||
	    (site >= b->seen_count && vec_extend(b->seen, b->seen_count, b->seen_room, site + 1ul)))
		return true;
	const uint64_t before = b->seen[site];
	if (!before || !b->recording)
		b->seen[site] = b->index + 1;
	return !before || before > b->index;
}

static void by_roles(struct book *b, const struct model_change *c)
{
	uint8_t role = c->site < b->loop->role_count ? b->loop->roles[c->site] : 0;
	const bool there = b->entered;
	if (c->kind == MODEL_POOL && c->bytes > 0)
		b->left = !role && is_outside(b, c->site);
	if (c->node2 && c->thread == b->loop->thread && c->bytes > 0 && c->blocks > 0 && c->site != UINT32_MAX)
		b->entered = role & ROLE_STEP;
	if (!role || c->thread != b->loop->thread || c->bytes <= 0)
		return;
	if (b->list.source == LOOP_SITES) {
		if (role & ROLE_STEP && !(b->loop->enters && there))
			begin_step(b, NO_NUMBER, c->ns);
		return;
	}
	if (role & ROLE_STEP)
		b->step_ended = b->started;
	else if (!b->started || b->step_ended)
		begin_step(b, NO_NUMBER, c->ns);
}

/* Windows of time, as many as have passed. */
static void pass_windows(struct book *b, uint64_t window, uint64_t ns)
{
	const uint64_t start = b->list.process->start_ns;
	if (!b->started) { /* before the first event there are windows, too, in which nothing happened */
		b->now = (struct step){ .begin_ns = window ? start : ns, .count = 1 };
		b->started = true;
	}
	while ((window >> b->shift) >= STEPS_WINDOWS)
		halve_steps(b);
	while (b->index < window) {
		uint64_t next = (b->index >> b->shift) + 1;
		b->now.end_ns = start + (next << b->shift << WINDOW_SHIFT);
		if (next << b->shift > window)
			break;
		put_step(b, false);
		restart_tracks(b);
		b->index = next << b->shift;
		b->now = (struct step){ .number = next, .begin_ns = b->now.end_ns, .count = 1 };
	}
	b->index = window;
	b->open = b->recording = true;
}

static inline void by_time(struct book *b, uint64_t ns)
{
	const uint64_t window = less(ns, b->list.process->start_ns) >> WINDOW_SHIFT;
	if (!b->started || window > b->index)
		pass_windows(b, window, ns);
}

void steps_change(struct steps *s, const struct model_change *c)
{
	struct book *b = c->process->id < s->count ? s->books[c->process->id] : NULL;
	if (!b)
		b = book_of(s, c->process);
	if (!b)
		return;
	if (c->ns > b->overdue_ns)
		keep_step(b);
	if (b->list.source >= LOOP_OPTIMIZER)
		by_roles(b, c);
	else if (b->list.source == LOOP_NONE)
		by_time(b, c->ns);
	b->now.allocations += c->bytes > 0;
	b->now.device_frees += c->bytes < 0 && c->device != MODEL_NO_DEVICE;
	b->moving = c->moves && c->bytes < 0 ? (uint64_t)-c->bytes : b->moving;
	change_track(b, c);
	b->moving = c->moves && c->bytes < 0 ? b->moving : 0;
}

void steps_level(struct steps *s, const struct model_level_change *l)
{
	struct book *b = book_of(s, l->process);
	if (!b)
		return;
	if (l->ns > b->overdue_ns)
		keep_step(b);
	if (b->list.source == LOOP_NONE)
		by_time(b, l->ns);
	b->now.allocations += l->allocations;
	b->list.thinned = true;
	if (l->kind != MODEL_KINDS)
		level_track(b, l);
}

/* The step that a mark of this name begins. */
static uint64_t step_number_in(const char *name, uint64_t otherwise)
{
	const char *end = name + strlen(name);
	while (end > name && !isdigit((unsigned char)end[-1]))
		end--;
	const char *digits = end;
	while (digits > name && isdigit((unsigned char)digits[-1]))
		digits--;
	return digits < end ? strtoull(digits, NULL, 10) : otherwise;
}

static bool begins_step(const struct book *b, const struct process *p, const struct mt_event *slot,
			const struct mt_ext_device *ext)
{
	if (b->list.source == LOOP_MARKS)
		return ext->class == MT_MARK_STEP;
	bool mine = b->list.source == LOOP_MSTX ? ext->source == MT_MARK_MSTX
						: b->list.source == LOOP_NVTX && ext->source != MT_MARK_MSTX;
	return mine && ext->class == MT_MARK_BEGIN && loop_finder_is_step_name(process_mark(p, (uint32_t)slot->size));
}

/* Of any pool: who asks knows on which device. A request of the site that steps begin with begins the next one, which
 * nothing else says. However long the step takes: the machine may be held up, and a step that is over has made as many
 * blocks as others. But behind a block that is none of the loop's the program has left it. */
static void note_failure(struct book *b, const struct mt_event *slot, uint64_t ns)
{
	bool next = b->started && b->list.source == LOOP_SITES && slot->node2 && slot->node2 == b->loop->node2;
	if (b->left)
		return;
	b->refused_ns = b->open && b->now.allocations <= (uint64_t)(STEPS_OVERDUE * (double)median(&b->work)) ? ns : 0;
	b->refused_next = next;
	for (size_t i = 0; i < b->list.track_count; i++) {
		const struct step_track *t = &b->tracks[i];
		if (t->shapes && !t->leveled)
			b->failures[b->failure_count++ % FAILURES] = (struct step_failure){
				ns,
				{ step_shapes_rise(t->shapes, t->live, slot->addr, next),
				  step_shapes_rise_unscaled(t->shapes, t->live, slot->addr, next) },
				t->device
			};
	}
}

void steps_event(struct steps *s, const struct process *p, const struct mt_event *slot, uint32_t thread)
{
	struct mt_ext_device ext;
	(void)thread;
	if (slot->kind != MT_MARK && slot->kind != MT_DEVICE_FAIL)
		return;
	struct book *b = book_of(s, p);
	memcpy(&ext, slot + 1, sizeof(ext));
	if (b && slot->kind == MT_DEVICE_FAIL && (ext.class == MT_CLASS_POOL || ext.class == MT_CLASS_WORKSPACE))
		note_failure(b, slot, process_ns(p, slot->ticks));
	if (!b || slot->kind != MT_MARK || !begins_step(b, p, slot, &ext))
		return;
	uint64_t number = ext.class == MT_MARK_STEP ? slot->addr
						    : step_number_in(process_mark(p, (uint32_t)slot->size), NO_NUMBER);
	begin_step(b, number, process_ns(p, slot->ticks));
}

/* ---- behind the pass ----------------------------------------------------------------------------------- */

static bool died(const struct process *p)
{
	return p->state == PROCESS_RUNNING || p->exit_kind != MT_EXIT_CODE || p->exit_code != 0;
}

/* The step that was open when the trace ended. One that an optimizer should have ended is none if the program went on
 * to other things and exited. */
static void finish_book(struct book *b)
{
	const bool overdue = !b->recording;
	if (!b->open)
		return;
	if (b->refused_ns)
		b->list.cut = (struct step){ .number = b->now.number + b->refused_next,
					     .begin_ns = b->now.begin_ns,
					     .end_ns = b->refused_ns };
	bool unfinished = b->list.source == LOOP_OPTIMIZER && !b->step_ended;
	if (unfinished && (!died(b->list.process) || overdue))
		return;
	b->now.partial = unfinished || (b->list.source != LOOP_NONE && died(b->list.process) && !overdue);
	if (b->list.source != LOOP_NONE || !b->now.end_ns)
		b->now.end_ns = overdue ? b->kept_end : b->list.process->end_ns;
	b->now.end_ns = b->now.end_ns < b->now.begin_ns ? b->now.begin_ns : b->now.end_ns;
	put_step(b, overdue);
	b->open = false;
}

/* Entries that are over by then. */
static size_t entries_until(const struct step_list *steps, uint64_t ns)
{
	size_t n = steps->count;
	while (n > 1 && steps->steps[n - 1].end_ns > ns)
		n--;
	return n;
}

/* Of all its memory as much is freed as by who cleans up, and of no kind has it more than before. */
static bool cleans_behind(const struct step_list *steps, size_t entries)
{
	uint64_t had = 0, half = 0;
	for (size_t k = 0; k < steps->track_count; k++) {
		const struct step_track *t = &steps->tracks[k];
		for (size_t i = entries; i < steps->count; i++)
			if (step_low(t, i) > step_high(t, entries - 1))
				return false;
		had += step_low(t, entries - 1);
		half += step_low(t, (entries + steps->count - 1) / 2);
	}
	return had && (double)less(had, half) >= CLEANS * (double)had;
}

/* Windows of time in which a program only frees what it had say nothing of how that grew. */
static void leave_out_cleaning(struct book *b, const struct cohorts *c)
{
	const struct process *p = b->list.process;
	const uint64_t since = cohorts_end_ns(c, p->id);
	const size_t entries = entries_until(&b->list, since);
	if ((double)less(p->end_ns, since) < LONG_REST * (double)less(p->end_ns, p->start_ns) || !entries ||
	    entries == b->list.count || !cleans_behind(&b->list, entries))
		return;
	b->list.count = entries;
	b->index = lower(b->index, less(since, p->start_ns) >> WINDOW_SHIFT);
}

void steps_finish(struct steps *s, const struct cohorts *c)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->books[i])
			finish_book(s->books[i]);
		if (s->books[i] && s->books[i]->list.source == LOOP_NONE)
			leave_out_cleaning(s->books[i], c);
	}
}

void steps_doubt(struct steps *s, const struct model *m)
{
	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; s->books[i] && k < s->books[i]->list.track_count; k++) {
			struct step_track *t = &s->books[i]->list.tracks[k];
			t->doubt = model_doubt(m, (unsigned)i, t->kind);
		}
}

struct steps_now steps_now(const struct steps *s, unsigned process)
{
	const struct book *b = process < s->count ? s->books[process] : NULL;
	return b && b->started && b->list.source != LOOP_NONE ? (struct steps_now){ b->now.begin_ns, b->before_ns }
							      : (struct steps_now){ 0, 0 };
}

const struct step_list *steps_of(const struct steps *s, unsigned process)
{
	return process < s->count && s->books[process] ? &s->books[process]->list : NULL;
}

struct steps_rise steps_rise(const struct steps *s, unsigned process, uint32_t device, uint64_t ns)
{
	const struct book *b = process < s->count ? s->books[process] : NULL;
	for (unsigned i = 0; b && i < FAILURES && i < b->failure_count; i++)
		if (b->failures[i].ns == ns && b->failures[i].device == device)
			return b->failures[i].rise;
	return (struct steps_rise){ STEP_SHAPE_UNKNOWN, STEP_SHAPE_UNKNOWN };
}

double step_x(const struct step_list *steps, size_t entry)
{
	const struct step *s = &steps->steps[entry];
	if (steps->source == LOOP_NONE)
		return (double)(s->end_ns - steps->process->start_ns) / 1e9;
	return (double)s->number + (double)(s->count - 1) / 2;
}

bool step_number_at(const struct step_list *steps, uint64_t ns, uint64_t *number)
{
	for (size_t i = steps->source != LOOP_NONE ? steps->count : 0; i-- > 0;) {
		const struct step *s = &steps->steps[i];
		if (s->begin_ns > ns || (s->end_ns < ns && i + 1 < steps->count))
			continue;
		uint64_t span = s->end_ns > s->begin_ns ? s->end_ns - s->begin_ns : 1, into = ns - s->begin_ns;
		uint64_t more = into < span ? (uint64_t)((double)into / (double)span * s->count) : s->count - 1u;
		*number = steps->cut.end_ns == ns ? steps->cut.number : s->number + more;
		return true;
	}
	return false;
}

size_t step_find(const struct step_list *steps, uint64_t number)
{
	for (size_t i = 0; i < steps->count; i++)
		if (number >= steps->steps[i].number && number < steps->steps[i].number + steps->steps[i].count)
			return i;
	return steps->count;
}
