/* The rows of a device's ledger, for those who fill it in. */
#include "analyzer/diagnosis/ledger/device_ledger.h"

#include "analyzer/util/error.h"

#include <stdlib.h>
#include <string.h>

struct device_ledger_process *device_ledger_add_process(struct device_ledger *l, const struct process *p, uint32_t pid,
							const char *name)
{
	size_t room = l->process_count; /* few: no need to grow in steps */
	struct device_ledger_process *list = realloc(l->processes, (room + 1) * sizeof(*list));
	if (!list)
		return NULL;
	l->processes = list;
	list[l->process_count] = (struct device_ledger_process){ .process = p, .pid = pid, .name = name };
	return &list[l->process_count++];
}

int device_ledger_add_part(struct device_ledger *l, const struct process *process, const char *name, uint64_t bytes,
			   bool context)
{
	for (unsigned i = 0; i < l->part_count; i++) {
		struct device_ledger_part *p = &l->parts[i];
		if (p->process == process && p->context == context &&
		    (p->name == name || (p->name && name && !strcmp(p->name, name)))) {
			p->bytes += bytes;
			return 0;
		}
	}
	struct device_ledger_part *list = realloc(l->parts, (l->part_count + 1) * sizeof(*list));
	if (!list)
		return error_memory();
	l->parts = list;
	list[l->part_count++] = (struct device_ledger_part){ process, name, bytes, context };
	return 0;
}

uint64_t device_ledger_known(const struct device_ledger *l)
{
	return l->pool_allocated + l->pool_free + l->other_own +
	       (l->other_processes != MODEL_UNKNOWN ? l->other_processes : 0);
}
