#include "analyzer/diagnosis/growth/outlook.h"

#include "analyzer/util/output.h"

#include <math.h>
#include <stdlib.h>

/* All numbers that decide what growth is. */
#define AT_RISK         0.2  /* of what was made must have reached an age, for it to be known how much died at it */
#define OUTLOOK_NEAR    0.05 /* of what was made: alive beside what stays for good, once it is old enough */
#define STAYS           0.2  /* of what is alive: less stays, and it passes */
#define OUTLOOK_FLOOR   0.02 /* of the mean cohort: a cohort that keeps less has no survivors */
#define START_UP        4    /* times the median cohort: more, in the first half, is start-up */
#define OUTLOOK_LEAST   4    /* cohorts with survivors: of fewer nothing can be said */
#define OUTLOOK_MOST    16   /* cohorts that count against a gap: neighbours are alike, more tell no more */
#define BY_CHANCE       0.02 /* so improbable a gap behind the last survivors, and it stopped */
#define BURSTS          3    /* as far apart: the next one may still come, ... */
#define OUTLOOK_OVERDUE 1.5  /* ... if the gap is no longer than so many times those before */
#define LEVELS_OFF      0.3  /* of the rate at first: less at the end, and it stopped */
#define SURE_OF         3    /* standard errors: by so much it is less, or that is chance */
#define WORKS           0.5  /* of what the process makes is freed by one that works */
#define OUTLOOK_RISES   0.1  /* of the most there was: by so much more was alive at the end than in the middle */
#define EVENLY          0.75 /* of the rise before: so much follows it, where it rises at one pace */
#define ONE_JUMP        0.8  /* of the rise: if more of it comes at once, it is a jump, and not growth */
#define AT_ONCE         0.95 /* of the rise, within a twelfth of the run: the same */
#define OLDER           1.25 /* times as old dies what dies late, in a backlog */
#define IN_ORDER        0.05 /* of what is alive: less is older than what goes, and it is a queue */
#define SINGLE          0.5  /* of what came, by stacks that made one block: it is no loop's */
#define GATHERED        3    /* times all was freed at once that had come in OUTLOOK_LEAST cohorts or more */
#define SURE            12   /* cohorts with survivors, and ... */
#define SURE_CHANCE     0.25 /* ... no long gap: then it is certain */

/* ---- ages ---------------------------------------------------------------------------------------------- */

/* What part is alive at each age, of what lived for longer than its stretch. */
struct survival {
	double part[COHORTS + 1];
	double rest; /* that stays for good */
};

static double lived(const struct cohort_table *t, unsigned made)
{
	double sum = t->alive[made];
	for (unsigned freed = made + 1; freed < COHORTS; freed++)
		sum += t->died[made][freed];
	return sum;
}

/* Of the first `count` cohorts. Of the greatest ages, which only a few have reached, nothing is known: whoever lives as
 * long is taken to stay. */
static struct survival survival_of(const struct cohort_table *t, unsigned count)
{
	struct survival s = { .part = { 1 } };
	double all = 0, part = 1, born[COHORTS], left[COHORTS];
	unsigned age = 1;
	for (unsigned made = 0; made < count; made++)
		all += born[made] = left[made] = lived(t, made);
	for (; age < count; age++) {
		double reached = 0, at_risk = 0, dead = 0;
		for (unsigned made = 0; made + age < count; made++) {
			reached += born[made];
			at_risk += left[made];
			dead += t->died[made][made + age];
			left[made] -= t->died[made][made + age];
		}
		if (reached < AT_RISK * all)
			break;
		part *= at_risk > 0 ? fmax(1 - dead / at_risk, 0) : 1;
		s.part[age] = part;
	}
	for (; age <= COHORTS; age++)
		s.part[age] = part;
	s.rest = part;
	return s;
}

/* From which on next to nothing dies any more. */
static unsigned old_age(const struct survival *s)
{
	unsigned age = 0;
	while (age < COHORTS && s->part[age] - s->rest > fmin(OUTLOOK_NEAR, s->rest))
		age++;
	return age;
}

/* ---- what passes --------------------------------------------------------------------------------------- */

