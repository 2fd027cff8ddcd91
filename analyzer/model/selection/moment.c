#include "analyzer/model/selection/moment.h"

#include "analyzer/util/error.h"

#include <stdlib.h>

bool moment_is_time(const struct when *w)
{
	return w->kind != WHEN_UNSET && w->kind != WHEN_PEAK && w->kind != WHEN_END;
}

static int find_moment(const struct selection *sel, struct moment *at, enum model_kind kind,
		       const struct model_device *d)
{
	const struct when *when = &sel->options->at;
	*at = (struct moment){ .kind = kind, .device = d, .measure = OWNERS_LIVE, .ns = model_end_ns(sel->model) };
	if (when->kind == WHEN_UNSET || when->kind == WHEN_PEAK) {
		at->measure = OWNERS_HOST_PEAK;
		at->ns = d ? d->layer[kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY].peak_ns
			   : model_totals(sel->model, kind).peak_ns;
	}
	return d ? selection_device_owners(sel, at->measure, kind, d->index, &at->sites)
		 : selection_owners(sel, at->measure, kind, NULL, &at->sites);
}

static int find_all(struct moments *m, const struct selection *sel)
{
	int e = 0;
	for (int kind = 0; e == 0 && kind < MODEL_HOST_KINDS; kind++)
		if (sel->kinds & 1u << kind)
			e = find_moment(sel, &m->moments[m->count++], kind, NULL);
	for (unsigned i = 0; i < model_devices(sel->model); i++)
		for (int kind = MODEL_POOL; e == 0 && kind >= MODEL_DEVICE; kind--)
			if (sel->kinds & 1u << kind && selection_has_device(sel, i))
				e = find_moment(sel, &m->moments[m->count++], kind, model_device(sel->model, i));
	return e;
}

int moments_find(struct moments *m, const struct selection *sel)
{
	*m = (struct moments){ calloc(MODEL_HOST_KINDS + 2ul * model_devices(sel->model), sizeof(*m->moments)), 0 };
	if (!m->moments)
		return error_memory();
	int e = find_all(m, sel);
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
