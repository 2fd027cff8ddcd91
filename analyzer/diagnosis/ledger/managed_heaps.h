/*
 * Memory that a runtime with a collector of its own has mapped: V8, the JVM, .NET, mono, Go and others. What is alive
 * in it only the runtime knows: neither is it kept by malloc, nor is all of it used.
 */
#ifndef MT_DIAGNOSIS_LEDGER_MANAGED_HEAPS_H
#define MT_DIAGNOSIS_LEDGER_MANAGED_HEAPS_H

#include "analyzer/diagnosis/ledger/host_memory.h"
#include "analyzer/model/selection/selection.h"

struct managed_heaps {
	uint64_t bytes;   /* of the ledger's `live`, of all traced processes */
	const char *name; /* of the process that has most of it; NULL = there is none. Borrowed */
	bool several;     /* processes of other names have some, too */
};

/* Whether a runtime mapped it. */
bool managed_heaps_stack(const struct selection *sel, uint32_t stack);

/* Whether a runtime's own function called malloc: what it needs to manage its heap grows and shrinks with that heap. */
bool managed_heaps_malloc(const struct selection *sel, uint32_t stack);

/* At the ledger's moment. */
struct managed_heaps managed_heaps_find(const struct selection *sel, const struct host_memory *s);

#endif
