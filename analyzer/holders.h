/* The lines that hold most of what is alive at a moment: blocks added up by the frame that explains them. */
#ifndef MT_HOLDERS_H
#define MT_HOLDERS_H

#include "analyzer/stacks.h"

enum { HOLDERS_MOST = 8 };

struct holder {
	uint32_t stack; /* one of its stacks */
	uint64_t bytes, blocks;
	uint64_t least, most; /* bytes of its smallest and its largest block */
};

struct holders {
	struct holder *list;
	size_t count, room;
};

/* 0 or -MT_EMEMORY. */
int holders_add(struct holders *h, uint32_t stack, uint64_t bytes);

/* The largest, at most HOLDERS_MOST; returns how many. Afterwards h->count is that of all lines. */
unsigned holders_most(struct holders *h, struct stacks *s, unsigned flags, struct holder out[HOLDERS_MOST]);

void holders_fini(struct holders *h);

#endif
