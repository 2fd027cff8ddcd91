/*
 * What the parts of thin.c share: thin.c looks at slots, thin_device.c and thin_maps.c at what isn't heap, thin_pairs.c decides which
 * pairs are left out, thin_write.c writes what is left, thin_sums.c and thin_level.c what the rest was. Nobody else includes this.
 *
 * A slot's place counts the slots that were looked at, from 1 on. In a struct block of the first pass `ns` is the place of its allocation,
 * 0 of one that must be kept.
 */
#ifndef MT_THIN_OWN_H
#define MT_THIN_OWN_H

#include "analyzer/blocks.h"
#include "analyzer/model.h"
#include "analyzer/ranges.h"
#include "analyzer/slot_meaning.h"
#include "analyzer/thin.h"

/* Blocks with addresses of their own, all of which can be left out. */
enum thin_space { THIN_HEAP = 0, THIN_MAP, THIN_PINNED, THIN_LINEAR, THIN_POOL, THIN_WORKSPACE, THIN_NONE };

/* What is kept for the sake of a moment differs: no owners of the heap are asked for where a device is at its peak. */
enum thin_group { GROUP_HEAP = 0, GROUP_MAP, GROUP_DEVICE, GROUPS };

/* A pair that would be left out if it were not alive at `refs` of the moments watched. */
struct pair { uint64_t alloc, free; uint32_t refs; };

/* The highest (lowest) moment of a sum in the slice so far, and pairs that were alive then and have been freed since. */
struct watch {
	uint64_t place, bytes, more; /* more: decides where bytes are the same */
	uint32_t *pairs;
	size_t count, room;
};

/* A free that may still be undone. addr 0 = nothing. */
struct freed {
	uint64_t addr;              /* as the event says */
	struct block block;         /* addr: its key; 0 = it is unknown */
	uint64_t place;
	uint32_t class;
	bool short_lived;
};

struct ring {
	struct freed freed[UNDO_DEPTH], device[UNDO_DEPTH], unmap;
	unsigned next, next_device;
	uint64_t failed_bytes;      /* asked for in vain, of the driver */
	bool failed;                /* the pool's next block says how that went on */
};

/* A low point counts when as much as `rise` comes behind it. */
struct tide {
	struct watch low;
	uint64_t high, least, most, rise; /* high: since the low; least, most: of the slice */
	uint64_t last;              /* place of the latest low point */
	bool confirmed;
};

struct thin_device {
	bool seen[THIN_NONE];       /* by space: it has had a block */
	struct ranges extents;      /* of the driver's linear memory; class: what of the pool's was in it */
	struct range last;          /* one that was */
	uint64_t memory, pool;
	struct watch memory_peak, pool_peak, moment;
	struct tide tide;
};

/* What one stack had left out. */
struct sum {
	uint32_t node, node2, thread, hook, what, device;
	uint64_t size;              /* of each; or the least that has as many bits */
	uint64_t count, bytes, temporary;
};

struct sums {
	struct sum *list;
	size_t count, room;
	uint32_t *index;            /* by hash: sum + 1 */
	size_t mask;
};

/* What a device's pool had since the last LEVEL. */
struct thin_track {
	uint64_t live, low, high, now; /* live: of blocks this pass sees. now: truly */
	bool open;                  /* the block at hand has a LEVEL of it */
	bool given;                 /* the block that is read has: its figures count, not `live` */
	bool changed;
	uint64_t left_out;          /* blocks that are alive */
};

enum { LOOKS = 1u << 18 };

struct thin {
	struct thin_facts facts;
	size_t next_fork;

	/* ---- looking ---- */
	unsigned level;
	struct blocks live;         /* of all spaces, by thin_key() */
	uint64_t place, first;      /* first: place of the window's first slot */
	uint32_t small;             /* small heap blocks' bytes so far in units of 16, modulo 2^32; block.site is what it was */
	uint64_t slice;             /* its first slot */
	uint64_t kept[GROUPS];      /* what was allocated up to there was alive when it mattered, or before the window */
	uint64_t kept_low;          /* the same for low points of pools; of the heap for large blocks alone */
	uint64_t bytes[MODEL_KINDS], map_bytes[MAP_CLASSES];
	struct watch peak[MODEL_KINDS], map_peak[MAP_CLASSES];
	struct thin_device **devices; /* by id */
	size_t device_room;
	struct ranges maps;         /* ns: place */
	struct ranges mapped;       /* on devices; class as in extents */
	bool graphs;                /* some of it is theirs */
	unsigned clean_up;          /* so many allocations on devices are kept, since one failed */
	struct pair *pairs;
	size_t pair_count, pair_room;
	struct ring *rings;
	size_t ring_room;
	uint64_t *last[MODEL_KINDS]; /* by thread: address of its latest allocation */
	size_t last_room[MODEL_KINDS];
	uint64_t *omit, *temporary, *lows; /* a bit for each slot of the window */
	size_t omit_room, temporary_room, low_room;
	struct look { uint32_t node, thread; } *looks; /* the latest LOOKS allocations, round about */
	uint64_t look_count, looks_left_out; /* left out: by earlier foldings */

