/* Hands each event of a device to the file that knows what it does. */
#include "analyzer/model/device.h"

#include "analyzer/model/pool_layout.h"
#include "analyzer/util/error.h"

#include <string.h>

static int apply_event(struct process_memory *memory, const struct device_event *e)
{
	switch (e->slot->kind) {
	case MT_DEVICE_ALLOC:
		return memory_alloc(memory, e);
	case MT_DEVICE_FREE:
		return memory_free(memory, e);
	case MT_DEVICE_FAIL:
		return oom_fail(memory, e);
	case MT_DEVICE_UNDO:
		return memory_undo(memory, e);
	case MT_DEVICE_MAP:
		return memory_map(memory, e);
	case MT_DEVICE_UNMAP:
		return memory_unmap(memory, e);
	case MT_DEVICE_RESET:
		return memory_reset(memory, e);
	case MT_DEVICE_INFO:
		return oom_info(memory, e);
	default:
		return 0;
	}
}

static int take_layouts(struct model *m, uint64_t ns)
{
	int e = 0;
	for (size_t i = 0; i < m->query.peek_count && !e; i++) {
		struct model_peek *p = &m->query.peeks[i];
		if (p->event != m->device_events || p->device >= m->device_count)
			continue;
		p->ns = ns;
		pool_layout_free(p->layout);
		e = pool_layout_take(&p->layout, m, p->device, UINT32_MAX);
	}
	return e;
}

int devices_event(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint32_t thread, uint64_t ns)
{
	struct device_event e = { .slot = s, .ring = ring, .thread = thread, .ns = ns };
	struct model *m = memory->model;
	if (!process_devices_of(memory))
		return -MT_EMEMORY;
	memcpy(&e.ext, s + 1, sizeof(e.ext));
	m->device_events++;
	int error = apply_event(memory, &e);
	if (!error && m->query.peek_count)
		error = take_layouts(m, ns);
	return error ? error : m->query.until_event && m->device_events >= m->query.until_event;
}
