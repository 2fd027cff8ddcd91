/*
 * Blocks of events, as columns.
 *
 * Each slot has an operation: an entry of the block's table of (kind, hook, which fields are not zero). What else
 * a slot says goes to the columns that its operation calls for, and most of it is predicted from what the block
 * said before, so that the columns are mostly zeros and zstd makes little of them:
 *
 *   size     as that of the last event with this node
 *   node     the one that followed the ring's previous node the last time
 *   address  of an allocation: that of a block of this size class which this ring freed lately, as malloc's
 *            own lists are stacks; or where the allocation before it ends
 *   address  of a free: how many allocations ago the block was allocated
 *
 * Encoder and decoder make the same predictions because both run the functions of struct model. Predictions may
 * be as wrong as they like: a column always says when they are.
 */
#include <stdlib.h>
#include <string.h>

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
	PLACE_DEPTHS = 8,    /* 0..7: how deep in the stack of freed blocks */
	PLACE_LAST = 8,      /* the block this ring freed last, whatever its class */
	PLACE_ELSEWHERE = 9,
};

#define OPS        (1u << 19) /* 6 bits kind, 10 hook, 3 fields */
#define LANES      1024u
#define CLASSES    128u
#define NODE_SLOTS 65536u

/* ---- predictions --------------------------------------------------------------------------------------- */

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

