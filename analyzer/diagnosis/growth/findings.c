#include "analyzer/diagnosis/growth/findings.h"

#include "analyzer/diagnosis/growth/start_up.h"
#include "analyzer/util/vec.h"

#include <math.h>

#define LEAST_PART 0.004 /* of its kind of memory on the device: what grew by less is in no verdict */
#define NEARLY_ALL 0.98

/* All that cohorts know of, with what was alive at the track's end. */
static int list_sites(struct findings *f, const struct cohorts *c, const struct selection *sel)
{
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const uint32_t count = cohorts_sites(c, id);
		for (uint32_t number = 0; number < count; number++) {
			uint32_t blocks;
			const uint64_t bytes = cohorts_live(c, id, number, &blocks);
			if (!bytes)
				continue;
			if (vec_reserve_raw(f->sites, f->site_room, f->site_count + 1))
				return error_memory();
			struct model_site *s = &f->sites[f->site_count++];
			*s = model_site_key(sel->model, id, number);
			if (s->segments) { /* the pool's blocks in them tell whose they are */
				f->site_count--;
				continue;
			}
			s->live_bytes = bytes;
			s->live_blocks = blocks ? blocks : 1;
		}
	}
	return 0;
}

static int add_owners(struct findings *f, const struct timeline *timeline, const struct selection *sel,
		      const struct owners_query *q)
{
	const uint32_t device = q->device ? q->device->index : MODEL_NO_DEVICE;
	struct owners *s = NULL;
	int e = vec_reserve(f->owners, f->owners_room, f->owners_count + 1);
	e = e ? e : owners_build(&s, sel->model, sel->reader, sel->stacks, q);
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
		owner_growth_of(&one->growth, timeline, sel, &s->owners[i]);
		f->count += one->growth.outlook || one->growth.growth.unproven > 0;
	}
	return 0;
}

/* The stack of the site with most bytes of the track, which stands for the track; 0 = there is none. */
static uint32_t largest_stack(const struct cohorts *c, const struct selection *sel, const struct growth_place *place)
{
	struct model_site most = { 0 };
	for (uint32_t number = 0; number < cohorts_sites(c, place->process); number++) {
		struct model_site s = model_site_key(sel->model, place->process, number);
		s.live_bytes = cohorts_live(c, place->process, number, NULL);
		if (s.kind == place->kind && s.device == place->device && s.live_bytes > most.live_bytes)
			most = s;
	}
	return most.live_bytes ? stacks_of_site(sel->stacks, reader_process(sel->reader, most.process), most.number,
						most.node, most.node2)
			       : 0;
}

/* A track of a process, without what is folded. */
struct own_track {
	struct growth_place place;
	double doubt;
	uint64_t bytes; /* with what is folded */
	struct cohort_table table;
};

static bool has_pool(const struct step_list *steps, uint32_t device)
{
	for (size_t k = 0; steps->count && k < steps->track_count; k++)
		if (steps->tracks[k].kind == MODEL_POOL && steps->tracks[k].device == device &&
		    step_high(&steps->tracks[k], steps->count - 1))
			return true;
	return false;
}

static int judge_track(struct findings *f, const struct timeline *timeline, const struct samples *samples,
		       const struct selection *sel, const struct own_track *t, const struct step_list *steps,
		       const struct step_track *track)
{
	if (t->bytes < COHORTS_LEAST)
		return 0;
	if (vec_reserve(f->tracks, f->track_room, f->track_count + 1))
		return error_memory();
	struct track_finding *one = &f->tracks[f->track_count++];
	*one = (struct track_finding){ .place = t->place,
				       .steps = steps,
				       .track = track,
				       .has_pool = t->place.kind == MODEL_DEVICE && has_pool(steps, t->place.device),
				       .bytes = t->bytes };
	owner_growth_judge(&one->growth, timeline, sel->model, samples, &t->place, &t->table, t->doubt);
	if (owner_growth_may_be_collected(&one->growth, t->place.kind))
		owner_growth_collect(&one->growth, t->place.kind, sel,
				     largest_stack(timeline_cohorts(timeline), sel, &t->place));
	if (outlook_goes_on(one->growth.outlook))
		one->rise = owner_growth_rise(steps, track, &one->growth);
	return 0;
}

/* All are looked at from where the process has something of its own on: what it needs of another kind only at its end
 * has not risen all the time. */
static void begin_together(struct own_track *list, size_t count, const struct cohorts *c)
{
	for (size_t i = 0; i < count; i++) {
		list[i].table.since = COHORTS;
		for (size_t k = 0; k < count; k++) {
			const struct growth_place *p = &list[k].place;
			const unsigned begins =
				outlook_begins(&list[k].table, cohorts_clock(c, p->process, p->kind, p->device).count);
			if (p->device == list[i].place.device && begins + 1 < list[i].table.since)
				list[i].table.since = begins + 1;
		}
	}
}

