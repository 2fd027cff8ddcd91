#include "analyzer/diagnosis/growth/start_up.h"

#include <math.h>

/* The bytes of a container that has moved may have other ages in a track than in its site: more may be taken away than
 * there is. */
static void keep_positive(struct cohort_table *t)
{
	for (unsigned made = 0; made < COHORTS; made++) {
		t->alive[made] = fmax(t->alive[made], 0);
		t->blocks[made] = fmax(t->blocks[made], 0);
		for (unsigned freed = 0; freed < COHORTS; freed++)
			t->died[made][freed] = fmax(t->died[made][freed], 0);
	}
	t->passing = fmax(t->passing, 0);
}

static bool is_start_up(const struct model_site *s, const struct reader *r, struct stacks *stacks, owners_fold *fold)
{
	return fold(stacks, stacks_of_site(stacks, reader_process(r, s->process), s->number, s->node, s->node2));
}

void start_up_less(struct cohort_table *t, const struct cohorts *c, const struct model *m, const struct reader *r,
		   struct stacks *stacks, owners_fold *fold, const struct growth_place *of)
{
	const uint32_t count = fold ? cohorts_sites(c, of->process) : 0;
	cohorts_add_track(c, of->process, of->kind, of->device, t);
	for (uint32_t number = 0; number < count; number++) {
		if (!cohorts_has(c, of->process, number))
			continue;
		const struct model_site s = model_site_key(m, of->process, number);
		if (s.kind == of->kind && s.device == of->device && is_start_up(&s, r, stacks, fold))
			cohorts_add_site(c, of->process, number, -owners_weight(r, &s), t);
	}
	keep_positive(t);
}
