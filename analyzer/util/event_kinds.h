/* What slots say of memory, for all who follow them: the books (process_memory.c, mappings.c, device_blocks.c) and
 * folding (recorder/fold/), which leaves out what the books then don't miss. */
#ifndef MT_UTIL_EVENT_KINDS_H
#define MT_UTIL_EVENT_KINDS_H

#include "format/format.h"

#include <stdbool.h>
#include <stdint.h>

/* What memory is (see model.h's glossary). */
enum model_kind { MODEL_HEAP = 0, MODEL_MAP, MODEL_PINNED, MODEL_DEVICE, MODEL_POOL, MODEL_KINDS };
#define MODEL_HOST_KINDS MODEL_DEVICE /* kinds below are memory of the host */

#define MODEL_NO_DEVICE UINT32_MAX

/* What shares a name space of addresses or handles, on each device its own. */
enum event_space {
	SPACE_HEAP = 0,
	SPACE_MAP,
	SPACE_PINNED,
	SPACE_LINEAR,
	SPACE_POOL,
	SPACE_WORKSPACE,
	SPACES_FOLDED, /* blocks of those above can be left out by folding */
	SPACE_ARRAY = SPACES_FOLDED,
	SPACE_ALIAS,
	SPACE_REGISTERED,
	SPACES /* none: physical memory, reservations, unknown classes */
};

static inline enum event_space space_of_class(unsigned class)
{
	static const uint8_t spaces[MT_CLASSES] = {
		[0] = SPACES,
		[MT_CLASS_DEVICE] = SPACE_LINEAR,
		[MT_CLASS_MANAGED] = SPACE_LINEAR,
		[MT_CLASS_ASYNC] = SPACE_LINEAR,
		[MT_CLASS_ARRAY] = SPACE_ARRAY,
		[MT_CLASS_PHYSICAL] = SPACES,
		[MT_CLASS_RESERVED] = SPACES,
		[MT_CLASS_ALIAS] = SPACE_ALIAS,
		[MT_CLASS_PINNED] = SPACE_PINNED,
		[MT_CLASS_REGISTERED] = SPACE_REGISTERED,
		[MT_CLASS_POOL] = SPACE_POOL,
		[MT_CLASS_WORKSPACE] = SPACE_WORKSPACE,
		[MT_CLASS_SEGMENT] = SPACES,
	};
	return class < MT_CLASSES ? spaces[class] : SPACES;
}

/* What a space's blocks are counted as; MODEL_KINDS = as nothing. SPACES stands for physical memory. */
static inline enum model_kind space_kind(enum event_space space)
{
	static const uint8_t kinds[SPACES + 1] = {
		[SPACE_HEAP] = MODEL_HEAP,     [SPACE_MAP] = MODEL_MAP,     [SPACE_PINNED] = MODEL_PINNED,
		[SPACE_LINEAR] = MODEL_DEVICE, [SPACE_POOL] = MODEL_POOL,   [SPACE_WORKSPACE] = MODEL_POOL,
		[SPACE_ARRAY] = MODEL_DEVICE,  [SPACE_ALIAS] = MODEL_KINDS, [SPACE_REGISTERED] = MODEL_KINDS,
		[SPACES] = MODEL_DEVICE,
	};
	return kinds[space];
}

/* What a folded SUM says of such a space in ext.capture. */
static inline uint32_t fold_what(enum event_space space)
{
	static const uint8_t what[SPACES_FOLDED] = { [SPACE_MAP] = MT_FOLD_MAPS,
						     [SPACE_PINNED] = MT_CLASS_PINNED,
						     [SPACE_LINEAR] = MT_CLASS_DEVICE,
						     [SPACE_POOL] = MT_CLASS_POOL,
						     [SPACE_WORKSPACE] = MT_CLASS_WORKSPACE };
	return what[space];
}

/* And back; SPACES = what no SUM says. */
static inline enum event_space space_of_what(uint32_t what)
{
	for (enum event_space space = SPACE_HEAP; space < SPACES_FOLDED; space++)
		if (fold_what(space) == what)
			return space;
	return SPACES;
}

/* What a map is. Reservations (PROT_NONE) count as calls, but their bytes and blocks are in no other figure; nor are
 * those of an allocator's arenas, whose blocks are the heap's. What mprotect makes usable of reservations is an
 * allocation of its caller's, what it makes unusable is freed. What madvise gives back stays: it may be touched again
 * without a word. */
enum model_map_class { MAP_ANON = 0, MAP_FILE, MAP_MEMFD, MAP_SHARED, MAP_ARENA, MAP_RESERVED, MAP_CLASSES };

static inline bool map_class_counts(unsigned class)
{
	return class < MAP_ARENA;
}

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
	if (ext->flags & MT_MAP_SHARED)
		return MAP_SHARED;
	return ext->flags & MT_MAP_ARENA ? MAP_ARENA : MAP_ANON;
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