static double sum_of(const double *list, unsigned from, unsigned to)
{
	double sum = 0;
	for (unsigned i = from; i < to; i++)
		sum += list[i];
	return sum;
}

static double mean_of(const double *list, unsigned from, unsigned to)
{
	return to > from ? sum_of(list, from, to) / (to - from) : 0;
}

/* Mean age of what was freed in the stretches [from, to). */
static double mean_age(const struct cohort_table *t, unsigned from, unsigned to)
{
	double sum = 0, bytes = 0;
	for (unsigned freed = from; freed < to; freed++)
		for (unsigned made = 0; made < freed; made++) {
			sum += t->died[made][freed] * (freed - made);
			bytes += t->died[made][freed];
		}
	return bytes > 0 ? sum / bytes : 0;
}

/* A queue: what goes last came before nearly all that is alive. So its ages tell how long one waits, and that what is
 * alive is too young to have gone. */
static bool is_in_order(const struct cohort_table *t, unsigned began, unsigned count)
{
	double sum = 0, bytes = 0;
	for (unsigned freed = count - (count - began) / 4; freed < count; freed++)
		for (unsigned made = began; made < freed; made++) {
			sum += t->died[made][freed] * made;
			bytes += t->died[made][freed];
		}
	return bytes > 0 && sum_of(t->alive, 0, (unsigned)(sum / bytes)) < IN_ORDER * sum_of(t->alive, 0, count);
}

/* Alive at the end of each stretch. */
static void levels_of(const struct cohort_table *t, unsigned count, double *alive)
{
	for (unsigned at = 0; at < count; at++) {
		alive[at] = (at ? alive[at - 1] : 0) + lived(t, at);
		for (unsigned made = 0; made < at; made++)
			alive[at] -= t->died[made][at];
	}
}

/* Where there is something for the first time. */
static unsigned beginning(const double *alive, unsigned count)
{
	unsigned at = 0;
	while (at < count && alive[at] <= 0)
		at++;
	return at;
}

/* The most by which `near` stretches have more than those before them. */
static double largest_jump(const double *alive, unsigned from, unsigned count, unsigned near)
{
	double jump = 0;
	for (unsigned at = from; at + near <= count; at++)
		jump = fmax(jump, mean_of(alive, at, at + near) - mean_of(alive, at - near, at));
	return jump;
}

/* More and more is alive in the second half, and more than there was at any moment of the quarter before it: by how
 * much in all, and whether at one pace. 0: it isn't so, but an epoch, a day. */
static double rise(const double *alive, unsigned count, bool *evenly)
{
	const unsigned part = count / 6, half = count / 2;
	double means[3], most = 0, before = 0, late = 0;
	*evenly = false;
	if (count / 4 < OUTLOOK_LEAST)
		return 0;
	for (unsigned at = 0; at < count; at++) {
		most = fmax(most, alive[at]);
		before = at >= half / 2 && at < half ? fmax(before, alive[at]) : before;
	}
	for (unsigned i = 0; i < 3; i++)
		means[i] = mean_of(alive, half + i * part, half + (i + 1) * part);
	double least = most;
	for (unsigned at = half; at < count; at++) {
		least = fmin(least, alive[at]);
		late = fmax(late, alive[at]);
	}
	const double by = means[2] - means[0], more = fmin(by * 3 / 2, late - least); /* from the middle to the end */
	if (fmax(means[1] - means[0], means[2] - means[1]) > ONE_JUMP * by ||
	    largest_jump(alive, half, count, part / 2 ? part / 2 : 1) > AT_ONCE * by)
		return 0;
	*evenly = means[2] - means[1] >= EVENLY * (means[1] - means[0]);
	return means[0] < means[1] && means[1] < means[2] && fmin(more, most - before) >= OUTLOOK_RISES * most ? more
													       : 0;
}

/* `began`: cohort. */
static void judge_passing(struct outlook_found *f, const struct cohort_table *t, double alive, unsigned began,
			  double least)
{
	const unsigned quarter = (f->count - began) / 4;
	f->outlook = OUTLOOK_PASSES;
	f->certainty = CERTAINTY_MEDIUM;
	if (f->rise < least)
		return;
	const double early = mean_age(t, began + quarter, began + 2 * quarter),
		     late = mean_age(t, f->count - quarter, f->count);
	const bool waits = early > 0 && late >= OLDER * early;
	f->outlook = waits ? OUTLOOK_BACKLOG : OUTLOOK_NEEDS_MORE;
	f->bytes = waits ? alive : f->rise;
	f->from = waits ? 0 : began + 2 * quarter;
}

