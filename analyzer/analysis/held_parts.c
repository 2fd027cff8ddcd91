#include "analyzer/analysis/held.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>

struct adding {
	struct held_parts *parts;
	const struct held_snapshot *held;
	const struct selection *sel;
};

static int add_part(struct adding *a, unsigned kind, const struct model_device *device)
{
	struct holders_query q = { .kind = kind, .device = device ? device->index : MODEL_NO_DEVICE };
	int e = vec_reserve(a->parts->list, a->parts->room, a->parts->count + 1);
	if (e)
		return e;
	struct held_part *part = &a->parts->list[a->parts->count++];
	*part = (struct held_part){ .kind = kind, .device = device };
	e = holders_find(&part->holders, a->held->graph, &q);
	if (!e && !part->holders->bytes) {
		holders_free(part->holders);
		a->parts->count--;
	}
	return e;
}

static bool wants_kind(const struct adding *a, unsigned kind, const struct model_device *device)
{
	const struct selection *sel = a->sel;
	if (device)
		return selection_has_device(sel, device->index);
	if (!sel->options->device)
		return kind != MODEL_MAP;
	return kind == HOLDERS_SMALL ? (sel->kinds & 1u << MODEL_HEAP) != 0 : (sel->kinds & 1u << kind) != 0;
}

static int add_parts(struct adding *a)
{
	static const unsigned host[] = { MODEL_HEAP, HOLDERS_SMALL, MODEL_PINNED, MODEL_MAP };
	int e = 0;
	for (unsigned i = 0; !e && i < model_devices(a->sel->model); i++) {
		const struct model_device *d = model_device(a->sel->model, i);
		bool pool = d->layer[LAYER_POOL].live_bytes != 0;
		if (wants_kind(a, MODEL_POOL, d))
			e = add_part(a, pool ? MODEL_POOL : MODEL_DEVICE, d);
	}
	for (unsigned i = 0; !e && i < 4; i++)
		if (wants_kind(a, host[i], NULL))
			e = add_part(a, host[i], NULL);
	return e;
}

int held_parts_find(struct held_parts *parts, const struct held_snapshot *s, const struct selection *sel)
{
	struct adding a = { parts, s, sel };
	*parts = (struct held_parts){ 0 };
	return add_parts(&a);
}

void held_parts_free(struct held_parts *parts)
{
	for (size_t i = 0; i < parts->count; i++)
		holders_free(parts->list[i].holders);
	free(parts->list);
}

static int each_of(const struct selection *sel, unsigned id,
		   void (*f)(void *arg, const struct held_pass *p, const struct held_part *part), void *arg)
{
	struct held_pass p;
	struct held_parts parts = { 0 };
	int n = held_pass_heads(&p, sel, id), e = n < 0 ? n : 0;
	if (n > 0)
		e = held_open(&p.held, &p.sel, held_best(&p.held));
	if (n > 0 && !e)
		e = held_parts_find(&parts, &p.held, &p.sel);
	for (size_t i = 0; !e && i < parts.count; i++)
		f(arg, &p, &parts.list[i]);
	held_parts_free(&parts);
	held_pass_close(&p);
	return e;
}

int held_each_part(const struct selection *sel, int most,
		   void (*f)(void *arg, const struct held_pass *p, const struct held_part *part), void *arg)
{
	unsigned *ids = calloc((size_t)most, sizeof(*ids));
	int n = ids ? held_largest(sel, ids, most) : error_memory(), e = n < 0 ? n : 0;
	for (int i = 0; !e && i < n; i++)
		e = each_of(sel, ids[i], f, arg);
	free(ids);
	return e;
}
