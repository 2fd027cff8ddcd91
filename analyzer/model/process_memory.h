/* The memory of one process: what its events do to heap and mappings, and to the sums of its host. model.c calls it for
 * each event. */
#ifndef MT_MODEL_PROCESS_MEMORY_H
#define MT_MODEL_PROCESS_MEMORY_H

#include "analyzer/model/heap_footprint.h"
#include "analyzer/model/model.h"
#include "analyzer/model/series.h"
#include "analyzer/model/shm_files.h"
#include "analyzer/model/site_table.h"
#include "analyzer/util/blocks.h"
#include "analyzer/util/event_kinds.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/ranges.h"
#include "analyzer/util/vec.h"

/* A free that may still be undone. */
struct undo {
	struct block block; /* addr 0 = nothing; of an inherited one address and size */
	bool known, inherited, temporary;
	uint32_t forgotten; /* allocations of its site, if the site's figures were dropped with this free; else 0 */
};

/* An unmapping that may still be undone, or continued as a move. */
struct unmapping {
	uint64_t start, end;
	bool pending;
	struct range *ranges; /* whole ones, as they were before */
	size_t count, room;
	uint64_t gone; /* mappings that ended with it */
};

struct ring_state {
	struct undo frees[UNDO_DEPTH];
	unsigned next;
	struct unmapping unmap;
	struct device_ring *device; /* device.h; NULL = nothing of devices yet */
};

struct host_sums {
	struct model_host seen; /* what model_host() shows; filled at the end */
	struct peak_sum kind[MODEL_KINDS];
	struct model_map_sum map[MAP_CLASSES];
	struct model_series timeline[MODEL_KINDS];
};

struct process_memory {
	struct model_process seen; /* what model_process() shows; kind, sites and timeline are filled at the end */
	struct model *model;
	struct host_sums *host;
	bool moves; /* the slot that is read is a part of realloc */
	struct peak_sum kind[MODEL_KINDS];
	struct site_table sites;
	struct blocks heap;
	struct inherited_blocks inherited_blocks; /* inherited part of the heap */
	struct heap_footprint footprint;          /* of the heap */
	bool pooled;                              /* the slot that is read is a pool's on the heap: host_pools.h */
	struct ranges segments;                   /* of such pools */
	struct ranges maps;
	/* by range.mapping: in how many pieces the mapping is. Unused entries are a list: 1 << 31 and the next one */
	uint32_t *pieces;
	size_t piece_room;
	uint32_t piece_count, free_piece;
	uint64_t maps_gone;          /* mappings whose last piece was unmapped */
	uint64_t *last[MODEL_KINDS]; /* by thread: address of its latest allocation */
	uint32_t before;             /* the node of what was there before recording began; 0 = nothing was said of it */
	size_t last_room[MODEL_KINDS];
	struct ring_state *rings;
	size_t ring_room;
	uint64_t host_number_at_end[MODEL_KINDS];
	struct process_devices *devices; /* device.h; NULL = no device event yet */
	bool folded;                     /* the slots that are read are of a folded block ... */
	uint64_t folded_ns;              /* ... which began then */
	uint64_t young_ns;               /* before that nothing was young */
	uint64_t left_out;               /* bytes alive in pools that folded blocks leave out */
	/* events that the stream said are missing, and when the latest of these gaps ended */
	uint64_t lost, lost_until_ns;
	uint64_t unproven; /* allocations since heap blocks were last compared */
	uint64_t *missed;  /* by site: bytes of blocks whose frees were lost; only where events were */
	size_t missed_room;
};

/* What all processes share. */
struct model {
	struct model_query query;
	struct reader *reader;
	struct process_memory *processes;
	size_t process_count;
	struct host_sums *hosts; /* and one more, for processes that are not selected */
	size_t host_count;
	struct axis timeline;
	struct model_failure *failures;
	size_t failure_count, failure_room;
	struct hash_index failure_index; /* by process, stack and hook: the failure + 1 */
	struct device **devices;
	size_t device_count, device_room;
	struct device **unlisted; /* of events that name no device: shown once there is memory of it */
	size_t unlisted_count, unlisted_room;
	uint64_t device_events;
	const struct model_oom **ooms; /* of all devices, in order of time; filled at the end */
	uint64_t oom_total;
	struct shm_files shm;
	uint64_t end_ns;
	bool from_reached;
};