/* ---- what stays ---------------------------------------------------------------------------------------- */

struct stay {
	double bytes[COHORTS]; /* of each cohort, that stay for good */
	bool member[COHORTS];
	bool assumed[COHORTS]; /* most of bytes are (cohort_table.assumed) */
	unsigned count;        /* of cohorts that are old enough */
};

static void find_members(struct stay *s, unsigned from)
{
	const double mean = mean_of(s->bytes, from, s->count);
	for (unsigned i = 0; i < s->count; i++)
		s->member[i] = i >= from && s->bytes[i] > OUTLOOK_FLOOR * mean;
}

static double usual(const struct stay *s)
{
	double values[COHORTS];
	size_t n = 0;
	for (unsigned i = 0; i < s->count; i++)
		if (s->member[i])
			values[n++] = s->bytes[i];
	return median_of(values, n);
}

/* `empty` of `count` cohorts, at one end of them, have no survivors. Had it gone on as in the others, of which
 * `members` have some, this would be so by chance. */
static double chance_of_gap(unsigned empty, unsigned count, unsigned members)
{
	return pow(1 - (double)empty / count, members);
}

static unsigned members_from(const struct stay *s, unsigned from)
{
	unsigned members = 0;
	for (unsigned i = from; i < s->count; i++)
		members += s->member[i];
	return members;
}

/* Behind what stands out of the first half. */
static unsigned behind_large(const struct stay *s, unsigned from)
{
	const double most = START_UP * usual(s);
	unsigned next = from;
	for (unsigned i = from; i < (from + s->count) / 2; i++)
		next = s->bytes[i] > most ? i + 1 : next;
	return next;
}

/* Behind the last gap that is too long for what follows it, of the many places at which one may be. */
static unsigned behind_gap(const struct stay *s, unsigned from)
{
	unsigned next = from, empty = 0;
	for (unsigned i = from; i < s->count; i++) {
		const unsigned members = members_from(s, i);
		if (s->member[i] && members >= OUTLOOK_LEAST &&
		    chance_of_gap(empty, s->count - i + empty, members) < BY_CHANCE / s->count)
			next = i;
		empty = s->member[i] ? 0 : empty + 1;
	}
	return next;
}

/* Where growth began: behind start-up, if at least so much follows. */
static unsigned behind_start_up(struct stay *s, double least)
{
	unsigned from = 0, next = 0;
	do {
		from = next;
		find_members(s, from);
		while (from < s->count && !s->member[from])
			from++;
		next = behind_large(s, from);
		next = next > from ? next : behind_gap(s, from);
	} while (next > from && sum_of(s->bytes, next, s->count) >= least);
	find_members(s, from);
	return from;
}

static void add_sums(struct cohort_sum *sum, const struct cohort_sum *list, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		cohort_sum_add(sum, &list[i]);
}

/* By bytes, or half by bytes and half by blocks, as the clock goes: a server may keep large answers of small work. */
static double part_freed(const struct cohort_sum *made, const struct cohort_sum *kept)
{
	const double bytes = 1 - fmin(kept->bytes / made->bytes, 1), blocks = 1 - fmin(kept->blocks / made->blocks, 1);
	return fmax(bytes, (bytes + blocks) / 2);
}

/* What the process does on devices meanwhile is work as well, if it frees that. */
static double freed_since(const struct cohort_clock *k, unsigned from, unsigned to)
{
	struct cohort_sum made = { 1, 1 }, kept = { 0, 0 };
	add_sums(&made, k->made, from, to);
	add_sums(&kept, k->kept, from, to);
	const double own = part_freed(&made, &kept);
	add_sums(&made, k->made_on_devices, from, to);
	add_sums(&kept, k->kept_on_devices, from, to);
	return fmax(own, part_freed(&made, &kept));
}

