/* What each block that comes or goes does to the sums, whichever event it came by. */
#include "analyzer/model/device_blocks.h"

/* ---- counts ---------------------------------------------------------------------------------------------- */

static void bump(struct model_totals *t, enum device_counter c, uint64_t n)
{
	switch (c) {
	case COUNT_FREES:
		t->frees += n;
		break;
	case COUNT_MISSED:
		t->missed_frees += n;
		break;
	case COUNT_UNKNOWN:
		t->unknown_frees += n;
		break;
	case COUNT_TEMPORARY:
		t->temporary += n;
		break;
	}
}

void device_count_up(struct process_memory *memory, struct share *s, enum event_space space, enum device_counter c,
		     uint64_t n)
{
	enum model_kind kind = space_kind(space);
	if (kind == MODEL_KINDS)
		return;
	bump(&memory->kind[kind].totals, c, n);
	if (s && kind >= MODEL_HOST_KINDS)
		bump(&s->layer[kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY].totals, c, n);
}

/* ---- what is live ---------------------------------------------------------------------------------------- */

static void change_registered(struct process_memory *memory, int64_t bytes)
{
	memory->seen.registered_bytes += (uint64_t)bytes;
	if (memory->seen.registered_bytes > memory->seen.registered_peak_bytes)
		memory->seen.registered_peak_bytes = memory->seen.registered_bytes;
}

void device_move_block(struct share *s, enum event_space space, const struct block *b, int64_t delta, uint64_t ns)
{
	enum model_kind kind = space_kind(space);
	const struct change c = { kind, b->site, delta * (int64_t)b->size, delta, b->addr, b->thread, b->ns };
	if (space == SPACE_REGISTERED)
		change_registered(s->memory, c.bytes);
	if (kind == MODEL_PINNED)
		process_memory_change(s->memory, &c, ns);
	else if (kind != MODEL_KINDS)
		share_change(s, kind == MODEL_POOL ? LAYER_POOL : LAYER_MEMORY, &c, ns);
	struct block *place = delta < 0 && b->addr >= MT_NOWHERE ? blocks_find(&s->places, b->addr) : NULL;
	if (place)
		blocks_remove(&s->places, place);
	if (kind == MODEL_POOL && s->capture_count)
		graphs_move_block(s, b, delta, ns);
}

void device_end_block(struct share *s, enum event_space space, struct block *b, uint64_t ns)
{
	device_count_up(s->memory, s, space, COUNT_MISSED, 1);
	device_move_block(s, space, b, -1, ns);
	blocks_remove(&s->space[space], b);
}

/* ---- blocks of a parent ---------------------------------------------------------------------------------- */

bool devices_free_inherited(struct process_memory *memory, enum event_space space, uint64_t addr)
{
	return inherited_blocks_take(&memory->devices->inherited_blocks, inherited_blocks_key(space, addr)) !=
	       INHERITED_BLOCKS_GONE;
}

void devices_undo_inherited(struct process_memory *memory, enum event_space space, uint64_t addr)
{
	inherited_blocks_put_back(&memory->devices->inherited_blocks, inherited_blocks_key(space, addr), 0);
}
