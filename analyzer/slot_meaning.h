/* What slots say of memory, for all who follow them: the books (account.c, maps.c, device_memory.c) and folding (thin*.c), which leaves
 * out what the books then don't miss. */
#ifndef MT_SLOT_MEANING_H
#define MT_SLOT_MEANING_H

#include "analyzer/model.h"
#include "format/format.h"

enum { UNDO_DEPTH = 4 }; /* frees of a ring that may still be undone */

/* The end of a mapping: of whole pages of 4 KiB, at most the last one that there is. */
static inline uint64_t map_end_of(uint64_t start, uint64_t bytes)
{
	const uint64_t page = 4096, end = (start + bytes + page - 1) & ~(page - 1);
	return end < start ? UINT64_MAX & ~(page - 1) : end;
}

/* What it is as long as it can be used. */
static inline enum model_map_class map_usable_class_of(const struct mt_ext_map *ext)
{
	if (ext->flags & MT_MAP_MEMFD)
		return MAP_MEMFD;
	if (!(ext->flags & MT_MAP_ANON))
		return MAP_FILE;
	return ext->flags & MT_MAP_SHARED ? MAP_SHARED : MAP_ANON;
}

static inline enum model_map_class map_class_of(const struct mt_ext_map *ext)
{
	return ext->prot ? map_usable_class_of(ext) : MAP_RESERVED;
}

/* Of what is mapped already, not a mapping of its own. */
static inline bool map_is_change(const struct mt_ext_map *ext)
{
	return ext->flags & (MT_MAP_PROTECT | MT_MAP_GIVEN);
}

static inline uint64_t device_end_of(uint64_t addr, uint64_t size)
{
	return addr + size < addr ? UINT64_MAX : addr + size;
}

#endif