int findings_add_tracks(struct findings *f, const struct timeline *timeline, const struct samples *samples,
			const struct selection *sel, const struct step_list *steps, owners_fold *fold)
{
	const struct cohorts *c = timeline_cohorts(timeline);
	struct own_track *list = calloc(steps->track_count + 1, sizeof(*list));
	int e = list ? 0 : error_memory();
	for (size_t k = 0; e == 0 && k < steps->track_count; k++) {
		const struct step_track *t = &steps->tracks[k];
		struct own_track *to = &list[k];
		to->place = (struct growth_place){ steps->process->id, (enum model_kind)t->kind, t->device };
		to->doubt = t->doubt;
		to->bytes = cohorts_track_live(c, to->place.process, to->place.kind, to->place.device);
		start_up_less(&to->table, c, sel->model, sel->reader, sel->stacks, fold, &to->place);
	}
	if (e == 0)
		begin_together(list, steps->track_count, c);
	for (size_t k = 0; e == 0 && k < steps->track_count; k++)
		e = judge_track(f, timeline, samples, sel, &list[k], steps, &steps->tracks[k]);
	free(list);
	return e;
}

static int add_tracks(struct findings *f, const struct timeline *timeline, const struct selection *sel,
		      owners_fold *fold)
{
	int e = 0;
	for (unsigned id = 0; e == 0 && id < reader_processes(sel->reader); id++) {
		const struct step_list *steps =
			selection_has(sel, reader_process(sel->reader, id)) ? timeline_step_list(timeline, id) : NULL;
		e = steps ? findings_add_tracks(f, timeline, timeline_samples(timeline), sel, steps, fold) : 0;
	}
	return e;
}

static bool in_step(const struct owner_finding *a, const struct owner_finding *b)
{
	return a->kind == b->kind && a->device == b->device && a->owner->folded == b->owner->folded &&
	       owner_growth_in_step(&a->growth, &b->growth);
}

struct group_sums {
	double bytes; /* grown by */
	double part;  /* of what all of its track has grown by since then */
};

static const struct track_finding *track_of(const struct findings *f, const struct owner_finding *one)
{
	return findings_track(f, &(struct growth_place){ one->growth.process, one->kind, one->device });
}

static double part_of_track(const struct findings *f, const struct owner_finding *one)
{
	const struct track_finding *t = track_of(f, one);
	return t && t->growth.outlook == one->growth.outlook ? owner_growth_part(&one->growth, &t->growth) : 0;
}

/* Numbers the groups: returns the sums of each, from 1 on; NULL = no memory. */
static struct group_sums *find_groups(struct findings *f)
{
	struct group_sums *sums = calloc(f->count + 1, sizeof(*sums));
	for (size_t i = 0; sums && i < f->count; i++) {
		struct owner_finding *one = &f->list[i];
		if (!outlook_goes_on(one->growth.outlook))
			continue;
		for (size_t k = 0; k < i && !one->growth.group; k++)
			if (in_step(&f->list[k], one))
				one->growth.group = f->list[k].growth.group;
		if (!one->growth.group)
			one->growth.group = ++f->groups;
		sums[one->growth.group].bytes += one->growth.growth.bytes;
		sums[one->growth.group].part += part_of_track(f, one);
	}
	return sums;
}

/* Something that the track's finding leaves out grows beside it. */
static bool has_folded(const struct findings *f, const struct owner_finding *beside)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct owner_finding *one = &f->list[i];
		if (one->owner->folded && outlook_goes_on(one->growth.outlook) && one->kind == beside->kind &&
		    one->device == beside->device && one->growth.process == beside->growth.process)
			return true;
	}
	return false;
}

/* Who makes nearly all that a track grows by has the track's shape, which is known better: from each step. The rate
 * of its own is more exact, where it is one of that shape. */
static void rise_with_track(const struct findings *f, struct owner_finding *one, double part_of_group)
{
	const struct track_finding *t = track_of(f, one);
	if (one->growth.outlook == OUTLOOK_LEAKS && part_of_group >= NEARLY_ALL &&
	    t->rise.kind != one->growth.growth.kind && !one->growth.beside_steps && !has_folded(f, one))
		owner_growth_rise_with(&one->growth, &t->rise, part_of_track(f, one) / part_of_group);
}

static uint64_t bytes_of(const struct findings *f, const struct owner_finding *one)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < f->site_count; i++)
		bytes +=
			f->sites[i].kind == one->kind && f->sites[i].device == one->device ? f->sites[i].live_bytes : 0;
	return bytes;
}

