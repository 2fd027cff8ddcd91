/*
 * What the parts of fold_window.c share: fold_window.c looks at slots, fold_window_device.c and fold_window_maps.c at
 * what isn't heap, fold_choose.c decides which pairs are left out, fold_write.c writes what is left, fold_sums.c and
 * fold_levels.c what the rest was. Nobody else includes this.
 *
 * A slot's place counts the slots that were looked at, from 1 on. In a struct block of the first pass `ns` is the place
 * of its allocation,
 * 0 of one that must be kept.
 */
#ifndef MT_RECORDER_FOLD_WINDOW_INTERNAL_H
#define MT_RECORDER_FOLD_WINDOW_INTERNAL_H

#include "analyzer/recorder/fold_window.h"
#include "analyzer/util/blocks.h"
#include "analyzer/util/event_kinds.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/ranges.h"
#include "analyzer/util/vec.h"

/* What is kept for the sake of a moment differs: no owners of the heap are asked for where a device is at its peak. */
enum fold_group { GROUP_HEAP = 0, GROUP_MAP, GROUP_DEVICE, GROUPS };

/* A pair that would be left out if it were not alive at `refs` of the moments watched. */
struct pair {
	uint64_t alloc, free;
	uint32_t refs;
};

/* The highest (lowest) moment of a sum in the slice so far, and pairs that were alive then and have been freed since.
 * */
struct watch {
	uint64_t place, bytes, more; /* more: decides where bytes are the same */
	uint32_t *pairs;
	size_t count, room;
};

/* A free that may still be undone. addr 0 = nothing. */
struct recent_free {
	uint64_t addr;      /* as the event says */
	struct block block; /* addr: its key; 0 = it is unknown */
	uint64_t place;
	uint32_t class;
	bool short_lived;
};

struct ring {
	struct recent_free freed[UNDO_DEPTH], device[UNDO_DEPTH], unmap;
	unsigned next, next_device;
	uint64_t failed_bytes; /* asked for in vain, of the driver */
	bool failed;           /* the pool's next block says how that went on */
};

/* A low point counts when as much as `rise` comes behind it. */
struct low_point {
	struct watch low;
	uint64_t high, least, most, rise; /* high: since the low; least, most: of the slice */
	uint64_t last;                    /* place of the latest low point */
	bool confirmed;
};

struct fold_device {
	bool seen[SPACES_FOLDED]; /* by space: it has had a block */
	struct ranges extents;    /* of the driver's linear memory; class: what of the pool's was in it */
	struct range last;        /* one that was */
	uint64_t memory, pool;
	struct watch memory_peak, pool_peak, moment;
	struct low_point low_point;
};

/* What one stack had left out. */
struct sum {
	uint32_t node, node2, thread, hook, what, device;
	uint64_t size; /* of each; or the least that has as many bits */
	uint64_t count, bytes, temporary;
};

struct sums {
	struct sum *list;
	size_t count, room;
	struct hash_index index; /* the sum + 1 */
};

/* What a device's pool had since the last LEVEL. */
struct fold_track {
	uint64_t live, low, high, now; /* live: of blocks this pass sees. now: truly */
	bool open;                     /* the block at hand has a LEVEL of it */
	bool given;                    /* the block that is read has: its figures count, not `live` */
	bool changed;
	uint64_t left_out; /* blocks that are alive */
};

enum { LOOKS = 1u << 18 };

struct fold_window {
	struct fold_facts facts;
	size_t next_fork;

