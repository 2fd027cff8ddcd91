/* Physical memory of the virtual memory API. */
#include "analyzer/model/device_blocks.h"

#include "analyzer/util/vec.h"

enum event_space physical_space(const struct physical *p)
{
	return p->share->seen.id ? SPACES : SPACE_PINNED;
}

static void charge(struct physical *p, int64_t delta, uint64_t ns)
{
	const struct block b = { .addr = p->handle, .size = p->size, .site = p->site, .thread = p->thread };
	device_move_block(p->share, physical_space(p), &b, delta, ns);
}

/* It is (1) or is no longer (-1) mapped nowhere. */
static void charge_unmapped(struct physical *p, int64_t delta, uint64_t ns)
{
	if (p->share->seen.id)
		share_change(p->share, LAYER_UNMAPPED,
			     &(struct change){ MODEL_DEVICE, BLOCK_NO_SITE, delta * (int64_t)p->size, delta, 0, 0, ns },
			     ns);
}

void physical_count_maps(struct physical *p, int delta, uint64_t ns)
{
	if (!p->maps)
		charge_unmapped(p, -1, ns);
	p->maps += (uint32_t)delta;
	if (!p->maps)
		charge_unmapped(p, 1, ns);
}

int64_t physical_put(struct process_memory *memory, const struct physical *p, uint64_t ns)
{
	struct process_devices *b = memory->devices;
	uint32_t i = b->physical_free;
	if (!i) {
		int e = vec_reserve(b->physical, b->physical_room, b->physical_count + 1);
		if (e)
			return e;
		i = (uint32_t)++b->physical_count;
	} else {
		b->physical_free = b->physical[i - 1].maps;
	}
	b->physical[i - 1] = *p;
	b->physical[i - 1].used = true;
	charge(&b->physical[i - 1], 1, ns);
	charge_unmapped(&b->physical[i - 1], 1, ns);
	return i - 1;
}

static void physical_drop(struct process_memory *memory, struct physical *p, uint64_t ns)
{
	struct process_devices *b = memory->devices;
	charge_unmapped(p, -1, ns);
	charge(p, -1, ns);
	*p = (struct physical){ .maps = b->physical_free };
	b->physical_free = (uint32_t)(p - b->physical) + 1;
}

void physical_drop_if_unused(struct process_memory *memory, struct physical *p, uint64_t ns)
{
	if (p->released && !p->maps)
		physical_drop(memory, p, ns);
}

void physical_release(struct process_memory *memory, struct physical *p, uint64_t ns)
{
	struct block *b = blocks_find(&memory->devices->handles, p->handle);
	if (b)
		blocks_remove(&memory->devices->handles, b);
	p->released = true;
	physical_drop_if_unused(memory, p, ns);
}

struct physical *physical_find(const struct process_memory *memory, uint64_t handle)
{
	const struct block *b = handle ? blocks_find(&memory->devices->handles, handle) : NULL;
	return b ? &memory->devices->physical[b->site] : NULL;
}

int physical_hold(struct process_memory *memory, uint64_t handle, uint32_t index)
{
	return blocks_put(&memory->devices->handles, &(struct block){ .addr = handle, .site = index });
}
