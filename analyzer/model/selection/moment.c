#include "analyzer/model/selection/moment.h"

#include "analyzer/util/error.h"

#include <stdlib.h>

bool moment_is_time(const struct when *w)
{
	return w->kind != WHEN_UNSET && w->kind != WHEN_PEAK && w->kind != WHEN_END;
}

static uint64_t peak_ns(const struct selection *sel, enum model_kind kind, const struct model_device *d)
{
	return d ? d->layer[kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY].peak_ns
		 : model_totals(sel->model, kind).peak_ns;
}

static int add_moment(struct moments *m, const struct selection *sel, enum owners_measure measure, uint64_t ns,
		      enum model_kind kind, const struct model_device *d)
{
	struct moment *at = &m->moments[m->count++];
	*at = (struct moment){ .kind = kind, .device = d, .measure = measure, .ns = ns };
	return d ? selection_device_owners(sel, measure, kind, d->index, &at->sites)
		 : selection_owners(sel, measure, kind, NULL, &at->sites);
}

static int find_kind(struct moments *m, const struct selection *sel, bool end, enum model_kind kind,
		     const struct model_device *d)
{
	const bool peak = sel->options->at.kind == WHEN_UNSET || sel->options->at.kind == WHEN_PEAK;
	const uint64_t peak_at = peak_ns(sel, kind, d), end_at = model_end_ns(sel->model);
	int e = peak ? add_moment(m, sel, OWNERS_HOST_PEAK, peak_at, kind, d) : 0;
	if (e == 0 && (!peak || (end && end_at > peak_at)))
		e = add_moment(m, sel, OWNERS_LIVE, end_at, kind, d);
	return e;
}

static int find_all(struct moments *m, const struct selection *sel, bool end)
{
	int e = 0;
	for (int kind = 0; e == 0 && kind < MODEL_HOST_KINDS; kind++)
		if (sel->kinds & 1u << kind)
			e = find_kind(m, sel, end, kind, NULL);
	for (unsigned i = 0; i < model_devices(sel->model); i++)
		for (int kind = MODEL_POOL; e == 0 && kind >= MODEL_DEVICE; kind--)
			if (sel->kinds & 1u << kind && selection_has_device(sel, i))
				e = find_kind(m, sel, end, kind, model_device(sel->model, i));
	return e;
}

int moments_find(struct moments *m, const struct selection *sel, bool end)
{
	const size_t kinds = MODEL_HOST_KINDS + 2ul * model_devices(sel->model);
	*m = (struct moments){ calloc(2 * kinds, sizeof(*m->moments)), 0 };
	if (!m->moments)
		return error_memory();
	int e = find_all(m, sel, end);
	bool any = false;
	for (size_t i = 0; e == 0 && i < m->count; i++)
		any = any || m->moments[i].sites->count;
	return e == 0 ? selection_check_filter(sel, any) : e;
}

void moments_fini(struct moments *m)
{
	for (size_t i = 0; i < m->count; i++)
		owners_free(m->moments[i].sites);
	free(m->moments);
	*m = (struct moments){ 0 };
}
