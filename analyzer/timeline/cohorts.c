#include "analyzer/timeline/cohorts.h"

#include "analyzer/util/minmax.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <math.h>

#define LAST_PART 32 /* of the work, in which a track's end is looked for */
#define OBJECT    64 /* bytes that an object in an arena of Python's has in the mean, about */
#define COPIES    8  /* to each block whose place a smaller one took: of fewer none are containers' */
#define GROWS_TO  4  /* a full container grows to so many times its size at most: more was a size that is known */
#define LATE      8  /* one that would be full by now, with 1/8 of that time to spare, has stopped growing ... */
#define LATE_NS   4  /* ... or, by the clock, one that would have been full in a quarter of the time that has passed */

/* Levels of a track by their size: 16 to each doubling, from 64 KiB on. */
enum { COHORTS_PARTS = 16, FIRST_OCTAVE = 16, OCTAVES = 40, COHORTS_ALIVE = 0xff };

/* When a level was reached last, and how much had been made by then. */
struct reached {
	uint64_t ns, bytes;
	float blocks;
};

/* Bytes and blocks that were made in stretch `made` and are alive, or were freed in stretch `freed`. */
struct cell {
	uint64_t bytes;
	uint32_t blocks;
	uint8_t made, freed;
};

struct cells {
	struct cell *list; /* sorted */
	uint32_t count, room;
};

/* What one site, or all of a track, has. */
struct history {
	struct cells alive, dead;
	uint64_t passing;
	uint64_t now_bytes; /* made in stretch `now`, and alive */
	uint32_t now_blocks;
	uint8_t now;
	/* of the container that moved last: made, moved, and stretches until its room is filled as it was before */
	uint8_t room_since, room_from, room_lasts;
	uint64_t room;                   /* bytes of it; 0 = none moved */
	uint64_t last_addr, last_bytes;  /* of the block that was made by the latest change; 0 = that freed one */
	uint64_t made_addr, before_addr; /* of the blocks that were made last, and before that */
	uint32_t larger,
		smaller; /* so often a block was freed right behind one that could be it, grown, or could not */
};

struct clock {
	uint32_t device;
	uint64_t all_bytes, all_blocks; /* of the first pass, but for what was left out */
	struct summed_work summed;      /* of the first pass ... */
	uint64_t summed_ns;             /* ... which was told it until then */
	double of_byte, of_block;       /* parts of all work */
	uint64_t bytes, blocks;
	uint64_t step_ns; /* when the step began that was running at the latest change */
	unsigned now;
	uint64_t begin_ns[COHORTS];
	struct cohort_sum made[COHORTS];
	double objects_made[COHORTS], objects_kept[COHORTS]; /* in arenas */
};

/* When a level was there: since something was made, until something was freed. */
enum way { SINCE, UNTIL, WAYS };

struct track {
	uint32_t kind, clock;
	uint64_t live, end_ns;
	struct reached *octaves[WAYS][OCTAVES]; /* COHORTS_PARTS of them each; of the first pass */
	struct history all;
};

struct site {
	struct history history;
	uint32_t track;
	uint32_t next_unused;
};

struct ledger {
	uint64_t last_ns; /* of the changes of the first pass */
	bool runs, begun; /* its process had not ended when the first pass saw it last; the second pass has begun */
	uint64_t picked_bytes; /* that a picked block of the heap stands for; 0 = all were recorded */
	struct clock *clocks;
	size_t clock_count, clock_room;
	struct track *tracks;
	size_t track_count, track_room;
	struct site *sites; /* of those that hold something or have cells; 0 stands for all others */
	size_t site_count, site_room;
	uint32_t *numbers; /* by the site's number: in `sites` */
	size_t number_count, number_room;
	uint32_t unused;
	/* bytes of the block that realloc is at, by cohort: freed, and there again with the next change */
	struct cell *moving;
	size_t moving_count, moving_room;
	uint64_t moving_bytes, moving_ns;
	uint64_t moved_bytes; /* that the latest change freed only to move them */
};

struct cohorts {
	struct ledger **list; /* by process */
	size_t count, room;
};

/* ---- making -------------------------------------------------------------------------------------------- */

struct cohorts *cohorts_new(void)
{
	return calloc(1, sizeof(struct cohorts));
}

static void free_history(struct history *h)
{
	free(h->alive.list);
	free(h->dead.list);
}

static void free_octaves(struct track *t)
{
	for (unsigned i = 0; i < OCTAVES; i++) {
		free(t->octaves[SINCE][i]);
		free(t->octaves[UNTIL][i]);
	}
	memset(t->octaves, 0, sizeof(t->octaves));
}

static void free_ledger(struct ledger *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->track_count; i++) {
		free_octaves(&l->tracks[i]);
		free_history(&l->tracks[i].all);
	}
	for (size_t i = 0; i < l->site_count; i++)
		free_history(&l->sites[i].history);
	for (size_t i = 0; i < l->clock_count; i++)
		summed_work_fini(&l->clocks[i].summed);
	free(l->clocks);
	free(l->tracks);
	free(l->sites);
	free(l->numbers);
	free(l->moving);
	free(l);
}

