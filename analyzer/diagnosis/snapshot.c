#include "analyzer/diagnosis/snapshot.h"

#include "analyzer/diagnosis/diagnosis_data.h"
#include "analyzer/util/blocks.h"
#include "analyzer/util/vec.h"

/* A size takes 48 bits in a trace; above these the entries have the thread. */
#define SIZE_BITS 48
#define NO_THREAD 0xffffu

/* What one process has of one kind on one device. In the entries `thread` is the order of allocation: what allocated it
 * is told by the site. */
struct holding {
	enum model_kind kind;
	uint32_t device;
	struct blocks live;
};

struct holdings {
	struct holding *list;
	size_t count, room;
	bool labels; /* it has labelled something */
};

/* It was alive at its moment, and has been freed since. */
struct gone {
	uint32_t process;
	uint32_t device;
	enum model_kind kind;
	struct block block;
	uint32_t label;
};

struct snapshot {
	const struct reader *reader;
	uint64_t *host_ns, *device_ns;
	unsigned hosts, devices, processes;
	struct holdings *held; /* by process */
	struct gone *gone;
	size_t gone_count, gone_room;
	struct blocks labels; /* addr = order of the block, size = id of the text */
	uint32_t order;
	int error;
};

static bool set_times(struct snapshot *m, const struct model *model)
{
	m->hosts = reader_hosts(m->reader);
	m->devices = model_devices(model);
	m->processes = reader_processes(m->reader);
	m->host_ns = calloc(m->hosts + 1, sizeof(*m->host_ns));
	m->device_ns = calloc(m->devices + 1, sizeof(*m->device_ns));
	m->held = calloc(m->processes + 1, sizeof(*m->held));
	if (!m->host_ns || !m->device_ns || !m->held)
		return false;
	for (unsigned i = 0; i < m->hosts; i++)
		m->host_ns[i] = model_host(model, i)->kind[MODEL_HEAP].peak_ns;
	for (unsigned i = 0; i < m->devices; i++) {
		const struct model_device *d = model_device(model, i);
		const struct model_oom *oom = diagnosis_failure(d);
		m->device_ns[i] = oom ? oom->at.ns : d->peak.ns;
	}
	return true;
}

struct snapshot *snapshot_new(const struct reader *r, const struct model *model)
{
	struct snapshot *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->reader = r;
	if (!set_times(m, model)) {
		snapshot_free(m);
		return NULL;
	}
	return m;
}

void snapshot_free(struct snapshot *m)
{
	if (!m)
		return;
	for (unsigned p = 0; m->held && p < m->processes; p++) {
		for (size_t i = 0; i < m->held[p].count; i++)
			blocks_fini(&m->held[p].list[i].live);
		free(m->held[p].list);
	}
	blocks_fini(&m->labels);
	free(m->held);
	free(m->host_ns);
	free(m->device_ns);
	free(m->gone);
	free(m);
}

uint64_t snapshot_device_ns(const struct snapshot *m, uint32_t device)
{
	return device < m->devices ? m->device_ns[device] : 0;
}

int snapshot_error(const struct snapshot *m)
{
	return m->error;
}

static uint64_t moment_of(const struct snapshot *m, const struct process *p, uint32_t device)
{
	if (device != MODEL_NO_DEVICE)
		return snapshot_device_ns(m, device);
	return p->host->index < m->hosts ? m->host_ns[p->host->index] : 0;
}

/* ---- collecting -------------------------------------------------------------------------------------------- */

static struct holding *find_holding(struct holdings *h, enum model_kind kind, uint32_t device)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->list[i].kind == kind && h->list[i].device == device)
			return &h->list[i];
	return NULL;
}

static struct holding *holding_of(struct snapshot *m, uint32_t process, enum model_kind kind, uint32_t device)
{
	struct holdings *h = &m->held[process];
	struct holding *found = find_holding(h, kind, device);
	if (found)
		return found;
	if ((m->error = vec_reserve(h->list, h->room, h->count + 1)) < 0)
		return NULL;
	h->list[h->count] = (struct holding){ .kind = kind, .device = device };
	return &h->list[h->count++];
}

static void allocated(struct snapshot *m, const struct model_change *c, uint64_t moment)
{
	struct holding *h = c->ns > moment ? NULL : holding_of(m, c->process->id, c->kind, c->device);
	const uint64_t thread = c->thread < NO_THREAD ? c->thread : NO_THREAD;
	struct block b = { .addr = c->addr,
			   .size = (uint64_t)c->bytes | thread << SIZE_BITS,
			   .ns = c->ns,
			   .site = c->site,
			   .thread = ++m->order };
	if (!h)
		return;
	struct block *old = blocks_find(&h->live, c->addr);
	if (old) {
		*old = b;
		return;
	}
	int e = blocks_put(&h->live, &b);
	m->error = e < 0 ? e : m->error;
}