/* Takes one slot (of MT_MAP with its extension in the next slot). `ns`: its time. 0 or -MT_E*. */
int process_memory_slot(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint32_t thread,
			uint64_t ns);

/* folded_events.c: a slot MT_FOLD with its extension. */
int process_memory_fold(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint64_t ns);

/* A forked child: takes over what the parent has, marked as inherited. 0 or -MT_EMEMORY. */
int process_memory_inherit(struct process_memory *memory, const struct process_memory *parent);

void process_memory_fill_footprint(struct process_memory *memory);

/* The process ended: its memory leaves the host's sums. `keep_live` keeps its last state as the figures to show. */
int process_memory_end(struct process_memory *memory, bool keep_live);

/* How many events are missing, whether the stream says so or not; UINT64_MAX = any number. */
uint64_t process_memory_lost(const struct process_memory *memory);

/* Where events were lost: ends heap blocks that overlap newer ones. To be called before the process leaves its host's
 * sums. 0 or -MT_E*. */
int process_memory_prove(struct process_memory *memory, uint64_t ns);

/* Fills in of each site when its oldest live block was allocated (oldest_ns), and what lost events may have freed. 0 or
 * -MT_EMEMORY. */
int process_memory_fill_sites(struct process_memory *memory);
void process_memory_fini(struct process_memory *memory);

/* mappings.c: memory of kind MODEL_MAP. What one call mapped counts as one block; it counts as freed when its last
 * piece is unmapped. */
int maps_inherit(struct process_memory *memory, const struct process_memory *parent);
int maps_map(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint32_t thread, uint64_t ns);
int maps_unmap(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint64_t ns);
/* 1: it is undone; 0: this ring's last unmapping was not of `addr`. */
int maps_undo(struct process_memory *memory, uint64_t addr, uint32_t ring, uint64_t ns);

/* ---- sums ------------------------------------------------------------------------------------------------ */

/* Live bytes and blocks of a kind change by so much; site BLOCK_NO_SITE = only the sums. It is handed on by reference:
 * a copy that is read in other pieces than it was written waits for the stores. */
struct change {
	enum model_kind kind;
	uint32_t site;
	int64_t bytes, blocks;
	uint64_t addr;
	uint32_t thread;
	uint64_t made_ns;
};

static inline void peak_sum_change(struct peak_sum *t, const struct change *c, uint64_t ns)
{
	if (c->bytes >= 0)
		peak_sum_rise(t, (uint64_t)c->bytes, ns);
	else
		peak_sum_drop(t, (uint64_t)-c->bytes);
	t->totals.live_blocks += (uint64_t)c->blocks;
}

/* Before anything else changes: the number that a site is compared with must be that of the peak that ends here. */
static inline void process_memory_settle(struct process_memory *memory, const struct change *c)
{
	if (c->bytes > 0)
		return;
	peak_sum_settle(&memory->kind[c->kind]);
	peak_sum_settle(&memory->host->kind[c->kind]);
}

/* Of the site, whose owners' peaks have these numbers. */
static inline void process_memory_change_site(struct process_memory *memory, const struct change *c, uint64_t number,
					      uint64_t host_number)
{
	struct model_site *s = site_table_open(&memory->sites, memory->seen.process->id, c->site, number, host_number);
	if (!s)
		return;
	site_table_touch(s, number, host_number);
	s->live_bytes += (uint64_t)c->bytes;
	s->live_blocks += (uint32_t)c->blocks;
	site_table_close(&memory->sites, s);
}