struct model {
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

static void model_fini(struct model *m)
{
	free(m->freed);
	free(m->allocations);
}

static int model_reset(struct model *m, uint32_t slots)
{
	memset(m, 0, offsetof(struct model, freed));
	for (uint32_t i = 0; i < LANES; i++)
		m->lanes[i].first_stack = i * CLASSES;
	if (slots <= m->capacity)
		return 0;
	model_fini(m);
	m->freed = calloc(slots + 1ul, sizeof(*m->freed));
	m->allocations = malloc(slots * sizeof(*m->allocations));
	m->capacity = m->freed && m->allocations ? slots : 0;
	return m->capacity ? 0 : -CODEC_EMEM;
}

/* Sizes that malloc serves from one list: 16-byte classes, then whatever has the same hash. */
static uint32_t size_class(uint64_t size)
{
	if (size <= 24)
		return 1;
	if (size <= 1032)
		return (uint32_t)(size + 7) >> 4;
	return 66 + (uint32_t)((size >> 4) * 0x9e3779b97f4a7c15u >> 32) % 62;
}

/* Bytes from one block of malloc's to the next. */
static uint64_t stride(uint64_t size)
{
	return size <= 24 ? 32 : (size + 23) & ~(uint64_t)15;
}

static uint32_t node_slot(uint32_t node)
{
	return node * 0x9e3779b1u >> 16;
}

static void model_allocated(struct model *m, struct lane *lane, uint64_t addr, uint64_t size)
{
	m->allocations[m->allocation_count++] = (struct allocation){ .addr = addr, .class = size_class(size) };
	lane->next_addr = addr + stride(size);
}

static void model_freed(struct model *m, struct lane *lane, const struct allocation *a)
{
	uint32_t stack = lane->first_stack + a->class;
	uint32_t index = ++m->freed_count;
	m->freed[index] = (struct freed){ .addr = a->addr, .below = m->stacks[stack], .stack = stack };
	m->stacks[stack] = index;
	lane->last_freed = index;
}

/* Removes the block at a place from its stack; 0 when nothing is there. */
static uint64_t model_take(struct model *m, const struct lane *lane, uint32_t class, unsigned place)
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

/* ---- encoder ------------------------------------------------------------------------------------------- */

/* Where the encoder finds a free's allocation: a hash table of the latest at each address. */
struct address_table {
	uint32_t *ordinals; /* index in model.allocations, + 1 */
	uint32_t mask, capacity;
};

struct event_scratch {
	struct model model;
	struct address_table table;
	uint32_t op_index[OPS]; /* encoder: index in the block's table, + 1 */
	uint32_t ops[OPS];      /* the block's table */
	uint32_t op_count;
};

void event_scratch_free(struct event_scratch *scratch)
{
	if (!scratch)
		return;
	model_fini(&scratch->model);
	free(scratch->table.ordinals);
	free(scratch);
}

static struct event_scratch *scratch_get(struct codec *codec)
{
	if (!codec->events)
		codec->events = calloc(1, sizeof(*codec->events));
	return codec->events;
}

static int table_reset(struct address_table *table, uint32_t slots)
{
	uint32_t size = 1024;
	while (size < slots + slots / 2)
		size *= 2;
	if (size > table->capacity) {
		free(table->ordinals);
		table->ordinals = malloc(size * sizeof(*table->ordinals));
		table->capacity = table->ordinals ? size : 0;
	}
	if (!table->ordinals)
		return -CODEC_EMEM;
	memset(table->ordinals, 0, size * sizeof(*table->ordinals));
	table->mask = size - 1;
	return 0;
}

/* The entry of `addr`, or the empty one where it would be. */
static uint32_t *table_find(const struct address_table *table, const struct allocation *allocations, uint64_t addr)
{
	uint32_t i = (uint32_t)((addr >> 4 ^ addr << 60) * 0x9e3779b97f4a7c15u >> 32);
	for (;; i++) {
		uint32_t *entry = &table->ordinals[i & table->mask];
		if (!*entry || allocations[*entry - 1].addr == addr)
			return entry;
	}
}

static void put(struct column *column, uint64_t value)
{
	column->at = varint_put(column->at, value);
}

/* A difference of addresses, which are multiples of 16 as a rule: 60 bits, and whether the other four follow. */
static void put_address(struct column *column, uint64_t difference)
{
	uint64_t low = difference & 15;
	put(column, zigzag((uint64_t)((int64_t)difference >> 4)) << 1 | (low != 0));
	if (low)
		put(column, low);
}

static unsigned put_operation(struct event_scratch *s, struct column *columns, const struct mt_event *event)
{
	unsigned fields = (event->size ? FIELD_SIZE : 0) | (event->node ? FIELD_NODE : 0) |
			  (event->node2 ? FIELD_NODE2 : 0);
	if (event->kind == MT_EXT)
		fields = 0;
	uint32_t op = (uint32_t)event->kind | (uint32_t)event->hook << 6 | fields << 16;
	if (!s->op_index[op]) {
		put(&columns[COLUMN_TABLE], op);
		s->ops[s->op_count++] = op;
		s->op_index[op] = s->op_count;
	}
	put(&columns[COLUMN_OP], s->op_index[op] - 1);
	return fields;
}

static void put_time(struct model *m, struct column *columns, uint64_t ticks, unsigned shift)
{
	uint64_t time = ticks >> shift;
	if (time < m->time)
		time = m->time;
	put(&columns[COLUMN_TIME], time - m->time);
	m->time = time;
}

static void put_node(struct column *column, uint32_t *follower, uint32_t *last, uint32_t node)
{
	uint32_t *guess = &follower[node_slot(*last)];
	put(column, *guess == node ? 0 : zigzag((uint64_t)node - *last) + 1);
	*last = *guess = node;
}

static void put_fields(struct model *m, struct column *columns, struct lane *lane, const struct mt_event *event,
		       unsigned fields)
{
	if (fields & FIELD_NODE)
		put_node(&columns[COLUMN_NODE], m->follower, &lane->node, event->node);
	if (fields & FIELD_NODE2)
		put_node(&columns[COLUMN_NODE2], m->follower2, &lane->node2, event->node2);
	if (fields & FIELD_SIZE) {
		uint64_t *guess = &m->size_of[node_slot(event->node)];
		put(&columns[COLUMN_SIZE], *guess == event->size ? 0 : event->size);
		*guess = event->size;
	}
}

static unsigned find_place(const struct model *m, const struct lane *lane, uint32_t class, uint64_t addr)
{
	uint32_t index = m->stacks[lane->first_stack + class];
	for (unsigned place = 0; place < PLACE_DEPTHS && index; place++) {
		if (m->freed[index].addr == addr)
			return place;
		index = m->freed[index].below;
	}
	return lane->last_freed && m->freed[lane->last_freed].addr == addr ? PLACE_LAST : PLACE_ELSEWHERE;
}

static void put_allocation(struct event_scratch *s, struct column *columns, struct lane *lane,
			   const struct mt_event *event)
{
	struct model *m = &s->model;
	uint32_t class = size_class(event->size);
	unsigned place = find_place(m, lane, class, event->addr);
	*columns[COLUMN_PLACE].at++ = (uint8_t)place;
	if (place == PLACE_ELSEWHERE)
		put_address(&columns[COLUMN_ADDRESS], event->addr - lane->next_addr);
	else
		model_take(m, lane, class, place);
	*table_find(&s->table, m->allocations, event->addr) = m->allocation_count + 1;
	model_allocated(m, lane, event->addr, event->size);
}

static void put_free(struct event_scratch *s, struct column *columns, struct lane *lane, uint64_t addr)
{
	struct model *m = &s->model;
	uint32_t entry = *table_find(&s->table, m->allocations, addr);
	struct allocation *a = entry ? &m->allocations[entry - 1] : NULL;
	if (a && !a->freed) {
		put(&columns[COLUMN_FREE], m->allocation_count - (entry - 1));
		a->freed = 1;
		model_freed(m, lane, a);
		return;
	}
	put(&columns[COLUMN_FREE], 0);
	put_address(&columns[COLUMN_FAR], addr - lane->far_addr);
	lane->far_addr = addr;
}

static void put_ext(struct column *column, const struct mt_event *event)
{
	put(column, event->ticks);
	put(column, event->addr);
	put(column, event->size);
	put(column, event->node);
	put(column, event->node2);
}

static void put_slot(struct event_scratch *s, struct column *columns, const struct mt_event *event, uint32_t ring,
		     unsigned shift)
{
	struct model *m = &s->model;
	struct lane *lane = &m->lanes[ring % LANES];
	unsigned fields = put_operation(s, columns, event);
	if (event->kind == MT_EXT) {
		put_ext(&columns[COLUMN_EXT], event);
		return;
	}
	put_time(m, columns, event->ticks, shift);
	put_fields(m, columns, lane, event, fields);
	if (event->kind == MT_ALLOC) {
		put_allocation(s, columns, lane, event);
	} else if (event->kind == MT_FREE) {
		put_free(s, columns, lane, event->addr);
	} else {
		put(&columns[COLUMN_OTHER], zigzag(event->addr - m->other));
		m->other = event->addr;
	}
}

static void put_rings(struct column *column, const uint32_t *rings, uint32_t slots)
{
	for (uint32_t i = 0, end; i < slots; i = end) {
		for (end = i + 1; end < slots && rings[end] == rings[i]; end++)
			;
		put(column, rings[i]);
		put(column, end - i - 1);
	}
}

/* The most bytes of a column that `slots` slots can need. */
static size_t column_limit(unsigned column, uint32_t slots)
{
	switch (column) {
	case COLUMN_PLACE:   return slots;
	case COLUMN_ADDRESS:
	case COLUMN_FAR:     return (VARINT_MAX + 1ul) * slots;
	case COLUMN_EXT:     return 5ul * VARINT_MAX * slots;
	case COLUMN_OTHER:
	case COLUMN_TIME:    return VARINT_MAX * (size_t)slots;
	case COLUMN_SIZE:    return 7ul * slots; /* 48 bits */
	default:             return 10ul * slots; /* two of 32 bits */
	}
}

static int encoder_reset(struct codec *codec, struct event_scratch *s, uint32_t slots)
{
	int error = model_reset(&s->model, slots);
	if (!error)
		error = table_reset(&s->table, slots);
	for (unsigned i = 0; i < EVENT_COLUMNS && !error; i++)
		error = column_reset(&codec->columns[i], column_limit(i, slots));
	for (uint32_t i = 0; i < s->op_count; i++)
		s->op_index[s->ops[i]] = 0;
	s->op_count = 0;
	return error;
}

static uint64_t first_time(const struct mt_event *events, uint32_t slots, unsigned shift)
{
	for (uint32_t i = 0; i < slots; i++)
		if (events[i].kind != MT_EXT)
			return events[i].ticks >> shift;
	return 0;
}

static int encode(struct codec *codec, const struct mt_event *events, const uint32_t *rings, uint32_t slots,
		  const struct mt_cover *covers, uint32_t cover_count, unsigned shift, uint32_t type, struct codec_buf *out)
{
	struct event_scratch *s = scratch_get(codec);
	if (!s)
		return -CODEC_EMEM;
	if (!slots || slots > CODEC_MAX_SLOTS || cover_count > CODEC_MAX_COVERS || shift > 63)
		return -CODEC_EARG;
	int error = encoder_reset(codec, s, slots);
	if (!error)
		error = block_begin(out, type, covers, cover_count);
	if (error)
		return error;
	uint64_t first = s->model.time = first_time(events, slots, shift);
	put_rings(&codec->columns[COLUMN_RING], rings, slots);
	for (uint32_t i = 0; i < slots; i++)
		put_slot(s, codec->columns, &events[i], rings[i], shift);
	error = block_add_columns(codec, out, EVENT_COLUMNS);
	if (error)
		return error;
	struct mt_block *header = block_header(out);
	header->count = slots;
	header->first_ticks = first << shift;
	header->last_ticks = s->model.time << shift;
	header->shift = shift;
	block_end(out);
	return 0;
}

int codec_encode_events(struct codec *codec, const struct mt_event *events, const uint32_t *rings, uint32_t slots,
			const struct mt_cover *covers, uint32_t cover_count, unsigned shift, struct codec_buf *out)
{
	return encode(codec, events, rings, slots, covers, cover_count, shift, MT_BLOCK_EVENTS, out);
}

int codec_encode_folded(struct codec *codec, const struct mt_event *events, const uint32_t *rings, uint32_t slots,
			const struct mt_cover *covers, uint32_t cover_count, unsigned shift, unsigned level, struct codec_buf *out)
{
	int error = encode(codec, events, rings, slots, covers, cover_count, shift, MT_BLOCK_FOLDED, out);
	if (error)
		return error;
	block_header(out)->shift |= level << 8;
	block_end(out);
	return 0;
}

/* ---- decoder ------------------------------------------------------------------------------------------- */

struct decoder {
	struct event_scratch *s;
	struct varint_in in[EVENT_COLUMNS];
	uint32_t ring;
	uint64_t ring_slots; /* left of this run */
	unsigned shift;
	int bad; /* something that no encoder writes */
};

static uint64_t get_address(struct varint_in *in)
{
	uint64_t code = varint_get(in);
	uint64_t low = code & 1 ? varint_get(in) & 15 : 0;
	return unzigzag(code >> 1) << 4 | low;
}

static uint32_t get_operation(struct decoder *d)
{
	uint64_t index = varint_get(&d->in[COLUMN_OP]);
	if (index < d->s->op_count)
		return d->s->ops[index];
	d->bad = 1;
	return MT_EXT;
}

static uint32_t get_ring(struct decoder *d)
{
	if (!d->ring_slots) {
		d->ring = (uint32_t)varint_get(&d->in[COLUMN_RING]);
		d->ring_slots = varint_get(&d->in[COLUMN_RING]) + 1;
	}
	d->ring_slots--;
	return d->ring;
}

static uint32_t get_node(struct varint_in *in, uint32_t *follower, uint32_t *last)
{
	uint32_t *guess = &follower[node_slot(*last)];
	uint64_t code = varint_get(in);
	uint32_t node = code ? *last + (uint32_t)unzigzag(code - 1) : *guess;
	*last = *guess = node;
	return node;
}

static uint64_t get_size(struct decoder *d, uint32_t node)
{
	uint64_t *guess = &d->s->model.size_of[node_slot(node)];
	uint64_t code = varint_get(&d->in[COLUMN_SIZE]);
	if (code)
		*guess = code & MT_MAX_SIZE;
	return *guess;
}

static uint64_t get_allocation(struct decoder *d, struct lane *lane, uint64_t size)
{
	struct model *m = &d->s->model;
	struct varint_in *places = &d->in[COLUMN_PLACE];
	unsigned place = PLACE_ELSEWHERE;
	if (places->at < places->end)
		place = *places->at++;
	else
		places->bad = 1;
	uint64_t addr;
	if (place < PLACE_ELSEWHERE)
		addr = model_take(m, lane, size_class(size), place);
	else
		addr = lane->next_addr + get_address(&d->in[COLUMN_ADDRESS]);
	model_allocated(m, lane, addr, size);
	return addr;
}

static uint64_t get_free(struct decoder *d, struct lane *lane)
{
	struct model *m = &d->s->model;
	uint64_t distance = varint_get(&d->in[COLUMN_FREE]);
	if (!distance)
		return lane->far_addr += get_address(&d->in[COLUMN_FAR]);
	if (distance > m->allocation_count) {
		d->bad = 1;
		return 0;
	}
	const struct allocation *a = &m->allocations[m->allocation_count - distance];
	model_freed(m, lane, a);
	return a->addr;
}

static uint64_t get_other(struct decoder *d)
{
	return d->s->model.other += unzigzag(varint_get(&d->in[COLUMN_OTHER]));
}

static void get_ext(struct varint_in *in, struct mt_event *event)
{
	event->ticks = varint_get(in);
	event->addr = varint_get(in);
	event->size = varint_get(in) & MT_MAX_SIZE;
	event->node = (uint32_t)varint_get(in);
	event->node2 = (uint32_t)varint_get(in);
}

static void get_slot(struct decoder *d, struct mt_event *event, uint32_t ring)
{
	struct model *m = &d->s->model;
	struct lane *lane = &m->lanes[ring % LANES];
	uint32_t op = get_operation(d), fields = op >> 16;
	struct mt_event e = { .kind = op & 63, .hook = op >> 6 & 1023 };
	if (e.kind == MT_EXT) {
		get_ext(&d->in[COLUMN_EXT], &e);
		*event = e;
		return;
	}
	m->time += varint_get(&d->in[COLUMN_TIME]);
	e.ticks = m->time << d->shift;
	if (fields & FIELD_NODE)
		e.node = get_node(&d->in[COLUMN_NODE], m->follower, &lane->node);
	if (fields & FIELD_NODE2)
		e.node2 = get_node(&d->in[COLUMN_NODE2], m->follower2, &lane->node2);
	if (fields & FIELD_SIZE)
		e.size = get_size(d, e.node);
	if (e.kind == MT_ALLOC)
		e.addr = get_allocation(d, lane, e.size);
	else
		e.addr = e.kind == MT_FREE ? get_free(d, lane) : get_other(d);
	*event = e;
}

static void get_table(struct decoder *d)
{
	struct varint_in *in = &d->in[COLUMN_TABLE];
	d->s->op_count = 0;
	while (in->at < in->end && d->s->op_count < OPS)
		d->s->ops[d->s->op_count++] = (uint32_t)varint_get(in) & (OPS - 1);
}

/* Whether every column was read to its end and nothing was read beyond one. */
static int decoder_at_end(const struct decoder *d)
{
	for (unsigned i = 0; i < EVENT_COLUMNS; i++)
		if (d->in[i].bad || d->in[i].at != d->in[i].end)
			return 0;
	return !d->bad && !d->ring_slots;
}

static int decoder_init(struct decoder *d, struct codec *codec, const void *block, size_t bytes,
			const struct mt_block *header)
{
	size_t limits[EVENT_COLUMNS];
	struct payload payload = block_payload(block, bytes);
	uint32_t slots = (uint32_t)header->count;
	d->s = scratch_get(codec);
	if (!d->s)
		return -CODEC_EMEM;
	/* The encoder's next reset must not follow what is about to be written to `ops`. */
	for (uint32_t i = 0; i < d->s->op_count; i++)
		d->s->op_index[d->s->ops[i]] = 0;
	for (unsigned i = 0; i < EVENT_COLUMNS; i++)
		limits[i] = column_limit(i, slots);
	int error = payload_columns(codec, &payload, EVENT_COLUMNS, limits, d->in);
	if (!error)
		error = model_reset(&d->s->model, slots);
	if (error)
		return error;
	d->shift = codec_shift(header);
	d->s->model.time = header->first_ticks >> d->shift;
	get_table(d);
	return 0;
}

int codec_decode_events(struct codec *codec, const void *block, size_t bytes, struct mt_event *events, uint32_t *rings)
{
	struct mt_block header;
	struct decoder d = { 0 };
	memcpy(&header, block, sizeof(header));
	if (!codec_holds_events(header.type) || header.columns != EVENT_COLUMNS)
		return -CODEC_ECORRUPT;
	int error = decoder_init(&d, codec, block, bytes, &header);
	if (error)
		return error;
	for (uint64_t i = 0; i < header.count; i++) {
		rings[i] = get_ring(&d);
		get_slot(&d, &events[i], rings[i]);
	}
	if (!decoder_at_end(&d) || d.s->model.time << d.shift != header.last_ticks)
		return -CODEC_ECORRUPT;
	return 0;
}