void cohorts_free(struct cohorts *c)
{
	for (size_t i = 0; c && i < c->count; i++)
		free_ledger(c->list[i]);
	if (c)
		free(c->list);
	free(c);
}

static struct ledger *known_ledger(const struct cohorts *c, uint32_t process)
{
	return process < c->count ? c->list[process] : NULL;
}

static struct ledger *new_ledger(struct cohorts *c, uint32_t process)
{
	if (process >= c->count && vec_extend(c->list, c->count, c->room, process + 1ul))
		return NULL;
	return c->list[process] = calloc(1, sizeof(*c->list[process]));
}

static inline struct ledger *ledger_of(struct cohorts *c, uint32_t process)
{
	struct ledger *known = known_ledger(c, process);
	return known ? known : new_ledger(c, process);
}

static struct clock *clock_of(struct ledger *l, uint32_t device)
{
	for (size_t i = 0; i < l->clock_count; i++)
		if (l->clocks[i].device == device)
			return &l->clocks[i];
	if (vec_reserve(l->clocks, l->clock_room, l->clock_count + 1))
		return NULL;
	l->clocks[l->clock_count] = (struct clock){ .device = device, .of_byte = 0.5, .of_block = 0.5 };
	return &l->clocks[l->clock_count++];
}

static const struct track *known_track(const struct ledger *l, uint32_t kind, uint32_t device)
{
	for (size_t i = 0; l && i < l->track_count; i++)
		if (l->tracks[i].kind == kind && l->clocks[l->tracks[i].clock].device == device)
			return &l->tracks[i];
	return NULL;
}

static inline struct track *track_of(struct ledger *l, uint32_t kind, uint32_t device)
{
	const struct track *known = known_track(l, kind, device);
	struct clock *clock = known ? NULL : clock_of(l, device);
	if (known)
		return &l->tracks[known - l->tracks];
	if (!clock || vec_reserve(l->tracks, l->track_room, l->track_count + 1))
		return NULL;
	l->tracks[l->track_count] =
		(struct track){ .kind = kind, .clock = (uint32_t)(clock - l->clocks), .end_ns = UINT64_MAX };
	return &l->tracks[l->track_count++];
}

/* Made if it is new; NULL: no memory. Of each event of a trace. */
static inline struct track *find_track(struct cohorts *c, uint32_t process, uint32_t kind, uint32_t device,
				       struct ledger **ledger)
{
	*ledger = ledger_of(c, process);
	return *ledger ? track_of(*ledger, kind, device) : NULL;
}

/* ---- the first pass ------------------------------------------------------------------------------------ */

static void note_level(struct track *t, enum way way, const struct clock *k, uint64_t ns)
{
	struct reached **octaves = t->octaves[way];
	unsigned octave = t->live >> FIRST_OCTAVE ? 63 - (unsigned)__builtin_clzll(t->live) - FIRST_OCTAVE : OCTAVES;
	if (octave >= OCTAVES)
		return;
	if (!octaves[octave] && !(octaves[octave] = calloc(COHORTS_PARTS, sizeof(struct reached))))
		return;
	octaves[octave][t->live >> (octave + FIRST_OCTAVE - 4) & (COHORTS_PARTS - 1)] =
		(struct reached){ ns, k->all_bytes, (float)k->all_blocks };
}

/* What was moved is not made again. */
static uint64_t new_bytes(const struct ledger *l, const struct model_change *change)
{
	return less((uint64_t)change->bytes, change->moves ? l->moved_bytes : 0);
}

/* Behind each change of both passes. */
static void note_move(struct ledger *l, const struct model_change *change)
{
	l->moved_bytes = change->moves && change->bytes < 0 ? (uint64_t)-change->bytes : 0;
}

void cohorts_count(struct cohorts *c, const struct model_change *change)
{
	struct ledger *l;
	struct track *t = find_track(c, change->process->id, change->kind, change->device, &l);
	if (!t)
		return;
	struct clock *k = &l->clocks[t->clock];
	l->last_ns = change->ns;
	l->picked_bytes = process_is_picked(change->process) ? change->process->sample_bytes : 0;
	l->runs = change->process->state == PROCESS_RUNNING;
	if (change->bytes < 0 && change->ns)
		note_level(t, UNTIL, k, change->ns - 1);
	t->live += (uint64_t)change->bytes;
	if (change->bytes > 0) {
		k->all_bytes += new_bytes(l, change);
		k->all_blocks++;
		note_level(t, SINCE, k, change->ns);
	}
	note_move(l, change);
}

/* What a byte and a block are, as parts of all work. */
static void set_parts(struct clock *k)
{
	const struct cohort_sum all = summed_work_all(&k->summed);
	k->of_byte = 0.5 / ((double)k->all_bytes + all.bytes + 1);
	k->of_block = 0.5 / ((double)k->all_blocks + all.blocks + 1);
}

/* What part of all work is behind at that moment, when events have made so much. */
static double place_of(const struct clock *k, double bytes, double blocks, uint64_t ns)
{
	const struct cohort_sum by = summed_work_by(&k->summed, ns);
	return (bytes + by.bytes) * k->of_byte + (blocks + by.blocks) * k->of_block;
}