	/* ---- writing ---- */
	uint64_t at;                /* place of the next slot */
	struct blocks omitted;      /* those that are alive, by key */
	uint64_t omitted_bytes[2], most_bytes[2], before[2]; /* of the heap, and of the rest: now; most in this block; as earlier foldings say */
	bool *last_omitted[MODEL_KINDS]; /* by thread: its latest allocation is left out */
	size_t last_omitted_room[MODEL_KINDS];
	struct sums sums;
	struct blocks pool;         /* blocks of pools by key; site: the device */
	struct thin_track *tracks;  /* by device id */
	size_t track_room;
	uint64_t left_out;          /* allocations, since the last LEVEL */
	uint64_t level_at;          /* its place */
	unsigned frames;            /* the outermost ones that tell parts of the loop apart; 0 = no loop was found */
	uint8_t *depths;            /* by node - node_base */
	uint32_t *branch;           /* the same: its caller that is as far out as `frames`; 0 = not known yet */
	uint32_t *branch_of;        /* by thread: of its latest allocation */
	size_t branch_of_room;
	uint64_t last_ticks;
	bool open;                  /* BEGIN is there */
};

/* ---- thin.c ---- */

static inline bool thin_last_level(const struct thin *t) { return t->level >= THIN_LEVELS; }
static inline void set_bit(uint64_t *bits, uint64_t i) { bits[i / 64] |= 1ull << i % 64; }
static inline bool has_bit(const uint64_t *bits, uint64_t i) { return bits[i / 64] >> i % 64 & 1; }

/* Addresses have fewer than 48 bits; one that has more may make pairs be kept. */
static inline uint64_t thin_key(enum thin_space space, uint32_t device, uint64_t addr)
{
	return addr ^ (uint64_t)((unsigned)space << 8 | (device & 255)) << 48;
}

enum thin_space thin_space_of(unsigned class);
enum model_kind thin_kind_of(enum thin_space space);
/* What a SUM says in ext.capture, and back. */
uint32_t thin_what(enum thin_space space);
enum thin_space thin_space_of_what(uint32_t what);
/* The block that a free on `device` is of, in one of the two tables: there or on another. NULL = unknown. */
struct block *thin_find(const struct thin *t, const struct blocks *in, enum thin_space space, uint32_t device, uint64_t addr);
int thin_set_last(struct thin *t, enum model_kind kind, uint32_t thread, uint64_t addr);
struct ring *thin_ring(struct thin *t, uint32_t ring); /* NULL = no memory */
bool thin_was_last(const struct thin *t, enum model_kind kind, uint32_t thread, uint64_t addr);
/* Allocation (unless it is before the window) and free had nothing in between. */
void thin_temporary(struct thin *t, uint64_t alloc);

/* ---- thin_pairs.c ---- */

/* The sum has risen: its highest moment may be now. */
void watch_rise(struct thin *t, struct watch *w, uint64_t bytes, uint64_t more);
/* The moment stays, and the next one is looked for from here on: what has been is kept. */
void watch_restart(struct thin *t, struct watch *w, enum thin_group group, uint64_t bytes, uint64_t more);
void tide_change(struct thin *t, struct tide *d, uint64_t bytes);
/* Everything that was alive up to the slot at hand is kept. */
void thin_keep(struct thin *t, enum thin_group group);
void pairs_begin_slice(struct thin *t);
void pairs_forget(struct thin *t); /* who waits stays */
/* A free is final. */
int pairs_settle(struct thin *t, const struct freed *f);
void watch_fini(struct watch *w);

/* ---- thin_device.c, thin_maps.c ---- */

int look_device(struct thin *t, const struct mt_event *s, uint32_t ring, uint32_t thread);
struct thin_device *thin_device(struct thin *t, uint32_t id); /* NULL = no memory */
int look_map(struct thin *t, const struct mt_event *s, uint32_t ring, uint32_t thread);
int look_unmap(struct thin *t, const struct mt_event *s, uint32_t ring);
/* True: it was this ring's last unmapping that did not happen. */
bool look_undo_unmap(struct thin *t, uint64_t addr, uint32_t ring);

/* ---- thin_sums.c ---- */

int sums_add(struct sums *s, const struct sum *more);
void sums_clear(struct sums *s);
void sums_fini(struct sums *s);

/* ---- thin_write.c ---- */

int thin_put(struct thin_out *out, const struct mt_event *slot, uint32_t ring);
int thin_put_fold(struct thin_out *out, const struct mt_event *slot, const struct mt_ext_device *ext, uint32_t ring);

/* ---- thin_level.c: what pools have, with what is left out ---- */

/* The window begins: what lives is known. */
int thin_begin_tracks(struct thin *t);
/* Before a slot of a pool is written or left out. */
int thin_track(struct thin *t, const struct mt_event *s, bool left_out, struct thin_out *out, uint32_t ring);
int thin_take_level(struct thin *t, const struct mt_event *s, const struct mt_ext_device *ext, struct thin_out *out, uint32_t ring);
/* LEVEL of all that has changed; `low`: a low point, at which nothing is left out. */
int thin_put_levels(struct thin *t, bool low, struct thin_out *out, uint32_t ring);
int thin_open_levels(struct thin *t, struct thin_out *out, uint32_t ring);
int thin_end_levels(struct thin *t, struct thin_out *out);

/* ---- thin_loop.c: where the program's loop goes from one of its parts to the next ---- */

int thin_find_loop(struct thin *t);
/* True: this allocation is the first of its thread in another part. */
bool thin_is_turn(struct thin *t, const struct mt_event *s, uint32_t thread);

#endif
