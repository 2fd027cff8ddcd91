#include "analyzer/model/work.h"

#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

#include <math.h>

enum { STRETCHES = 256, RECURS = 4, LATELY = 4 }; /* RECURS: a stack that allocated so often before is one of a loop */
#define SHORTEST_NS 4000000u

/* most that was live, and what was live at last; both 0 where nothing happened */
struct stretch {
	uint64_t made, again, freed, most, last;
};

struct busy {
	bool begun;
	uint64_t from_ns, width_ns, moving, live;
	struct stretch stretches[STRETCHES];
	/* the one that was looked for last, and its time: most changes come right after another */
	struct stretch *now;
	uint64_t now_from_ns, now_until_ns;
	uint8_t *turns; /* by site: how often it allocated, up to RECURS */
	size_t turn_count, turn_room;
};

struct work {
	struct busy **list; /* by process; NULL = it made nothing */
	size_t count, room;
};

struct work *work_new(void)
{
	return calloc(1, sizeof(struct work));
}

void work_free(struct work *w)
{
	for (size_t i = 0; w && i < w->count; i++) {
		if (w->list[i])
			free(w->list[i]->turns);
		free(w->list[i]);
	}
	if (w)
		free(w->list);
	free(w);
}

static struct busy *busy_of(struct work *w, uint32_t process)
{
	if (process >= w->count && vec_extend(w->list, w->count, w->room, process + 1ul))
		return NULL;
	if (!w->list[process])
		w->list[process] = calloc(1, sizeof(*w->list[process]));
	return w->list[process];
}

static bool is_empty(const struct stretch *s)
{
	return !s->made && !s->freed;
}

static void halve(struct busy *b)
{
	for (int i = 0; i < STRETCHES / 2; i++) {
		b->stretches[i].made = b->stretches[2 * i].made + b->stretches[2 * i + 1].made;
		b->stretches[i].again = b->stretches[2 * i].again + b->stretches[2 * i + 1].again;
		b->stretches[i].freed = b->stretches[2 * i].freed + b->stretches[2 * i + 1].freed;
		b->stretches[i].most = higher(b->stretches[2 * i].most, b->stretches[2 * i + 1].most);
		b->stretches[i].last =
			is_empty(&b->stretches[2 * i + 1]) ? b->stretches[2 * i].last : b->stretches[2 * i + 1].last;
	}
	memset(b->stretches + STRETCHES / 2, 0, sizeof(b->stretches) / 2);
	b->width_ns *= 2;
	b->now_until_ns = 0;
}

static struct stretch *stretch_at(struct busy *b, uint64_t ns)
{
	if (!b->begun) {
		b->begun = true;
		b->from_ns = ns;
		b->width_ns = SHORTEST_NS;
	}
	if (ns >= b->now_from_ns && ns < b->now_until_ns)
		return b->now;
	if (ns < b->from_ns)
		return NULL;
	while ((ns - b->from_ns) / b->width_ns >= STRETCHES)
		halve(b);
	const uint64_t number = (ns - b->from_ns) / b->width_ns;
	b->now = &b->stretches[number];
	b->now_from_ns = b->from_ns + number * b->width_ns;
	b->now_until_ns = b->now_from_ns + b->width_ns;
	return b->now;
}

/* Of what was folded, and has no stack, nobody knows. */
static bool recurs(struct busy *b, uint32_t site)
{
	if (site == UINT32_MAX ||
	    (site >= b->turn_count && vec_extend(b->turns, b->turn_count, b->turn_room, site + 1ul)))
		return true;
	if (b->turns[site] >= RECURS)
		return true;
	b->turns[site]++;
	return false;
}

void work_change(struct work *w, const struct model_change *c)
{
	struct busy *b = c->kind == MODEL_HEAP ? busy_of(w, c->process->id) : NULL;
	struct stretch *s = b ? stretch_at(b, c->ns) : NULL;
	if (!s)
		return;
	b->live = c->bytes < 0 ? less(b->live, (uint64_t)-c->bytes) : b->live + (uint64_t)c->bytes;
	s->most = higher(s->most, b->live);
	s->last = b->live;
	if (c->bytes > 0) {
		uint64_t made = less((uint64_t)c->bytes, c->moves ? b->moving : 0);
		s->made += made;
		s->again += recurs(b, c->site) ? made : 0;
	} else if (!c->moves) {
		s->freed += (uint64_t)-c->bytes;
	}
	b->moving = c->moves && c->bytes < 0 ? (uint64_t)-c->bytes : 0;
}

