/* Hands each event of a device to the file that knows what it does. */
#include "analyzer/model/device.h"

#include "analyzer/model/pool_layout.h"
#include "analyzer/util/error.h"

#include <string.h>

static int apply_event(struct process_memory *a, const struct device_event *e)
{
	switch (e->slot->kind) {
	case MT_DEVICE_ALLOC:
		return memory_alloc(a, e);
	case MT_DEVICE_FREE:
		return memory_free(a, e);
	case MT_DEVICE_FAIL:
		return oom_fail(a, e);
	case MT_DEVICE_UNDO:
		return memory_undo(a, e);
	case MT_DEVICE_MAP:
		return memory_map(a, e);
	case MT_DEVICE_UNMAP:
		return memory_unmap(a, e);
	case MT_DEVICE_RESET:
		return memory_reset(a, e);
	case MT_DEVICE_INFO:
		return oom_info(a, e);
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

int devices_event(struct process_memory *a, const struct mt_event *s, uint32_t ring, uint32_t thread, uint64_t ns)
{
	struct device_event e = { .slot = s, .ring = ring, .thread = thread, .ns = ns };
	struct model *m = a->model;
	if (!process_devices_of(a))
		return -MT_EMEMORY;
	memcpy(&e.ext, s + 1, sizeof(e.ext));
	m->device_events++;
	int error = apply_event(a, &e);
	if (!error && m->query.peek_count)
		error = take_layouts(m, ns);
	return error ? error : m->query.until_event && m->device_events >= m->query.until_event;
}
