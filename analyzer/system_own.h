/* Between system.c, which picks the ledger's moment, and system_ledger.c, which makes the ledger of it. Nobody else includes this. */
#ifndef MT_SYSTEM_OWN_H
#define MT_SYSTEM_OWN_H

#include "analyzer/system.h"

#define SECOND 1000000000ull /* in nanoseconds */

struct system {
	struct reader *reader;
	struct samples *samples;
	const struct reader_host *host;
	struct sample_state *states; /* of subjects, at the ledger's moment */
	struct system_process *processes;
	uint64_t ns;
	struct system_facts facts;
	struct system_ledger ledger;
	struct system_other *others;
	size_t other_count, other_room;
};

#endif