static uint64_t end_by(const struct track *t, enum way way, const struct clock *k)
{
	for (unsigned i = OCTAVES; i-- > 0;)
		for (unsigned p = COHORTS_PARTS; t->octaves[way][i] && p-- > 0;) {
			const struct reached *r = &t->octaves[way][i][p];
			if (r->ns && place_of(k, (double)r->bytes, (double)r->blocks, r->ns) >= 1 - 1.0 / LAST_PART)
				return r->ns;
		}
	return UINT64_MAX;
}

/* Where nothing of the kind was made in the last part (few mappings are), the last moment before some was freed. */
static uint64_t end_of(const struct track *t, const struct clock *k)
{
	const uint64_t end = end_by(t, SINCE, k);
	return end < UINT64_MAX ? end : end_by(t, UNTIL, k);
}

static void begin(struct ledger *l, bool goes_on)
{
	l->begun = true;
	l->moved_bytes = 0;
	for (size_t k = 0; k < l->clock_count; k++) {
		summed_work_settle(&l->clocks[k].summed, l->last_ns);
		set_parts(&l->clocks[k]);
	}
	for (size_t k = 0; k < l->track_count; k++) {
		struct track *t = &l->tracks[k];
		t->end_ns = goes_on && l->runs ? UINT64_MAX : end_of(t, &l->clocks[t->clock]);
		t->live = 0;
		free_octaves(t);
	}
}

void cohorts_begin(struct cohorts *c, bool goes_on)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->list[i] && !c->list[i]->begun)
			begin(c->list[i], goes_on);
}

/* ---- cells --------------------------------------------------------------------------------------------- */

static bool is_before(const struct cell *a, uint8_t made, uint8_t freed)
{
	return a->made != made ? a->made < made : a->freed < freed;
}

/* The cell, or where it belongs. */
static uint32_t place_in(const struct cells *s, uint8_t made, uint8_t freed)
{
	if (s->count && is_before(&s->list[s->count - 1], made, freed))
		return s->count;
	return SEARCH_FIRST(i, s->count, !is_before(&s->list[i], made, freed));
}

static void put(struct cells *s, uint8_t made, uint8_t freed, uint64_t bytes, uint32_t blocks)
{
	uint32_t at = place_in(s, made, freed);
	if (at < s->count && s->list[at].made == made && s->list[at].freed == freed) {
		s->list[at].bytes += bytes;
		s->list[at].blocks += blocks;
		return;
	}
	if (s->count == s->room) {
		uint32_t room = s->room ? 2 * s->room : 1; /* most sites have one */
		struct cell *list = realloc(s->list, room * sizeof(*list));
		if (!list)
			return;
		s->list = list;
		s->room = room;
	}
	memmove(s->list + at + 1, s->list + at, (s->count - at) * sizeof(*s->list));
	s->list[at] = (struct cell){ bytes, blocks, made, freed };
	s->count++;
}

static void settle(struct history *h, uint8_t now)
{
	if (h->now == now)
		return;
	if (h->now_bytes || h->now_blocks)
		put(&h->alive, h->now, COHORTS_ALIVE, h->now_bytes, h->now_blocks);
	h->now_bytes = h->now_blocks = 0;
	h->now = now;
}

static void make(struct history *h, uint8_t made, uint8_t now, uint64_t bytes, uint32_t blocks)
{
	settle(h, now);
	if (made == now) {
		h->now_bytes += bytes;
		h->now_blocks += blocks;
	} else {
		put(&h->alive, made, COHORTS_ALIVE, bytes, blocks);
	}
}

/* Takes from cell i; true: nothing is left of it, and it is gone. */
static bool take_cell(struct history *h, uint32_t i, uint64_t *bytes, uint32_t *blocks,
		      void (*f)(void *arg, uint8_t made, uint64_t bytes), void *arg)
{
	struct cell *a = &h->alive.list[i];
	const uint64_t part = lower(*bytes, a->bytes);
	a->bytes -= part;
	*bytes -= part;
	if (a->blocks && *blocks) {
		a->blocks--;
		*blocks = 0;
	}
	if (part)
		f(arg, a->made, part);
	if (a->bytes || a->blocks)
		return false;
	memmove(a, a + 1, (h->alive.count - i - 1) * sizeof(*a));
	h->alive.count--;
	return true;
}

/* Takes bytes that were made until `made`, the youngest first: those of a block that has moved are older than itself.
 * Calls `f` for each cohort. */
static void take(struct history *h, uint8_t made, uint8_t now, uint64_t bytes, uint32_t blocks,
		 void (*f)(void *arg, uint8_t made, uint64_t bytes), void *arg)
{
	settle(h, now);
	if (made == now) {
		uint64_t part = lower(bytes, h->now_bytes);
		h->now_bytes -= part;
		bytes -= part;
		if (h->now_blocks && blocks) {
			h->now_blocks--;
			blocks = 0;
		}
		f(arg, now, part);
		if (!bytes && !blocks)
			return;
	}
	for (uint32_t i = place_in(&h->alive, made, COHORTS_ALIVE) + 1; (bytes || blocks) && i-- > 0;)
		if (i < h->alive.count && h->alive.list[i].made <= made)
			take_cell(h, i, &bytes, &blocks, f, arg);
	/* what a mapping has grown by is younger than itself */
	for (uint32_t i = 0; bytes && i < h->alive.count; i++)
		if (h->alive.list[i].made > made)
			i -= take_cell(h, i, &bytes, &blocks, f, arg);
	const uint64_t part = made < now ? lower(bytes, h->now_bytes) : 0;
	h->now_bytes -= part;
	if (part)
		f(arg, now, part);
}