static uint32_t take_label(struct snapshot *m, const struct holdings *h, const struct block *b)
{
	struct block *label = h->labels ? blocks_find(&m->labels, b->thread) : NULL;
	uint32_t id = label ? (uint32_t)label->size : 0;
	if (label)
		blocks_remove(&m->labels, label);
	return id;
}

static void freed(struct snapshot *m, const struct model_change *c, uint64_t moment)
{
	struct holdings *all = &m->held[c->process->id];
	struct holding *h = find_holding(all, c->kind, c->device);
	struct block *b = h ? blocks_find(&h->live, c->addr) : NULL;
	if (!b)
		return;
	uint32_t label = take_label(m, all, b);
	if (c->ns > moment) {
		int e = vec_reserve_raw(m->gone, m->gone_room, m->gone_count + 1);
		m->error = e < 0 ? e : m->error;
		if (e == 0)
			m->gone[m->gone_count++] = (struct gone){ c->process->id, c->device, c->kind, *b, label };
	}
	blocks_remove(&h->live, b);
}

static bool is_wanted(const struct model_change *c)
{
	uint64_t bytes = (uint64_t)(c->bytes < 0 ? -c->bytes : c->bytes);
	return c->kind == MODEL_HEAP ? bytes >= MOMENT_LEAST_HEAP : c->kind == MODEL_DEVICE || c->kind == MODEL_POOL;
}

void snapshot_change(struct snapshot *m, const struct model_change *c)
{
	if (!is_wanted(c) || m->error)
		return;
	uint64_t moment = moment_of(m, c->process, c->device);
	if (c->bytes > 0)
		allocated(m, c, moment);
	else
		freed(m, c, moment);
}

/* A tensor's memory may be a block of a pool's, of a device's or of the heap's. */
static const struct block *labelled_block(const struct holdings *h, uint64_t addr)
{
	static const enum model_kind order[] = { MODEL_POOL, MODEL_DEVICE, MODEL_HEAP };
	for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++)
		for (size_t i = 0; i < h->count; i++) {
			const struct block *b =
				h->list[i].kind == order[k] ? blocks_find(&h->list[i].live, addr) : NULL;
			if (b)
				return b;
		}
	return NULL;
}

void snapshot_event(struct snapshot *m, const struct process *p, const struct mt_event *slot)
{
	struct mt_ext_device ext;
	if (slot->kind != MT_MARK || m->error)
		return;
	memcpy(&ext, slot + 1, sizeof(ext));
	const struct block *b = ext.class == MT_MARK_LABEL ? labelled_block(&m->held[p->id], slot->addr) : NULL;
	if (!b)
		return;
	struct block *old = blocks_find(&m->labels, b->thread);
	struct block label = { .addr = b->thread, .size = slot->size };
	m->held[p->id].labels = true;
	if (old)
		*old = label;
	else
		m->error = blocks_put(&m->labels, &label);
}

/* ---- the result -------------------------------------------------------------------------------------------- */

static struct snapshot_block shown(const struct snapshot *m, uint32_t process, enum model_kind kind, uint32_t device,
				   const struct block *b, uint32_t label)
{
	const struct process *p = reader_process(m->reader, process);
	const uint32_t thread = (uint32_t)(b->size >> SIZE_BITS);
	return (struct snapshot_block){
		.process = p,
		.kind = kind,
		.device = device,
		.site = b->site,
		.addr = b->addr,
		.size = b->size & ((1ull << SIZE_BITS) - 1),
		.ns = b->ns,
		.order = b->thread,
		.thread = thread == NO_THREAD ? SNAPSHOT_NO_THREAD : thread,
		.label = label ? process_mark(p, label) : NULL,
	};
}

static int each_live(const struct snapshot *m, uint32_t process, const struct holding *h,
		     int (*f)(void *, const struct snapshot_block *), void *arg)
{
	const struct process *p = reader_process(m->reader, process);
	uint64_t moment = moment_of(m, p, h->device);
	int e = 0;
	if (p->state != PROCESS_RUNNING && p->end_ns < moment)
		return 0;
	for (size_t i = 0; e == 0 && h->live.entries && i <= h->live.mask; i++) {
		const struct block *b = &h->live.entries[i];
		if (!b->addr || b->ns > moment)
			continue;
		const struct block *label = m->held[process].labels ? blocks_find(&m->labels, b->thread) : NULL;
		struct snapshot_block s = shown(m, process, h->kind, h->device, b, label ? (uint32_t)label->size : 0);
		e = f(arg, &s);
	}
	return e;
}

int snapshot_each(const struct snapshot *m, int (*f)(void *arg, const struct snapshot_block *), void *arg)
{
	int e = 0;
	for (unsigned p = 0; p < m->processes; p++)
		for (size_t i = 0; e == 0 && i < m->held[p].count; i++)
			e = each_live(m, p, &m->held[p].list[i], f, arg);
	for (size_t i = 0; e == 0 && i < m->gone_count; i++) {
		const struct gone *g = &m->gone[i];
		struct snapshot_block s = shown(m, g->process, g->kind, g->device, &g->block, g->label);
		e = f(arg, &s);
	}
	return e;
}
