/* The lines that hold most of what is alive at a moment: blocks added up by the frame that explains them. */
#ifndef MT_DIAGNOSIS_TOP_LINES_H
#define MT_DIAGNOSIS_TOP_LINES_H

#include "analyzer/symbols/stacks.h"

enum { TOP_LINES_MOST = 8 };

struct top_line {
	uint32_t stack; /* of its stacks the one with most */
	uint64_t bytes, blocks;
	uint64_t least, most; /* bytes of its smallest and its largest block */
};

struct top_lines {
	struct top_line *list;
	size_t count, room;
};

/* 0 or -MT_EMEMORY. */
int top_lines_add(struct top_lines *h, uint32_t stack, uint64_t bytes);

/* The largest, at most TOP_LINES_MOST; returns how many. Afterwards h->count is that of all lines. */
unsigned top_lines_most(struct top_lines *h, struct stacks *s, unsigned flags, struct top_line out[TOP_LINES_MOST]);

void top_lines_fini(struct top_lines *h);

#endif
