/*
 * Memory that a runtime with a collector of its own has mapped: V8, the JVM, .NET, mono, Go and others. What is alive in it only the
 * runtime knows: neither is it kept by malloc, nor is all of it used.
 */
#ifndef MT_MANAGED_H
#define MT_MANAGED_H

#include "analyzer/system.h"
#include "analyzer/view.h"

struct managed {
	uint64_t bytes;    /* of the ledger's `live`, of all traced processes */
	const char *name;  /* of the process that has most of it; NULL = there is none. Borrowed */
	bool several;      /* processes of other names have some, too */
};

/* Whether a runtime mapped it. */
bool managed_stack(const struct view *v, uint32_t stack);

/* At the ledger's moment. */
struct managed managed_find(const struct view *v, const struct system *s);

#endif
