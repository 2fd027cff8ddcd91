/* What is known of one process by number: nodes, modules, names. */
#include "analyzer/reader/image.h"
#include "analyzer/reader/reader.h"
#include "analyzer/util/search.h"

#include <stdio.h>
#include <string.h>

uint64_t process_ns(const struct process *p, uint64_t ticks)
{
	return clock_ns(image_of(p)->clock, ticks);
}

const struct mt_node *process_node(const struct process *p, uint32_t id)
{
	while (p && id < p->node_base)
		p = p->parent;
	if (!p || !id || id >= p->node_end)
		return NULL;
	return &p->nodes[id - p->node_base];
}

/* What a parent had mapped at the fork counts for the child until it says otherwise. */
static const struct process_module *module_at(const struct process *p, uint32_t node, uint64_t pc)
{
	for (unsigned i = p->module_count; i-- > 0;) {
		const struct process_module *m = &p->modules[i];
		if (pc >= m->start && pc < m->end && node >= m->node_from && node < m->node_until)
			return m;
	}
	return NULL;
}

const struct process_module *reader_module_of(const struct process *p, uint32_t node)
{
	const struct mt_node *n = process_node(p, node);
	if (!n || n->flags & MT_NODE_PYTHON)
		return NULL;
	uint64_t pc = n->pc - (n->flags & MT_NODE_EXACT ? 0 : 1);
	while (p && node < p->node_base)
		p = p->parent;
	for (; p; p = p->parent) {
		const struct process_module *m = module_at(p, node, pc);
		if (m)
			return m;
	}
	return NULL;
}

bool process_is_pypy(const struct process *p)
{
	for (unsigned i = 0; i < p->module_count; i++)
		if (strstr(p->modules[i].path, "/libpypy"))
			return true;
	return false;
}

const char *process_hook(const struct process *p, unsigned hook)
{
	const char *name = hook < 1024 ? image_of(p)->hooks[hook] : NULL;
	return name ? name : "?";
}

const struct process_device *process_device(const struct process *p, uint32_t id)
{
	for (unsigned i = 0; i < p->device_count; i++)
		if (p->devices[i].id == id)
			return &p->devices[i];
	return NULL;
}

bool process_never(const struct process *p, uint64_t addr)
{
	const size_t count = addr >= MT_NOWHERE ? p->never_count : 0, at = SEARCH_FIRST(i, count, p->nevers[i] >= addr);
	return at < count && p->nevers[at] == addr;
}

const char *process_mark(const struct process *p, uint32_t name)
{
	const struct image *im = image_of(p);
	return name < im->name_room && im->names[name] ? im->names[name] : "";
}

uint32_t process_marks(const struct process *p)
{
	return (uint32_t)image_of(p)->name_room;
}

static const struct process_code *own_code(const struct process *p, uint32_t code)
{
	const size_t at = SEARCH_FIRST(i, p->code_count, p->codes[i].id >= code);
	return at < p->code_count && p->codes[at].id == code ? &p->codes[at] : NULL;
}

const struct process_code *process_code(const struct process *p, uint32_t code)
{
	const struct process_code *found = NULL;
	for (; p && !found; p = p->parent)
		found = own_code(p, code);
	return found;
}

/* 0: it is no cell's, or nobody said which. */
static unsigned cell_number(const struct process *p, const char *file)
{
	unsigned number = 0;
	int end = 0;
	if (sscanf(file, "<ipython-input-%u-", &number) == 1 || !strstr(file, "ipykernel_"))
		return number;
	for (; p; p = p->parent)
		for (uint32_t i = process_marks(p); i--;) /* the last one counts */
			if (sscanf(process_mark(p, i), "In [%u] = %n", &number, &end) == 1 && end &&
			    !strcmp(process_mark(p, i) + end, file))
				return number;
	return 0;
}

bool process_cell(const struct process *p, const char *file, char name[PROCESS_CELL_NAME])
{
	const unsigned number = cell_number(p, file);
	snprintf(name, PROCESS_CELL_NAME, "In [%u]", number);
	return number > 0;
}

const struct process_thread *process_thread(const struct process *p, uint32_t index)
{
	const struct image *im = image_of(p);
	return index < im->thread_count && im->threads[index].name ? &im->threads[index] : NULL;
}
