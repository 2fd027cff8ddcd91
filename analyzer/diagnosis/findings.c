#include "analyzer/diagnosis/findings.h"

#include "analyzer/util/vec.h"

/* All that cohorts know of, with what was alive at the track's end. */
static int list_sites(struct findings *f, const struct cohorts *c, const struct selection *v)
{
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const uint32_t count = cohorts_sites(c, id);
		for (uint32_t number = 0; number < count; number++) {
			uint32_t blocks;
			const uint64_t bytes = cohorts_live(c, id, number, &blocks);
			if (!bytes)
				continue;
			if (vec_reserve_raw(f->sites, f->site_room, f->site_count + 1))
				return error_memory();
			struct model_site *s = &f->sites[f->site_count++];
			*s = model_site_key(v->model, id, number);
			s->live_bytes = bytes;
			s->live_blocks = blocks ? blocks : 1;
		}
	}
	return 0;
}

static int add_owners(struct findings *f, const struct timeline *c, const struct selection *v,
		      const struct owners_query *q)
{
	const uint32_t device = q->device ? q->device->index : MODEL_NO_DEVICE;
	struct owners *s = NULL;
	int e = vec_reserve(f->owners, f->owners_room, f->owners_count + 1);
	e = e ? e : owners_build(&s, v->model, v->reader, v->stacks, q);
	if (e)
		return e;
	f->owners[f->owners_count++] = s;
	struct owner_finding *list = realloc(f->list, (f->count + s->count + 1) * sizeof(*list));
	if (!list)
		return error_memory();
	f->list = list;
	for (size_t i = 0; i < s->count && s->owners[i].bytes >= COHORTS_LEAST; i++) {
		struct owner_finding *one = &f->list[f->count];
		*one = (struct owner_finding){ .owner = &s->owners[i], .kind = q->kind, .device = device };
		owner_growth_of(&one->growth, c, v, &s->owners[i]);
		f->count += one->growth.outlook || one->growth.growth.unproven > 0;
	}
	return 0;
}

static int add_tracks(struct findings *f, const struct timeline *c, const struct selection *v)
{
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct step_list *p = selection_has(v, reader_process(v->reader, id)) ? timeline_step_list(c, id)
											    : NULL;
		for (size_t k = 0; p && k < p->track_count; k++) {
			const struct step_track *t = &p->tracks[k];
			const struct growth_place place = { id, (enum model_kind)t->kind, t->device };
			const uint64_t bytes = cohorts_track_live(timeline_cohorts(c), id, place.kind, place.device);
			if (bytes < COHORTS_LEAST)
				continue;
			if (vec_reserve(f->tracks, f->track_room, f->track_count + 1))
				return error_memory();
			struct track_finding *one = &f->tracks[f->track_count++];
			*one = (struct track_finding){ .place = place, .bytes = bytes };
			owner_growth_of_track(&one->growth, c, v->model, timeline_samples(c), &place, t->doubt);
		}
	}
	return 0;
}

static void find_groups(struct findings *f)
{
	struct owner_growth **list = calloc(f->count + 1, sizeof(*list));
	for (size_t i = 0; list && i < f->count; i++)
		list[i] = &f->list[i].growth;
	f->groups = list ? owner_growth_group(list, f->count) : 0;
	free(list);
}

int findings_make(struct findings *f, const struct timeline *c, const struct selection *v, enum by by,
		  owners_fold *fold)
{
	*f = (struct findings){ 0 };
	int e = list_sites(f, timeline_cohorts(c), v);
	e = e ? e : add_tracks(f, c, v);
	for (int kind = 0; e == 0 && f->site_count && kind < MODEL_KINDS; kind++) {
		struct owners_query q = {
			.measure = OWNERS_LIVE,
			.kind = (enum model_kind)kind,
			.by = by,
			.filter = v->options->filter,
			.categories = v->categories,
			.flags = selection_flags(v->options),
			.processes = v->processes,
			.fold = fold,
			.list = f->sites,
			.list_count = f->site_count,
		};
		if (!(v->kinds & 1u << kind))
			continue;
		if (kind < MODEL_HOST_KINDS)
			e = add_owners(f, c, v, &q);
		for (unsigned i = 0; e == 0 && kind >= MODEL_HOST_KINDS && i < model_devices(v->model); i++) {
			q.device = model_device(v->model, i);
			e = selection_has_device(v, i) ? add_owners(f, c, v, &q) : 0;
		}
	}
	if (e)
		findings_fini(f);
	else
		find_groups(f);
	return e;
}

void findings_fini(struct findings *f)
{
	for (size_t i = 0; i < f->owners_count; i++)
		owners_free(f->owners[i]);
	free(f->owners);
	free(f->sites);
	free(f->list);
	free(f->tracks);
	*f = (struct findings){ 0 };
}

uint64_t findings_bytes(const struct findings *f, enum model_kind kind, uint32_t device)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < f->site_count; i++)
		bytes += f->sites[i].kind == kind && f->sites[i].device == device ? f->sites[i].live_bytes : 0;
	return bytes;
}

const struct owner_finding *findings_find(const struct findings *f, enum model_kind kind, const struct owner *o)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->list[i].kind == kind && !memcmp(&f->list[i].owner->key, &o->key, sizeof(o->key)))
			return &f->list[i];
	return NULL;
}
