/*
 * Memory on devices: what a process's device events do to its shares of devices, and to the sums of the devices.
 * process_memory.c passes the slots on, and device_events.c calls the right file for each. device_totals.c keeps sums,
 * device_moments.c says who had what at a moment, device_blocks.c (and its parts) what lies where, device_ooms.c what
 * failed.
 *
 * Addresses and handles are looked up per process and device: two devices may use the same ones. A free names the
 * thread's current device, which need not be the block's, so the process's other devices are asked too.
 */
#ifndef MT_MODEL_DEVICE_H
#define MT_MODEL_DEVICE_H

#include "analyzer/model/process_memory.h"

/* The driver's memory that a pool's block may lie in: a linear allocation, or a piece of physical memory where it is
 * mapped. share.extents has its range, with the index of this in range.file. */
struct extent {
	uint64_t start, end;
	uint64_t ns, event; /* when the driver gave the memory */
	uint32_t site, ring;
	uint64_t bytes;    /* that it adds to what is reserved; 0 for the second view of physical memory */
	uint32_t physical; /* index + 1 of what is mapped here; 0 = a linear allocation */
	bool pool;         /* it is a segment */
	bool noted;        /* a block lay in it, so `sizes` and `stream` are known */
	uint8_t sizes;     /* of its blocks: POOL_LAYOUT_SMALL, POOL_LAYOUT_LARGE */
	uint64_t stream;   /* of its first block; all blocks of a segment have the same */
	uint32_t capture;  /* index + 1 of the first capture that had a block in it; 0 = it is in the common pool */
	uint64_t in_use;   /* bytes of the blocks in use that begin in it, if it is private */
	bool used;         /* the entry is */
};

struct device;

struct share {
	struct model_share seen;
	struct process_memory *memory;
	struct device *device;
	struct peak_sum layer[MODEL_LAYERS];
	uint64_t at_peak[MODEL_LAYERS], at_peak_stamp; /* at the device's peak moment, see device_touch() */
	uint64_t number_at_end[MODEL_LAYERS];
	struct blocks space[SPACES];
	struct blocks places; /* of the pool's blocks at MT_NOWHERE, by that address: where one lies is in .ns */
	struct ranges extents;
	struct extent *extent;
	size_t extent_count, extent_room;
	uint32_t extent_free; /* a list through .physical, index + 1 */
	uint32_t last;        /* extent of the latest pool block, index + 1 */
	struct capture {
		uint32_t number, joined;
	} *captures; /* see device_graphs.c */
	size_t capture_count, capture_room;
	uint64_t given;         /* successful allocations of any layer, ever */
	bool has_pool, leveled; /* leveled: MT_FOLD_LEVEL says what the pool has */
	uint64_t level_bytes,
		left_out; /* by the last one: bytes alive in the pool, and those of them that are left out */
};

/* Physical memory of the virtual memory API: charged until it is released and mapped nowhere. That of the host (no
 * device) is pinned memory. */
struct physical {
	uint64_t handle, size, ns, event;
	struct share *share;
	uint32_t site, thread, ring;
	uint32_t maps;
	uint32_t retained;   /* references to the handle beyond the first */
	bool released, used; /* its handle was given back; the entry holds something */
};

struct process_devices {
	struct share **shares; /* by MT_REC_DEVICE.id; NULL = never used */
	size_t share_room;
	struct physical *physical;
	size_t physical_count, physical_room;
	uint32_t physical_free; /* a list through .maps, index + 1 */
	struct blocks handles;  /* of unreleased physical memory: site = index */
	/* reserved addresses. range.class: it holds pool blocks; range.file: extent.capture of all extents in it */
	struct ranges reserved;
	/* blocks of the parent that a forked child may free: addresses with their space in the upper bits */
	struct inherited_blocks inherited_blocks;
	struct oom_thread *threads; /* by ring: device_ooms.c */
	size_t thread_room;
};

struct device {
	const struct process_device *known; /* the first record of it */
	struct model_device seen;
	struct peak_sum layer[MODEL_LAYERS];
	struct model_moment peak; /* counted so far; parts come from the shares */
	uint64_t peak_number;
	uint64_t rise_ns, rise_event;
	struct share **shares;
	size_t share_count, share_room;
	struct model_oom *ooms;
	size_t oom_count, oom_room;
	uint64_t oom_total;
	unsigned layouts; /* that were taken of failures */
};

/* What can be undone of a ring's latest frees. */
struct device_undo {
	uint64_t addr;
	bool pending; /* else there is nothing to undo */
	unsigned class;
	enum event_space space;
	bool known, inherited, temporary;
	bool not_temporary;        /* as a folded block says */
	bool unmapping, reference; /* an unmapping; one of several references to a handle */
	struct share *share;
	struct block block;
	struct range reservation;
	struct gone {
		struct share *share;
		struct extent extent;
		struct physical physical;
	} *gone; /* what was there */
	size_t gone_count, gone_room;
};

struct device_ring {
	struct device_undo frees[UNDO_DEPTH];
	unsigned next;
};

/* Where a block of the pool lies, as far as it is known. */
static inline uint64_t share_place(const struct share *s, const struct block *b)
{
	const struct block *place = b->addr >= MT_NOWHERE ? blocks_find(&s->places, b->addr) : NULL;
	return place ? place->ns : b->addr;
}