struct dying {
	struct history *history;
	uint8_t now;
};

static void die(void *arg, uint8_t made, uint64_t bytes)
{
	struct dying *d = arg;
	if (made == d->now)
		d->history->passing += bytes;
	else
		put(&d->history->dead, made, d->now, bytes, 0);
}

static void end_block(struct history *h, uint8_t made, uint8_t now, uint64_t bytes, uint32_t blocks)
{
	take(h, made, now, bytes, blocks, die, &(struct dying){ h, now });
}

/* ---- containers ---------------------------------------------------------------------------------------- */

static void spread(struct history *h, uint8_t from, uint8_t to, uint8_t now, uint64_t bytes)
{
	const unsigned n = to - from + 1u;
	for (unsigned i = 0; i < n; i++)
		make(h, (uint8_t)(from + i), now, bytes * (i + 1) / n - bytes * i / n, 0);
}

static void ignore(void *arg, uint8_t made, uint64_t bytes)
{
	(void)arg, (void)made, (void)bytes;
}

/* A block of `old` bytes that was made in stretch `made` has become one of `bytes`, more than that; its bytes are in
 * `h` already, those that it has grown by in stretch `now`. What it had grown by when it was made has been filled since
 * then. */
static void grow(struct history *h, uint8_t made, uint8_t now, uint64_t old, uint64_t bytes)
{
	const uint64_t more = bytes - old;
	uint64_t filled = 0;
	settle(h, now);
	if (made < now) {
		const uint32_t at = place_in(&h->alive, made, COHORTS_ALIVE);
		const bool there = at < h->alive.count && h->alive.list[at].made == made;
		filled = there ? lower(h->alive.list[at].bytes, (uint64_t)((double)more * (double)old / (double)bytes))
			       : 0;
		if (filled) {
			take(h, made, now, filled, 0, ignore, NULL);
			spread(h, made, now, now, filled);
		}
	}
	const double lasts = (double)(now - made + 1) * (double)bytes / (double)old;
	h->room = bytes / GROWS_TO > old ? 0 : more;
	h->room_since = made;
	h->room_from = now;
	h->room_lasts = (uint8_t)fmin(lasts, UINT8_MAX);
}

/* ---- the second pass ----------------------------------------------------------------------------------- */

static uint8_t stretch_of(const struct clock *k, uint64_t ns)
{
	unsigned low = 0, high = k->now;
	if (ns >= k->begin_ns[high])
		return (uint8_t)high;
	while (low < high) { /* the last one that begins by then */
		unsigned middle = (low + high + 1) / 2;
		if (k->begin_ns[middle] <= ns)
			low = middle;
		else
			high = middle - 1;
	}
	return (uint8_t)low;
}

static struct cells halved(const struct cells *s, uint64_t *passing)
{
	struct cells half = { 0 };
	for (uint32_t i = 0; i < s->count; i++) {
		const struct cell *a = &s->list[i];
		const uint8_t freed = a->freed == COHORTS_ALIVE ? COHORTS_ALIVE : a->freed / 2;
		if (freed == a->made / 2)
			*passing += a->bytes;
		else
			put(&half, a->made / 2, freed, a->bytes, a->blocks);
	}
	free(s->list);
	return half;
}

static void halve_history(struct history *h)
{
	h->alive = halved(&h->alive, &h->passing);
	h->dead = halved(&h->dead, &h->passing);
	h->now /= 2;
	h->room_since /= 2;
	h->room_from /= 2;
	h->room_lasts /= 2;
}

/* There is more than the first pass has seen: stretches are twice as long from now on. */
static void halve(struct ledger *l, struct clock *k)
{
	const uint32_t which = (uint32_t)(k - l->clocks);
	for (unsigned i = 0; i < COHORTS; i++) {
		const bool whole = i < COHORTS / 2;
		k->begin_ns[i] = whole ? k->begin_ns[2 * i] : 0;
		const struct cohort_sum *a = &k->made[2 * i % COHORTS], *b = a + 1;
		k->made[i] = whole ? (struct cohort_sum){ a->bytes + b->bytes, a->blocks + b->blocks }
				   : (struct cohort_sum){ 0, 0 };
	}
	const struct cohort_sum summed = summed_work_all(&k->summed);
	k->all_bytes = 2 * k->all_bytes + (uint64_t)summed.bytes + 1; /* the first pass may have seen nothing */
	k->all_blocks = 2 * k->all_blocks + (uint64_t)summed.blocks + 1;
	set_parts(k);
	k->now /= 2;
	for (size_t i = 0; i < l->track_count; i++)
		if (l->tracks[i].clock == which)
			halve_history(&l->tracks[i].all);
	for (size_t i = 0; i < l->site_count; i++)
		if (l->tracks && l->sites[i].track < l->track_count && l->tracks[l->sites[i].track].clock == which)
			halve_history(&l->sites[i].history);
}

