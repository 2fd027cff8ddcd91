/*
 * Which blocks of the heap a program can still reach, by a copy of its memory (util/system/memory_copy.h): the question
 * of LeakSanitizer, asked of a program that runs.
 *
 * Nodes are the live blocks, and what lives by itself: variables of modules, stacks, registers, mappings, what the
 * kernel keeps. A word that is an address within a block, or its beginning, is taken for a reference to it. So what
 * nothing leads to is lost, as far as the program keeps pointers as they are; what something leads to need not be in
 * use.
 */
#ifndef MT_MODEL_HOLDERS_SCAN_H
#define MT_MODEL_HOLDERS_SCAN_H

#include "analyzer/model/holders/hold_graph.h"
#include "analyzer/symbols/stacks.h"
#include "analyzer/util/system/memory_copy.h"

enum scan_what {
	SCAN_LOST,     /* nothing leads to it */
	SCAN_GLOBAL,   /* a variable of a program or library */
	SCAN_STACK,    /* of a thread, its thread-local variables among them */
	SCAN_THREAD,   /* thread-local variables alone */
	SCAN_REGISTER, /* of a thread */
	SCAN_MAPPING,  /* that the program or a library made */
	SCAN_KERNEL,   /* what an epoll returns */
	SCAN_UNKNOWN,  /* memory of malloc that is in no block which the trace knows */
};

/* Blocks that one owner leads to by blocks of one site. */
struct scan_row {
	enum scan_what what;
	char *name;      /* "cache", "thread server"; LOST: NULL */
	char *also;      /* another owner that leads to all of them; NULL = none */
	const char *at;  /* GLOBAL: path of the module, else NULL; borrowed */
	uint32_t first;  /* site of the process of those that it refers to, or LOST: that nothing refers to */
	uint64_t firsts; /* how many of these */
	uint64_t bytes, blocks;
	uint32_t site; /* made most of them; UINT32_MAX = not known */
	uint64_t site_bytes;
};

struct scan {
	struct scan_row *rows;
	size_t count, room;
	uint64_t bytes, blocks;           /* alive */
	uint64_t lost_bytes, lost_blocks; /* of them */
};

/* `m` was run until the copy's moment. `whole`: all live blocks are known; else what is in no block is looked through,
 * too. 0 or -MT_EMEMORY, -MT_ELARGE; scan_free() in any case. */
int scan_make(struct scan **out, const struct memory_copy *c, const struct model *m, struct stacks *stacks,
	      const struct process *p, bool whole);
void scan_free(struct scan *s);

#endif
