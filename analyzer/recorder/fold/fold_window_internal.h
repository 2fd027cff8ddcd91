/*
 * What the parts of thinning share:
 *
 *   fold_window.c         looks at slots
 *   fold_window_device.c  looks at those of devices; fold_window_maps.c at mappings
 *   fold_choose.c         decides which pairs are left out
 *   fold_write.c          writes the slots that stay; fold_sums.c and fold_levels.c the sums of those that don't
 *
 * Nobody else includes this. The place of a slot is its number among the slots that were looked at, from 1 on. In the
 * first pass `ns` of a struct block is the place of its allocation; 0 = the block must be kept. Functions that return
 * int: 0 or a negative -MT_E*.
 */
#ifndef MT_RECORDER_FOLD_FOLD_WINDOW_INTERNAL_H
#define MT_RECORDER_FOLD_FOLD_WINDOW_INTERNAL_H

#include "analyzer/recorder/fold/fold_window.h"
#include "analyzer/util/blocks.h"
#include "analyzer/util/event_kinds.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/ranges.h"
#include "analyzer/util/sampling_estimate.h"
#include "analyzer/util/vec.h"

/* At the peak of a group somebody asks who owns its memory, and of no other group: so only its pairs are kept for
 * it. */
enum fold_group { GROUP_HEAP = 0, GROUP_MAP, GROUP_DEVICE, GROUPS };

/* A pair that would be left out if it were not alive at `refs` of the moments watched. */
struct pair {
	uint64_t alloc, free;
	uint32_t refs;
};

/* The highest (or lowest) moment of a sum in the slice so far, and the pairs that were alive then and have been freed
 * since: indices into fold_window.pairs. */
struct watch {
	uint64_t place, bytes, more; /* more: a second sum, which decides where bytes are equal */
	uint32_t *pairs;
	size_t count, room;
};

/* A free that may still be undone. addr 0 = none. */
struct recent_free {
	uint64_t addr;      /* of the event */
	struct block block; /* that it freed; block.addr is its fold_key(), 0 = it is unknown */
	uint64_t place;
	uint32_t class;
	bool short_lived;
};

/* What is remembered of each ring. */
struct ring {
	struct recent_free freed[UNDO_DEPTH], device[UNDO_DEPTH], unmap;
	unsigned next, next_device;
	uint64_t failed_bytes; /* of the last request that the driver refused */
	bool failed;           /* there was one, and the pool's next block tells how it was served after all */
};

/* The search for low points of a sum. One counts once the sum has risen by `rise` behind it. Bytes. */
struct low_point {
	struct watch low;
	uint64_t high, least, most, rise; /* high: since the low; least, most: of the slice */
	uint64_t last;                    /* place of the latest low point */
	bool confirmed;
};

struct fold_device {
	bool seen[SPACES_FOLDED]; /* by space: it has had a block */
	struct ranges extents;    /* the driver's linear memory; class: whether segments of the pool lay in it */
	struct range last;        /* the extent that was found last */
	uint64_t memory, pool;
	struct watch memory_peak, pool_peak, moment;
	struct low_point low_point;
};

/* What was left out of one stack. */
struct sum {
	uint32_t node, node2, thread, hook, what, device;
	uint64_t size; /* of each block; unless sizes are exact, the smallest size with as many bits */
	/* temporary: how many of `count` were freed by the next event of their thread */
	uint64_t count, bytes, temporary;
};

struct sums {
	struct sum *list;
	size_t count, room;
	struct hash_index index; /* gives the index in `list`, + 1 */
};

/* Bytes in blocks of a device's pool since its last LEVEL event, which tells them. */
struct fold_track {
	uint64_t live;      /* in blocks that this pass sees */
	uint64_t low, high; /* since the last LEVEL */
	uint64_t now;       /* with those that earlier foldings left out */
	bool open;          /* the block that is being written has a LEVEL of it */
	bool given;         /* the block that is being read has one: its figures count, not `live` */
	bool changed;       /* since the last LEVEL */
	uint64_t left_out;  /* live blocks that are left out */
};

enum { LOOKS = 1u << 18 };

struct fold_window {
	struct fold_facts facts;
	size_t next_fork;

	/* ---- looking ---- */
	unsigned level;
	struct blocks live;    /* of all spaces, by fold_key() */
	uint64_t place, first; /* first: place of the window's first slot */
	/* bytes of small heap blocks allocated so far, in units of 16, modulo 2^32; block.site has it as of an
	 * allocation */
	uint32_t small;
	uint64_t slice; /* place of its first slot */
	/* by group: blocks allocated up to this place are kept, as they lived at a moment that matters or before the
	 * window */
	uint64_t kept[GROUPS];
	uint64_t kept_low; /* the same for low points of pools; of heap blocks only large ones are kept for these */
	uint64_t bytes[MODEL_KINDS], map_bytes[MAP_CLASSES];
	struct watch peak[MODEL_KINDS], map_peak[MAP_CLASSES];
	struct fold_device **devices; /* by id */
	size_t device_room;
	struct ranges maps;   /* of the host; ns: the place of the mapping */
	struct ranges mapped; /* on devices; class as in extents */
	bool graphs;          /* memory of CUDA graphs is among it */
	unsigned clean_up;    /* how many allocations on devices are still kept, as one failed before */
	struct pair *pairs;
	size_t pair_count, pair_room;
	struct ring *rings;
	size_t ring_room;
	uint64_t *last[MODEL_KINDS]; /* by thread: address of its latest allocation */
	size_t last_room[MODEL_KINDS];
	/* a bit for each slot of the window: it is left out, temporary, or a low point */
	uint64_t *omit, *temporary, *lows;
	size_t omit_room, temporary_room, low_room;
	struct look {
		uint32_t node, thread;
	} *looks;                            /* the latest LOOKS allocations, as a ring */
	uint64_t look_count, looks_left_out; /* left out: by earlier foldings */

