#include "analyzer/analysis/held.h"
#include "analyzer/util/vec.h"

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
