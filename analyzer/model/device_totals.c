/* Sums of devices and shares; device.h says which file does the rest. */
#include "analyzer/model/device.h"

#include "analyzer/util/vec.h"

#include <stdio.h>

/* ---- which device it is ---------------------------------------------------------------------------------- */

static bool is_same(const struct device *d, const struct reader_host *host, const struct process_device *known)
{
	return d->known == known || (d->seen.host == host && d->seen.backend == known->backend && *known->uuid &&
				     !strcmp(d->seen.uuid, known->uuid));
}

static struct device *device_new(const struct reader_host *host)
{
	struct device *d = calloc(1, sizeof(*d));
	if (!d) {
		error_memory();
		return NULL;
	}
	d->seen.index = MODEL_NO_DEVICE;
	d->seen.host = host;
	d->seen.uuid = d->seen.model = "";
	d->seen.used_before = MODEL_UNKNOWN;
	d->peak.free_bytes = d->peak.total_bytes = MODEL_UNKNOWN;
	snprintf(d->seen.name, sizeof(d->seen.name), "device ?");
	return d;
}

static int device_list(struct model *m, struct device *d)
{
	int e = vec_reserve(m->devices, m->device_room, m->device_count + 1);
	if (e)
		return e;
	d->seen.index = (uint32_t)m->device_count;
	m->devices[m->device_count++] = d;
	return 0;
}

const char *model_device_prefix(uint32_t backend)
{
	static const char *const prefixes[] = { [MT_BACKEND_CUDA] = "cuda",
						[MT_BACKEND_ASCEND] = "npu",
						[MT_BACKEND_HIP] = "hip",
						[MT_BACKEND_XPU] = "xpu" };
	const char *known = backend < sizeof(prefixes) / sizeof(prefixes[0]) ? prefixes[backend] : NULL;
	return known ? known : "device";
}

/* The device that a process knows as `known`, made if it is new. */
static struct device *device_of(struct model *m, const struct reader_host *host, const struct process_device *known)
{
	struct device *d = NULL;
	for (size_t i = 0; i < m->device_count && !d; i++)
		if (is_same(m->devices[i], host, known))
			d = m->devices[i];
	if (!d) {
		d = device_new(host);
		if (!d || device_list(m, d)) {
			free(d);
			return NULL;
		}
		d->known = known;
		d->seen.backend = known->backend;
		d->seen.uuid = known->uuid;
		snprintf(d->seen.name, sizeof(d->seen.name), "%s:%u", model_device_prefix(known->backend),
			 known->ordinal);
	}
	if (!*d->seen.model)
		d->seen.model = known->name;
	if (known->total_bytes > d->seen.total_bytes)
		d->seen.total_bytes = known->total_bytes;
	return d;
}

/* ---- shares ---------------------------------------------------------------------------------------------- */

static const struct process_device *find_record(const struct process *p, uint32_t id)
{
	const struct process_device *known = NULL;
	for (; p && !known; p = p->parent)
		known = process_device(p, id);
	return known;
}

static struct device *find_device(struct process_memory *memory, const struct process_device *known)
{
	struct model *m = memory->model;
	if (known)
		return device_of(m, memory->seen.process->host, known);
	if (vec_reserve(m->unlisted, m->unlisted_room, m->unlisted_count + 1))
		return NULL;
	return m->unlisted[m->unlisted_count++] = device_new(memory->seen.process->host);
}

static struct share *share_new(struct process_memory *memory, uint32_t id)
{
	const struct process_device *known = id ? find_record(memory->seen.process, id) : NULL;
	struct device *d = find_device(memory, known);
	struct share *s = d ? calloc(1, sizeof(*s)) : NULL;
	if (!s || vec_reserve(d->shares, d->share_room, d->share_count + 1)) {
		free(s);
		error_memory();
		return NULL;
	}
	d->shares[d->share_count++] = s;
	s->memory = memory;
	s->device = d;
	s->at_peak_stamp = d->peak_number;
	s->seen = (struct model_share){
		.process = memory->seen.process, .id = id, .ordinal = known ? known->ordinal : 0, .first_ns = UINT64_MAX
	};
	return s;
}

struct process_devices *process_devices_of(struct process_memory *memory)
{
	if (!memory->devices && !(memory->devices = calloc(1, sizeof(*memory->devices))))
		error_memory();
	return memory->devices;
}

struct share *share_of(struct process_memory *memory, uint32_t id)
{
	struct process_devices *b = process_devices_of(memory);
	if (!b || vec_reserve(b->shares, b->share_room, id + 1ul))
		return NULL;
	if (!b->shares[id])
		b->shares[id] = share_new(memory, id);
	return b->shares[id];
}

int devices_find_all(struct model *m)
{
	for (size_t i = 0; i < m->process_count; i++) {
		const struct process *p = m->processes[i].seen.process;
		for (unsigned k = 0; k < p->device_count; k++)
			if (!device_of(m, p->host, &p->devices[k]))
				return -MT_EMEMORY;
	}
	return 0;
}

