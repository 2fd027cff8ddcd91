/* Which stacks grow, as memtrace leaks says. */
#include "analyzer/diagnosis/growth/leaks.h"
#include "analyzer/reduce/reduce_internal.h"
#include "analyzer/util/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool grows(const struct leak *leak)
{
	return leak->owner_growth && leak->owner_growth->outlook && leak_counts(leak) && leak->owner->stack_count;
}

static int add(struct reduction *r, const struct leak *leak, struct site_grows *out)
{
	const struct owner_growth *t = leak->owner_growth;
	const struct stack_name *name = stack_names_find(r->names, leak->owner->stacks->stack);
	if (!name)
		return error_memory();
	*out = (struct site_grows){ .rank = r->ranks.of[t->process], .kind = leak->kind };
	memcpy(out->stack, name->hash, sizeof(out->stack));
	out->outlook = outlook_name(t->outlook);
	out->certainty = certainty_name(t->growth.certainty);
	out->grown = t->growth.bytes;
	out->per_s = growth_saw_a_second(&t->growth) ? owner_growth_per_second(t) : NAN;
	out->per_step = t->growth.stepped ? t->growth.rate : NAN;
	out->error = t->growth.rate_error;
	return 0;
}

int growth_list(struct reduction *r, struct site_grows **list, size_t *count)
{
	struct leaks l;
	int e = leaks_init(&l, r->selection, r->analysis.timeline, NULL, NULL);
	*list = NULL;
	*count = 0;
	if (e < 0) {
		r->analysis.timeline = NULL; /* it has taken that over */
		return e;
	}
	size_t n = 0;
	for (size_t i = 0; i < l.count; i++)
		n += grows(&l.list[i]);
	*list = calloc(n + 1, sizeof(**list));
	if (!*list)
		e = error_memory();
	for (size_t i = 0; e == 0 && i < l.count; i++)
		if (grows(&l.list[i]) && (e = add(r, &l.list[i], &(*list)[*count])) == 0)
			++*count;
	l.timeline = NULL; /* the analysis's again */
	leaks_fini(&l);
	return e;
}
