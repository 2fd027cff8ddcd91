/* Reads blocks of events, with the predictions that their encoder made: see codec_events.c. */
#include "format/event_model.h"

#include <string.h>

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
		uint64_t ring = varint_get(&d->in[COLUMN_RING]);
		d->bad |= ring >= MT_MAX_CHUNKS; /* each ring has a chunk: readers keep lists by ring */
		d->ring = (uint32_t)ring;
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
	struct event_model *m = &d->s->model;
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

/* Nearly all of a free's time goes into waiting for its allocation, which lies anywhere in the block's list. So that of
 * the next free is asked for: its distance is known, how many allocations come before it only about. */
static void ask_for_next(const struct decoder *d)
{
	const struct event_model *m = &d->s->model;
	const uint8_t *at = d->in[COLUMN_FREE].at;
	if (d->in[COLUMN_FREE].end - at < 3)
		return;
	uint32_t distance = at[0];
	if (distance >= 128)
		distance = (distance & 127) | (at[1] & 127u) << 7 | (at[1] >= 128 ? at[2] & 127u : 0) << 14;
	if (distance <= m->allocation_count)
		__builtin_prefetch(&m->allocations[m->allocation_count - distance]);
}

static uint64_t get_free(struct decoder *d, struct lane *lane)
{
	struct event_model *m = &d->s->model;
	uint64_t distance = varint_get(&d->in[COLUMN_FREE]);
	ask_for_next(d);
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
	struct event_model *m = &d->s->model;
	struct lane *lane = &m->lanes[ring % LANES];
	const uint32_t op = get_operation(d), fields = op >> 16, kind = op & 63, hook = op >> 6 & 1023;
	uint32_t node = 0, node2 = 0;
	uint64_t addr, size = 0;
	if (kind == MT_EXT) {
		*event = (struct mt_event){ .kind = kind, .hook = hook };
		get_ext(&d->in[COLUMN_EXT], event);
		return;
	}
	m->time += varint_get(&d->in[COLUMN_TIME]);
	if (fields & FIELD_NODE)
		node = get_node(&d->in[COLUMN_NODE], m->follower, &lane->node);
	if (fields & FIELD_NODE2)
		node2 = get_node(&d->in[COLUMN_NODE2], m->follower2, &lane->node2);
	if (fields & FIELD_SIZE)
		size = get_size(d, node);
	if (kind == MT_ALLOC)
		addr = get_allocation(d, lane, size);
	else
		addr = kind == MT_FREE ? get_free(d, lane) : get_other(d);
	*event = (struct mt_event){ .ticks = m->time << d->shift,
				    .addr = addr,
				    .size = size,
				    .hook = hook,
				    .kind = kind,
				    .node = node,
				    .node2 = node2 };
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
	d->s = event_scratch_of(codec);
	if (!d->s)
		return -CODEC_EMEM;
	/* The encoder's next reset must not follow what is about to be written to `ops`. */
	for (uint32_t i = 0; i < d->s->op_count; i++)
		d->s->op_index[d->s->ops[i]] = 0;
	for (unsigned i = 0; i < EVENT_COLUMNS; i++)
		limits[i] = event_column_limit(i, slots);
	int error = payload_columns(codec, &payload, EVENT_COLUMNS, limits, d->in);
	if (!error)
		error = event_model_reset(&d->s->model, slots);
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