static int look_at_groups(struct findings *f)
{
	struct group_sums *sums = find_groups(f);
	const int e = sums ? 0 : error_memory();
	for (size_t i = 0; e == 0 && i < f->count; i++) {
		struct owner_finding *one = &f->list[i];
		const struct group_sums *of = &sums[one->growth.group];
		one->all = i && one->kind == one[-1].kind && one->device == one[-1].device ? one[-1].all
											   : bytes_of(f, one);
		one->is_part = fmax(fmax(of->bytes, one->growth.growth.bytes), one->growth.growth.unproven) >=
			       LEAST_PART * (double)one->all;
		rise_with_track(f, one, of->part);
	}
	free(sums);
	return e;
}

int findings_make(struct findings *f, struct timeline *timeline, const struct selection *sel, enum by by,
		  owners_fold *fold)
{
	*f = (struct findings){ 0 };
	timeline_find_arenas(timeline, sel->model, sel->reader, sel->stacks);
	int e = list_sites(f, timeline_cohorts(timeline), sel);
	for (int kind = 0; e == 0 && f->site_count && kind < MODEL_KINDS; kind++) {
		struct owners_query q = {
			.measure = OWNERS_LIVE,
			.kind = (enum model_kind)kind,
			.by = by,
			.filter = sel->options->filter,
			.categories = sel->categories,
			.flags = selection_flags(sel->options),
			.processes = sel->processes,
			.fold = fold,
			.list = f->sites,
			.list_count = f->site_count,
		};
		if (!(sel->kinds & 1u << kind))
			continue;
		if (kind < MODEL_HOST_KINDS)
			e = add_owners(f, timeline, sel, &q);
		for (unsigned i = 0; e == 0 && kind >= MODEL_HOST_KINDS && i < model_devices(sel->model); i++) {
			q.device = model_device(sel->model, i);
			e = selection_has_device(sel, i) ? add_owners(f, timeline, sel, &q) : 0;
		}
	}
	e = e ? e : add_tracks(f, timeline, sel, fold);
	e = e ? e : look_at_groups(f);
	if (e)
		findings_fini(f);
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

const struct track_finding *findings_track(const struct findings *f, const struct growth_place *place)
{
	for (size_t i = 0; i < f->track_count; i++)
		if (f->tracks[i].place.process == place->process && f->tracks[i].place.kind == place->kind &&
		    f->tracks[i].place.device == place->device)
			return &f->tracks[i];
	return NULL;
}

bool findings_steps_tell(const struct findings *f, const struct step_list *steps, uint32_t device)
{
	const struct track_finding *t =
		findings_track(f, &(struct growth_place){ steps->process->id, MODEL_POOL, device });
	return !t || t->growth.outlook != OUTLOOK_GROWS || timeline_steps_are_sure(steps);
}

struct steps_rise findings_rise(const struct findings *f, const struct timeline *timeline, unsigned process,
				uint32_t device, uint64_t ns)
{
	const struct step_list *steps = timeline_step_list(timeline, process);
	if (steps && !findings_steps_tell(f, steps, device))
		return (struct steps_rise){ UINT64_MAX, UINT64_MAX };
	return steps_rise(timeline_steps(timeline), process, device, ns);
}

static bool is_same(const struct owner_finding *f, enum model_kind kind, const struct owner *o)
{
	return f->kind == kind && !memcmp(&f->owner->key, &o->key, sizeof(o->key));
}

const struct owner_finding *findings_find(const struct findings *f, enum model_kind kind, const struct owner *o)
{
	const struct owner_finding *most = NULL;
	for (size_t i = 0; i < f->count; i++)
		if (is_same(&f->list[i], kind, o) &&
		    (!most || owner_growth_grew_more(&f->list[i].growth, &most->growth)))
			most = &f->list[i];
	return most;
}

const struct owner_finding *findings_container(const struct findings *f, unsigned process)
{
	const struct owner_finding *most = NULL;
	for (size_t i = 0; i < f->count; i++) {
		const struct owner_finding *one = &f->list[i];
		if (one->kind == MODEL_HEAP && one->growth.process == process && !one->owner->folded &&
		    one->growth.how == OWNER_GROWTH_BIGGER_BLOCKS && outlook_goes_on(one->growth.outlook) &&
		    (!most || one->growth.all_bytes > most->growth.all_bytes))
			most = one;
	}
	return most;
}

unsigned findings_devices(const struct findings *f, const struct owner_finding *one)
{
	unsigned count = 0;
	for (size_t i = 0; i < f->count; i++)
		count +=
			is_same(&f->list[i], one->kind, one->owner) && f->list[i].growth.outlook == one->growth.outlook;
	return count;
}