/* Of the sum of these cohorts, if each of them were by chance what it is. */
static double variance_of_sum(const double *list, unsigned from, unsigned to)
{
	const double mean = mean_of(list, from, to);
	double sum = 0;
	for (unsigned i = from; i < to; i++)
		sum += (list[i] - mean) * (list[i] - mean);
	return sum * (to - from) / (to - from - 1);
}

/* What comes in each cohort, from one on. */
static bool levels_off(const double *list, unsigned from, unsigned count)
{
	const unsigned quarter = count > from ? (count - from) / 4 : 0, late = count - quarter;
	if (quarter < 2)
		return false;
	const double at_first = sum_of(list, from, from + quarter), at_last = sum_of(list, late, count),
		     doubt = sqrt(variance_of_sum(list, from, from + quarter) + variance_of_sum(list, late, count));
	return at_last < LEVELS_OFF * at_first && at_first - at_last > SURE_OF * doubt;
}

/* The last survivors are `gap` cohorts behind, but there were such gaps before: it comes in bursts. */
static bool is_in_bursts(const struct stay *s, unsigned from, unsigned gap)
{
	unsigned such = 0, empty = 0;
	for (unsigned i = from; i < s->count; i++) {
		such += s->member[i] && OUTLOOK_OVERDUE * empty >= gap;
		empty = s->member[i] ? 0 : empty + 1;
	}
	return such >= BURSTS - 1;
}

/* The last cohort that shows that it goes on. A small part that comes behind a gap which is too long for all there is
 * doesn't: the last blocks that wait for a collector, say. */
static unsigned last_of(const struct stay *s, unsigned from)
{
	const unsigned members = members_from(s, from);
	const double small = STAYS * sum_of(s->bytes, from, s->count);
	unsigned last = from;
	for (unsigned i = from + 1; i < s->count; i++) {
		if (!s->member[i])
			continue;
		if (chance_of_gap(i - last - 1, s->count - from, members) < BY_CHANCE / s->count &&
		    sum_of(s->bytes, i, s->count) < small)
			break;
		last = i;
	}
	return last;
}

/* How many cohorts lie behind the last that was seen to keep something. */
static unsigned unseen(const struct stay *s)
{
	unsigned gap = 0;
	while (gap + 1 < s->count && (!s->member[s->count - 1 - gap] || s->assumed[s->count - 1 - gap]))
		gap++;
	return gap;
}

/* What the last ones keep by their age has to be seen in the level, too: a cache that is full and drops any of its
 * blocks, young ones too, keeps some of each cohort, and there is no more of it. */
static bool is_full(const struct stay *s, const double *levels, unsigned from, unsigned count)
{
	double more[COHORTS];
	const unsigned quarter = count > from ? (count - from) / 4 : 0, late = count - quarter;
	if (quarter < 2)
		return false;
	for (unsigned i = late; i < count; i++)
		more[i] = levels[i] - levels[i - 1];
	const double stays = sum_of(s->bytes, late, count), rise = sum_of(more, late, count);
	return rise < LEVELS_OFF * stays && stays - rise > SURE_OF * sqrt(variance_of_sum(more, late, count));
}

static void judge_since(struct outlook_found *f, const struct stay *s, const struct cohort_clock *clock,
			const double *levels, unsigned from)
{
	const unsigned gap = s->count - 1 - last_of(s, from);
	f->from = from;
	f->members = members_from(s, from);
	const double chance =
		chance_of_gap(gap, s->count - from, f->members < OUTLOOK_MOST ? f->members : OUTLOOK_MOST);
	const bool stopped = chance < BY_CHANCE && !is_in_bursts(s, from, gap);
	f->freed = freed_since(clock, from, f->count);
	f->ended = stopped;
	f->outlook = stopped || levels_off(s->bytes, from, s->count) || is_full(s, levels, from, f->count - 1)
			     ? OUTLOOK_STOPPED
		     : f->members < (f->freed < WORKS ? OUTLOOK_LEAST : OUTLOOK_MANY) ? OUTLOOK_SHORT
		     : f->freed < WORKS                                               ? OUTLOOK_GROWS
										      : OUTLOOK_LEAKS;
	const double seen = chance_of_gap(unseen(s), s->count - from, OUTLOOK_MOST);
	f->certainty = f->members >= SURE && fmin(chance, seen) >= SURE_CHANCE ? CERTAINTY_HIGH : CERTAINTY_MEDIUM;
}

