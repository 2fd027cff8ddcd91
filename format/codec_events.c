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
 * Encoder and decoder make the same predictions because both run the functions of struct event_model. Predictions may
 * be as wrong as they like: a column always says when they are.
 */
#include "format/event_model.h"

#include <stdlib.h>
#include <string.h>

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

static void append_number(struct column *column, uint64_t value)
{
	column->at = varint_put(column->at, value);
}

/* A difference of addresses, which are multiples of 16 as a rule: 60 bits, and whether the other four follow. */
static void put_address(struct column *column, uint64_t difference)
{
	uint64_t low = difference & 15;
	append_number(column, zigzag((uint64_t)((int64_t)difference >> 4)) << 1 | (low != 0));
	if (low)
		append_number(column, low);
}

static unsigned put_operation(struct event_scratch *s, struct column *columns, const struct mt_event *event)
{
	unsigned fields =
		(event->size ? FIELD_SIZE : 0) | (event->node ? FIELD_NODE : 0) | (event->node2 ? FIELD_NODE2 : 0);
	if (event->kind == MT_EXT)
		fields = 0;
	uint32_t op = (uint32_t)event->kind | (uint32_t)event->hook << 6 | fields << 16;
	if (!s->op_index[op]) {
		append_number(&columns[COLUMN_TABLE], op);
		s->ops[s->op_count++] = op;
		s->op_index[op] = s->op_count;
	}
	append_number(&columns[COLUMN_OP], s->op_index[op] - 1);
	return fields;
}

static void put_time(struct event_model *m, struct column *columns, uint64_t ticks, unsigned shift)
{
	uint64_t time = ticks >> shift;
	if (time < m->time)
		time = m->time;
	append_number(&columns[COLUMN_TIME], time - m->time);
	m->time = time;
}

static void put_node(struct column *column, uint32_t *follower, uint32_t *last, uint32_t node)
{
	uint32_t *guess = &follower[node_slot(*last)];
	append_number(column, *guess == node ? 0 : zigzag((uint64_t)node - *last) + 1);
	*last = *guess = node;
}

static void put_fields(struct event_model *m, struct column *columns, struct lane *lane, const struct mt_event *event,
		       unsigned fields)
{
	if (fields & FIELD_NODE)
		put_node(&columns[COLUMN_NODE], m->follower, &lane->node, event->node);
	if (fields & FIELD_NODE2)
		put_node(&columns[COLUMN_NODE2], m->follower2, &lane->node2, event->node2);
	if (fields & FIELD_SIZE) {
		uint64_t *guess = &m->size_of[node_slot(event->node)];
		append_number(&columns[COLUMN_SIZE], *guess == event->size ? 0 : event->size);
		*guess = event->size;
	}
}

static unsigned find_place(const struct event_model *m, const struct lane *lane, uint32_t class, uint64_t addr)
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
	struct event_model *m = &s->model;
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
	struct event_model *m = &s->model;
	uint32_t entry = *table_find(&s->table, m->allocations, addr);
	struct allocation *a = entry ? &m->allocations[entry - 1] : NULL;
	if (a && !a->freed) {
		append_number(&columns[COLUMN_FREE], m->allocation_count - (entry - 1));
		a->freed = 1;
		model_freed(m, lane, a);
		return;
	}
	append_number(&columns[COLUMN_FREE], 0);
	put_address(&columns[COLUMN_FAR], addr - lane->far_addr);
	lane->far_addr = addr;
}

static void put_ext(struct column *column, const struct mt_event *event)
{
	append_number(column, event->ticks);
	append_number(column, event->addr);
	append_number(column, event->size);
	append_number(column, event->node);
	append_number(column, event->node2);
}

static void put_slot(struct event_scratch *s, struct column *columns, const struct mt_event *event, uint32_t ring,
		     unsigned shift)
{
	struct event_model *m = &s->model;
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
		append_number(&columns[COLUMN_OTHER], zigzag(event->addr - m->other));
		m->other = event->addr;
	}
}

static void put_rings(struct column *column, const uint32_t *rings, uint32_t slots)
{
	for (uint32_t i = 0, end; i < slots; i = end) {
		for (end = i + 1; end < slots && rings[end] == rings[i]; end++)
			;
		append_number(column, rings[i]);
		append_number(column, end - i - 1);
	}
}

static int encoder_reset(struct codec *codec, struct event_scratch *s, uint32_t slots)
{
	int error = event_model_reset(&s->model, slots);
	if (!error)
		error = table_reset(&s->table, slots);
	for (unsigned i = 0; i < EVENT_COLUMNS && !error; i++)
		error = column_reset(&codec->columns[i], event_column_limit(i, slots));
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
		  const struct mt_cover *covers, uint32_t cover_count, unsigned shift, uint32_t type,
		  struct codec_buf *out)
{
	struct event_scratch *s = event_scratch_of(codec);
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
			const struct mt_cover *covers, uint32_t cover_count, unsigned shift, unsigned level,
			struct codec_buf *out)
{
	int error = encode(codec, events, rings, slots, covers, cover_count, shift, MT_BLOCK_FOLDED, out);
	if (error)
		return error;
	block_header(out)->shift |= level << 8;
	block_end(out);
	return 0;
}
