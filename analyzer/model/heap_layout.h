/*
 * How the live blocks of a heap lie in memory. What hooks see are blocks; glibc's arenas are read off their addresses:
 *
 *   main      above the program, where the program break grows; only what is above the highest block goes back by
 *             itself
 *   arena     64 MiB, aligned: a thread's
 *   mapped    a block with pages of its own; goes back when it is freed
 *   pool      a segment of a framework's pool, from its first byte to its last
 *
 * With another allocator in the program "arena" is merely an aligned region with blocks in it.
 */
#ifndef MT_MODEL_HEAP_LAYOUT_H
#define MT_MODEL_HEAP_LAYOUT_H

#include "analyzer/model/model.h"

enum arena_kind { ARENA_MAIN, ARENA_THREAD, ARENA_MAPPED, ARENA_POOL };

struct arena {
	enum arena_kind kind;
	uint64_t start, end;   /* of its blocks; of a pool's segment its own */
	uint64_t live, blocks; /* MAPPED: all such blocks together, start and end of no meaning */
	uint64_t largest_hole;
	struct model_block top[4]; /* the uppermost blocks, highest first: what keeps it from shrinking */
	uint64_t below[4];         /* bytes without a block between top[i] and the next one below */
	unsigned tops;
};

struct arenas {
	struct arena *list; /* main first, mapped and pools last */
	size_t count;
	uint64_t live, blocks, span; /* span: of main and thread arenas */
};

/* Of a process whose blocks the model has kept. 0 or -MT_EMEMORY; arenas_fini() either way. */
int arenas_find(struct arenas *a, const struct model *m, const struct process *p);
void arenas_fini(struct arenas *a);

#endif