/* Stretches begin as work is done. */
static void reach(struct ledger *l, struct clock *k, uint64_t ns, uint64_t step_ns)
{
	double place = place_of(k, (double)k->bytes, (double)k->blocks, ns);
	for (; place >= 1; place = place_of(k, (double)k->bytes, (double)k->blocks, ns))
		halve(l, k);
	place *= COHORTS;
	const unsigned now = place < COHORTS ? (unsigned)place : COHORTS - 1;
	const bool begins = step_ns != k->step_ns || place >= k->now + 2;
	k->step_ns = step_ns;
	if (now > k->now && (!step_ns || begins))
		while (k->now < now)
			k->begin_ns[++k->now] = ns;
}

static void advance(struct ledger *l, struct clock *k, const struct model_change *change, uint64_t step_ns)
{
	const uint64_t bytes = new_bytes(l, change);
	k->bytes += bytes;
	k->blocks++;
	reach(l, k, change->ns, step_ns);
	k->made[k->now].bytes += (double)bytes;
	k->made[k->now].blocks += !change->moves;
}

static struct site *site_of(struct ledger *l, uint32_t number, uint32_t track)
{
	if (number >= l->number_count && vec_extend(l->numbers, l->number_count, l->number_room, number + 1ul))
		return NULL;
	uint32_t *at = &l->numbers[number];
	if (*at)
		return &l->sites[*at];
	if (l->unused) {
		*at = l->unused;
		l->unused = l->sites[*at].next_unused;
	} else {
		size_t count = l->site_count ? l->site_count : 1;
		if (vec_extend(l->sites, l->site_count, l->site_room, count + 1))
			return NULL;
		*at = (uint32_t)count;
	}
	l->sites[*at] = (struct site){ .track = track };
	return &l->sites[*at];
}

/* Nearly all sites of a program hold something for a moment, once. */
static void drop_empty(struct ledger *l, uint32_t number, struct site *s)
{
	const struct history *h = &s->history;
	if (h->now_bytes || h->now_blocks || h->alive.count || h->dead.count)
		return;
	free(h->alive.list);
	free(h->dead.list);
	*s = (struct site){ .next_unused = l->unused, .track = s->track };
	l->unused = l->numbers[number];
	l->numbers[number] = 0;
}

static void keep_moving(void *arg, uint8_t made, uint64_t bytes)
{
	struct ledger *l = arg;
	if (vec_reserve(l->moving, l->moving_room, l->moving_count + 1) == 0)
		l->moving[l->moving_count++] = (struct cell){ .bytes = bytes, .made = made };
}

/* The old block of a realloc goes, but its bytes do not die. */
static void begin_move(struct ledger *l, struct track *t, struct history *h, const struct model_change *c, uint8_t made,
		       uint8_t now)
{
	l->moving_count = 0;
	l->moving_bytes = (uint64_t)-c->bytes;
	l->moving_ns = c->made_ns;
	take(&t->all, made, now, l->moving_bytes, 1, ignore, NULL);
	take(h, made, now, l->moving_bytes, 1, keep_moving, l);
}

static void end_move(struct ledger *l, struct track *t, struct history *h, const struct model_change *c, uint8_t made,
		     uint8_t now)
{
	const struct clock *k = &l->clocks[t->clock];
	const uint64_t bytes = (uint64_t)c->bytes;
	uint64_t kept = 0;
	make(h, made, now, 0, 1);
	make(&t->all, made, now, 0, 1);
	for (size_t i = 0; i < l->moving_count; i++) { /* the youngest first; of a block that shrinks the oldest stay */
		const struct cell *m = &l->moving[l->moving_count - 1 - i];
		const uint64_t part = lower(m->bytes, bytes - kept);
		kept += part;
		make(h, m->made, now, part, 0);
		make(&t->all, m->made, now, part, 0);
		if (part < m->bytes) {
			die(&(struct dying){ h, now }, m->made, m->bytes - part);
			die(&(struct dying){ &t->all, now }, m->made, m->bytes - part);
		}
	}
	make(h, made, now, bytes - kept, 0);
	make(&t->all, made, now, bytes - kept, 0);
	if (bytes > l->moving_bytes && l->moving_bytes) {
		const uint8_t then = stretch_of(k, l->moving_ns);
		grow(h, then, now, l->moving_bytes, bytes);
		grow(&t->all, then, now, l->moving_bytes, bytes);
	}
	l->moving_count = 0;
	l->moving_bytes = 0;
}

/* What is freed right behind a larger block of the same site has been copied into it, if it is older than a step. But a
 * cache or a queue may put in first and then drop: what takes a block's place there is often smaller, or hardly larger.
 * Where a site has one block it grows by any part; where it has many each grows by at least an eighth. On a device,
 * where a program makes all its tensors anew, only steps tell a container from what it needs for the next one. */
