/* Frees and unmappings that did not happen after all. */
#include "analyzer/model/device_blocks.h"

#include "analyzer/util/vec.h"

struct device_undo *device_undo_of(struct process_memory *memory, const struct device_event *e)
{
	struct ring_state *ring = process_memory_ring(memory, e->ring);
	if (ring && !ring->device)
		ring->device = calloc(1, sizeof(*ring->device));
	if (!ring || !ring->device) {
		error_memory();
		return NULL;
	}
	struct device_undo *u = &ring->device->frees[ring->device->next++ % UNDO_DEPTH];
	struct gone *gone = u->gone;
	size_t room = u->gone_room;
	*u = (struct device_undo){ .addr = e->slot->addr,
				   .pending = true,
				   .class = e->ext.class,
				   .space = space_of_class(e->ext.class),
				   .gone = gone,
				   .gone_room = room };
	return u;
}

/* The physical memory of an extent that was unmapped, or a handle that was released, as it was. */
static int64_t restore_physical(struct process_memory *memory, const struct gone *g, uint64_t ns)
{
	struct process_devices *b = memory->devices;
	for (size_t i = 0; i < b->physical_count; i++)
		if (b->physical[i].used && b->physical[i].event == g->physical.event &&
		    b->physical[i].handle == g->physical.handle)
			return (int64_t)i;
	struct physical p = g->physical;
	p.maps = 0;
	return physical_put(memory, &p, ns);
}

static int restore_gone(struct process_memory *memory, const struct gone *g, uint64_t ns)
{
	struct extent x = g->extent;
	int e = x.used ? extents_clear(g->share, x.start, x.end, ns) : 0;
	if (e || !g->physical.used)
		return e ? e : extent_put(g->share, &x, ns);
	int64_t i = restore_physical(memory, g, ns);
	if (i < 0)
		return (int)i;
	struct physical *p = &memory->devices->physical[i];
	if (!x.used) {
		p->released = false;
		p->retained = g->physical.retained;
		return physical_find(memory, p->handle) ? 0 : physical_hold(memory, p->handle, (uint32_t)i);
	}
	physical_count_maps(p, 1, ns);
	x.physical = (uint32_t)i + 1;
	return extent_put(g->share, &x, ns);
}

static int restore_block(struct process_memory *memory, struct device_undo *u, uint64_t ns)
{
	if (u->temporary) {
		device_count_up(memory, u->share, u->space, COUNT_TEMPORARY, (uint64_t)-1);
		site_table_temporary(&memory->sites, u->block.site, UINT32_MAX);
	}
	device_move_block(u->share, u->space, &u->block, 1, ns);
	return blocks_put(&u->share->space[u->space], &u->block);
}

static int restore_reservation(struct process_memory *memory, const struct device_undo *u)
{
	const struct range *r = &u->reservation;
	return !u->known || ranges_overlap(&memory->devices->reserved, r->start, r->end)
		       ? 0
		       : ranges_put(&memory->devices->reserved, r);
}

static int restore(struct process_memory *memory, struct device_undo *u, uint64_t ns)
{
	const uint64_t addr = u->addr;
	int e = 0;
	u->pending = false;
	if (u->inherited) {
		memory->seen.inherited_device_frees--;
		devices_undo_inherited(memory, u->space, addr);
		return 0;
	}
	if (u->class == MT_CLASS_RESERVED)
		return restore_reservation(memory, u);
	if (u->known && u->block.addr && blocks_find(&u->share->space[u->space], u->block.addr)) {
		memory->seen.odd_undos++;
		return 0;
	}
	if (u->known)
		device_count_up(memory, u->share, u->space, COUNT_FREES, (uint64_t)-1);
	else if (!u->unmapping && !u->reference)
		device_count_up(memory, u->share, u->space, COUNT_UNKNOWN, (uint64_t)-1);
	for (size_t i = 0; i < u->gone_count && !e; i++)
		e = restore_gone(memory, &u->gone[i], ns);
	return e || !u->block.addr ? e : restore_block(memory, u, ns);
}

int memory_undo(struct process_memory *memory, const struct device_event *e)
{
	struct ring_state *ring = process_memory_ring(memory, e->ring);
	if (!ring)
		return -MT_EMEMORY;
	for (unsigned i = 1; ring->device && i <= UNDO_DEPTH; i++) {
		struct device_undo *u = &ring->device->frees[(ring->device->next - i) % UNDO_DEPTH];
		if (u->pending && u->addr == e->slot->addr && u->class == e->ext.class)
			return restore(memory, u, e->ns);
	}
	memory->seen.odd_undos++;
	return 0;
}

void memory_ring_fini(struct device_ring *r)
{
	for (int i = 0; r && i < UNDO_DEPTH; i++)
		free(r->frees[i].gone);
	free(r);
}
