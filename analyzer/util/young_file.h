/*
 * PID-N.young: what of a process's young blocks has not become an event, as events of rings of their own. For all who
 * read it, once the rings themselves are known: an entry that was on its way counts only if its slot was not published.
 */
#ifndef MT_UTIL_YOUNG_FILE_H
#define MT_UTIL_YOUNG_FILE_H

#include "format/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rest of one ring's blocks and sums, in the order of their ticks. */
struct young_ring {
	uint32_t ring;   /* a number that no ring of the process has */
	uint32_t thread; /* index, of its owner */
	struct mt_event *slots;
	size_t count;
};

struct young_rest {
	struct young_ring *rings;
	size_t count;
	struct mt_event *slots; /* of all of them */
};

/* How much of a file of that size is to be read; 0 = it says nothing. */
size_t young_file_bytes(uint64_t size);

/* Where the published slots of a ring end; the rings of the file are below `rings`. */
typedef uint64_t young_ring_end(void *context, uint32_t ring);

/* `file` is nobody's to trust. `horizon`: what is younger is left out. The numbers of its rings are from `rings` on,
 * always the same for the same file. 0 or -MT_E*; young_rest_fini() either way. */
int young_rest_make(struct young_rest *rest, const void *file, size_t bytes, uint32_t rings, uint64_t horizon,
		    young_ring_end *end, void *context);
void young_rest_fini(struct young_rest *rest);

#endif