/* What was live before that stretch. */
static uint64_t live_before(const struct busy *b, size_t from)
{
	while (from > 0 && is_empty(&b->stretches[from - 1]))
		from--;
	return from ? b->stretches[from - 1].last : 0;
}

/* The most that was live in the second half: what a program frees as it ends was kept till then, what a load took for a
 * moment was not. */
static uint64_t most_lately(const struct busy *b, size_t from, size_t to)
{
	uint64_t most = 0;
	for (size_t i = from + (to - from) / 2; i <= to; i++)
		most = higher(most, b->stretches[i].most);
	return most;
}

/* NULL: it did nothing until then. */
static const struct busy *begun_until(const struct work *w, unsigned process, uint64_t ns)
{
	const struct busy *b = process < w->count ? w->list[process] : NULL;
	return b && b->begun && ns >= b->from_ns ? b : NULL;
}

struct work_done work_between(const struct work *w, unsigned process, uint64_t from_ns, uint64_t to_ns)
{
	const struct busy *b = begun_until(w, process, to_ns);
	struct work_done done = { 0 };
	size_t seen = 0, all = 0;
	if (!b)
		return done;
	size_t from = less(from_ns, b->from_ns) / b->width_ns, to = (to_ns - b->from_ns) / b->width_ns;
	to = to < STRETCHES ? to : STRETCHES - 1;
	from = from < to ? from : to;
	for (size_t i = from; i <= to; i++, all++) {
		done.made += (double)b->stretches[i].made;
		done.again += (double)b->stretches[i].again;
		seen += b->stretches[i].freed > 0;
	}
	uint64_t kept = less(most_lately(b, from, to), live_before(b, from));
	done.passing = fmax(done.made - (double)kept, 0);
	done.busy = all ? (double)seen / (double)all : 0;
	return done;
}

/* What was live for sure when that stretch began, since what a turn needs comes and goes. */
static uint64_t least_before(const struct busy *b, size_t from)
{
	uint64_t least = live_before(b, from);
	for (size_t i = 1; i < LATELY && i < from; i++)
		least = lower(least, live_before(b, from - i));
	return least;
}

struct work_behind work_behind(const struct work *w, unsigned process, uint64_t from_ns, uint64_t to_ns)
{
	const struct busy *b = begun_until(w, process, to_ns);
	struct work_behind behind = { 0 };
	if (!b)
		return behind;
	/* the stretch that the moment is in belongs to what was before, and the last one to how the process ends */
	size_t from = less(from_ns, b->from_ns) / b->width_ns, to = (to_ns - b->from_ns) / b->width_ns, making = 0;
	to = to < STRETCHES ? to : STRETCHES;
	for (size_t i = from + 1; i < to; i++)
		making += b->stretches[i].made > 0;
	behind.making = to > from + 1 ? (double)making / (double)(to - from - 1) : 0;
	behind.freed = (double)less(least_before(b, from), live_before(b, from + (to - from) / 2));
	return behind;
}

double work_made_until(const struct work *w, unsigned process, uint64_t ns)
{
	const struct busy *b = begun_until(w, process, ns);
	if (!b)
		return 0;
	const double at = (double)(ns - b->from_ns) / (double)b->width_ns;
	double made = 0;
	for (size_t i = 0; i < STRETCHES && (double)i < at; i++)
		made += fmin(at - (double)i, 1) * (double)b->stretches[i].made;
	return made;
}

uint64_t work_rests_since(const struct work *w, unsigned process, uint64_t to_ns)
{
	const struct busy *b = begun_until(w, process, to_ns);
	size_t to = b ? (to_ns - b->from_ns) / b->width_ns : 0, since = to, making = 0;
	to = since = to < STRETCHES ? to : STRETCHES;
	for (size_t i = to; i-- > 0;) {
		making += b->stretches[i].made > 0;
		if ((double)making < WORK_RESTS * (double)(to - i))
			since = i;
	}
	while (since < to && b->stretches[since].made)
		since++;
	return since < to ? b->from_ns + since * b->width_ns : to_ns;
}