/* What follows start-up may be a small part beside it, and go on all the same. Where it doesn't, start-up counts. */
static void judge_staying(struct outlook_found *f, struct stay *s, const struct cohort_clock *clock,
			  const struct cohort_table *t, const double *levels, double alive)
{
	const unsigned from = behind_start_up(s, clock->least);
	judge_since(f, s, clock, levels, from);
	if (!outlook_goes_on(f->outlook) || sum_of(s->bytes, from, s->count) < STAYS * sum_of(t->alive, from, s->count))
		judge_since(f, s, clock, levels, behind_start_up(s, fmax(STAYS * alive, clock->least)));
}

/* What was all made anew half-way (a table that moves to another line) has no old survivors, but there is more of it
 * all the time: then its level is what grows. */
static void grows_by_level(struct outlook_found *f, const double *levels, bool evenly)
{
	const unsigned whole = f->count - 1;
	const bool may = f->outlook == OUTLOOK_SHORT || (f->outlook == OUTLOOK_STOPPED && !f->ended);
	if (!may || !evenly || f->rise <= 0)
		return;
	f->from = 0;
	for (unsigned i = 0; i < f->count; i++)
		f->kept[i] = levels[i < whole ? i : whole - 1];
	f->outlook = f->freed >= WORKS ? OUTLOOK_LEAKS : OUTLOOK_GROWS;
	f->certainty = CERTAINTY_MEDIUM;
}

/* What part of the last stretch is over. What is alive of it may be just what the program is at. */
static double part_of_last(const struct cohort_clock *k, unsigned last)
{
	double made = 0;
	for (unsigned i = 0; i < last; i++)
		made += k->made[i].bytes / last;
	return made > 0 ? fmin(k->made[last].bytes / made, 1) : 1;
}

/* No more than an older cohort keeps for good: of one that has not got old, the rest may be what a collector was about
 * to free. */
static void limit_young(struct stay *s, unsigned old, unsigned whole)
{
	double most = 0;
	for (unsigned i = 0; i < old; i++)
		most = fmax(most, s->bytes[i]);
	for (unsigned i = old; old && i < whole; i++)
		s->bytes[i] = fmin(s->bytes[i], most);
}

/* What the last stretch keeps. Where blocks pass within a stretch, some of its may be just what the program is at: then
 * no more than another stretch does; growth may accelerate. */
static double kept_of_last(const struct stay *s, const struct cohort_table *t, const struct cohort_clock *k,
			   unsigned last, double rest)
{
	const double usual = last ? fmax(mean_of(s->bytes, 0, last), s->bytes[last - 1]) : 0;
	return t->passing > 0 ? fmin(t->alive[last], part_of_last(k, last) * usual) : t->alive[last] * rest;
}

/* ---- what gathers -------------------------------------------------------------------------------------- */

/* In which cohorts what was freed in stretch `at` had come, if that was all there was by then; else 0. */
static unsigned gathered_until(const struct cohort_table *t, unsigned at)
{
	double freed = 0, left = 0;
	unsigned cohorts = 0;
	for (unsigned made = 0; made < at; made++) {
		freed += t->died[made][at];
		left += t->alive[made] + sum_of(t->died[made], at + 1, COHORTS);
		cohorts += t->died[made][at] > 0;
	}
	return left <= OUTLOOK_FLOOR * (freed + left) ? cohorts : 0;
}

/* How often all of it was freed at once, which had gathered for longer than steps take. */
static unsigned times_gathered(const struct cohort_table *t, unsigned count, unsigned step)
{
	unsigned times = 0;
	for (unsigned at = 1; at < count; at++) {
		const unsigned cohorts = gathered_until(t, at);
		times += cohorts >= OUTLOOK_LEAST && cohorts > step + 1; /* a step may begin within one */
	}
	return times;
}

/* ---- all ----------------------------------------------------------------------------------------------- */

