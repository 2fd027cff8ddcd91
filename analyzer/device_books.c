/* Sums of devices and shares; devices.h says which file does the rest. */
#include "analyzer/devices.h"

#include "analyzer/layout.h"
#include "analyzer/vec.h"

#include <stdio.h>

/* ---- which device it is ---------------------------------------------------------------------------------- */

static bool is_same(const struct device *d, const struct reader_host *host, const struct process_device *known)
{
	return d->seen.host == host && d->seen.backend == known->backend && *known->uuid && !strcmp(d->seen.uuid, known->uuid);
}

static struct device *device_new(const struct reader_host *host)
{
	struct device *d = calloc(1, sizeof(*d));
	if (!d) {
		error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
		return NULL;
	}
	d->seen.index = MODEL_NO_DEVICE;
	d->seen.host = host;
	d->seen.uuid = d->seen.model = "";
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

static const char *backend_prefix(uint32_t backend)
{
	return backend == MT_BACKEND_CUDA ? "cuda" : backend == MT_BACKEND_ASCEND ? "npu" : "device";
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
		d->seen.backend = known->backend;
		d->seen.uuid = known->uuid;
		snprintf(d->seen.name, sizeof(d->seen.name), "%s:%u", backend_prefix(known->backend), known->ordinal);
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

static struct device *find_device(struct account *a, const struct process_device *known)
{
	struct model *m = a->model;
	if (known)
		return device_of(m, a->seen.process->host, known);
	if (vec_reserve(m->unlisted, m->unlisted_room, m->unlisted_count + 1))
		return NULL;
	return m->unlisted[m->unlisted_count++] = device_new(a->seen.process->host);
}

static struct share *share_new(struct account *a, uint32_t id)
{
	const struct process_device *known = id ? find_record(a->seen.process, id) : NULL;
	struct device *d = find_device(a, known);
	struct share *s = d ? calloc(1, sizeof(*s)) : NULL;
	if (!s || vec_reserve(d->shares, d->share_room, d->share_count + 1)) {
		free(s);
		error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
		return NULL;
	}
	d->shares[d->share_count++] = s;
	s->account = a;
	s->device = d;
	s->at_peak_stamp = d->peak_number;
	s->seen = (struct model_share){ .process = a->seen.process, .id = id, .ordinal = known ? known->ordinal : 0,
					  .first_ns = UINT64_MAX };
	return s;
}

static struct device_books *books_of(struct account *a)
{
	if (!a->devices && !(a->devices = calloc(1, sizeof(*a->devices))))
		error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	return a->devices;
}

struct share *share_of(struct account *a, uint32_t id)
{
	struct device_books *b = books_of(a);
	if (!b || vec_reserve(b->shares, b->share_room, id + 1ul))
		return NULL;
	if (!b->shares[id])
		b->shares[id] = share_new(a, id);
	return b->shares[id];
}

int devices_set_up(struct model *m)
{
	for (size_t i = 0; i < m->account_count; i++) {
		const struct process *p = m->accounts[i].seen.process;
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
	return memory > d->peak.layer[LAYER_MEMORY] || (memory == d->peak.layer[LAYER_MEMORY] && pool > d->peak.layer[LAYER_POOL]);
}

/* Before anything gets smaller, and at the end. */
static void settle_moment(struct device *d)
{
	if (!is_highest(d))
		return;
	for (int k = 0; k < MODEL_LAYERS; k++)
		d->peak.layer[k] = d->layer[k].totals.live_bytes;
	d->peak.ns = d->rise_ns;
	d->peak.event = d->rise_event;
	d->peak_number++;
}

/* Before a share changes: what it has now is what it had at the device's peak moment, unless it has changed since. */
static void share_touch(struct share *s)
{
	if (s->at_peak_stamp == s->device->peak_number)
		return;
	s->at_peak_stamp = s->device->peak_number;
	for (int k = 0; k < MODEL_LAYERS; k++)
		s->at_peak[k] = s->layer[k].totals.live_bytes;
}

static void note_series(struct share *s, enum model_layer layer, uint64_t before, uint64_t device_before)
{
	const struct model *m = s->account->model;
	const struct model_totals *own = &s->layer[layer].totals, *sum = &s->device->layer[layer].totals;
	if (!m->from_reached)
		return;
	series_note(&s->seen.timeline[layer], &m->timeline, before, own->live_bytes, own->live_blocks);
	series_note(&s->device->seen.timeline[layer], &m->timeline, device_before, sum->live_bytes, sum->live_blocks);
}

static void settle_all(struct share *s, enum model_layer layer)
{
	tally_settle(&s->layer[layer]);
	tally_settle(&s->device->layer[layer]);
	settle_moment(s->device);
}

void share_change(struct share *s, enum model_layer layer, struct change c, uint64_t ns)
{
	struct tally *own = &s->layer[layer], *sum = &s->device->layer[layer];
	uint64_t before = own->totals.live_bytes, device_before = sum->totals.live_bytes;
	if (c.bytes <= 0)
		settle_all(s, layer);
	share_touch(s);
	if (c.site != BLOCK_NO_SITE)
		account_change_site(s->account, c, own->number, sum->number);
	change_tally(own, c, ns);
	change_tally(sum, c, ns);
	if (c.bytes > 0) {
		if (s->seen.first_ns == UINT64_MAX)
			s->seen.first_ns = ns;
		s->device->rise_ns = ns;
		s->device->rise_event = s->account->model->device_events;
	}
	note_series(s, layer, before, device_before);
	if (layer != LAYER_MEMORY && layer != LAYER_POOL)
		return;
	account_change_sums(s->account, c, ns);
	if (s->account->model->query.on_change)
		account_tell(s->account, &(struct model_change){ .process_bytes = own->totals.live_bytes,
			     .device = s->device->seen.index, .device_bytes = sum->totals.live_bytes }, &c, ns);
}

void share_count(struct share *s, enum model_layer layer, uint32_t site, uint64_t bytes)
{
	s->layer[layer].totals.allocations++;
	s->layer[layer].totals.allocated_bytes += bytes;
	if (layer != LAYER_RESERVED)
		account_count(s->account, layer == LAYER_POOL ? MODEL_POOL : MODEL_DEVICE, site, bytes);
}

int share_show(struct share *s)
{
	return s->device->seen.index == MODEL_NO_DEVICE ? device_list(s->account->model, s->device) : 0;
}

int64_t share_site(struct share *s, enum model_kind kind, const struct device_event *e)
{
	struct account *a = s->account;
	enum model_layer layer = kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY;
	if (share_show(s))
		return -MT_EMEMORY;
	struct model_site key = { .process = a->seen.process->id, .node = e->slot->node, .node2 = e->slot->node2, .kind = kind,
				  .device = s->device->seen.index };
	if (a->model->query.split == MODEL_SPLIT_THREAD)
		key.split = e->thread;
	else if (a->model->query.split == MODEL_SPLIT_SIZE)
		key.split = account_bin(e->slot->size);
	return tally_site(&a->sites, &key, s->layer[layer].number, s->device->layer[layer].number);
}

static int by_site(const void *a, const void *b)
{
	const struct model_outside *x = a, *y = b;
	uint64_t p = (uint64_t)x->process << 32 | x->site, q = (uint64_t)y->process << 32 | y->site;
	return (p > q) - (p < q);
}

static int by_bytes(const void *a, const void *b)
{
	const struct model_outside *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : by_site(a, b);
}

/* One entry a site, largest first. */
static void tidy_outside(struct model_moment *at)
{
	unsigned n = 0;
	if (at->outside_count)
		qsort(at->outside, at->outside_count, sizeof(*at->outside), by_site);
	for (unsigned i = 0; i < at->outside_count; i++)
		if (n && !by_site(&at->outside[n - 1], &at->outside[i]))
			at->outside[n - 1].bytes += at->outside[i].bytes;
		else
			at->outside[n++] = at->outside[i];
	at->outside_count = n;
	if (n)
		qsort(at->outside, n, sizeof(*at->outside), by_bytes);
}

void moment_fini(struct model_moment *at)
{
	free(at->parts);
	free(at->outside);
	at->parts = NULL;
	at->outside = NULL;
	at->part_count = at->outside_count = 0;
}

static int take_parts(const struct device *d, struct model_moment *at)
{
	size_t room = 0;
	int e = 0;
	at->parts = calloc(d->share_count + 1, sizeof(*at->parts));
	if (!at->parts)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (size_t i = 0; i < d->share_count && !e; i++) {
		const struct share *s = d->shares[i];
		if (s->account->seen.ended || !(s->layer[LAYER_MEMORY].totals.live_bytes | s->layer[LAYER_POOL].totals.live_bytes))
			continue;
		struct model_part *part = &at->parts[at->part_count++];
		part->process = s->seen.process->id;
		for (int k = 0; k < MODEL_LAYERS; k++)
			part->layer[k] = s->layer[k].totals.live_bytes;
		e = memory_outside(s, at, &room);
	}
	return e;
}

int device_moment(const struct device *d, struct model_moment *at, uint64_t ns, uint64_t event)
{
	moment_fini(at);
	*at = (struct model_moment){ .ns = ns, .event = event, .free_bytes = MODEL_UNKNOWN,
				     .total_bytes = d->seen.total_bytes ? d->seen.total_bytes : MODEL_UNKNOWN };
	for (int k = 0; k < MODEL_LAYERS; k++)
		at->layer[k] = d->layer[k].totals.live_bytes;
	int e = take_parts(d, at);
	tidy_outside(at);
	return e;
}

/* ---- events ---------------------------------------------------------------------------------------------- */

static int take(struct account *a, const struct device_event *e)
{
	switch (e->slot->kind) {
	case MT_DEVICE_ALLOC: return memory_alloc(a, e);
	case MT_DEVICE_FREE:  return memory_free(a, e);
	case MT_DEVICE_FAIL:  return oom_fail(a, e);
	case MT_DEVICE_UNDO:  return memory_undo(a, e);
	case MT_DEVICE_MAP:   return memory_map(a, e);
	case MT_DEVICE_UNMAP: return memory_unmap(a, e);
	case MT_DEVICE_RESET: return memory_reset(a, e);
	case MT_DEVICE_INFO:  return oom_info(a, e);
	default:              return 0;
	}
}

static int look(struct model *m, uint64_t ns)
{
	int e = 0;
	for (size_t i = 0; i < m->query.peek_count && !e; i++) {
		struct model_peek *p = &m->query.peeks[i];
		if (p->event != m->device_events || p->device >= m->device_count)
			continue;
		p->ns = ns;
		layout_free(p->layout);
		e = layout_take(&p->layout, m, p->device, UINT32_MAX);
	}
	return e;
}

int devices_slot(struct account *a, const struct mt_event *s, uint32_t ring, uint32_t thread, uint64_t ns)
{
	struct device_event e = { .slot = s, .ring = ring, .thread = thread, .ns = ns };
	struct model *m = a->model;
	if (!books_of(a))
		return -MT_EMEMORY;
	memcpy(&e.ext, s + 1, sizeof(e.ext));
	m->device_events++;
	int error = take(a, &e);
	if (!error && m->query.peek_count)
		error = look(m, ns);
	return error ? error : m->query.until_event && m->device_events >= m->query.until_event;
}

/* ---- beginnings and ends --------------------------------------------------------------------------------- */

static uint64_t legacy_key(enum device_space space, uint64_t addr) { return addr ^ (uint64_t)(space + 1) << 60; }

static int gather(struct blocks *all, const struct blocks *from, enum device_space space)
{
	int e = 0;
	for (size_t i = 0; from->entries && i <= from->mask && !e; i++) {
		struct block b = from->entries[i];
		b.addr = legacy_key(space, b.addr);
		if (from->entries[i].addr && b.addr && !blocks_find(all, b.addr))
			e = blocks_put(all, &b);
	}
	return e;
}

int devices_inherit(struct account *a, const struct account *parent)
{
	struct blocks all = { 0 };
	int e = 0;
	if (!parent->devices)
		return 0;
	struct device_books *b = books_of(a);
	for (size_t i = 0; b && i < parent->devices->share_room && !e; i++)
		for (int space = 0; parent->devices->shares[i] && space < SPACES && !e; space++)
			e = gather(&all, &parent->devices->shares[i]->space[space], space);
	if (b && !e)
		e = gather(&all, &parent->devices->handles, SPACES);
	if (b && !e)
		e = legacy_init(&b->legacy, &all, &parent->devices->legacy);
	blocks_fini(&all);
	return b ? e : -MT_EMEMORY;
}

bool devices_inherited(struct account *a, enum device_space space, uint64_t addr)
{
	return legacy_take(&a->devices->legacy, legacy_key(space, addr)) != LEGACY_GONE;
}

void devices_bring_back(struct account *a, enum device_space space, uint64_t addr)
{
	legacy_put_back(&a->devices->legacy, legacy_key(space, addr), 0);
}

static void leave_device(struct share *s)
{
	struct device *d = s->device;
	const struct model *m = s->account->model;
	for (int k = 0; k < MODEL_LAYERS; k++)
		settle_all(s, k);
	share_touch(s);
	for (int k = 0; k < MODEL_LAYERS; k++) {
		struct model_totals *own = &s->layer[k].totals, *sum = &d->layer[k].totals;
		uint64_t before = sum->live_bytes;
		s->number_at_end[k] = d->layer[k].number;
		sum->live_bytes -= own->live_bytes;
		sum->live_blocks -= own->live_blocks;
		series_note(&d->seen.timeline[k], &m->timeline, before, sum->live_bytes, sum->live_blocks);
		if (s->seen.timeline[k].count)
			series_note(&s->seen.timeline[k], &m->timeline, own->live_bytes, own->live_bytes, own->live_blocks);
	}
}

static struct share *share_by_device(const struct account *a, uint32_t device)
{
	const struct device *d = device < a->model->device_count ? a->model->devices[device] : NULL;
	for (size_t i = 0; d && i < d->share_count; i++)
		if (d->shares[i]->account == a)
			return d->shares[i];
	return NULL;
}

static enum model_layer layer_of(uint32_t kind) { return kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY; }

int devices_end(struct account *a, bool keep_live)
{
	int e = a->devices ? ooms_settle(a) : 0;
	if (!a->devices || e)
		return e;
	for (size_t i = 0; i < a->devices->share_room; i++)
		if (a->devices->shares[i])
			leave_device(a->devices->shares[i]);
	for (size_t i = 0; i < a->sites.count; i++) {
		struct model_site *site = &a->sites.sites[i];
		const struct share *s = site->kind >= MODEL_HOST_KINDS ? share_by_device(a, site->device) : NULL;
		if (s)
			tally_touch(site, s->layer[layer_of(site->kind)].number, s->device->layer[layer_of(site->kind)].number);
	}
	for (size_t i = 0; i < a->devices->share_room && !keep_live; i++)
		for (int k = 0; k < MODEL_LAYERS && a->devices->shares[i]; k++)
			a->devices->shares[i]->layer[k].totals.live_bytes = a->devices->shares[i]->layer[k].totals.live_blocks = 0;
	return 0;
}

void devices_drop(struct account *a)
{
	for (size_t i = 0; a->devices && i < a->devices->share_room; i++)
		if (a->devices->shares[i])
			memory_drop(a->devices->shares[i]);
	if (a->devices)
		memory_fini(a->devices);
}

static void share_free(struct share *s)
{
	memory_drop(s);
	for (int k = 0; k < MODEL_LAYERS; k++)
		series_fini(&s->seen.timeline[k]);
	free(s);
}

void devices_fini_account(struct account *a)
{
	struct device_books *b = a->devices;
	if (!b)
		return;
	for (size_t i = 0; i < b->share_room; i++)
		if (b->shares[i])
			share_free(b->shares[i]);
	memory_fini(b);
	ooms_fini_threads(b);
	free(b->shares);
	free(b);
	a->devices = NULL;
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

void devices_restart_account(struct account *a, uint64_t ns)
{
	for (size_t i = 0; a->devices && i < a->devices->share_room; i++) {
		struct share *s = a->devices->shares[i];
		for (int k = 0; s && k < MODEL_LAYERS; k++) {
			if (a->seen.ended)
				s->layer[k].totals = (struct model_totals){ 0 };
			tally_restart(&s->layer[k], ns);
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
			tally_restart(&d->layer[k], ns);
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

/* ---- the result ------------------------------------------------------------------------------------------ */

void devices_look(struct account *a)
{
	for (size_t i = 0; a->devices && i < a->devices->share_room; i++)
		for (int space = 0; a->devices->shares[i] && space < SPACES; space++) {
			const struct blocks *t = &a->devices->shares[i]->space[space];
			for (size_t n = 0; t->entries && n <= t->mask; n++)
				if (t->entries[n].addr)
					account_see_block(a, t->entries[n].site, t->entries[n].ns, t->entries[n].size);
		}
	for (size_t i = 0; a->devices && i < a->devices->physical_count; i++) {
		const struct physical *p = &a->devices->physical[i];
		if (p->used)
			account_see_block(a, p->site, p->ns, p->size);
	}
}

void devices_finish_site(const struct account *a, struct model_site *site)
{
	const struct share *s = share_by_device(a, site->device);
	enum model_layer layer = layer_of(site->kind);
	if (!s)
		return;
	if (!a->seen.ended) {
		tally_settle(&((struct share *)s)->layer[layer]);
		tally_settle(&s->device->layer[layer]);
		tally_touch(site, s->layer[layer].number, s->device->layer[layer].number);
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
		const struct account *a = d->shares[i]->account;
		for (uint32_t n = 0; n < a->seen.site_count && !e; n++) {
			const struct model_site *s = &a->seen.sites[n];
			if (s->kind != MODEL_DEVICE || s->device != d->seen.index || s->segments || !s->host_peak_bytes)
				continue;
			e = vec_reserve_raw(d->peak.outside, room, d->peak.outside_count + 1ul);
			if (!e)
				d->peak.outside[d->peak.outside_count++] = (struct model_outside){ s->process, n, s->host_peak_bytes };
		}
	}
	tidy_outside(&d->peak);
	return e;
}

static int finish_peak(struct device *d)
{
	d->peak.parts = calloc(d->share_count + 1, sizeof(*d->peak.parts));
	if (!d->peak.parts)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (size_t i = 0; i < d->share_count; i++) {
		struct share *s = d->shares[i];
		struct model_part part = { .process = s->seen.process->id };
		if (!s->account->seen.ended)
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

static void add_totals(struct model_totals *to, const struct model_totals *t)
{
	to->allocations += t->allocations;
	to->frees += t->frees;
	to->allocated_bytes += t->allocated_bytes;
	to->live_bytes += t->live_bytes;
	to->live_blocks += t->live_blocks;
	to->temporary += t->temporary;
	to->failed += t->failed;
	to->missed_frees += t->missed_frees;
	to->unknown_frees += t->unknown_frees;
	if (t->failed_bytes_max > to->failed_bytes_max)
		to->failed_bytes_max = t->failed_bytes_max;
}

static void finish_share(struct share *s)
{
	const struct model *m = s->account->model;
	struct device *d = s->device;
	for (int k = 0; k < MODEL_LAYERS; k++) {
		if (!s->account->seen.ended)
			tally_settle(&s->layer[k]);
		s->seen.layer[k] = s->layer[k].totals;
		add_totals(&d->seen.layer[k], &s->layer[k].totals);
		if (s->seen.timeline[k].count && !s->account->seen.ended)
			series_note(&s->seen.timeline[k], &m->timeline, s->seen.layer[k].live_bytes, s->seen.layer[k].live_bytes,
				    s->seen.layer[k].live_blocks);
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
	settle_moment(d);
	for (int k = 0; k < MODEL_LAYERS; k++)
		tally_settle(&d->layer[k]);
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
	for (size_t i = 0; i < m->account_count && !e; i++)
		e = m->accounts[i].devices ? ooms_settle(&m->accounts[i]) : 0;
	for (size_t i = 0; i < m->device_count && !e; i++)
		e = finish_device(m, m->devices[i]);
	return e ? e : ooms_finish(m);
}

unsigned model_devices(const struct model *m) { return (unsigned)m->device_count; }
const struct model_device *model_device(const struct model *m, uint32_t index) { return &m->devices[index]->seen; }
unsigned model_ooms(const struct model *m) { return (unsigned)m->oom_total; }
const struct model_oom *model_oom(const struct model *m, unsigned i) { return m->ooms[i]; }

const struct model_share *model_share(const struct model *m, uint32_t device, unsigned process)
{
	const struct share *s = share_by_device(&m->accounts[process], device);
	return s ? &s->seen : NULL;
}

/* ---- single blocks --------------------------------------------------------------------------------------- */

static int each_in(const struct share *s, enum device_space space, int (*f)(void *arg, const struct model_block *b), void *arg)
{
	const struct blocks *t = &s->space[space];
	int e = 0;
	for (size_t i = 0; t->entries && i <= t->mask && !e; i++) {
		const struct block *b = &t->entries[i];
		if (b->addr)
			e = f(arg, &(struct model_block){ .addr = b->addr, .size = b->size, .ns = b->ns, .site = b->site,
							  .thread = b->thread, .device = s->device->seen.index });
	}
	return e;
}

static int each_physical(const struct account *a, int (*f)(void *arg, const struct model_block *b), void *arg)
{
	int e = 0;
	for (size_t i = 0; i < a->devices->physical_count && !e; i++) {
		const struct physical *p = &a->devices->physical[i];
		if (p->used && p->share->seen.id)
			e = f(arg, &(struct model_block){ .addr = p->handle, .size = p->size, .ns = p->ns, .site = p->site,
							  .thread = p->thread, .device = p->share->device->seen.index });
	}
	return e;
}

int devices_each_block(const struct account *a, enum model_kind kind, int (*f)(void *arg, const struct model_block *b), void *arg)
{
	static const struct { enum model_kind kind; enum device_space space; } spaces[] = {
		{ MODEL_PINNED, SPACE_PINNED }, { MODEL_DEVICE, SPACE_LINEAR }, { MODEL_DEVICE, SPACE_ARRAY },
		{ MODEL_POOL, SPACE_POOL }, { MODEL_POOL, SPACE_WORKSPACE },
	};
	int e = 0;
	for (size_t i = 0; a->devices && i < a->devices->share_room; i++)
		for (size_t k = 0; a->devices->shares[i] && k < sizeof(spaces) / sizeof(*spaces) && !e; k++)
			if (spaces[k].kind == kind)
				e = each_in(a->devices->shares[i], spaces[k].space, f, arg);
	return !a->devices || e || kind != MODEL_DEVICE ? e : each_physical(a, f, arg);
}