	/* ---- looking ---- */
	unsigned level;
	struct blocks live;    /* of all spaces, by fold_key() */
	uint64_t place, first; /* first: place of the window's first slot */
	/* small heap blocks' bytes so far in units of 16, modulo 2^32; block.site is what it was */
	uint32_t small;
	uint64_t slice; /* its first slot */
	/* what was allocated up to there was alive when it mattered, or before the window */
	uint64_t kept[GROUPS];
	uint64_t kept_low; /* the same for low points of pools; of the heap for large blocks alone */
	uint64_t bytes[MODEL_KINDS], map_bytes[MAP_CLASSES];
	struct watch peak[MODEL_KINDS], map_peak[MAP_CLASSES];
	struct fold_device **devices; /* by id */
	size_t device_room;
	struct ranges maps;   /* ns: place */
	struct ranges mapped; /* on devices; class as in extents */
	bool graphs;          /* some of it is theirs */
	unsigned clean_up;    /* so many allocations on devices are kept, since one failed */
	struct pair *pairs;
	size_t pair_count, pair_room;
	struct ring *rings;
	size_t ring_room;
	uint64_t *last[MODEL_KINDS]; /* by thread: address of its latest allocation */
	size_t last_room[MODEL_KINDS];
	uint64_t *omit, *temporary, *lows; /* a bit for each slot of the window */
	size_t omit_room, temporary_room, low_room;
	struct look {
		uint32_t node, thread;
	} *looks;                            /* the latest LOOKS allocations, round about */
	uint64_t look_count, looks_left_out; /* left out: by earlier foldings */

	/* ---- writing ---- */
	uint64_t at;           /* place of the next slot */
	struct blocks omitted; /* those that are alive, by key */
	/* of the heap, and of the rest: now; most in this block; as earlier foldings say */
	uint64_t omitted_bytes[2], most_bytes[2], before[2];
	bool *last_omitted[MODEL_KINDS]; /* by thread: its latest allocation is left out */
	size_t last_omitted_room[MODEL_KINDS];
	struct sums sums;
	struct blocks pool;        /* blocks of pools by key; site: the device */
	struct fold_track *tracks; /* by device id */
	size_t track_room;
	uint64_t left_out;   /* allocations, since the last LEVEL */
	uint64_t level_at;   /* its place */
	unsigned frames;     /* the outermost ones that tell parts of the loop apart; 0 = no loop was found */
	uint8_t *depths;     /* by node - node_base */
	uint32_t *branch;    /* the same: its caller that is as far out as `frames`; 0 = not known yet */
	uint32_t *branch_of; /* by thread: of its latest allocation */
	size_t branch_of_room;
	uint64_t last_ticks;
	bool open; /* BEGIN is there */
};

/* ---- fold_window.c ---- */

