#include "analyzer/model/host_pools.h"

#include "analyzer/model/device.h"

static void drop(struct process_memory *memory, const struct range *r)
{
	memory->seen.pool.reserved_bytes -= r->end - r->start;
	memory->seen.pool.segments--;
	ranges_remove(&memory->segments, r);
}

/* What lies there already ended without a word. */
int host_pool_grow(struct process_memory *memory, uint64_t addr, uint64_t size, uint64_t ns)
{
	struct model_host_pool *p = &memory->seen.pool;
	const struct range new = { .start = addr, .end = device_end_of(addr, size), .ns = ns };
	for (const struct range *r; (r = ranges_overlap(&memory->segments, new.start, new.end)) != NULL;)
		drop(memory, r);
	int e = new.start < new.end ? ranges_put(&memory->segments, &new) : 0;
	if (e || new.start >= new.end)
		return e;
	p->segments++;
	p->reserved_bytes += new.end - new.start;
	if (p->reserved_bytes > p->reserved_peak_bytes) {
		p->reserved_peak_bytes = p->reserved_bytes;
		p->reserved_peak_ns = ns;
	}
	return 0;
}

bool host_pool_shrink(struct process_memory *memory, uint64_t addr)
{
	const struct range *r = ranges_overlap(&memory->segments, addr, device_end_of(addr, 1));
	if (!r || r->start != addr)
		return false;
	drop(memory, r);
	return true;
}

void host_pool_move(struct process_memory *memory, uint64_t size, int64_t delta)
{
	struct model_host_pool *p = &memory->seen.pool;
	p->in_use_bytes += (uint64_t)(delta * (int64_t)size);
	p->in_use_blocks += (uint64_t)delta;
	p->allocations += delta > 0;
	if (p->in_use_bytes > p->in_use_peak_bytes && delta > 0)
		p->in_use_peak_bytes = p->in_use_bytes;
}

void host_pool_restart(struct process_memory *memory, uint64_t ns)
{
	struct model_host_pool *p = &memory->seen.pool;
	p->allocations = 0;
	p->in_use_peak_bytes = p->in_use_bytes;
	p->reserved_peak_bytes = p->reserved_bytes;
	p->reserved_peak_ns = ns;
}