static bool was_copied(struct history *h, const struct model_change *c, uint64_t before_ns)
{
	const bool told = c->device == MODEL_NO_DEVICE || before_ns;
	const uint64_t bytes = (uint64_t)-c->bytes, more = less(h->last_bytes, bytes);
	const bool apart = c->addr < h->last_addr || c->addr >= h->last_addr + h->last_bytes;
	if (!told || !h->last_addr || !apart || (before_ns && c->made_ns >= before_ns))
		return false;
	const bool grown = more && (c->addr == h->before_addr || more >= bytes / 8);
	*(grown ? &h->larger : &h->smaller) += 1;
	return grown && h->larger / COPIES >= h->smaller;
}

static void end_copied(struct history *h, uint8_t made, uint8_t now, uint64_t bytes, uint64_t larger)
{
	/* the new one has only grown: its bytes but for that are the old one's */
	take(h, now, now, bytes, 1, ignore, NULL);
	grow(h, made, now, bytes, larger);
}

static void change_site(struct ledger *l, struct track *t, const struct model_change *c, uint64_t before_ns)
{
	struct clock *k = &l->clocks[t->clock];
	const uint8_t made = stretch_of(k, c->bytes > 0 ? c->ns : c->made_ns), now = (uint8_t)k->now;
	const uint64_t bytes = (uint64_t)(c->bytes > 0 ? c->bytes : -c->bytes);
	struct history none;
	struct site *s = c->site == UINT32_MAX ? NULL : site_of(l, c->site, (uint32_t)(t - l->tracks));
	struct history *h = s ? &s->history : &none;
	if (!s)
		none = (struct history){ 0 };
	if (c->bytes > 0 && c->moves) {
		end_move(l, t, h, c, made, now);
	} else if (c->bytes > 0) {
		make(h, made, now, bytes, 1);
		make(&t->all, made, now, bytes, 1);
	} else if (c->moves) {
		begin_move(l, t, h, c, made, now);
	} else if (was_copied(h, c, before_ns)) {
		k->made[now].bytes = fmax(k->made[now].bytes - (double)bytes, 0);
		k->made[now].blocks = fmax(k->made[now].blocks - 1, 0);
		end_copied(h, made, now, bytes, h->last_bytes);
		end_copied(&t->all, made, now, bytes, h->last_bytes);
	} else {
		end_block(h, made, now, bytes, 1);
		end_block(&t->all, made, now, bytes, 1);
	}
	if (c->bytes > 0) {
		h->before_addr = h->made_addr;
		h->made_addr = c->addr;
	}
	h->last_addr = c->bytes > 0 ? c->addr : 0;
	h->last_bytes = c->bytes > 0 ? bytes : 0;
	if (s)
		drop_empty(l, c->site, s);
	else
		free_history(&none);
}

void cohorts_change(struct cohorts *c, const struct model_change *change, uint64_t step_ns, uint64_t before_ns)
{
	struct ledger *l;
	struct track *t = find_track(c, change->process->id, change->kind, change->device, &l);
	if (!t)
		return;
	if (change->bytes > 0)
		advance(l, &l->clocks[t->clock], change, step_ns);
	if (change->ns <= t->end_ns)
		change_site(l, t, change, before_ns);
	note_move(l, change);
}

static const struct site *known_site(const struct ledger *l, uint32_t site)
{
	return l && site < l->number_count && l->numbers[site] ? &l->sites[l->numbers[site]] : NULL;
}

/* What the first pass has not seen counts when it is told. */
void cohorts_left_out(struct cohorts *c, const struct model_left_out *o)
{
	struct ledger *l;
	struct track *t = find_track(c, o->process->id, o->kind, o->device, &l);
	if (!t)
		return;
	struct clock *k = &l->clocks[t->clock];
	const struct cohort_sum sum = { (double)o->bytes, (double)o->blocks };
	if (!l->begun) {
		summed_work_add(&k->summed, o->from_ns, o->until_ns, sum);
		k->summed_ns = higher(k->summed_ns, o->ns);
		return;
	}
	if (o->ns > k->summed_ns) {
		k->bytes += o->bytes;
		k->blocks += o->blocks;
		cohort_sum_add(&k->made[k->now], &sum);
	}
	reach(l, k, o->ns, k->step_ns);
	if (o->ns <= t->end_ns) {
		t->all.passing += o->bytes;
		if (known_site(l, o->site))
			l->sites[l->numbers[o->site]].history.passing += o->bytes;
	}
}

/* ---- what was found ------------------------------------------------------------------------------------ */

/* The room of the container that moved last would have been filled long ago at the pace of before. */
static bool is_overdue(const struct history *h, const struct clock *k, uint64_t end_ns)
{
	const unsigned end = stretch_of(k, end_ns), since = h->room_since, from = h->room_from;
	if (end > from + h->room_lasts + h->room_lasts / LATE)
		return true;
	if (end_ns == UINT64_MAX || from == end)
		return false;
	const double stretch = (double)(k->begin_ns[from + 1] - k->begin_ns[since]) / (from - since + 1);
	return (double)(end_ns - k->begin_ns[from]) > LATE_NS * stretch * h->room_lasts;
}

