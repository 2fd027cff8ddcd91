/*
 * Tables too large for .bss. What a library has there counts against RLIMIT_DATA while it is loaded, and the loader
 * refuses a program that would run without us. They are one mapping instead, made when recording begins; the kernel
 * gives pages as they are touched. Each module that has some takes them in a function mt_MODULE_tables().
 */
#ifndef MT_BASE_TABLES_H
#define MT_BASE_TABLES_H

#include <stddef.h>
#include <stdint.h>

struct mt_tables {
	char *base; /* zeroed; NULL = a dry run: sizes are added up, and mt_tables_take() returns NULL */
	size_t used;
};

static inline void *mt_tables_take(struct mt_tables *t, size_t bytes)
{
	void *table = t->base ? t->base + t->used : NULL;

	t->used += (bytes + 63) & ~(size_t)63; /* a cache line */
	return table;
}

#endif
