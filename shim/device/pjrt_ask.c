#include "shim/base/sys.h"
#include "shim/device/pjrt_internal.h"

struct mt_lock mt_pjrt_lock;

/* ---- questions ---- */

pjrt_function *mt_pjrt_function(const struct mt_pjrt *api, enum pjrt_place place)
{
	return (size_t)place < api->count ? api->real->function[place] : NULL;
}

int mt_pjrt_ask(const struct mt_pjrt *api, enum pjrt_place place, void *args)
{
	pjrt_function *real = mt_pjrt_function(api, place), *drop = mt_pjrt_function(api, PJRT_Error_Destroy);
	void *error = real && drop ? real(args) : NULL;

	if (error)
		drop(PJRT_ARGS(struct pjrt_one, .thing = error));
	return real && drop && !error;
}

void *mt_pjrt_thing(const struct mt_pjrt *api, enum pjrt_place place, void *thing)
{
	struct pjrt_one *q = PJRT_ARGS(struct pjrt_one, .thing = thing);

	return mt_pjrt_ask(api, place, q) ? q->out.pointer : NULL;
}

int mt_pjrt_flag(const struct mt_pjrt *api, enum pjrt_place place, void *thing)
{
	struct pjrt_one *q = PJRT_ARGS(struct pjrt_one, .thing = thing);

	return mt_pjrt_ask(api, place, q) && q->out.flag;
}

uint64_t mt_pjrt_bytes(const struct mt_pjrt *api, void *buffer)
{
	struct pjrt_one *q = PJRT_ARGS(struct pjrt_one, .thing = buffer);

	return mt_pjrt_ask(api, PJRT_Buffer_OnDeviceSizeInBytes, q) ? q->out.bytes : 0;
}

size_t mt_pjrt_outputs(const struct mt_pjrt *api, void *loaded, uint64_t *temporary)
{
	struct pjrt_Executable_GetCompiledMemoryStats *stats;
	void *executable = mt_pjrt_thing(api, PJRT_LoadedExecutable_GetExecutable, loaded);
	struct pjrt_one *q = PJRT_ARGS(struct pjrt_one, .thing = executable);
	size_t count = executable && mt_pjrt_ask(api, PJRT_Executable_NumOutputs, q) ? q->out.bytes : 0;

	stats = PJRT_ARGS(struct pjrt_Executable_GetCompiledMemoryStats, .executable = executable);
	*temporary = 0;
	if (executable && mt_pjrt_ask(api, PJRT_Executable_GetCompiledMemoryStats, stats) && stats->temporary > 0)
		*temporary = (uint64_t)stats->temporary;
	if (executable)
		mt_pjrt_ask(api, PJRT_Executable_Destroy, PJRT_ARGS(struct pjrt_one, .thing = executable));
	return count;
}

/* ---- what is known of a handle: open addressing. It is never smaller than it was. ---- */

static size_t home_of(const struct mt_pjrt_map *map, const void *handle)
{
	return (size_t)((uintptr_t)handle * 0x9E3779B97F4A7C15ull >> 20) & (map->room - 1);
}

/* Its entry, or the empty one where it would be. */
static struct mt_pjrt_known *entry_of(const struct mt_pjrt_map *map, const void *handle)
{
	size_t i = home_of(map, handle);

	while (map->entries[i].handle && map->entries[i].handle != handle)
		i = (i + 1) & (map->room - 1);
	return &map->entries[i];
}

static int grow(struct mt_pjrt_map *map)
{
	struct mt_pjrt_map more = { .room = map->room ? map->room * 2 : 1024, .count = map->count };

	more.entries = mt_sys_pages(more.room * sizeof(*more.entries));
	if (!more.entries)
		return 0;
	for (size_t i = 0; i < map->room; i++)
		if (map->entries[i].handle)
			*entry_of(&more, map->entries[i].handle) = map->entries[i];
	if (map->entries)
		mt_sys_unmap(map->entries, map->room * sizeof(*map->entries));
	*map = more;
	return 1;
}

struct mt_pjrt_known *mt_pjrt_find(const struct mt_pjrt_map *map, const void *handle)
{
	struct mt_pjrt_known *known = handle && map->count ? entry_of(map, handle) : NULL;

	return known && known->handle ? known : NULL;
}

int mt_pjrt_put(struct mt_pjrt_map *map, const struct mt_pjrt_known *known)
{
	struct mt_pjrt_known *at;

	if (map->count * 2 >= map->room && !grow(map))
		return 0;
	at = entry_of(map, known->handle);
	map->count += !at->handle;
	*at = *known;
	return 1;
}

/* What was put behind it for want of its place moves up. */
void mt_pjrt_cut(struct mt_pjrt_map *map, struct mt_pjrt_known *known)
{
	size_t mask = map->room - 1, hole = (size_t)(known - map->entries);

	for (size_t i = (hole + 1) & mask; map->entries[i].handle; i = (i + 1) & mask)
		if (((i - home_of(map, map->entries[i].handle)) & mask) >= ((i - hole) & mask)) {
			map->entries[hole] = map->entries[i];
			hole = i;
		}
	map->entries[hole].handle = NULL;
	map->count--;
}

int mt_pjrt_keep(struct mt_pjrt_map *map, const struct mt_pjrt_known *known)
{
	int kept = 0;

	if (mt_lock_take(&mt_pjrt_lock)) {
		kept = mt_pjrt_put(map, known);
		mt_lock_drop(&mt_pjrt_lock);
	}
	return kept;
}

struct mt_pjrt_known mt_pjrt_look_up(struct mt_pjrt_map *map, const void *handle, int takes)
{
	struct mt_pjrt_known result = { NULL, 0, 0 }, *at;

	if (mt_pjrt_is_empty(map) || !mt_lock_take(&mt_pjrt_lock))
		return result;
	at = mt_pjrt_find(map, handle);
	if (at)
		result = *at;
	if (at && takes)
		mt_pjrt_cut(map, at);
	mt_lock_drop(&mt_pjrt_lock);
	return result;
}
