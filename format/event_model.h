/* What encoder (codec_events.c) and decoder (codec_events_decode.c) of blocks of events share: the columns, and what
 * each predicts of the slots before. Nobody else includes this. */
#ifndef MT_EVENT_MODEL_H
#define MT_EVENT_MODEL_H

#include <stdint.h>

#include "format/column.h"

enum {
	COLUMN_TABLE,   /* an operation: kind | hook << 6 | fields << 16 */
	COLUMN_OP,      /* a slot: index into the table */
	COLUMN_RING,    /* a run of slots: ring, length - 1 */
	COLUMN_TIME,    /* a slot, not EXT: difference to the one before in 2^shift ticks */
	COLUMN_SIZE,    /* FIELD_SIZE: 0 as predicted, else the size */
	COLUMN_NODE,    /* FIELD_NODE: 0 as predicted, else zigzag difference to the ring's previous node, + 1 */
	COLUMN_NODE2,   /* FIELD_NODE2: the same for node2 */
	COLUMN_PLACE,   /* ALLOC: a byte, enum place */
	COLUMN_ADDRESS, /* ALLOC of PLACE_ELSEWHERE: difference to where the ring's last allocation ended */
	COLUMN_FREE,    /* FREE: allocations ago; 0 = not in this block */
	COLUMN_FAR,     /* FREE of 0: difference to the ring's previous one of these */
	COLUMN_OTHER,   /* other kinds, not EXT: zigzag difference of addr to the one before in this column */
	COLUMN_EXT,     /* EXT: ticks, addr, size, node, node2 */
	EVENT_COLUMNS,
};

enum { FIELD_SIZE = 1, FIELD_NODE = 2, FIELD_NODE2 = 4 };

enum place {
	PLACE_DEPTHS = 8, /* 0..7: how deep in the stack of freed blocks */
	PLACE_LAST = 8,   /* the block this ring freed last, whatever its class */
	PLACE_ELSEWHERE = 9,
};

#define OPS        (1u << 19) /* 6 bits kind, 10 hook, 3 fields */
#define LANES      1024u
#define CLASSES    128u
#define NODE_SLOTS 65536u

struct freed {
	uint64_t addr;
	uint32_t below; /* in its stack; 0 = none */
	uint32_t stack;
};

/* What is remembered of a ring. Rings that are equal modulo LANES share one, which only costs hits. */
struct lane {
	uint64_t next_addr; /* where its last allocation ended */
	uint64_t far_addr;
	uint32_t node, node2;
	uint32_t last_freed; /* 0 = none */
	uint32_t first_stack;
};

struct allocation {
	uint64_t addr;
	uint32_t class;
	uint32_t freed; /* the encoder's: whether a free found it */
};

struct event_model {
	struct lane lanes[LANES];
	uint32_t stacks[LANES * CLASSES]; /* the top of each */
	uint32_t follower[NODE_SLOTS], follower2[NODE_SLOTS];
	uint64_t size_of[NODE_SLOTS];
	uint64_t time, other;
	uint32_t freed_count, allocation_count;
	/* What follows outlives a reset. */
	struct freed *freed; /* from 1 on */
	struct allocation *allocations;
	uint32_t capacity;
};

/* Sizes that malloc serves from one list: 16-byte classes, then whatever has the same hash. */
static inline uint32_t size_class(uint64_t size)
{
	if (size <= 24)
		return 1;
	if (size <= 1032)
		return (uint32_t)(size + 7) >> 4;
	return 66 + (uint32_t)((size >> 4) * 0x9e3779b97f4a7c15u >> 32) % 62;
}

/* Bytes from one block of malloc's to the next. */
static inline uint64_t stride(uint64_t size)
{
	return size <= 24 ? 32 : (size + 23) & ~(uint64_t)15;
}

static inline uint32_t node_slot(uint32_t node)
{
	return node * 0x9e3779b1u >> 16;
}

static inline void model_allocated(struct event_model *m, struct lane *lane, uint64_t addr, uint64_t size)
{
	m->allocations[m->allocation_count++] = (struct allocation){ .addr = addr, .class = size_class(size) };
	lane->next_addr = addr + stride(size);
}

static inline void model_freed(struct event_model *m, struct lane *lane, const struct allocation *a)
{
	uint32_t stack = lane->first_stack + a->class;
	uint32_t index = ++m->freed_count;
	m->freed[index] = (struct freed){ .addr = a->addr, .below = m->stacks[stack], .stack = stack };
	m->stacks[stack] = index;
	lane->last_freed = index;
}

/* Removes the block at a place from its stack; 0 when nothing is there. */
static inline uint64_t model_take(struct event_model *m, const struct lane *lane, uint32_t class, unsigned place)
{
	uint32_t *link = &m->stacks[lane->first_stack + class];
	if (place == PLACE_LAST) {
		link = &m->stacks[m->freed[lane->last_freed].stack];
		if (*link != lane->last_freed)
			return m->freed[lane->last_freed].addr;
		place = 0;
	}
	for (; place && *link; place--)
		link = &m->freed[*link].below;
	uint32_t index = *link;
	if (index)
		*link = m->freed[index].below;
	return m->freed[index].addr;
}

/* Where the encoder finds a free's allocation: a hash table of the latest at each address. */
struct address_table {
	uint32_t *ordinals; /* index in model.allocations, + 1 */
	uint32_t mask, capacity;
};

struct event_scratch {
	struct event_model model;
	struct address_table table;
	uint32_t op_index[OPS]; /* encoder: index in the block's table, + 1 */
	uint32_t ops[OPS];      /* the block's table */
	uint32_t op_count;
};

/* The codec's, made when it is first asked for; NULL = no memory. */
struct event_scratch *event_scratch_of(struct codec *codec);

/* Forgets all, and makes room for a block of so many slots. 0 or -CODEC_EMEM. */
int event_model_reset(struct event_model *m, uint32_t slots);

/* The most bytes of a column that a block of so many slots can need. */
size_t event_column_limit(unsigned column, uint32_t slots);

#endif
