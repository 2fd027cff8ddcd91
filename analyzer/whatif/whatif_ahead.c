#include "analyzer/whatif/whatif_ahead.h"

#include "analyzer/diagnosis/growth/leaks.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>

struct whatif_ahead {
	struct selection *sel;
	struct leaks leaks; /* has the timeline */
	bool has_leaks;
	struct analysis analysis; /* without it */
};

int whatif_ahead_new(struct whatif_ahead **out, struct selection *sel, bool copies)
{
	const unsigned wants = copies ? ANALYSIS_HOST | ANALYSIS_DIAGNOSIS : 0;
	struct whatif_ahead *w = *out = calloc(1, sizeof(*w));
	struct analysis a;
	if (!w)
		return error_memory();
	w->sel = sel;
	int e = analysis_run(&a, sel, ANALYSIS_TIMELINE | wants, NULL, NULL);
	w->analysis = a;
	if (e)
		return e;
	w->has_leaks = true;
	w->analysis.timeline = NULL;
	return leaks_init(&w->leaks, sel, a.timeline, NULL,
			  w->analysis.diagnosis ? &w->analysis.diagnosis->findings : NULL);
}

void whatif_ahead_free(struct whatif_ahead *w)
{
	if (!w)
		return;
	if (w->has_leaks)
		leaks_fini(&w->leaks);
	analysis_free(&w->analysis);
	free(w);
}

/* ---- behind the end ---------------------------------------------------------------------------------------- */

static uint32_t device_of(const struct whatif_ahead *w, const struct replay_track *t)
{
	for (uint32_t i = 0; t->device && i < model_devices(w->sel->model); i++)
		if (!strcmp(model_device(w->sel->model, i)->uuid, t->device->uuid))
			return i;
	return MODEL_NO_DEVICE;
}

struct whatif_growth whatif_growth_of(const struct whatif_ahead *w, const struct replay_track *t,
				      const struct replay_outcome *o)
{
	struct whatif_growth found = { .until = forecast_never };
	const struct step_list *steps = timeline_step_list(w->leaks.timeline, t->process->id);
	const uint32_t device = device_of(w, t);
	const uint64_t unusable = less(o->figures.most_reserved, o->figures.most_used);
	for (size_t i = 0; steps && device != MODEL_NO_DEVICE && i < steps->track_count; i++) {
		const struct step_track *track = &steps->tracks[i];
		if (track->kind != MODEL_POOL || track->device != device)
			continue;
		const struct growth g = timeline_growth(steps, track);
		found.grows = growth_is_steady(&g) && g.rate > 0 && !growth_is_brief(&g);
		found.stepped = g.stepped;
		found.rate = g.rate;
		/* of what lies unused some will serve */
		const struct forecast_room room = { .limit = (double)less(o->room, unusable / 2),
						    .doubt = (double)unusable };
		if (found.grows && o->room != UINT64_MAX)
			found.until = owner_growth_forecast_to(steps, track, &g, room);
	}
	return found;
}

struct steps_rise whatif_rest_of_step(const struct whatif_ahead *w, const struct replay_track *t)
{
	const uint32_t device = device_of(w, t);
	const struct model_oom *last = NULL;
	struct steps_rise rest = { UINT64_MAX, UINT64_MAX };
	if (device == MODEL_NO_DEVICE)
		return rest;
	const struct model_device *d = model_device(w->sel->model, device);
	for (unsigned i = 0; i < d->oom_count; i++)
		if (d->oom[i].process == t->process->id && (!last || d->oom[i].at.ns >= last->at.ns))
			last = &d->oom[i];
	if (last)
		rest = findings_rise(w->leaks.findings, w->leaks.timeline, t->process->id, device, last->at.ns);
	if (rest.scaled == UINT64_MAX)
		return rest;
	return (struct steps_rise){ less(rest.scaled, last->requested_bytes),
				    less(rest.unscaled, last->requested_bytes) };
}

/* ---- leaks ------------------------------------------------------------------------------------------------- */

static int grew_more(const void *a, const void *b)
{
	const struct leak_group *x = a, *y = b;
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static int add_stacks(struct whatif_ahead *w, const struct owner *o, uint32_t **stacks, size_t *count, size_t *room)
{
	for (size_t i = 0; i < o->stack_count; i++) {
		int e = vec_reserve_raw(*stacks, *room, *count + 1);
		if (e)
			return e;
		(*stacks)[(*count)++] = stacks_merged(w->sel->stacks, o->stacks[i].stack);
	}
	return 0;
}

int whatif_leak(struct whatif_ahead *w, unsigned long number, uint32_t **stacks, size_t *count)
{
	const struct leaks *l = &w->leaks;
	struct leak_group *groups = calloc(l->groups + 1ul, sizeof(*groups));
	size_t found = 0, room = 0;
	int e = groups ? 0 : error_memory();
	for (unsigned group = 1; group <= l->groups && !e; group++)
		if ((groups[found] = leaks_group(l, group)).sites && groups[found].most->kind == MODEL_POOL)
			found++;
	if (found)
		qsort(groups, found, sizeof(*groups), grew_more);
	if (!e && (number < 1 || number > found))
		e = error_set(MT_EUSAGE, "--without", ERROR_NO_OFFSET, "leak:%lu: %zu leak%s in pools", number, found,
			      found == 1 ? " is" : "s are");
	const unsigned wanted = e ? 0 : groups[number - 1].most->owner_growth->group;
	for (size_t i = 0; i < l->count && !e; i++)
		if (leak_leaks(&l->list[i]) && l->list[i].owner_growth->group == wanted)
			e = add_stacks(w, l->list[i].owner, stacks, count, &room);
	free(groups);
	return e;
}

/* ---- copies ------------------------------------------------------------------------------------------------ */

static bool is_on_device(const struct copy_set *s)
{
	return (s->space & 0xff) != 0xff;
}

int whatif_copies(struct whatif_ahead *w, uint32_t **calls, size_t *count)
{
	const struct copies *c = &w->analysis.diagnosis->copies;
	size_t room = 0, sets = 0;
	int e = 0;
	for (size_t i = 0; i < c->count && !e; i++) {
		const struct copy_set *s = &c->sets[i];
		sets += is_on_device(s);
		for (unsigned k = 0; is_on_device(s) && k < s->count && !e; k++) {
			if (k == s->stays || s->owners[k].stack == s->owners[s->stays].stack)
				continue;
			e = vec_reserve_raw(*calls, room, *count + 1);
			if (!e)
				(*calls)[(*count)++] = s->owners[k].stack;
		}
	}
	if (e || *count)
		return e;
	return error_set(MT_EUSAGE, "--without", ERROR_NO_OFFSET,
			 sets ? "copies: all of them are made by the same call" : "copies: none are on a device");
}
