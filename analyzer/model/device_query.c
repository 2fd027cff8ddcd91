/* What the model shows of devices behind the pass. */
#include "analyzer/model/device.h"

#include "analyzer/util/vec.h"

void devices_fill_sites(struct process_memory *memory)
{
	for (size_t i = 0; memory->devices && i < memory->devices->share_room; i++)
		for (int space = 0; memory->devices->shares[i] && space < SPACES; space++) {
			const struct blocks *t = &memory->devices->shares[i]->space[space];
			for (size_t n = 0; t->entries && n <= t->mask; n++)
				if (t->entries[n].addr)
					process_memory_note_age(memory, t->entries[n].site, t->entries[n].ns);
		}
	for (size_t i = 0; memory->devices && i < memory->devices->physical_count; i++) {
		const struct physical *p = &memory->devices->physical[i];
		if (p->used)
			process_memory_note_age(memory, p->site, p->ns);
	}
}

void devices_finish_site(const struct process_memory *memory, struct model_site *site)
{
	const struct share *s = share_by_device(memory, site->device);
	enum model_layer layer = device_layer(site->kind);
	if (!s)
		return;
	if (!memory->seen.ended) {
		peak_sum_settle(&((struct share *)s)->layer[layer]);
		peak_sum_settle(&s->device->layer[layer]);
		site_table_touch(site, s->layer[layer].number, s->device->layer[layer].number);
	} else if (s->number_at_end[layer] != s->device->layer[layer].number) {
		site->host_peak_bytes = site->host_peak_blocks = 0;
	}
}

/* The sites' own peak is that of the device's memory, and so is the moment's. */
static int finish_outside(struct device *d)
{
	size_t room = 0;
	int e = 0;
	for (size_t i = 0; i < d->share_count; i++) {
		const struct process_memory *memory = d->shares[i]->memory;
		for (uint32_t n = 0; n < memory->seen.site_count && !e; n++) {
			const struct model_site *s = &memory->seen.sites[n];
			if (s->kind != MODEL_DEVICE || s->device != d->seen.index || s->segments || !s->host_peak_bytes)
				continue;
			e = vec_reserve_raw(d->peak.outside, room, d->peak.outside_count + 1ul);
			if (!e)
				d->peak.outside[d->peak.outside_count++] =
					(struct model_outside){ s->process, s->number, s->host_peak_bytes };
		}
	}
	moment_merge_sites(&d->peak);
	return e;
}

static int finish_peak(struct device *d)
{
	d->peak.parts = calloc(d->share_count + 1, sizeof(*d->peak.parts));
	if (!d->peak.parts)
		return error_memory();
	for (size_t i = 0; i < d->share_count; i++) {
		struct share *s = d->shares[i];
		struct model_part part = { .process = s->seen.process->id };
		if (!s->memory->seen.ended)
			share_touch(s);
		for (int k = 0; k < MODEL_LAYERS && s->at_peak_stamp == d->peak_number; k++)
			part.layer[k] = s->at_peak[k];
		if (part.layer[LAYER_MEMORY] || part.layer[LAYER_POOL])
			d->peak.parts[d->peak.part_count++] = part;
	}
	d->peak.total_bytes = d->seen.total_bytes ? d->seen.total_bytes : MODEL_UNKNOWN;
	int e = finish_outside(d);
	d->seen.peak = d->peak;
	return e;
}

static void finish_share(struct share *s)
{
	const struct model *m = s->memory->model;
	struct device *d = s->device;
	for (int k = 0; k < MODEL_LAYERS; k++) {
		if (!s->memory->seen.ended)
			peak_sum_settle(&s->layer[k]);
		s->seen.layer[k] = s->layer[k].totals;
		peak_sum_add(&d->seen.layer[k], &s->layer[k].totals);
		if (s->seen.timeline[k].count && !s->memory->seen.ended)
			series_note(&s->seen.timeline[k], &m->timeline, s->seen.layer[k].live_bytes,
				    s->seen.layer[k].live_bytes, s->seen.layer[k].live_blocks);
	}
	s->seen.device = d->seen.index;
	d->seen.retries += s->seen.retries;
	for (size_t i = 0; i < s->space[SPACE_ALIAS].mask + 1 && s->space[SPACE_ALIAS].entries; i++)
		if (s->space[SPACE_ALIAS].entries[i].addr)
			s->seen.alias_bytes += s->space[SPACE_ALIAS].entries[i].size;
}

