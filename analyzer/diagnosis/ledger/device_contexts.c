#include "analyzer/diagnosis/ledger/device_contexts.h"

#include "analyzer/diagnosis/ledger/device_ledger.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

#define NOTABLE 1000 /* a change by less than this part of the device is none */

struct look {
	const struct model *model;
	const struct samples *samples;
	const struct model_device *device;
	struct device_contexts *contexts;
	uint64_t *bytes; /* by share: of the context as it was seen last; 0 = not yet */
};

static int change(struct device_contexts *c, uint64_t ns, uint64_t from, uint64_t to)
{
	if (vec_reserve(c->changes, c->room, c->count + 1) < 0)
		return -MT_EMEMORY;
	c->changes[c->count++] = (struct device_contexts_change){ ns, (int64_t)(to - from) };
	return 0;
}

static int see(struct look *k, unsigned share, uint64_t ns, uint64_t bytes)
{
	const struct model_share *s = k->device->shares[share];
	const uint64_t last = k->bytes[share], differs = bytes > last ? bytes - last : last - bytes;
	if (last && differs <= k->device->total_bytes / NOTABLE)
		return 0;
	k->bytes[share] = bytes;
	return change(k->contexts, last ? ns : lower(ns, s->first_ns), last, bytes);
}

static bool has_ended(const struct process *p, uint64_t ns)
{
	return p->state == PROCESS_ENDED && ns >= p->end_ns;
}

static int take_sample(void *arg, const struct sample *x)
{
	struct look *k = arg;
	const struct sample_subject *subject = x->subject;
	if (subject->kind != MT_SUBJECT_DEVICE_PROCESS || !subject->traced || x->gone ||
	    !(x->fields >> MT_DEVICE_PROCESS_bytes & 1) || !device_ledger_is_of(k->device, subject))
		return 0;
	const struct process *p = samples_process(k->samples, subject, x->ns);
	for (unsigned i = 0; p && i < k->device->share_count; i++) {
		const struct model_share *s = k->device->shares[i];
		uint64_t own, bytes;
		if (s->process->id != p->id || has_ended(p, x->ns) ||
		    !device_ledger_still_at(k->model, &s->timeline[LAYER_MEMORY], x->ns, &own))
			continue;
		bytes = device_ledger_context(x->value[MT_DEVICE_PROCESS_bytes], own);
		return bytes == MODEL_UNKNOWN || !bytes ? 0 : see(k, i, x->ns, bytes);
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct device_contexts_change *x = a, *y = b;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

int device_contexts_make(struct device_contexts *c, const struct model *m, const struct samples *samples,
			 const struct model_device *d)
{
	struct look k = { m, samples, d, c, calloc(d->share_count + 1ul, sizeof(*k.bytes)) };
	*c = (struct device_contexts){ 0 };
	int e = k.bytes ? samples_each(samples, 0, UINT64_MAX, take_sample, &k) : error_memory();
	for (unsigned i = 0; i < d->share_count && e == 0; i++)
		if (k.bytes[i] && d->shares[i]->process->state == PROCESS_ENDED)
			e = change(c, d->shares[i]->process->end_ns, k.bytes[i], 0);
	if (c->count)
		qsort(c->changes, c->count, sizeof(*c->changes), by_time);
	free(k.bytes);
	return e;
}

void device_contexts_fini(struct device_contexts *c)
{
	free(c->changes);
	*c = (struct device_contexts){ 0 };
}