/* ---- sums ------------------------------------------------------------------------------------------------ */

/* More memory than ever, or as much with more of it in the pool. */
static bool is_highest(const struct device *d)
{
	uint64_t memory = d->layer[LAYER_MEMORY].totals.live_bytes, pool = d->layer[LAYER_POOL].totals.live_bytes;
	return memory > d->peak.layer[LAYER_MEMORY] ||
	       (memory == d->peak.layer[LAYER_MEMORY] && pool > d->peak.layer[LAYER_POOL]);
}

void device_settle_moment(struct device *d)
{
	if (!is_highest(d))
		return;
	for (int k = 0; k < MODEL_LAYERS; k++)
		d->peak.layer[k] = d->layer[k].totals.live_bytes;
	d->peak.ns = d->rise_ns;
	d->peak.event = d->rise_event;
	d->peak_number++;
}

void share_touch(struct share *s)
{
	if (s->at_peak_stamp == s->device->peak_number)
		return;
	s->at_peak_stamp = s->device->peak_number;
	for (int k = 0; k < MODEL_LAYERS; k++)
		s->at_peak[k] = s->layer[k].totals.live_bytes;
}

static void note_series(struct share *s, enum model_layer layer, uint64_t before, uint64_t device_before)
{
	const struct model *m = s->memory->model;
	const struct model_totals *own = &s->layer[layer].totals, *sum = &s->device->layer[layer].totals;
	if (!m->from_reached || (layer == LAYER_POOL && s->leveled))
		return;
	series_note(&s->seen.timeline[layer], &m->timeline, before, own->live_bytes, own->live_blocks);
	series_note(&s->device->seen.timeline[layer], &m->timeline, device_before, sum->live_bytes, sum->live_blocks);
}

void share_settle(struct share *s, enum model_layer layer)
{
	peak_sum_settle(&s->layer[layer]);
	peak_sum_settle(&s->device->layer[layer]);
	device_settle_moment(s->device);
}

void share_change(struct share *s, enum model_layer layer, const struct change *c, uint64_t ns)
{
	struct peak_sum *own = &s->layer[layer], *sum = &s->device->layer[layer];
	uint64_t before = own->totals.live_bytes, device_before = sum->totals.live_bytes;
	if (c->bytes <= 0)
		share_settle(s, layer);
	share_touch(s);
	if (c->site != BLOCK_NO_SITE)
		process_memory_change_site(s->memory, c, own->number, sum->number);
	peak_sum_change(own, c, ns);
	peak_sum_change(sum, c, ns);
	if (c->bytes > 0) {
		if (s->seen.first_ns == UINT64_MAX)
			s->seen.first_ns = ns;
		s->device->rise_ns = ns;
		s->device->rise_event = s->memory->model->device_events;
	}
	note_series(s, layer, before, device_before);
	if (layer != LAYER_MEMORY && layer != LAYER_POOL)
		return;
	process_memory_change_sums(s->memory, c, layer == LAYER_POOL && s->leveled, ns);
	if (s->memory->model->query.on_change)
		process_memory_describe_change(s->memory, c, s->device->seen.index, sum->totals.live_bytes, ns);
}

void share_count(struct share *s, enum model_layer layer, uint32_t site, uint64_t bytes)
{
	s->layer[layer].totals.allocations++;
	s->layer[layer].totals.allocated_bytes += bytes;
	if (layer != LAYER_RESERVED)
		process_memory_count(s->memory, layer == LAYER_POOL ? MODEL_POOL : MODEL_DEVICE, site, bytes);
}

int share_show(struct share *s)
{
	return s->device->seen.index == MODEL_NO_DEVICE ? device_list(s->memory->model, s->device) : 0;
}

int64_t share_site(struct share *s, enum model_kind kind, const struct device_event *e)
{
	struct process_memory *memory = s->memory;
	enum model_layer layer = kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY;
	if (share_show(s))
		return -MT_EMEMORY;
	struct site_key key = { .process = memory->seen.process->id,
				.node = e->slot->node,
				.node2 = e->slot->node2,
				.kind = kind,
				.device = s->device->seen.index };
	if (memory->model->query.split == MODEL_SPLIT_THREAD)
		key.split = e->thread;
	else if (memory->model->query.split == MODEL_SPLIT_SIZE)
		key.split = process_memory_bin(e->slot->size);
	return site_table_site(&memory->sites, &key, s->layer[layer].number, s->device->layer[layer].number);
}

/* ---- look-up ---------------------------------------------------------------------------------------------- */

struct share *share_by_device(const struct process_memory *memory, uint32_t device)
{
	const struct device *d = device < memory->model->device_count ? memory->model->devices[device] : NULL;
	for (size_t i = 0; d && i < d->share_count; i++)
		if (d->shares[i]->memory == memory)
			return d->shares[i];
	return NULL;
}

const struct model_share *model_share(const struct model *m, uint32_t device, unsigned process)
{
	const struct share *s = share_by_device(&m->processes[process], device);
	return s ? &s->seen : NULL;
}