/* As of the end of its track. */
static void add_history(const struct history *h, const struct clock *k, uint64_t end_ns, double weight,
			struct cohort_table *t)
{
	uint64_t from = h->now == h->room_from ? h->now_bytes : 0; /* alive of the stretch in which the room was made */
	for (uint32_t i = 0; i < h->alive.count; i++) {
		from += h->alive.list[i].made == h->room_from ? h->alive.list[i].bytes : 0;
		t->alive[h->alive.list[i].made] += weight * (double)h->alive.list[i].bytes;
		t->blocks[h->alive.list[i].made] += weight * h->alive.list[i].blocks;
	}
	t->alive[h->now] += weight * (double)h->now_bytes;
	t->blocks[h->now] += weight * h->now_blocks;
	for (uint32_t i = 0; i < h->dead.count; i++)
		t->died[h->dead.list[i].made][h->dead.list[i].freed] += weight * (double)h->dead.list[i].bytes;
	t->passing += weight * (double)h->passing;
	if (!h->room || is_overdue(h, k, end_ns))
		return;
	/* the room of the container that moved last is filled by and by */
	const double room = weight * (double)lower(h->room, from);
	const unsigned until = lower(h->room_from + h->room_lasts, COHORTS - 1);
	t->alive[h->room_from] -= room;
	for (unsigned i = h->room_from; i <= until; i++)
		t->alive[i] += room / (until - h->room_from + 1);
	for (unsigned i = h->room_from + 1u; i <= until; i++)
		t->assumed[i] += room / (until - h->room_from + 1);
}

static uint64_t live_of(const struct history *h)
{
	uint64_t sum = h->now_bytes;
	for (uint32_t i = 0; i < h->alive.count; i++)
		sum += h->alive.list[i].bytes;
	return sum;
}

/* Its stack has made one block in all. */
static bool is_single(const struct history *h)
{
	const uint32_t cells = h->alive.count + (h->now_bytes > 0);
	const uint64_t blocks = h->alive.count ? h->alive.list[0].blocks : h->now_blocks;
	return cells == 1 && blocks == 1 && !h->dead.count && !h->passing;
}

static void add_single(const struct history *h, double weight, struct cohort_table *t)
{
	if (is_single(h))
		t->single[h->alive.count ? h->alive.list[0].made : h->now] += weight * (double)live_of(h);
}

void cohorts_add_site(const struct cohorts *c, unsigned process, uint32_t site, double weight, struct cohort_table *t)
{
	const struct ledger *l = known_ledger(c, process);
	const struct site *s = known_site(l, site);
	if (!s)
		return;
	const struct track *k = &l->tracks[s->track];
	add_history(&s->history, &l->clocks[k->clock], k->end_ns, weight, t);
	add_single(&s->history, weight, t);
}

void cohorts_add_track(const struct cohorts *c, unsigned process, enum model_kind kind, uint32_t device,
		       struct cohort_table *t)
{
	const struct ledger *l = known_ledger(c, process);
	const struct track *k = known_track(l, kind, device);
	if (!k)
		return;
	add_history(&k->all, &l->clocks[k->clock], k->end_ns, 1, t);
	for (size_t i = 1; i < l->site_count; i++)
		if (l->sites[i].track == (uint32_t)(k - l->tracks))
			add_single(&l->sites[i].history, 1, t);
}

/* What is alive of each stretch of a clock. */
static void add_kept(const struct ledger *l, uint32_t clock, struct cohort_sum *kept)
{
	for (size_t i = 0; i < l->track_count; i++)
		if (l->tracks[i].clock == clock) {
			struct cohort_table all = { 0 };
			add_history(&l->tracks[i].all, &l->clocks[clock], l->tracks[i].end_ns, 1, &all);
			for (unsigned b = 0; b < COHORTS; b++) {
				kept[b].bytes += all.alive[b];
				kept[b].blocks += all.blocks[b];
			}
		}
}

/* To what was made in each stretch. */
static void add_summed(const struct clock *k, uint64_t end_ns, struct cohort_sum *made)
{
	struct cohort_sum before = { 0, 0 };
	for (unsigned b = 0; b <= k->now; b++) {
		const struct cohort_sum by = summed_work_by(&k->summed, b < k->now ? k->begin_ns[b + 1] : end_ns);
		made[b].bytes += by.bytes - before.bytes;
		made[b].blocks += by.blocks - before.blocks;
		before = by;
	}
}

struct cohort_clock cohorts_clock(const struct cohorts *c, unsigned process, enum model_kind kind, uint32_t device)
{
	const struct ledger *l = known_ledger(c, process);
	const struct track *t = known_track(l, kind, device);
	struct cohort_clock clock = { 0 };
	if (!t)
		return clock;
	const struct clock *k = &l->clocks[t->clock];
	clock.end_ns = t->end_ns;
	clock.least =
		kind == MODEL_HEAP ? fmax(COHORTS_LEAST, (double)(COHORTS_PICKED * l->picked_bytes)) : COHORTS_LEAST;
	clock.count = stretch_of(k, t->end_ns) + 1u;
	memcpy(clock.begin_ns, k->begin_ns, sizeof(clock.begin_ns));
	memcpy(clock.made, k->made, sizeof(clock.made));
	add_summed(k, t->end_ns, clock.made);
	for (unsigned b = 0; b < COHORTS; b++) {
		clock.made[b].blocks += k->objects_made[b];
		clock.kept[b].blocks += k->objects_kept[b];
	}
	add_kept(l, t->clock, clock.kept);
	return clock;
}