static inline bool fold_last_level(const struct fold_window *t)
{
	return t->level >= FOLD_LEVELS;
}
static inline void set_bit(uint64_t *bits, uint64_t i)
{
	bits[i / 64] |= 1ull << i % 64;
}
static inline bool has_bit(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

/* Addresses have fewer than 48 bits; one that has more may make pairs be kept. */
static inline uint64_t fold_key(enum event_space space, uint32_t device, uint64_t addr)
{
	return addr ^ (uint64_t)((unsigned)space << 8 | (device & 255)) << 48;
}

/* SPACES: blocks of that class are never left out. */
static inline enum event_space fold_space_of(unsigned class)
{
	enum event_space space = space_of_class(class);
	return space < SPACES_FOLDED ? space : SPACES;
}

/* ---- fold_live.c ---- */

/* The block that a free on `device` is of, in one of the two tables: there or on another. NULL = unknown. */
struct block *fold_find(const struct fold_window *t, const struct blocks *in, enum event_space space, uint32_t device,
			uint64_t addr);

/* NULL = no memory */
static inline struct ring *fold_ring(struct fold_window *t, uint32_t ring)
{
	return vec_reserve(t->rings, t->ring_room, ring + 1ul) ? NULL : &t->rings[ring];
}

static inline int fold_set_last(struct fold_window *t, enum model_kind kind, uint32_t thread, uint64_t addr)
{
	int e = vec_reserve(t->last[kind], t->last_room[kind], thread + 1ul);
	if (!e)
		t->last[kind][thread] = addr;
	return e;
}

static inline bool fold_was_last(const struct fold_window *t, enum model_kind kind, uint32_t thread, uint64_t addr)
{
	return thread < t->last_room[kind] && t->last[kind][thread] == addr;
}

/* Allocation (unless it is before the window) and free had nothing in between. */
static inline void fold_mark_temporary(struct fold_window *t, uint64_t alloc)
{
	set_bit(t->temporary, t->place - t->first);
	if (alloc >= t->first)
		set_bit(t->temporary, alloc - t->first);
}

/* ---- fold_choose.c ---- */

/* The sum has risen: its highest moment may be now. */
void watch_rise(struct fold_window *t, struct watch *w, uint64_t bytes, uint64_t more);
/* The moment stays, and the next one is looked for from here on: what has been is kept. */
void watch_restart(struct fold_window *t, struct watch *w, enum fold_group group, uint64_t bytes, uint64_t more);
void low_point_change(struct fold_window *t, struct low_point *d, uint64_t bytes);
/* Everything that was alive up to the slot at hand is kept. */
void fold_keep(struct fold_window *t, enum fold_group group);
void pairs_begin_slice(struct fold_window *t);
void pairs_forget(struct fold_window *t); /* who waits stays */
/* A free is final. */
int pairs_settle(struct fold_window *t, const struct recent_free *f);
void watch_fini(struct watch *w);

/* ---- fold_window_device.c, fold_window_maps.c ---- */

int scan_device(struct fold_window *t, const struct mt_event *s, uint32_t ring, uint32_t thread);
struct fold_device *fold_device(struct fold_window *t, uint32_t id); /* NULL = no memory */
int scan_map(struct fold_window *t, const struct mt_event *s, uint32_t ring, uint32_t thread);
int scan_unmap(struct fold_window *t, const struct mt_event *s, uint32_t ring);
/* True: it was this ring's last unmapping that did not happen. */
bool scan_undo_unmap(struct fold_window *t, uint64_t addr, uint32_t ring);

/* ---- fold_sums.c ---- */

int sums_add(struct sums *s, const struct sum *more);
void sums_clear(struct sums *s);
void sums_fini(struct sums *s);

/* ---- fold_out.c ---- */

static inline int fold_put(struct fold_out *out, const struct mt_event *slot, uint32_t ring)
{
	int e = vec_reserve_raw(out->slots, out->slot_room, out->count + 1);
	if (!e)
		e = vec_reserve_raw(out->rings, out->ring_room, out->count + 1);
	if (e)
		return e;
	out->slots[out->count] = *slot;
	out->rings[out->count++] = ring;
	return 0;
}

int fold_put_fold(struct fold_out *out, const struct mt_event *slot, const struct mt_ext_device *ext, uint32_t ring);

/* ---- fold_levels.c: what pools have, with what is left out ---- */

/* The window begins: what lives is known. */
int fold_begin_tracks(struct fold_window *t);
/* Before a slot of a pool is written or left out. */
int fold_track(struct fold_window *t, const struct mt_event *s, bool left_out, struct fold_out *out, uint32_t ring);
int fold_take_level(struct fold_window *t, const struct mt_event *s, const struct mt_ext_device *ext,
		    struct fold_out *out, uint32_t ring);
/* LEVEL of all that has changed; `low`: a low point, at which nothing is left out. */
int fold_put_levels(struct fold_window *t, bool low, struct fold_out *out, uint32_t ring);
int fold_open_levels(struct fold_window *t, struct fold_out *out, uint32_t ring);
int fold_end_levels(struct fold_window *t, struct fold_out *out);

/* ---- fold_loop.c: where the program's loop goes from one of its parts to the next ---- */

int fold_find_loop(struct fold_window *t);
/* True: this allocation is the first of its thread in another part. */
bool fold_begins_part(struct fold_window *t, const struct mt_event *s, uint32_t thread);

#endif
