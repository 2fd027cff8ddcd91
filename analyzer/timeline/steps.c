#include "analyzer/timeline/steps.h"

#include "analyzer/model/lifetimes.h"
#include "analyzer/timeline/step_shape.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

#include <ctype.h>
#include <math.h>

#define WINDOW_SHIFT 24 /* of the shortest windows of time: 17 ms */
#define LENGTHS      32 /* of latest steps, whose median says what is usual */
#define OVERDUE      1.5
#define MORE_WORK    0.05  /* of the usual number of allocations ... */
#define FAR          8.0   /* ... and times the median deviation from it: not a plain step */
#define SETTLED      3     /* steps, after which what is old is what a loop begins with */
#define LONG_REST    0.1   /* of the time: shorter ends growth leaves out itself */
#define LEAST_BYTES  4096u /* sites that never hold as much at a low point get no history */

enum { FAILURES = 64 }; /* of a process's pools; of more the latest */

enum site_state { SITE_FRESH = 0, SITE_OPEN, SITE_CLOSED };

struct low {
	uint64_t bytes, blocks;
};

/* The books of one site. `bucket` is that of `low` while it is open; while it is closed the last that is in `history`.
 * */
struct site_book {
	uint64_t live;
	struct low low;
	struct low *history; /* STEPS_BUCKETS of them; NULL = all was below LEAST_BYTES */
	struct step_ages ages;
	struct lifetimes *lives; /* by bucket, of what holds device memory and has a history */
	uint64_t last_low;       /* since `last_step` began, the last one in which it changed */
	uint32_t blocks, bucket, last_step;
	uint8_t state;
};

struct book {
	struct step_list list;
	const struct loop *loop;
	struct step_track *tracks; /* list.tracks, with room */
	size_t track_room, step_room;
	struct site_book *sites; /* of those that hold something or have a history; 0 stands for all others */
	size_t site_count, site_room;
	uint32_t *numbers; /* by the site's number: in `sites` */
	size_t number_count, number_room;
	uint32_t unused;            /* the first in `sites` that is free; its last_step is the next one */
	unsigned shift, site_shift; /* entries and buckets are 2^shift steps */
	uint64_t index;             /* of the step that is open, or window */
	bool started, open, recording, beaten;
	bool left; /* the pool's latest block was made by a site outside of the loop */
	/* the latest block of the loop's thread that has a Python stack was made by a site with ROLE_BEAT */
	bool entered;
	/* bytes of the block that realloc is at: freed, and there again with the next change */
	uint64_t moving;
	uint32_t moving_site;
	struct step now;
	uint64_t before_ns; /* when the step before `now` began */
	uint64_t overdue_ns, kept_end;
	uint64_t lengths[LENGTHS], work[LENGTHS]; /* and their numbers of allocations */
	unsigned length_count;
	struct step_failure {
		uint64_t ns, rise;
		uint32_t device;
	} failures[FAILURES];
	unsigned failure_count;
};

struct steps {
	struct loop_finder *finder;
	struct book **books; /* by process */
	size_t count, room;
};