	/* ---- writing ---- */
	uint64_t at;           /* place of the next slot */
	struct blocks omitted; /* blocks that are left out and live, by fold_key() */
	/* bytes of the heap [0] and of the rest [1] that are left out: now; most in this block; by earlier foldings */
	uint64_t omitted_bytes[2], most_bytes[2], before[2];
	bool *last_omitted[MODEL_KINDS]; /* by thread: its latest allocation is left out */
	size_t last_omitted_room[MODEL_KINDS];
	struct sums sums;
	struct blocks pool;        /* blocks of pools by key; site: the device */
	struct fold_track *tracks; /* by device id */
	size_t track_room;
	uint64_t left_out; /* allocations that were left out since the last LEVEL */
	uint64_t level_at; /* place of that LEVEL */
	unsigned frames;   /* how many outermost frames tell parts of the loop apart; 0 = no loop was found */
	uint8_t *depths;   /* by node - node_base: how many frames its stack has */
	/* by node - node_base: its caller at depth `frames`, which is the part; 0 = not known yet */
	uint32_t *branch;
	uint32_t *branch_of; /* by thread: the part of its latest allocation */
	size_t branch_of_room;
	uint64_t last_ticks;
	bool open; /* the block that is being written has its BEGIN event */
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

/* The space of a class's blocks; SPACES = they are never left out. */
static inline enum event_space fold_space_of(unsigned class)
{
	enum event_space space = space_of_class(class);
	return space < SPACES_FOLDED ? space : SPACES;
}

/* The bytes that a block of the heap stands for. */
static inline uint64_t fold_weigh(const struct fold_window *t, uint64_t size)
{
	return estimate_bytes_of(size, t->facts.mean);
}

/* ---- fold_live.c ---- */

/* The block that a free on `device` frees, in the table `in`. The driver's may be another device's, a pool's only where
 * `device` is 0 (unknown). NULL = no such block is known. */
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

/* The free at hand came right behind the allocation at place `alloc`: marks both, as far as they are in the window. */
static inline void fold_mark_temporary(struct fold_window *t, uint64_t alloc)
{
	set_bit(t->temporary, t->place - t->first);
	if (alloc >= t->first)
		set_bit(t->temporary, alloc - t->first);
}

/* ---- fold_choose.c ---- */

/* The sum has risen: its highest moment may be now. */
void watch_rise(struct fold_window *t, struct watch *w, uint64_t bytes, uint64_t more);
/* The moment that was found is final: what was alive then is kept, and the next one is looked for from here on. */
void watch_restart(struct fold_window *t, struct watch *w, enum fold_group group, uint64_t bytes, uint64_t more);
void low_point_change(struct fold_window *t, struct low_point *d, uint64_t bytes);
/* Everything of the group that is alive at the slot at hand is kept. */
void fold_keep(struct fold_window *t, enum fold_group group);
void pairs_begin_slice(struct fold_window *t);
/* Pairs that wait for a decision are kept, and a new slice begins. */
void pairs_forget(struct fold_window *t);
/* The free can't be undone any more: its pair is left out, unless a moment is watched at which it was alive. */
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

/* ---- fold_levels.c: LEVEL events, which tell what pools have, blocks that are left out included ---- */

/* The window begins: what lives is known. */
int fold_begin_tracks(struct fold_window *t);
/* Before a slot of a pool is written or left out. */
int fold_track(struct fold_window *t, const struct mt_event *s, bool left_out, struct fold_out *out, uint32_t ring);
int fold_take_level(struct fold_window *t, const struct mt_event *s, const struct mt_ext_device *ext,
		    struct fold_out *out, uint32_t ring);
/* Writes a LEVEL of each pool that has changed. `low`: this is a low point, and blocks that live at
 * one are kept. */
int fold_put_levels(struct fold_window *t, bool low, struct fold_out *out, uint32_t ring);
int fold_open_levels(struct fold_window *t, struct fold_out *out, uint32_t ring);
int fold_end_levels(struct fold_window *t, struct fold_out *out);

/* ---- fold_loop.c: where the program's loop goes from one of its parts to the next ---- */

int fold_find_loop(struct fold_window *t);
/* True: this allocation is the first of its thread in another part. */
bool fold_begins_part(struct fold_window *t, const struct mt_event *s, uint32_t thread);

#endif
