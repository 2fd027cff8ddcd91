#include "analyzer/model/lifetimes.h"

#include "analyzer/util/minmax.h"

#include <stdlib.h>

enum { STRETCHES = LIFETIMES_STRETCHES };

#define NEARLY_ALL 0.95 /* of the bytes that were freed: at the age that these had, a block is overdue */
#define OVERDUE    0.25 /* of what grew: more is a leak. outlook_why_no_leak() says so in words */
/* of what grew, that went meanwhile: where nothing goes all of it is kept, if only until an epoch ends */
#define WENT 0.25

struct lifetimes {
	uint64_t alive[STRETCHES];    /* by the stretch that it was made in */
	uint64_t by_age[STRETCHES];   /* freed, by age */
	uint64_t freed_in[STRETCHES]; /* freed in that stretch, of those made before it */
	uint64_t live, most;          /* most: at a look */
	uint64_t overdue;             /* then */
	uint32_t looked;              /* in this stretch */
};

struct lifetimes *lifetimes_new(void)
{
	return calloc(1, sizeof(struct lifetimes));
}

void lifetimes_free(struct lifetimes *l)
{
	free(l);
}

void lifetimes_add(struct lifetimes *l, uint32_t now, uint64_t bytes)
{
	l->alive[now] += bytes;
	l->live += bytes;
}

void lifetimes_remove(struct lifetimes *l, uint32_t now, uint32_t made, uint64_t bytes)
{
	l->alive[made] = less(l->alive[made], bytes);
	l->live = less(l->live, bytes);
	l->by_age[now - made] += bytes;
	l->freed_in[now] += made < now ? bytes : 0;
}

/* The age that nearly all of what was freed had not passed. */
static uint32_t usual_age(const struct lifetimes *l)
{
	uint64_t all = 0, sum = 0;
	uint32_t age = 0;
	for (unsigned i = 0; i < STRETCHES; i++)
		all += l->by_age[i];
	while (age + 1 < STRETCHES && (double)(sum += l->by_age[age]) < NEARLY_ALL * (double)all)
		age++;
	return age;
}

void lifetimes_begin_stretch(struct lifetimes *l, uint32_t now)
{
	if (l->live < l->most)
		return;
	uint32_t age = usual_age(l);
	l->most = l->live;
	l->looked = now;
	l->overdue = 0;
	for (uint32_t made = 0; made + age + 1 < now; made++)
		l->overdue += l->alive[made];
}

static void halve(uint64_t list[STRETCHES])
{
	for (unsigned i = 0; i < STRETCHES; i++)
		list[i] = i < STRETCHES / 2 ? list[2 * i] + list[2 * i + 1] : 0;
}

void lifetimes_halve(struct lifetimes *l)
{
	halve(l->alive);
	halve(l->by_age);
	halve(l->freed_in);
	l->looked /= 2;
}

struct lifetimes_found lifetimes_since(const struct lifetimes *l, uint32_t stretch)
{
	struct lifetimes_found f = { 0 };
	for (uint32_t i = 0; l && i <= l->looked && i < STRETCHES; i++) {
		f.freed += (double)l->freed_in[i];
		f.since += i >= stretch ? (double)l->freed_in[i] : 0;
	}
	f.overdue = l ? (double)l->overdue : 0;
	return f;
}

bool lifetimes_passes(const struct lifetimes_found *f, double grown)
{
	return grown > 0 && f->overdue < OVERDUE * grown && f->freed >= grown && f->since >= WENT * grown;
}
