/*
 * Tables too large for .bss. What a library has there counts against RLIMIT_DATA while it is loaded, and the loader
 * refuses a program that would run without us. They are one mapping instead, made when recording begins; the kernel
 * gives pages as they are touched.
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

/* Each takes what its module needs. */
void mt_ring_tables(struct mt_tables *t);
void mt_stack_tables(struct mt_tables *t);
void mt_rules_tables(struct mt_tables *t);
void mt_ehframe_tables(struct mt_tables *t);
void mt_modules_tables(struct mt_tables *t);
void mt_map_tables(struct mt_tables *t);
void mt_maps_tables(struct mt_tables *t);
void mt_mark_tables(struct mt_tables *t);
void mt_pycode_tables(struct mt_tables *t);
void mt_acl_tables(struct mt_tables *t);
void mt_mstx_tables(struct mt_tables *t);

#endif