static void finish_layers(struct model *m, struct device *d)
{
	for (int k = 0; k < MODEL_LAYERS; k++) {
		const struct model_totals *alive = &d->layer[k].totals;
		struct model_series *line = &d->seen.timeline[k];
		d->seen.layer[k].peak_bytes = alive->peak_bytes;
		d->seen.layer[k].peak_blocks = alive->peak_blocks;
		d->seen.layer[k].peak_ns = alive->peak_ns;
		if (line->count)
			series_note(line, &m->timeline, alive->live_bytes, alive->live_bytes, alive->live_blocks);
	}
}

static int finish_device(struct model *m, struct device *d)
{
	device_settle_moment(d);
	for (int k = 0; k < MODEL_LAYERS; k++)
		peak_sum_settle(&d->layer[k]);
	int e = finish_peak(d);
	for (size_t i = 0; i < d->share_count; i++)
		finish_share(d->shares[i]);
	finish_layers(m, d);
	d->seen.shares = (const struct model_share *const *)d->shares; /* `seen` comes first in a share */
	d->seen.share_count = (unsigned)d->share_count;
	return e;
}

int devices_finish(struct model *m)
{
	int e = 0;
	for (size_t i = 0; i < m->process_count && !e; i++)
		e = m->processes[i].devices ? ooms_settle(&m->processes[i]) : 0;
	for (size_t i = 0; i < m->device_count && !e; i++)
		e = finish_device(m, m->devices[i]);
	return e ? e : ooms_finish(m);
}

uint64_t model_device_live(const struct model *m, uint32_t device, enum model_layer layer)
{
	return m->devices[device]->layer[layer].totals.live_bytes;
}

unsigned model_devices(const struct model *m)
{
	return (unsigned)m->device_count;
}
const struct model_device *model_device(const struct model *m, uint32_t index)
{
	return &m->devices[index]->seen;
}
unsigned model_ooms(const struct model *m)
{
	return (unsigned)m->oom_total;
}
const struct model_oom *model_oom(const struct model *m, unsigned i)
{
	return m->ooms[i];
}

/* ---- single blocks --------------------------------------------------------------------------------------- */

static int each_in(const struct share *s, enum event_space space, int (*f)(void *arg, const struct model_block *b),
		   void *arg)
{
	const struct blocks *t = &s->space[space];
	int e = 0;
	for (size_t i = 0; t->entries && i <= t->mask && !e; i++) {
		const struct block *b = &t->entries[i];
		if (b->addr)
			e = f(arg, &(struct model_block){ .addr = b->addr,
							  .size = b->size,
							  .ns = b->ns,
							  .site = b->site,
							  .thread = b->thread,
							  .device = s->device->seen.index });
	}
	return e;
}

static int each_physical(const struct process_memory *memory, int (*f)(void *arg, const struct model_block *b),
			 void *arg)
{
	int e = 0;
	for (size_t i = 0; i < memory->devices->physical_count && !e; i++) {
		const struct physical *p = &memory->devices->physical[i];
		if (p->used && p->share->seen.id)
			e = f(arg, &(struct model_block){ .addr = p->handle,
							  .size = p->size,
							  .ns = p->ns,
							  .site = p->site,
							  .thread = p->thread,
							  .device = p->share->device->seen.index });
	}
	return e;
}

int devices_each_block(const struct process_memory *memory, enum model_kind kind,
		       int (*f)(void *arg, const struct model_block *b), void *arg)
{
	static const struct {
		enum model_kind kind;
		enum event_space space;
	} spaces[] = {
		{ MODEL_PINNED, SPACE_PINNED }, { MODEL_DEVICE, SPACE_LINEAR },  { MODEL_DEVICE, SPACE_ARRAY },
		{ MODEL_POOL, SPACE_POOL },     { MODEL_POOL, SPACE_WORKSPACE },
	};
	int e = 0;
	for (size_t i = 0; memory->devices && i < memory->devices->share_room; i++)
		for (size_t k = 0; memory->devices->shares[i] && k < sizeof(spaces) / sizeof(*spaces) && !e; k++)
			if (spaces[k].kind == kind)
				e = each_in(memory->devices->shares[i], spaces[k].space, f, arg);
	return !memory->devices || e || kind != MODEL_DEVICE ? e : each_physical(memory, f, arg);
}