static const struct clock *clock_of_host(const struct ledger *l)
{
	for (size_t i = 0; l && i < l->clock_count; i++)
		if (l->clocks[i].device == MODEL_NO_DEVICE)
			return &l->clocks[i];
	return NULL;
}

/* A stretch of a device's clock counts where it begins. */
void cohorts_add_devices(const struct cohorts *c, unsigned process, struct cohort_clock *to)
{
	const struct ledger *l = known_ledger(c, process);
	const struct clock *host = clock_of_host(l);
	for (uint32_t i = 0; host && i < l->clock_count; i++) {
		const struct clock *k = &l->clocks[i];
		struct cohort_sum kept[COHORTS] = { { 0, 0 } };
		if (k == host)
			continue;
		add_kept(l, i, kept);
		for (unsigned b = 0; b <= k->now && k->begin_ns[b] <= to->end_ns; b++) {
			const unsigned at = stretch_of(host, k->begin_ns[b]);
			cohort_sum_add(&to->made_on_devices[at], &k->made[b]);
			cohort_sum_add(&to->kept_on_devices[at], &kept[b]);
		}
	}
}

static void add_objects(struct clock *k, const struct history *h, uint64_t end_ns)
{
	struct cohort_table t = { 0 };
	add_history(h, k, end_ns, 1.0 / OBJECT, &t);
	for (unsigned b = 0; b < COHORTS; b++) {
		k->objects_kept[b] += t.alive[b];
		k->objects_made[b] += t.alive[b];
		for (unsigned freed = b; freed < COHORTS; freed++)
			k->objects_made[b] += t.died[b][freed];
	}
}

void cohorts_find_arenas(struct cohorts *c, unsigned process, cohorts_is_arena *is, void *arg)
{
	struct ledger *l = process < c->count ? c->list[process] : NULL;
	for (size_t i = 0; l && i < l->clock_count; i++) {
		memset(l->clocks[i].objects_made, 0, sizeof(l->clocks[i].objects_made));
		memset(l->clocks[i].objects_kept, 0, sizeof(l->clocks[i].objects_kept));
	}
	for (uint32_t number = 0; l && number < l->number_count; number++) {
		const struct site *s = known_site(l, number);
		const struct track *t = s ? &l->tracks[s->track] : NULL;
		if (t && t->kind == MODEL_MAP && is(arg, process, number))
			add_objects(&l->clocks[t->clock], &s->history, t->end_ns);
	}
}

uint64_t cohorts_end_ns(const struct cohorts *c, unsigned process)
{
	const struct ledger *l = known_ledger(c, process);
	uint64_t last = 0;
	for (size_t i = 0; l && i < l->track_count; i++)
		last = higher(last, l->tracks[i].end_ns);
	return last ? last : UINT64_MAX;
}

uint64_t cohorts_track_live(const struct cohorts *c, unsigned process, enum model_kind kind, uint32_t device)
{
	const struct track *t = known_track(known_ledger(c, process), kind, device);
	return t ? live_of(&t->all) : 0;
}

uint32_t cohorts_sites(const struct cohorts *c, unsigned process)
{
	const struct ledger *l = known_ledger(c, process);
	return l ? (uint32_t)l->number_count : 0;
}

bool cohorts_has(const struct cohorts *c, unsigned process, uint32_t site)
{
	return known_site(known_ledger(c, process), site) != NULL;
}

uint64_t cohorts_live(const struct cohorts *c, unsigned process, uint32_t site, uint32_t *blocks)
{
	const struct site *s = known_site(known_ledger(c, process), site);
	if (blocks)
		*blocks = s ? s->history.now_blocks : 0;
	for (uint32_t i = 0; s && blocks && i < s->history.alive.count; i++)
		*blocks += s->history.alive.list[i].blocks;
	return s ? live_of(&s->history) : 0;
}

size_t cohorts_largest(const struct cohorts *c, unsigned process, uint32_t *sites, size_t most)
{
	const struct ledger *l = known_ledger(c, process);
	uint64_t *bytes = calloc(most + 1, sizeof(*bytes));
	size_t count = 0;
	for (uint32_t i = 0; l && bytes && i < l->number_count; i++) {
		const struct site *s = known_site(l, i);
		const uint64_t live = s ? live_of(&s->history) : 0;
		size_t at = count;
		while (at > 0 && bytes[at - 1] < live)
			at--;
		if (!live || at == most)
			continue;
		count += count < most;
		memmove(sites + at + 1, sites + at, (count - 1 - at) * sizeof(*sites));
		memmove(bytes + at + 1, bytes + at, (count - 1 - at) * sizeof(*bytes));
		sites[at] = i;
		bytes[at] = live;
	}
	free(bytes);
	return count;
}
