/* Forks, ends and the beginning of what is looked at. */
#include "analyzer/model/device_blocks.h"

#include "analyzer/util/vec.h"

/* ---- beginnings and ends --------------------------------------------------------------------------------- */

static int gather(struct blocks *all, const struct blocks *from, enum event_space space)
{
	int e = 0;
	for (size_t i = 0; from->entries && i <= from->mask && !e; i++) {
		struct block b = from->entries[i];
		b.addr = inherited_blocks_key(space, b.addr);
		if (from->entries[i].addr && b.addr && !blocks_find(all, b.addr))
			e = blocks_put(all, &b);
	}
	return e;
}

int devices_inherit(struct process_memory *memory, const struct process_memory *parent)
{
	struct blocks all = { 0 };
	int e = 0;
	if (!parent->devices)
		return 0;
	struct process_devices *b = process_devices_of(memory);
	for (size_t i = 0; b && i < parent->devices->share_room && !e; i++)
		for (int space = 0; parent->devices->shares[i] && space < SPACES && !e; space++)
			e = gather(&all, &parent->devices->shares[i]->space[space], space);
	if (b && !e)
		e = gather(&all, &parent->devices->handles, SPACES);
	if (b && !e)
		e = inherited_blocks_init(&b->inherited_blocks, &all, &parent->devices->inherited_blocks);
	blocks_fini(&all);
	return b ? e : -MT_EMEMORY;
}

static void leave_device(struct share *s)
{
	struct device *d = s->device;
	const struct model *m = s->memory->model;
	for (int k = 0; k < MODEL_LAYERS; k++)
		share_settle(s, k);
	share_touch(s);
	for (int k = 0; k < MODEL_LAYERS; k++) {
		struct model_totals *own = &s->layer[k].totals, *sum = &d->layer[k].totals;
		uint64_t before = sum->live_bytes;
		s->number_at_end[k] = d->layer[k].number;
		sum->live_bytes -= own->live_bytes;
		sum->live_blocks -= own->live_blocks;
		series_note(&d->seen.timeline[k], &m->timeline, before, sum->live_bytes, sum->live_blocks);
		if (s->seen.timeline[k].count)
			series_note(&s->seen.timeline[k], &m->timeline, own->live_bytes, own->live_bytes,
				    own->live_blocks);
	}
}

int devices_end(struct process_memory *memory, bool keep_live)
{
	int e = memory->devices ? ooms_settle(memory) : 0;
	if (!memory->devices || e)
		return e;
	for (size_t i = 0; i < memory->devices->share_room; i++)
		if (memory->devices->shares[i])
			leave_device(memory->devices->shares[i]);
	for (size_t i = 0; i < site_table_count(&memory->sites); i++) {
		struct model_site *site = &memory->sites.sites[i];
		const struct share *s = site->kind >= MODEL_HOST_KINDS && site->kind < MODEL_KINDS
						? share_by_device(memory, site->device)
						: NULL;
		if (s)
			site_table_touch(site, s->layer[device_layer(site->kind)].number,
					 s->device->layer[device_layer(site->kind)].number);
	}
	for (size_t i = 0; i < memory->devices->share_room && !keep_live; i++)
		for (int k = 0; k < MODEL_LAYERS && memory->devices->shares[i]; k++)
			memory->devices->shares[i]->layer[k].totals.live_bytes =
				memory->devices->shares[i]->layer[k].totals.live_blocks = 0;
	return 0;
}

void devices_drop(struct process_memory *memory)
{
	for (size_t i = 0; memory->devices && i < memory->devices->share_room; i++)
		if (memory->devices->shares[i])
			memory_drop(memory->devices->shares[i]);
	if (memory->devices)
		memory_fini(memory->devices);
}

static void share_free(struct share *s)
{
	memory_drop(s);
	for (int k = 0; k < MODEL_LAYERS; k++)
		series_fini(&s->seen.timeline[k]);
	free(s);
}

void devices_fini_process(struct process_memory *memory)
{
	struct process_devices *b = memory->devices;
	if (!b)
		return;
	for (size_t i = 0; i < b->share_room; i++)
		if (b->shares[i])
			share_free(b->shares[i]);
	memory_fini(b);
	ooms_fini_threads(b);
	free(b->shares);
	free(b);
	memory->devices = NULL;
}

static void device_free(struct device *d)
{
	for (int k = 0; k < MODEL_LAYERS; k++)
		series_fini(&d->seen.timeline[k]);
	ooms_fini(d);
	moment_fini(&d->peak);
	free(d->shares);
	free(d);
}

void devices_fini(struct model *m)
{
	for (size_t i = 0; i < m->unlisted_count; i++)
		if (m->unlisted[i] && m->unlisted[i]->seen.index == MODEL_NO_DEVICE)
			device_free(m->unlisted[i]);
	for (size_t i = 0; i < m->device_count; i++)
		device_free(m->devices[i]);
	free(m->devices);
	free(m->unlisted);
	free(m->ooms);
}

/* ---- time ------------------------------------------------------------------------------------------------ */

void devices_restart_process(struct process_memory *memory, uint64_t ns)
{
	for (size_t i = 0; memory->devices && i < memory->devices->share_room; i++) {
		struct share *s = memory->devices->shares[i];
		for (int k = 0; s && k < MODEL_LAYERS; k++) {
			if (memory->seen.ended)
				s->layer[k].totals = (struct model_totals){ 0 };
			peak_sum_restart(&s->layer[k], ns);
		}
		if (s)
			s->seen.ooms = s->seen.retries = 0;
	}
}

void devices_restart(struct model *m, uint64_t ns)
{
	for (size_t i = 0; i < m->device_count; i++) {
		struct device *d = m->devices[i];
		for (int k = 0; k < MODEL_LAYERS; k++) {
			peak_sum_restart(&d->layer[k], ns);
			d->peak.layer[k] = d->layer[k].totals.live_bytes;
		}
		d->peak.ns = d->rise_ns = ns;
		d->peak.event = d->rise_event = m->device_events;
		d->peak_number++;
		ooms_fini(d);
	}
}

void devices_halve(struct model *m)
{
	for (size_t i = 0; i < m->device_count; i++)
		for (int k = 0; k < MODEL_LAYERS; k++) {
			series_halve(&m->devices[i]->seen.timeline[k]);
			for (size_t n = 0; n < m->devices[i]->share_count; n++)
				series_halve(&m->devices[i]->shares[n]->seen.timeline[k]);
		}
}