struct outlook_found outlook_of(const struct cohort_table *t, const struct cohort_clock *clock, unsigned step)
{
	struct outlook_found f = { .count = clock->count };
	const unsigned whole = f.count ? f.count - 1 : 0; /* the last stretch is not over */
	const struct survival s = survival_of(t, whole);
	const unsigned age = old_age(&s);
	struct stay stay = { .count = whole > age ? whole - age : 0 };
	const double alive = sum_of(t->alive, 0, f.count);
	if (whole > step && stay.count > whole - step)
		stay.count = whole - step;
	else if (whole <= step)
		stay.count = 0;
	for (unsigned i = 0; i < whole; i++) {
		stay.bytes[i] = s.part[whole - i] > 0 ? t->alive[i] * s.rest / s.part[whole - i] : 0;
		stay.assumed[i] = 2 * t->assumed[i] > t->alive[i];
	}
	limit_young(&stay, whole > age ? whole - age : 0, whole);
	if (whole)
		stay.bytes[whole] = kept_of_last(&stay, t, clock, whole, s.rest);
	for (unsigned i = 0; i < f.count; i++)
		f.kept[i] = (i ? f.kept[i - 1] : 0) + stay.bytes[i];
	if (alive < clock->least)
		return f;
	const double stays = sum_of(stay.bytes, 0, stay.count), least = fmax(STAYS * alive, clock->least);
	bool evenly;
	double levels[COHORTS];
	levels_of(t, whole, levels);
	const unsigned since = t->since ? t->since - 1 : beginning(levels, whole),
		       began = since < whole ? since : whole;
	f.rise = rise(levels + began, whole - began, &evenly);
	if (stays < least && s.rest > STAYS && !is_in_order(t, began, whole)) {
		f.outlook = OUTLOOK_SHORT; /* what doesn't die has not got old enough */
	} else if (stays < least) {
		judge_passing(&f, t, alive, began, clock->least);
	} else {
		judge_staying(&f, &stay, clock, t, levels, alive);
		grows_by_level(&f, levels, evenly);
		if (sum_of(t->single, f.from, f.count) >= SINGLE * sum_of(t->alive, f.from, f.count) &&
		    outlook_goes_on(f.outlook))
			f.outlook = OUTLOOK_SHORT; /* one large piece of work: nothing of it has come again */
		if (outlook_goes_on(f.outlook) && times_gathered(t, whole, step) >= GATHERED)
			f.outlook = OUTLOOK_GATHERS;
		f.bytes = f.count ? f.kept[f.count - 1] - (f.from ? f.kept[f.from - 1] : 0) : 0;
		for (unsigned i = f.from; i < f.count; i++)
			f.blocks += t->alive[i] > 0 ? t->blocks[i] * stay.bytes[i] / t->alive[i] : 0;
	}
	return f;
}

unsigned outlook_begins(const struct cohort_table *t, unsigned count)
{
	double levels[COHORTS];
	levels_of(t, count, levels);
	return beginning(levels, count);
}

const char *outlook_name(enum outlook o)
{
	static const char *const names[] = {
		"none",   "leaks",      "grows",     "backlog", "collected",        "stopped",
		"passes", "needs more", "gives way", "gathers", "too little to say"
	};
	return names[o];
}

char *outlook_why_no_leak(enum outlook o)
{
	switch (o) {
	case OUTLOOK_GIVES_WAY:
		return output_format("in pages of files, which are reclaimable");
	case OUTLOOK_COLLECTED:
		return output_format(
			"in the heap of a runtime that collects garbage: only its own heap dump tells what is live");
	case OUTLOOK_PASSES:
		return output_format("by blocks that come and go: almost none is retained");
	case OUTLOOK_NEEDS_MORE:
		return output_format(
			"in the second half, by blocks that come and go: almost none is retained, but more or larger ones are "
			"live at a time");
	case OUTLOOK_BACKLOG:
		return output_format(
			"by blocks that wait longer and longer until they are freed: more are made than freed");
	case OUTLOOK_STOPPED:
		return output_format("at first, then stopped: a load, a warm-up, or a cache that is full now");
	case OUTLOOK_GATHERS:
		return output_format("since all of it was freed at once, as it was several times before; a trace can't "
				     "tell whether it will be again");
	case OUTLOOK_GROWS:
		return output_format(
			"while hardly anything else was freed: loading, or a leak; a trace can't tell which");
	default:
		return output_format("too seldom to say whether it goes on");
	}
}