/* Of the sums of process and host. hidden: not shown in timelines. */
static inline void process_memory_change_sums(struct process_memory *memory, const struct change *c, bool hidden,
					      uint64_t ns)
{
	struct peak_sum *own = &memory->kind[c->kind], *host = &memory->host->kind[c->kind];
	const uint64_t left_out = c->kind == MODEL_POOL ? memory->left_out : 0;
	uint64_t before = own->totals.live_bytes + left_out, host_before = host->totals.live_bytes + left_out;
	process_memory_settle(memory, c);
	peak_sum_change(own, c, ns);
	peak_sum_change(host, c, ns);
	if (!memory->model->from_reached || hidden)
		return;
	series_note(&memory->seen.timeline[c->kind], &memory->model->timeline, before,
		    own->totals.live_bytes + left_out, own->totals.live_blocks);
	series_note(&memory->host->timeline[c->kind], &memory->model->timeline, host_before,
		    host->totals.live_bytes + left_out, host->totals.live_blocks);
}

/* Calls query.on_change, which is not NULL. `device_bytes`: live of that kind on the device. */
void process_memory_describe_change(const struct process_memory *memory, const struct change *c, uint32_t device,
				    uint64_t device_bytes, uint64_t ns);

static inline void process_memory_change(struct process_memory *memory, const struct change *c, uint64_t ns)
{
	if (!memory->model->query.numbers) {
		process_memory_settle(memory, c);
		if (c->site != BLOCK_NO_SITE)
			process_memory_change_site(memory, c, memory->kind[c->kind].number,
						   memory->host->kind[c->kind].number);
		process_memory_change_sums(memory, c, false, ns);
	}
	if (memory->model->query.on_change)
		process_memory_describe_change(memory, c, MODEL_NO_DEVICE, 0, ns);
}

void process_memory_note_age(struct process_memory *memory, uint32_t site, uint64_t ns);
int64_t process_memory_site(struct process_memory *memory, enum model_kind kind, const struct mt_event *s,
			    uint32_t thread);

/* What a block of the heap stands for: itself, or, of a process of whose heap only picked blocks were recorded, all
 * that are like it (sampling_estimate.h). This is the only place where that is asked: from here on every sum of bytes
 * and blocks is an estimate. */
struct process_memory_weight {
	uint64_t bytes, blocks;
};
struct process_memory_weight process_memory_weigh_picked(const struct process_memory *memory, const struct block *b);

static inline struct process_memory_weight process_memory_weigh(const struct process_memory *memory,
								const struct block *b)
{
	return process_is_picked(memory->seen.process) ? process_memory_weigh_picked(memory, b)
						       : (struct process_memory_weight){ b->size, 1 };
}

/* Of totals that are estimates: what is known of how exact they are. */
struct process_memory_ranges {
	bool any;
	struct estimate live, peak, host_peak;
	double mean;  /* bytes between samples, the largest of these processes' */
	double looks; /* events: so often a peak may have been told anew */
};
void process_memory_add_ranges(const struct process_memory *memory, struct process_memory_ranges *r);
void process_memory_set_ranges(const struct process_memory_ranges *r, const struct estimate *peak,
			       struct model_totals *t);

/* Successful calls that returned a block each. */
static inline void process_memory_count_blocks(struct process_memory *memory, enum model_kind kind, uint32_t site,
					       uint64_t bytes, uint64_t blocks)
{
	struct model_site *s = site_table_figures(&memory->sites, site);
	memory->kind[kind].totals.allocations += blocks;
	memory->kind[kind].totals.allocated_bytes += bytes;
	if (s)
		s->allocations += (uint32_t)blocks;
}

static inline void process_memory_count(struct process_memory *memory, enum model_kind kind, uint32_t site,
					uint64_t bytes)
{
	process_memory_count_blocks(memory, kind, site, bytes, 1);
}

static inline int process_memory_set_last(struct process_memory *memory, enum model_kind kind, uint32_t thread,
					  uint64_t addr)
{
	int e = vec_reserve(memory->last[kind], memory->last_room[kind], thread + 1ul);
	if (!e)
		memory->last[kind][thread] = addr;
	return e;
}

static inline struct ring_state *process_memory_ring(struct process_memory *memory, uint32_t ring)
{
	return vec_reserve(memory->rings, memory->ring_room, ring + 1ul) ? NULL : &memory->rings[ring];
}

static inline unsigned process_memory_bin(uint64_t size)
{
	return size ? 64u - (unsigned)__builtin_clzll(size) : 0;
}

#endif