struct steps *steps_new(struct loop_finder *r)
{
	struct steps *s = calloc(1, sizeof(*s));
	if (s)
		s->finder = r;
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
	for (size_t i = 0; i < b->site_count; i++) {
		free(b->sites[i].history);
		lifetimes_free(b->sites[i].lives);
	}
	free(b->tracks);
	free(b->sites);
	free(b->numbers);
	free(b->list.steps);
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

/* ---- ages ---------------------------------------------------------------------------------------------- */

static uint64_t old_bytes(const struct step_ages *a, uint32_t index, uint64_t live)
{
	uint64_t young = index == a->step ? a->young[0] + a->young[1] : index == a->step + 1 ? a->young[0] : 0;
	return less(live, young);
}

static void change_ages(struct book *b, struct step_ages *a, const struct model_change *c, uint64_t live)
{
	uint32_t index = (uint32_t)b->index;
	if (!b->started || b->list.source == LOOP_NONE)
		return;
	if (a->step != index || !a->begun) {
		a->young[1] = index == a->step + 1 ? a->young[0] : 0;
		a->young[0] = 0;
		a->since = a->begun ? a->since : index;
		a->step = index;
		a->begun = true;
	}
	if (c->bytes > 0)
		a->young[0] += c->moves ? less((uint64_t)c->bytes, b->moving) : (uint64_t)c->bytes;
	else if (c->made_ns >= b->now.begin_ns)
		a->young[0] = less(a->young[0], (uint64_t)-c->bytes);
	else if (c->made_ns >= b->before_ns)
		a->young[1] = less(a->young[1], (uint64_t)-c->bytes);
	uint64_t old = old_bytes(a, index, live);
	if (!a->settled && index >= a->since + SETTLED) {
		a->settled = true;
		a->first = old;
	}
	a->most = b->recording && old > a->most ? old : a->most;
}

static double kept_of(const struct book *b, const struct step_ages *a, uint64_t live)
{
	uint64_t old = old_bytes(a, (uint32_t)b->index, live), most = old > a->most ? old : a->most;
	return b->list.source == LOOP_NONE ? INFINITY : a->settled ? (double)less(most, a->first) : 0;
}

/* ---- sites --------------------------------------------------------------------------------------------- */

static void set_low(struct site_book *s, uint32_t bucket, struct low low)
{
	if (!s->history) {
		if (low.bytes < LEAST_BYTES)
			return;
		s->history = calloc(STEPS_BUCKETS, sizeof(*s->history));
	}
	if (s->history && bucket < STEPS_BUCKETS)
		s->history[bucket] = low;
}

/* What is live was so in all of [from, to). */
static void set_lows(struct site_book *s, uint32_t from, uint32_t to)
{
	for (uint32_t b = from; b < to; b++)
		set_low(s, b, (struct low){ s->live, s->blocks });
}

static struct low low_of(struct low low, uint64_t bytes, uint64_t blocks)
{
	return bytes < low.bytes ? (struct low){ bytes, blocks } : low;
}

/* Ends what is known of the bucket that is open, and of those since then. */
static void close_site(struct site_book *s, uint32_t now)
{
	set_low(s, s->bucket, low_of(s->low, s->live, s->blocks));
	set_lows(s, s->bucket + 1, now + 1);
	s->bucket = now;
	s->state = SITE_CLOSED;
}

static void open_site(struct site_book *s, uint32_t now)
{
	if (s->state == SITE_FRESH)
		set_lows(s, 0, now);
	else if (now > s->bucket)
		set_lows(s, s->bucket + 1, now);
	s->low = (struct low){ s->live, s->blocks };
	if (s->state == SITE_CLOSED && now == s->bucket && s->history)
		s->low = low_of(s->history[now], s->live, s->blocks);
	s->bucket = now;
	s->state = SITE_OPEN;
}

static uint32_t site_bucket(const struct book *b)
{
	return (uint32_t)(b->index >> b->site_shift);
}

static struct site_book *site_book_of(struct book *b, uint32_t site)
{
	if (site >= b->number_count && vec_extend(b->numbers, b->number_count, b->number_room, site + 1ul))
		return NULL;
	uint32_t *number = &b->numbers[site];
	if (!*number && b->unused) {
		*number = b->unused;
		b->unused = b->sites[*number].last_step;
		b->sites[*number] = (struct site_book){ 0 };
	} else if (!*number) {
		size_t count = b->site_count ? b->site_count : 1;
		if (vec_extend(b->sites, b->site_count, b->site_room, count + 1))
			return NULL;
		*number = (uint32_t)count;
	}
	return &b->sites[*number];
}

/* Nearly all sites of a program hold something for a moment, once. */
static void drop_empty(struct book *b, uint32_t site, struct site_book *s)
{
	if (s->live || s->blocks || s->history || b->moving || (s->last_low && s->last_step == (uint32_t)b->index + 1))
		return;
	*s = (struct site_book){ .last_step = b->unused };
	b->unused = b->numbers[site];
	b->numbers[site] = 0;
}

static const struct site_book *known_site(const struct book *b, uint32_t site)
{
	static const struct site_book none;
	uint32_t number = site < b->number_count ? b->numbers[site] : 0;
	return number ? &b->sites[number] : &none;
}

/* The bucket in which a block was made: of the step that is open, or by the list of those before. UINT32_MAX: before
 * the first. */
static uint32_t bucket_of(const struct book *b, uint64_t ns)
{
	size_t low = 0, high = b->list.count;
	if (ns >= b->now.begin_ns)
		return site_bucket(b);
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (b->list.steps[middle].begin_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? (uint32_t)((low - 1) << b->shift >> b->site_shift) : UINT32_MAX;
}

/* Behind the site's first bucket: nearly all sites hold nothing then, and have no history. */
static void change_lives(struct book *b, struct site_book *s, const struct model_change *c)
{
	if (!b->recording || !s->history || c->device == MODEL_NO_DEVICE || c->kind == MODEL_PINNED)
		return;
	if (!s->lives && !(s->lives = lifetimes_new()))
		return;
	const uint32_t now = site_bucket(b), made = c->bytes < 0 ? bucket_of(b, c->made_ns) : now;
	if (c->bytes > 0)
		lifetimes_add(s->lives, now, (uint64_t)c->bytes);
	else if (made <= now)
		lifetimes_remove(s->lives, now, made, (uint64_t)-c->bytes);
}

static void change_site(struct book *b, const struct model_change *c)
{
	struct site_book *s = site_book_of(b, c->site);
	uint32_t now = site_bucket(b);
	if (!s)
		return;
	const uint64_t there = c->bytes > 0 && c->site == b->moving_site ? b->moving : 0;
	s->live += there; /* it never left */
	if (b->started && !b->recording && s->state == SITE_FRESH)
		open_site(s, now);
	if (b->recording && (s->state != SITE_OPEN || s->bucket != now)) {
		if (s->state == SITE_OPEN)
			close_site(s, now - 1);
		open_site(s, now);
		if (s->lives)
			lifetimes_begin_stretch(s->lives, now);
	} else if (!b->recording && s->state == SITE_OPEN) {
		close_site(s, now);
	} else if (!b->recording && s->state == SITE_CLOSED && now > s->bucket) {
		set_lows(s, s->bucket + 1, now + 1); /* it may never change within a step */
		s->bucket = now;
	}
	if (s->last_step != (uint32_t)b->index + 1) {
		s->last_step = (uint32_t)b->index + 1;
		s->last_low = s->live;
	}
	s->live += (uint64_t)c->bytes - there;
	s->blocks += (uint32_t)c->blocks;
	bool moving = c->moves && c->bytes < 0;
	if (b->recording && s->live < s->last_low && !moving)
		s->last_low = s->live;
	if (s->state == SITE_OPEN && s->live < s->low.bytes && !moving)
		s->low = (struct low){ s->live, s->blocks };
	change_ages(b, &s->ages, c, s->live);
	change_lives(b, s, c);
	drop_empty(b, c->site, s);
}

/* Buckets are twice as long from now on. */
static void halve_site(struct site_book *s)
{
	uint32_t known = s->state == SITE_FRESH ? 0 : s->bucket + (s->state == SITE_CLOSED);
	for (uint32_t i = 0; s->history && i < known; i++)
		s->history[i / 2] =
			i % 2 ? low_of(s->history[i / 2], s->history[i].bytes, s->history[i].blocks) : s->history[i];
	if (s->history && s->state == SITE_OPEN && s->bucket % 2)
		s->low = low_of(s->low, s->history[s->bucket / 2].bytes, s->history[s->bucket / 2].blocks);
	for (uint32_t i = (known + 1) / 2; s->history && i < known; i++)
		s->history[i] = (struct low){ 0, 0 };
	s->bucket /= 2;
	if (s->lives)
		lifetimes_halve(s->lives);
}

static void make_site_room(struct book *b)
{
	for (; site_bucket(b) >= STEPS_BUCKETS; b->site_shift++)
		for (size_t i = 0; i < b->site_count; i++)
			halve_site(&b->sites[i]);
}

/* ---- tracks -------------------------------------------------------------------------------------------- */

static struct step_track *track_of(struct book *b, uint32_t kind, uint32_t device)
{
	for (size_t i = 0; i < b->list.track_count; i++)
		if (b->tracks[i].kind == kind && b->tracks[i].device == device)
			return &b->tracks[i];
	if (vec_reserve(b->tracks, b->track_room, b->list.track_count + 1))
		return NULL;
	b->list.tracks = b->tracks;
	struct step_track *t = &b->tracks[b->list.track_count++];
	*t = (struct step_track){ .kind = kind, .device = device, .from = b->list.count };
	if (kind == MODEL_POOL && b->list.source != LOOP_NONE)
		t->shapes = step_shapes_new();
	return t;
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

static void change_track(struct book *b, const struct model_change *c)
{
	struct step_track *t = track_of(b, c->kind, c->device);
	if (!t)
		return;
	t->live += (uint64_t)c->bytes;
	change_ages(b, &t->ages, c, t->live);
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

static int by_length(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* The median of the latest steps. */
static uint64_t usual(const struct book *b, const uint64_t *values)
{
	uint64_t sorted[LENGTHS];
	size_t n = b->length_count < LENGTHS ? b->length_count : LENGTHS;
	memcpy(sorted, values, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_length);
	return n ? sorted[n / 2] : 0;
}

/* Far more allocations than in other steps, by how much those differ. */
static void look_at_work(struct book *b)
{
	uint64_t apart[LENGTHS], work = usual(b, b->work);
	for (unsigned i = 0; i < LENGTHS; i++)
		apart[i] = b->work[i] > work ? b->work[i] - work : work - b->work[i];
	double more = (double)b->now.allocations - (double)work;
	if (b->length_count < 3 || more <= MORE_WORK * (double)work || more <= FAR * (double)usual(b, apart))
		return;
	b->now.rare = 1;
	b->list.rare_first = b->list.rare++ ? b->list.rare_first : b->now.number;
	b->list.rare_last = b->now.number;
}

static void end_step(struct book *b, uint64_t ns)
{
	b->now.end_ns = ns;
	look_at_work(b);
	b->work[b->length_count % LENGTHS] = b->now.allocations;
	b->lengths[b->length_count++ % LENGTHS] = ns - b->now.begin_ns;
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
	make_site_room(b);
	b->started = b->open = b->recording = true;
	b->beaten = false;
	b->left = false;
	b->before_ns = b->now.begin_ns;
	b->now = (struct step){ .number = number == NO_NUMBER ? b->index + 1 : number, .begin_ns = ns, .count = 1 };
	b->overdue_ns = b->length_count >= 2 ? ns + (uint64_t)(OVERDUE * (double)usual(b, b->lengths)) : UINT64_MAX;
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

static void by_roles(struct book *b, const struct model_change *c)
{
	uint8_t role = c->site < b->loop->role_count ? b->loop->roles[c->site] : 0;
	const bool there = b->entered;
	if (c->kind == MODEL_POOL && c->bytes > 0)
		b->left = !role;
	if (c->node2 && c->thread == b->loop->thread && c->bytes > 0 && c->blocks > 0 && c->site != UINT32_MAX)
		b->entered = role & ROLE_BEAT;
	if (!role || c->thread != b->loop->thread || c->bytes <= 0)
		return;
	if (b->list.source == LOOP_SITES) {
		if (role & ROLE_BEAT && !(b->loop->enters && there))
			begin_step(b, NO_NUMBER, c->ns);
		return;
	}
	if (role & ROLE_BEAT)
		b->beaten = b->started;
	else if (!b->started || b->beaten)
		begin_step(b, NO_NUMBER, c->ns);
}

/* Windows of time, as many as have passed. */
static void by_time(struct book *b, uint64_t ns)
{
	uint64_t since = ns > b->list.process->start_ns ? ns - b->list.process->start_ns : 0;
	uint64_t window = since >> WINDOW_SHIFT, start = b->list.process->start_ns;
	if (b->started && window <= b->index)
		return;
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
	make_site_room(b);
}

/* Of a block that is only moved by how much it changes. */
static void count_traffic(struct book *b, const struct model_change *c)
{
	uint64_t bytes = (uint64_t)(c->bytes > 0 ? c->bytes : -c->bytes);
	if (c->bytes > 0)
		b->list.made += less(bytes, c->moves ? b->moving : 0);
	if (c->bytes < 0 && !c->moves)
		b->list.freed += bytes;
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
	if (c->moves && c->bytes < 0) {
		b->moving = (uint64_t)-c->bytes;
		b->moving_site = c->site;
	}
	if (c->kind == MODEL_HEAP && b->recording)
		count_traffic(b, c);
	if (c->site != UINT32_MAX)
		change_site(b, c);
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
	for (size_t i = 0; i < b->list.track_count; i++) {
		const struct step_track *t = &b->tracks[i];
		if (t->shapes && !t->leveled)
			b->failures[b->failure_count++ % FAILURES] =
				(struct step_failure){ ns, step_shapes_rise(t->shapes, t->live, slot->addr, next),
						       t->device };
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
	bool overdue = !b->recording;
	if (!b->open)
		return;
	bool unfinished = b->list.source == LOOP_OPTIMIZER && !b->beaten;
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
static size_t entries_until(const struct step_list *p, uint64_t ns)
{
	size_t n = p->count;
	while (n > 1 && p->steps[n - 1].end_ns > ns)
		n--;
	return n;
}

/* Of all its memory as much is freed as by who cleans up, and of no kind has it more than before. */
static bool cleans_behind(const struct step_list *p, size_t entries)
{
	uint64_t had = 0, half = 0;
	for (size_t k = 0; k < p->track_count; k++) {
		const struct step_track *t = &p->tracks[k];
		for (size_t i = entries; i < p->count; i++)
			if (step_low(t, i) > step_high(t, entries - 1))
				return false;
		had += step_low(t, entries - 1);
		half += step_low(t, (entries + p->count - 1) / 2);
	}
	return had && (double)less(had, half) >= WORK_CLEANS * (double)had;
}

/* Windows of time in which a program only frees what it had say nothing of how that grew. */
static void leave_out_cleaning(struct book *b, const struct work *w)
{
	const struct process *p = b->list.process;
	const uint64_t since = work_rests_since(w, p->id, p->end_ns);
	const size_t entries = entries_until(&b->list, since);
	if ((double)less(p->end_ns, since) < LONG_REST * (double)less(p->end_ns, p->start_ns) || !entries ||
	    entries == b->list.count || !cleans_behind(&b->list, entries))
		return;
	b->list.count = entries;
	b->index = lower(b->index, less(since, p->start_ns) >> WINDOW_SHIFT);
}

void steps_finish(struct steps *s, const struct work *w)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->books[i])
			finish_book(s->books[i]);
		if (s->books[i] && s->books[i]->list.source == LOOP_NONE)
			leave_out_cleaning(s->books[i], w);
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

const struct step_list *steps_of(const struct steps *s, unsigned process)
{
	return process < s->count && s->books[process] ? &s->books[process]->list : NULL;
}

uint64_t steps_rise(const struct steps *s, unsigned process, uint32_t device, uint64_t ns)
{
	const struct book *b = process < s->count ? s->books[process] : NULL;
	for (unsigned i = 0; b && i < FAILURES && i < b->failure_count; i++)
		if (b->failures[i].ns == ns && b->failures[i].device == device)
			return b->failures[i].rise;
	return STEP_SHAPE_UNKNOWN;
}

double step_x(const struct step_list *p, size_t entry)
{
	const struct step *s = &p->steps[entry];
	if (p->source == LOOP_NONE)
		return (double)(s->end_ns - p->process->start_ns) / 1e9;
	return (double)s->number + (double)(s->count - 1) / 2;
}

size_t step_find(const struct step_list *p, uint64_t number)
{
	for (size_t i = 0; i < p->count; i++)
		if (number >= p->steps[i].number && number < p->steps[i].number + p->steps[i].count)
			return i;
	return p->count;
}

/* Low point in one bucket. */
static struct low site_low(const struct site_book *s, uint32_t bucket)
{
	struct low now = { s->live, s->blocks };
	if (s->state == SITE_FRESH || bucket > s->bucket)
		return now;
	if (bucket == s->bucket && s->state == SITE_OPEN)
		return low_of(s->low, s->live, s->blocks);
	return s->history ? s->history[bucket] : (struct low){ 0, 0 };
}

static double bucket_x(const struct book *b, uint32_t bucket)
{
	double middle = ((double)bucket + 0.5) * (double)(1ull << b->site_shift);
	if (b->list.source == LOOP_NONE)
		return middle * (double)(1ull << WINDOW_SHIFT) / 1e9;
	return middle - 0.5 + (double)b->list.steps[0].number;
}

size_t steps_site(const struct steps *s, unsigned process, uint32_t site, double weight, double *x, double *bytes,
		  double *blocks)
{
	const struct book *b = process < s->count ? s->books[process] : NULL;
	if (!b || !b->started || !b->list.count)
		return 0;
	const struct site_book *k = known_site(b, site);
	const uint32_t count = site_bucket(b) + 1;
	for (uint32_t i = 0; x && i < count && i < STEPS_BUCKETS; i++)
		x[i] = bucket_x(b, i);
	if (k->state == SITE_FRESH && !k->live && !k->blocks) /* as most are */
		return count;
	uint32_t i = k->history || k->state == SITE_FRESH ? 0 : k->bucket;
	for (; k->state != SITE_FRESH && i <= k->bucket && i < STEPS_BUCKETS; i++) {
		const struct low low = site_low(k, i);
		bytes[i] += weight * (double)low.bytes;
		blocks[i] += weight * (double)low.blocks;
	}
	for (; i < count && i < STEPS_BUCKETS; i++) {
		bytes[i] += weight * (double)k->live;
		blocks[i] += weight * (double)k->blocks;
	}
	return count;
}

/* Now, or when the last bucket began: before the program freed what it has. */
static uint64_t held(const struct book *b, uint32_t site)
{
	const struct site_book *k = known_site(b, site);
	return k->history && k->bucket ? higher(k->live, k->history[k->bucket - 1].bytes) : k->live;
}

size_t steps_largest(const struct steps *s, unsigned process, uint32_t *sites, size_t most)
{
	const struct book *b = process < s->count ? s->books[process] : NULL;
	size_t count = 0;
	for (uint32_t i = 0; b && i < b->number_count; i++) {
		uint64_t live = held(b, i);
		size_t at = count;
		while (at > 0 && held(b, sites[at - 1]) < live)
			at--;
		if (!live || at == most)
			continue;
		count += count < most;
		memmove(sites + at + 1, sites + at, (count - 1 - at) * sizeof(*sites));
		sites[at] = i;
	}
	return count;
}

double steps_site_kept(const struct steps *s, unsigned process, uint32_t site)
{
	const struct book *b = process < s->count ? s->books[process] : NULL;
	const struct site_book *k = b ? known_site(b, site) : NULL;
	return k ? kept_of(b, &k->ages, k->live) : INFINITY;
}

struct lifetimes_found steps_site_lives(const struct steps *s, unsigned process, uint32_t site, double since)
{
	const struct book *b = process < s->count ? s->books[process] : NULL;
	size_t entry = 0;
	while (b && entry + 1 < b->list.count && step_x(&b->list, entry) < since)
		entry++;
	return lifetimes_since(b ? known_site(b, site)->lives : NULL,
			       b ? (uint32_t)(entry << b->shift >> b->site_shift) : 0);
}

double steps_track_kept(const struct step_list *p, const struct step_track *t)
{
	return kept_of((const struct book *)p, &t->ages, t->live); /* it is the first member */
}

/* What happens behind an overdue last step isn't in it. */
double steps_site_last(const struct steps *s, unsigned process, uint32_t site)
{
	const struct book *b = process < s->count ? s->books[process] : NULL;
	if (!b)
		return 0;
	const struct site_book *k = known_site(b, site);
	return (double)(k->last_step == (uint32_t)b->index + 1 ? k->last_low : k->live);
}