/* One MT_DEVICE_* slot with its extension. */
struct device_event {
	const struct mt_event *slot;
	struct mt_ext_device ext;
	uint32_t ring, thread;
	uint64_t ns;
};

/* ---- device_totals.c; device_events.c: devices_event(); device_moments.c; device_fork_exit.c: forks, ends, time;
 * device_query.c: what is shown ---- */

int devices_find_all(struct model *m);
int devices_event(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint32_t thread, uint64_t ns);
int devices_inherit(struct process_memory *memory, const struct process_memory *parent);
/* As process_memory_end() does for the host. */
int devices_end(struct process_memory *memory, bool keep_live);
void devices_drop(struct process_memory *memory);
void devices_fill_sites(struct process_memory *memory);
void devices_restart(struct model *m, uint64_t ns);
void devices_restart_process(struct process_memory *memory, uint64_t ns);
void devices_halve(struct model *m);
int devices_finish(struct model *m);
void devices_finish_site(const struct process_memory *memory, struct model_site *s);
int devices_each_block(const struct process_memory *memory, enum model_kind kind,
		       int (*f)(void *arg, const struct model_block *b), void *arg);
void devices_fini_process(struct process_memory *memory);
void devices_fini(struct model *m);

/* What the process has on devices, made if it has nothing yet; NULL = no memory. */
struct process_devices *process_devices_of(struct process_memory *memory);

/* The share of this process on its device `id`, made if it is new; NULL = no memory. */
struct share *share_of(struct process_memory *memory, uint32_t id);
/* Adds the share's device to those that the model shows. 0 or -MT_EMEMORY. */
int share_show(struct share *s);

/* In a forked child: frees a block of its parent's. False: there is none at `addr`, or it was freed here before. The
 * other undoes that. */
bool devices_free_inherited(struct process_memory *memory, enum event_space space, uint64_t addr);
void devices_undo_inherited(struct process_memory *memory, enum event_space space, uint64_t addr);

/* Live bytes and blocks of a layer change by so much. LAYER_RESERVED has no sites. */
void share_change(struct share *s, enum model_layer layer, const struct change *c, uint64_t ns);
/* A successful call that returned a block; site BLOCK_NO_SITE = none. */
void share_count(struct share *s, enum model_layer layer, uint32_t site, uint64_t bytes);
int64_t share_site(struct share *s, enum model_kind kind, const struct device_event *e);

static inline enum model_layer device_layer(uint32_t kind)
{
	return kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY;
}

/* The share of a process, by the device's index; NULL = none. */
struct share *share_by_device(const struct process_memory *memory, uint32_t device);

/* Before anything gets smaller, and at the end: what is highest now is counted. */
void device_settle_moment(struct device *d);
void share_settle(struct share *s, enum model_layer layer);
/* Before a share changes: what it has now is what it had at the device's peak moment, unless it has changed since. */
void share_touch(struct share *s);
/* Adds up the parts of each site, and sorts them, the largest first. */
void moment_merge_sites(struct model_moment *at);

/* Frees the lists of *at. / Fills *at with the memory of all processes on the device now. 0 or -MT_EMEMORY. */
void moment_fini(struct model_moment *at);
int device_moment(const struct device *d, struct model_moment *at, uint64_t ns, uint64_t event);

/* ---- device_blocks.c ---- */

int memory_alloc(struct process_memory *memory, const struct device_event *e);
int memory_free(struct process_memory *memory, const struct device_event *e);
int memory_map(struct process_memory *memory, const struct device_event *e);
int memory_unmap(struct process_memory *memory, const struct device_event *e);
int memory_undo(struct process_memory *memory, const struct device_event *e);
int memory_reset(struct process_memory *memory, const struct device_event *e);
/* Drops all blocks of a share when its process ended; no callback is called. */
void memory_drop(struct share *s);
void memory_fini(struct process_devices *b);
void memory_ring_fini(struct device_ring *r);

/* ---- device_graphs.c ---- */

/* The number of the private pool that an extent belongs to, 0 = the common one; of capture `number` of the driver's
 * (one that is not known has a pool of its own that nothing lies in). */
uint32_t graphs_pool_of(const struct share *s, const struct extent *x);
uint32_t graphs_pool_of_capture(const struct share *s, uint32_t number);
/* Counts those captures and pools that have a segment. `has` says so by number of the pool. */
void graphs_count(const struct share *s, const bool *has, unsigned *captures, unsigned *pools);

/* ---- device_ooms.c ---- */

int oom_info(struct process_memory *memory, const struct device_event *e);
int oom_fail(struct process_memory *memory, const struct device_event *e);
/* The pool got a block. `since` is when (device_events) the newest of the memory under it came to the same ring; 0 =
 * never. */
int oom_served(struct share *s, const struct device_event *e, uint64_t since);
/* The driver gave memory. */
void oom_given(struct share *s, const struct device_event *e);
/* The process ended, or the pass: what failed and was not tried again stays as it is. */
int ooms_settle(struct process_memory *memory);
/* Those of all devices in order of time, and how they ended. */
int ooms_finish(struct model *m);
void ooms_fini(struct device *d);
void ooms_fini_threads(struct process_devices *b);

#endif
