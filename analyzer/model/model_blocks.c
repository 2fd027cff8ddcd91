/* The blocks that are live, one by one. */
#include "analyzer/model/device.h"

struct visit {
	int (*f)(void *arg, const struct model_block *b);
	void *arg;
};

static int visit_range(void *arg, const struct range *r)
{
	const struct visit *v = arg;
	const struct model_block b = {
		.addr = r->start,
		.size = r->end - r->start,
		.bytes = r->end - r->start,
		.ns = r->ns,
		.site = r->inherited ? UINT32_MAX : r->site,
		.thread = r->thread,
		.inherited = r->inherited,
		.class = (enum model_map_class)r->class,
		.prot = r->prot,
		.file = r->file,
		.device = MODEL_NO_DEVICE,
	};
	return v->f(v->arg, &b);
}

static int visit_heap(const struct process_memory *memory, const struct visit *v)
{
	const struct blocks *heap = &memory->heap;
	int e = 0;
	for (size_t i = 0; heap->entries && i <= heap->mask && !e; i++) {
		const struct block *b = &heap->entries[i];
		if (!b->addr)
			continue;
		const struct model_block seen = { .addr = b->addr,
						  .size = b->size,
						  .bytes = process_memory_weigh(memory, b).bytes,
						  .ns = b->ns,
						  .site = b->site,
						  .thread = b->thread,
						  .device = MODEL_NO_DEVICE };
		e = v->f(v->arg, &seen);
	}
	return e;
}

static int visit_inherited(const struct inherited_blocks *l, const struct visit *v)
{
	int e = 0;
	for (size_t i = 0; i < l->room && !e; i++) {
		const struct inherited_blocks_entry *b = &l->entries[i];
		if (!b->addr || b->size == INHERITED_BLOCKS_GONE)
			continue;
		const struct model_block seen = { .addr = b->addr,
						  .size = b->size,
						  .bytes = b->size,
						  .site = UINT32_MAX,
						  .inherited = true,
						  .device = MODEL_NO_DEVICE };
		e = v->f(v->arg, &seen);
	}
	return e;
}

int model_each_segment(const struct model *m, unsigned process, int (*f)(void *arg, const struct model_block *b),
		       void *arg)
{
	return ranges_each(&m->processes[process].segments, visit_range, &(struct visit){ f, arg });
}

int model_each_block(const struct model *m, unsigned process, enum model_kind kind,
		     int (*f)(void *arg, const struct model_block *b), void *arg)
{
	struct visit v = { f, arg };
	const struct process_memory *memory = &m->processes[process];
	if (kind == MODEL_MAP)
		return ranges_each(&memory->maps, visit_range, &v);
	if (kind != MODEL_HEAP)
		return devices_each_block(memory, kind, f, arg);
	int e = visit_heap(memory, &v);
	return e ? e : visit_inherited(&memory->inherited_blocks, &v);
}
