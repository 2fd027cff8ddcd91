#include "analyzer/diagnosis/diagnosis_data.h"

#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>

const struct model_oom *diagnosis_failure(const struct model_device *d)
{
	const struct model_oom *last = d->oom_count ? &d->oom[d->oom_count - 1] : NULL;
	for (unsigned i = 0; i < d->oom_count; i++)
		if (d->oom[i].outcome == OUTCOME_FATAL)
			last = &d->oom[i];
	return last;
}

static void *keep(struct diagnosis *diagnosis, void *p)
{
	struct diagnosis_parts *k = diagnosis->parts;
	if (!p || vec_reserve(k->kept, k->kept_room, k->kept_count + 1) < 0) {
		free(p);
		return NULL;
	}
	return k->kept[k->kept_count++] = p;
}

const char *diagnosis_own_text(struct diagnosis *diagnosis, char *text)
{
	return keep(diagnosis, text);
}

void *diagnosis_alloc(struct diagnosis *diagnosis, size_t bytes)
{
	return keep(diagnosis, calloc(1, bytes ? bytes : 1));
}

const struct device_ledger *diagnosis_ledger(struct diagnosis *diagnosis, const struct model_device *d,
					     const struct model_moment *at)
{
	const struct selection *sel = diagnosis->selection;
	struct diagnosis_parts *p = diagnosis->parts;
	for (size_t i = 0; i < p->ledger_count; i++)
		if (p->ledgers[i]->device == d && p->ledgers[i]->at == at)
			return p->ledgers[i];
	struct device_ledger *l = calloc(1, sizeof(*l));
	if (!l || vec_reserve(p->ledgers, p->ledger_room, p->ledger_count + 1) < 0) {
		free(l);
		return NULL;
	}
	p->ledgers[p->ledger_count++] = l;
	int e = device_ledger_make(l, sel->model, sel->reader, timeline_samples(diagnosis->timeline), sel->stacks, d,
				   at);
	return e < 0 ? NULL : l;
}

static const char *place_of(struct diagnosis *diagnosis, const struct frame *f)
{
	return f ? diagnosis_own_text(diagnosis, frame_place(f)) : "(no stack)";
}

const char *diagnosis_site(struct diagnosis *diagnosis, uint32_t stack)
{
	return place_of(diagnosis, stacks_site_frame(diagnosis->selection->stacks, stack,
						     selection_flags(diagnosis->selection->options)));
}

const char *diagnosis_extension(struct diagnosis *diagnosis, uint32_t stack)
{
	const struct frame *own = stacks_extension(diagnosis->selection->stacks, stack);
	return own ? place_of(diagnosis, own) : NULL;
}

/* The part of the stack is a call: what it made is the program's innermost line on its way. */
const char *diagnosis_call(struct diagnosis *diagnosis, uint32_t stack)
{
	return place_of(diagnosis,
			stacks_site(diagnosis->selection->stacks, stacks_merged(diagnosis->selection->stacks, stack),
				    selection_flags(diagnosis->selection->options))
				.frame);
}

uint32_t diagnosis_stack(const struct diagnosis *diagnosis, const struct snapshot_block *b)
{
	const struct model_site *s = model_site(diagnosis->selection->model, b->process->id, b->site);
	return s ? stacks_of_site(diagnosis->selection->stacks,
				  model_process(diagnosis->selection->model, s->process)->process, b->site, s->node,
				  s->node2)
		 : 0;
}

bool diagnosis_copies_on(const struct copy_set *s, uint32_t device)
{
	return (s->space & 0xff) == (device == MODEL_NO_DEVICE ? 0xff : device & 0x7f);
}
